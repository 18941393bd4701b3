/* SPDX-License-Identifier: MIT */
/* bam_record_check() at every bound, and bam_record_aux_find(). */
#include "unit.h"
#include "unit_htslib.h"

/* ---- records for the tests ---- */

/* 10 bases against 10M, one tag; valid and with the right bin. */
static struct unit_bytes good_record(void)
{
    static const uint32_t cigar[] = {UNIT_OP(10, UNIT_M)};
    struct unit_record r = {.ref_id = 1, .pos = 100, .bin = 4681, .name = "read", .cigar = cigar,
                            .n_cigar = 1, .seq_len = 10, .aux = "NMC\3", .n_aux = 4};
    struct unit_bytes b = {NULL, 0, 0};
    unit_append_record(&b, &r);
    return b;
}

static struct bam_record *view(struct unit_bytes *b)
{
    return (struct bam_record *)b->data;
}

static enum bam_fault fault_of(const struct unit_bytes *b)
{
    return bam_record_check(b->data, b->n, N_REF).fault;
}

/* The record with another 32-bit field: its fault. */
static enum bam_fault fault_with(size_t offset, uint32_t value)
{
    struct unit_bytes b = good_record();
    store_le32(b.data + offset, value);
    enum bam_fault fault = fault_of(&b);
    unit_free(&b);
    return fault;
}

#define FAULT_WITH(field, value) fault_with(offsetof(struct bam_record, field), (uint32_t)(value))

/* ---- check: every fault, both sides of each bound ---- */

static void test_sound_record_is_taken(void **state)
{
    (void)state;
    struct unit_bytes b = good_record();
    struct bam_verdict v = bam_record_check(b.data, b.n, N_REF);
    assert_int_equal(v.fault, BAM_OK);
    assert_int_equal(v.needs_fix, 0);
    check_like_htslib(b.data, b.n);
    unit_free(&b);
}

static void test_smallest_record_is_taken(void **state)
{
    (void)state;
    struct unit_bytes b = {NULL, 0, 0};
    assert_int_equal(unit_append_smallest(&b, -1), BAM_MIN_RECORD);
    assert_int_equal(fault_of(&b), BAM_OK);
    check_like_htslib(b.data, b.n);
    unit_free(&b);
}

static void test_cut_record_is_not_read_past_its_end(void **state)
{
    (void)state;
    struct unit_bytes b = good_record();
    for (size_t avail = 0; avail < b.n; avail++) {
        uint8_t *cut = exact_copy(b.data, avail);
        assert_int_equal(bam_record_check(cut, avail, N_REF).fault, BAM_CUT);
        free(cut);
    }
    unit_append(&b, "more", 4);
    assert_int_equal(fault_of(&b), BAM_OK);
    unit_free(&b);
}

static void test_block_size_out_of_bounds(void **state)
{
    (void)state;
    assert_int_equal(FAULT_WITH(block_size, 0), BAM_BAD_SIZE);
    assert_int_equal(FAULT_WITH(block_size, 1), BAM_BAD_SIZE);
    assert_int_equal(FAULT_WITH(block_size, BAM_MIN_RECORD - 4 - 1), BAM_BAD_SIZE);
    assert_int_equal(FAULT_WITH(block_size, BAM_MIN_RECORD - 4), BAM_BAD_LENGTHS);
    assert_int_equal(FAULT_WITH(block_size, INT32_MAX), BAM_CUT);
    assert_int_equal(FAULT_WITH(block_size, 0x80000000u), BAM_BAD_SIZE);
    assert_int_equal(FAULT_WITH(block_size, UINT32_MAX), BAM_BAD_SIZE);
}

static void test_reference_id_out_of_bounds(void **state)
{
    (void)state;
    assert_int_equal(FAULT_WITH(ref_id, INT32_MIN), BAM_BAD_REF);
    assert_int_equal(FAULT_WITH(ref_id, -2), BAM_BAD_REF);
    assert_int_equal(FAULT_WITH(ref_id, -1), BAM_OK);
    assert_int_equal(FAULT_WITH(ref_id, 0), BAM_OK);
    assert_int_equal(FAULT_WITH(ref_id, N_REF - 1), BAM_OK);
    assert_int_equal(FAULT_WITH(ref_id, N_REF), BAM_BAD_REF);
    assert_int_equal(FAULT_WITH(ref_id, INT32_MAX), BAM_BAD_REF);
}

