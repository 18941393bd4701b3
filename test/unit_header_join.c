/* SPDX-License-Identifier: MIT */
/* The results are those of samtools merge 1.24, as in pysam 0.24.1. */
#include "unit.h"
#include "unit_printed.h"
#include "bam/header_join.h"
#include "bam/plain_header.h"
#include "base/latch.h"

enum { INPUTS_MOST = 4 };

/* The headers that are joined: that of -h, and those of the inputs. A file without a name is named by its index. */
struct inputs {
    struct header_join_options opt;
    const char *first, *texts[INPUTS_MOST], *paths[INPUTS_MOST];
};

struct joined {
    struct header_join *join;
    sam_hdr_t *sam;
    struct record_remap remaps[INPUTS_MOST];
    char warnings[MAX_PRINTED];
};

/* The header of a text, plain if possible and requested. */
static sam_hdr_t *header_of(const char *text, bool plain)
{
    sam_hdr_t *sam = plain ? plain_header_of_text((const uint8_t *)text, strlen(text)) : NULL;
    if (!sam)
        sam = *text ? sam_hdr_parse(strlen(text), text) : sam_hdr_init();
    MUST(sam && (plain || sam_hdr_count_lines(sam, "SQ") >= 0));
    return sam;
}

static void add(struct joined *j, const char *text, const char *path, struct record_remap *remap, bool plain)
{
    struct latch latch = {0};
    sam_hdr_t *sam = header_of(text, plain);
    bool is_plain = plain_header_is(sam);
    MUST(header_join_add(j->join, sam, path, remap, &latch) == 0);
    assert_int_equal(plain_header_is(sam), is_plain);
    sam_hdr_destroy(sam);
}

static struct joined join_as(const struct inputs *in, bool plain)
{
    static const char *const names[INPUTS_MOST] = {"a.sam", "b.bam", "c.cram", "d"};
    struct joined j = {.join = header_join_new(&in->opt)};
    struct latch latch = {0};
    int file, old = unit_redirect(stderr, &file);
    MUST(j.join);
    if (in->first)
        add(&j, in->first, "h.txt", NULL, plain);
    for (int i = 0; i < INPUTS_MOST && in->texts[i]; i++)
        add(&j, in->texts[i], in->paths[i] ? in->paths[i] : names[i], &j.remaps[i], plain);
    j.sam = header_join_end(j.join, &latch);
    unit_restore(stderr, old, file, j.warnings);
    MUST(j.sam);
    return j;
}

static void forget(struct joined *j)
{
    for (int i = 0; i < INPUTS_MOST; i++)
        record_remap_free(&j->remaps[i]);
    sam_hdr_destroy(j->sam);
    header_join_free(j->join);
}

static void check_text(const struct joined *j, const char *text)
{
    size_t n;
    assert_string_equal(plain_header_text(j->sam, &n), text);
    assert_int_equal(n, strlen(text));
}

/* The result, from plain headers and from parsed ones; its warnings contain these words, "": there are none. */
static void check(const struct inputs *in, const char *text, const char *words)
{
    for (int plain = 0; plain < 2; plain++) {
        struct joined j = join_as(in, plain);
        check_text(&j, text);
        if (*words ? !strstr(j.warnings, words) : strstr(j.warnings, "samtools") != NULL)
            fail_msg("plain %d: \"%s\" instead of \"%s\"", plain, j.warnings, words);
        forget(&j);
    }
}

static const char *group(const struct joined *j, int i, const char *from)
{
    return tag_values_find(&j->remaps[i].groups, from, strlen(from));
}

static const char *program(const struct joined *j, int i, const char *from)
{
    return tag_values_find(&j->remaps[i].programs, from, strlen(from));
}

