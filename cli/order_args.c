/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <string.h>
#include "base/message.h"
#include "cli/order_args.h"

static void set_tag(struct order_args *args, struct sort_order *order, const char *text)
{
    char tag[sizeof order->tag] = {0};
    if (strlen(text) > sizeof tag)
        message_warning("-t %s: a tag has two characters, so this is -t %.2s, as in samtools", text, text);
    memcpy(tag, text, strnlen(text, sizeof tag));
    args->many_tags |= args->by_tag && memcmp(order->tag, tag, sizeof tag) != 0;
    memcpy(order->tag, tag, sizeof tag);
    args->by_tag = true;
}

enum engine_option order_args_take(struct order_args *args, struct sort_order *order, int c)
{
    switch (c) {
    case 'n': order->by = SORT_NAME_NATURAL; break;
    case 'N': order->by = SORT_NAME_NATURAL; args->ascii = true; break;
    case OPT_TEMPLATE: order->by = SORT_TEMPLATE; break;
    case 't': set_tag(args, order, optarg); break;
    default: return ENGINE_OPTION_COMMON;
    }
    return ENGINE_OPTION_TAKEN;
}

void order_args_settle(const struct order_args *args, struct sort_order *order)
{
    if (order->by == SORT_NAME_NATURAL && args->ascii)
        order->by = SORT_NAME_ASCII;
    if (!args->by_tag)
        return;
    if (args->many_tags)                         /* as in samtools; of sort(1), -k -k means more */
        message_warning("-t is given several times: only the last one counts, -t %.2s", order->tag);
    /* samtools takes it, too. */
    if (!isalpha((unsigned char)order->tag[0]) || !isalnum((unsigned char)order->tag[1]))
        message_warning("-t '%.2s' is no tag, which is a letter and another or a digit: no record should have it",
                        order->tag);
    bool named = order->by == SORT_NAME_NATURAL || order->by == SORT_NAME_ASCII || order->by == SORT_NAME_PICARD;
    order->then = named ? order->by : SORT_COORDINATE;
    order->by = SORT_TAG;
}
