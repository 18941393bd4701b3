/* SPDX-License-Identifier: MIT */
#include "unit.h"
#include <libdeflate.h>
#include <zlib.h>
#include "codec/bam_deflate.h"
#include "base/endian_io.h"
#include "long_reads.h"
#include "record_kinds.h"

enum {
    MAX = BAM_DEFLATE_MAX,
    STORED = 5,                  /* bytes that a stored block adds */
    GUARD = 64,
    MIN_MATCH = 3, MAX_MATCH = 258, MAX_DIST = 32768,
};
static const uint8_t guard_byte = 0xa5;

static struct bam_deflate *codec[2], *portable[2];
static struct libdeflate_decompressor *inflater;
static uint8_t in[MAX], out[MAX + STORED + GUARD], back[MAX + 1], other[MAX + STORED];
static const int efforts[2] = {BAM_DEFLATE_FAST, BAM_DEFLATE_DEFAULT};

static int set_up(void **state)
{
    (void)state;
    for (int e = 0; e < 2; e++) {
        codec[e] = bam_deflate_new(efforts[e], false);
        portable[e] = bam_deflate_new(efforts[e], true);
    }
    inflater = libdeflate_alloc_decompressor();
    return !codec[0] || !codec[1] || !portable[0] || !portable[1] || !inflater;
}

static int tear_down(void **state)
{
    (void)state;
    for (int e = 0; e < 2; e++) {
        free(codec[e]);
        free(portable[e]);
    }
    libdeflate_free_decompressor(inflater);
    return 0;
}

static uint64_t seed;

static uint32_t rnd(uint32_t below)
{
    return unit_below(&seed, below);
}

/* ---- round trips ---- */

static void check_zlib(const uint8_t *data, size_t size, const uint8_t *expected, size_t n)
{
    z_stream z = {.next_in = (Bytef *)data, .avail_in = (uInt)size, .next_out = back, .avail_out = MAX + 1};
    assert_int_equal(inflateInit2(&z, -15), Z_OK);
    int end = inflate(&z, Z_FINISH);
    size_t made = z.total_out, used = z.total_in;
    inflateEnd(&z);
    assert_int_equal(end, Z_STREAM_END);
    assert_int_equal(made, n);
    assert_int_equal(used, size);
    assert_memory_equal(back, expected, n);
}

static void check_libdeflate(const uint8_t *data, size_t size, const uint8_t *expected, size_t n)
{
    size_t used, made;
    memset(back, 0, n);
    assert_int_equal(libdeflate_deflate_decompress_ex(inflater, data, size, back, MAX + 1, &used, &made),
                     LIBDEFLATE_SUCCESS);
    assert_int_equal(made, n);
    assert_int_equal(used, size);
    assert_memory_equal(back, expected, n);
}

static size_t compress_within(int e, size_t n, size_t cap)
{
    memset(out, guard_byte, sizeof out);
    size_t size = bam_deflate(codec[e], in, n, out, cap);
    assert_true(size <= cap);
    for (size_t i = cap; i < cap + GUARD && i < sizeof out; i++)
        assert_int_equal(out[i], guard_byte);
    return size;
}

/* Checks that out[size] inflates to in[n], and that the encoder without newer instructions makes the same bytes. */
static void check_output(int e, size_t n, size_t size)
{
    check_zlib(out, size, in, n);
    check_libdeflate(out, size, in, n);
    assert_int_equal(bam_deflate(portable[e], in, n, other, n + STORED), size);
    assert_memory_equal(out, other, size);
}

/* Deflates in[n] at both efforts and inflates it again. Returns the smaller size. */
static size_t round_trip(size_t n)
{
    size_t best = SIZE_MAX;
    for (int e = 0; e < 2; e++) {
        size_t size = compress_within(e, n, n + STORED);
        assert_in_range(size, 1, n + STORED);
        check_output(e, n, size);
        best = size < best ? size : best;
    }
    return best;
}

/* ---- data ---- */

