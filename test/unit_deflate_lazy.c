/* SPDX-License-Identifier: MIT */
/* What the lazy parser chooses for a block, and what it makes of qualities of many levels. Promises on sizes do not
 * tell one choice from another, which differ by speed and a percent. */
#include "parser_blocks.h"
#include "codec/deflate_lazy.c"

static bool matched[PARSE_MAX];   /* bytes in which a match has been put */
static struct noise_effort effort;
static uint64_t seed;

static uint32_t rnd(uint32_t below) { return unit_below(&seed, below); }

static struct tuning tuning_of(struct record_kind kind)
{
    uint32_t n = make_block(kind);
    return tune(in, n);
}

/* Eighths of a bit that a match costs, as deflate_noise.h says. */
static uint32_t price(uint32_t len, uint32_t dist)
{
    static const uint32_t of_len[] = {36, 36, 40, 44, 48, 52, 56, 60, 60, 60, 60, 64, 64};
    return of_len[min_u32(len, 16) - 4] + 8 * log2_floor(dist);
}

/* RFC 1951 section 3.2.5: 1 to 4, then two symbols for each number of extra bits. */
static uint32_t dist_of(const struct seq *s)
{
    uint32_t sym = s->dist_sym;
    return sym < 4 ? sym + 1 : ((2 + (sym & 1)) << (sym / 2 - 1)) + 1 + s->dist_rest;
}

/* Sequences and literals are data[p->anchor]. Returns what those of bytes from `from` on cost. */
static uint32_t check_parsed(const struct parse *p, uint32_t from)
{
    uint32_t at = 0, lit = 0, cost = 0;
    memset(matched, false, sizeof matched);
    for (const struct seq *s = parsed.seq; s < parsed.seq + parsed.n_seqs; s++) {
        assert_in_range(s->lits, 0, p->anchor - at);
        assert_memory_equal(parsed.lit + lit, p->in + at, s->lits);
        for (uint32_t i = 0; i < s->lits; i++, at++, lit++)
            cost += at >= from ? effort.literal : 0;
        if (s->len == 0)
            continue;
        uint32_t dist = dist_of(s);
        assert_in_range(at, 0, p->last - 1);
        assert_in_range(s->len, MIN_MATCH, min_u32(MAX_MATCH, p->n - at));
        assert_in_range(dist, 1, min_u32(MAX_DIST, at));
        assert_memory_equal(p->in + at, p->in + at - dist, s->len);
        cost += at >= from ? price(s->len, dist) : 0;
        memset(matched + at, true, s->len);
        at += s->len;
    }
    assert_int_equal(at, p->anchor);
    assert_int_equal(lit, parsed.n_lits);
    return cost;
}

/* ---- what is chosen ---- */

static void test_qualities_of_40_levels_are_searched_with_the_rest(void **state)
{
    (void)state;
    struct tuning t = tuning_of((struct record_kind){.len = 101, .levels = 40, .step = 4, .tags = TAGS_ALIGNER});
    assert_true(t.noisy && t.quals_apart && t.deep && !t.two_steps);
    t = tuning_of((struct record_kind){.len = 76, .levels = 40, .stay = 1, .tags = TAGS_ALIGNER, .mates = true});
    assert_true(t.noisy && t.quals_apart);         /* small steps, though more pairs of bytes are the same */
    t = tuning_of((struct record_kind){.len = 150, .levels = 40, .step = 4, .tags = TAGS_ALIGNER});
    assert_true(t.noisy && t.quals_apart && !t.deep && !t.two_steps);
    t = tuning_of((struct record_kind){.len = 101, .levels = 40, .tags = TAGS_ALIGNER, .mates = true});
    assert_true(t.noisy && t.quals_apart && !t.deep && !t.two_steps);
}

static void test_others_are_searched_apart(void **state)
{
    (void)state;
    struct record_kind copies = {.len = 100, .levels = 40, .copies = 4, .tags = TAGS_ALIGNER};
    struct tuning t = tuning_of(copies);           /* a long match takes a copy whole */
    assert_true(t.noisy && !t.quals_apart && t.two_steps && !t.deep);
    t = tuning_of((struct record_kind){.len = 150, .levels = 4, .step = 5, .tags = TAGS_ALIGNER});
    assert_true(!t.noisy && !t.quals_apart && t.two_steps && t.deep);
}

