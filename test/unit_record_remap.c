/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include "unit_htslib.h"
#include "unit_printed.h"
#include "bam/record_remap.h"

/* A string literal with its size, without the NUL that C adds. */
#define TAGS(text) (text), sizeof(text) - 1

static struct unit_bytes record_of(const void *aux, size_t n_aux)
{
    struct unit_bytes b = {NULL, 0, 0};
    struct unit_record r = {.ref_id = 1, .pos = 7, .flag = 4, .name = "r1", .seq_len = 3, .aux = aux, .n_aux = n_aux};
    unit_append_record(&b, &r);
    return b;
}

/* Group x stays, y gets another ID; so do programs p and q. */
static struct record_remap usual(void)
{
    struct record_remap remap = {.drops_unknown = true};
    MUST(tag_values_add(&remap.groups, "x", "x") == 0 && tag_values_add(&remap.groups, "y", "y-055424A4") == 0);
    MUST(tag_values_add(&remap.programs, "p", "p") == 0 && tag_values_add(&remap.programs, "q", "q-3A2CCEF5") == 0);
    return remap;
}

static int append(const struct record_remap *remap, struct byte_buffer *to, const struct unit_bytes *b,
                  struct remap_unknown *unknown)
{
    uint8_t *exact = exact_copy(b->data, b->n);
    int status = record_remap_append(remap, to, (const struct bam_record *)exact, unknown);
    free(exact);
    return status;
}

/* The record with these tags becomes one with those. unknown: its list, as one text. */
static void check(const struct record_remap *remap, const char *aux, size_t n_aux, const char *want, size_t n_want,
                  const char *unknown, size_t n_unknown)
{
    struct unit_bytes from = record_of(aux, n_aux), to = record_of(want, n_want);
    struct remap_unknown found = {.last = {0, 0}};
    struct byte_buffer out = {NULL, 0, 0};
    MUST(byte_buffer_append(&out, "before", 6) == 0);
    int changed = append(remap, &out, &from, &found);
    int as_changed = remap->group && strncmp(aux, "RGZx", 4) != 0 ? 2 : 1;
    assert_true(changed == as_changed || (changed == 0 && from.n == to.n && memcmp(from.data, to.data, to.n) == 0));
    assert_int_equal(out.n, 6 + to.n);
    assert_memory_equal(out.p, "before", 6);
    assert_memory_equal(out.p + 6, to.data, to.n);
    assert_int_equal(found.list.n, n_unknown);
    if (n_unknown)
        assert_memory_equal(found.list.p, unknown, n_unknown);
    free(out.p);
    free(found.list.p);
    unit_free(&from);
    unit_free(&to);
}

static void test_tags_stand_elsewhere_than_behind_the_others(void **state)
{
    (void)state;
    struct record_remap remap = usual();
    check(&remap, TAGS("RGZx\0PGZp\0NMC\1"), TAGS("NMC\1RGZx\0PGZp\0"), NULL, 0);
    check(&remap, TAGS("PGZq\0NMC\1RGZy\0"), TAGS("NMC\1RGZy-055424A4\0PGZq-3A2CCEF5\0"), NULL, 0);
    check(&remap, TAGS("XAA1RGZx\0XBA2PGZp\0XCA3"), TAGS("XAA1XBA2XCA3RGZx\0PGZp\0"), NULL, 0);
    check(&remap, TAGS("XAA1PGZp\0"), TAGS("XAA1PGZp\0"), NULL, 0);
    check(&remap, TAGS("XAA1PGZq\0XBZabcdefghijk\0"), TAGS("XAA1XBZabcdefghijk\0PGZq-3A2CCEF5\0"), NULL, 0);
    check(&remap, TAGS("RGHy\0"), TAGS("RGZy-055424A4\0"), NULL, 0);
    check(&remap, TAGS("NMC\1"), TAGS("NMC\1"), NULL, 0);
    check(&remap, "", 0, "", 0, NULL, 0);
    record_remap_free(&remap);
}

/* Upstream only reads the first tag of a name. */
static void test_second_tag_of_a_name_is_changed(void **state)
{
    (void)state;
    struct record_remap remap = usual();
    check(&remap, TAGS("RGZy\0RGZx\0PGZp\0PGZq\0"), TAGS("RGZx\0PGZq\0RGZy-055424A4\0PGZp\0"), NULL, 0);
    record_remap_free(&remap);
}