/* Makes data like sorted BAM records with reads of `len` bases. Returns the bytes made. */
static size_t make_records(size_t n, uint32_t len, uint32_t quals)
{
    static uint8_t genome[1 << 14];
    for (size_t i = 0; i < sizeof genome; i++) {
        uint32_t second = rnd(4), first = rnd(4);
        genome[i] = (uint8_t)(1 << second | (1 << first) << 4);
    }
    size_t size = 36 + 12 + len / 2 + len + 8, at = 0;
    for (uint32_t pos = 1000; at + size <= n; at += size, pos += rnd(8)) {
        uint8_t *r = in + at;
        memset(r, 0, 36);
        store_le32(r, (uint32_t)size - 4);
        store_le32(r + 8, pos);
        store_le32(r + 12, 0x1249 << 16 | 60 << 8 | 12);
        store_le16(r + 16, 0);
        store_le32(r + 20, len);
        char name[32];
        uint32_t y = rnd(9999), tile = rnd(4);
        snprintf(name, sizeof name, "r:%u:%u", 1101 + tile, 10000 + y);
        memcpy(r + 36, name, 12);
        uint8_t *seq = r + 48, *qual = seq + len / 2;
        memcpy(seq, genome + pos / 2 % (sizeof genome / 2), len / 2);
        for (uint32_t i = 0; i < len; i++)
            qual[i] = rnd(12) ? 37 : (uint8_t)(2 + rnd(quals));
        memcpy(qual + len, "NMC\0MDZ1", 8);
    }
    return at;
}

/* Makes complete records whose fields differ in length and kind. Some have the patterns that the encoder searches:
 * reads that overlap, mates by name, clips, runs of qualities, no tags at the end. Returns the bytes made. */
static size_t make_odd_records(size_t n)
{
    static uint8_t genome[4096];
    unit_fill(&seed, genome, sizeof genome);
    uint32_t names = 1 + rnd(40), longest = 1 + rnd(rnd(4) ? 300 : 3000), pos = rnd(1000), levels = 1 + rnd(3);
    bool tagged = rnd(4) != 0;
    size_t at = 0;
    for (;;) {
        uint32_t name = 1 + rnd(rnd(9) ? 20 : 250), ops = rnd(4), bases = rnd(9) ? longest : rnd(longest);
        uint32_t tags = tagged ? rnd(80) : 0;
        uint32_t size = 36 + name + 4 * ops + (bases + 1) / 2 + bases + tags;
        if (at + size > n)
            return at;
        uint8_t *r = in + at, *p = r + 36;
        memset(r, 0, 36);
        store_le32(r, size - 4);
        store_le32(r + 8, rnd(20) ? pos += rnd(9) : rnd(UINT32_MAX));
        r[12] = (uint8_t)name;
        store_le16(r + 16, (uint16_t)ops);
        store_le16(r + 18, rnd(10) ? 99 : 4);
        store_le32(r + 20, bases);
        memset(p, 'a' + (int)rnd(names), name);
        p[name - 1] = 0;
        p += name;
        for (uint32_t i = 0; i < ops; i++, p += 4) {
            uint32_t op = bases << 4 | rnd(5);
            store_le32(p, op >> rnd(2));
        }
        for (uint32_t i = 0; i < (bases + 1) / 2; i++)
            *p++ = rnd(300) ? genome[(pos / 2 + i) % sizeof genome] : (uint8_t)rnd(256);
        for (uint32_t i = 0; i < bases; i++, p++)
            *p = i > 0 && rnd(12) ? p[-1] : (uint8_t)(30 + rnd(levels));
        for (uint32_t i = 0; i < tags; i++)
            *p++ = (uint8_t)"NMC\0MDZ150\0RGZgroup"[i % 20];
        at += size;
    }
}

