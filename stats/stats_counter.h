/* SPDX-License-Identifier: MIT */
/* The counter of `samtools stats`. */
#ifndef STATS_COUNTER_H
#define STATS_COUNTER_H

#include "stats/counter.h"

struct stats_settings;

/* The settings begin as stats_settings_default(), and stay the caller's. */
struct counter stats_counter(struct stats_settings *settings);

#endif
