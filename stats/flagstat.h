/* SPDX-License-Identifier: MIT */
/* `flagstat` prints how many records have which flags. */
#ifndef FLAGSTAT_H
#define FLAGSTAT_H

#include "stats/counter.h"

enum flagstat_format { FLAGSTAT_TEXT, FLAGSTAT_JSON, FLAGSTAT_TSV };

struct flagstat_settings {
    enum flagstat_format format;
};

/* The settings stay the caller's. */
struct counter flagstat_counter(struct flagstat_settings *settings);

#endif
