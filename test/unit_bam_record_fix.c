/* SPDX-License-Identifier: MIT */
/* bam_record_fix(), and bam_record_check() at large, against htslib. */
#include "unit.h"
#include "unit_htslib.h"

static struct bam_record *view(struct unit_bytes *b)
{
    return (struct bam_record *)b->data;
}

static enum bam_fault fault_of(const struct unit_bytes *b)
{
    return bam_record_check(b->data, b->n, N_REF).fault;
}

/* ---- fix: bin ---- */

static void check_bin(int32_t ref, int32_t pos, uint16_t flag, const uint32_t *cigar, uint32_t n)
{
    struct unit_record r = {.ref_id = ref, .pos = pos, .flag = flag, .bin = 0x1234, .name = "b",
                            .cigar = cigar, .n_cigar = n};
    struct unit_bytes b = {NULL, 0, 0};
    unit_append_record(&b, &r);
    check_like_htslib(b.data, b.n);
    unit_free(&b);
}

static void test_bin_is_the_one_htslib_writes(void **state)
{
    (void)state;
    static const int32_t positions[]
        = {-1,      0,        1,         16383,     16384,         131071,    131072, 1048575,
           8388607, 67108863, 536870911, 536870912, INT32_MAX - 1, INT32_MAX, -2,     INT32_MIN};
    static const uint32_t lengths[]
        = {0, 1, 2, 100, 16384, 131072, 1 << 20, 1 << 26, (1 << 28) - 1};
    static const uint16_t flags[] = {0, 4, 16, 20};
    for (size_t i = 0; i < N_OF(positions); i++)
        for (size_t j = 0; j < N_OF(lengths); j++)
            for (size_t k = 0; k < N_OF(flags); k++) {
                uint32_t cigar[2] = {UNIT_OP(lengths[j], UNIT_M), UNIT_OP(lengths[j], UNIT_N)};
                check_bin(1, positions[i], flags[k], cigar, 2);
                check_bin(-1, positions[i], flags[k], cigar, 1);
                check_bin(2, positions[i], flags[k], cigar, 0);
            }
}

static void test_every_operation_counts_in_bin_as_in_htslib(void **state)
{
    (void)state;
    for (uint32_t op = 0; op < 16; op++) {
        uint32_t cigar[2] = {UNIT_OP(1 << 20, op), UNIT_OP(1, UNIT_M)};
        check_bin(1, 16000, 0, cigar, 2);
    }
}

/* ---- fix: the CG tag ---- */

/* Tags of a record whose real CIGAR of n operations is in CG; before and after: other tags. */
static struct unit_bytes cg_tags(uint32_t n, char type, const char *before, size_t n_before,
                                 const char *after, size_t n_after)
{
    struct unit_bytes b = {NULL, 0, 0};
    const uint8_t head[4] = {'C', 'G', 'B', (uint8_t)type};
    unit_append(&b, before, n_before);
    unit_append(&b, head, sizeof head);
    unit_append_le32(&b, n);
    for (uint32_t i = 0; i < n; i++)
        unit_append_le32(&b, UNIT_OP(1 + i % 3, i % 2 ? UNIT_D : UNIT_M));
    unit_append(&b, after, n_after);
    return b;
}

/* Bases that n operations of cg_tags() cover. */
static uint32_t cg_query(uint32_t n)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < n; i += 2)
        sum += 1 + i % 3;
    return sum;
}

/* A record as htslib writes it: <seq>S<any>N in the CIGAR field, the real one in tags. */
static struct unit_bytes cg_record(const struct unit_bytes *tags, uint32_t seq_len,
                                   uint32_t n_fake)
{
    uint32_t fake[4]
        = {UNIT_OP(seq_len, UNIT_S), UNIT_OP(77, UNIT_N), UNIT_OP(1, UNIT_N), UNIT_OP(2, UNIT_P)};
    struct unit_record r = {.ref_id = 0, .pos = 12345, .name = "long", .cigar = fake,
                            .n_cigar = n_fake, .seq_len = seq_len, .aux = tags->data,
                            .n_aux = tags->n};
    struct unit_bytes b = {NULL, 0, 0};
    unit_append_record(&b, &r);
    return b;
}

