/* SPDX-License-Identifier: MIT */
/* Foreign tags of base modifications, of a primary record and of one that was cut: the result is a record, its other
 * tags are unchanged, and correcting it again changes nothing.
 *
 *   role | primary record | the other one, as fuzz_record() has them */
#include "fixmate/base_mods.h"
#include "fuzz.h"

static void check(const struct byte_buffer *made, const struct bam_record *read)
{
    const struct bam_record *r = (const struct bam_record *)made->p;
    MUST(made->n == bam_record_size(r));
    enum bam_fault fault = bam_record_check(made->p, made->n, FUZZ_REFS).fault;
    MUST(!fault || fault == BAM_BAD_CG);
    MUST(base_mods_kept_others(read, r));
}

/* Returns whether the record is a supplementary one. */
static void set_other(uint8_t *p, bool is_other)
{
    struct bam_record *r = (struct bam_record *)p;
    unsigned flag = bam_record_flag(r) & ~(unsigned)(BAM_FSECONDARY | BAM_FSUPPLEMENTARY);
    store_le16(r->flag, (uint16_t)(is_other ? flag | BAM_FSUPPLEMENTARY : flag));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed f = {data, size};
    uint8_t bytes[FUZZ_RECORD_MAX];
    uint8_t role = feed_byte(&f);
    size_t n = fuzz_record(&f, bytes);
    uint8_t *primary = exact_copy(bytes, n);
    size_t n_read = n ? fuzz_record(&f, bytes) : 0;
    uint8_t *read = exact_copy(bytes, n_read);
    if (n_read) {
        const struct bam_record *of = role & 2 ? (const struct bam_record *)primary : NULL;
        set_other(read, of || role & 1);
        struct byte_buffer made = {exact_copy(read, n_read), n_read, n_read};
        enum base_mods result = base_mods_fix(&made, of);
        MUST(result != BASE_MODS_NO_MEMORY);
        check(&made, (struct bam_record *)read);
        struct byte_buffer again = {exact_copy(made.p, made.n), made.n, made.n};
        set_other(again.p, true);
        MUST(base_mods_fix(&again, NULL) == BASE_MODS_NORMALISED);
        set_other(again.p, of || role & 1);
        MUST(result == BASE_MODS_BROKEN || (again.n == made.n && memcmp(again.p, made.p, made.n) == 0));
        free(again.p);
        free(made.p);
    }
    free(read);
    free(primary);
    return 0;
}