/* Makes pieces of all kinds, one after another. Returns n. */
static size_t make_mixture(size_t n)
{
    for (size_t at = 0; at < n;) {
        size_t len = 1 + rnd(rnd(4) ? 300 : 9000);
        len = len < n - at ? len : n - at;
        uint32_t kind = rnd(6), dist = at ? 1 + rnd(at < MAX_DIST + 9 ? (uint32_t)at : MAX_DIST + 9) : 0;
        uint32_t low = rnd(200), span = 1 + rnd(1 + rnd(56));
        if (rnd(4) == 0 && at)
            dist = 1 + rnd(at < 8 ? (uint32_t)at : 8);
        for (size_t i = 0; i < len; i++) {
            switch (kind) {
            case 0:  in[at + i] = (uint8_t)rnd(256); break;
            case 1:  in[at + i] = (uint8_t)low; break;
            case 2:  in[at + i] = (uint8_t)(low + rnd(span)); break;
            default: in[at + i] = dist ? in[at + i - dist] : (uint8_t)low; break;
            }
        }
        at += len;
    }
    return n;
}

static void fill_random(size_t n)
{
    unit_fill(&seed, in, n);
}

/* ---- tests ---- */

static void test_any_small_size_comes_back(void **state)
{
    (void)state;
    seed = 1;
    for (size_t n = 0; n <= 300; n++) {
        fill_random(n);
        round_trip(n);
        memset(in, 'A', n);
        round_trip(n);
        for (size_t i = 0; i < n; i++)
            in[i] = (uint8_t)("acgt"[rnd(4)]);
        round_trip(n);
    }
}

static void test_largest_size_comes_back(void **state)
{
    (void)state;
    seed = 2;
    for (size_t n = MAX - 40; n <= MAX; n++)
        round_trip(make_mixture(n));
    make_records(MAX, 100, 40);
    round_trip(MAX);
}

static void test_runs_become_next_to_nothing(void **state)
{
    (void)state;
    for (int c = 0; c < 256; c += 51) {
        memset(in, c, MAX);
        assert_in_range(round_trip(MAX), 1, 600);
    }
    for (size_t period = 2; period < 40; period++) {
        for (size_t i = 0; i < MAX; i++)
            in[i] = (uint8_t)(i % period * 7);
        assert_in_range(round_trip(MAX), 1, 700);
    }
}

static void test_incompressible_data_are_stored(void **state)
{
    (void)state;
    seed = 3;
    for (size_t n = 1; n <= MAX; n = n * 3 + 1) {
        fill_random(n);
        assert_int_equal(round_trip(n), n + STORED);
    }
}

/* Every 4-gram of 16 letters comes once: no match, but equal hashes, and letters of 4 bits. */
static void test_de_bruijn_sequence_comes_back(void **state)
{
    (void)state;
    enum { K = 16, N = 4 };
    uint8_t a[K * N] = {0};
    size_t n = 0;
    /* Lyndon words in order (Fredricksen, Kessler, Maiorana) */
    for (int len = 1; len > 0;) {
        if (N % len == 0)
            for (int i = 0; i < len && n < MAX; i++)
                in[n++] = a[i];
        for (int i = len; i < N; i++)
            a[i] = a[i - len];
        for (len = N; len > 0 && a[len - 1] == K - 1;)
            len--;
        if (len > 0)
            a[len - 1]++;
    }
    assert_int_equal(n, MAX);
    assert_in_range(round_trip(n), 1, MAX / 2 + 1000);
}

static void test_records_shrink(void **state)
{
    (void)state;
    seed = 4;
    for (uint32_t len = 50; len <= 12800; len *= 2)
        for (uint32_t quals = 3; quals <= 40; quals += 37) {
            size_t n = make_records(MAX, len, quals);
            assert_in_range(round_trip(n), 1, n / 2);
        }
}

/* Literals whose counts are Fibonacci numbers need codes of 20 bits and more. */
static void test_code_lengths_beyond_the_limit_are_cut(void **state)
{
    (void)state;
    seed = 5;
    for (int letters = 10; letters <= 22; letters++) {
        size_t n = 0;
        for (uint32_t i = 0, a = 1, b = 1; i < (uint32_t)letters; i++) {
            for (uint32_t k = 0; k < a && n < MAX; k++)
                in[n++] = (uint8_t)(i * 11);
            uint32_t c = a + b;
            a = b;
            b = c;
        }
        for (size_t i = n; i > 1; i--) {
            size_t j = rnd((uint32_t)i);
            uint8_t t = in[i - 1];
            in[i - 1] = in[j];
            in[j] = t;
        }
        round_trip(n);
    }
}