static const char other_tags[] = "RGZone\0XAAqNMS\1\2ZBBs\2\0\0\0\1\1\2\2";
enum { N_OTHER = sizeof other_tags - 1 };

static void check_cg(uint32_t n, uint32_t n_fake, size_t n_before, size_t n_after)
{
    struct unit_bytes tags = cg_tags(n, 'I', other_tags, n_before, other_tags, n_after);
    struct unit_bytes b = cg_record(&tags, cg_query(n), n_fake);
    assert_int_equal(bam_record_check(b.data, b.n, N_REF).needs_fix, 1);
    check_like_htslib(b.data, b.n);
    unit_free(&tags);
    unit_free(&b);
}

static void test_real_cigar_moves_back_when_it_fits(void **state)
{
    (void)state;
    static const uint32_t counts[] = {2, 3, 4, 5, 1000, 65534, 65535};
    for (size_t i = 0; i < N_OF(counts); i++)
        for (uint32_t n_fake = 1; n_fake <= 3; n_fake++)
            if (counts[i] >= n_fake)
                check_cg(counts[i], n_fake, 0, 0);
}

static void test_tags_around_the_real_cigar_are_kept(void **state)
{
    (void)state;
    static const uint32_t counts[] = {2, 7, 300, 65535, 65536, 70001};
    for (size_t i = 0; i < N_OF(counts); i++) {
        check_cg(counts[i], 2, N_OTHER, 0);
        check_cg(counts[i], 2, 0, N_OTHER);
        check_cg(counts[i], 2, N_OTHER, N_OTHER);
        check_cg(counts[i], 2, 7, N_OTHER);                  /* RG alone before it */
    }
}

static void test_real_cigar_that_stays_in_the_tag(void **state)
{
    (void)state;
    for (uint32_t n = 65536; n <= 65539; n++)
        for (uint32_t n_fake = 2; n_fake <= 4; n_fake++)
            check_cg(n, n_fake, 0, 0);
}

static void test_record_that_would_grow_is_refused(void **state)
{
    (void)state;
    struct unit_bytes tags = cg_tags(65536, 'I', NULL, 0, NULL, 0);
    struct unit_bytes b = cg_record(&tags, cg_query(65536), 1);
    assert_int_equal(fault_of(&b), BAM_BAD_CG);
    unit_free(&tags);
    unit_free(&b);
}

/* Returns whether this htslib leaves a real CIGAR of signed integers where it is, as 1.13 does and 1.16 does not. We
 * move it. */
static int judge_knows_unsigned_only(void)
{
    static int is = -1;
    if (is < 0) {
        struct unit_bytes tags = cg_tags(9, 'i', NULL, 0, NULL, 0);
        struct unit_bytes b = cg_record(&tags, cg_query(9), 2);
        struct unit_bytes judged = htslib_rewrite(b.data, b.n);
        is = judged.n == b.n;
        unit_free(&judged);
        unit_free(&tags);
        unit_free(&b);
    }
    return is;
}

static int has_signed_cigar(const struct unit_bytes *b)
{
    int bad = 0;
    const uint8_t *type = bam_record_aux_find(bam_record_aux((const struct bam_record *)b->data), b->data + b->n, "CG", &bad);
    return type && type[0] == 'B' && type[1] == 'i';
}

static void test_real_cigar_of_signed_integers(void **state)
{
    (void)state;
    struct unit_bytes tags = cg_tags(9, 'i', NULL, 0, other_tags, N_OTHER);
    struct unit_bytes b = cg_record(&tags, cg_query(9), 2);
    assert_int_equal(bam_record_check(b.data, b.n, N_REF).needs_fix, 1);
    if (!judge_knows_unsigned_only())
        check_like_htslib(b.data, b.n);
    assert_int_equal(bam_record_fix((struct bam_record *)b.data), 0);
    const struct bam_record *r = (const struct bam_record *)b.data;
    assert_int_equal(load_le16(r->n_cigar), 9);
    assert_int_equal(bam_record_size(r), b.n - 8 - 2 * 4);   /* less the tag's head and the placeholder */
    unit_free(&tags);
    unit_free(&b);
}