#define HD "@HD\tVN:1.6\tSO:coordinate\n"
#define C1 "@SQ\tSN:c1\tLN:1000\n"
#define C2 "@SQ\tSN:c2\tLN:1000\n"
static const char a_text[] = HD C1 "@RG\tID:x\n@RG\tID:y\n@PG\tID:p1\n@PG\tID:p2\tPP:p1\n@CO\ta b\n";
static const char b_text[] = HD C1 "@RG\tID:x\tPG:p2\n@RG\tID:z\n@PG\tID:p1\n@PG\tID:p2\tPP:p1\n@CO\ta b\n";

/* ---- @RG and @PG ---- */

static void test_line_of_an_id_that_is_taken_keeps_it(void **state)
{
    (void)state;
    static const struct inputs in = {.opt = {.seed = 1}, .texts = {a_text, b_text}};
    check(&in, HD C1 "@RG\tID:x\n@RG\tID:y\n@RG\tID:x-055424A4\tPG:p2-6ADB4A65\n@RG\tID:z\n"
          "@PG\tID:p1\n@PG\tID:p2\tPP:p1\n@PG\tID:p1-3A2CCEF5\n@PG\tID:p2-6ADB4A65\tPP:p1-3A2CCEF5\n"
          "@CO\ta b\n@CO\ta b\n", "");
    struct joined j = join_as(&in, true);
    assert_string_equal(group(&j, 0, "x"), "x");
    assert_string_equal(group(&j, 1, "x"), "x-055424A4");
    assert_string_equal(group(&j, 1, "z"), "z");
    assert_null(group(&j, 1, "y"));
    assert_string_equal(program(&j, 0, "p2"), "p2");
    assert_string_equal(program(&j, 1, "p2"), "p2-6ADB4A65");
    assert_null(j.remaps[0].ref_ids);
    assert_null(j.remaps[1].ref_ids);
    forget(&j);
}

static void test_lines_of_one_id_are_not_joined(void **state)
{
    (void)state;
    struct inputs in = {.opt = {.seed = 1, .joins_groups = true, .joins_programs = true}, .texts = {a_text, b_text}};
    check(&in, HD C1 "@RG\tID:x\n@RG\tID:y\n@RG\tID:z\n@PG\tID:p1\n@PG\tID:p2\tPP:p1\n@CO\ta b\n@CO\ta b\n", "");
    in.opt.joins_groups = false;
    check(&in, HD C1 "@RG\tID:x\n@RG\tID:y\n@RG\tID:x-055424A4\tPG:p2\n@RG\tID:z\n@PG\tID:p1\n@PG\tID:p2\tPP:p1\n"
          "@CO\ta b\n@CO\ta b\n", "");
    struct joined j = join_as(&in, true);
    assert_string_equal(program(&j, 1, "p2"), "p2");
    forget(&j);
}

/* lrand48() is the same generator, with `long` of 64 bits or less. */
static void test_other_seed_gives_the_same_ids(void **state)
{
    (void)state;
    static const char text[] = HD "@RG\tID:x\n";
    static const int64_t seeds[] = {0, 1, 77, -3, INT32_MAX, (INT64_C(1) << 32) + 5};
    for (size_t i = 0; i < N_OF(seeds); i++) {
        struct inputs in = {.opt = {.seed = seeds[i]}, .texts = {text, text}};
        char want[100];
        srand48((long)(seeds[i] & UINT32_MAX));
        snprintf(want, sizeof want, "%s@RG\tID:x-%08lX\n", text, (unsigned long)lrand48());
        check(&in, want, "");
    }
}

/* The first number is skipped. */
static void test_new_id_is_taken_already(void **state)
{
    (void)state;
    static const char text[] = HD "@RG\tID:x\n", taken[] = HD "@RG\tID:x-055424A4\n";
    static const struct inputs in = {.opt = {.seed = 1}, .first = taken, .texts = {text, text}};
    check(&in, HD "@RG\tID:x-055424A4\n@RG\tID:x\n@RG\tID:x-3A2CCEF5\n", "");
}