static void test_mate_reference_id_out_of_bounds(void **state)
{
    (void)state;
    assert_int_equal(FAULT_WITH(next_ref_id, INT32_MIN), BAM_BAD_NEXT_REF);
    assert_int_equal(FAULT_WITH(next_ref_id, -2), BAM_BAD_NEXT_REF);
    assert_int_equal(FAULT_WITH(next_ref_id, 0), BAM_OK);
    assert_int_equal(FAULT_WITH(next_ref_id, N_REF - 1), BAM_OK);
    assert_int_equal(FAULT_WITH(next_ref_id, N_REF), BAM_BAD_NEXT_REF);
    assert_int_equal(FAULT_WITH(next_ref_id, INT32_MAX), BAM_BAD_NEXT_REF);
}

static void test_header_without_references_has_no_reference_zero(void **state)
{
    (void)state;
    struct unit_bytes b = good_record();
    assert_int_equal(bam_record_check(b.data, b.n, 0).fault, BAM_BAD_REF);
    store_le32(view(&b)->ref_id, UINT32_MAX);
    assert_int_equal(bam_record_check(b.data, b.n, 0).fault, BAM_OK);
    store_le32(view(&b)->next_ref_id, 0);
    assert_int_equal(bam_record_check(b.data, b.n, 0).fault, BAM_BAD_NEXT_REF);
    unit_free(&b);
}

static void test_sequence_length_beyond_the_record(void **state)
{
    (void)state;
    assert_int_equal(FAULT_WITH(seq_len, 0x80000000u), BAM_BAD_LENGTHS);
    assert_int_equal(FAULT_WITH(seq_len, UINT32_MAX), BAM_BAD_LENGTHS);
    assert_int_equal(FAULT_WITH(seq_len, INT32_MAX), BAM_BAD_LENGTHS);
    /* Four bytes of tags: two more bases need one byte of SEQ and two of QUAL. */
    assert_int_equal(FAULT_WITH(seq_len, 12), BAM_BAD_CIGAR);
    assert_int_equal(FAULT_WITH(seq_len, 13), BAM_BAD_LENGTHS);
}

static void test_each_length_may_fill_the_record_and_no_more(void **state)
{
    (void)state;
    static const uint32_t cigar[] = {UNIT_OP(5, UNIT_S)};
    for (uint32_t seq = 0; seq < 8; seq++)
        for (uint32_t n_cigar = 0; n_cigar < 2; n_cigar++) {
            struct unit_record r = {.ref_id = 1, .flag = 4, .name = "x", .cigar = cigar,
                                    .n_cigar = n_cigar, .seq_len = seq, .bin = 4681};
            struct unit_bytes b = {NULL, 0, 0};
            unit_append_record(&b, &r);
            assert_int_equal(fault_of(&b), BAM_OK);
            view(&b)->name_len++;
            assert_int_equal(fault_of(&b), BAM_BAD_LENGTHS);
            view(&b)->name_len--;
            store_le16(view(&b)->n_cigar, (uint16_t)(n_cigar + 1));
            assert_int_equal(fault_of(&b), BAM_BAD_LENGTHS);
            store_le16(view(&b)->n_cigar, (uint16_t)n_cigar);
            store_le32(view(&b)->seq_len, seq + 1);
            assert_int_equal(fault_of(&b), BAM_BAD_LENGTHS);
            unit_free(&b);
        }
}

static void test_name_of_no_bytes(void **state)
{
    (void)state;
    struct unit_bytes b = good_record();
    view(&b)->name_len = 0;
    assert_int_equal(fault_of(&b), BAM_BAD_LENGTHS);
    unit_free(&b);
}

static void test_name_without_nul(void **state)
{
    (void)state;
    struct unit_bytes b = good_record();
    view(&b)->data[4] = 'x';
    assert_int_equal(fault_of(&b), BAM_BAD_NAME);
    unit_free(&b);
}

static void test_longest_name_is_taken(void **state)
{
    (void)state;
    char name[255];
    memset(name, 'n', sizeof name);
    name[254] = 0;
    struct unit_record r = {.ref_id = -1, .pos = -1, .flag = 4, .name = name};
    struct unit_bytes b = {NULL, 0, 0};
    unit_append_record(&b, &r);
    assert_int_equal(fault_of(&b), BAM_OK);
    assert_string_equal(bam_record_name(view(&b)), name);
    check_like_htslib(b.data, b.n);
    unit_free(&b);
}

