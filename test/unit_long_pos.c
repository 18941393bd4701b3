/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include <stdatomic.h>
#include "hts/bam1_bytes.h"
#include "base/byte_buffer.h"
#include "bam/long_pos.h"
#include "order/coordinate_key.h"
#include "order/minhash.h"
#include "order/sort_key.h"

#define FAREST (((int64_t)1 << 62) - 1)

static const int64_t places[] = {
    -1, 0, 1, 1000, INT32_MAX - 1, INT32_MAX, (int64_t)INT32_MAX + 1, (int64_t)INT32_MAX + 2, UINT32_MAX - 1,
    UINT32_MAX, (int64_t)UINT32_MAX + 1, (int64_t)UINT32_MAX + 2, (int64_t)1 << 33, FAREST - 1, FAREST,
};
static const int64_t lengths[] = {
    0, 5, -5, INT32_MAX, (int64_t)INT32_MAX + 1, INT32_MIN, (int64_t)INT32_MIN - 1, FAREST, -FAREST,
};

static const char header[] = "@SQ\tSN:a\tLN:2147483647\n@SQ\tSN:b\tLN:8589934592\n@SQ\tSN:c\tLN:2147483648\n";
enum { N_REF = 3 };

/* A mapped read of n_cigar operations, and a tag. */
static bam1_t *read_at(int64_t pos, int64_t next_pos, int64_t tlen, uint16_t flag, uint32_t n_cigar)
{
    uint32_t *cigar = must_alloc(n_cigar * sizeof *cigar);
    char *seq = must_alloc(n_cigar + 1);
    for (uint32_t i = 0; i < n_cigar; i++) {
        cigar[i] = UNIT_OP(1, i % 2 ? UNIT_I : UNIT_M);
        seq[i] = "ACGT"[i % 4];
    }
    bam1_t *b = bam_init1();
    MUST(b);
    int set = bam_set1(b, 4, "name", flag, 1, pos, 9, n_cigar, cigar, 2, next_pos, tlen, n_cigar, seq, NULL, 64);
    MUST(set >= 0 && bam_aux_append(b, "XX", 'Z', 4, (const uint8_t *)"abc") == 0);
    free(cigar);
    free(seq);
    return b;
}

static struct bam_record *record_of(struct byte_buffer *bytes, bam1_t *b)
{
    bytes->n = 0;
    assert_true(bam1_bytes_append(bytes, b) >= 0);
    bam_destroy1(b);
    return (struct bam_record *)bytes->p;
}

/* Accepts the record as an input does: it is checked, and normalised if necessary. */
static void accept(struct bam_record *r)
{
    size_t size = bam_record_size(r);
    struct bam_verdict v = bam_record_check((uint8_t *)r, size, N_REF);
    assert_int_equal(v.fault, BAM_OK);
    if (v.needs_fix)
        assert_int_equal(bam_record_fix(r), 0);
    assert_int_equal(bam_record_size(r), size);
    assert_int_equal(bam_record_check((uint8_t *)r, size, N_REF).fault, BAM_OK);
}

static void check_way_and_back(int64_t pos, int64_t next_pos, int64_t tlen, uint32_t n_cigar)
{
    struct byte_buffer bytes = {.p = NULL};
    bam1_t *b = read_at(pos, next_pos, tlen, 0, n_cigar), *back = bam_init1();
    MUST(back);
    bool far = pos > INT32_MAX || next_pos > INT32_MAX || tlen > INT32_MAX || tlen < INT32_MIN;
    assert_int_equal(bam1_bytes_append(&bytes, b), far);
    struct bam_record *r = (struct bam_record *)bytes.p;
    accept(r);
    assert_int_equal(long_pos_tag(r) != NULL, far);
    assert_int_equal(long_pos(r), pos);
    assert_int_equal(far_next_pos(r), next_pos);
    assert_int_equal(long_pos_get(r).tlen, tlen);
    assert_int_equal(bam1_from_record(back, r), 0);
    assert_int_equal(back->core.pos, pos);
    assert_int_equal(back->core.mpos, next_pos);
    assert_int_equal(back->core.isize, tlen);
    assert_int_equal(back->core.n_cigar, n_cigar);
    assert_int_equal(back->core.tid, 1);
    assert_int_equal(back->core.mtid, 2);
    assert_int_equal(back->l_data, b->l_data);
    assert_memory_equal(back->data, b->data, (size_t)b->l_data);
    bam_destroy1(b);
    bam_destroy1(back);
    free(bytes.p);
}

