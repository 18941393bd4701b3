/* SPDX-License-Identifier: MIT */
/* One foreign record: the check, all operations on records that pass it, normalising, and other ids and tags. */
#include <htslib/hts_log.h>
#include <htslib/sam.h>
#include "hts/bam1_bytes.h"
#include "base/byte_buffer.h"
#include "bam/long_pos.h"
#include "bam/record_remap.h"
#include "bam/tag_check.h"
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
    long_pos_get(r);
    const uint8_t *nm = bam_record_aux_find(bam_record_aux(r), end, "NM", &bad);
    MUST(!nm || (nm > begin && nm < end));
}

/* A normalised record is not longer and passes the check. htslib's form of it has the same bytes, unless it has our tag
 * of long positions. */
static void normalise(uint8_t *record, size_t size, int32_t n_ref)
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
    if (!long_pos_tag(r))
        MUST(again.n == bam_record_size(r) && memcmp(again.p, record, again.n) == 0);
    free(again.p);
    bam_destroy1(b);
}

/* A record is still valid with other reference ids and tags, and the bytes before the tags are the same. No tag is
 * found after bytes that are not tags, not even CG. */
static void remap(const struct bam_record *r, int32_t n_ref, bool grouped)
{
    static const int32_t ids[] = {7, 6, 5, 4, 3, 2, 1, 0};
    enum { N_REF = sizeof ids / sizeof *ids };
    struct record_remap how = {.ref_ids = ids, .drops_unknown = true};
    struct remap_unknown unknown = {.last = {0, 0}};
    struct byte_buffer to = {0};
    MUST(n_ref <= N_REF && tag_values_add(&how.groups, "g", "group") == 0);
    MUST(tag_values_add(&how.programs, "p", "q") == 0);
    MUST(!grouped || (how.group = strdup("file")));
    int status = record_remap_append(&how, &to, r, &unknown);
    MUST(status == -3 || status == 0 || status == 1 || (grouped && status == 2));
    if (status >= 0) {
        const uint8_t *p = (const uint8_t *)r;
        size_t n = (size_t)(bam_record_aux(r) - p) - BAM_FIXED;
        enum bam_fault fault = bam_record_check(to.p, to.n, N_REF).fault;
        MUST(bam_record_size((struct bam_record *)to.p) == to.n && (!fault || fault == BAM_BAD_CG));
        MUST(to.n >= BAM_FIXED + n && memcmp(to.p + BAM_FIXED, p + BAM_FIXED, n) == 0);
    }
    free(to.p);
    free(unknown.list.p);
    record_remap_free(&how);
}

/* Tags pass the check for BAM exactly if htslib can make a SAM line from the record, as `samtools view` does. */
static void view(const struct bam_record *r, int32_t n_ref)
{
    static sam_hdr_t *header;
    static const char lines[] = "@SQ\tSN:a\tLN:9\n@SQ\tSN:b\tLN:9\n@SQ\tSN:c\tLN:9\n@SQ\tSN:d\tLN:9\n"
                                "@SQ\tSN:e\tLN:9\n@SQ\tSN:f\tLN:9\n@SQ\tSN:g\tLN:9\n";
    if (!header)
        header = sam_hdr_parse(sizeof lines - 1, lines);
    bam1_t *b = bam_init1();
    kstring_t line = {0, 0, NULL};
    MUST(header && n_ref <= sam_hdr_nref(header) && b && bam1_from_record(b, r) == 0);
    const uint8_t *tags = bam_get_aux(b), *end = b->data + b->l_data;
    hts_verbose = HTS_LOG_OFF;
    bool is_text = sam_format1(header, b, &line) >= 0;
    MUST(is_text == tag_check_bam(tags, end));
    MUST(is_text || !tag_check_sam(tags, end));
    free(line.s);
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
        view((struct bam_record *)whole, n_ref);
        remap((struct bam_record *)whole, n_ref, data[0] & 8);
        normalise(whole, size, n_ref);
        free(whole);
    }
    free(record);
    return 0;
}
