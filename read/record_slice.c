/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "bam/record_checksum.h"
#include "codec/kept_block.h"
#include "read/record_slice.h"

void record_slice_drop_records(struct record_slice *s)
{
    if (!s->borrowed)
        free(s->records.p);
    s->records = (struct byte_buffer){.p = NULL};
    s->borrowed = false;
    record_slice_clear(s);
}

void record_slice_free(struct record_slice *s)
{
    record_slice_drop_records(s);
    free(s->keys);
    *s = (struct record_slice){.n = 0};
}

enum { KEYS_LEAST = 512 };

size_t record_slice_memory(size_t size, size_t n)
{
    return size + (n > KEYS_LEAST ? n : KEYS_LEAST) * sizeof(struct bam_key);
}

static int reserve(struct record_slice *s, size_t n)
{
    if (n <= s->max)
        return 0;
    size_t max = n > 2 * s->max ? n : 2 * s->max;
    max = max > KEYS_LEAST ? max : KEYS_LEAST;
    struct bam_key *keys = realloc(s->keys, max * sizeof *keys);
    if (!keys)
        return -1;
    s->keys = keys;
    s->max = max;
    return 0;
}

/* Returns where a record begins, or where the last one ends if `number` is n. */
static uint64_t place_of(const struct record_slice *s, size_t number)
{
    return number < s->n ? s->keys[number].place >> BAM_KEY_SIZE_BITS : s->records.n;
}

uint32_t record_slice_fit(const struct record_slice *s, size_t first, size_t most, size_t *size)
{
    uint64_t begin = first ? place_of(s, first) : 0;
    size_t low = first + 1, high = s->n;
    if (s->records.n - begin <= most)            /* the usual case; the keys are in the caches of other threads */
        low = high;
    while (low < high) {
        size_t middle = low + (high - low + 1) / 2;
        if (place_of(s, middle) - begin <= most)
            low = middle;
        else
            high = middle - 1;
    }
    *size = (size_t)(place_of(s, low) - begin);
    return (uint32_t)(low - first);
}

static const struct bam_record *record_of(const struct record_slice *s, size_t number)
{
    return bam_record_at(bam_key_record(s->records.p, s->keys[number]));
}

bool record_slice_follows(const struct record_slice *a, size_t number_a, const struct record_slice *b, size_t number_b,
                          const struct sort_rule *rule)
{
    return sort_key_in_order(rule, a->keys[number_a].sort, record_of(a, number_a), b->keys[number_b].sort,
                             record_of(b, number_b));
}

int record_slice_list(struct record_slice *s, size_t start, bool normalise, const struct sort_rule *rule,
                      enum bam_fault *fault)
{
    struct bam_record *r = (struct bam_record *)(s->records.p + start);
    *fault = BAM_OK;
    if (reserve(s, s->n + 1) < 0 || (normalise && bam_record_fix(r) < 0))
        return -1;
    size_t size = bam_record_size(r);
    struct bam_key_order order = {rule, s->records.p};
    s->records.n = start + size;
    s->bytes += size;
    if ((*fault = bam_key_make(&order, r, &s->keys[s->n])))
        return 0;
    s->checksum += record_checksum(s->records.p + start, size);
    bool is_behind = s->n == 0 || record_slice_follows(s, s->n - 1, s, s->n, rule);
    s->out_of_order += s->out_of_order == s->n && is_behind;
    s->n++;
    return 0;
}

int record_slice_note(struct record_slice *s, size_t start)
{
    if (reserve(s, s->n + 1) < 0)
        return -1;
    size_t size = s->records.n - start;
    s->keys[s->n++] = (struct bam_key){0, bam_key_place(start, size)};
    s->bytes += size;
    return 0;
}

int record_slice_append(struct record_slice *s, const struct record_slice *more, const struct sort_rule *rule)
{
    size_t n = s->n, pad = (0 - s->records.n) % KEPT_BLOCK_PLACES, start = s->records.n + pad;
    if (reserve(s, n + more->n) < 0 || byte_buffer_reserve(&s->records, start + more->records.n) < 0)
        return -1;
    s->records.n = start;
    if (byte_buffer_append(&s->records, more->records.p, more->records.n) < 0)
        return -1;
    for (size_t i = 0; i < more->n; i++) {
        s->keys[n + i] = more->keys[i];
        s->keys[n + i].place += (uint64_t)start << BAM_KEY_SIZE_BITS;
    }
    s->number = n ? s->number : more->number;
    s->n += more->n;
    s->bytes += more->bytes;
    s->checksum += more->checksum;
    if (s->out_of_order == n && (n == 0 || more->n == 0 || record_slice_follows(s, n - 1, s, n, rule)))
        s->out_of_order = n + more->out_of_order;
    return 0;
}
