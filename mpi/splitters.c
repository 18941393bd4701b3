/* SPDX-License-Identifier: MIT */
/* Rank 0 gets evenly spread keys of each rank, with the bytes that each stands for, and cuts their order. Where many
 * records share a key and must be compared, it also gets records of that key, and cuts again. */
#include <stdlib.h>
#include <string.h>
#include "base/byte_buffer.h"
#include "base/latch.h"
#include "mpi/splitters.h"
#include "order/sort_key.h"

enum {
    /* Keys of each rank: one for 0.012 % of its bytes if ranks are few. Rank 0 sorts those of all ranks alone, 2^18 of
     * them in 40 ms. With many ranks, errors of one make up for those of others. */
    SAMPLES = 8192, SAMPLES_LEAST = 2048, SAMPLES_OF_ALL = 1 << 18,
    RECORD_SAMPLES = 2048,       /* records of each rank, shared by the keys that need them, ... */
    RECORDS_LEAST = 64,          /* ... but so many of each key at least */
    RECORD_MOST = 1 << 16,       /* bytes of a sampled record */
    HEAVY = 256,                 /* a key needs records if it has more than 1 / HEAVY of a rank's share */
    RECORDS_MEMORY = 32 << 20, RECORDS_MEMORY_LEAST = 128 << 10,   /* bytes at rank 0; of each rank */
};

/* Some neighbours in a sorted list, one of them, and their bytes. What follows is local to a rank. */
struct sample {
    uint64_t key, bytes;
    int64_t source;
    const uint8_t *record;       /* NULL: only the key is known */
    const struct sort_rule *rule;
};

struct samples {
    struct sample *each;
    size_t n, room;
};

/* How records travel. */
struct record_head {
    uint64_t key;
    uint32_t size;               /* of the record that follows */
};

static int add(struct samples *s, struct sample sample)
{
    if (s->n == s->room) {
        size_t room = s->room ? 2 * s->room : SAMPLES;
        struct sample *larger = realloc(s->each, room * sizeof *larger);
        if (!larger)
            return -1;
        s->each = larger;
        s->room = room;
    }
    s->each[s->n++] = sample;
    return 0;
}

/* ---- keys ---- */

/* The middle one of some neighbours stands for them: so a cut at its key is as often too early as too late. */
static int sample_list(struct samples *s, const struct merge_source *list, uint64_t step, int source)
{
    struct sample sample = {.source = source};
    for (const struct bam_key *key = list->next; key < list->end; key++) {
        if (sample.bytes <= step / 2)
            sample.key = key->sort;
        sample.bytes += bam_key_record_size(list->base, *key);
        if (sample.bytes < step && key + 1 < list->end)
            continue;
        if (add(s, sample) < 0)
            return -1;
        sample.bytes = 0;
    }
    return 0;
}

static uint64_t samples_wanted(int size)
{
    int part = SAMPLES_OF_ALL / size;
    return (uint64_t)(part > SAMPLES ? SAMPLES : part < SAMPLES_LEAST ? SAMPLES_LEAST : part);
}

static int sample_keys(struct samples *s, const struct splitters_options *o)
{
    uint64_t key, step = o->bytes / samples_wanted(o->team->size) + 1;
    for (size_t i = 0; i < o->n_lists; i++)
        if (sample_list(s, &o->lists[i], step, o->team->rank) < 0)
            return -1;
    for (size_t run = 0; run < o->runs->n; run++)
        for (size_t slice = 0; o->runs->first_key(o->runs->reader, run, slice, &key); slice++)
            if (add(s, (struct sample){.key = key, .bytes = o->slice_size, .source = o->team->rank}) < 0)
                return -1;
    return 0;
}

/* ---- rank 0 gets what all have ---- */

/* Bytes of all ranks, one behind the other. *counts: of each rank. The caller frees both; other ranks get none. -1: no
 * memory at rank 0. */
