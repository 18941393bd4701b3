/* SPDX-License-Identifier: MIT */
#include <string.h>
#include "codec/huffman.h"

enum {
    SYMBOL_BITS = 9,
    FEW_SYMBOLS = 32,
    NONE = 1 << 30,               /* a weight above that of all symbols together */
};
_Static_assert(HUFFMAN_MAX_SYMBOLS <= 1 << SYMBOL_BITS, "count << SYMBOL_BITS | symbol");
_Static_assert(HUFFMAN_MAX_COUNT < 1 << 16, "two rounds of eight bits sort");
_Static_assert(HUFFMAN_MAX_SYMBOLS * HUFFMAN_MAX_COUNT < NONE, "the sum of all weights");

static uint32_t min_u32(uint32_t a, uint32_t b) { return a < b ? a : b; }

/* Makes a minimum-redundancy code by two queues (van Leeuwen 1976): sets num[len] to the number of symbols, of n, that
 * get a word of len bits. Words longer than limit are counted in num[limit]. weight[n + 2]: ascending, then NONE twice.
 * n >= 2.
 *
 * A new node becomes the parent of the two lightest among the first two leaves and the first two inner nodes. A leaf
 * comes before a node of the same weight. The choice is random, so the code has no branches for it. */
static void count_lengths(const uint32_t *weight, uint32_t n, uint32_t limit, uint32_t *num)
{
    uint32_t sum[HUFFMAN_MAX_SYMBOLS], parent[HUFFMAN_MAX_SYMBOLS + 1], inner[HUFFMAN_MAX_BITS + 1] = {1};
    uint32_t leaf = 0, node = 0;
    sum[0] = NONE;
    for (uint32_t next = 0; next < n - 1; next++) {
        const uint32_t *l = weight + leaf, *i = sum + node;
        sum[next + 1] = NONE;
        uint32_t leaves = l[1] <= i[0], nodes = i[1] < l[0];
        uint32_t lightest = min_u32(l[0] + i[0], min_u32(l[0] + l[1], i[0] + i[1]));
        parent[node] = parent[node + 1] = next;    /* a later step corrects the parent of a node that is not taken
                                                    * now */
        leaf += 1 + leaves - nodes;
        node += 1 + nodes - leaves;
        sum[next] = lightest;
    }
    uint32_t *depth = sum;
    depth[n - 2] = 0;
    for (uint32_t k = n - 2; k-- > 0;) {
        depth[k] = min_u32(depth[parent[k]] + 1, limit);
        inner[depth[k]]++;
    }
    num[limit] = n;
    for (uint32_t len = 1; len < limit; len++) {
        num[len] = 2 * inner[len - 1] - inner[len];
        num[limit] -= num[len];
    }
}

/* Makes the code with num[1..limit] leaves of each depth complete again, after the deeper leaves were cut to
 * limit: leaves just above the limit sink until the code fits. */
static void refill(uint32_t *num, uint32_t limit)
{
    uint32_t sum = 0;                              /* the Kraft sum, in units of 2^-limit */
    for (uint32_t l = 1; l <= limit; l++)
        sum += num[l] << (limit - l);
    while (sum > 1u << limit) {
        uint32_t l = limit - 1;
        while (num[l] == 0)
            l--;
        num[l]--;
        num[l + 1]++;
        sum -= 1u << (limit - l - 1);
    }
    for (; sum < 1u << limit; sum++) {
        num[limit]--;
        num[limit - 1]++;
    }
}

/* Reverses 16 bits. */
static uint32_t reverse_bits(uint32_t v)
{
    v = (v & 0x5555) << 1 | (v >> 1 & 0x5555);
    v = (v & 0x3333) << 2 | (v >> 2 & 0x3333);
    v = (v & 0x0f0f) << 4 | (v >> 4 & 0x0f0f);
    return (v & 0x00ff) << 8 | v >> 8;
}

/* Adds the words of the canonical code (RFC 1951 section 3.2.2) to codes[], which has their lengths already. */
static void assign_codes(code *codes, uint32_t n, const uint32_t *num)
{
    uint32_t next[HUFFMAN_MAX_BITS + 1], word = 0;     /* words, left-aligned in 16 bits */
    for (uint32_t len = 1; len <= HUFFMAN_MAX_BITS; len++) {
        next[len] = word;
        word += num[len] << (16 - len);
    }
    uint16_t used[HUFFMAN_MAX_SYMBOLS + 1];
    uint32_t n_used = 0;
    for (uint32_t i = 0; i < n; i++) {
        used[n_used] = (uint16_t)i;
        n_used += codes[i] != 0;
    }
    for (uint32_t i = 0; i < n_used; i++) {
        uint32_t len = code_len(codes[used[i]]);
        word = next[len];
        next[len] = word + (1u << 16 >> len);
        codes[used[i]] |= reverse_bits(word);
    }
}

