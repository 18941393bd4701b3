/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include "bam/record_search.h"
#include "bam_arena.h"
#include "codec/bgzf_block.h"
#include "base/byte_hash.h"
#include "base/latch.h"
#include "order/coordinate_key.h"
#include "order/sort_key.h"

enum { N_REF = 3, ARENA_SIZE = 64 << 20, MAX_BLOCKS = 4000 };

static struct bam_arena arena, as_new;   /* as_new: arena as bam_arena_init() leaves it */

static int set_up(void **state)
{
    (void)state;
    if (bam_arena_init(&arena, ARENA_SIZE) < 0)
        return -1;
    arena.n_ref = N_REF;
    as_new = arena;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    bam_arena_free(&arena);
    return arena.base != NULL;
}

/* ---- streams of records, and the records that a plain walk must find ---- */

struct stream {
    struct unit_bytes bytes;
    struct unit_bytes starts;            /* uint64_t each */
    size_t n;
};

static uint64_t start_of(const struct stream *s, size_t i)
{
    uint64_t at;
    memcpy(&at, s->starts.data + i * sizeof at, sizeof at);
    return at;
}

/* Call it before a record is appended. */
static void begin_record(struct stream *s)
{
    uint64_t at = s->bytes.n;
    unit_append(&s->starts, &at, sizeof at);
    s->n++;
}

static void add_plain(struct stream *s, uint64_t *seed, size_t n, uint32_t max_seq)
{
    while (n-- > 0) {
        begin_record(s);
        unit_append_plain(&s->bytes, seed, max_seq);
    }
}

static void add_smallest(struct stream *s)
{
    begin_record(s);
    unit_append_smallest(&s->bytes, (int32_t)s->n);
}

/* A record with the bin of nowhere: it must be normalised. */
static void add_wrong_bin(struct stream *s)
{
    static const uint32_t cigar[] = {UNIT_OP(4, UNIT_M)};
    struct unit_record r = {.ref_id = 0, .pos = 7, .bin = 1, .name = "bin", .cigar = cigar,
                            .n_cigar = 1, .seq_len = 4};
    begin_record(s);
    unit_append_record(&s->bytes, &r);
}

/* A record with its CIGAR in the CG tag: it shrinks when it is normalised. */
static void add_cg(struct stream *s)
{
    static const uint32_t fake[] = {UNIT_OP(3, UNIT_S), UNIT_OP(9, UNIT_N)};
    uint8_t tags[] = "CGBI\2\0\0\0....,,,,RGZx";
    store_le32(tags + 8, UNIT_OP(1, UNIT_M));
    store_le32(tags + 12, UNIT_OP(2, UNIT_S));
    struct unit_record r = {.ref_id = 1, .pos = 70, .name = "cg", .cigar = fake, .n_cigar = 2,
                            .seq_len = 3, .aux = tags, .n_aux = sizeof tags};
    begin_record(s);
    unit_append_record(&s->bytes, &r);
}

/* A record with n records in its tags, which look exactly like real ones. */
static void add_record_of_records(struct stream *s, int n)
{
    struct unit_bytes aux = {NULL, 0, 0};
    unit_append(&aux, "XXBC", 4);
    unit_append_le32(&aux, (uint32_t)(n * BAM_MIN_RECORD));
    for (int i = 0; i < n; i++)
        unit_append_smallest(&aux, 1000 + i);
    struct unit_record r = {.ref_id = 1, .pos = 70, .flag = 4, .bin = 4681, .name = "r",
                            .aux = aux.data, .n_aux = aux.n};
    begin_record(s);
    unit_append_record(&s->bytes, &r);
    unit_free(&aux);
}

static void stream_free(struct stream *s)
{
    unit_free(&s->bytes);
    unit_free(&s->starts);
}

/* ---- the arena filled with a stream cut into blocks ---- */

static struct latch latch;
static const struct bam_origin origin = {"in.bam", 4711};

/* The arena empty again, the latch at rest. */
static void start_anew(void)
{
    free(arena.sublists);
    arena = as_new;
    memset(&latch, 0, sizeof latch);
}

/* Puts the stream in and finds its records block by block: the tasks' guesses first, last
 * block first, then acceptance by the main thread in order. cuts[n - 1] is the end. */
static int deliver(const struct stream *s, const size_t *cuts, size_t n)
{
    static struct bam_walk walks[MAX_BLOCKS];
    struct bam_key *keys = must_alloc((s->bytes.n / BAM_MIN_RECORD + n) * sizeof *keys);
    size_t *first = must_alloc(n * sizeof *first), at = 0;
    start_anew();
    memcpy(arena.base, s->bytes.data, s->bytes.n);
    arena.bottom = s->bytes.n;
    for (size_t i = 0; i < n; i++) {
        first[i] = at;
        at += (cuts[i] - (i ? cuts[i - 1] : 0)) / BAM_MIN_RECORD + 1;
    }
    for (size_t i = n; i-- > 0;)
        walks[i] = bam_arena_guess(&arena, i ? cuts[i - 1] : 0, cuts[i], keys + first[i]);
    int result = 0;
    for (size_t i = 0; i < n && result == 0; i++)
        result = bam_arena_accept(&arena, &walks[i], keys + first[i], cuts[i], NULL, &latch, &origin);
    free(keys);
    free(first);
    return result;
}

static int compare_places(const void *a, const void *b)
{
    const struct bam_key *x = a, *y = b;
    return x->place < y->place ? -1 : x->place > y->place;
}

/* The key that the record at `at` must have once it is normalised; adds its checksum. */
static struct bam_key expected_key(const struct stream *s, size_t i, uint64_t *checksum)
{
    uint64_t at = start_of(s, i), end = i + 1 < s->n ? start_of(s, i + 1) : s->bytes.n;
    uint8_t *copy = exact_copy(s->bytes.data + at, end - at);
    struct bam_record *r = (struct bam_record *)copy;
    if (bam_record_check(copy, end - at, N_REF).needs_fix)
        bam_record_fix(r);
    uint64_t size = bam_record_size(r);
    *checksum += record_checksum(copy, size);
    struct bam_key key
        = {coordinate_key(r),
           at << BAM_KEY_SIZE_BITS | (size < BAM_KEY_SIZE_MAX ? size : BAM_KEY_SIZE_MAX)};
    assert_memory_equal(arena.base + at, copy, size);
    free(copy);
    return key;
}

