/* SPDX-License-Identifier: MIT */
/* What the fuzz targets share. A target is one function from bytes that anybody may have made to
 * nothing: it may refuse them, but not crash, hang, leak, read where it must not, or break what
 * MUST() says. libFuzzer calls it with bytes of its own, replay.c with those of files. */
#ifndef FUZZ_H
#define FUZZ_H

#include <stddef.h>
#include <htslib/sam.h>
#include "bam/bam_record.h"
#include "order/sort_key.h"
#include "test/must.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- the input, taken from its front; zeros when it is used up ---- */

struct feed {
    const uint8_t *p;
    size_t left;
};

static inline void feed_copy(struct feed *f, uint8_t *to, size_t n)
{
    size_t there = n < f->left ? n : f->left;
    if (there)
        memcpy(to, f->p, there);
    memset(to + there, 0, n - there);
    f->p += there;
    f->left -= there;
}

static inline uint8_t feed_byte(struct feed *f)
{
    uint8_t v;
    feed_copy(f, &v, sizeof v);
    return v;
}

static inline uint32_t feed_word(struct feed *f)
{
    uint8_t v[4];
    feed_copy(f, v, sizeof v);
    return load_le32(v);
}

/* ---- records that pass the check, for targets behind it ---- */

/* References that they may name. */
enum { FUZZ_REFS = 3, FUZZ_RECORD_MAX = BAM_FIXED + 255 + 4 * 255 + 2 * 255 + 255 };

/* The next record of the input, in out[FUZZ_RECORD_MAX]; returns its size, 0: there is none. The input says:
 *
 *   flag 2 | mapq | refs | pos 4 | next_pos 4 | tlen 4 | name length | bases | operations | bytes of tags
 *   | name | operations | bases, qualities | tags
 *
 * SEQ has as many bases as the CIGAR says, and those of the input without one. */
size_t fuzz_record(struct feed *f, uint8_t *out);

/* The next order of the input, but for -I. */
struct sort_order fuzz_order(struct feed *f);

/* A header for them: FUZZ_REFS references, some read groups. */
sam_hdr_t *fuzz_header(void);

/* A file in memory that holds these bytes, and the path by which it can be opened. */
int fuzz_file(const uint8_t *data, size_t size, char path[32]);

/* What htslib takes it for. */
htsFormat fuzz_format(const uint8_t *data, size_t size);

/* Whether htslib can read all records of the file, and make lines of SAM of them, as `samtools view` does. */
bool fuzz_can_be_viewed(const uint8_t *data, size_t size);

/* Whether we take it for BAM. */
bool fuzz_is_bam(const uint8_t *data, size_t size);

#endif