/* The line of the ID that htslib finds is used, and the last number. */
static void test_id_twice_in_one_header_clashes_not(void **state)
{
    (void)state;
    static const char text[] = HD "@PG\tID:q\tPP:p9\n@PG\tID:q\tVN:2\n@PG\tID:p9\tPP:q\n@RG\tID:g\tPG:q\n";
    static const struct inputs in = {.opt = {.seed = 1}, .texts = {text}};
    for (int plain = 0; plain < 2; plain++) {
        struct joined j = join_as(&in, plain);
        size_t n;
        assert_non_null(strstr(plain_header_text(j.sam, &n), "@RG\tID:g\tPG:q-055424A4\n"));
        assert_non_null(strstr(plain_header_text(j.sam, &n), "@PG\tID:p9\tPP:q-055424A4\n"));
        assert_string_equal(program(&j, 0, "q"), "q-055424A4");
        forget(&j);
    }
}

static void test_field_that_names_no_program_is_changed_or_not_told(void **state)
{
    (void)state;
    static const char text[] = HD C1 "@RG\tID:g\tPG:no\n@PG\tID:p\tPP:gone\n";
    static const struct inputs in = {.opt = {.seed = 1}, .texts = {text}};
    check(&in, text, "a.sam: an @RG line has PG:no,");
    check(&in, text, "a.sam: an @PG line has PP:gone,");
}

/* ID and PP keep their places; the second field of a name is kept. */
static void test_fields_in_another_order_are_changed_wrongly(void **state)
{
    (void)state;
    static const char text[] = C1 "@RG\tSM:x\tID:g\tPG:p\tPG:q\n@PG\tPP:q\tPN:x\tID:p\tPP:r\n@PG\tID:q\n@PG\tID:r\n";
    static const struct inputs in = {.opt = {.seed = 1}, .texts = {text, text}};
    check(&in, C1 "@RG\tSM:x\tID:g\tPG:p\tPG:q\n@RG\tSM:x\tID:g-055424A4\tPG:p-3A2CCEF5\tPG:q\n"
          "@PG\tPP:q\tPN:x\tID:p\tPP:r\n@PG\tID:q\n@PG\tID:r\n"
          "@PG\tPP:q-6ADB4A65\tPN:x\tID:p-3A2CCEF5\tPP:r\n@PG\tID:q-6ADB4A65\n@PG\tID:r-2B019719\n", "an @HD line");
}

/* ---- -r ---- */

static void test_group_by_file_keeps_another_id(void **state)
{
    (void)state;
    static const struct inputs in = {.opt = {.seed = 1, .groups_by_file = true}, .texts = {a_text, b_text}};
    check(&in, HD C1 "@RG\tID:a\n@RG\tID:b\tPG:p2-3A2CCEF5\n@PG\tID:p1\n@PG\tID:p2\tPP:p1\n@PG\tID:p1-055424A4\n"
          "@PG\tID:p2-3A2CCEF5\tPP:p1-055424A4\n@CO\ta b\n@CO\ta b\n", "");
    struct joined j = join_as(&in, true);
    assert_string_equal(j.remaps[0].group, "a");
    assert_string_equal(j.remaps[1].group, "b");
    assert_string_equal(group(&j, 1, "z"), "b");
    forget(&j);
}

/* A file without a line of its group gets one, which no record uses if the ID was in use. */
static void test_files_of_one_name_are_several_groups(void **state)
{
    (void)state;
    static const char bare[] = HD C1;
    struct inputs in = {.opt = {.seed = 1, .groups_by_file = true}, .texts = {a_text, bare},
                        .paths = {"a.sam", "d/a.sam"}};
    check(&in, HD C1 "@RG\tID:a\n@RG\tID:a-055424A4\n@PG\tID:p1\n@PG\tID:p2\tPP:p1\n@CO\ta b\n", "");
    in.first = "@RG\tID:a\tSM:s\n";
    in.opt.joins_groups = true;
    check(&in, HD C1 "@RG\tID:a\tSM:s\n@RG\tID:a-055424A4\n@RG\tID:a-3A2CCEF5\n@PG\tID:p1\n@PG\tID:p2\tPP:p1\n@CO\ta b\n",
          "");
    struct joined j = join_as(&in, true);
    assert_string_equal(j.remaps[0].group, "a");
    assert_string_equal(j.remaps[1].group, "a");
    forget(&j);
    in = (struct inputs){.opt = in.opt, .texts = {bare, a_text}, .paths = {"n", "a.sam"}};
    check(&in, HD C1 "@RG\tID:n\n@RG\tID:a\n@PG\tID:p1\n@PG\tID:p2\tPP:p1\n@CO\ta b\n", "");
}

