/* SPDX-License-Identifier: MIT */
#include "order/sublist_sort.h"

enum {
    RADIX_BITS = 8,
    BUCKETS = 1 << RADIX_BITS,
    /* Up to this many keys, insertion sort is faster: 256 counters cost more than they save. */
    SMALL = 48,
    /* Records are prefetched this many keys ahead: more than a core can wait for at once, fewer than its cache
     * holds. */
    AHEAD = 16,
    CACHE_LINE = 64,
    HEAD_LINES = 3,              /* fields, name and CIGAR of a short read */
    TAIL_LINES = 3,              /* its tags */
    /* Ties are sorted by at most this many words; then records are compared. This bounds the recursion. */
    MOST_WORDS = 32,
};

static inline void insertion_sort(struct bam_key *keys, size_t n, const struct bam_key_order *order)
{
    for (size_t i = 1; i < n; i++) {
        struct bam_key key = keys[i];
        size_t at = i;
        for (; at > 0 && bam_key_less(order, &key, &keys[at - 1]); at--)
            keys[at] = keys[at - 1];
        keys[at] = key;
    }
}

/* The bits in which the keys differ, in both words. */
static struct bam_key differing_bits(const struct bam_key *keys, size_t n)
{
    struct bam_key diff = {0, 0};
    for (size_t i = 1; i < n; i++) {
        diff.sort |= keys[i].sort ^ keys[0].sort;
        diff.place |= keys[i].place ^ keys[0].place;
    }
    return diff;
}

struct digit { int in_place, shift; };

/* The digit that begins with the highest differing bit. So no pass is spent on bits that all keys share. */
static struct digit top_digit(struct bam_key diff)
{
    int top = 63 - __builtin_clzll(diff.sort ? diff.sort : diff.place);
    return (struct digit){diff.sort == 0, top >= RADIX_BITS ? top - RADIX_BITS + 1 : 0};
}

static inline unsigned digit_of(const struct bam_key *key, struct digit d)
{
    return (unsigned)((d.in_place ? key->place : key->sort) >> d.shift) & (BUCKETS - 1);
}

/* American flag sort (McIlroy, Bostic and McIlroy, Engineering Radix Sort, 1993): every key goes
 * straight to the next free place of its bucket. */
static void distribute(struct bam_key *keys, size_t n, struct digit d, size_t end[BUCKETS])
{
    size_t next[BUCKETS], count[BUCKETS] = {0}, sum = 0;
    for (size_t i = 0; i < n; i++)
        count[digit_of(&keys[i], d)]++;
    for (unsigned b = 0; b < BUCKETS; b++) {
        next[b] = sum;
        end[b] = sum += count[b];
    }
    for (unsigned b = 0; b < BUCKETS; b++)
        while (next[b] < end[b]) {
            struct bam_key key = keys[next[b]];
            for (unsigned home; (home = digit_of(&key, d)) != b;) {
                struct bam_key other = keys[next[home]];
                keys[next[home]++] = key;
                key = other;
            }
            keys[next[b]++] = key;
        }
}

/* Heapsort: in place, and n log n for all records. In real files few ties are left after all words of the order, so
 * this is for rare cases. */
static void sift_down(struct bam_key *keys, size_t at, size_t n, const struct bam_key_order *order)
{
    struct bam_key key = keys[at];
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && bam_key_less(order, &keys[child], &keys[child + 1]))
            child++;
        if (!bam_key_less(order, &key, &keys[child]))
            break;
        keys[at] = keys[child];
    }
    keys[at] = key;
}

static bool is_sorted(const struct bam_key *keys, size_t n, const struct bam_key_order *order)
{
    for (size_t i = 1; i < n; i++)
        if (bam_key_less(order, &keys[i], &keys[i - 1]))
            return false;
    return true;
}

static void sort_by_record(struct bam_key *keys, size_t n, const struct bam_key_order *order)
{
    if (is_sorted(keys, n, order))
        return;
    for (size_t i = n / 2; i-- > 0;)
        sift_down(keys, i, n, order);
    for (size_t last = n; last-- > 1;) {
        struct bam_key largest = keys[0];
        keys[0] = keys[last];
        keys[last] = largest;
        sift_down(keys, 0, last, order);
    }
}

