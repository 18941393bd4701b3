/* SPDX-License-Identifier: MIT */
/* What each thread did when, in the Trace Event Format, which Perfetto and chrome://tracing open. */
#ifndef TRACE_H
#define TRACE_H

#include <stdio.h>

struct stats;

/* Writes the spans of stopped stats: one track per slot, and one for the phases. */
void trace_write(const struct stats *stats, FILE *to);

#endif