static void test_far_positions_get_lost_on_the_way(void **state)
{
    (void)state;
    for (size_t i = 0; i < N_OF(places); i++)
        for (size_t j = 0; j < N_OF(places); j++)
            for (size_t k = 0; k < N_OF(lengths); k++)
                check_way_and_back(places[i], places[j], lengths[k], 5);
}

static void test_a_long_cigar_gets_lost_at_a_far_position(void **state)
{
    (void)state;
    for (size_t i = 1; i < N_OF(places); i++)
        check_way_and_back(places[i], places[i], 0, 70001);
}

static void test_cigar_that_fits_gets_a_tag(void **state)
{
    (void)state;
    struct byte_buffer bytes = {.p = NULL};
    for (uint32_t n = BAM_INLINE_OPS_MAX; n <= BAM_INLINE_OPS_MAX + 1; n++) {
        struct bam_record *r = record_of(&bytes, read_at(1, 2, 3, 0, n));
        assert_int_equal(load_le16(r->n_cigar), n > BAM_INLINE_OPS_MAX ? 2 : n);
    }
    free(bytes.p);
}

static void test_positions_far_below_zero_are_taken(void **state)
{
    (void)state;
    struct byte_buffer bytes = {.p = NULL};
    bam1_t *b = read_at((int64_t)INT32_MIN - 1, 0, 0, 0, 5);
    assert_int_equal(bam1_bytes_append(&bytes, b), -1);
    b->core.pos = 0;
    b->core.mpos = (int64_t)INT32_MIN - 1;
    assert_int_equal(bam1_bytes_append(&bytes, b), -1);
    bam_destroy1(b);
    free(bytes.p);
}

/* SAM cannot hold such positions, so they come only from a file that has the tag already. */
static void test_positions_far_below_zero_are_believed_of_a_tag(void **state)
{
    (void)state;
    struct byte_buffer bytes = {.p = NULL};
    struct bam_record *r = record_of(&bytes, read_at(1, 2, -FAREST, 0, 4));
    uint8_t *tag = (uint8_t *)(uintptr_t)long_pos_tag(r);
    store_le32(r->pos, (uint32_t)INT32_MIN);
    store_le32(r->next_pos, (uint32_t)INT32_MIN);
    store_le64(tag + 8, (uint64_t)((int64_t)INT32_MIN - 1));
    store_le64(tag + 16, (uint64_t)((int64_t)INT32_MIN - 1));
    struct long_pos far = long_pos_get(r);
    assert_true(far.pos == INT32_MIN && far.next_pos == INT32_MIN && far.tlen == -FAREST);
    free(bytes.p);
}

/* ---- order ---- */

static struct sort_rule *rule_for(enum sort_by by, enum sort_by then)
{
    struct sort_order order = {.by = by, .then = then, .tag = {'X', 'X'}};
    sam_hdr_t *sam = sam_hdr_parse(sizeof header - 1, header);
    MUST(sam);
    struct sort_rule *rule = sort_rule_new(&order, sam);
    MUST(rule);
    sam_hdr_destroy(sam);
    return rule;
}

static int sign(int v)
{
    return (v > 0) - (v < 0);
}

/* The reads at places[], forward and reverse, in order. */
enum { N_READS = 2 * N_OF(places) };

/* m: makes the keys; NULL: the rule does. */
static void check_order(const struct sort_rule *rule, const struct minhash *m)
{
    struct byte_buffer bytes[N_READS] = {{.p = NULL}};
    const struct bam_record *r[N_READS];
    uint64_t key[N_READS];
    for (size_t i = 0; i < N_READS; i++) {
        r[i] = record_of(&bytes[i], read_at(places[i / 2], -1, 0, i % 2 ? FLAG_REVERSE : 0, 4));
        assert_int_equal(sort_key_make(rule, r[i], &key[i]), BAM_OK);
        if (m)
            key[i] = minhash_key(m, r[i]);
    }
    for (size_t i = 0; i < N_READS; i++)
        for (size_t j = 0; j < N_READS; j++) {
            int order = (i > j) - (i < j);
            assert_int_equal(sign(sort_key_compare(rule, r[i], r[j])), order);
            assert_int_equal(sign(coordinate_key_compare(r[i], r[j])), order);
            assert_true(order >= 0 || key[i] <= key[j]);
        }
    for (size_t i = 0; i < N_READS; i++)
        free(bytes[i].p);
}

