/* SPDX-License-Identifier: MIT */
/* The oracle is zlib: the same streams are valid, and give the same bytes. */
#include "unit.h"
#include <sys/mman.h>
#include <libdeflate.h>
#include <zlib.h>
#include "codec/bam_deflate.h"
#include "codec/bam_inflate.h"
#include "base/endian_io.h"
#include "codec/huffman.h"

enum { MAX = 65536, OUT = MAX + 1000, BEFORE = 64 };

static struct bam_inflate *inflaters[2];
static uint64_t seed;
static uint8_t in[MAX], packed[2 * MAX], expected[OUT];

/* Memory whose end is that of a mapping: sanitizers miss wide loads that begin inside. */
static uint8_t *from_end, *to_end;

static uint8_t *guarded_end(void)
{
    enum { PAGES = 1 << 18, GUARD = 1 << 16 };
    uint8_t *p = mmap(NULL, PAGES + GUARD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    MUST(p != MAP_FAILED && mprotect(p + PAGES, GUARD, PROT_NONE) == 0);
    return p + PAGES;
}

static int set_up(void **state)
{
    (void)state;
    from_end = guarded_end();
    to_end = guarded_end();
    inflaters[0] = bam_inflate_new(false);
    inflaters[1] = bam_inflate_new(true);
    return !inflaters[0] || !inflaters[1];
}

static int tear_down(void **state)
{
    (void)state;
    free(inflaters[0]);
    free(inflaters[1]);
    return 0;
}

static uint32_t rnd(uint32_t below)
{
    return unit_below(&seed, below);
}

/* ---- the comparison ---- */

static int zlib_inflate(const uint8_t *data, size_t n, size_t size)
{
    z_stream z = {.next_in = (Bytef *)data, .avail_in = (uInt)n, .next_out = expected, .avail_out = (uInt)size};
    MUST(inflateInit2(&z, -15) == Z_OK);
    int end = inflate(&z, Z_FINISH);
    size_t made = z.total_out;
    inflateEnd(&z);
    return end == Z_STREAM_END && made == size ? 0 : -1;
}

/* Inflates between places that must not be written, and compares with zlib; returns zlib's verdict. */
static int inflate_both(const uint8_t *data, size_t n, size_t size)
{
    static const uint8_t untouched[BEFORE] = {0xa5, 0x5a};
    int verdict = zlib_inflate(data, n, size);
    uint8_t *from = from_end - n, *to = to_end - size;
    if (n > 0)
        memcpy(from, data, n);
    for (size_t i = 0; i < N_OF(inflaters); i++) {
        memset(to, 0, size);
        memcpy(to - BEFORE, untouched, BEFORE);
        assert_int_equal(bam_inflate(inflaters[i], from, n, to, size), verdict);
        assert_memory_equal(to - BEFORE, untouched, BEFORE);
        if (verdict == 0 && size > 0)
            assert_memory_equal(to, expected, size);
    }
    return verdict;
}

/* A stream that is only valid for its size. */
static void check_stream(const uint8_t *data, size_t n, size_t size)
{
    assert_int_equal(inflate_both(data, n, size), 0);
    assert_int_equal(inflate_both(data, n, size + 1), -1);
    if (size > 0) {
        assert_int_equal(inflate_both(data, n, size - 1), -1);
        assert_int_equal(inflate_both(data, n - 1, size), -1);
    }
}

/* ---- data and compressors ---- */

static void fill_shape(uint32_t shape, size_t n)
{
    static const char text[] = "ACGTACGGTTCAAFFFFF:FF,HT275DSXX:1:1101:";
    for (size_t i = 0; i < n; i++)
        switch (shape) {
        case 0:  in[i] = (uint8_t)rnd(256); break;
        case 1:  in[i] = 'F'; break;
        case 2:  in[i] = (uint8_t)(rnd(8) ? 37 : rnd(40)); break;
        case 3:  in[i] = (uint8_t)text[(i * i >> 7) % (sizeof text - 1)]; break;
        case 4:  in[i] = i && rnd(20) ? in[i - 1 - rnd(i < 32768 ? (uint32_t)i : 32768)] : (uint8_t)rnd(256); break;
        case 5:  in[i] = i < 9 ? (uint8_t)i : rnd(300) ? in[i - 1 - i / 1500 % 40] : (uint8_t)rnd(256); break;
        default: in[i] = (uint8_t)(1u << rnd(8) >> rnd(8)); break;       /* skewed: long codes */
        }
}
enum { N_SHAPES = 7 };

static size_t zlib_deflate(size_t n, int level, int strategy)
{
    z_stream z = {.next_in = in, .avail_in = (uInt)n, .next_out = packed, .avail_out = sizeof packed};
    MUST(deflateInit2(&z, level, Z_DEFLATED, -15, 8, strategy) == Z_OK);
    MUST(deflate(&z, Z_FINISH) == Z_STREAM_END);
    deflateEnd(&z);
    return z.total_out;
}

static const size_t sizes[] = {
    0, 1, 2, 3, 15, 16, 17, 63, 64, 65, 100, 258, 259, 330, 1000, 5000, 65279, 65280, 65535, MAX,
};

static void test_what_zlib_compresses(void **state)
{
    (void)state;
    static const int strategies[] = {Z_DEFAULT_STRATEGY, Z_FILTERED, Z_HUFFMAN_ONLY, Z_RLE, Z_FIXED};
    seed = 1;
    for (uint32_t shape = 0; shape < N_SHAPES; shape++)
        for (size_t i = 0; i < N_OF(sizes); i++) {
            fill_shape(shape, sizes[i]);
            for (size_t s = 0; s < N_OF(strategies); s++)
                for (int level = sizes[i] > 5000 ? (int)rnd(4) : 0; level <= 9; level += sizes[i] > 5000 ? 5 : 1) {
                    check_stream(packed, zlib_deflate(sizes[i], level, strategies[s]), sizes[i]);
                    if (level > 0 && (strategies[s] == Z_HUFFMAN_ONLY || strategies[s] == Z_RLE))
                        break;                   /* these do not depend on the level */
                }
        }
}

static void test_what_libdeflate_compresses(void **state)
{
    (void)state;
    seed = 2;
    for (int level = 0; level <= 12; level += 2) {
        struct libdeflate_compressor *c = libdeflate_alloc_compressor(level);
        for (uint32_t shape = 0; shape < N_SHAPES; shape++) {
            size_t n = rnd(2) ? MAX : rnd(MAX);
            fill_shape(shape, n);
            check_stream(packed, libdeflate_deflate_compress(c, in, n, packed, sizeof packed), n);
        }
        libdeflate_free_compressor(c);
    }
}

static void test_what_we_compress(void **state)
{
    (void)state;
    static const int efforts[] = {BAM_DEFLATE_FAST, BAM_DEFLATE_DEFAULT};
    seed = 3;
    for (size_t e = 0; e < N_OF(efforts); e++) {
        struct bam_deflate *c = bam_deflate_new(efforts[e], false);
        for (uint32_t shape = 0; shape < N_SHAPES; shape++)
            for (size_t i = 0; i < N_OF(sizes) - 1; i++) {
                fill_shape(shape, sizes[i]);
                check_stream(packed, bam_deflate(c, in, sizes[i], packed, sizeof packed), sizes[i]);
            }
        free(c);
    }
}

static void test_what_follows_the_stream_is_not_looked_at(void **state)
{
    (void)state;
    seed = 4;
    fill_shape(2, 3000);
    size_t n = zlib_deflate(3000, 6, Z_DEFAULT_STRATEGY);
    for (size_t more = 1; more < 40; more++) {
        unit_fill(&seed, packed + n, more);
        assert_int_equal(inflate_both(packed, n + more, 3000), 0);
    }
}

static void test_every_truncation_is_refused(void **state)
{
    (void)state;
    seed = 5;
    for (uint32_t shape = 0; shape < N_SHAPES; shape++) {
        fill_shape(shape, 3000);
        size_t n = zlib_deflate(3000, 6, Z_DEFAULT_STRATEGY);
        for (size_t k = 0; k < n; k++)
            assert_int_equal(inflate_both(packed, k, 3000), -1);
    }
}

/* ---- damage ---- */

static void flip_and_compare(size_t n, size_t size, int times)
{
    for (; times > 0; times--) {
        uint32_t at[3], flips = 1 + rnd(3);
        for (uint32_t i = 0; i < flips; i++) {
            at[i] = rnd(rnd(2) ? (uint32_t)n : n < 100 ? (uint32_t)n : 100) * 8 + rnd(8);
            packed[at[i] / 8] ^= (uint8_t)(1 << at[i] % 8);
        }
        inflate_both(packed, n, size);
        for (uint32_t i = 0; i < flips; i++)
            packed[at[i] / 8] ^= (uint8_t)(1 << at[i] % 8);
    }
}

static void test_flipped_bits_get_the_same_verdict_as_from_zlib(void **state)
{
    (void)state;
    seed = 6;
    for (uint32_t round = 0; round < 300; round++) {
        size_t n = 1 + rnd(round % 10 ? 3000 : MAX);
        fill_shape(round % N_SHAPES, n);
        int strategy = rnd(4) ? Z_DEFAULT_STRATEGY : Z_FIXED, level = (int)rnd(10);
        size_t size = zlib_deflate(n, level, strategy);
        flip_and_compare(size, n, round % 10 ? 100 : 10);
    }
}

static void test_random_bits_get_the_same_verdict_as_from_zlib(void **state)
{
    (void)state;
    seed = 7;
    for (int round = 0; round < 200000; round++) {
        size_t n = 1 + rnd(200);
        unit_fill(&seed, packed, n);
        packed[0] = (uint8_t)((packed[0] & ~7u) | (rnd(8) ? 5 : rnd(8)));
        inflate_both(packed, n, rnd(3) ? rnd(40) : 0);
    }
}

/* ---- streams made by hand ---- */

struct writer {
    size_t bits;
};

static void put(struct writer *w, uint64_t value, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++, w->bits++) {
        uint8_t *byte = &packed[w->bits / 8];
        *byte = (uint8_t)((w->bits % 8 ? *byte : 0) | (value >> i & 1) << w->bits % 8);
    }
}

