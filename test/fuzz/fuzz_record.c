/* SPDX-License-Identifier: MIT */
/* One record from outside: the check, what may be done with those that pass, and mending. */
#include <htslib/sam.h>
#include "bam/bam1_bytes.h"
#include "base/byte_buffer.h"
#include "bam/far_pos.h"
#include "fuzz.h"

static void look(const struct bam_record *r)
{
    const uint8_t *begin = (const uint8_t *)r, *end = begin + bam_record_size(r), *tag;
    uint32_t n;
    int bad;
    MUST(bam_record_aux(r) <= end);
    const uint8_t *cigar = bam_record_cigar(r, &n, &tag);
    MUST(cigar >= begin && (uint64_t)n * 4 <= (uint64_t)(end - cigar));
    MUST(bam_record_ref_span(r) > 0);
    far_pos_get(r);
    const uint8_t *nm = bam_record_aux_find(bam_record_aux(r), end, "NM", &bad);
    MUST(!nm || (nm > begin && nm < end));
}

/* Mended it is shorter or as long, passes, needs no more, and htslib's form of it gives the same bytes. */
static void mend(uint8_t *record, size_t size, int32_t n_ref)
{
    struct bam_record *r = (struct bam_record *)record;
    struct byte_buffer again = {0};
    bam1_t *b = bam_init1();
    MUST(bam_record_fix(r) == 0);
    MUST(bam_record_size(r) <= size);
    struct bam_verdict verdict = bam_record_check(record, bam_record_size(r), n_ref);
    MUST(!verdict.fault);
    look(r);
    MUST(b && bam1_from_record(b, r) == 0 && bam1_bytes_append(&again, b) >= 0);
    if (!far_pos_tag(r))
        MUST(again.n == bam_record_size(r) && memcmp(again.p, record, again.n) == 0);
    free(again.p);
    bam_destroy1(b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    int32_t n_ref = data[0] & 7;
    uint8_t *record = exact_copy(data + 1, --size);
    struct bam_verdict verdict = bam_record_check(record, size, n_ref);
    MUST(*bam_fault_text(verdict.fault));
    if (!verdict.fault) {
        MUST(bam_record_size((struct bam_record *)record) <= size);
        uint8_t *whole = exact_copy(record, bam_record_size((struct bam_record *)record));
        look((struct bam_record *)whole);
        mend(whole, size, n_ref);
        free(whole);
    }
    free(record);
    return 0;
}
