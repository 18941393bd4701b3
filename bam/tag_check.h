/* SPDX-License-Identifier: MIT */
/* Whether the tags of a record can be read again from a file of a format: htslib writes some that it then cannot
 * read. */
#ifndef TAG_CHECK_H
#define TAG_CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <htslib/hts.h>

/* Check the tags [p, end). In BAM and SAM, readers ignore up to three bytes behind the last tag. */
bool tag_check_bam(const uint8_t *p, const uint8_t *end);
bool tag_check_sam(const uint8_t *p, const uint8_t *end);
bool tag_check_cram(const uint8_t *p, const uint8_t *end);

/* Whether a line of SAM can begin with the name, which ends in NUL. If it begins with @, only the first record's
 * cannot. */
bool tag_check_sam_name(const char *name);

#endif