/* A code word: its first bit is its highest. */
static void put_word(struct writer *w, uint32_t word, uint32_t n)
{
    while (n-- > 0)
        put(w, word >> n & 1, 1);
}

/* RFC 1951 section 3.2.2 */
static void put_code(struct writer *w, const uint8_t *lens, uint32_t sym)
{
    uint32_t count[HUFFMAN_MAX_BITS + 1] = {0}, word = 0;
    for (uint32_t i = 0; i < HUFFMAN_MAX_SYMBOLS; i++)
        count[lens[i]]++;
    count[0] = 0;
    for (uint32_t len = 1; len <= lens[sym]; len++)
        word = (word + count[len - 1]) << 1;
    for (uint32_t i = 0; i < sym; i++)
        word += lens[i] == lens[sym];
    put_word(w, word, lens[sym]);
}

/* Codes for a stream made by hand, and the possible errors in their header. */
struct codes {
    uint8_t litlen[HUFFMAN_MAX_SYMBOLS], dist[HUFFMAN_MAX_SYMBOLS];
    uint32_t n_litlen, n_dist;
};

/* The header of a final dynamic block, with a precode of four bits for each length. */
static void put_header(struct writer *w, const struct codes *c)
{
    put(w, 1 | 2 << 1, 3);
    put(w, c->n_litlen - 257, 5);
    put(w, c->n_dist - 1, 5);
    put(w, HUFFMAN_N_PRECODE - 4, 4);
    for (int i = 0; i < HUFFMAN_N_PRECODE; i++)
        put(w, huffman_precode_order[i] < 16 ? 4 : 0, 3);
    for (uint32_t i = 0; i < c->n_litlen; i++)
        put_word(w, c->litlen[i], 4);
    for (uint32_t i = 0; i < c->n_dist; i++)
        put_word(w, c->dist[i], 4);
}