/* The arena holds exactly the first n records of the stream. */
static void check_records(const struct stream *s, size_t n)
{
    struct bam_key *keys = (struct bam_key *)(arena.base + arena.top);
    uint64_t checksum = 0;
    assert_int_equal((arena.size - arena.top) / sizeof *keys, n);
    assert_int_equal(arena.n_records, n);
    if (n)
        qsort(keys, n, sizeof *keys, compare_places);
    for (size_t i = 0; i < n; i++) {
        struct bam_key want = expected_key(s, i, &checksum);
        assert_int_equal(keys[i].place, want.place);
        assert_int_equal(keys[i].sort, want.sort);
        const uint8_t *record = bam_key_record(arena.base, keys[i]);
        assert_int_equal(bam_key_record_size(arena.base, keys[i]),
                         bam_record_size((const struct bam_record *)record));
    }
    assert_int_equal(arena.checksum, checksum);
}

static void check_delivered(const struct stream *s, const size_t *cuts, size_t n)
{
    int result = deliver(s, cuts, n);
    assert_string_equal(latch.message, "");
    assert_int_equal(result, 0);
    assert_int_equal(arena.walked, s->bytes.n);
    check_records(s, s->n);
}

/* Cuts at random places into blocks of up to max bytes. */
static size_t random_cuts(const struct stream *s, size_t *cuts, uint32_t max, uint64_t *seed)
{
    size_t n = 0, at = 0;
    while (at < s->bytes.n && n < MAX_BLOCKS - 1) {
        at += 1 + unit_below(seed, max);
        cuts[n++] = at < s->bytes.n ? at : s->bytes.n;
    }
    cuts[n - 1] = s->bytes.n;
    return n;
}

/* ---- tests: no record lost or found twice ---- */

static struct stream small_stream(void)
{
    struct stream s = {{NULL, 0, 0}, {NULL, 0, 0}, 0};
    uint64_t seed = 1;
    add_smallest(&s);
    add_wrong_bin(&s);
    add_plain(&s, &seed, 1, 10);
    add_cg(&s);
    add_record_of_records(&s, 2);
    add_smallest(&s);
    return s;
}

static void test_cuts_at_any_two_places_lose_no_record(void **state)
{
    (void)state;
    struct stream s = small_stream();
    assert_in_range(s.bytes.n, 300, 500);
    for (size_t i = 1; i < s.bytes.n; i++)
        for (size_t j = i; j < s.bytes.n; j++) {
            size_t cuts[3] = {i, j, s.bytes.n};
            check_delivered(&s, cuts + (i == j), 3 - (i == j));
        }
    stream_free(&s);
}

static void test_blocks_of_any_one_size_lose_no_record(void **state)
{
    (void)state;
    struct stream s = small_stream();
    for (size_t size = 1; size <= s.bytes.n; size++) {
        size_t cuts[512], n = 0;
        for (size_t at = size; at < s.bytes.n; at += size)
            cuts[n++] = at;
        cuts[n++] = s.bytes.n;
        check_delivered(&s, cuts, n);
    }
    stream_free(&s);
}

/* Checks that the arena delivers records whose list was made while they were elsewhere. */
static void check_known(const struct stream *s, uint64_t *seed)
{
    enum { ELSEWHERE = 4711 };
    struct bam_key *all = must_alloc(s->n * sizeof *all);
    start_anew();
    memcpy(arena.base, s->bytes.data, s->bytes.n);
    assert_int_equal(bam_arena_walk(&arena, 0, s->bytes.n, all).n, s->n);
    for (uint32_t i = 0, n; i < s->n; i += n) {
        uint64_t begin = arena.bottom, end;
        n = 1 + (uint32_t)unit_below(seed, s->n - i);
        end = i + n < s->n ? all[i + n].place >> BAM_KEY_SIZE_BITS : s->bytes.n;
        struct bam_key *known = must_alloc(n * sizeof *known);
        for (uint32_t k = 0; k < n; k++)
            known[k] = (struct bam_key){all[i + k].sort, all[i + k].place + ((uint64_t)ELSEWHERE << BAM_KEY_SIZE_BITS)};
        assert_ptr_equal(bam_arena_take(&arena, end - begin), arena.base + begin);
        struct bam_key *keys = bam_arena_list(&arena, n);
        struct bam_walk w = bam_arena_take_known(&arena, begin, end, unit_below(seed, 2) ? known : NULL, n, keys);
        assert_true(w.start == begin && w.end == end && w.n == n && arena.walked == end);
        arena.checksum += w.checksum;
        free(known);
    }
    check_records(s, s->n);
    free(all);
}

static void test_known_records_have_keys(void **state)
{
    (void)state;
    uint64_t seed = 5;
    for (int i = 0; i < 12; i++) {
        struct stream s = {{NULL, 0, 0}, {NULL, 0, 0}, 0};
        while (s.bytes.n < 60000) {
            switch (unit_below(&seed, 6)) {
            case 0: add_smallest(&s); break;
            case 1: add_record_of_records(&s, 1 + (int)unit_below(&seed, 4)); break;
            default: add_plain(&s, &seed, 3, i % 2 ? 300 : 30000); break;
            }
        }
        check_known(&s, &seed);
        stream_free(&s);
    }
}

static void test_random_cuts_lose_no_record(void **state)
{
    (void)state;
    static const uint32_t sizes[] = {30, 100, 1000, 5000, 65536};
    static size_t cuts[MAX_BLOCKS];
    uint64_t seed = 2;
    for (int i = 0; i < 40; i++) {
        struct stream s = {{NULL, 0, 0}, {NULL, 0, 0}, 0};
        uint32_t size = sizes[i % (int)N_OF(sizes)];
        while (s.bytes.n < (size < 1000 ? 10000 : 60000)) {
            switch (unit_below(&seed, 8)) {
            case 0: add_smallest(&s); break;
            case 1: add_wrong_bin(&s); break;
            case 2: add_cg(&s); break;
            case 3: add_record_of_records(&s, 1 + (int)unit_below(&seed, 4)); break;
            default: add_plain(&s, &seed, 3, 300); break;
            }
        }
        check_delivered(&s, cuts, random_cuts(&s, cuts, size, &seed));
        stream_free(&s);
    }
}

static void test_records_that_span_many_blocks(void **state)
{
    (void)state;
    static size_t cuts[MAX_BLOCKS];
    struct stream s = {{NULL, 0, 0}, {NULL, 0, 0}, 0};
    uint64_t seed = 3;
    for (int i = 0; i < 12; i++) {
        add_plain(&s, &seed, 1, 300000);
        add_plain(&s, &seed, unit_below(&seed, 3), 20);
    }
    check_delivered(&s, cuts, random_cuts(&s, cuts, 65536, &seed));
    check_delivered(&s, cuts, random_cuts(&s, cuts, 5000, &seed));
    stream_free(&s);
}