static void test_every_length_comes_back(void **state)
{
    (void)state;
    seed = 6;
    for (uint32_t len = MIN_MATCH; len <= MAX_MATCH + 20; len++) {
        fill_random(3000);
        for (uint32_t k = 0; k < 3; k++)
            memcpy(in + 1000 + 600 * k, in + 10, len);
        round_trip(3000);
    }
}

static void test_every_edge_of_the_window_comes_back(void **state)
{
    (void)state;
    enum { REPEAT = 300 };
    seed = 7;
    static const size_t dists[] = {1, 2, 3, 4, 5, 8, 9, 255, 256, 257, 16384, 16385, 24577,
                                   MAX_DIST - 1, MAX_DIST, MAX_DIST + 1, MAX_DIST + 2, 40000, 300, 1000};
    for (size_t i = 0; i < sizeof dists / sizeof *dists; i++) {
        size_t dist = dists[i], start = 100, n = start + dist + 400;
        memset(in, 0, n);
        for (size_t k = 0; k < n; k += 50)
            in[k] = (uint8_t)rnd(256);
        for (size_t k = 0; k < REPEAT; k++)
            in[start + k] = (uint8_t)rnd(256);
        for (size_t k = 0; k < REPEAT; k++)
            in[start + dist + k] = in[start + k];
        round_trip(n);
        for (size_t k = 0; k < n; k++)         /* only one far repetition: it is found within the window */
            in[k] = (uint8_t)rnd(128);
        size_t without = round_trip(n);
        if (dist < REPEAT || dist > MAX_DIST)
            continue;
        memcpy(in + start + dist, in + start, REPEAT);
        assert_in_range(round_trip(n), 1, without - REPEAT / 2);
    }
}

static void test_nothing_is_written_beyond_the_room(void **state)
{
    (void)state;
    seed = 8;
    for (int round = 0; round < 3; round++) {
        size_t n = round == 0 ? make_records(MAX, 150, 4) : make_mixture(round == 1 ? 3000 : 60000);
        for (int e = 0; e < 2; e++) {
            size_t size = compress_within(e, n, n + STORED), cap = size + 20;
            while (cap > 0 && compress_within(e, n, cap) != 0)
                cap--;
            /* the smallest room that is refused is hardly larger than the output */
            assert_in_range(cap, size - 1, size + 7);
            for (; cap > size - 9; cap--)
                assert_int_equal(compress_within(e, n, cap), 0);
            for (cap = 0; cap < 12; cap++)
                assert_int_equal(compress_within(e, n, cap), 0);
        }
    }
    fill_random(100);
    assert_int_equal(compress_within(0, 100, 100 + STORED), 100 + STORED);
    assert_int_equal(compress_within(0, 100, 100 + STORED - 1), 0);
}

/* Data compressed before must have no effect. */
static void test_output_depends_on_the_input_only(void **state)
{
    (void)state;
    static uint8_t first[MAX + STORED];
    for (int e = 0; e < 2; e++) {
        seed = 9;
        size_t n = make_records(MAX, 150, 8), size = compress_within(e, n, n + STORED);
        memcpy(first, out, size);
        round_trip(make_mixture(MAX));
        memset(in, 0xff, MAX);
        round_trip(MAX);
        seed = 9;
        n = make_records(MAX, 150, 8);
        assert_int_equal(compress_within(e, n, n + STORED), size);
        assert_memory_equal(out, first, size);
    }
}

static void test_output_does_not_depend_on_the_processor(void **state)
{
    (void)state;
    static uint8_t first[MAX + STORED];
    for (int e = 0; e < 2; e++) {
        for (uint32_t i = 0; i < 60; i++) {
            seed = 20000 + i;
            size_t n = i % 2 ? make_mixture(MAX - rnd(999)) : make_records(MAX, 50 << i % 7, 2 + i);
            size_t size = bam_deflate(portable[e], in, n, first, sizeof first);
            assert_int_equal(compress_within(e, n, n + STORED), size);
            assert_memory_equal(out, first, size);
        }
    }
}