static void test_tag_of_other_type_is_no_cigar(void **state)
{
    (void)state;
    static const char types[] = "cCsSf";
    for (const char *type = types; *type; type++) {
        struct unit_bytes tags = cg_tags(8, *type, NULL, 0, NULL, 0);
        static const uint8_t width[] = {1, 1, 2, 2, 4};
        tags.n = 8 + 8 * (size_t)width[type - types];
        struct unit_bytes b = cg_record(&tags, 10, 1);
        check_like_htslib(b.data, b.n);
        unit_free(&tags);
        unit_free(&b);
    }
    struct unit_bytes text = {NULL, 0, 0};
    unit_append(&text, "CGZ1M2D", 8);
    struct unit_bytes b = cg_record(&text, 10, 2);
    check_like_htslib(b.data, b.n);
    unit_free(&text);
    unit_free(&b);
}

static void test_tag_shorter_than_the_cigar_field_is_no_cigar(void **state)
{
    (void)state;
    for (uint32_t n = 0; n < 4; n++) {
        struct unit_bytes tags = cg_tags(n, 'I', NULL, 0, NULL, 0);
        struct unit_bytes b = cg_record(&tags, n >= 3 ? cg_query(n) : 10, 3);
        assert_int_equal(bam_record_check(b.data, b.n, N_REF).fault, BAM_OK);
        check_like_htslib(b.data, b.n);
        unit_free(&tags);
        unit_free(&b);
    }
}

static void test_tag_of_unplaced_read_is_left_alone(void **state)
{
    (void)state;
    struct unit_bytes tags = cg_tags(6, 'I', NULL, 0, NULL, 0);
    struct unit_bytes b = cg_record(&tags, 10, 2);
    store_le32(view(&b)->pos, UINT32_MAX);
    check_like_htslib(b.data, b.n);
    store_le32(view(&b)->pos, 5);
    store_le32(view(&b)->ref_id, UINT32_MAX);
    check_like_htslib(b.data, b.n);
    unit_free(&tags);
    unit_free(&b);
}

static void test_real_cigar_that_does_not_fit_the_sequence(void **state)
{
    (void)state;
    struct unit_bytes tags = cg_tags(6, 'I', NULL, 0, NULL, 0);
    struct unit_bytes b = cg_record(&tags, cg_query(6) + 1, 2);
    assert_int_equal(fault_of(&b), BAM_BAD_CIGAR);
    unit_free(&tags);
    unit_free(&b);
}

static void test_first_of_two_cg_tags_counts(void **state)
{
    (void)state;
    struct unit_bytes tags = cg_tags(6, 'I', NULL, 0, NULL, 0),
                      more = cg_tags(9, 'I', NULL, 0, NULL, 0);
    unit_append(&tags, more.data, more.n);
    struct unit_bytes b = cg_record(&tags, cg_query(6), 2);
    check_like_htslib(b.data, b.n);
    unit_free(&tags);
    unit_free(&more);
    unit_free(&b);
}

/* BAM has no operation longer than 2^28-1, so no placeholder can state this span. */
static void test_span_too_long_for_the_placeholder_is_refused(void **state)
{
    (void)state;
    enum { N = 65536 };
    struct unit_bytes tags = cg_tags(N, 'I', NULL, 0, NULL, 0);
    store_le32(tags.data + 8 + 4, UNIT_OP((1 << 28) - 1, UNIT_D));
    struct unit_bytes b = cg_record(&tags, cg_query(N), 2);
    struct unit_bytes theirs = htslib_rewrite(b.data, b.n);
    assert_int_equal(theirs.n, 0);
    assert_int_not_equal(fault_of(&b), BAM_OK);
    unit_free(&tags);
    unit_free(&b);
}

/* A record with the n operations of real in a CG tag, followed by `after`; htslib cannot read its own form of it, so we
 * refuse it. */