static void test_more_records_in_a_block_than_the_master_lists_at_once(void **state)
{
    (void)state;
    struct stream s = {{NULL, 0, 0}, {NULL, 0, 0}, 0};
    add_record_of_records(&s, 1);
    for (int i = 0; i < 1000; i++)
        add_smallest(&s);
    /* The first block ends inside the first record, so the second begins with garbage. */
    for (size_t cut = 40; cut < 90; cut++) {
        size_t cuts[2] = {cut, s.bytes.n};
        check_delivered(&s, cuts, 2);
        /* Also checks the main thread's work when the guess is useless. */
        start_anew();
        memcpy(arena.base, s.bytes.data, s.bytes.n);
        arena.bottom = s.bytes.n;
        struct bam_walk none = {.start = s.bytes.n, .end = s.bytes.n};
        assert_int_equal(bam_arena_accept(&arena, &none, NULL, s.bytes.n, NULL, &latch, &origin), 0);
        check_records(&s, s.n);
    }
    stream_free(&s);
}

/* The block begins with bytes that look like a complete, valid record, but are part of a tag. */
static void test_plausible_guess_that_is_wrong_is_not_believed(void **state)
{
    (void)state;
    struct stream s = {{NULL, 0, 0}, {NULL, 0, 0}, 0};
    struct bam_key keys[100];
    add_record_of_records(&s, 20);
    add_smallest(&s);
    uint64_t false_start = s.bytes.n - 21 * BAM_MIN_RECORD;
    start_anew();
    memcpy(arena.base, s.bytes.data, s.bytes.n);
    struct bam_walk w = bam_arena_guess(&arena, false_start, s.bytes.n, keys);
    assert_int_equal(w.start, false_start);                  /* the false start is accepted ... */
    assert_int_equal(w.n, 21);
    size_t cuts[2] = {false_start, s.bytes.n};
    check_delivered(&s, cuts, 2);                            /* ... and does no harm */
    for (size_t cut = false_start; cut < s.bytes.n; cut++) {
        cuts[0] = cut;
        check_delivered(&s, cuts, 2);
    }
    stream_free(&s);
}

static void test_records_to_mend_are_counted(void **state)
{
    (void)state;
    struct stream s = small_stream();
    struct bam_key keys[64];
    start_anew();
    memcpy(arena.base, s.bytes.data, s.bytes.n);
    struct bam_walk w = bam_arena_walk(&arena, 0, s.bytes.n, keys);
    assert_int_equal(w.n, s.n);
    assert_int_equal(w.n_fix, 2);
    assert_memory_equal(arena.base, s.bytes.data, s.bytes.n);        /* a walk changes nothing */
    arena.normalised = true;
    assert_int_equal(bam_arena_walk(&arena, 0, s.bytes.n, keys).n_fix, 0);
    arena.normalised = false;
    stream_free(&s);
}

static void test_end_of_a_stream_that_ends_with_a_record(void **state)
{
    (void)state;
    struct stream s = small_stream();
    size_t cuts[1] = {s.bytes.n};
    check_delivered(&s, cuts, 1);
    struct bam_walk none = {.start = arena.bottom, .end = arena.bottom};
    assert_int_equal(bam_arena_accept(&arena, &none, NULL, arena.bottom, NULL, &latch, &origin), 0);
    check_records(&s, s.n);
    stream_free(&s);
}

static void test_cut_last_record_is_left_for_more_bytes(void **state)
{
    (void)state;
    struct stream s = small_stream();
    uint64_t last = start_of(&s, s.n - 1);
    for (size_t end = last + 1; end < s.bytes.n; end++) {
        struct stream cut = s;
        cut.bytes.n = end;
        for (size_t at = 1; at < end; at += 7) {
            size_t cuts[2] = {at, end};
            assert_int_equal(deliver(&cut, cuts, 2), 0);
            assert_int_equal(arena.walked, last);
            check_records(&s, s.n - 1);
        }
    }
    stream_free(&s);
}

/* ---- tests: bad records ---- */

/* Delivers a stream whose record `bad` is damaged, cut at any place. */
static void check_bad(const struct stream *s, size_t bad, const char *why)
{
    char number[64], byte[64];
    enum { ORIGIN = 1000 };
    snprintf(number, sizeof number, "record %zu ", bad + 1);
    snprintf(byte, sizeof byte, "byte %llu ", (unsigned long long)start_of(s, bad) + ORIGIN);
    as_new.origin = ORIGIN;
    for (size_t cut = 1; cut < s->bytes.n; cut++) {
        size_t cuts[2] = {cut, s->bytes.n};
        assert_int_equal(deliver(s, cuts, 2), -1);
        assert_true(latch_tripped(&latch));
        assert_non_null(strstr(latch.message, number));
        assert_non_null(strstr(latch.message, byte));
        assert_non_null(strstr(latch.message, "in.bam"));
        assert_non_null(strstr(latch.message, "4711"));
        assert_non_null(strstr(latch.message, why));
        check_records(s, bad);
    }
    as_new.origin = 0;
}

static void test_bad_record_is_reported_with_its_number_and_place(void **state)
{
    (void)state;
    struct stream s = small_stream();
    for (size_t bad = 0; bad < s.n; bad++) {
        struct bam_record *r = (struct bam_record *)(s.bytes.data + start_of(&s, bad));
        struct bam_record before;
        memcpy(&before, r, BAM_FIXED);
        store_le32(r->ref_id, 1000);
        check_bad(&s, bad, bam_fault_text(BAM_BAD_REF));
        memcpy(r, &before, BAM_FIXED);
        store_le32(r->block_size, 0x80000000u);
        check_bad(&s, bad, bam_fault_text(BAM_BAD_SIZE));
        memcpy(r, &before, BAM_FIXED);
    }
    stream_free(&s);
}

/* ---- tests: the guess itself ---- */

