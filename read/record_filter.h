/* SPDX-License-Identifier: MIT */
/* Decides which records pass the input option filter=EXPRESSION. The record is ours, and htslib evaluates the
 * expression. */
#ifndef RECORD_FILTER_H
#define RECORD_FILTER_H

#include <stdint.h>
#include <htslib/sam.h>

struct bam_record;
struct record_filter;

/* Returns the filter expression in these options of --input-fmt-option; NULL: there is none. The options keep it. */
const char *record_filter_of(const hts_opt *options);

/* Makes a filter that n tasks may use at a time. The header and the expression are copied. NULL: out of memory. */
struct record_filter *record_filter_new(const char *expression, const sam_hdr_t *header, uint32_t n);
void record_filter_free(struct record_filter *filter);

/* Returns whether the checked record passes. user: 0 .. n - 1, not the same in two tasks at a time. -1: htslib cannot
 * evaluate the expression, because it is broken or there is no memory. */
int record_filter_passes(struct record_filter *filter, uint32_t user, const struct bam_record *record);

#endif