static struct codes two_codes(void)
{
    struct codes c = {.n_litlen = 258, .n_dist = 2};
    c.litlen['a'] = 1;
    c.litlen[256] = c.litlen[257] = 2;
    c.dist[0] = c.dist[1] = 1;
    return c;
}

static int finish(const struct writer *w, size_t size)
{
    return inflate_both(packed, (w->bits + 7) / 8, size);
}

static void test_smallest_dynamic_block(void **state)
{
    (void)state;
    struct codes c = two_codes();
    struct writer w = {0};
    put_header(&w, &c);
    put_code(&w, c.litlen, 'a');
    put_code(&w, c.litlen, 257);
    put_code(&w, c.dist, 0);
    put_code(&w, c.litlen, 256);
    assert_int_equal(finish(&w, 4), 0);
    assert_memory_equal(expected, "aaaa", 4);
}

/* The block of two_codes() with its codes changed, "a" and a match at dist's first symbol. */
static int changed_codes(const struct codes *c, uint32_t dist_word, uint32_t dist_len)
{
    struct writer w = {0};
    put_header(&w, c);
    put_code(&w, c->litlen, 'a');
    put_code(&w, c->litlen, 257);
    put_word(&w, dist_word, dist_len);
    put_code(&w, c->litlen, 256);
    put(&w, 0, 32);
    return finish(&w, 4);
}