/* Fault of a record with seq_len bases and one operation. */
static enum bam_fault fault_of_op(uint32_t op, uint32_t seq_len, uint16_t flag)
{
    struct unit_record r = {.ref_id = 1, .pos = 100, .flag = flag, .name = "x", .cigar = &op,
                            .n_cigar = 1, .seq_len = seq_len};
    struct unit_bytes b = {NULL, 0, 0};
    unit_append_record(&b, &r);
    enum bam_fault fault = fault_of(&b);
    bam1_t *theirs = htslib_read(b.data, b.n);
    assert_int_equal(fault == BAM_OK, theirs != NULL);
    bam_destroy1(theirs);
    unit_free(&b);
    return fault;
}

static void test_cigar_that_does_not_fit_the_sequence(void **state)
{
    (void)state;
    for (uint32_t op = 0; op < 16; op++) {
        int query = op == UNIT_M || op == UNIT_I || op == UNIT_S || op == UNIT_EQ || op == UNIT_X;
        assert_int_equal(fault_of_op(UNIT_OP(10, op), 10, 0), query ? BAM_OK : BAM_BAD_CIGAR);
        assert_int_equal(fault_of_op(UNIT_OP(9, op), 10, 0), BAM_BAD_CIGAR);
        assert_int_equal(fault_of_op(UNIT_OP(11, op), 10, 0), BAM_BAD_CIGAR);
        assert_int_equal(fault_of_op(UNIT_OP(9, op), 10, 4), BAM_OK); /* unmapped: not checked */
        assert_int_equal(fault_of_op(UNIT_OP(9, op), 0, 0), BAM_OK);  /* no SEQ: no comparison */
    }
}

static void test_cigar_lengths_add_up_beyond_32_bits(void **state)
{
    (void)state;
    uint32_t cigar[17];
    for (int i = 0; i < 16; i++)
        cigar[i] = UNIT_OP((1u << 28) - 1, UNIT_M);
    cigar[16] = UNIT_OP(16 + 10, UNIT_M);                    /* modulo 2^32: 10 */
    struct unit_record r
        = {.ref_id = 1, .pos = 0, .name = "x", .cigar = cigar, .n_cigar = 17, .seq_len = 10};
    struct unit_bytes b = {NULL, 0, 0};
    unit_append_record(&b, &r);
    assert_int_equal(fault_of(&b), BAM_BAD_CIGAR);
    unit_free(&b);
}

static void test_every_fault_has_its_words(void **state)
{
    (void)state;
    for (int i = BAM_OK; i <= BAM_BAD_CB; i++) {
        const char *text = bam_fault_text((enum bam_fault)i);
        assert_non_null(text);
        assert_string_not_equal(text, "unknown fault");
        for (int j = BAM_OK; j < i; j++)
            assert_string_not_equal(text, bam_fault_text((enum bam_fault)j));
    }
}

/* ---- tags ---- */

static const uint8_t *find(const void *aux, size_t n, const char *tag, int *bad)
{
    uint8_t *copy = exact_copy(aux, n);
    const uint8_t *at = bam_record_aux_find(copy, copy + n, tag, bad);
    const uint8_t *in = at ? (const uint8_t *)aux + (at - copy) : NULL;
    free(copy);
    return in;
}

#define FIND(aux, tag, bad) find(aux, sizeof(aux) - 1, tag, bad)

static void test_tag_after_tags_of_every_type(void **state)
{
    (void)state;
    static const char aux[]
        = "X0AcX1c1X2C1X3s12X4S12X5i1234X6I1234X7f1234X8d12345678X9Zabc\0Y0H1A\0"
          "Y1Bc\1\0\0\0aY2BS\2\0\0\0abcdY3Bf\0\0\0\0";
    static const char tags[] = "X0X1X2X3X4X5X6X7X8X9Y0Y1Y2Y3", types[] = "AcCsSiIfdZHBBB";
    for (size_t i = 0; i < sizeof types - 1; i++) {
        int bad = -1;
        const uint8_t *at = FIND(aux, tags + 2 * i, &bad);
        assert_non_null(at);
        assert_int_equal(*at, types[i]);
        assert_memory_equal(at - 2, tags + 2 * i, 2);
        assert_int_equal(bad, 0);
    }
}

static void test_absent_tag_in_sound_tags_is_no_fault(void **state)
{
    (void)state;
    int bad = -1;
    assert_null(FIND("X0AcX9Zab\0", "CG", &bad));
    assert_int_equal(bad, 0);
    bad = -1;
    assert_null(FIND("", "CG", &bad));
    assert_int_equal(bad, 0);
    bad = -1;
    assert_null(FIND("X0ZCGAx\0", "CG", &bad));              /* inside another value */
    assert_int_equal(bad, 0);
}