static void check_refused_for_what_follows(const uint32_t *real, uint32_t n, const char *after, size_t n_after)
{
    struct unit_bytes tags = cg_tags(n, 'I', NULL, 0, after, n_after);
    for (uint32_t i = 0; real && i < n; i++)
        store_le32(tags.data + 8 + 4 * (size_t)i, real[i]);
    struct unit_bytes b = cg_record(&tags, real ? 10 : cg_query(n), 2);
    struct unit_bytes once = htslib_rewrite(b.data, b.n), twice = htslib_rewrite(once.data, once.n);
    bam1_t *first = htslib_read(b.data, b.n), *second = htslib_read(once.data, once.n);
    assert_non_null(first);
    assert_true(!second || second->core.n_cigar != first->core.n_cigar || twice.n != once.n);
    assert_int_equal(fault_of(&b), BAM_BAD_CG);
    bam_destroy1(first);
    bam_destroy1(second);
    unit_free(&tags);
    unit_free(&b);
    unit_free(&once);
    unit_free(&twice);
}

/* If the normalised record needs no CG, any bytes may follow, as in htslib. */
static void test_tags_behind_the_real_cigar_that_hide_it_once_it_moved(void **state)
{
    (void)state;
    static const struct { const char *aux; size_t n; } after[]
        = {{"CGBI\2\0\0\0\244\0\0\0\22\0\0\0", 16}, {"CGZa", 5}, {"XXZopen", 7}, {"X0?", 3}};
    static const uint32_t again[] = {UNIT_OP(10, UNIT_S), UNIT_OP(7, UNIT_D)};
    for (size_t i = 0; i < N_OF(after); i++) {
        int harmless = i == 1 || i == 2;         /* no CIGAR in it, and nothing after it in such a short record */
        if (!harmless)
            check_refused_for_what_follows(again, 2, after[i].aux, after[i].n);
        check_refused_for_what_follows(NULL, 65536, after[i].aux, after[i].n);
        struct unit_bytes tags = cg_tags(6, 'I', NULL, 0, after[i].aux, after[i].n);
        struct unit_bytes b = cg_record(&tags, cg_query(6), 2);
        check_like_htslib(b.data, b.n);
        unit_free(&tags);
        unit_free(&b);
    }
}

static void test_broken_tags_before_the_real_cigar(void **state)
{
    (void)state;
    static const char *const broken[]
        = {"X0?", "X1Bc\377\377\377\177", "X2B?\1\0\0\0a", "X4Bi\377\377\377\377"};
    static const size_t sizes[] = {3, 8, 9, 8};
    for (size_t i = 0; i < N_OF(broken); i++) {
        struct unit_bytes tags = cg_tags(6, 'I', broken[i], sizes[i], NULL, 0);
        struct unit_bytes b = cg_record(&tags, cg_query(6), 2);
        assert_null(htslib_read(b.data, b.n));
        assert_int_equal(fault_of(&b), BAM_BAD_CG);
        unit_free(&tags);
        unit_free(&b);
    }
}

/* htslib stops at one or two bytes at the end and leaves the record unchanged. */
static void test_stray_bytes_after_the_tags_are_kept_as_by_htslib(void **state)
{
    (void)state;
    for (size_t stray = 1; stray <= 2; stray++) {
        struct unit_record r = {.ref_id = 1, .pos = 100, .bin = 4681, .name = "clipped",
                                .cigar = (const uint32_t[]){UNIT_OP(10, UNIT_S)}, .n_cigar = 1,
                                .seq_len = 10, .aux = "NMC\3XX", .n_aux = 4 + stray};
        struct unit_bytes b = {NULL, 0, 0};
        unit_append_record(&b, &r);
        check_like_htslib(b.data, b.n);
        unit_free(&b);
    }
}

/* In htslib the record may end the value, unless the tag is the one searched for. */
static void test_last_text_tag_without_nul_is_kept_as_by_htslib(void **state)
{
    (void)state;
    struct unit_record r = {.ref_id = 1, .pos = 100, .bin = 4681, .name = "clipped",
                            .cigar = (const uint32_t[]){UNIT_OP(10, UNIT_S)}, .n_cigar = 1,
                            .seq_len = 10, .aux = "NMC\3RGZone", .n_aux = 10};
    struct unit_bytes b = {NULL, 0, 0};
    unit_append_record(&b, &r);
    check_like_htslib(b.data, b.n);
    unit_free(&b);
}