static int gather(const struct mpi_team *team, const void *mine, size_t size, uint8_t **all, int **counts)
{
    int n = size <= INT32_MAX ? (int)size : 0, *places = NULL, failed = 0;
    size_t bytes = 0;
    *all = NULL;
    *counts = team->rank == 0 ? calloc((size_t)team->size, 2 * sizeof **counts) : NULL;
    failed = team->rank == 0 && !*counts;
    MPI_Bcast(&failed, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (failed)
        return -1;
    MPI_Gather(&n, 1, MPI_INT, *counts, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (team->rank == 0) {
        places = *counts + team->size;
        for (int i = 0; i < team->size; i++) {
            places[i] = (int)bytes;
            bytes += (size_t)(*counts)[i];
        }
        *all = bytes <= INT32_MAX ? malloc(bytes + 1) : NULL;
        failed = !*all;
    }
    MPI_Bcast(&failed, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (!failed)
        MPI_Gatherv(mine, n, MPI_BYTE, *all, *counts, places, MPI_BYTE, 0, MPI_COMM_WORLD);
    return failed ? -1 : 0;
}

static int gather_keys(const struct mpi_team *team, const struct samples *mine, struct samples *all)
{
    uint8_t *bytes;
    int *counts;
    int result = gather(team, mine->each, mine->n * sizeof *mine->each, &bytes, &counts);
    if (result == 0 && team->rank == 0) {
        for (int i = 0; i < team->size; i++)
            all->n += (size_t)counts[i] / sizeof *all->each;
        all->each = (struct sample *)(void *)bytes;
        all->room = all->n;
    } else {
        free(bytes);
    }
    free(counts);
    return result;
}

/* ---- cutting ---- */

static int compare(const struct sample *x, const struct sample *y)
{
    if (x->key != y->key)
        return x->key < y->key ? -1 : 1;
    if (!x->record || !y->record)
        return (x->record != NULL) - (y->record != NULL);
    return sort_key_compare(x->rule, (const struct bam_record *)x->record, (const struct bam_record *)y->record);
}

static int in_order(const void *a, const void *b)
{
    const struct sample *x = a, *y = b;
    int order = compare(x, y);
    return order ? order : x->source < y->source ? -1 : x->source > y->source;
}

/* Of records that share a key but are no ties, all or none are below where only the key is known. */
static struct splitter splitter_at(const struct sample *s, uint64_t tied, bool keys_decide)
{
    if (s->record || keys_decide)
        return (struct splitter){.key = s->key, .bytes = tied, .record = s->record, .source = s->source};
    return (struct splitter){.key = s->key};
}

static uint64_t sum(const struct samples *all)
{
    uint64_t total = 0;
    for (size_t i = 0; i < all->n; i++)
        total += all->each[i].bytes;
    return total;
}

/* Goes through the samples in order, and cuts where the ranks so far have their bytes. */
static void cut(struct splitters *out, const struct samples *all, bool keys_decide)
{
    uint64_t total = sum(all), before = 0, tied = 0;
    size_t next = 0, size = out->n + 1;
    qsort(all->each, all->n, sizeof *all->each, in_order);
    for (size_t i = 0; i < all->n && next < out->n; i++) {
        const struct sample *s = &all->each[i];
        bool same = i > 0 && in_order(s, s - 1) == 0;
        tied = same ? tied : 0;
        for (; next < out->n; next++) {
            uint64_t wanted = total / size * (next + 1);
            if (before + s->bytes < wanted)
                break;
            out->each[next] = splitter_at(s, tied + (wanted > before ? wanted - before : 0), keys_decide);
        }
        before += s->bytes;
        tied += s->bytes;
    }
    for (; next < out->n; next++)
        out->each[next] = (struct splitter){.key = UINT64_MAX, .bytes = UINT64_MAX, .source = INT64_MAX};
}

/* ---- keys that many records share ---- */

/* Where the samples of this key begin in a sorted list. */
static size_t find_key(const struct samples *all, size_t n, uint64_t key)
{
    size_t from = 0;
    while (n > 0) {
        size_t half = n / 2;
        bool before = all->each[from + half].key < key;
        from += before ? half + 1 : 0;
        n = before ? n - half - 1 : half;
    }
    return from;
}

/* The splitters' keys that have so many records that these should not stay together, each once. Returns how many. */
static int find_heavy(const struct splitters *cuts, const struct samples *all, uint64_t *keys)
{
    uint64_t share = sum(all) / (cuts->n + 1);
    int n = 0;
    for (size_t c = 0; c < cuts->n; c++) {
        uint64_t key = cuts->each[c].key, bytes = 0;
        for (size_t i = find_key(all, all->n, key); i < all->n && all->each[i].key == key; i++)
            bytes += all->each[i].bytes;
        if (bytes > share / HEAVY && (n == 0 || keys[n - 1] != key))
            keys[n++] = key;
    }
    return n;
}

/* Appends a record without SEQ and QUAL. It is still one that the order can compare. */
static int append(struct byte_buffer *to, uint64_t key, const uint8_t *record)
{
    const struct bam_record *r = (const struct bam_record *)record;
    size_t size = bam_record_size(r), l_seq = load_le32(r->seq_len), dropped = (l_seq + 1) / 2 + l_seq;
    size_t front = BAM_FIXED + (size_t)r->name_len + 4 * (size_t)load_le16(r->n_cigar);
    struct record_head head = {.key = key, .size = (uint32_t)(size - dropped)};
    if (head.size > RECORD_MOST)
        return 0;
    if (byte_buffer_reserve(to, to->n + sizeof head + head.size) < 0)
        return -1;
    uint8_t *p = to->p + to->n;
    memcpy(p, &head, sizeof head);
    p += sizeof head;
    memcpy(p, record, front);
    memcpy(p + front, record + front + dropped, size - front - dropped);
    store_le32(((struct bam_record *)p)->block_size, head.size - 4);
    store_le32(((struct bam_record *)p)->seq_len, 0);
    to->n += sizeof head + head.size;
    return 0;
}

/* The part of a list that has one key. */
static struct merge_source with_key(const struct merge_source *list, uint64_t key)
{
    struct splitter at = {.key = key};
    return (struct merge_source){splitter_find(&at, NULL, *list, false), splitter_find(&at, NULL, *list, true),
                                 list->base};
}

/* Evenly spread records of one key: `wanted`, or as many as fit into so many bytes. */
static int sample_records(struct byte_buffer *to, const struct splitters_options *o, uint64_t key, size_t wanted,
                          size_t most)
{
    size_t n = 0, at = 0;
    for (size_t i = 0; i < o->n_lists; i++) {
        struct merge_source part = with_key(&o->lists[i], key);
        n += (size_t)(part.end - part.next);
    }
    size_t step = n / wanted + 1;
    for (size_t i = 0; i < o->n_lists; i++) {
        struct merge_source part = with_key(&o->lists[i], key);
        size_t size = (size_t)(part.end - part.next);
        for (at += i == 0 ? step / 2 : 0; at < size; at += step)
            if (to->n < most && append(to, key, bam_key_record(part.base, part.next[at])) < 0)
                return -1;
        at -= size;
    }
    return 0;
}

static int sample_heavy(struct byte_buffer *to, const struct splitters_options *o, const uint64_t *keys, int n)
{
    size_t wanted = RECORD_SAMPLES / (size_t)n + RECORDS_LEAST, all = RECORDS_MEMORY / (size_t)o->team->size;
    size_t memory = all < RECORDS_MEMORY_LEAST ? RECORDS_MEMORY_LEAST : all;
    for (int i = 0; i < n; i++)
        if (sample_records(to, o, keys[i], wanted, memory / (size_t)n * (size_t)(i + 1)) < 0)
            return -1;
    return 0;
}

/* Bytes of a rank's records with this key, by the n sorted samples. These stand for nothing any more. */
static uint64_t take_key(struct samples *all, size_t n, uint64_t key, int source)
{
    uint64_t bytes = 0;
    for (size_t i = find_key(all, n, key); i < n && all->each[i].key == key; i++)
        if (all->each[i].source == source) {
            bytes += all->each[i].bytes;
            all->each[i].bytes = 0;
        }
    return bytes;
}

/* The records of one rank and one key, from p on, share the bytes that its samples of the key have, the first n of
 * all. Returns where they end; NULL: no memory. */
static const uint8_t *replace_key(struct samples *all, size_t n, const uint8_t *p, const uint8_t *end, int source,
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
    uint64_t bytes = take_key(all, n, first.key, source);
    for (size_t i = 0; i < records; i++, p += sizeof head + head.size) {
        memcpy(&head, p, sizeof head);
        uint64_t part = bytes / records + (i < bytes % records);
        if (add(all, (struct sample){first.key, part, source, p + sizeof head, rule}) < 0)
            return NULL;
    }
    return p;
}

static int replace_keys(struct samples *all, const uint8_t *records, const int *counts, int size,
                        const struct sort_rule *rule)
{
    size_t n = all->n;
    for (int source = 0; source < size; records += counts[source++])
        for (const uint8_t *p = records; p < records + counts[source];)
            if (!(p = replace_key(all, n, p, records + counts[source], source, rule)))
                return -1;
    return 0;
}

/* Cuts again with records of the keys that too many share, which rank 0 finds; keys: room for them. all: at rank 0, as
 * *records, in which their records lie then. -1: no memory there. */
static int cut_heavy(struct splitters *out, struct samples *all, const struct splitters_options *o, uint64_t *keys,
                     uint8_t **records)
{
    struct byte_buffer mine = {.p = NULL};
    int *counts, rank = o->team->rank, n = rank == 0 ? find_heavy(out, all, keys) : 0;
    MPI_Bcast(&n, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (n == 0)
        return 0;
    MPI_Bcast(keys, n, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    sample_heavy(&mine, o, keys, n);             /* if some are missing the balance suffers, the order does not */
    int result = gather(o->team, mine.p, mine.n, records, &counts);
    if (result == 0 && rank == 0) {
        result = replace_keys(all, *records, counts, o->team->size, o->rule);
        cut(out, all, false);
    }
    free(counts);
    free(mine.p);
    return result;
}

/* ---- all ranks get the splitters ---- */

/* Copies the splitters' records, which have these sizes, to one behind another. */
static void pack_records(struct splitters *s, const uint32_t *sizes, bool copies)
{
    uint8_t *p = s->records;
    for (size_t i = 0; i < s->n; p += sizes[i++]) {
        if (copies && sizes[i])
            memcpy(p, s->each[i].record, sizes[i]);
        s->each[i].record = sizes[i] ? p : NULL;
    }
}

static bool all_have(bool mine)
{
    int has = mine, all;
    MPI_Allreduce(&has, &all, 1, MPI_INT, MPI_LAND, MPI_COMM_WORLD);
    return all;
}

/* failed: at this rank, before. */
static int share(struct splitters *s, const struct mpi_team *team, bool failed)
{
    uint32_t *sizes = calloc(s->n + 1, sizeof *sizes);
    size_t bytes = 0;
    bool all_ready = all_have(sizes && !failed);
    for (size_t i = 0; i < s->n && all_ready && team->rank == 0; i++)
        sizes[i] = s->each[i].record ? (uint32_t)bam_record_size((const struct bam_record *)s->each[i].record) : 0;
    if (all_ready) {
        MPI_Bcast(s->each, (int)(sizeof *s->each * s->n), MPI_BYTE, 0, MPI_COMM_WORLD);
        MPI_Bcast(sizes, (int)s->n, MPI_UINT32_T, 0, MPI_COMM_WORLD);
        for (size_t i = 0; i < s->n; i++)
            bytes += sizes[i];
        s->records = bytes <= INT32_MAX ? malloc(bytes + 1) : NULL;
        all_ready = all_have(s->records);
    }
    if (all_ready) {
        pack_records(s, sizes, team->rank == 0);
        MPI_Bcast(s->records, (int)bytes, MPI_BYTE, 0, MPI_COMM_WORLD);
    }
    free(sizes);
    return all_ready ? 0 : -1;
}

/* Every rank makes the same calls of MPI, whoever has failed. */
static int find_splitters(struct splitters *out, const struct splitters_options *o, uint64_t *keys)
{
    struct samples mine = {.each = NULL}, all = {.each = NULL};
    uint8_t *records = NULL;
    bool failed = false;
    if (sample_keys(&mine, o) < 0)
        mine.n = 0;                              /* the balance suffers, the order does not */
    int result = gather_keys(o->team, &mine, &all);
    if (result == 0 && o->team->rank == 0)
        cut(out, &all, !o->rule);
    if (result == 0 && o->rule)
        failed = cut_heavy(out, &all, o, keys, &records) < 0;
    if (result == 0)
        result = share(out, o->team, failed);
    free(records);
    free(mine.each);
    free(all.each);
    return result;
}

int splitters_make(struct splitters *out, const struct splitters_options *o)
{
    *out = (struct splitters){.n = (size_t)o->team->size - 1};
    uint64_t *keys = calloc(out->n + 1, sizeof *keys);
    out->each = calloc(out->n + 1, sizeof *out->each);
    int result = all_have(keys && out->each) ? find_splitters(out, o, keys) : -1;
    free(keys);
    return result < 0 ? latch_fail(o->latch, "out of memory for the keys of all ranks") : 0;
}

void splitters_free(struct splitters *s)
{
    free(s->each);
    free(s->records);
    *s = (struct splitters){.each = NULL};
}

/* ---- what they say ---- */

int splitter_compare(const struct splitter *s, const struct sort_rule *rule, uint64_t key, const uint8_t *record)
{
    if (key != s->key)
        return key < s->key ? -1 : 1;
    if (!rule || !s->record)
        return rule != NULL;
    return sort_key_compare(rule, (const struct bam_record *)record, (const struct bam_record *)s->record);
}

const struct bam_key *splitter_find(const struct splitter *s, const struct sort_rule *rule, struct merge_source list,
                                    bool ties)
{
    const struct bam_key *from = list.next;
    for (size_t n = (size_t)(list.end - from); n > 0;) {
        size_t half = n / 2;
        int order = splitter_compare(s, rule, from[half].sort, bam_key_record(list.base, from[half]));
        if (order < 0 || (ties && order == 0)) {
            from += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return from;
}