/* Sorts by count, a 16-bit number, least significant byte first. Equal counts stay in the order of their symbols. */
static void sort_by_count(uint32_t *a, uint32_t n)
{
    uint32_t to[HUFFMAN_MAX_SYMBOLS], any = 0;
    for (uint32_t i = 0; i < n; i++)
        any |= a[i];
    for (uint32_t shift = SYMBOL_BITS; any >> shift; shift += 8) {
        uint32_t start[256] = {0}, sum = 0;
        for (uint32_t i = 0; i < n; i++)
            start[a[i] >> shift & 255]++;
        for (uint32_t i = 0; i < 256; i++) {
            uint32_t count = start[i];
            start[i] = sum;
            sum += count;
        }
        for (uint32_t i = 0; i < n; i++)
            to[start[a[i] >> shift & 255]++] = a[i];
        memcpy(a, to, n * sizeof *a);
    }
}

/* Sorts as sort_by_count() does, faster for few symbols. */
static void sort_few(uint32_t *a, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        uint32_t v = a[i], k = i;
        for (; k > 0 && a[k - 1] > v; k--)
            a[k] = a[k - 1];
        a[k] = v;
    }
}

void huffman_code(code *codes, const uint32_t *freq, uint32_t n, uint32_t limit)
{
    uint32_t sorted[HUFFMAN_MAX_SYMBOLS + 1] = {0}, weight[HUFFMAN_MAX_SYMBOLS + 2];
    uint32_t num[HUFFMAN_MAX_BITS + 1] = {0}, used = 0;
    for (uint32_t i = 0; i < n; i++) {
        codes[i] = 0;
        sorted[used] = freq[i] << SYMBOL_BITS | i;
        used += freq[i] != 0;
    }
    for (uint32_t i = 0; used < 2; i++)
        if (!freq[i])
            sorted[used++] = i;
    (used <= FEW_SYMBOLS ? sort_few : sort_by_count)(sorted, used);
    for (uint32_t i = 0; i < used; i++)
        weight[i] = sorted[i] >> SYMBOL_BITS;
    weight[used] = weight[used + 1] = NONE;
    count_lengths(weight, used, limit, num);
    refill(num, limit);
    for (uint32_t len = limit, i = 0; len > 0; len--)
        for (uint32_t k = num[len]; k > 0; k--)
            codes[sorted[i++] & ((1 << SYMBOL_BITS) - 1)] = len << 16;
    assign_codes(codes, n, num);
}

/* ---------------------------------------------------------------- header */

enum { MAX_PRECODE_BITS = 7 };

const uint8_t huffman_precode_order[HUFFMAN_N_PRECODE] = {
    16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15,
};
const uint8_t huffman_precode_extra[HUFFMAN_N_PRECODE] = {[16] = 2, [17] = 3, [18] = 7};

static void put_item(struct huffman_header *h, uint32_t *freq, uint32_t sym, uint32_t extra)
{
    h->item[h->n_items++] = (uint16_t)(sym | extra << 5);
    freq[sym]++;
}

/* Puts a run of three or more equal lengths. */
static void put_run(struct huffman_header *h, uint32_t *freq, uint32_t len, uint32_t run)
{
    uint32_t most = len > 0 ? 6 : 138;
    if (len > 0) {
        put_item(h, freq, len, 0);                 /* symbol 16 repeats it */
        run--;
    }
    for (uint32_t k; run >= 3; run -= k) {
        k = run < most ? run : most;
        if (len == 0 && k >= 11)
            put_item(h, freq, 18, k - 11);
        else
            put_item(h, freq, len > 0 ? 16 : 17, k - 3);
    }
    while (run-- > 0)
        put_item(h, freq, len, 0);
}

