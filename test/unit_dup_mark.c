/* SPDX-License-Identifier: MIT */
/* The output of markdup: records, names of other records, warnings. */
#include "unit.h"
#include "base/message.h"
#include "markdup/dup_kept.h"
#include "markdup/dup_mark.h"
#include "markdup/dup_name.h"
#include "markdup/dup_others.h"
#include "markdup/dup_warnings.h"
#include "unit_printed.h"

enum { DUP = 1024, UNMAPPED = 4, SUPPLEMENTARY = 2048 };

#define AUX(text) text, sizeof(text) - 1

/* A record "name" with this flag and these tags, when rewritten, must have the expected flag, name and tags. */
struct expected { unsigned flag; const char *name, *tags; size_t n_tags; };

static void check(const struct dup_mark_rule *rule, const struct dup_verdict *verdict, unsigned flag, const char *name,
                  const char *tags, size_t n_tags, struct expected expected)
{
    static const uint32_t cigar[] = {UNIT_OP(7, UNIT_M)};
    struct unit_bytes from = {NULL, 0, 0}, same = {NULL, 0, 0};
    struct byte_buffer to = {NULL, 0, 0};
    struct unit_record r = {.ref_id = 1, .pos = 77, .flag = (uint16_t)flag, .name = name, .cigar = cigar, .n_cigar = 1,
                            .seq_len = 7, .aux = tags, .n_aux = n_tags};
    unit_append_record(&from, &r);
    r.flag = (uint16_t)expected.flag;
    r.name = expected.name;
    r.aux = expected.tags;
    r.n_aux = expected.n_tags;
    unit_append_record(&same, &r);
    const struct bam_record *record = (const struct bam_record *)from.data;
    assert_int_equal(byte_buffer_append(&to, "before", 6), 0);
    assert_int_equal(dup_mark_append(rule, &to, record, verdict), DUP_MARK_OK);
    assert_int_equal(dup_mark_flag(rule, record, verdict), expected.flag);
    assert_int_equal(to.n, 6 + same.n);
    assert_memory_equal(to.p, "before", 6);
    assert_memory_equal(to.p + 6, same.data, same.n);
    if (dup_mark_is_flag(rule, record, verdict))
        assert_int_equal(from.n, same.n);
    else
        assert_true(dup_kept(record, to.p + 6, to.n - 6, rule->umi));
    unit_free(&from);
    unit_free(&same);
    free(to.p);
}

#define CHECK(flag, tags, new_flag, new_tags) \
    check(&rule, verdict, flag, "q", AUX(tags), (struct expected){new_flag, "q", AUX(new_tags)})

static void flag_alone_changes(void **state)
{
    (void)state;
    struct dup_mark_rule rule = {.clear = false};
    struct dup_verdict lost = {.duplicate = true}, *verdict = NULL;
    CHECK(99, "doZx\0", 99, "doZx\0");
    CHECK(99 | DUP, "doZx\0", 99 | DUP, "doZx\0");   /* the old flag stays */
    verdict = &lost;
    CHECK(99, "broken", 99 | DUP, "broken");
}

/* Returns whether a record with these tags is accepted as unchanged in one with `made` instead. The byte at `at` of
 * that differs; 0: none. */
static bool is_kept(const char *tags, size_t n_tags, const char *made, size_t n_made, size_t at)
{
    struct unit_bytes from = {NULL, 0, 0}, to = {NULL, 0, 0};
    struct unit_record r = {.pos = 77, .flag = 99, .name = "q", .seq_len = 7, .aux = tags, .n_aux = n_tags};
    unit_append_record(&from, &r);
    r.flag |= DUP;
    r.aux = made;
    r.n_aux = n_made;
    unit_append_record(&to, &r);
    if (at)
        to.data[at] ^= 8;
    bool kept = dup_kept((const struct bam_record *)from.data, to.data, to.n, false);
    unit_free(&from);
    unit_free(&to);
    return kept;
}

static void another_record_is_none_of_ours(void **state)
{
    (void)state;
    enum { NAME = 36, TAGS = 36 + 2 + 4 + 7 };
    assert_true(is_kept(AUX("XAAxRGZg\0"), AUX("XAAxRGZg\0doZn\0"), 0));
    assert_true(is_kept(AUX("doZn\0XAAxdcC\1"), AUX("XAAxdtZLB\0"), 0));
    assert_false(is_kept(AUX("XAAxRGZg\0"), AUX("RGZg\0XAAx"), 0));
    assert_false(is_kept(AUX("XAAxRGZg\0"), AUX("XAAx"), 0));
    assert_false(is_kept(AUX("XAAx"), AUX("XAAxXAAx"), 0));
    assert_false(is_kept(AUX("XAAx"), AUX("XAAxdo"), 0));
    for (size_t at = 0; at < TAGS + 4; at++)     /* except DUP, which is another bit of FLAG */
        assert_true(at == 0 || !is_kept(AUX("XAAx"), AUX("XAAx"), at));
}

