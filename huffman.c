/* SPDX-License-Identifier: MIT */
#include <string.h>
#include "huffman.h"

/* Minimum-redundancy code lengths, in place (Moffat and Katajainen 1995):
 * a[0..n) ascending weights in, non-increasing depths out; n >= 2. */
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

/* Makes num[1..limit] leaves of each depth a full code again after the deeper
 * ones were cut to limit: leaves just above the limit sink until it fits. */
static void refill(uint32_t *num, uint32_t limit)
{
    uint32_t sum = 0;                              /* Kraft's, in units of 2^-limit */
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
    uint32_t next[HUFFMAN_MAX_BITS + 1], c = 0;
    for (uint32_t l = 1; l <= HUFFMAN_MAX_BITS; l++) {
        next[l] = c;
        c = (c + num[l]) << 1;
    }
    for (int i = 0; i < n; i++)
        if (code_len(codes[i]))
            codes[i] |= reverse_bits(next[code_len(codes[i])]++, code_len(codes[i]));
}

enum { SYMBOL_BITS = 9 };
_Static_assert(HUFFMAN_MAX_SYMBOLS <= 1 << SYMBOL_BITS, "count << SYMBOL_BITS | symbol");
_Static_assert(HUFFMAN_MAX_COUNT < 1 << 16, "two rounds of eight bits sort");

/* Sorts by count, of 16 bits: least significant byte first. Equal counts stay
 * in the order of their symbols. */
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
    uint32_t sorted[HUFFMAN_MAX_SYMBOLS], weight[HUFFMAN_MAX_SYMBOLS];
    uint32_t num[HUFFMAN_MAX_BITS + 1] = {0}, used = 0;
    for (int i = 0; i < n; i++) {
        codes[i] = 0;
        if (freq[i])
            sorted[used++] = freq[i] << SYMBOL_BITS | (uint32_t)i;
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