/* The test counts how many of the blocks that begin inside a record had their first record found. */
static void test_first_whole_record_of_a_block_is_found(void **state)
{
    (void)state;
    struct stream s = {{NULL, 0, 0}, {NULL, 0, 0}, 0};
    uint64_t seed = 4;
    add_plain(&s, &seed, 400, 200);
    static struct bam_key keys[65536];
    start_anew();
    memcpy(arena.base, s.bytes.data, s.bytes.n);
    size_t right = 0, all = 0;
    for (size_t i = 0; i + 100 < s.n; i++)
        for (uint64_t at = start_of(&s, i) + 1; at <= start_of(&s, i + 1); at += 5, all++) {
            struct bam_walk w = bam_arena_guess(&arena, at, start_of(&s, i + 100) + 5, keys);
            if (w.start == start_of(&s, i + 1)) {
                right++;
                assert_int_equal(w.n, 99);
                assert_int_equal(w.end, start_of(&s, i + 100));
                assert_int_equal(w.fault, BAM_CUT);
            }
        }
    assert_true(all > 5000);
    assert_true(right >= all - all / 20);
    stream_free(&s);
}

/* Each block lies in an allocation of its size, because the bytes after a block are not inflated yet. */
static void test_guess_reads_nothing_but_its_block(void **state)
{
    (void)state;
    struct stream s = small_stream();
    struct bam_key keys[64];
    for (size_t start = 0; start < s.bytes.n; start += 3)
        for (size_t end = start + 1; end <= s.bytes.n; end++) {
            uint8_t *block = exact_copy(s.bytes.data + start, end - start);
            struct bam_arena alone = {.base = block, .size = end - start, .n_ref = N_REF};
            struct bam_walk w = bam_arena_guess(&alone, 0, end - start, keys);
            assert_true(w.start <= w.end && w.end <= end - start);
            assert_memory_equal(block, s.bytes.data + start, end - start);
            free(block);
        }
    stream_free(&s);
}

/* keys[] has the promised room and no more. */
static void test_walk_fills_no_more_keys_than_promised(void **state)
{
    (void)state;
    struct stream s = {{NULL, 0, 0}, {NULL, 0, 0}, 0};
    for (int i = 0; i < 50; i++)
        add_smallest(&s);
    start_anew();
    memcpy(arena.base, s.bytes.data, s.bytes.n);
    for (size_t end = 0; end <= s.bytes.n; end++) {
        struct bam_key *keys = malloc((end / BAM_MIN_RECORD + 1) * sizeof *keys);
        MUST(keys);
        struct bam_walk w = bam_arena_walk(&arena, 0, end, keys);
        assert_int_equal(w.n, end / BAM_MIN_RECORD);
        assert_int_equal(w.end, w.n * BAM_MIN_RECORD);
        assert_int_equal(w.fault, end % BAM_MIN_RECORD ? BAM_CUT : BAM_OK);
        w = bam_arena_guess(&arena, 0, end, keys);
        assert_int_equal(w.n, end / BAM_MIN_RECORD);
        free(keys);
    }
    stream_free(&s);
}

static void test_block_of_garbage_gives_no_records_or_sound_ones(void **state)
{
    (void)state;
    static struct bam_key keys[65536 / BAM_MIN_RECORD + 1];
    uint64_t seed = 5;
    for (int i = 0; i < 200; i++) {
        uint32_t n = 1 + unit_below(&seed, 20000);
        start_anew();
        unit_fill(&seed, arena.base, n);
        struct bam_walk w = bam_arena_guess(&arena, 0, n, keys);
        assert_true(w.end <= n);
        assert_true(w.fault == BAM_OK || w.fault == BAM_CUT);
        for (uint32_t k = 0; k < w.n; k++) {
            size_t size = bam_key_record_size(arena.base, keys[k]);
            struct bam_verdict v = bam_record_check(bam_key_record(arena.base, keys[k]), size, N_REF);
            assert_int_equal(v.fault, BAM_OK);
        }
    }
}

/* Every block is full of bytes that look like records, and each chain of them breaks at the block's end. */
static void test_block_that_looks_like_records_everywhere_is_not_walked_from_everywhere(void **state)
{
    (void)state;
    enum { BLOCK = 65280, N = BLOCK / BAM_MIN_RECORD, SHIFT = 5 };
    static struct bam_key keys[BLOCK / BAM_MIN_RECORD + 1];
    struct unit_bytes b = {NULL, 0, 0};
    for (int i = 0; i < N; i++)
        unit_append_smallest(&b, i);
    memset(b.data + b.n - BAM_MIN_RECORD, 0, BAM_MIN_RECORD);        /* the last one is not a record */
    struct record_search search = record_search_begin(b.data, b.n, N_REF);
    uint64_t walked = 0, most = 5 * (uint64_t)b.n;
    size_t at = SHIFT, last = b.n / 4;
    for (; (at = record_search_next(&search, at, last)) < last; at++) {
        size_t end = b.n - BAM_MIN_RECORD;
        assert_int_equal(at % BAM_MIN_RECORD, 0);
        record_search_walked(&search, at, end);
        walked += end - at;
        assert_true(walked <= most);
    }
    assert_true(walked >= b.n);
    start_anew();
    memcpy(arena.base, b.data, b.n);
    struct bam_walk w = bam_arena_guess(&arena, SHIFT, b.n, keys);
    assert_int_equal(w.start, b.n);
    assert_int_equal(w.n, 0);
    unit_free(&b);
}

/* If the search is given up, the main thread still lists each record. */
static void test_record_full_of_false_chains_loses_no_record(void **state)
{
    (void)state;
    static size_t cuts[MAX_BLOCKS];
    struct stream s = {{NULL, 0, 0}, {NULL, 0, 0}, 0};
    uint64_t seed = 11;
    for (int i = 0; i < 3; i++) {
        add_record_of_records(&s, 10000);
        memset(s.bytes.data + s.bytes.n - BAM_MIN_RECORD * 500, 0xff, BAM_MIN_RECORD);
        add_plain(&s, &seed, 200, 100);
    }
    check_delivered(&s, cuts, random_cuts(&s, cuts, 65536, &seed));
    stream_free(&s);
}

/* ---- tests: sizes that do not fit into a key ---- */

static void test_size_of_records_too_large_for_a_key(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {BAM_KEY_SIZE_MAX - 1, BAM_KEY_SIZE_MAX, BAM_KEY_SIZE_MAX + 1,
                                     BAM_KEY_SIZE_MAX + 12345};
    for (size_t i = 0; i < N_OF(sizes); i++) {
        struct stream s = {{NULL, 0, 0}, {NULL, 0, 0}, 0};
        size_t n_aux = sizes[i] - BAM_FIXED - 1;
        uint8_t *aux = must_alloc(n_aux);
        memset(aux, 'x', n_aux);
        memcpy(aux, "XXZ", 3);
        aux[n_aux - 1] = 0;
        struct unit_record r
            = {.ref_id = 0, .pos = 1, .flag = 4, .name = "", .aux = aux, .n_aux = n_aux};
        add_smallest(&s);
        begin_record(&s);
        assert_int_equal(unit_append_record(&s.bytes, &r), sizes[i]);
        add_smallest(&s);
        size_t cuts[3] = {65536, 1 << 20, s.bytes.n};
        check_delivered(&s, cuts, 3);
        free(aux);
        stream_free(&s);
    }
}

