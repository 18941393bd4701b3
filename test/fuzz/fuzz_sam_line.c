/* SPDX-License-Identifier: MIT */
/* A foreign SAM line: it gives a record that passes the check, or a refusal that leaves the buffer unchanged. If the
 * htslib is that of samtools 1.24, its record or refusal is the same. */
#include <string.h>
#include "hts/bam1_bytes.h"
#include "bam/bam_record.h"
#include "bam/ref_names.h"
#include "bam/sam_line.h"
#include "base/byte_buffer.h"
#include "fuzz.h"

/* An empty last element of B:f before a tab: samtools reads the next field as its number. We refuse that. */
static bool reads_into_next_field(const char *line, size_t n)
{
    const char *tag = memmem(line, n, "B:f,", 4);
    return tag && (memmem(tag, n - (size_t)(tag - line), ",\t", 2) || memmem(tag, n - (size_t)(tag - line), " \t", 2)
                   || strpbrk(tag, "\v\f\r"));
}

/* Treats it like a record that is read from a file: normalises it if necessary. */
static void normalise(struct byte_buffer *bytes)
{
    struct bam_verdict v = bam_record_check(bytes->p, bytes->n, FUZZ_REFS);
    MUST(v.fault == BAM_OK || v.fault == BAM_BAD_CIGAR);
    if (v.needs_fix)
        MUST(bam_record_fix((struct bam_record *)bytes->p) == 0);
    bytes->n = bam_record_size((struct bam_record *)bytes->p);
}

static void compare(struct byte_buffer *ours, bool taken, char *line, size_t n, sam_hdr_t *sam)
{
    struct byte_buffer theirs = {NULL, 0, 0};
    kstring_t text = {n, n + 1, line};
    bam1_t *b = bam_init1();
    MUST(b);
    bool takes = sam_parse1(&text, sam, b) >= 0 && bam1_bytes_append(&theirs, b) >= 0
              && bam_record_check(theirs.p, theirs.n, FUZZ_REFS).fault != BAM_BAD_CG;
    MUST(takes == taken);
    if (taken) {
        normalise(&theirs);
        MUST(ours->n == theirs.n && memcmp(ours->p, theirs.p, ours->n) == 0);
    }
    bam_destroy1(b);
    free(theirs.p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sam_hdr_t *sam = fuzz_header();
    MUST(sam_hdr_count_lines(sam, "SQ") == FUZZ_REFS);
    struct ref_names *names = ref_names_new(sam);
    struct byte_buffer ours = {NULL, 0, 0};
    char *line = malloc(size + 1);
    MUST(names && line && byte_buffer_reserve(&ours, 1) == 0);
    if (size)
        memcpy(line, data, size);
    line[size] = '\0';
    bool taken = !sam_line_append(&ours, names, line, size).fault;
    MUST(taken ? ours.n >= BAM_MIN_RECORD : ours.n == 0);
    if (taken)
        normalise(&ours);
    if (strcmp(hts_version(), "1.24") == 0 && !reads_into_next_field(line, size))
        compare(&ours, taken, line, size, sam);
    ref_names_free(names);
    sam_hdr_destroy(sam);
    free(ours.p);
    free(line);
    return 0;
}