static void test_incomplete_and_oversubscribed_codes(void **state)
{
    (void)state;
    struct codes c = two_codes();
    assert_int_equal(changed_codes(&c, 0, 1), 0);
    c.dist[1] = 0;
    assert_int_equal(changed_codes(&c, 0, 1), 0);            /* one distance, of one bit */
    assert_int_equal(changed_codes(&c, 1, 1), -1);           /* the word without a symbol */
    c.dist[0] = 2;
    assert_int_equal(changed_codes(&c, 0, 2), -1);           /* one of two bits */
    c.dist[0] = 0;
    assert_int_equal(changed_codes(&c, 0, 1), -1);           /* none, but one is used */
    c = two_codes();
    c.dist[1] = 2;
    assert_int_equal(changed_codes(&c, 0, 1), -1);
    c = two_codes();
    c.dist[2] = 1;
    c.n_dist = 3;
    assert_int_equal(changed_codes(&c, 0, 1), -1);           /* oversubscribed */
    c = two_codes();
    c.litlen['b'] = 2;
    assert_int_equal(changed_codes(&c, 0, 1), -1);
    c = two_codes();
    c.litlen['a'] = 2;
    assert_int_equal(changed_codes(&c, 0, 1), -1);           /* incomplete */
    c = two_codes();
    c.litlen[256] = 0;
    c.litlen['b'] = 2;
    assert_int_equal(changed_codes(&c, 0, 1), -1);           /* no end of block */
}

static void test_block_of_nothing_but_its_end(void **state)
{
    (void)state;
    struct codes c = {.n_litlen = 257, .n_dist = 1};
    c.litlen[256] = 1;
    for (uint32_t bit = 0; bit < 2; bit++) {
        struct writer w = {0};
        put_header(&w, &c);
        put(&w, bit, 1);
        assert_int_equal(finish(&w, 0), bit ? -1 : 0);
        assert_int_equal(finish(&w, 1), -1);
    }
}

/* The end marker of a BGZF file is such a block. */
static void test_fixed_blocks_of_nothing_but_their_end(void **state)
{
    (void)state;
    struct writer w = {0};
    for (uint32_t last = 0; last < 2; last++) {
        put(&w, last, 1);
        put(&w, 1, 2);
        assert_int_equal(finish(&w, 0), -1);                 /* no end */
        put(&w, 0, 7);
        assert_int_equal(finish(&w, 0), last ? 0 : -1);
        assert_int_equal(finish(&w, 1), -1);
    }
}

static void test_too_many_symbols(void **state)
{
    (void)state;
    static const uint32_t n[][2] = {{286, 30}, {287, 30}, {288, 30}, {286, 31}, {286, 32}};
    for (size_t i = 0; i < N_OF(n); i++) {
        struct codes c = two_codes();
        c.n_litlen = n[i][0];
        c.n_dist = n[i][1];
        assert_int_equal(changed_codes(&c, 0, 1), i == 0 ? 0 : -1);
    }
}

/* A header whose lengths are coded by two precode symbols of one bit each. */
static int precode_stream(uint32_t sym0, uint32_t sym1, const char *items)
{
    struct writer w = {0};
    put(&w, 1 | 2 << 1, 3);
    put(&w, 0, 5);
    put(&w, 0, 5);
    put(&w, HUFFMAN_N_PRECODE - 4, 4);
    for (int i = 0; i < HUFFMAN_N_PRECODE; i++)
        put(&w, huffman_precode_order[i] == sym0 || huffman_precode_order[i] == sym1, 3);
    for (; *items; items++)
        put(&w, (uint32_t)(*items - '0'), 1);
    put(&w, 0, 40);
    return finish(&w, 0);
}

