/* SPDX-License-Identifier: MIT */
/* Where fields give up: what becomes of the block, and of what they have done. Promises on sizes do not tell one way
 * from another, which differ by speed and a percent. */
#include "parser_blocks.h"
#include "codec/deflate_fields.c"

static struct deflate_parse expected;

/* Fields give up such a block, as `done` says. deep: how it then goes deeply. */
static void check_given_up(struct record_kind kind, enum done done, const struct tuning *deep)
{
    struct parse p = begin(&expected, in, make_block(kind));
    assert_int_equal(parse_older(&expected, &p), done);
    assert_in_range(p.at, done == DROPPED ? SECOND_TRIAL : TRIAL, SECOND_TRIAL + SEGMENT);
    if (done == DROPPED)
        begin_anew(&expected, &p);
    deflate_deep(&expected, &p, false, deep);
    struct parse q = begin(&parsed, in, p.n);
    deflate_fields(&parsed, &q, false);
    assert_int_equal(q.anchor, p.anchor);
    assert_in_range(q.anchor, q.n - MARGIN - MAX_MATCH, q.n);
    assert_int_equal(parsed.n_seqs, expected.n_seqs);
    assert_memory_equal(parsed.seq, expected.seq, parsed.n_seqs * sizeof *parsed.seq);
    assert_int_equal(parsed.n_lits, expected.n_lits);
    assert_memory_equal(parsed.lit, expected.lit, parsed.n_lits);
    assert_int_equal(parsed.n_segments, expected.n_segments);
}

static void test_deep_search_goes_on_where_fields_give_up(void **state)
{
    (void)state;
    const struct tuning shallow = {.dense_len = MAX_MATCH, .shallow = true};
    check_given_up((struct record_kind){.len = 75, .levels = 4, .step = 2, .tags = TAGS_ALIGNER}, GIVEN_UP, &shallow);
    check_given_up((struct record_kind){.len = 75, .levels = 4, .stay = 40, .places = 30, .tags = TAGS_ALIGNER,
                                        .mates = true}, GIVEN_UP, &shallow);
}

static void test_copies_are_searched_at_full_depth(void **state)
{
    (void)state;
    const struct tuning full = {.dense_len = DENSE_COPIES};
    check_given_up((struct record_kind){.len = 150, .levels = 4, .stay = 40, .step = 1, .places = 3,
                                        .tags = TAGS_ALIGNER}, GIVEN_UP, &full);
}

static void test_what_fields_did_is_dropped_where_tags_are_few(void **state)
{
    (void)state;
    const struct tuning shallow = {.min_gain = 6, .dense_len = MAX_MATCH, .shallow = true};
    check_given_up((struct record_kind){.len = 150, .levels = 8, .places = 20, .mates = true}, DROPPED, &shallow);
}

/* Of literals of which every k-th is the same. */
static int32_t least_gain(uint32_t k)
{
    parsed.n_lits = parsed.n_seqs = 0;
    for (uint32_t i = 0; i < 4096; i++)
        parsed.lit[parsed.n_lits++] = (uint8_t)(i % k);
    struct trial t = look_back(&parsed, (struct mark){0, 0}, (struct mark){parsed.n_seqs, parsed.n_lits});
    return cheap_literals(&t);
}

static void test_match_gains_more_than_cheap_literals(void **state)
{
    (void)state;
    assert_int_equal(least_gain(200), 0);
    assert_in_range(least_gain(24), 1, 5);
    assert_int_equal(least_gain(4), 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_deep_search_goes_on_where_fields_give_up),
        cmocka_unit_test(test_copies_are_searched_at_full_depth),
        cmocka_unit_test(test_what_fields_did_is_dropped_where_tags_are_few),
        cmocka_unit_test(test_match_gains_more_than_cheap_literals),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
