/* SPDX-License-Identifier: MIT */
/* The parse in lanes: vector and scalar code choose the same, what they choose is in the block, and costs are right. */
#include "parser_blocks.h"
#include "codec/deflate_lanes.c"

static struct deflate_parse other;
static uint64_t seed;

static uint32_t rnd(uint32_t below) { return unit_below(&seed, below); }

/* RFC 1951 section 3.2.5: 1 to 4, then two symbols for each number of extra bits. */
static uint32_t dist_of(const struct seq *s)
{
    uint32_t sym = s->dist_sym;
    return sym < 4 ? sym + 1 : ((2 + (sym & 1)) << (sym / 2 - 1)) + 1 + s->dist_rest;
}

/* Sequences and literals are data[p->anchor]. Returns how many bytes are literals. */
static uint32_t check_parsed(const struct parse *p)
{
    uint32_t at = 0, lit = 0;
    for (const struct seq *s = parsed.seq; s < parsed.seq + parsed.n_seqs; s++) {
        assert_in_range(s->lits, 0, p->anchor - at);
        assert_memory_equal(parsed.lit + lit, p->in + at, s->lits);
        at += s->lits;
        lit += s->lits;
        assert_in_range(at, 1, p->last - 1);
        assert_in_range(s->len, MIN_MATCH, min_u32(MAX_MATCH, p->n - at));
        assert_in_range(dist_of(s), 1, min_u32(MAX_DIST, at));
        assert_memory_equal(p->in + at, p->in + at - dist_of(s), s->len);
        at += s->len;
    }
    assert_int_equal(at, p->anchor);
    assert_int_equal(lit, parsed.n_lits);
    return lit;
}

/* in[n] by both; returns how many bytes are in no match. */
static uint32_t parse_both(uint32_t n)
{
    uint8_t *exact = exact_copy(in, n);
    struct parse p = begin(&parsed, exact, n), q = begin(&other, exact, n);
    parse_older(&parsed, &p);
    if (cpu_is_newer())
        parse_newer(&other, &q);
    else
        parse_older(&other, &q);
    uint32_t lits = check_parsed(&p);
    assert_int_equal(p.anchor, q.anchor);
    assert_int_equal(parsed.n_seqs, other.n_seqs);
    assert_memory_equal(parsed.seq, other.seq, parsed.n_seqs * sizeof *parsed.seq);
    assert_int_equal(parsed.n_segments, other.n_segments);
    free(exact);
    return lits + n - p.anchor;
}

static void test_vector_and_scalar_choose_the_same_of_records(void **state)
{
    (void)state;
    for (size_t k = 0; k < N_OF(record_kinds); k++) {
        uint32_t n = make_block(record_kinds[k]);
        parse_both(n);
        parse_both(n / 3);         /* one part */
    }
}

/* Random pieces, runs, and copies of what was before. */
static void fill_with_pieces(uint32_t n)
{
    for (uint32_t at = 0; at < n;) {
        uint32_t len = min_u32(1 + rnd(rnd(3) ? 40 : 3000), n - at), kind = rnd(4), low = rnd(200), span = 1 + rnd(50);
        uint32_t dist = at ? 1 + rnd(rnd(3) ? min_u32(at, 300) : at) : 0;
        for (uint32_t i = 0; i < len; i++)
            in[at + i] = kind > 1 && dist ? in[at + i - dist] : (uint8_t)(kind ? low + rnd(span) : rnd(256));
        at += len;
    }
}

static void test_vector_and_scalar_choose_the_same_of_any_bytes(void **state)
{
    (void)state;
    for (seed = 1; seed < 300; seed++) {
        uint64_t keep = seed;
        uint32_t n = FIRST + MARGIN + 1 + rnd(seed % 16 ? 3000 : PARSE_MAX - FIRST - MARGIN);
        fill_with_pieces(n);
        parse_both(n);
        seed = keep;
    }
}

static void test_sizes_of_all_remainders_are_parsed(void **state)
{
    (void)state;
    seed = 7;
    fill_with_pieces(PARSE_MAX);
    for (uint32_t n = FIRST + MARGIN + 1; n < 1200; n += 1 + n / 90)
        parse_both(n);
    for (uint32_t n = LANES_PART; n < PARSE_MAX; n += 5003)
        parse_both(n);
    parse_both(PARSE_MAX);
}

/* Literals of eight bits in all of the block: costs are the largest there are. */
static void test_costs_of_random_bytes_fit(void **state)
{
    (void)state;
    seed = 3;
    unit_fill(&seed, in, PARSE_MAX);
    assert_in_range(parse_both(PARSE_MAX), PARSE_MAX - MARGIN - 4096, PARSE_MAX);
    memset(in, 'A', PARSE_MAX);
    for (uint32_t i = 0; i < 300; i++)
        in[rnd(PARSE_MAX)] = (uint8_t)rnd(256);
    assert_in_range(parse_both(PARSE_MAX), 0, 3000);
}

/* A copy whose first positions each find a newer text, of eight bytes. Only its last ones find all of it. */
static void test_match_is_carried_back_from_where_it_is_found(void **state)
{
    (void)state;
    enum { TEXT = 400, N = 4000, COPY = 3000, LEN = 14, NEWER_TEXTS = 6 };
    seed = 5;
    unit_fill(&seed, in, N);
    memcpy(in + COPY, in + TEXT, LEN);
    for (uint32_t k = 0; k < NEWER_TEXTS; k++)
        memcpy(in + 1000 + 40 * k, in + TEXT + k, 8);
    parse_both(N);
    uint32_t at = 0, found = 0;
    for (const struct seq *s = parsed.seq; s < parsed.seq + parsed.n_seqs; s++) {
        at += s->lits;
        if (at == COPY && s->len == LEN)
            found = dist_of(s);
        at += s->len;
    }
    assert_int_equal(found, COPY - TEXT);
}

static void test_no_match_reaches_beyond_the_window(void **state)
{
    (void)state;
    enum { LEN = 300 };
    for (uint32_t dist = MAX_DIST - 1; dist <= MAX_DIST + 2; dist++) {
        seed = dist;
        unit_fill(&seed, in, PARSE_MAX);
        memcpy(in + 500 + dist, in + 500, LEN);
        uint32_t lits = parse_both(PARSE_MAX);     /* sequences are checked there */
        assert_in_range(lits, dist <= MAX_DIST ? PARSE_MAX - LEN - 50 : PARSE_MAX - 50, PARSE_MAX);
        assert_true(dist > MAX_DIST || lits < PARSE_MAX - LEN + 50);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vector_and_scalar_choose_the_same_of_records),
        cmocka_unit_test(test_vector_and_scalar_choose_the_same_of_any_bytes),
        cmocka_unit_test(test_sizes_of_all_remainders_are_parsed),
        cmocka_unit_test(test_costs_of_random_bytes_fit),
        cmocka_unit_test(test_match_is_carried_back_from_where_it_is_found),
        cmocka_unit_test(test_no_match_reaches_beyond_the_window),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