/* Sorts by (sort, place). */
static void sort_by_key(struct bam_key *keys, size_t n)
{
    static const struct bam_key_order by_key = {NULL, NULL};
    if (n <= SMALL) {
        insertion_sort(keys, n, &by_key);
        return;
    }
    struct bam_key diff = differing_bits(keys, n);
    if (diff.sort == 0 && diff.place == 0)
        return;
    size_t end[BUCKETS], begin = 0;
    distribute(keys, n, top_digit(diff), end);
    for (unsigned b = 0; b < BUCKETS; begin = end[b++])
        if (end[b] - begin > 1)
            sort_by_key(keys + begin, end[b] - begin);
}

static bool is_tied(const struct bam_key *keys, size_t n, size_t i)
{
    return (i + 1 < n && keys[i].sort == keys[i + 1].sort) || (i > 0 && keys[i].sort == keys[i - 1].sort);
}

/* Prefetches the cache lines that a comparison reads, of the records of the tied keys from *asked up to until. Moves
 * *asked to until. (*asked is a pointer, and everything is in one function, because GCC sees no effect in a function
 * that only prefetches, and drops calls of it.) */
static void ask_for_records(const struct bam_key *keys, size_t n, const struct bam_key_order *order,
                            size_t *asked, size_t until)
{
    for (; *asked < until && *asked < n; ++*asked) {
        if (!is_tied(keys, n, *asked))
            continue;
        const uint8_t *record = order->base + (keys[*asked].place >> BAM_KEY_SIZE_BITS);
        const uint8_t *last = record + (keys[*asked].place & BAM_KEY_SIZE_MAX) - 1;
        for (size_t line = 0; line < HEAD_LINES; line++)
            __builtin_prefetch(record + line * CACHE_LINE);
        for (size_t line = 0; line < TAIL_LINES; line++)
            __builtin_prefetch(last - line * CACHE_LINE);
    }
}

/* Puts word `number` of the order into the field `sort` of keys that are equal in sort and in all words before.
 * *differ: whether the word decides anything. Returns SORT_WORD, or the reason why there is no such word. */
static enum sort_word put_order_word(struct bam_key *keys, size_t n, const struct bam_key_order *order,
                                     unsigned number, bool *differ)
{
    size_t asked = 0;
    *differ = false;
    for (size_t i = 0; i < n; i++) {
        uint64_t word;
        ask_for_records(keys, n, order, &asked, i + AHEAD);
        const struct bam_record *r = bam_record_at(bam_key_record(order->base, keys[i]));
        enum sort_word found = sort_key_word(order->rule, r, number, &word);
        if (found != SORT_WORD)
            return found;
        keys[i].sort = word;
        *differ |= word != keys[0].sort;
    }
    return SORT_WORD;
}

static void sort_ties(struct bam_key *keys, size_t n, const struct bam_key_order *order, unsigned word);

/* Sorts many keys that are equal in sort and in all words before `word`, and that are in order of place. Puts the words
 * into the field `sort`, which is equal in all of them, sorts by it, and restores it at the end. */
static void sort_by_words(struct bam_key *keys, size_t n, const struct bam_key_order *order, unsigned word)
{
    uint64_t sort = keys[0].sort;
    enum sort_word found = SORT_WORD;
    bool differ = false;
    for (; !differ && found == SORT_WORD; word++)
        found = word < MOST_WORDS ? put_order_word(keys, n, order, word, &differ) : SORT_COMPARE;
    if (differ) {
        sort_by_key(keys, n);
        sort_ties(keys, n, order, word);
    } else if (found == SORT_COMPARE) {
        sort_by_record(keys, n, order);
    }
    for (size_t i = 0; i < n; i++)
        keys[i].sort = sort;
}

/* Sorts adjacent keys that are equal in sort and in all words before `word` into the order of their records. These
 * records are scattered over the arena, so they are prefetched some ties before they are compared. */
static void sort_ties(struct bam_key *keys, size_t n, const struct bam_key_order *order, unsigned word)
{
    size_t asked = 0;
    for (size_t begin = 0, end; begin < n; begin = end) {
        for (end = begin + 1; end < n && keys[end].sort == keys[begin].sort; end++)
            ;
        if (end - begin == 1)
            continue;
        ask_for_records(keys, n, order, &asked, end + AHEAD);
        if (end - begin <= SMALL)
            insertion_sort(keys + begin, end - begin, order);
        else
            sort_by_words(keys + begin, end - begin, order, word);
    }
}

void sublist_sort(struct bam_key *keys, size_t n, const struct bam_key_order *order)
{
    sort_by_key(keys, n);
    if (order->rule)
        sort_ties(keys, n, order, 0);
}