static void first_tags_of_an_earlier_run_go(void **state)
{
    (void)state;
    struct dup_mark_rule rule = {.clear = true};
    struct dup_verdict lost = {.duplicate = true}, named = {.duplicate = true, .original = "new"}, *verdict = NULL;
    CHECK(DUP, "doZx\0dtC\1dcC\3doZy\0NMC\1", 0, "dcC\3doZy\0NMC\1");
    CHECK(0, "doZx\0dtZLB\0", 0, "doZx\0dtZLB\0");
    verdict = &lost;
    CHECK(DUP, "doZx\0NMC\1", DUP, "NMC\1");
    verdict = &named;
    CHECK(DUP, "doCxNMC\1", DUP, "NMC\1doZnew\0");
    CHECK(DUP, "doZx\0NMC\1doZy\0", DUP, "NMC\1doZnew\0");
}

static void originals_and_types_take_the_place_of_old_ones(void **state)
{
    (void)state;
    struct dup_mark_rule rule = {.clear = false};
    struct dup_verdict v = {.duplicate = true, .original = "abc", .type = DUP_TYPE_LIBRARY}, *verdict = &v;
    CHECK(0, "NMC\1", DUP, "NMC\1doZabc\0dtZLB\0");
    CHECK(0, "dtZxyz\0NMC\1doZ\0XXAy", DUP, "dtZLB\0NMC\1doZabc\0XXAy");
    CHECK(0, "doZa\0doZb\0", DUP, "doZabc\0doZb\0dtZLB\0");
    v = (struct dup_verdict){.duplicate = true, .type = DUP_TYPE_SEQUENCING};
    CHECK(0, "", DUP, "dtZSQ\0");
    CHECK(0, "dtC\1NMC\1", DUP, "dtC\1NMC\1");   /* as samtools leaves it */
}

static void counts_keep_the_size_of_old_ones(void **state)
{
    (void)state;
    struct dup_mark_rule rule = {.counts = true};
    struct dup_verdict v = {.count = 254}, *verdict = NULL;
    CHECK(0, "NMC\1", 0, "NMC\1dcC\1");
    CHECK(0, "dci\377\377\377\377NMC\1", 0, "dcI\1\0\0\0NMC\1");
    CHECK(0, "dcs\0\0", 0, "dcS\1\0");
    CHECK(0, "dcZx\0", 0, "dcZx\0");
    CHECK(DUP, "", DUP, "");                     /* the flag is of an earlier run */
    verdict = &v;
    CHECK(0, "", 0, "dcC\376");
    v.count = 255;
    CHECK(0, "dcC\1", 0, "dcS\377\0");
    v.count = 65535;
    CHECK(0, "dcc\1", 0, "dcI\377\377\0\0");
    v.count = (uint64_t)1 << 40;
    CHECK(0, "", 0, "dcI\377\377\377\377");
    v = (struct dup_verdict){.duplicate = true};
    CHECK(0, "dcC\1", DUP, "dcC\1");
    rule.others = true;
    CHECK(0, "dcC\1dcC\2", DUP, "dcC\2");
    CHECK(SUPPLEMENTARY, "dcC\1NMC\1", SUPPLEMENTARY | DUP, "NMC\1");
    CHECK(UNMAPPED, "dcZ1\0", UNMAPPED | DUP, "");
}

static void umi_moves_to_its_tag(void **state)
{
    (void)state;
    regex_t umi;
    struct dup_mark_rule rule = {.umi = &umi, .umi_group = 1, .umi_separator = ':'};
    static const struct { const char *name, *to, *tags; size_t n; } cases[] = {
        {"a:ACG", "a", AUX("RXZACG\0")}, {"ACG:a", "a", AUX("RXZACG\0")}, {"a:ACG:b", "a:b", AUX("RXZACG\0")},
        {"a_ACG_b", "a__b", AUX("RXZACG\0")}, {"ACG", "", AUX("RXZACG\0")}, {"none", "none", NULL, 0},
    };
    assert_int_equal(regcomp(&umi, "(A[ACGT]+)", REG_EXTENDED), 0);
    for (size_t i = 0; i < N_OF(cases); i++)
        check(&rule, NULL, 0, cases[i].name, "", 0, (struct expected){0, cases[i].to, cases[i].tags, cases[i].n});
    check(&rule, NULL, 0, "a:AC", AUX("RXZold\0NMC\1"), (struct expected){0, "a", AUX("RXZAC\0NMC\1")});
    rule.umi_separator = 0;
    check(&rule, NULL, 0, "a:AC", "", 0, (struct expected){0, "a:", AUX("RXZAC\0")});
    regfree(&umi);
}