static void test_repeated_code_lengths(void **state)
{
    (void)state;
    /* 18 is "0" here and 1 is "1": zeros 138 and 118 times, 1 for end of block, and for a distance */
    assert_int_equal(precode_stream(1, 18, "1" "1111111" "1" "1101011" "0" "0"), 0);
    assert_int_equal(precode_stream(1, 18, "1" "1111111" "1" "1101011" "0" "1" "0000000"), -1);  /* too many */
    assert_int_equal(precode_stream(16, 1, "1" "00"), -1);                           /* nothing to repeat */
    assert_int_equal(precode_stream(1, 1, "000"), -1);                               /* precode incomplete */
}

static void test_symbols_that_must_not_occur(void **state)
{
    (void)state;
    /* Where input and output soon end, and where 400 literals follow. */
    for (uint32_t more = 0; more <= 400; more += 400)
        for (uint32_t sym = 284; sym < 288; sym++)
            for (uint32_t dist = 0; dist < 32; dist++) {
                struct writer w = {0};
                put(&w, 1 | 1 << 1, 3);
                put_word(&w, 0x30 + 'a', 8);
                put_word(&w, 0xc0 + sym - 280, 8);
                put(&w, 31, sym == 284 ? 5 : 0);     /* 258 the other way */
                put_word(&w, dist, 5);
                for (uint32_t i = 0; i < more; i++)
                    put_word(&w, 0x30 + 'b', 8);
                put_word(&w, 0, 7);
                int wanted = sym < 286 && dist == 0 ? 0 : -1;        /* otherwise too far back, or no symbol */
                assert_int_equal(finish(&w, 1 + 258 + more), wanted);
            }
}

static void test_stored_blocks(void **state)
{
    (void)state;
    static const uint8_t good[] = {1, 3, 0, 0xfc, 0xff, 'a', 'b', 'c'};
    memcpy(packed, good, sizeof good);
    check_stream(packed, sizeof good, 3);
    for (size_t i = 1; i < 5; i++) {
        packed[i] ^= 0x10;
        assert_int_equal(inflate_both(packed, sizeof good, 3), -1);
        packed[i] ^= 0x10;
    }
    packed[0] = 7;                               /* no type */
    assert_int_equal(inflate_both(packed, sizeof good, 3), -1);
    packed[0] = 0;                               /* not the last block */
    assert_int_equal(inflate_both(packed, sizeof good, 3), -1);
    memcpy(packed + sizeof good, good, sizeof good);
    check_stream(packed, 2 * sizeof good, 6);
}

static void test_no_input(void **state)
{
    (void)state;
    assert_int_equal(inflate_both(packed, 0, 0), -1);
    assert_int_equal(inflate_both(packed, 0, 10), -1);
}

/* Splits codes at random until there are n. */
static void random_lens(uint8_t *lens, const uint16_t *syms, uint32_t n, uint32_t depth)
{
    uint8_t leaf[HUFFMAN_MAX_SYMBOLS] = {1, 1};
    for (uint32_t have = 2; have < n; have++) {
        uint32_t k = rnd(depth) ? have - 1 : rnd(have);
        while (leaf[k] == HUFFMAN_MAX_BITS)
            k = rnd(have);
        leaf[have] = ++leaf[k];
    }
    for (uint32_t i = 0; i < n; i++)
        lens[syms[i]] = leaf[i];
}

static uint32_t shuffled(uint16_t *syms, uint32_t from, uint32_t below, uint32_t n)
{
    for (uint32_t i = from; i < below; i++)
        syms[i - from] = (uint16_t)i;
    for (uint32_t i = 0; i + 1 < below - from; i++) {
        uint32_t k = i + rnd(below - from - i);
        uint16_t s = syms[i];
        syms[i] = syms[k];
        syms[k] = s;
    }
    return n < below - from ? n : below - from;
}

