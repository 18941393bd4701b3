/* SPDX-License-Identifier: MIT */
#include <string.h>
#include "base/byte_buffer.h"
#include "mpi/heavy_keys.h"

enum {
    RECORD_SAMPLES = 2048,       /* records of each rank, shared by the keys that need them, ... */
    RECORDS_LEAST = 64,          /* ... but at least this many of each key */
    RECORD_MOST = 1 << 16,       /* bytes of a sampled record */
    HEAVY = 256,                 /* a key needs records if it has more than 1 / HEAVY of a rank's share */
    RECORDS_MEMORY = 32 << 20, RECORDS_MEMORY_LEAST = 128 << 10,   /* bytes at rank 0; bytes of each rank at least */
};

/* Precedes each record in a message. */
struct record_head {
    uint64_t key;
    uint32_t size;               /* bytes of the record that follows */
};

int heavy_keys_find(const struct splitter *cuts, size_t n_cuts, const struct key_samples *all, uint64_t *keys)
{
    uint64_t share = key_samples_sum(all) / (n_cuts + 1);
    int n = 0;
    for (size_t c = 0; c < n_cuts; c++) {
        uint64_t key = cuts[c].key, bytes = 0;
        for (size_t i = key_samples_find(all, all->n, key); i < all->n && all->each[i].key == key; i++)
            bytes += all->each[i].bytes;
        if (bytes > share / HEAVY && (n == 0 || keys[n - 1] != key))
            keys[n++] = key;
    }
    return n;
}

/* Appends a record without SEQ and QUAL. The result is still a record that can be compared. */
static int append_stripped_record(struct byte_buffer *to, uint64_t key, const uint8_t *record)
{
    const struct bam_record *r = (const struct bam_record *)record;
    size_t size = bam_record_size(r), l_seq = load_le32(r->seq_len), dropped = (l_seq + 1) / 2 + l_seq;
    size_t front = bam_record_seq_at(r);
    struct record_head head = {.key = key, .size = (uint32_t)(size - dropped)};
    if (head.size > RECORD_MOST)
        return 0;
    if (byte_buffer_reserve(to, to->n + sizeof head + head.size) < 0)
        return -1;
    byte_buffer_append(to, &head, sizeof head);  /* there is room for all three */
    byte_buffer_append(to, record, front);
    byte_buffer_append(to, record + front + dropped, size - front - dropped);
    struct bam_record *copy = (struct bam_record *)(to->p + to->n - head.size);
    store_le32(copy->block_size, head.size - 4);
    store_le32(copy->seq_len, 0);
    return 0;
}

/* Appends evenly spread records of one key: `wanted` of them, or fewer if the buffer reaches `most` bytes first. */
static int sample_records(struct byte_buffer *to, const struct records_read *o, uint64_t key, size_t wanted,
                          size_t most)
{
    size_t n = 0, at = 0;
    for (size_t i = 0; i < o->n_lists; i++) {
        struct merge_way part = splitter_with_key(o->lists[i], key);
        n += (size_t)(part.end - part.next);
    }
    size_t step = n / wanted + 1;
    for (size_t i = 0; i < o->n_lists; i++) {
        struct merge_way part = splitter_with_key(o->lists[i], key);
        size_t size = (size_t)(part.end - part.next);
        for (at += i == 0 ? step / 2 : 0; at < size; at += step)
            if (to->n < most && append_stripped_record(to, key, bam_key_record(part.base, part.next[at])) < 0)
                return -1;
        at -= size;
    }
    return 0;
}

int heavy_keys_records(struct byte_buffer *to, const struct records_read *o, const uint64_t *keys, int n)
{
    size_t wanted = RECORD_SAMPLES / (size_t)n + RECORDS_LEAST, all = RECORDS_MEMORY / (size_t)o->team->size;
    size_t memory = all < RECORDS_MEMORY_LEAST ? RECORDS_MEMORY_LEAST : all;
    for (int i = 0; i < n; i++)
        if (sample_records(to, o, keys[i], wanted, memory / (size_t)n * (size_t)(i + 1)) < 0)
            return -1;
    return 0;
}

/* Returns the bytes of a rank's records with this key, according to the first n samples, which are sorted, and
 * sets the bytes of these samples to 0. */
static uint64_t take_key(struct key_samples *all, size_t n, uint64_t key, int rank)
{
    uint64_t bytes = 0;
    for (size_t i = key_samples_find(all, n, key); i < n && all->each[i].key == key; i++)
        if (all->each[i].rank == rank) {
            bytes += all->each[i].bytes;
            all->each[i].bytes = 0;
        }
    return bytes;
}

/* Adds samples for the records of one rank and one key, from p on. They share the bytes that the rank's samples of the
 * key had among the first n. Returns where these records end; NULL: out of memory. */
static const uint8_t *replace_key(struct key_samples *all, size_t n, const uint8_t *p, const uint8_t *end, int rank,
                                  const struct sort_rule *rule)
{
    struct record_head first, head;
    size_t records = 0;
    memcpy(&first, p, sizeof first);
    for (const uint8_t *q = p; q < end; q += sizeof head + head.size, records++) {
        memcpy(&head, q, sizeof head);
        if (head.key != first.key)
            break;
    }
    uint64_t bytes = take_key(all, n, first.key, rank);
    for (size_t i = 0; i < records; i++, p += sizeof head + head.size) {
        memcpy(&head, p, sizeof head);
        uint64_t part = bytes / records + (i < bytes % records);
        if (key_samples_add(all, (struct key_sample){first.key, part, rank, p + sizeof head, rule}) < 0)
            return NULL;
    }
    return p;
}

int heavy_keys_replace(struct key_samples *all, const uint8_t *records, const int *counts, int size,
                       const struct sort_rule *rule)
{
    size_t n = all->n;
    for (int rank = 0; rank < size; records += counts[rank++])
        for (const uint8_t *p = records; p < records + counts[rank];)
            if (!(p = replace_key(all, n, p, records + counts[rank], rank, rule)))
                return -1;
    return 0;
}