static void test_broken_tags_do_not_matter_without_a_placeholder(void **state)
{
    (void)state;
    static const uint32_t cigar[] = {UNIT_OP(9, UNIT_S), UNIT_OP(1, UNIT_M)};
    struct unit_record r = {.ref_id = 1, .pos = 100, .bin = 4681, .name = "read", .cigar = cigar,
                            .n_cigar = 2, .seq_len = 10, .aux = "X0?CGBI", .n_aux = 7};
    struct unit_bytes b = {NULL, 0, 0};
    unit_append_record(&b, &r);
    check_like_htslib(b.data, b.n);
    unit_free(&b);
}

/* ---- against htslib at large ---- */

static void random_record(struct unit_bytes *b, uint64_t *seed)
{
    static const uint8_t tags[]
        = "NMC\5MDZ10A5\0ZZBI\2\0\0\0abcdefghASi\1\2\3\4XFf\0\0\0\0XXH1AE3\0";
    enum { MAX_OPS = 6 };
    uint32_t cigar[MAX_OPS], n = unit_below(seed, MAX_OPS + 1), query = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t op = unit_below(seed, 9), len = 1 + unit_below(seed, 30);
        if (op == UNIT_M || op == UNIT_I || op == UNIT_S || op == UNIT_EQ || op == UNIT_X)
            query += len;
        cigar[i] = UNIT_OP(len, op);
    }
    struct unit_record r = {
        .ref_id = (int32_t)unit_below(seed, N_REF + 1) - 1,
        .pos = (int32_t)unit_below(seed, 300000) - 1, .flag = (uint16_t)unit_random(seed),
        .bin = (uint16_t)unit_random(seed), .name = "q:1", .cigar = cigar, .n_cigar = n,
        .seq_len = n ? query : unit_below(seed, 50), .aux = tags,
        .n_aux = unit_below(seed, 2) ? sizeof tags - 1 : 0,
    };
    unit_append_record(b, &r);
}

static void test_random_records_are_mended_as_by_htslib(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int i = 0; i < 3000; i++) {
        struct unit_bytes b = {NULL, 0, 0};
        random_record(&b, &seed);
        check_like_htslib(b.data, b.n);
        unit_free(&b);
    }
}

/* Records written by htslib are copied unchanged: normalising each would cost more than sorting. */
static void test_records_written_by_htslib_need_no_mending(void **state)
{
    (void)state;
    uint64_t seed = 2;
    for (int i = 0; i < 2000; i++) {
        struct unit_bytes b = {NULL, 0, 0};
        random_record(&b, &seed);
        struct unit_bytes written = htslib_rewrite(b.data, b.n);
        struct bam_verdict v = bam_record_check(written.data, written.n, N_REF);
        assert_int_equal(v.fault, BAM_OK);
        assert_int_equal(v.needs_fix, 0);
        unit_free(&b);
        unit_free(&written);
    }
}

static size_t tag_width(uint8_t type)
{
    static const char types[] = "AcCsSiIfd";
    static const uint8_t widths[] = {1, 1, 1, 2, 2, 4, 4, 4, 8};
    const char *at = memchr(types, type, sizeof types - 1);
    return at ? widths[at - types] : 0;
}

/* Some versions of htslib compute the size of an array tag modulo 2^32: they may
 * take a record whose tags claim an array that is longer than all of it. */
static int has_array_past_end(const uint8_t *p, const uint8_t *end)
{
    while (end - p > 2) {
        uint8_t type = p[2];
        uint64_t size = tag_width(type);
        p += 3;
        if (type == 'Z' || type == 'H') {
            size = strnlen((const char *)p, (size_t)(end - p));
            size += size < (uint64_t)(end - p);
        } else if (type == 'B' && end - p >= 5) {
            size = tag_width(p[0]) * (uint64_t)load_le32(p + 1);
            p += 5;
            if (size > (uint64_t)(end - p))
                return 1;
        }
        if (size == 0 || size > (uint64_t)(end - p))
            return 0;
        p += size;
    }
    return 0;
}

/* A damaged record: accepted if and only if htslib accepts it, and then the same. But
 * a name without NUL is refused, not normalised. */