static struct codes random_codes(uint32_t depth)
{
    uint16_t syms[HUFFMAN_MAX_SYMBOLS];
    struct codes c = {.n_litlen = HUFFMAN_N_LITLEN, .n_dist = HUFFMAN_N_DIST};
    uint32_t n = shuffled(syms, 0, HUFFMAN_N_LITLEN, 3 + rnd(rnd(2) ? 20 : 284));
    for (uint32_t i = 1; i < HUFFMAN_N_LITLEN; i++)          /* the end of the block has a code, so has a literal */
        if (syms[i] == 256) {
            syms[i] = syms[0];
            syms[0] = 256;
        }
    for (uint32_t i = 2; i < HUFFMAN_N_LITLEN && syms[1] > 255; i++) {
        uint16_t s = syms[1];
        syms[1] = syms[i];
        syms[i] = s;
    }
    random_lens(c.litlen, syms, n, depth);
    n = shuffled(syms, 0, HUFFMAN_N_DIST, 2 + rnd(29));
    random_lens(c.dist, syms, n, depth);
    return c;
}

/* A symbol with a code; below if none has one. */
static uint32_t random_symbol(const uint8_t *lens, uint32_t from, uint32_t below)
{
    uint32_t n = below - from, start = rnd(n);
    for (uint32_t i = 0; i < n; i++)
        if (lens[from + (start + i) % n])
            return from + (start + i) % n;
    return below;
}

/* A match, unless its distance is larger than the data so far; its length. */
static size_t put_match(struct writer *w, const struct codes *c, size_t size)
{
    uint32_t sym = random_symbol(c->litlen, 257, HUFFMAN_N_LITLEN), dist = random_symbol(c->dist, 0, HUFFMAN_N_DIST);
    uint32_t len_extra = sym < 265 || sym == 285 ? 0 : (sym - 261) / 4, dist_extra = dist < 4 ? 0 : dist / 2 - 1;
    uint32_t len_base = sym < 265 ? sym - 254 : sym == 285 ? 258 : ((4 + (sym - 261) % 4) << len_extra) + 3;
    uint32_t dist_base = dist < 4 ? dist + 1 : ((2 + dist % 2) << dist_extra) + 1;
    if (sym == HUFFMAN_N_LITLEN || dist_base + (1u << dist_extra) > size)
        return 0;
    uint32_t more = rnd(1u << len_extra);
    put_code(w, c->litlen, sym);
    put(w, more, len_extra);
    put_code(w, c->dist, dist);
    put(w, rnd(1u << dist_extra), dist_extra);
    return len_base + more;
}

static void test_random_codes_up_to_fifteen_bits(void **state)
{
    (void)state;
    seed = 8;
    for (uint32_t round = 0; round < 200; round++) {
        struct codes c = random_codes(1 + round % 5);
        struct writer w = {0};
        size_t size = 0, n = round % 8 ? 3000 : 60000;
        put_header(&w, &c);
        while (size < n && w.bits < 8 * MAX) {
            size_t len = rnd(3) || size < n / 4 ? 0 : put_match(&w, &c, size);
            if (len == 0) {
                put_code(&w, c.litlen, random_symbol(c.litlen, 0, 256));
                len = 1;
            }
            size += len;
        }
        put_code(&w, c.litlen, 256);
        assert_in_range(size, 1, OUT);
        check_stream(packed, (w.bits + 7) / 8, size);
    }
}

/* Lengths and distances with codes of this many bits, and the most extra bits. */
static struct codes codes_with_long_matches(uint8_t len_bits, uint8_t dist_bits)
{
    struct codes c = {.n_litlen = HUFFMAN_N_LITLEN, .n_dist = HUFFMAN_N_DIST};
    c.litlen['a'] = 1;
    c.litlen[256] = 2;
    for (uint8_t len = 3; len < len_bits; len++)
        c.litlen['a' + len] = len;
    c.litlen['z'] = c.litlen[284] = len_bits;
    for (uint8_t len = 1; len < dist_bits; len++)
        c.dist[len] = len;
    c.dist[28] = c.dist[29] = dist_bits;
    return c;
}

/* Codes that fill the larger table: any two of 40 literals take 12 bits, as the longest codes do. */
static struct codes codes_of_pairs(uint8_t dist_bits)
{
    struct codes c = codes_with_long_matches(2, dist_bits);
    memset(c.litlen, 0, sizeof c.litlen);
    c.litlen['a'] = 2;
    for (int i = 0; i < 40; i++)
        c.litlen['A' - 41 + i] = 6;
    c.litlen[256] = 4;
    for (uint8_t len = 5; len < 12; len++)
        c.litlen['a' + len] = len;
    c.litlen['z'] = c.litlen[284] = 12;
    return c;
}