/* The encoder finds fields by lengths in the data, any of which may be wrong. */
static void test_records_with_wrong_bytes_come_back(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 3000; i++) {
        int e = i % 2;
        seed = 30000 + i / 2;
        size_t n = make_odd_records(i % 20 > 1 ? 800 + rnd(9000) : MAX - rnd(500));
        for (uint32_t k = rnd(4); k > 0 && n > 0; k--)
            in[rnd((uint32_t)n)] = (uint8_t)rnd(256);
        uint8_t *exact = exact_copy(in, n);
        size_t size = bam_deflate(codec[e], exact, n, out, n + STORED);
        check_zlib(out, size, in, n);
        assert_int_equal(bam_deflate(portable[e], exact, n, other, n + STORED), size);
        assert_memory_equal(out, other, size);
        free(exact);
    }
}

/* A read that overlaps the one before, one base further on, is half a byte off. Since the encoder finds it by
 * position, it must cost little more than a copy. */
static void test_overlapping_reads_are_found_by_position(void **state)
{
    (void)state;
    seed = 10;
    static uint8_t genome[1 << 13];
    enum { LEN = 150, SIZE = 36 + 8 + 4 + LEN / 2 + LEN };
    for (size_t i = 0; i < sizeof genome; i++)
        genome[i] = (uint8_t)(1 << rnd(4));
    size_t n = 0;
    for (uint32_t pos = 0; n + SIZE <= MAX; n += SIZE, pos += 1 + rnd(4)) {
        uint8_t *r = in + n;
        memset(r, 0, SIZE);
        store_le32(r, SIZE - 4);
        store_le32(r + 8, pos);
        r[12] = 8;
        store_le16(r + 16, 1);
        store_le32(r + 20, LEN);
        snprintf((char *)r + 36, 8, "q%06u", rnd(1000000));
        store_le32(r + 44, LEN << 4);
        for (uint32_t i = 0; i < LEN / 2; i++)
            r[48 + i] = (uint8_t)(genome[pos + 2 * i] << 4 | genome[pos + 2 * i + 1]);
        memset(r + 48 + LEN / 2, 37, LEN);
    }
    size_t size = bam_deflate(codec[0], in, n, out, n + STORED);
    check_zlib(out, size, in, n);
    assert_in_range(size, 1, n / SIZE * 18);
}

static void test_random_mixtures_come_back(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 3000; i++) {
        seed = 1000 + i;
        round_trip(make_mixture(1 + rnd(i % 20 ? 3000 : MAX)));
    }
}

/* A search that never ends must stop before the end of the input, which
 * is the end of its memory here. */
static void test_nothing_is_read_beyond_the_input(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 600; i++) {
        seed = 7000 + i;
        size_t n = 40 + rnd(1200);
        make_mixture(n);
        if (i % 2)               /* matches that get longer with every byte skipped */
            for (size_t at = 0, len = 4; at + len + 1 < n; at += len, len += rnd(3))
                memmove(in + at + len, in + at + 1, len + 1 < n - at - len ? len + 1 : n - at - len);
        uint8_t *exact = exact_copy(in, n);
        for (int e = 0; e < 2; e++)
            assert_in_range(bam_deflate(codec[e], exact, n, out, n + STORED), 1, n + STORED);
        free(exact);
    }
}

/* Records that differ in names and SEQ, with qualities of two levels in runs of up to `longest`, and without tags.
 * Returns the bytes made. */
static size_t make_runs(size_t n, uint32_t len, uint32_t longest)
{
    size_t size = 36 + 12 + len / 2 + len, at = 0;
    for (; at + size <= n; at += size) {
        uint8_t *r = in + at, level = 37;
        unit_fill(&seed, r, size);
        memset(r, 0, 36);
        store_le32(r, (uint32_t)size - 4);
        r[12] = 12;
        store_le32(r + 20, len);
        for (uint32_t i = 0, left = 0; i < len; i++, left--) {
            if (left == 0) {
                left = 1 + rnd(longest);
                level ^= 37 ^ 11;
            }
            r[size - len + i] = level;
        }
    }
    return at;
}