static void test_qualities_in_oq_are_searched_as_those_of_the_read(void **state)
{
    (void)state;
    struct record_kind kind = {.len = 150, .levels = 40, .stay = 1, .step = 5, .tags = TAGS_ALIGNER | TAGS_OQ_STEPS};
    struct parse p = begin(&parsed, in, make_block(kind));
    assert_true(has_oq_in_steps(&p));
    kind.tags = TAGS_ALIGNER;
    p = begin(&parsed, in, make_block(kind));
    assert_false(has_oq_in_steps(&p));
}

static void test_text_is_taken_for_records(void **state)
{
    (void)state;
    uint32_t n = 0;
    for (seed = 2; n + 200 < BLOCK;) {
        uint32_t at = rnd(9999), chr = rnd(20), name = rnd(1000000);
        n += (uint32_t)sprintf((char *)in + n, "read%u\t99\tchr%u\t%u\t60\t100M\t", name, chr, at);
        for (uint32_t i = 0; i < 100; i++)
            in[n++] = (uint8_t)('!' + rnd(90));
        in[n++] = '\n';
    }
    struct tuning t = tune(in, n);
    assert_true(t.sparse_len > 0 && t.two_steps && !t.quals_apart && !t.noisy);
    in[SAMPLE_STRIDE * 3] = 0;                     /* BAM has such everywhere */
    assert_int_equal(tune(in, n).sparse_len, 0);
}

static const struct record_kind genome_75 = {.len = 75, .levels = 4, .step = 2, .tags = TAGS_ALIGNER};
static const struct record_kind cells = {.len = 91, .levels = 4, .places = 300, .tags = TAGS_ALIGNER | TAGS_CELL};
static const struct record_kind methyl = {.len = 75, .levels = 4, .tags = TAGS_ALIGNER | TAGS_METHYL, .mates = true};
static const struct record_kind secondary = {.len = 100, .levels = 4, .copies = 4, .tags = TAGS_ALIGNER};

/* What `parsed` holds then is the trial's, but for LAZILY. */
static enum way way_of(struct record_kind kind, struct tuning *t)
{
    uint32_t n = make_block(kind);
    struct parse p = begin(&parsed, in, n);
    *t = tune(in, n);
    return parse_older(&parsed, &p, t);
}

static void test_every_block_goes_deeply_after_its_trial(void **state)
{
    (void)state;
    struct tuning t;
    assert_int_equal(way_of(genome_75, &t), DEEPLY);
    assert_true(t.shallow);
    assert_int_equal(way_of(cells, &t), DEEPLY_ON);
    assert_true(t.shallow);
    assert_int_equal(way_of(secondary, &t), DEEPLY);      /* though little loss is expected */
    assert_false(t.shallow);
    assert_int_equal(way_of(methyl, &t), LAZILY);
    parsed.n_segments = TRIAL;
    struct trial trial = look_at(&parsed, TRIAL - 1);                /* a rule would have it deeply */
    assert_true(is_misled(&trial, &t) || is_misled_a_little(&trial, &t));
}

/* How many sequences of the trial are in the block. */
static uint32_t trial_kept(struct record_kind kind, enum way way)
{
    static struct seq trial[MAX_SEQS];
    struct tuning t;
    assert_int_equal(way_of(kind, &t), way);
    uint32_t n_seqs = parsed.n_seqs, same = 0, n = make_block(kind);
    memcpy(trial, parsed.seq, n_seqs * sizeof *trial);
    struct parse p = begin(&parsed, in, n);
    deflate_lazy(&parsed, &p, false);
    check_parsed(&p, 0);
    assert_in_range(p.anchor, n - MARGIN - MAX_MATCH, n);
    assert_int_equal(parsed.n_segments, (n - MARGIN + SEGMENT - 1) / SEGMENT);
    while (same < n_seqs && memcmp(&trial[same], &parsed.seq[same], sizeof *trial) == 0)
        same++;
    return same * 100 / n_seqs;
}

static void test_deep_search_goes_on_where_the_trial_begins(void **state)
{
    (void)state;
    assert_int_equal(trial_kept(cells, DEEPLY_ON), 100);
    assert_in_range(trial_kept(genome_75, DEEPLY), 0, 20);
}

/* ---- what that does ---- */

/* Fewer bytes than a trial of deflate_deep() needs. */
enum { SMALL = (TRIAL - 1) * SEGMENT };

