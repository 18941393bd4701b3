/* SPDX-License-Identifier: MIT */
#include <string.h>
#include "codec/huffman.h"

/* Minimum-redundancy code lengths, in place (Moffat and Katajainen 1995). Turns the ascending weights
 * a[0..n) into depths, which do not increase. n >= 2. */
static void huffman_depths(uint32_t *a, int n)
{
    int leaf = 0, root = 0;
    for (int next = 0; next < n - 1; next++) {
        uint32_t sum = 0;
        for (int k = 0; k < 2; k++) {
            if (leaf >= n || (root < next && a[root] < a[leaf])) {
                sum += a[root];
                a[root++] = (uint32_t)next;
            } else {
                sum += a[leaf++];
            }
        }
        a[next] = sum;
    }
    a[n - 2] = 0;
    for (int next = n - 3; next >= 0; next--)
        a[next] = a[a[next]] + 1;
    int avail = 1, used = 0, next = n - 1;
    uint32_t depth = 0;
    for (root = n - 2; avail > 0; depth++) {
        for (; root >= 0 && a[root] == depth; root--)
            used++;
        for (; avail > used; avail--)
            a[next--] = depth;
        avail = 2 * used;
        used = 0;
    }
}

/* Makes num[1..limit] leaves of each depth a full code again, after the deeper leaves were cut to limit:
 * leaves just above the limit sink until the code fits. */
static void refill(uint32_t *num, uint32_t limit)
{
    uint32_t sum = 0;                              /* the sum of Kraft, in units of 2^-limit */
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

static uint32_t reverse_bits(uint32_t v, uint32_t n)
{
    v = (v & 0x5555) << 1 | (v >> 1 & 0x5555);
    v = (v & 0x3333) << 2 | (v >> 2 & 0x3333);
    v = (v & 0x0f0f) << 4 | (v >> 4 & 0x0f0f);
    v = (v & 0x00ff) << 8 | (v >> 8 & 0x00ff);
    return v >> (16 - n);
}

/* Canonical codes from lengths (RFC 1951 section 3.2.2). */
static void assign_codes(code *codes, int n, const uint32_t *num)
{
    uint32_t next[HUFFMAN_MAX_BITS + 1] = {0}, c = 0;
    for (uint32_t l = 1; l <= HUFFMAN_MAX_BITS; l++) {
        next[l] = c;
        c = (c + num[l]) << 1;
    }
    for (int i = 0; i < n; i++)                    /* a word of length 0 gets no bits */
        codes[i] |= reverse_bits(next[code_len(codes[i])]++, code_len(codes[i]));
}

enum { SYMBOL_BITS = 9 };
_Static_assert(HUFFMAN_MAX_SYMBOLS <= 1 << SYMBOL_BITS, "count << SYMBOL_BITS | symbol");
_Static_assert(HUFFMAN_MAX_COUNT < 1 << 16, "two rounds of eight bits sort");

/* Sorts by count, which has 16 bits, least significant byte first. Equal counts stay in the order of their symbols. */
static void sort_by_count(uint32_t *a, uint32_t n)
{
    uint32_t to[HUFFMAN_MAX_SYMBOLS];
    for (uint32_t shift = SYMBOL_BITS; shift < SYMBOL_BITS + 16; shift += 8) {
        uint16_t start[257] = {0};
        for (uint32_t i = 0; i < n; i++)
            start[(a[i] >> shift & 255) + 1]++;
        for (uint32_t i = 0; i < 256; i++)
            start[i + 1] = (uint16_t)(start[i + 1] + start[i]);
        for (uint32_t i = 0; i < n; i++)
            to[start[a[i] >> shift & 255]++] = a[i];
        memcpy(a, to, n * sizeof *a);
    }
}

void huffman_code(code *codes, const uint32_t *freq, int n, uint32_t limit)
{
    uint32_t sorted[HUFFMAN_MAX_SYMBOLS + 1], weight[HUFFMAN_MAX_SYMBOLS];
    uint32_t num[HUFFMAN_MAX_BITS + 1] = {0}, used = 0;
    for (int i = 0; i < n; i++) {
        codes[i] = 0;
        sorted[used] = freq[i] << SYMBOL_BITS | (uint32_t)i;
        used += freq[i] != 0;
    }
    for (uint32_t i = 0; used < 2; i++)
        if (!freq[i])
            sorted[used++] = i;
    sort_by_count(sorted, used);
    for (uint32_t i = 0; i < used; i++)
        weight[i] = sorted[i] >> SYMBOL_BITS;
    huffman_depths(weight, (int)used);
    for (uint32_t i = 0; i < used; i++)
        num[weight[i] < limit ? weight[i] : limit]++;
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
    for (uint32_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && lens[j] == lens[i];)
            j++;
        put_run(h, freq, lens[i], j - i);
    }
    huffman_code(h->precode, freq, HUFFMAN_N_PRECODE, MAX_PRECODE_BITS);
    for (h->n_precode = HUFFMAN_N_PRECODE; h->n_precode > 4 && !h->precode[huffman_precode_order[h->n_precode - 1]];)
        h->n_precode--;
    uint32_t size = 3 + 5 + 5 + 4 + 3 * h->n_precode;
    for (uint32_t i = 0; i < HUFFMAN_N_PRECODE; i++)
        size += freq[i] * (code_len(h->precode[i]) + huffman_precode_extra[i]);
    return size;
}
