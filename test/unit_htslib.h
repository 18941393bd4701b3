/* SPDX-License-Identifier: MIT */
/* The oracle for records: htslib reads them and writes them again. */
#ifndef UNIT_HTSLIB_H
#define UNIT_HTSLIB_H

#include <sys/mman.h>
#include <htslib/bgzf.h>
#include <htslib/hfile.h>
#include <htslib/hts_log.h>
#include <htslib/sam.h>
#include "unit.h"

enum { N_REF = 3 };              /* @SQ lines that the records may refer to */

/* Reads one record from bytes; NULL if htslib refuses it. Like sam_read1(), it
 * refuses ids that the header does not have. */
static inline bam1_t *htslib_read(const uint8_t *record, size_t size)
{
    char *copy = (char *)exact_copy(record, size);           /* the hFILE frees it */
    hFILE *file = hopen("mem:", "r:", copy, size);
    MUST(file);
    BGZF *in = bgzf_hopen(file, "r");
    MUST(in);
    bam1_t *b = bam_init1();
    MUST(b);
    int got = bam_read1(in, b);
    bgzf_close(in);
    if (got >= 0 && (size_t)got == size && b->core.tid >= -1 && b->core.tid < N_REF
        && b->core.mtid >= -1 && b->core.mtid < N_REF)
        return b;
    bam_destroy1(b);
    return NULL;
}

/* The bytes that htslib writes for b; none if it refuses. */
static inline struct unit_bytes htslib_write(const bam1_t *b)
{
    struct unit_bytes bytes = {NULL, 0, 0};
    int fd = memfd_create("judge", 0);
    MUST(fd >= 0);
    hFILE *file = hdopen(dup(fd), "w");
    MUST(file);
    BGZF *out = bgzf_hopen(file, "wu");
    MUST(out);
    int put = bam_write1(out, b);
    int closed = bgzf_close(out);
    if (put >= 0 && closed == 0)
        bytes = unit_read_file(fd);
    close(fd);
    return bytes;
}

static inline struct unit_bytes htslib_rewrite(const uint8_t *record, size_t size)
{
    struct unit_bytes bytes = {NULL, 0, 0};
    bam1_t *b = htslib_read(record, size);
    if (b) {
        bytes = htslib_write(b);
        bam_destroy1(b);
    }
    return bytes;
}

/* A record that both must accept: once normalised it equals, byte for byte, htslib's output. */
static inline void check_like_htslib(const uint8_t *record, size_t size)
{
    struct unit_bytes want = htslib_rewrite(record, size);
    assert_true(want.n > 0);
    uint8_t *ours = exact_copy(record, size);
    struct bam_verdict v = bam_record_check(ours, size, N_REF);
    assert_int_equal(v.fault, BAM_OK);
    if (v.needs_fix)
        assert_int_equal(bam_record_fix((struct bam_record *)ours), 0);
    assert_true(bam_record_size((struct bam_record *)ours) <= size);
    assert_int_equal(bam_record_size((struct bam_record *)ours), want.n);
    assert_memory_equal(ours, want.data, want.n);
    assert_int_equal(bam_record_check(ours, want.n, N_REF).fault, BAM_OK);
    free(ours);
    unit_free(&want);
}

#endif