static void tags_that_cannot_be_set_are_faults(void **state)
{
    (void)state;
    regex_t umi;
    struct dup_verdict named = {.duplicate = true, .original = "x"};
    struct dup_mark_rule rule = {.umi = &umi, .umi_group = 1};
    static const struct { const char *tags; size_t n; enum dup_mark_fault fault; } cases[] = {
        {AUX("doHAA\0"), DUP_MARK_BAD_ORIGINAL}, {AUX("RXC\1"), DUP_MARK_BAD_UMI},
        {AUX("NMC\1RXZ"), DUP_MARK_BAD_TAGS}, {AUX("NMC\1R"), DUP_MARK_BAD_TAGS},
    };
    assert_int_equal(regcomp(&umi, "(a)", REG_EXTENDED), 0);
    for (size_t i = 0; i < N_OF(cases); i++) {
        struct unit_bytes from = {NULL, 0, 0};
        struct byte_buffer to = {NULL, 0, 0};
        struct unit_record r = {.name = "a", .aux = cases[i].tags, .n_aux = cases[i].n};
        unit_append_record(&from, &r);
        assert_int_equal(dup_mark_append(&rule, &to, (struct bam_record *)from.data, &named), cases[i].fault);
        assert_int_equal(to.n, 0);
        assert_non_null(dup_mark_fault_text(cases[i].fault));
        unit_free(&from);
        free(to.p);
    }
    regfree(&umi);
}

static void first_loss_of_a_name_counts(void **state)
{
    (void)state;
    struct dup_others others = {.names = {.mask = 0}};
    struct dup_verdict v = {.number = 5};
    uint32_t group;
    char name[16];
    assert_false(dup_others_find(&others, "a", &v, &group));
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "n%u", i % 500);
        assert_int_equal(dup_others_add(&others, name, i % 2 ? NULL : name + 1, DUP_TYPE_LIBRARY, i), 0);
    }
    assert_true(dup_others_find(&others, "n498", &v, &group));
    assert_string_equal(v.original, "498");
    assert_int_equal(v.type, DUP_TYPE_LIBRARY);
    assert_true(v.duplicate && v.number == 5);
    assert_int_equal(group, 498);
    dup_others_retag(&others, "n3");
    dup_others_retag(&others, "unknown");
    assert_true(dup_others_find(&others, "n3", &v, &group));
    assert_null(v.original);
    assert_int_equal(v.type, DUP_TYPE_SEQUENCING);
    assert_false(dup_others_find(&others, "n500", &v, &group));
    dup_others_free(&others);
}

static unsigned lines_with(const char *text, const char *part)
{
    unsigned n = 0;
    for (const char *at = text; (at = strstr(at, part)); at++)
        n++;
    return n;
}

static void ten_warnings_of_a_kind_and_their_sum(void **state)
{
    (void)state;
    static char text[MAX_PRINTED];
    struct dup_warnings w = {.n = {0}};
    char name[16];
    int file, old = unit_redirect(stderr, &file);
    dup_warnings_end(&w, "BX");
    for (unsigned i = 0; i < 12; i++) {
        snprintf(name, sizeof name, "read%u", i);
        dup_warnings_take(&w, DUP_WARNING_BARCODE, name);
    }
    dup_warnings_count(&w, DUP_WARNING_BARCODE, 30);
    dup_warnings_take(&w, DUP_WARNING_COORDINATES, "one");
    dup_warnings_end(&w, "BX");
    unit_restore(stderr, old, file, text);
    assert_int_equal(lines_with(text, ": read"), 10);
    assert_int_equal(lines_with(text, "only counted"), 1);
    assert_int_equal(lines_with(text, "one: no coordinates"), 1);
    assert_int_equal(lines_with(text, ": 42\n"), 1);
    assert_int_equal(lines_with(text, ": 1\n"), 1);
    assert_int_equal(lines_with(text, "\n"), 14);
    assert_true(dup_warnings_is_silent(&w, DUP_WARNING_BARCODE));
    assert_false(dup_warnings_is_silent(&w, DUP_WARNING_COORDINATES));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flag_alone_changes), cmocka_unit_test(another_record_is_none_of_ours),
        cmocka_unit_test(first_tags_of_an_earlier_run_go),
        cmocka_unit_test(originals_and_types_take_the_place_of_old_ones),
        cmocka_unit_test(counts_keep_the_size_of_old_ones),
        cmocka_unit_test(umi_moves_to_its_tag),
        cmocka_unit_test(tags_that_cannot_be_set_are_faults),
        cmocka_unit_test(first_loss_of_a_name_counts),
        cmocka_unit_test(ten_warnings_of_a_kind_and_their_sum),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