static void test_runs_of_any_length_come_back(void **state)
{
    (void)state;
    static const uint32_t lens[] = {40, 62, 64, 150, 258, 511, 512, 514, 600, 1030, 2000};
    for (size_t i = 0; i < N_OF(lens); i++)
        for (uint32_t longest = 8; longest <= 2 * lens[i]; longest *= 3) {
            seed = 300 + i;
            size_t n = make_runs(MAX, lens[i], longest);
            uint8_t *exact = exact_copy(in, n);      /* the last quality is the end of its memory */
            size_t size = bam_deflate(codec[BAM_DEFLATE_DEFAULT], exact, n, out, n + STORED);
            check_zlib(out, size, in, n);
            check_libdeflate(out, size, in, n);
            free(exact);
        }
}

/* The last record's qualities, of 40 levels, equal those before, and the bytes behind the input would continue the
 * match. */
static void test_match_of_qualities_ends_with_the_input(void **state)
{
    (void)state;
    enum { LEN = 100, SIZE = 36 + 12 + LEN / 2 + LEN, N = 60 };
    seed = 77;
    size_t n = make_runs(N * SIZE, LEN, 1);
    for (size_t at = SIZE - LEN; at < n; at += SIZE)
        for (uint32_t i = 0; i < LEN; i++)
            in[at + i] = (uint8_t)(2 + rnd(40));
    memcpy(in + n - LEN, in + n - LEN - SIZE, LEN);
    memcpy(in + n, in + n - SIZE, SIZE);
    size_t size = bam_deflate(codec[BAM_DEFLATE_FAST], in, n, out, n + STORED);
    check_output(BAM_DEFLATE_FAST, n, size);
}

/* Returns our size of a few blocks of a kind in thousandths of the size at libdeflate's level. */
static size_t kind_size(int effort, int level, size_t k)
{
    enum { BLOCKS = 4, BLOCK = 65280 };
    static struct record_maker maker;
    uint8_t *genome = record_genome(), *expected = must_alloc(MAX);
    struct libdeflate_compressor *theirs = libdeflate_alloc_compressor(level);
    MUST(theirs);
    size_t their_size = 0, our_size = 0;
    maker = (struct record_maker){.kind = &record_kinds[k], .seed = 40000 + k, .genome = genome};
    for (int b = 0; b < BLOCKS; b++) {
        size_t n = record_block(&maker, in, BLOCK), size = compress_within(effort, n, n + STORED);
        assert_in_range(n, BLOCK / 2, BLOCK);
        check_output(effort, n, size);
        our_size += size;
        their_size += libdeflate_deflate_compress(theirs, in, n, expected, MAX);
    }
    libdeflate_free_compressor(theirs);
    free(expected);
    free(genome);
    return (our_size * 1000 + their_size - 1) / their_size;
}

/* Checks that no kind of records exceeds its size at libdeflate's level by more than per_mille. */
static void check_kinds(int effort, int level, uint32_t per_mille)
{
    for (size_t k = 0; k < N_OF(record_kinds); k++) {
        size_t size = kind_size(effort, level, k);
        if (size > 1000 + per_mille)
            fail_msg("%s: %zu thousandths of level %d", record_kinds[k].name, size, level);
    }
}

/* One match from the last run of qualities into the tags makes them 2 % smaller than at level 1. */
static void test_short_reads_end_with_one_match(void **state)
{
    (void)state;
    for (size_t k = 0; k < N_OF(record_kinds); k++)
        if (record_kinds[k].len == 40)
            assert_in_range(kind_size(BAM_DEFLATE_FAST, 1, k), 1, 980);
}

/* The promise of -l 1 compared with samtools, which uses libdeflate's level 1: 30 per mille. */
static void test_no_kind_of_records_is_larger_than_at_level_1(void **state)
{
    (void)state;
    check_kinds(BAM_DEFLATE_FAST, 1, 30);
}

/* The promise of the default level compared with samtools, whose default is htslib's level 6: libdeflate's level 7. 30
 * are promised for files; these are four blocks of a kind, and copies at one place are the largest. */