static void test_broken_tag_is_told(void **state)
{
    (void)state;
    static const struct { const char *aux; size_t n; } broken[] = {
        {"X0A", 3},           {"X0s1", 4},           {"X0i123", 6},
        {"X0d1234567", 10},   {"X0?1", 4},           {"X0B", 3},
        {"X0Bc\1\0\0", 7},    {"X0Bc\2\0\0\0a", 9},  {"X0Bi\1\0\0\0abc", 11},
        {"X0BZ\1\0\0\0a", 9}, {"X0Bi\0\0\0\100", 8}, {"X0Bi\377\377\377\377", 8},
        {"X0\0", 3},
    };
    for (size_t i = 0; i < N_OF(broken); i++) {
        int bad = 0;
        assert_null(find(broken[i].aux, broken[i].n, "CG", &bad));
        assert_int_not_equal(bad, 0);
        bad = 0;
        assert_null(find(broken[i].aux, broken[i].n, "X0", &bad));    /* not the broken one either */
        assert_int_not_equal(bad, 0);
    }
}

static void test_sound_tag_before_a_broken_one_is_found(void **state)
{
    (void)state;
    int bad = -1;
    const char aux[] = "CGAcX0?";
    assert_ptr_equal(FIND(aux, "CG", &bad), aux + 2);
    assert_int_equal(bad, 0);
}

static void test_tags_begin_after_the_qualities(void **state)
{
    (void)state;
    static const uint32_t cigar[] = {UNIT_OP(1, UNIT_H), UNIT_OP(3, UNIT_D)};
    for (uint32_t seq = 0; seq < 6; seq++)
        for (uint32_t n = 0; n < 3; n++) {
            struct unit_record r = {.ref_id = 1, .flag = 4, .name = "abc", .cigar = cigar,
                                    .n_cigar = n, .seq_len = seq, .aux = "NMC\1", .n_aux = 4};
            struct unit_bytes b = {NULL, 0, 0};
            unit_append_record(&b, &r);
            assert_ptr_equal(bam_record_aux(view(&b)), b.data + b.n - 4);
            unit_free(&b);
        }
}

/* Records of each length, with qualities on both sides of 15 and of 127, and with other bytes beside them. */
static void test_score_counts_a_quality_wrongly(void **state)
{
    (void)state;
    static const uint8_t few[] = {14, 15, 255, 0, 128, 127, 30, 16, 2};
    for (uint32_t seq = 0; seq < 300; seq++) {
        struct unit_record r = {.flag = 4, .name = "abc", .seq_len = seq, .aux = "NMC\77", .n_aux = 4};
        struct unit_bytes b = {NULL, 0, 0};
        unit_append_record(&b, &r);
        uint64_t sum = 0;
        for (uint32_t i = 0; i < seq; i++) {
            uint8_t quality = few[(i * i + seq) % N_OF(few)];
            b.data[b.n - 4 - seq + i] = quality;
            sum += quality >= 15 ? quality : 0;
        }
        assert_int_equal(bam_record_score(view(&b)), sum);
        unit_free(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sound_record_is_taken),
        cmocka_unit_test(test_smallest_record_is_taken),
        cmocka_unit_test(test_cut_record_is_not_read_past_its_end),
        cmocka_unit_test(test_block_size_out_of_bounds),
        cmocka_unit_test(test_reference_id_out_of_bounds),
        cmocka_unit_test(test_mate_reference_id_out_of_bounds),
        cmocka_unit_test(test_header_without_references_has_no_reference_zero),
        cmocka_unit_test(test_sequence_length_beyond_the_record),
        cmocka_unit_test(test_each_length_may_fill_the_record_and_no_more),
        cmocka_unit_test(test_name_of_no_bytes),
        cmocka_unit_test(test_name_without_nul),
        cmocka_unit_test(test_longest_name_is_taken),
        cmocka_unit_test(test_cigar_that_does_not_fit_the_sequence),
        cmocka_unit_test(test_cigar_lengths_add_up_beyond_32_bits),
        cmocka_unit_test(test_every_fault_has_its_words),
        cmocka_unit_test(test_tag_after_tags_of_every_type),
        cmocka_unit_test(test_absent_tag_in_sound_tags_is_no_fault),
        cmocka_unit_test(test_broken_tag_is_told),
        cmocka_unit_test(test_sound_tag_before_a_broken_one_is_found),
        cmocka_unit_test(test_tags_begin_after_the_qualities),
        cmocka_unit_test(test_score_counts_a_quality_wrongly),
    };
    hts_set_log_level(HTS_LOG_OFF);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