static void test_qualities_apart_cost_no_less(void **state)
{
    (void)state;
    for (uint32_t len = 101; len <= 150; len += 49) {
        uint32_t n = make_block((struct record_kind){.len = len, .levels = 40, .step = 4, .tags = TAGS_ALIGNER});
        struct tuning t = tune(in, n);
        t.quals_apart = false;
        struct parse p = begin(&parsed, in, SMALL);
        parse_older(&parsed, &p, &t);
        uint32_t lazily = check_parsed(&p, 0);
        p = begin(&parsed, in, SMALL);
        deflate_lazy(&parsed, &p, false);
        assert_in_range(check_parsed(&p, 0), lazily / 2, lazily - lazily / 250);
    }
}

/* Records with the SEQ of the 12th before them, which no sample tells, and qualities that nothing tells. in_turn: they
 * lie at two places in turn, as in template order. Returns how many of a hundred bytes of SEQ are matched. */
static uint32_t seq_matched(bool in_turn)
{
    enum { LEN = 200, BACK = 12, SEQ = BAM_FIXED + 12 + 4, SIZE = SEQ + LEN / 2 + LEN };
    uint32_t n = 0, found = 0, all = 0;
    seed = 3;
    for (uint32_t k = 0; n + SIZE <= SMALL; k++, n += SIZE) {
        uint8_t *r = memset(in + n, 0, SIZE), *seq = r + SEQ;
        store_le32(r, SIZE - 4);
        store_le32(r + 8, 2000 + 2 * k + (in_turn && k % 2 ? 50000 : 0));
        r[12] = 12;
        store_le16(r + 16, 1);
        store_le32(r + 20, LEN);
        store_le32(seq - 4, rnd(1 << 28) << 4);      /* no match of what is before goes on here */
        snprintf((char *)r + BAM_FIXED, 12, "q%07u", rnd(10000000));
        for (uint32_t i = 0; i < LEN / 2; i++)       /* never TG or CA */
            seq[i] = k < BACK ? (uint8_t)(0x10 << 2 * rnd(2) | 1 << rnd(4)) : *(seq + i - BACK * SIZE);
        for (uint32_t i = 0; i < LEN; i++)
            seq[LEN / 2 + i] = (uint8_t)(2 + rnd(90));
    }
    struct parse p = begin(&parsed, in, n);
    assert_true(tune(in, n).quals_apart);
    deflate_lazy(&parsed, &p, false);
    check_parsed(&p, 0);
    for (uint32_t at = BACK * SIZE; at < n; at += SIZE)
        for (uint32_t i = 0; i < LEN / 2; i++, all++)
            found += matched[at + SEQ + i];
    return found * 100 / all;
}

static void test_seq_in_template_order_is_searched_by_position(void **state)
{
    (void)state;
    assert_in_range(seq_matched(true), 90, 100);
    assert_in_range(seq_matched(false), 0, 10);      /* by position none is found */
}

/* ---- qualities ---- */

/* lits, in_long: percent of all bytes; apart: of all matches. SEQ: percent that became literals. */
static struct noise_effort chosen(uint32_t lits, uint32_t apart, uint32_t in_long, uint32_t seq, bool *stays)
{
    const struct tuning tuning = {.dense_len = 32, .noisy = true, .quals_apart = true};
    const struct trial trial = {.bytes = 20000, .lits = 200 * lits, .seqs = 1000, .apart = 10 * apart,
                                .in_long = 200 * in_long, .same = 2, .pairs = 100};
    const struct reads reads = {.seq_bytes = 1000, .seq_lits = 10 * seq};
    struct noise_effort e = {0};
    *stays = choose_effort(&trial, &tuning, &reads, false, &e);
    return e;
}

static void test_trial_tells_how_many_positions_are_looked_at(void **state)
{
    (void)state;
    bool stays;
    assert_int_equal(chosen(28, 38, 2, 88, &stays).depth, 4);      /* low coverage */
    assert_true(stays);
    assert_int_equal(chosen(13, 49, 13, 8, &stays).depth, 8);      /* UMIs */
    assert_true(stays);
    assert_int_equal(chosen(26, 62, 9, 45, &stays).depth, 2);      /* random steps */
    assert_true(stays);
    assert_int_equal(chosen(18, 66, 6, 10, &stays).depth, 4);      /* of 76 bases */
    assert_true(stays);
    chosen(17, 43, 15, 40, &stays);                                /* RNA */
    assert_false(stays);
    chosen(11, 42, 37, 14, &stays);                                /* single cell */
    assert_false(stays);
    chosen(12, 43, 14, 12, &stays);                                /* few bases */
    assert_false(stays);
    chosen(8, 42, 40, 3, &stays);                                  /* amplicons */
    assert_false(stays);
    chosen(28, 50, 4, 83, &stays);                                 /* UMIs at low coverage */
    assert_false(stays);
    chosen(28, 41, 1, 85, &stays);                                 /* that without UMIs */
    assert_true(stays);
    chosen(30, 50, 4, 89, &stays);                                 /* of which too little is known */
    assert_true(stays);
}