/* ---- tests: room ---- */

/* Uses up all room, in pieces of up to max bytes, for records of the smallest size; one piece in `accept_each` is
 * followed by listing all records. */
static void fill_to_the_end(struct bam_arena *a, const struct stream *s, uint32_t max,
                            uint32_t accept_each, uint64_t *seed)
{
    size_t room;
    static struct bam_key keys[1 << 17];
    for (int more = 1; more;) {
        more = (room = bam_arena_room(a)) > 0;
        size_t n = room == 0 ? 0 : room < max ? room : 1 + unit_below(seed, max);
        memcpy(a->base + a->bottom, s->bytes.data + a->bottom, n);
        a->bottom += n;
        assert_true(a->bottom <= a->top);
        if (unit_below(seed, accept_each) != 0 && more)
            continue;
        struct bam_walk w = bam_arena_walk(a, a->walked, a->bottom, keys);
        assert_true(a->bottom + w.n * sizeof *keys <= a->top);
        assert_int_equal(bam_arena_accept(a, &w, keys, a->bottom, NULL, &latch, &origin), 0);
        more = more || bam_arena_room(a) > 0;
    }
}

/* Some keys wait for their slot's next task: until then only their place is reserved. */
static void test_keys_to_be_copied_later_have_a_place_that_nothing_else_gets(void **state)
{
    (void)state;
    struct stream s = {{NULL, 0, 0}, {NULL, 0, 0}, 0};
    uint64_t seed = 40;
    static struct bam_key first[100], second[100];
    struct bam_key *place_1, *place_2, *none = first;
    add_plain(&s, &seed, 60, 100);
    add_wrong_bin(&s);
    size_t half = start_of(&s, 30), normalised = start_of(&s, 60);
    start_anew();
    memcpy(arena.base, s.bytes.data, s.bytes.n);
    arena.bottom = s.bytes.n;
    struct bam_walk w1 = bam_arena_guess(&arena, 0, half, first), w2 = bam_arena_guess(&arena, half, normalised, second);
    assert_int_equal(bam_arena_accept(&arena, &w1, first, half, &place_1, &latch, &origin), 0);
    assert_int_equal(bam_arena_accept(&arena, &w2, second, normalised, &place_2, &latch, &origin), 0);
    assert_ptr_equal(place_1, arena.base + arena.size - 30 * sizeof *first);
    assert_ptr_equal(place_2, place_1 - 30);
    /* A corrected record is copied at once, and so is one that was not guessed. */
    struct bam_key fixed;
    struct bam_walk w3 = bam_arena_guess(&arena, normalised, s.bytes.n, &fixed);
    assert_int_equal(bam_arena_accept(&arena, &w3, &fixed, s.bytes.n, &none, &latch, &origin), 0);
    assert_null(none);
    assert_int_equal(place_2[-1].sort, fixed.sort);
    assert_int_equal(arena.n_records, 61);
    stream_free(&s);
}

static void test_room_is_filled_to_the_end_and_keys_never_reach_the_records(void **state)
{
    (void)state;
    enum { SIZE = 1 << 20, SLACK = 128 };
    static const uint32_t pieces[] = {37, 100, 5000, 65536, 1 << 20}, each[] = {1, 3, 1000000};
    struct stream s = {{NULL, 0, 0}, {NULL, 0, 0}, 0};
    uint64_t seed = 6;
    while (s.bytes.n < SIZE)
        add_smallest(&s);
    for (size_t i = 0; i < N_OF(pieces); i++)
        for (size_t j = 0; j < N_OF(each); j++) {
            struct bam_arena a;
            memset(&latch, 0, sizeof latch);
            assert_int_equal(bam_arena_init(&a, SIZE), 0);
            assert_int_equal(a.size, SIZE);
            a.n_ref = N_REF;
            fill_to_the_end(&a, &s, pieces[i], each[j], &seed);
            assert_true(a.bottom <= a.top);
            assert_true(a.top - a.bottom < SLACK);
            assert_int_equal(a.n_records, a.bottom / BAM_MIN_RECORD);
            assert_memory_equal(a.base, s.bytes.data, a.bottom);
            bam_arena_free(&a);
        }
    stream_free(&s);
}

static void test_room_of_a_tiny_or_full_arena_does_not_wrap_around(void **state)
{
    (void)state;
    struct bam_arena a = {0};
    for (size_t size = 0; size < 300; size++)
        for (size_t bottom = 0; bottom <= size; bottom++)
            for (size_t walked = 0; walked <= bottom; walked += 13) {
                a.size = a.top = size;
                a.bottom = bottom;
                a.walked = walked;
                size_t room = bam_arena_room(&a),
                       records = (bottom + room - walked) / BAM_MIN_RECORD;
                assert_true(room <= size - bottom);
                if (room > 0)
                    assert_true(bottom + room + records * sizeof(struct bam_key) <= size);
            }
}

static void test_arena_beyond_the_address_space_is_made_smaller(void **state)
{
    (void)state;
    struct bam_arena a;
    assert_int_equal(bam_arena_init(&a, (size_t)1 << 60), 0);
    assert_in_range(a.size, 1 << 20, (size_t)1 << 59);
    assert_int_equal(a.top, a.size);
    bam_arena_take(&a, 1)[0] = 1;
    bam_arena_free(&a);
}

/* Pages are touched ahead of the stream: never where stream or keys already are. */
static void test_taking_room_disturbs_neither_stream_nor_keys(void **state)
{
    (void)state;
    enum { SIZE = 40 << 20, KEYS = 5 << 20, MOST = 3 << 20 };
    struct bam_arena a;
    uint64_t seed = 10;
    assert_int_equal(bam_arena_init(&a, SIZE), 0);
    a.top -= KEYS;
    memset(a.base + a.top, 0xcc, KEYS);
    for (;;) {
        size_t before = a.bottom, n = 1 + unit_below(&seed, MOST);
        if (n > a.top - a.bottom)
            break;
        uint8_t *place = bam_arena_take(&a, n);
        assert_ptr_equal(place, a.base + before);
        assert_int_equal(a.bottom, before + n);
        memset(place, 0x33, n);
    }
    assert_in_range(a.bottom, SIZE - KEYS - MOST, SIZE - KEYS);
    for (size_t i = 0; i < a.size; i++)
        if (a.base[i] != (i < a.bottom ? 0x33 : i < a.top ? 0 : 0xcc))
            fail_msg("byte %zu is %02x", i, a.base[i]);
    bam_arena_free(&a);
}