static void test_far_positions_are_out_of_order(void **state)
{
    (void)state;
    static const enum sort_by by[] = {SORT_COORDINATE, SORT_TAG, SORT_MINHASH};
    struct sort_order order = {.by = SORT_MINHASH, .kmer = 20};
    struct minhash *m = minhash_new(&order);
    MUST(m);
    for (size_t i = 0; i < N_OF(by); i++) {
        struct sort_rule *rule = rule_for(by[i], SORT_COORDINATE);
        sort_rule_expect_far(rule);
        check_order(rule, by[i] == SORT_MINHASH ? m : NULL);
        sort_rule_free(rule);
    }
    minhash_free(m);
}

static void test_template_order_cuts_positions(void **state)
{
    (void)state;
    struct sort_rule *rule = rule_for(SORT_TEMPLATE, SORT_COORDINATE);
    struct byte_buffer x = {.p = NULL}, y = {.p = NULL};
    for (size_t i = 1; i < N_OF(places); i++) {
        uint64_t key_x, key_y;
        record_of(&x, read_at(places[i - 1], -1, 0, 0, 4));
        record_of(&y, read_at(places[i], -1, 0, 0, 4));
        const struct bam_record *a = (struct bam_record *)x.p, *b = (struct bam_record *)y.p;
        assert_true(sort_key_compare(rule, a, b) < 0 && sort_key_compare(rule, b, a) > 0);
        assert_int_equal(sort_key_make(rule, a, &key_x), BAM_OK);
        assert_int_equal(sort_key_make(rule, b, &key_y), BAM_OK);
        assert_true(key_x <= key_y);
    }
    free(x.p);
    free(y.p);
    sort_rule_free(rule);
}

static void test_keys_decide_though_there_are_far_positions(void **state)
{
    (void)state;
    struct sort_rule *coordinate = rule_for(SORT_COORDINATE, SORT_COORDINATE);
    assert_true(sort_key_decides(coordinate));
    sort_rule_expect_far(coordinate);
    assert_false(sort_key_decides(coordinate));
    sort_rule_free(coordinate);
}

/* A read without reference loses its positions in -M, however large they were. */
static void test_rank_is_taken_for_a_position(void **state)
{
    (void)state;
    struct byte_buffer bytes = {.p = NULL};
    struct bam_record *r = record_of(&bytes, read_at(FAREST, FAREST, -FAREST, 4, 4));
    const struct minhash_rank rank = {.hash = ((uint64_t)1 << MINHASH_HASH_BITS) - 1, .offset = 77};
    minhash_apply(r, &rank);
    assert_true(minhash_kept(r).hash == rank.hash && minhash_kept(r).offset == rank.offset);
    minhash_finish(r);
    struct long_pos none = long_pos_get(r);
    assert_true(none.pos == -1 && none.next_pos == -1 && none.tlen == 0);
    assert_true(long_pos(r) == -1 && far_next_pos(r) == -1);
    free(bytes.p);
}

/* ---- header, format ---- */

static void test_far_references_are_missed(void **state)
{
    (void)state;
    sam_hdr_t *sam = sam_hdr_parse(sizeof header - 1, header);
    MUST(sam);
    assert_string_equal(long_pos_reference(sam, 3, INT32_MAX), "b");
    assert_int_equal(sam_hdr_remove_line_id(sam, "SQ", "SN", "b"), 0);
    assert_string_equal(long_pos_reference(sam, 2, INT32_MAX), "c");
    assert_null(long_pos_reference(sam, 1, INT32_MAX));
    assert_int_equal(sam_hdr_remove_line_id(sam, "SQ", "SN", "c"), 0);
    assert_null(long_pos_reference(sam, 1, INT32_MAX));
    sam_hdr_destroy(sam);
}

static void test_formats_that_cut_are_trusted(void **state)
{
    (void)state;
    htsFormat bam_format = {.format = bam}, cram_format = {.format = cram}, sam_format = {.format = sam};
    assert_false(long_pos_fits(&bam_format));
    assert_false(long_pos_fits(&cram_format));
    assert_true(long_pos_fits(&sam_format));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_far_positions_get_lost_on_the_way),
        cmocka_unit_test(test_a_long_cigar_gets_lost_at_a_far_position),
        cmocka_unit_test(test_cigar_that_fits_gets_a_tag),
        cmocka_unit_test(test_positions_far_below_zero_are_taken),
        cmocka_unit_test(test_positions_far_below_zero_are_believed_of_a_tag),
        cmocka_unit_test(test_far_positions_are_out_of_order),
        cmocka_unit_test(test_template_order_cuts_positions),
        cmocka_unit_test(test_keys_decide_though_there_are_far_positions),
        cmocka_unit_test(test_rank_is_taken_for_a_position),
        cmocka_unit_test(test_far_references_are_missed),
        cmocka_unit_test(test_formats_that_cut_are_trusted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