static void test_name_of_a_group_is_that_of_another_file(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        {"nr.cram.sam", "nr.cram"}, {"d.e/x.bam.bam", "x.bam"}, {"/noext", "noext"}, {"./d.sam.gz", "d.sam.gz"}, {"-", "-"},
        {"z.sam##idx##z.sam.bai", "z.sam##idx##z.sam.bai"}, {"x.cram", "x"}, {"m", "m"},
    };
    for (size_t i = 0; i < N_OF(names); i++) {
        struct inputs in = {.opt = {.groups_by_file = true}, .texts = {HD}, .paths = {names[i][0]}};
        struct joined j = join_as(&in, true);
        assert_string_equal(j.remaps[0].group, names[i][1]);
        forget(&j);
    }
}

static void test_file_whose_name_no_line_holds_is_a_group(void **state)
{
    (void)state;
    static const struct header_join_options options = {.groups_by_file = true};
    static const char *const names[] = {"a\tb.bam", "a\nb.bam"};
    for (size_t i = 0; i < N_OF(names); i++) {
        struct header_join *join = header_join_new(&options);
        struct record_remap remap;
        struct latch latch = {0};
        sam_hdr_t *sam = header_of(HD, true);
        assert_int_equal(header_join_add(join, sam, names[i], &remap, &latch), -1);
        assert_non_null(strstr(latch.message, "cannot be that of a read group"));
        record_remap_free(&remap);
        sam_hdr_destroy(sam);
        header_join_free(join);
    }
}

/* ---- @HD, @CO, and missing lines ---- */

static void test_line_hd_is_not_the_first_one_found(void **state)
{
    (void)state;
    struct inputs in = {.texts = {C1, "@HD\tVN:1.5\tGO:none\n" C1, HD C1}};
    check(&in, "@HD\tVN:1.5\tGO:none\n" C1, "");
    in.first = "@HD\tVN:1.3\n";
    check(&in, "@HD\tVN:1.3\n" C1, "");
}

static void test_headers_without_lines_fail(void **state)
{
    (void)state;
    static const struct inputs none = {.texts = {"", "", ""}}, few = {.texts = {"", "@CO\tx\n", HD}};
    check(&none, "", "an @HD line");
    check(&few, HD "@CO\tx\n", "");
}

static void test_comments_are_lost_or_joined(void **state)
{
    (void)state;
    static const struct inputs in = {.texts = {HD "@CO\tx\n@CO\t\n@RG\tID:g\n@CO\tx\n", "@CO\t@RG\tID:x\n"}};
    check(&in, HD "@RG\tID:g\n@CO\tx\n@CO\t\n@CO\tx\n@CO\t@RG\tID:x\n", "");
}

/* ---- @SQ ---- */

static void check_ids(const struct joined *j, int i, const int32_t *ids, int n)
{
    assert_true(!ids == !j->remaps[i].ref_ids);
    for (int k = 0; ids && k < n; k++)
        assert_int_equal(j->remaps[i].ref_ids[k], ids[k]);
}