/* ---- tests: an arena that is emptied, and filled again ---- */

/* Adds bytes of the stream from `from` on, and lists the complete records. */
static void feed(struct bam_arena *a, const struct stream *s, size_t from, size_t n)
{
    if (n)
        memcpy(bam_arena_take(a, n), s->bytes.data + from, n);
    struct bam_key *keys = must_alloc(((a->bottom - a->walked) / BAM_MIN_RECORD + 1) * sizeof *keys);
    struct bam_walk w = bam_arena_walk(a, a->walked, a->bottom, keys);
    assert_int_equal(bam_arena_accept(a, &w, keys, a->bottom, NULL, &latch, &origin), 0);
    free(keys);
}

static void test_emptied_arena_is_empty_and_knows_what_the_stream_is_about(void **state)
{
    (void)state;
    struct stream s = {{NULL, 0, 0}, {NULL, 0, 0}, 0};
    struct bam_arena a;
    struct bam_sublist sublist;
    uint64_t seed = 21;
    memset(&latch, 0, sizeof latch);
    add_plain(&s, &seed, 500, 100);
    assert_int_equal(bam_arena_init(&a, 1 << 20), 0);
    a.n_ref = N_REF;
    assert_true(bam_arena_empty(&a));
    feed(&a, &s, 0, s.bytes.n);
    assert_false(bam_arena_empty(&a));
    assert_int_equal(bam_arena_close_sublist(&a, 1, 1, &sublist), 1);
    uint64_t checksum = a.checksum;
    bam_arena_reset(&a, SIZE_MAX);               /* no more than there was */
    assert_int_equal(a.size, 1 << 20);
    assert_true(bam_arena_empty(&a));
    assert_int_equal(a.bottom, 0);
    assert_int_equal(a.walked, 0);
    assert_int_equal(a.n_sublists, 0);
    assert_int_equal(a.n_records, 500);
    assert_int_equal(a.checksum, checksum);
    assert_int_equal(a.n_ref, N_REF);
    assert_int_equal(bam_arena_close_sublist(&a, 0, 0, &sublist), 0);
    feed(&a, &s, 0, s.bytes.n);                  /* again, the sums continue */
    assert_int_equal(a.n_records, 1000);
    assert_int_equal(a.checksum, 2 * checksum);
    assert_int_equal(bam_arena_close_sublist(&a, 1, 1, &sublist), 1);
    assert_int_equal(sublist.n, 500);
    for (size_t i = 0; i < sublist.n; i++)
        assert_memory_equal(bam_key_record(a.base, sublist.keys[i]),
                            s.bytes.data + (sublist.keys[i].place >> BAM_KEY_SIZE_BITS),
                            bam_key_record_size(a.base, sublist.keys[i]));
    bam_arena_free(&a);
    stream_free(&s);
}

static void test_arena_made_smaller_keeps_within_its_new_size(void **state)
{
    (void)state;
    enum { SIZE = 4 << 20, SMALLER = (1 << 20) + 5000, SLACK = 128 };
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    struct stream s = {{NULL, 0, 0}, {NULL, 0, 0}, 0};
    struct bam_arena a;
    uint64_t seed = 22;
    memset(&latch, 0, sizeof latch);
    while (s.bytes.n < SIZE)
        add_smallest(&s);
    assert_int_equal(bam_arena_init(&a, SIZE), 0);
    a.n_ref = N_REF;
    for (int round = 0; round < 3; round++) {
        fill_to_the_end(&a, &s, 5000, 3, &seed);
        bam_arena_reset(&a, SMALLER);
        assert_in_range(a.size, SMALLER - page, SMALLER);
        assert_int_equal(a.top, a.size);
        for (size_t i = a.size; i < SIZE; i++)   /* zeros: freed. mincore() would report pages that khugepaged fills */
            if (a.base[i] != 0)
                fail_msg("byte %zu beyond the new size is still there", i - a.size);
    }
    fill_to_the_end(&a, &s, 5000, 3, &seed);
    assert_true(a.bottom <= a.top && a.top <= a.size);
    assert_true(a.top - a.bottom < SLACK);
    bam_arena_free(&a);                          /* all of it: a sanitizer would not notice */
    stream_free(&s);
}

/* The stream continues in the other arena for a cut at any place; several times over. */
static void test_record_that_is_cut_goes_on_in_the_next_arena(void **state)
{
    (void)state;
    struct stream s = small_stream();
    for (size_t i = 0; i <= s.bytes.n; i++)
        for (size_t j = i; j <= s.bytes.n; j += 7) {
            struct bam_arena a[2];
            size_t cuts[4] = {0, i, j, s.bytes.n};
            uint64_t checksum = 0, origin_before = 1000;
            memset(&latch, 0, sizeof latch);
            for (int k = 0; k < 2; k++) {
                assert_int_equal(bam_arena_init(&a[k], 256 << 10), 0);
                a[k].n_ref = N_REF;
            }
            a[0].origin = origin_before;
            a[0].n_before = 17;
            for (int k = 0; k < 3; k++) {
                struct bam_arena *now = &a[k % 2], *next = &a[(k + 1) % 2];
                feed(now, &s, cuts[k], cuts[k + 1] - cuts[k]);
                assert_int_equal(now->origin + now->bottom, origin_before + cuts[k + 1]);
                if (k == 2)
                    break;
                size_t cut = now->bottom - now->walked;
                assert_int_equal(bam_arena_carry(next, now), 0);
                assert_int_equal(next->bottom, cut);
                assert_int_equal(next->walked, 0);
                assert_true(bam_arena_empty(next));
                assert_int_equal(next->n_before, 17);
                bam_arena_reset(now, SIZE_MAX);
            }
            for (size_t k = 0; k < s.n; k++) {
                uint64_t at = start_of(&s, k), end = k + 1 < s.n ? start_of(&s, k + 1) : s.bytes.n;
                uint8_t *copy = exact_copy(s.bytes.data + at, end - at);
                if (bam_record_check(copy, end - at, N_REF).needs_fix)
                    bam_record_fix((struct bam_record *)copy);
                checksum += record_checksum(copy, bam_record_size((struct bam_record *)copy));
                free(copy);
            }
            assert_int_equal(a[0].n_records, s.n);
            assert_int_equal(a[0].checksum, checksum);
            assert_int_equal(a[0].walked, a[0].bottom);
            bam_arena_free(&a[0]);
            bam_arena_free(&a[1]);
        }
    stream_free(&s);
}