static void check_damaged(const struct unit_bytes *b, int step)
{
    struct unit_bytes want = htslib_rewrite(b->data, b->n);
    enum bam_fault fault = fault_of(b);
    const struct bam_record *r = (const struct bam_record *)b->data;
    if (fault == BAM_OK && judge_knows_unsigned_only() && has_signed_cigar(b))
        ;                                                    /* no judge */
    else if (fault == BAM_OK && want.n > 0)
        check_like_htslib(b->data, b->n);
    else if (fault == BAM_BAD_CG && want.n > 0)
        assert_true(has_array_past_end(bam_record_aux(r), b->data + b->n));
    else if (fault != BAM_BAD_NAME && (fault == BAM_OK) != (want.n > 0))
        fail_msg("step %d: htslib %s the record, ours says: %s", step,
                 want.n ? "takes" : "refuses", bam_fault_text(fault));
    unit_free(&want);
}

static void test_damaged_records_are_refused_when_htslib_refuses(void **state)
{
    (void)state;
    uint64_t seed = 3;
    for (int i = 0; i < 8000; i++) {
        struct unit_bytes b = {NULL, 0, 0};
        random_record(&b, &seed);
        for (uint32_t n = 1 + unit_below(&seed, 2); n > 0; n--) {
            uint32_t at = 4 + unit_below(&seed, (uint32_t)b.n - 4);
            b.data[at] = unit_below(&seed, 2) ? (uint8_t)unit_random(&seed)
                       : (uint8_t)(b.data[at] ^ 1u << unit_below(&seed, 8));
        }
        check_damaged(&b, i);
        unit_free(&b);
    }
}

/* A record whose tags matter: a placeholder CIGAR with the real one in CG. */
static void test_damaged_tags_are_refused_when_htslib_refuses(void **state)
{
    (void)state;
    uint64_t seed = 4;
    for (int i = 0; i < 8000; i++) {
        struct unit_bytes tags = cg_tags(4, 'I', other_tags, unit_below(&seed, 2) ? N_OTHER : 0,
                                         other_tags, unit_below(&seed, 2) ? N_OTHER : 0);
        if (unit_below(&seed, 4) == 0)
            tags.n -= unit_below(&seed, 12);
        if (unit_below(&seed, 2))
            tags.data[unit_below(&seed, (uint32_t)tags.n)]
                ^= (uint8_t)(1u << unit_below(&seed, 8));
        else
            tags.data[unit_below(&seed, (uint32_t)tags.n)] = (uint8_t)unit_random(&seed);
        struct unit_bytes b = cg_record(&tags, cg_query(4), 2);
        check_damaged(&b, i);
        unit_free(&tags);
        unit_free(&b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bin_is_the_one_htslib_writes),
        cmocka_unit_test(test_every_operation_counts_in_bin_as_in_htslib),
        cmocka_unit_test(test_real_cigar_moves_back_when_it_fits),
        cmocka_unit_test(test_tags_around_the_real_cigar_are_kept),
        cmocka_unit_test(test_real_cigar_that_stays_in_the_tag),
        cmocka_unit_test(test_record_that_would_grow_is_refused),
        cmocka_unit_test(test_real_cigar_of_signed_integers),
        cmocka_unit_test(test_tag_of_other_type_is_no_cigar),
        cmocka_unit_test(test_tag_shorter_than_the_cigar_field_is_no_cigar),
        cmocka_unit_test(test_tag_of_unplaced_read_is_left_alone),
        cmocka_unit_test(test_real_cigar_that_does_not_fit_the_sequence),
        cmocka_unit_test(test_first_of_two_cg_tags_counts),
        cmocka_unit_test(test_span_too_long_for_the_placeholder_is_refused),
        cmocka_unit_test(test_broken_tags_before_the_real_cigar),
        cmocka_unit_test(test_tags_behind_the_real_cigar_that_hide_it_once_it_moved),
        cmocka_unit_test(test_stray_bytes_after_the_tags_are_kept_as_by_htslib),
        cmocka_unit_test(test_last_text_tag_without_nul_is_kept_as_by_htslib),
        cmocka_unit_test(test_broken_tags_do_not_matter_without_a_placeholder),
        cmocka_unit_test(test_random_records_are_mended_as_by_htslib),
        cmocka_unit_test(test_records_written_by_htslib_need_no_mending),
        cmocka_unit_test(test_damaged_records_are_refused_when_htslib_refuses),
        cmocka_unit_test(test_damaged_tags_are_refused_when_htslib_refuses),
    };
    hts_set_log_level(HTS_LOG_OFF);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