static bool looked_at[PARSE_MAX];                    /* positions that match_noise() has seen */
static const struct noise_effort efforts[] = {
    {.depth = 2, .literal = 40}, {.depth = 4, .literal = 40}, {.depth = 4, .literal = 56}, {.depth = 8, .literal = 48},
};
static uint32_t n_begun;

static void match_quals(struct parse *p, uint32_t from, uint32_t to)
{
    match_noise(&parsed, p, from, to, effort);
    memset(looked_at + from, true, to - from);
}

/* Each effort has its turn. */
static struct parse begin_quals(const uint8_t *data, uint32_t n)
{
    effort = efforts[n_begun++ % 4];
    noise_begin(&parsed.noise);
    noise_deepen(&parsed.noise);
    memset(looked_at, false, sizeof looked_at);
    return begin(&parsed, data, n);
}

struct choice {
    uint32_t len, dist;
};

/* The longest match at `at` with one of the last ones that begin with the same four bytes, of equals the nearer. */
static struct choice longest(uint32_t at)
{
    struct choice best = {0};
    for (uint32_t c = at, ways = effort.depth; c-- > 0 && ways > 0;) {
        if (!looked_at[c] || memcmp(in + c, in + at, MIN_MATCH) != 0)
            continue;
        uint32_t len = agree16(in + at, in + c);
        if (len > best.len)
            best = (struct choice){len, at - c};
        ways--;
    }
    return best;
}

/* What n qualities cost at least: all parses are tried. */
static uint32_t cheapest(const struct choice *c, uint32_t n)
{
    if (n == 0)
        return 0;
    uint32_t literal = effort.literal + cheapest(c + 1, n - 1), len = min_u32(c->len, n);
    return len ? min_u32(literal, price(c->len, c->dist) + cheapest(c + len, n - len)) : literal;
}

/* Qualities whose snippets were there before, here and there. */
static void test_parse_of_qualities_is_not_the_cheapest(void **state)
{
    (void)state;
    enum { LEN = 30, SNIPPETS = 9 };
    uint32_t with_matches = 0, as_cheap = 0;
    for (seed = 10; seed < 510; seed++) {
        uint64_t keep = seed;
        uint32_t at = 100, n = 40000;
        uint8_t quality[LEN];
        struct choice choices[LEN];
        unit_fill(&seed, in, n);
        unit_fill(&seed, quality, LEN);
        struct parse p = begin_quals(in, n);
        for (uint32_t k = 0; k < SNIPPETS; k++) {
            uint32_t from = rnd(LEN - 4), len = min_u32(4 + rnd(9), LEN - from);
            memcpy(in + at, quality + from, len);
            match_quals(&p, at, at + len);
            at += len + 20 + rnd(k % 3 ? 100 : 5000);
        }
        memcpy(in + at, quality, LEN);
        memset(looked_at + at, true, LEN);
        for (uint32_t i = 0; i < LEN; i++)
            choices[i] = longest(at + i);
        match_quals(&p, at, at + LEN);
        uint32_t cost = check_parsed(&p, at) + (at + LEN - min_u32(max_u32(p.anchor, at), at + LEN)) * effort.literal;
        as_cheap += cost == cheapest(choices, LEN);             /* else two positions share a slot */
        with_matches += cost < LEN * effort.literal;
        seed = keep;
    }
    assert_in_range(with_matches, 400, 500);
    assert_in_range(as_cheap, 480, 500);
}

/* Twelve qualities, then their first four a few times, then the twelve once more. */
static void test_older_qualities_than_it_keeps_are_matched(void **state)
{
    (void)state;
    enum { AT = 100, LEN = 12, GAP = 40, N = 4000 };
    for (uint32_t k = 0; k < 4 * 10; k++) {
        uint32_t between = k / 4, last = AT + (between + 1) * GAP;
        seed = 900 + k;
        unit_fill(&seed, in, N);
        struct parse p = begin_quals(in, N);
        for (uint32_t i = 1; i <= between; i++)
            memcpy(in + AT + i * GAP, in + AT, MIN_MATCH);
        memcpy(in + last, in + AT, LEN);
        for (uint32_t at = AT; at <= last; at += GAP)
            match_quals(&p, at, at + LEN);
        check_parsed(&p, 0);
        bool whole = parsed.n_seqs > 0 && parsed.seq[parsed.n_seqs - 1].len == LEN;
        assert_int_equal(whole, between < effort.depth);
    }
}