static void test_record_larger_than_the_arena_makes_it_grow(void **state)
{
    (void)state;
    enum { SIZE = 256 << 10, LONG = 3 << 20, STEP = 65280 };
    struct stream s = {{NULL, 0, 0}, {NULL, 0, 0}, 0};
    uint8_t *aux = must_alloc(LONG);
    struct bam_arena a;
    struct bam_sublist sublist;
    memset(&latch, 0, sizeof latch);
    memcpy(aux, "XXZ", 3);
    memset(aux + 3, 'x', LONG - 3);
    aux[LONG - 1] = 0;
    struct unit_record r = {.ref_id = 1, .pos = 70, .flag = 4, .bin = 4681, .name = "long", .aux = aux, .n_aux = LONG};
    begin_record(&s);
    unit_append_record(&s.bytes, &r);
    add_smallest(&s);
    assert_int_equal(bam_arena_init(&a, SIZE), 0);
    a.n_ref = N_REF;
    int grown = 0;
    for (size_t at = 0, n; at < s.bytes.n; at += n) {
        n = s.bytes.n - at < STEP ? s.bytes.n - at : STEP;
        if (bam_arena_room(&a) < n) {
            assert_int_equal(bam_arena_grow(&a, n), 0);
            assert_true(bam_arena_room(&a) >= n);
            assert_memory_equal(a.base, s.bytes.data, a.bottom);
            grown++;
        }
        feed(&a, &s, at, n);
    }
    assert_in_range(grown, 1, 20);
    assert_int_equal(a.n_records, 2);
    assert_int_equal(bam_arena_close_sublist(&a, 1, 1, &sublist), 1);
    assert_int_equal(sublist.n, 2);
    assert_memory_equal(a.base, s.bytes.data, s.bytes.n);
    bam_arena_reset(&a, SIZE);
    assert_int_equal(a.size, SIZE);
    bam_arena_free(&a);
    free(aux);
    stream_free(&s);
}

/* The carried bytes may be more than the other arena has room for. */
static void test_long_part_of_a_record_is_carried_into_a_small_arena(void **state)
{
    (void)state;
    enum { LONG = 5 << 20 };                     /* so large that its pages are given back */
    struct stream s = {{NULL, 0, 0}, {NULL, 0, 0}, 0};
    struct bam_arena big, small;
    uint64_t seed = 23;
    uint8_t *aux = must_alloc(LONG);
    memset(&latch, 0, sizeof latch);
    unit_fill(&seed, aux, LONG);
    memcpy(aux, "XXBC", 4);
    store_le32(aux + 4, LONG - 8);
    struct unit_record r = {.ref_id = 1, .pos = 70, .flag = 4, .bin = 4681, .name = "long", .aux = aux, .n_aux = LONG};
    add_plain(&s, &seed, 100, 50);
    begin_record(&s);
    unit_append_record(&s.bytes, &r);
    assert_int_equal(bam_arena_init(&big, 8 << 20), 0);
    assert_int_equal(bam_arena_init(&small, 256 << 10), 0);
    big.n_ref = small.n_ref = N_REF;
    feed(&big, &s, 0, s.bytes.n - 1);
    assert_int_equal(big.n_records, 100);
    assert_int_equal(bam_arena_carry(&small, &big), 0);
    assert_int_equal(small.bottom, s.bytes.n - 1 - start_of(&s, 100));
    assert_memory_equal(big.base, s.bytes.data, start_of(&s, 100));  /* also those in its first page */
    feed(&small, &s, s.bytes.n - 1, 1);
    assert_int_equal(small.n_records, 101);
    assert_memory_equal(small.base, s.bytes.data + start_of(&s, 100), small.bottom);
    bam_arena_free(&big);
    bam_arena_free(&small);
    free(aux);
    stream_free(&s);
}

/* ---- tests: checksum ---- */

static void test_checksum_does_not_depend_on_the_order_of_records(void **state)
{
    (void)state;
    enum { N = 300 };
    struct stream s = {{NULL, 0, 0}, {NULL, 0, 0}, 0};
    uint64_t seed = 7, shuffled = 0;
    add_plain(&s, &seed, N, 500);
    size_t cuts[1] = {s.bytes.n};
    check_delivered(&s, cuts, 1);
    for (size_t i = 0; i < N; i++) {
        size_t at = i * 7 % N;
        const uint8_t *record = s.bytes.data + start_of(&s, at);
        shuffled += record_checksum(record, bam_record_size((const struct bam_record *)record));
    }
    assert_int_equal(shuffled, arena.checksum);
    stream_free(&s);
}

static void test_checksum_of_a_long_record_is_the_sum_of_its_segments(void **state)
{
    (void)state;
    enum { N = 3 * BGZF_FILL + 100 };
    uint8_t *data = must_alloc(N);
    uint64_t seed = 8;
    unit_fill(&seed, data, N);
    static const size_t sizes[] = {1, BGZF_FILL - 1, BGZF_FILL, BGZF_FILL + 1, 2 * BGZF_FILL, N};
    for (size_t i = 0; i < N_OF(sizes); i++) {
        uint64_t sum = 0, number = 0;
        for (size_t at = 0; at < sizes[i]; at += BGZF_FILL, number++)
            sum += byte_hash(data + at, sizes[i] - at < BGZF_FILL ? sizes[i] - at : BGZF_FILL, number);
        assert_int_equal(record_checksum(data, sizes[i]), sum);
    }
    assert_int_equal(record_checksum(data, 0), 0);
    free(data);
}