/* Puts n lengths. Most lengths come once or twice in a row. */
static void put_lengths(struct huffman_header *h, uint32_t *freq, const uint8_t *lens, uint32_t n)
{
    uint16_t begin[HUFFMAN_N_LITLEN + HUFFMAN_N_DIST + 1] = {0};
    uint32_t runs = 1;
    for (uint32_t i = 1; i < n; i++) {
        begin[runs] = (uint16_t)i;
        runs += lens[i] != lens[i - 1];
    }
    begin[runs] = (uint16_t)n;
    for (uint32_t k = 0; k < runs; k++) {
        uint32_t len = lens[begin[k]], run = (uint32_t)(begin[k + 1] - begin[k]);
        if (run >= 3) {
            put_run(h, freq, len, run);
            continue;
        }
        h->item[h->n_items] = h->item[h->n_items + 1] = (uint16_t)len;
        h->n_items += run;
        freq[len] += run;
    }
}

uint32_t huffman_header(struct huffman_header *h, const code *litlen, const code *dist)
{
    uint8_t lens[HUFFMAN_N_LITLEN + HUFFMAN_N_DIST];
    uint32_t freq[HUFFMAN_N_PRECODE] = {0}, n = 0;
    h->n_items = 0;
    for (h->n_litlen = HUFFMAN_N_LITLEN; h->n_litlen > 257 && !litlen[h->n_litlen - 1];)
        h->n_litlen--;
    for (h->n_dist = HUFFMAN_N_DIST; h->n_dist > 1 && !dist[h->n_dist - 1];)
        h->n_dist--;
    for (uint32_t i = 0; i < h->n_litlen; i++)
        lens[n++] = (uint8_t)code_len(litlen[i]);
    for (uint32_t i = 0; i < h->n_dist; i++)
        lens[n++] = (uint8_t)code_len(dist[i]);
    put_lengths(h, freq, lens, n);
    huffman_code(h->precode, freq, HUFFMAN_N_PRECODE, MAX_PRECODE_BITS);
    for (h->n_precode = HUFFMAN_N_PRECODE; h->n_precode > 4 && !h->precode[huffman_precode_order[h->n_precode - 1]];)
        h->n_precode--;
    uint32_t size = 3 + 5 + 5 + 4 + 3 * h->n_precode;
    for (uint32_t i = 0; i < HUFFMAN_N_PRECODE; i++)
        size += freq[i] * (code_len(h->precode[i]) + huffman_precode_extra[i]);
    return size;
}

/* ---- from the lengths of words ---- */

/* Sorts symbols by length. An increment waits for the last one of its counter, so each counter exists twice: for the
 * first half of the symbols, and for the second. */
static void sort_by_length(struct huffman_words *c, const uint8_t *lens, uint32_t n)
{
    uint16_t next[2][HUFFMAN_MAX_BITS + 1] = {0};
    uint32_t half = n / 2, first = 0;
    for (uint32_t i = 0; i < half; i++) {
        next[0][lens[i]]++;
        next[1][lens[half + i]]++;
    }
    next[1][lens[n - 1]] += n & 1;
    for (uint32_t k = 1; k <= HUFFMAN_MAX_BITS + 1; k++) {
        uint32_t len = k % (HUFFMAN_MAX_BITS + 1), n_first = next[0][len], both = n_first + next[1][len];
        c->first[k] = next[0][len] = (uint16_t)first;
        next[1][len] = (uint16_t)(first + n_first);
        first += both;
    }
    for (uint32_t i = 0; i < half; i++) {
        c->sorted[next[0][lens[i]]++] = (uint16_t)i;
        c->sorted[next[1][lens[half + i]]++] = (uint16_t)(half + i);
    }
    if (n & 1)
        c->sorted[next[1][lens[n - 1]]] = (uint16_t)(n - 1);
}

int huffman_words(struct huffman_words *c, const uint8_t *lens, uint32_t n, bool may_be_single)
{
    const uint32_t complete = 1 << HUFFMAN_MAX_BITS;
    uint32_t used = 0;
    sort_by_length(c, lens, n);
    for (uint32_t len = 1; len <= HUFFMAN_MAX_BITS; len++)
        used += (uint32_t)(c->first[len + 1] - c->first[len]) << (HUFFMAN_MAX_BITS - len);
    bool any_longer = c->first[HUFFMAN_MAX_BITS + 1] > c->first[2];
    if (used > complete || (used < complete && (!may_be_single || any_longer)))
        return -1;
    for (uint32_t len = 1, word = 0; len <= HUFFMAN_MAX_BITS; len++)
        for (uint32_t k = c->first[len]; k < c->first[len + 1]; k++, word += 2 * complete >> len)
            c->word[k] = (uint16_t)reverse_bits(word);
    return 0;
}