static void test_match_of_qualities_reaches_beyond_the_window(void **state)
{
    (void)state;
    enum { AT = 200, LEN = 12 };
    seed = 4;
    for (uint32_t dist = MAX_DIST - 1; dist <= MAX_DIST + 2; dist++) {
        unit_fill(&seed, in, sizeof in);
        memcpy(in + AT + dist, in + AT, LEN);
        struct parse p = begin_quals(in, sizeof in);
        match_quals(&p, AT, AT + LEN);
        match_quals(&p, AT + dist, AT + dist + LEN);
        check_parsed(&p, 0);
        assert_int_equal(p.anchor, dist <= MAX_DIST ? AT + dist + LEN : 0);
    }
}

/* Few letters, and runs: matches everywhere, short and long. The input ends where its memory does. */
static void test_match_of_qualities_reaches_beyond_the_input(void **state)
{
    (void)state;
    for (seed = 1000; seed < 1400; seed++) {
        uint32_t n = FIRST + MARGIN + 1 + rnd(2500), run = rnd(4) ? 2 : 2000;
        for (uint32_t i = 0; i < n; i++)
            in[i] = i > 0 && rnd(run) ? in[i - 1] : (uint8_t)rnd(3);
        uint8_t *exact = exact_copy(in, n);
        struct parse p = begin_quals(exact, n);
        match_quals(&p, FIRST, n);
        check_parsed(&p, 0);
        free(exact);
    }
}

/* Fields, longer than what is parsed at once or not: matches begin in them only, and a match that goes on behind its
 * field is put once. */
static void test_fields_of_qualities_follow_each_other_wrongly(void **state)
{
    (void)state;
    enum { N = 20000 };
    for (seed = 2000; seed < 2100; seed++) {
        for (uint32_t i = 0; i < N; i++)
            in[i] = i > 400 && rnd(30) ? in[i - 400] : (uint8_t)rnd(4);
        struct parse p = begin_quals(in, N);
        for (uint32_t from = FIRST, to; from < N; from = to + rnd(50)) {
            to = min_u32(from + 1 + rnd(rnd(3) ? 150 : 2000), N);
            match_quals(&p, from, to);
        }
        check_parsed(&p, 0);
        for (uint32_t i = 1, in_match = 0; i < N; i++) {
            in_match = matched[i] && (in_match || looked_at[i]);
            assert_true(in_match || !matched[i]);
        }
    }
}

/* What comes again in the next thing parsed at once. */
static void test_qualities_of_the_piece_before_are_forgotten(void **state)
{
    (void)state;
    enum { AT = 100, HALF = 700, N = AT + 2 * HALF + 100 };
    seed = 5;
    unit_fill(&seed, in, N);
    memcpy(in + AT + HALF, in + AT, HALF);
    struct parse p = begin_quals(in, N);
    match_quals(&p, AT, AT + 2 * HALF);
    check_parsed(&p, 0);
    uint32_t found = 0;
    for (uint32_t i = 0; i < HALF; i++) {
        assert_false(matched[AT + i]);
        found += matched[AT + HALF + i];
    }
    assert_in_range(found, HALF - 3, HALF);
    assert_int_equal(parsed.n_seqs, (HALF + MAX_MATCH - 1) / MAX_MATCH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_qualities_of_40_levels_are_searched_with_the_rest),
        cmocka_unit_test(test_others_are_searched_apart),
        cmocka_unit_test(test_qualities_in_oq_are_searched_as_those_of_the_read),
        cmocka_unit_test(test_text_is_taken_for_records),
        cmocka_unit_test(test_every_block_goes_deeply_after_its_trial),
        cmocka_unit_test(test_deep_search_goes_on_where_the_trial_begins),
        cmocka_unit_test(test_qualities_apart_cost_no_less),
        cmocka_unit_test(test_seq_in_template_order_is_searched_by_position),
        cmocka_unit_test(test_trial_tells_how_many_positions_are_looked_at),
        cmocka_unit_test(test_parse_of_qualities_is_not_the_cheapest),
        cmocka_unit_test(test_older_qualities_than_it_keeps_are_matched),
        cmocka_unit_test(test_match_of_qualities_reaches_beyond_the_window),
        cmocka_unit_test(test_match_of_qualities_reaches_beyond_the_input),
        cmocka_unit_test(test_fields_of_qualities_follow_each_other_wrongly),
        cmocka_unit_test(test_qualities_of_the_piece_before_are_forgotten),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