static void test_other_order_of_references_passes_for_sorted(void **state)
{
    (void)state;
    static const char first[] = "@HD\tVN:1.6\tSS:coordinate:x\tSO:coordinate\tGO:none\tab:c\n" C1 C2;
    struct inputs in = {.opt = {.by_coordinate = true}, .texts = {first, C2 C1, C1 C2, C2 C1}};
    static const int32_t turned[] = {1, 0};
    check(&in, "@HD\tVN:1.6\tSO:unsorted\tab:c\n" C1 C2, "b.bam: the order of its references differs");
    struct joined j = join_as(&in, true);
    check_ids(&j, 0, NULL, 0);
    check_ids(&j, 1, turned, 2);
    check_ids(&j, 2, NULL, 0);
    assert_ptr_equal(j.remaps[3].ref_ids, j.remaps[1].ref_ids);
    assert_null(strstr(j.warnings, "c.cram"));
    assert_non_null(strstr(j.warnings, "d: the order of its references"));
    forget(&j);
    in.opt.by_coordinate = false;
    check(&in, first, "");
    in = (struct inputs){.opt = {.by_coordinate = true}, .texts = {C1 C2, C2 C1}};
    check(&in, C1 C2, "an @HD line");
    in = (struct inputs){.opt = {.by_coordinate = true}, .first = C2 C1, .texts = {HD C1, C2}};
    check(&in, HD C2 C1, "");
    in.texts[0] = HD C1 C2;
    check(&in, "@HD\tVN:1.6\tSO:unsorted\n" C2 C1, "a.sam: the order of its references");
}

/* The first line of a name is kept, with any others. */
static void test_line_of_a_reference_is_not_the_first_one(void **state)
{
    (void)state;
    static const struct inputs in = {
        .opt = {.by_coordinate = true},
        .texts = {HD C1, "@SQ\tSN:c0\tLN:7\n@SQ\tSN:c1\tLN:999\tM5:x\n" C2, "@SQ\tSN:c2\tLN:5\n", C1 "@SQ\tSN:c0\tLN:7\n"},
    };
    static const int32_t of_b[] = {1, 0, 2}, of_c[] = {2};
    check(&in, "@HD\tVN:1.6\tSO:unsorted\n" C1 "@SQ\tSN:c0\tLN:7\n" C2, "b.bam: the order of its references");
    struct joined j = join_as(&in, true);
    check_ids(&j, 1, of_b, 3);
    check_ids(&j, 2, of_c, 1);
    check_ids(&j, 3, NULL, 0);
    assert_true(plain_header_is(j.sam));
    forget(&j);
}

static void test_other_name_of_a_reference_is_another_reference(void **state)
{
    (void)state;
    static const char other[] = HD "@SQ\tSN:c9\tLN:1000\tAN:c2,c3\n@SQ\tSN:c8\tLN:7\n";
    static const char own[] = HD "@SQ\tSN:c2\tLN:999\n@SQ\tSN:c3\tLN:7\tAN:c4\n@SQ\tSN:c4\tLN:5\n";
    static const struct inputs first = {.texts = {other, own}}, last = {.texts = {own, other}};
    static const int32_t of_own[] = {0, 0, 2}, of_own_first[] = {0, 1, 1}, of_other[] = {2, 3};
    check(&first, HD "@SQ\tSN:c9\tLN:1000\tAN:c2,c3\n@SQ\tSN:c8\tLN:7\n@SQ\tSN:c4\tLN:5\n", "");
    check(&last, HD "@SQ\tSN:c2\tLN:999\n@SQ\tSN:c3\tLN:7\tAN:c4\n@SQ\tSN:c9\tLN:1000\tAN:c2,c3\n@SQ\tSN:c8\tLN:7\n", "");
    struct joined j = join_as(&first, true);
    check_ids(&j, 1, of_own, 3);
    forget(&j);
    j = join_as(&last, true);
    check_ids(&j, 0, of_own_first, 3);
    check_ids(&j, 1, of_other, 2);
    forget(&j);
}