/* Literals, and matches that need the longest look-ups; the size. */
static size_t put_long_matches(struct writer *w, const struct codes *c, uint32_t n)
{
    size_t size = 32768;
    put_header(w, c);
    for (size_t i = 0; i < size; i++)
        put_code(w, c->litlen, i % 97 ? 'a' : 'z');
    while (n-- > 0) {
        uint32_t more = rnd(31), literals = rnd(3);
        for (uint32_t i = 0; i < literals; i++)
            put_code(w, c->litlen, 'z');
        put_code(w, c->litlen, 284);
        put(w, more, 5);
        put_code(w, c->dist, 28 + rnd(2));
        put(w, rnd(1 << 13), 13);
        size += literals + 227 + more;
    }
    put_code(w, c->litlen, 256);
    return size;
}

static void test_look_ups_that_take_the_most_bits(void **state)
{
    (void)state;
    seed = 9;
    for (uint8_t len_bits = 9; len_bits <= HUFFMAN_MAX_BITS; len_bits++)
        for (uint8_t dist_bits = 6; dist_bits <= HUFFMAN_MAX_BITS; dist_bits++) {
            struct codes c = codes_with_long_matches(len_bits, dist_bits);
            struct writer w = {0};
            size_t size = put_long_matches(&w, &c, 40 + rnd(60)), n = (w.bits + 7) / 8;
            check_stream(packed, n, size);
            for (size_t cut = 1; cut < 24; cut += cut < 8 ? 1 : 5)
                assert_int_equal(inflate_both(packed, n - cut, size), -1);
        }
}

static void test_look_ups_of_the_larger_table_that_take_the_most_bits(void **state)
{
    (void)state;
    seed = 10;
    for (uint8_t dist_bits = 6; dist_bits <= HUFFMAN_MAX_BITS; dist_bits++) {
        struct codes c = codes_of_pairs(dist_bits);
        struct writer w = {0};
        size_t size = put_long_matches(&w, &c, 40 + rnd(60));
        check_stream(packed, (w.bits + 7) / 8, size);
    }
}

static void test_matches_of_two_bits(void **state)
{
    (void)state;
    /* One bit for a length and one for a distance. */
    struct codes c = {.n_litlen = 258, .n_dist = 1};
    c.litlen[257] = 1;
    c.litlen[256] = c.litlen['a'] = 2;
    c.dist[0] = 1;
    struct writer w = {0};
    put_header(&w, &c);
    put_code(&w, c.litlen, 'a');
    size_t size = 1;
    for (; size + 3 <= MAX; size += 3) {
        put_code(&w, c.litlen, 257);
        put_code(&w, c.dist, 0);
    }
    put_code(&w, c.litlen, 256);
    check_stream(packed, (w.bits + 7) / 8, size);
    for (size_t n = 100; n < 3000; n += 100)
        assert_int_equal(inflate_both(packed, (w.bits + 7) / 8, n), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_zlib_compresses),
        cmocka_unit_test(test_what_libdeflate_compresses),
        cmocka_unit_test(test_what_we_compress),
        cmocka_unit_test(test_what_follows_the_stream_is_not_looked_at),
        cmocka_unit_test(test_every_truncation_is_refused),
        cmocka_unit_test(test_flipped_bits_get_the_same_verdict_as_from_zlib),
        cmocka_unit_test(test_random_bits_get_the_same_verdict_as_from_zlib),
        cmocka_unit_test(test_smallest_dynamic_block),
        cmocka_unit_test(test_incomplete_and_oversubscribed_codes),
        cmocka_unit_test(test_block_of_nothing_but_its_end),
        cmocka_unit_test(test_fixed_blocks_of_nothing_but_their_end),
        cmocka_unit_test(test_too_many_symbols),
        cmocka_unit_test(test_repeated_code_lengths),
        cmocka_unit_test(test_symbols_that_must_not_occur),
        cmocka_unit_test(test_stored_blocks),
        cmocka_unit_test(test_no_input),
        cmocka_unit_test(test_random_codes_up_to_fifteen_bits),
        cmocka_unit_test(test_look_ups_that_take_the_most_bits),
        cmocka_unit_test(test_look_ups_of_the_larger_table_that_take_the_most_bits),
        cmocka_unit_test(test_matches_of_two_bits),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