static void test_checksum_sees_every_bit_and_swapped_segments(void **state)
{
    (void)state;
    enum { N = 2 * BGZF_FILL };
    uint8_t *data = must_alloc(N), *swapped = must_alloc(N);
    uint64_t seed = 9;
    unit_fill(&seed, data, N);
    uint64_t sum = record_checksum(data, 300), whole = record_checksum(data, N);
    for (size_t bit = 0; bit < 300 * 8; bit++) {
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_not_equal(record_checksum(data, 300), sum);
        data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    memcpy(swapped, data + BGZF_FILL, BGZF_FILL);
    memcpy(swapped + BGZF_FILL, data, BGZF_FILL);
    assert_int_not_equal(record_checksum(swapped, N), whole);
    free(data);
    free(swapped);
}

/* ---- tests: sublists ---- */

/* Closes the open sublist after n more of the smallest records. */
static int close_after(const struct stream *s, size_t n, size_t min_records, size_t min_bytes,
                       struct bam_sublist *sublist)
{
    static struct bam_key keys[1000];
    size_t end = arena.walked + n * BAM_MIN_RECORD;
    memcpy(arena.base, s->bytes.data, end);
    arena.bottom = end;
    struct bam_walk w = bam_arena_walk(&arena, arena.walked, end, keys);
    assert_int_equal(w.n, n);
    assert_int_equal(bam_arena_accept(&arena, &w, keys, end, NULL, &latch, &origin), 0);
    return bam_arena_close_sublist(&arena, min_records, min_bytes, sublist);
}

static void test_sublist_closes_at_its_records_or_its_bytes(void **state)
{
    (void)state;
    struct stream s = {{NULL, 0, 0}, {NULL, 0, 0}, 0};
    struct bam_sublist sublist;
    for (int i = 0; i < 100; i++)
        add_smallest(&s);
    start_anew();
    assert_int_equal(bam_arena_close_sublist(&arena, 0, 0, &sublist), 0); /* never an empty one */
    assert_int_equal(close_after(&s, 9, 10, SIZE_MAX, &sublist), 0);
    assert_int_equal(close_after(&s, 1, 10, SIZE_MAX, &sublist), 1);
    assert_int_equal(sublist.n, 10);
    assert_int_equal(bam_arena_close_sublist(&arena, 0, 0, &sublist), 0);
    assert_int_equal(close_after(&s, 5, SIZE_MAX, 5 * BAM_MIN_RECORD + 1, &sublist), 0);
    assert_int_equal(close_after(&s, 0, SIZE_MAX, 5 * BAM_MIN_RECORD, &sublist), 1);
    assert_int_equal(sublist.n, 5);
    assert_int_equal(close_after(&s, 1, 1, SIZE_MAX, &sublist), 1);
    assert_int_equal(sublist.n, 1);
    assert_int_equal(arena.n_sublists, 3);
    bam_arena_reset(&arena, arena.size);         /* what was in it counts no more */
    assert_int_equal(close_after(&s, 1, SIZE_MAX, 5 * BAM_MIN_RECORD, &sublist), 0);
    stream_free(&s);
}

static void test_each_record_is_in_exactly_one_sublist(void **state)
{
    (void)state;
    enum { N = 300, N_RECORDS = N * (N + 1) / 2 };               /* the list of sublists grows */
    struct stream s = {{NULL, 0, 0}, {NULL, 0, 0}, 0};
    struct bam_sublist sublist;
    for (int i = 0; i < N_RECORDS; i++)
        add_smallest(&s);
    start_anew();
    uint64_t place = 0;
    for (size_t n = 1; n <= N; n++) {
        assert_int_equal(close_after(&s, n, 1, 1, &sublist), 1);
        assert_int_equal(sublist.n, n);
        assert_ptr_equal(arena.sublists[n - 1].keys, sublist.keys);
        assert_int_equal(arena.sublists[n - 1].n, n);
        qsort(sublist.keys, n, sizeof *sublist.keys, compare_places);
        for (size_t i = 0; i < n; i++, place += BAM_MIN_RECORD)
            assert_int_equal(sublist.keys[i].place >> BAM_KEY_SIZE_BITS, place);
    }
    assert_int_equal(arena.n_sublists, N);
    assert_int_equal(arena.n_records, N_RECORDS);
    check_records(&s, N_RECORDS);
    stream_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuts_at_any_two_places_lose_no_record),
        cmocka_unit_test(test_blocks_of_any_one_size_lose_no_record),
        cmocka_unit_test(test_random_cuts_lose_no_record),
        cmocka_unit_test(test_known_records_have_keys),
        cmocka_unit_test(test_records_that_span_many_blocks),
        cmocka_unit_test(test_more_records_in_a_block_than_the_master_lists_at_once),
        cmocka_unit_test(test_plausible_guess_that_is_wrong_is_not_believed),
        cmocka_unit_test(test_records_to_mend_are_counted),
        cmocka_unit_test(test_end_of_a_stream_that_ends_with_a_record),
        cmocka_unit_test(test_cut_last_record_is_left_for_more_bytes),
        cmocka_unit_test(test_bad_record_is_reported_with_its_number_and_place),
        cmocka_unit_test(test_first_whole_record_of_a_block_is_found),
        cmocka_unit_test(test_guess_reads_nothing_but_its_block),
        cmocka_unit_test(test_walk_fills_no_more_keys_than_promised),
        cmocka_unit_test(test_block_of_garbage_gives_no_records_or_sound_ones),
        cmocka_unit_test(test_block_that_looks_like_records_everywhere_is_not_walked_from_everywhere),
        cmocka_unit_test(test_record_full_of_false_chains_loses_no_record),
        cmocka_unit_test(test_size_of_records_too_large_for_a_key),
        cmocka_unit_test(test_room_is_filled_to_the_end_and_keys_never_reach_the_records),
        cmocka_unit_test(test_room_of_a_tiny_or_full_arena_does_not_wrap_around),
        cmocka_unit_test(test_arena_beyond_the_address_space_is_made_smaller),
        cmocka_unit_test(test_taking_room_disturbs_neither_stream_nor_keys),
        cmocka_unit_test(test_emptied_arena_is_empty_and_knows_what_the_stream_is_about),
        cmocka_unit_test(test_arena_made_smaller_keeps_within_its_new_size),
        cmocka_unit_test(test_record_that_is_cut_goes_on_in_the_next_arena),
        cmocka_unit_test(test_record_larger_than_the_arena_makes_it_grow),
        cmocka_unit_test(test_long_part_of_a_record_is_carried_into_a_small_arena),
        cmocka_unit_test(test_checksum_does_not_depend_on_the_order_of_records),
        cmocka_unit_test(test_checksum_of_a_long_record_is_the_sum_of_its_segments),
        cmocka_unit_test(test_checksum_sees_every_bit_and_swapped_segments),
        cmocka_unit_test(test_keys_to_be_copied_later_have_a_place_that_nothing_else_gets),
        cmocka_unit_test(test_sublist_closes_at_its_records_or_its_bytes),
        cmocka_unit_test(test_each_record_is_in_exactly_one_sublist),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