/* The list after a BAM header's text may have references that the text lacks. */
static void test_references_without_lines_are_lost(void **state)
{
    (void)state;
    static const struct inputs in = {.texts = {HD C1 C2}};
    struct joined j = {.join = header_join_new(&in.opt)};
    struct latch latch = {0};
    sam_hdr_t *sam = sam_hdr_init();
    MUST(j.join && sam);
    sam->n_targets = 1;
    sam->target_name = calloc(1, sizeof *sam->target_name);
    sam->target_len = calloc(1, sizeof *sam->target_len);
    sam->target_name[0] = strdup("c2");
    sam->target_len[0] = 1000;
    MUST(sam_hdr_count_lines(sam, "SQ") == 1);
    assert_int_equal(header_join_add(j.join, sam, "a", &j.remaps[0], &latch), 0);
    add(&j, HD C1 C2, "b", &j.remaps[1], true);
    j.sam = header_join_end(j.join, &latch);
    check_text(&j, HD C2 C1);
    sam_hdr_destroy(sam);
    forget(&j);
}

/* Random lines against maps made by name. */
static void test_numbers_of_many_references_are_mixed_up(void **state)
{
    (void)state;
    enum { N = 40, ROUNDS = 400 };
    uint64_t seed = 5;
    for (int round = 0; round < ROUNDS; round++) {
        struct joined j = {.join = header_join_new(&(struct header_join_options){.seed = 1})};
        struct latch latch = {0};
        sam_hdr_t *sams[INPUTS_MOST];
        for (int i = 0; i < INPUTS_MOST; i++) {
            char text[N * 40] = "@HD\tVN:1.6\n";
            uint32_t step = unit_below(&seed, 3) ? 1 : 7, at = unit_below(&seed, 3), n = 1 + unit_below(&seed, N - 1);
            for (uint32_t k = 0; k < n; k++, at = (at + step) % N)
                sprintf(text + strlen(text), "@SQ\tSN:c%u\tLN:%u\n", at, 5 + unit_below(&seed, 20) / 19);
            sams[i] = header_of(text, unit_below(&seed, 4));
            MUST(header_join_add(j.join, sams[i], "a", &j.remaps[i], &latch) == 0);
        }
        MUST((j.sam = header_join_end(j.join, &latch)));
        for (int i = 0; i < INPUTS_MOST; i++) {
            for (int k = 0; k < sam_hdr_nref(sams[i]); k++)
                assert_string_equal(sam_hdr_tid2name(j.sam, j.remaps[i].ref_ids ? j.remaps[i].ref_ids[k] : k),
                                    sam_hdr_tid2name(sams[i], k));
            sam_hdr_destroy(sams[i]);
        }
        forget(&j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_line_of_an_id_that_is_taken_keeps_it),
        cmocka_unit_test(test_lines_of_one_id_are_not_joined),
        cmocka_unit_test(test_other_seed_gives_the_same_ids),
        cmocka_unit_test(test_new_id_is_taken_already),
        cmocka_unit_test(test_id_twice_in_one_header_clashes_not),
        cmocka_unit_test(test_field_that_names_no_program_is_changed_or_not_told),
        cmocka_unit_test(test_fields_in_another_order_are_changed_wrongly),
        cmocka_unit_test(test_group_by_file_keeps_another_id),
        cmocka_unit_test(test_files_of_one_name_are_several_groups),
        cmocka_unit_test(test_name_of_a_group_is_that_of_another_file),
        cmocka_unit_test(test_file_whose_name_no_line_holds_is_a_group),
        cmocka_unit_test(test_line_hd_is_not_the_first_one_found),
        cmocka_unit_test(test_headers_without_lines_fail),
        cmocka_unit_test(test_comments_are_lost_or_joined),
        cmocka_unit_test(test_other_order_of_references_passes_for_sorted),
        cmocka_unit_test(test_line_of_a_reference_is_not_the_first_one),
        cmocka_unit_test(test_other_name_of_a_reference_is_another_reference),
        cmocka_unit_test(test_references_without_lines_are_lost),
        cmocka_unit_test(test_numbers_of_many_references_are_mixed_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
