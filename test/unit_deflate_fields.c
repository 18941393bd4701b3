/* SPDX-License-Identifier: MIT */
/* Which blocks are matched by fields. Sizes do not tell: they differ by a percent. */
#include "parser_blocks.h"
#include "codec/deflate_fields.c"

static bool by_fields(struct record_kind kind)
{
    struct parse p = begin(&parsed, in, make_block(kind));
    bool older = deflate_fields(&parsed, &p, false);
    p = begin(&parsed, in, p.n);
    assert_int_equal(deflate_fields(&parsed, &p, true), older);
    assert_true(older || p.anchor == 0);
    return older;
}

static void test_fields_match_qualities_in_runs(void **state)
{
    (void)state;
    struct record_kind kind = {.len = 150, .levels = 4, .stay = 6, .step = 5, .tags = TAGS_ALIGNER};
    assert_true(by_fields(kind));
    kind.stay = 60;                /* long runs cost nothing */
    assert_false(by_fields(kind));
    kind.stay = 1;
    assert_false(by_fields(kind));
}

static void test_fields_match_long_enough_reads_of_one_length(void **state)
{
    (void)state;
    struct record_kind kind = {.len = 100, .levels = 4, .stay = 6, .step = 5, .tags = TAGS_ALIGNER};
    assert_false(by_fields(kind));
    kind.len = 200;
    assert_true(by_fields(kind));
    kind.varied = true;
    assert_false(by_fields(kind));
    kind.varied = false;
    kind.copies = 4;
    assert_false(by_fields(kind));
    kind.copies = 0;
    kind.places = 1;
    assert_false(by_fields(kind));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields_match_qualities_in_runs),
        cmocka_unit_test(test_fields_match_long_enough_reads_of_one_length),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