static void test_unknown_value_stays_or_is_not_told(void **state)
{
    (void)state;
    struct record_remap remap = usual();
    check(&remap, TAGS("RGZno\0XAA1"), TAGS("XAA1"), TAGS("RG:no\0r1\0"));
    check(&remap, TAGS("PGZ\0RGZyy\0XAA1"), TAGS("XAA1"), TAGS("RG:yy\0r1\0PG:\0r1\0"));
    check(&remap, TAGS("PGZpp\0RGZy\0"), TAGS("RGZy-055424A4\0"), TAGS("PG:pp\0r1\0"));
    remap.drops_unknown = false;
    check(&remap, TAGS("RGZno\0PGZq\0XAA1"), TAGS("RGZno\0XAA1PGZq-3A2CCEF5\0"), NULL, 0);
    check(&remap, TAGS("RGZno\0PGC\1XAA1"), TAGS("RGZno\0PGC\1XAA1"), NULL, 0);
    record_remap_free(&remap);
}

static void test_record_has_another_group_than_its_file(void **state)
{
    (void)state;
    struct record_remap remap = usual();
    remap.group = strdup("file");
    MUST(remap.group);
    check(&remap, TAGS("RGZx\0PGZp\0NMC\1"), TAGS("NMC\1PGZp\0RGZfile\0"), NULL, 0);
    check(&remap, TAGS("NMC\1"), TAGS("NMC\1RGZfile\0"), NULL, 0);
    check(&remap, TAGS("RGZno\0"), TAGS("RGZfile\0"), TAGS("RG:no\0r1\0"));
    check(&remap, "", 0, TAGS("RGZfile\0"), NULL, 0);
    check(&remap, TAGS("RGZno\0XAA1RGZx\0"), TAGS("XAA1RGZfile\0"), TAGS("RG:no\0r1\0"));
    check(&remap, TAGS("RGZx\0XAA1RGZy\0PGZp\0"), TAGS("XAA1RGZx\0PGZp\0RGZfile\0"), NULL, 0);
    assert_false(record_remap_is_none(&remap));
    record_remap_free(&remap);
}

static void test_tag_that_is_no_string_is_read_as_one(void **state)
{
    (void)state;
    static const struct { const char *aux; size_t n; } bad[] = {
        {TAGS("RGC\1")}, {TAGS("PGAp")}, {TAGS("XAA1RGi\1\0\0\0")}, {TAGS("RGBC\2\0\0\0ab")}, {TAGS("RGZx\0PGC\1")},
    };
    struct record_remap remap = usual();
    for (size_t i = 0; i < N_OF(bad); i++) {
        struct unit_bytes b = record_of(bad[i].aux, bad[i].n);
        struct remap_unknown unknown = {.last = {0, 0}};
        struct byte_buffer out = {NULL, 0, 0};
        assert_int_equal(append(&remap, &out, &b, &unknown), -3);
        assert_int_equal(out.n, 0);
        free(out.p);
        unit_free(&b);
    }
    record_remap_free(&remap);
}

/* htslib finds no tag after one that cannot be read. */
static void test_tags_behind_a_broken_one_are_changed(void **state)
{
    (void)state;
    struct record_remap remap = usual();
    check(&remap, TAGS("XAQ1RGZy\0"), TAGS("XAQ1RGZy\0"), NULL, 0);
    check(&remap, TAGS("RGZy\0XAQ1PGZq\0"), TAGS("XAQ1PGZq\0RGZy-055424A4\0"), NULL, 0);
    check(&remap, TAGS("RGZy"), TAGS("RGZy"), NULL, 0);
    check(&remap, TAGS("RGZ"), TAGS("RGZ"), NULL, 0);
    check(&remap, TAGS("RG"), TAGS("RG"), NULL, 0);
    check(&remap, TAGS("XABi\377\377\377\377RGZy\0"), TAGS("XABi\377\377\377\377RGZy\0"), NULL, 0);
    record_remap_free(&remap);
}