static void test_no_kind_of_records_is_larger_than_at_level_7(void **state)
{
    (void)state;
    check_kinds(BAM_DEFLATE_DEFAULT, 7, 35);
}

/* ---- long reads ---- */

/* Returns our size in thousandths of the size at libdeflate's level. Each block begins with a record, unless records
 * are longer than a block. */
static size_t long_reads_size(int effort, int level, uint32_t bases, uint32_t times, bool runs)
{
    enum { BYTES = 1500000, BLOCK = 65280 };
    uint8_t *data = make_long_reads(&seed, BYTES, bases, times, runs), *expected = must_alloc(MAX);
    struct libdeflate_compressor *theirs = libdeflate_alloc_compressor(level);
    MUST(theirs);
    size_t ours = 0, other_size = 0, from = 0, end = 4 + load_le32(data);
    while (from + 2 * BLOCK < BYTES) {
        size_t to = end;
        for (; end - from <= BLOCK; end += 4 + load_le32(data + end))
            to = end;
        size_t n = to - from < BLOCK ? to - from : BLOCK;
        memcpy(in, data + from, n);
        size_t size = compress_within(effort, n, n + STORED);
        check_output(effort, n, size);
        ours += size;
        other_size += libdeflate_deflate_compress(theirs, in, n, expected, MAX);
        from += n;
    }
    libdeflate_free_compressor(theirs);
    free(expected);
    free(data);
    return ours * 1000 / other_size;
}

/* Long reads are smaller than at libdeflate's level 1, and 7 by default, because of separate codes for each field,
 * copies and long runs. */
static void test_fields_of_long_reads_have_codes_of_their_own(void **state)
{
    (void)state;
    static const struct { uint32_t bases, times; bool runs; size_t most[2]; } reads[] = {
        {12000, 1, true, {832, 886}}, {12000, 1, false, {870, 974}},
        {200000, 1, true, {907, 973}}, {200000, 1, false, {953, 992}},
        {15000, 2, true, {798, 932}}, {15000, 2, false, {852, 999}},
        {2500, 1, true, {897, 944}}, {2500, 1, false, {898, 1003}},
        {19000, 1, true, {831, 896}},
    };
    for (size_t i = 0; i < N_OF(reads); i++)
        for (int e = 0; e < 2; e++) {
            seed = 50 + i;
            size_t size = long_reads_size(efforts[e], e ? 7 : 1, reads[i].bases, reads[i].times, reads[i].runs);
            if (size > reads[i].most[e])
                fail_msg("reads %zu, effort %d: %zu thousandths", i, e, size);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_any_small_size_comes_back),
        cmocka_unit_test(test_largest_size_comes_back),
        cmocka_unit_test(test_runs_become_next_to_nothing),
        cmocka_unit_test(test_incompressible_data_are_stored),
        cmocka_unit_test(test_de_bruijn_sequence_comes_back),
        cmocka_unit_test(test_records_shrink),
        cmocka_unit_test(test_code_lengths_beyond_the_limit_are_cut),
        cmocka_unit_test(test_every_length_comes_back),
        cmocka_unit_test(test_every_edge_of_the_window_comes_back),
        cmocka_unit_test(test_nothing_is_written_beyond_the_room),
        cmocka_unit_test(test_output_depends_on_the_input_only),
        cmocka_unit_test(test_output_does_not_depend_on_the_processor),
        cmocka_unit_test(test_records_with_wrong_bytes_come_back),
        cmocka_unit_test(test_overlapping_reads_are_found_by_position),
        cmocka_unit_test(test_random_mixtures_come_back),
        cmocka_unit_test(test_nothing_is_read_beyond_the_input),
        cmocka_unit_test(test_runs_of_any_length_come_back),
        cmocka_unit_test(test_match_of_qualities_ends_with_the_input),
        cmocka_unit_test(test_short_reads_end_with_one_match),
        cmocka_unit_test(test_no_kind_of_records_is_larger_than_at_level_1),
        cmocka_unit_test(test_no_kind_of_records_is_larger_than_at_level_7),
        cmocka_unit_test(test_fields_of_long_reads_have_codes_of_their_own),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
