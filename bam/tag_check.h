/* SPDX-License-Identifier: MIT */
/* Checks whether the tags of a record can be read again from a file of a format: htslib writes some that it cannot
 * read. */
#ifndef TAG_CHECK_H
#define TAG_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <htslib/hts.h>

/* Returns whether the tags in [p, end) can be read again from a file of this format. Readers of BAM and SAM ignore up
 * to three bytes after the last tag. */
bool tag_check_bam(const uint8_t *p, const uint8_t *end);
bool tag_check_sam(const uint8_t *p, const uint8_t *end);
bool tag_check_cram(const uint8_t *p, const uint8_t *end);

/* Returns whether a line of SAM can begin with the name, which ends in NUL. Only the name of the first record must not
 * begin with @. */
bool tag_check_sam_name(const char *name);

#endif