static void test_references_keep_their_old_numbers(void **state)
{
    (void)state;
    static const int32_t ids[] = {5, 0, 2};
    static const int32_t refs[][4] = {{1, 0, 0, 5}, {-1, -1, -1, -1}, {2, 2, 2, 2}, {2, 1, 2, 0}, {-1, 0, -1, 5}};
    struct record_remap remap = {.ref_ids = ids};
    assert_false(record_remap_is_none(&remap));
    for (size_t i = 0; i < N_OF(refs); i++) {
        struct unit_bytes b = record_of(TAGS("RGZx\0"));
        struct byte_buffer out = {NULL, 0, 0};
        struct bam_record *r = (struct bam_record *)b.data;
        store_le32(r->ref_id, (uint32_t)refs[i][0]);
        store_le32(r->next_ref_id, (uint32_t)refs[i][1]);
        assert_int_equal(append(&remap, &out, &b, NULL), refs[i][0] != refs[i][2] || refs[i][1] != refs[i][3]);
        store_le32(r->ref_id, (uint32_t)refs[i][2]);
        store_le32(r->next_ref_id, (uint32_t)refs[i][3]);
        assert_int_equal(out.n, b.n);
        assert_memory_equal(out.p, b.data, b.n);
        free(out.p);
        unit_free(&b);
    }
    remap.ref_ids = NULL;
    assert_true(record_remap_is_none(&remap));
    remap.drops_unknown = true;
    assert_false(record_remap_is_none(&remap));
}

/* The test has only addresses: a record of 2 GiB need not exist to be refused. */
static void test_record_becomes_longer_than_bam_holds(void **state)
{
    (void)state;
    enum { NEW_ID = 3 };                         /* bytes by which it grows */
    static const char head[] = "RGZy";
    size_t n = (size_t)INT32_MAX + 4 + NEW_ID;
    uint8_t *p = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED)
        skip();
    struct record_remap remap = {.drops_unknown = true};
    MUST(tag_values_add(&remap.groups, "y", "y123") == 0);
    struct bam_record *r = (struct bam_record *)p;
    struct remap_unknown unknown = {.last = {0, 0}};
    struct byte_buffer out = {NULL, 0, 0};
    store_le32(r->block_size, INT32_MAX);
    r->name_len = 1;
    memcpy(r->data + 1, head, sizeof head);
    memcpy(r->data + 1 + sizeof head, "XABc", 4);
    store_le32(r->data + 1 + sizeof head + 4, (uint32_t)(4 + (size_t)INT32_MAX - BAM_FIXED - 1 - sizeof head - 8));
    MUST(bam_record_check(p, 4 + (size_t)INT32_MAX, 1).fault == BAM_OK);
    assert_int_equal(record_remap_append(&remap, &out, r, &unknown), -2);
    assert_non_null(strstr(record_remap_fault(-2), "in its RG or PG tag"));
    assert_null(out.p);
    record_remap_free(&remap);
    munmap(p, n);
}

static void test_unknown_value_is_told_twice_or_not(void **state)
{
    (void)state;
    static const char *const groups[] = {"RGZa\0", "RGZa\0", "RGZb\0", "RGZa\0", "PGZa\0", "RGZa\0"};
    struct record_remap remap = {.drops_unknown = true};
    struct remap_unknown unknown = {.last = {0, 0}};
    struct name_table told = {.mask = 0};
    struct byte_buffer out = {NULL, 0, 0};
    char printed[MAX_PRINTED];
    int file, old = unit_redirect(stderr, &file);
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < N_OF(groups); i++) {
            struct unit_bytes b = record_of(groups[i], 5);
            MUST(append(&remap, &out, &b, &unknown) == 1);
            unit_free(&b);
        }
        MUST(remap_unknown_report(&unknown, &told, "in.bam") == 0);
        remap_unknown_clear(&unknown);
    }
    unit_restore(stderr, old, file, printed);
    const char *lines[] = {"in.bam: record r1 has the tag RG:Z:a,", "in.bam: record r1 has the tag RG:Z:b,",
                           "in.bam: record r1 has the tag PG:Z:a,"};
    const char *at = printed;
    for (size_t i = 0; i < N_OF(lines); i++) {
        at = strstr(at, lines[i]);
        assert_non_null(at);
        at += strlen(lines[i]);
    }
    assert_null(strstr(at, "has the tag"));
    name_table_free(&told);
    free(unknown.list.p);
    free(out.p);
}

/* ---- htslib as oracle ---- */

/* Upstream's result for the tag, computed with htslib's functions. */
static void judge_tag(bam1_t *b, const char *tag, const struct tag_values *values)
{
    uint8_t *at = bam_aux_get(b, tag);
    const char *old = at ? bam_aux2Z(at) : NULL, *id = old ? tag_values_find(values, old, strlen(old)) : NULL;
    if (!at)
        return;
    MUST(old && bam_aux_del(b, at) == 0);
    if (id)
        MUST(bam_aux_append(b, tag, 'Z', (int)strlen(id) + 1, (const uint8_t *)id) == 0);
}

