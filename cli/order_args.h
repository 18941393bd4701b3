/* SPDX-License-Identifier: MIT */
/* The options of an order that sort and merge share: -n, -N, -t TAG and --template-coordinate. */
#ifndef ORDER_ARGS_H
#define ORDER_ARGS_H

#include "cli/engine_args.h"

/* As far as they were read. */
struct order_args {
    bool ascii;                  /* -N was given: names stay ASCII, even if -n follows */
    bool by_tag;                 /* -t was given */
    bool many_tags;              /* and so was another tag */
};

/* COMMON: it is another option. */
enum engine_option order_args_take(struct order_args *args, struct sort_order *order, int c);

/* What they mean together, when all are read. */
void order_args_settle(const struct order_args *args, struct sort_order *order);

#endif