static void judge(const struct record_remap *remap, const struct unit_bytes *record)
{
    struct byte_buffer out = {NULL, 0, 0};
    struct remap_unknown unknown = {.last = {0, 0}};
    bam1_t *b = htslib_read(record->data, record->n);
    MUST(b && append(remap, &out, record, &unknown) >= 0);
    judge_tag(b, "RG", &remap->groups);
    judge_tag(b, "PG", &remap->programs);
    if (remap->group) {
        uint8_t *at = bam_aux_get(b, "RG");
        MUST(!at || bam_aux_del(b, at) == 0);
        MUST(bam_aux_append(b, "RG", 'Z', (int)strlen(remap->group) + 1, (const uint8_t *)remap->group) == 0);
    }
    struct unit_bytes want = htslib_write(b);
    assert_int_equal(out.n, want.n);
    assert_memory_equal(out.p, want.data, want.n);
    bam_destroy1(b);
    unit_free(&want);
    free(out.p);
    free(unknown.list.p);
}

static void test_record_differs_from_what_htslib_makes(void **state)
{
    (void)state;
    static const struct { const char *aux; size_t n; } tags[] = {
        {TAGS("RGZx\0")}, {TAGS("PGZq\0")}, {TAGS("RGZy\0")}, {TAGS("PGZno\0")}, {TAGS("NMC\5")}, {TAGS("RXZ\0")},
        {TAGS("GRZRGZx\0")}, {TAGS("XBBS\2\0\0\0RGPG")}, {TAGS("GPf\1\2\3\4")}, {TAGS("RHHAB\0")}, {TAGS("PGHq\0")},
    };
    enum { ROUNDS = 2000, FIRST_OTHER = 4 };
    struct record_remap remap = usual();
    uint64_t seed = 3;
    for (int round = 0; round < ROUNDS; round++) {
        char aux[200];
        size_t n = 0;
        for (uint32_t i = unit_below(&seed, 7); i > 0; i--) {
            uint32_t k = unit_below(&seed, N_OF(tags));
            memcpy(aux + n, tags[k].aux, tags[k].n);
            n += tags[k].n;
        }
        struct unit_bytes record = record_of(aux, n);
        free(remap.group);
        remap.group = round % 2 ? strdup("g") : NULL;
        store_le16(((struct bam_record *)record.data)->bin, 4681);
        judge(&remap, &record);
        unit_free(&record);
    }
    record_remap_free(&remap);
}

static void test_values_of_many_are_mixed_up(void **state)
{
    (void)state;
    enum { N = 3000 };
    struct tag_values values = {.to = NULL};
    char from[32], to[32];
    assert_null(tag_values_find(&values, "x", 1));
    for (int i = 0; i < N + 10; i++) {           /* some twice: the last one is used */
        snprintf(from, sizeof from, "id%d", i % N);
        snprintf(to, sizeof to, "new%d", i);
        assert_int_equal(tag_values_add(&values, from, to), 0);
    }
    for (int i = 0; i < N; i++) {
        int n = snprintf(from, sizeof from, "id%d", i);
        snprintf(to, sizeof to, "new%d", i < 10 ? i + N : i);
        assert_string_equal(tag_values_find(&values, from, (size_t)n), to);
        assert_null(tag_values_find(&values, from + 1, (size_t)n - 1));
    }
    tag_values_free(&values);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tags_stand_elsewhere_than_behind_the_others),
        cmocka_unit_test(test_second_tag_of_a_name_is_changed),
        cmocka_unit_test(test_unknown_value_stays_or_is_not_told),
        cmocka_unit_test(test_record_has_another_group_than_its_file),
        cmocka_unit_test(test_tag_that_is_no_string_is_read_as_one),
        cmocka_unit_test(test_tags_behind_a_broken_one_are_changed),
        cmocka_unit_test(test_references_keep_their_old_numbers),
        cmocka_unit_test(test_record_becomes_longer_than_bam_holds),
        cmocka_unit_test(test_unknown_value_is_told_twice_or_not),
        cmocka_unit_test(test_record_differs_from_what_htslib_makes),
        cmocka_unit_test(test_values_of_many_are_mixed_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
