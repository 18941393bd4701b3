/* SPDX-License-Identifier: MIT */
#include <htslib/sam.h>
#include <stdlib.h>
#include "bam/record_checksum.h"
#include "base/prefetch.h"
#include "markdup/dup_counts.h"
#include "markdup/dup_kept.h"
#include "markdup/dup_others.h"
#include "markdup/marked_slice.h"

enum {
    WORD = 64,                   /* bits of a word of `lost` */
    NAMES_MOST = (1 << 30) - 1,  /* bytes of the names of originals; as marked_settled counts them */
};

static struct bam_record *record_of(const struct marked_slice *s, size_t i)
{
    return (struct bam_record *)(s->records.records.p + (s->records.keys[i].place >> BAM_KEY_SIZE_BITS));
}

/* ------------------------------------------------------------------- memory */

void marked_entries_free(struct marked_entries *e)
{
    if (!e)
        return;
    free(e->reads);
    free(e->list);
    free(e->begin);
    free(e->breaks);
    free(e);
}

void marked_slice_free(struct marked_slice *s)
{
    if (!s)
        return;
    record_slice_free(&s->records);
    marked_entries_free(s->entries);
    record_list_free(&s->list);
    free(s->lost);
    free(s->settled);
    free(s->names.p);
    spill_run_free(&s->run);
    free(s);
}

void marked_slice_clear(struct marked_slice *s)
{
    record_slice_clear(&s->records);
    free(s->settled);
    s->settled = NULL;
    s->names.n = s->n_missed = s->n_examined = s->n_untagged = s->n_dropped = 0;
    s->from = (struct marked_place){.is_set = false};
}

static int reserve_entries(struct marked_entries *e, size_t n, uint32_t n_shards)
{
    if (!e->begin && !(e->begin = malloc((n_shards + 1) * sizeof *e->begin)))
        return -1;
    if (n <= e->max)
        return 0;
    free(e->reads);
    free(e->list);
    free(e->breaks);
    e->max = n + n / 8;
    e->reads = malloc(e->max * sizeof *e->reads);
    e->list = malloc(2 * e->max * sizeof *e->list);
    e->breaks = malloc((e->max + 1) * sizeof *e->breaks);
    return e->reads && e->list && e->breaks ? 0 : -1;
}

static int reserve_lost(struct marked_slice *s)
{
    size_t n = s->records.n / WORD + 1;
    if (n > s->max_lost) {
        free(s->lost);
        s->max_lost = n + n / 8;
        if (!(s->lost = malloc(s->max_lost * sizeof *s->lost)))
            return -1;
    }
    for (size_t i = 0; i < n; i++)
        atomic_init(&s->lost[i], 0);
    return 0;
}

static int reserve_list(struct marked_slice *s)
{
    if (s->records.n > s->max_list) {
        record_list_free(&s->list);
        s->max_list = s->records.n + s->records.n / 8;
        if (record_list_alloc(&s->list, s->max_list) < 0)
            return -1;
    }
    record_list_empty(&s->list);
    return 0;
}

/* -------------------------------------------------------------------- keyed */

/* The upper half of the hash: the sets use the lower one. */
static uint32_t shard_of(const struct dup_key *key, uint32_t n_shards)
{
    return (uint32_t)((byte_hash((const uint8_t *)key, sizeof *key, 0) >> 32) * n_shards >> 32);
}

static void count(struct dup_counts *counts, const struct dup_read *read)
{
    struct dup_counts *c = &counts[read->group];
    c->read++;
    c->excluded += read->kind == DUP_EXCLUDED;
    c->examined += read->kind != DUP_EXCLUDED;
    c->paired += read->kind == DUP_PAIR_END;
    c->single += read->kind == DUP_SINGLE;
}

/* Returns whether a record may follow that place. Records without reference may be anywhere, and records after them may
 * begin anywhere. */
static bool is_in_order(const struct marked_place *at, int32_t ref, int64_t start)
{
    return !at->is_set || ref < 0 || ref > at->ref || (ref == at->ref && start >= at->start);
}

/* Returns whether all sets close between that place and a record of this reference. */
static bool is_break(const struct marked_place *at, int32_t ref)
{
    return at->is_set && (at->ref != ref || at->is_nowhere);
}

static void step(struct marked_place *at, int32_t ref, const struct dup_read *read, bool breaks)
{
    at->reach = at->is_set && !breaks && at->reach > read->place ? at->reach : read->place;
    at->is_set = true;
    at->is_nowhere = ref == -1 && read->start == -1;
    at->ref = ref;
    at->start = read->start;
}

/* Reads record i. False: it has a fault, or is out of order. */
static bool read_record(struct marked_slice *s, const struct dup_rule *rule, size_t i, struct marked_place *at)
{
    struct marked_entries *e = s->entries;
    struct marked_read *m = &e->reads[i];
    const struct bam_record *r = record_of(s, i);
    int32_t ref = bam_record_ref_id(r);
    s->fault = dup_key_make(rule, r, &m->read);
    if (s->fault || !is_in_order(at, ref, m->read.start))
        return false;
    if (m->read.barcode_missed && s->n_missed++ < MARKED_MISSED)
        s->missed[s->n_missed - 1] = (uint32_t)i;
    s->n_examined += m->read.kind != DUP_EXCLUDED;
    s->n_untagged += m->read.barcode_lacks;
    bool breaks = is_break(at, ref);
    m->before = breaks || i == 0 ? INT64_MIN : at->start;
    step(at, ref, &m->read, breaks);
    m->reach = at->reach;
    if (breaks)
        e->breaks[e->n_breaks++] = (uint32_t)i;
    return true;
}

/* Counts the entries of each shard: begin[shard] is then their end. */
static void count_entries(struct marked_slice *s, uint32_t n_shards)
{
    struct marked_entries *e = s->entries;
    memset(e->begin, 0, (n_shards + 1) * sizeof *e->begin);
    for (size_t i = 0; i < s->records.n; i++) {
        struct marked_read *m = &e->reads[i];
        if (m->read.kind == DUP_EXCLUDED)
            continue;
        m->single = shard_of(&m->read.single, n_shards);
        e->begin[m->single]++;
        if (m->read.kind == DUP_PAIR_END) {
            m->pair = shard_of(&m->read.pair, n_shards);
            e->begin[m->pair]++;
        }
    }
    for (uint32_t i = 1; i <= n_shards; i++)
        e->begin[i] += e->begin[i - 1];
}

/* Lists the entries of each shard, from the last record down, so that begin[] becomes the start of each shard's
 * entries. */
static void divide(struct marked_slice *s, uint32_t n_shards)
{
    struct marked_entries *e = s->entries;
    count_entries(s, n_shards);
    for (size_t i = s->records.n; i-- > 0;) {
        const struct marked_read *m = &e->reads[i];
        if (m->read.kind == DUP_PAIR_END)
            e->list[--e->begin[m->pair]] = 2 * (uint32_t)i + 1;
        if (m->read.kind != DUP_EXCLUDED)
            e->list[--e->begin[m->single]] = 2 * (uint32_t)i;
    }
}

int marked_slice_key(struct marked_slice *s, const struct dup_rule *rule, uint32_t n_shards, struct dup_counts *counts)
{
    size_t n = s->records.n;
    struct marked_place at = {.is_set = false};
    if (reserve_entries(s->entries, n, n_shards) < 0 || reserve_lost(s) < 0)
        return -1;
    s->entries->n_breaks = 0;
    for (s->out_of_order = 0; s->out_of_order < n && read_record(s, rule, s->out_of_order, &at); s->out_of_order++)
        count(counts, &s->entries->reads[s->out_of_order].read);
    s->joined = s->entries->n_breaks ? s->entries->breaks[0] : n;
    s->to = at;
    if (s->out_of_order == n)
        divide(s, n_shards);
    return 0;
}

/* ------------------------------------------------------------------- joined */

bool marked_slice_join(struct marked_slice *s, struct marked_place *at)
{
    struct marked_entries *e = s->entries;
    if (s->records.n == 0)
        return true;
    int32_t ref = bam_record_ref_id(record_of(s, 0));
    struct marked_read *first = &e->reads[0];
    if (!is_in_order(at, ref, first->read.start))
        return false;
    s->from = *at;
    if (is_break(at, ref)) {
        memmove(e->breaks + 1, e->breaks, e->n_breaks++ * sizeof *e->breaks);
        e->breaks[0] = 0;
        s->joined = 0;
    }
    first->before = at->is_set && s->joined > 0 ? at->start : INT64_MIN;
    if (at->is_set && s->joined == s->records.n && at->reach > s->to.reach)
        s->to.reach = at->reach;
    *at = s->to;
    return true;
}

/* ------------------------------------------------------------------ entered */

/* A shard's entries are scattered, and have left the caches since they were keyed: prefetches those needed soon. */
PREFETCH_FN void fetch_entry(const struct marked_slice *s, size_t i)
{
    enum { LINE = 64 };
    const uint8_t *record = (const uint8_t *)record_of(s, i), *read = (const uint8_t *)&s->entries->reads[i];
    for (int line = 0; line < 3; line++)
        __builtin_prefetch(read + line * LINE);
    __builtin_prefetch(record);
    __builtin_prefetch(record + LINE);           /* the name's end */
}

enum dup_fault marked_slice_enter(const struct marked_slice *s, uint32_t shard, struct dup_sets *sets, uint64_t *number)
{
    enum { AHEAD = 8 };
    const struct marked_entries *e = s->entries;
    const uint32_t *end = e->list + e->begin[shard + 1];
    enum dup_fault fault = DUP_OK;
    size_t n_passed = 0;
    for (const uint32_t *at = e->list + e->begin[shard]; at < end && !fault; at++) {
        if (end - at > AHEAD)
            fetch_entry(s, at[AHEAD] / 2);
        size_t i = *at / 2, seen = n_passed;
        struct marked_read *m = &e->reads[i];
        int64_t reach = i < s->joined && s->from.is_set && s->from.reach > m->reach ? s->from.reach : m->reach;
        const struct bam_record *r = record_of(s, i);
        struct dup_entry entry = {.number = s->first + i, .reach = reach, .before = m->before,
                                  .name = bam_record_name(r), .name_len = r->name_len, .read = &m->read};
        while (n_passed < e->n_breaks && e->breaks[n_passed] <= i)
            n_passed++;
        if (n_passed > seen)
            dup_sets_pass(sets, INT64_MAX);
        *number = entry.number;
        fault = *at % 2 ? dup_sets_pair(sets, &entry) : dup_sets_single(sets, &entry, &m->leads);
    }
    if (!fault && n_passed < e->n_breaks)
        dup_sets_pass(sets, INT64_MAX);
    if (!fault && s->records.n)
        dup_sets_pass(sets, s->to.is_nowhere ? INT64_MAX : s->to.start);
    return fault;
}

/* ------------------------------------------------------------------ settled */

/* Keeps a name. It is usually the one that was kept last. */
static int keep_original_name(struct marked_slice *s, const char *name, struct marked_settled *settled)
{
    size_t n = strlen(name) + 1, had = s->names.n;
    bool again = had >= n && memcmp(s->names.p + had - n, name, n) == 0 && (had == n || s->names.p[had - n - 1] == 0);
    if (!again && (had + n > NAMES_MOST || byte_buffer_append(&s->names, name, n) < 0))
        return -1;
    settled->original = ((uint32_t)(s->names.n - n) + 1) & NAMES_MOST;
    return 0;
}

int marked_slice_settle(struct marked_slice *s, const struct dup_verdict *verdict)
{
    if (!s->settled && !(s->settled = calloc(s->records.n, sizeof *s->settled)))
        return -1;
    struct marked_settled *settled = &s->settled[verdict->number - s->first];
    if (!verdict->duplicate) {
        settled->count = verdict->count > UINT32_MAX ? UINT32_MAX : (uint32_t)verdict->count;
        return 0;
    }
    settled->type = (uint32_t)verdict->type & 3;
    settled->original = 0;
    return verdict->original ? keep_original_name(s, verdict->original, settled) : 0;
}

size_t marked_slice_memory(const struct marked_slice *s)
{
    return s->records.records.max + s->records.max * sizeof *s->records.keys + record_list_memory(s->max_list);
}

size_t marked_slice_memory_of(size_t records_size)
{
    enum { RECORD = 256 };       /* usual bytes of a record */
    size_t each = sizeof(struct bam_key) + sizeof(struct marked_read) + 3 * sizeof(uint32_t) + record_list_memory(1);
    return records_size + records_size / RECORD * each;
}

/* ----------------------------------------------------------------- finished */

static bool has_lost(const struct marked_slice *s, size_t i)
{
    return atomic_load_explicit(&s->lost[i / WORD], memory_order_relaxed) >> i % WORD & 1;
}

/* Returns whether the other records of its template decide about it. */
static bool is_other(const struct bam_record *r)
{
    return bam_record_flag(r) & (BAM_FUNMAP | BAM_FSECONDARY | BAM_FSUPPLEMENTARY);
}

/* Fills *v. False: the record is an original with no duplicates. */
static bool verdict_of(const struct marked_slice *s, const struct marked_rule *rule, size_t i,
                       const struct bam_record *r, struct dup_verdict *v, struct dup_counts *counts)
{
    const struct marked_settled *settled = s->settled ? &s->settled[i] : NULL;
    uint32_t group;
    *v = (struct dup_verdict){.number = s->first + i, .duplicate = has_lost(s, i), .count = 1};
    bool is_out = rule->removes && dup_mark_flag(&rule->mark, r, NULL) & BAM_FDUP;   /* before names are looked up */
    if (rule->others && is_other(r) && !is_out && dup_others_find(rule->others, bam_record_name(r), v, &group)) {
        counts[group].non_primary++;
        counts[group].non_primary_optical += v->type == DUP_TYPE_SEQUENCING;
        return true;
    }
    if (settled && settled->count)
        v->count = settled->count;
    if (settled && settled->original)
        v->original = (const char *)s->names.p + settled->original - 1;
    if (settled)
        v->type = (enum dup_type)settled->type;
    return v->duplicate || v->count > 1;
}

/* Counts a record that is left out. samtools counts records that -S leaves out as written. */
static void drop(struct marked_slice *s, const struct marked_rule *rule, const struct bam_record *r, size_t size,
                 struct dup_counts *counts, bool counted)
{
    if (!counted)
        counts[dup_key_group(rule->read, r)].written--;
    s->checksum -= record_checksum((const uint8_t *)r, size);
    s->n_dropped++;
}

/* Appends record i as it is written, and replaces its key. */
static int write_anew(struct marked_slice *s, const struct marked_rule *rule, size_t i, const struct dup_verdict *v)
{
    struct byte_buffer *to = &s->records.records;
    size_t size = bam_record_size(record_of(s, i)), start = to->n;
    if (byte_buffer_reserve(to, to->n + size + DUP_MARK_ROOM) < 0)   /* so that appending does not move it */
        return -1;
    const struct bam_record *r = record_of(s, i);
    s->faulty = i;
    if ((s->unmarked = dup_mark_append(&rule->mark, to, r, v)))
        return -1;
    size_t n = to->n - start;
    if ((s->changed = !dup_kept(r, to->p + start, n, rule->mark.umi)))
        return -1;
    s->checksum -= record_checksum((const uint8_t *)r, size);
    s->checksum += record_checksum(to->p + start, n);
    s->records.keys[i].place = bam_key_place(start, n);
    return 0;
}

static void replace_flag(struct marked_slice *s, struct bam_record *r, size_t size, unsigned flag)
{
    if (flag == bam_record_flag(r))
        return;
    s->checksum -= record_checksum((const uint8_t *)r, size);
    store_le16(r->flag, (uint16_t)flag);
    s->checksum += record_checksum((const uint8_t *)r, size);
}

/* Makes record i as it is written. *stays: whether it is written. */
static int finish_record(struct marked_slice *s, const struct marked_rule *rule, size_t i, struct dup_counts *counts,
                         bool *stays)
{
    struct dup_verdict verdict, *v = &verdict;
    struct bam_record *r = record_of(s, i);
    size_t size = bam_key_record_size(s->records.records.p, s->records.keys[i]);
    if (!verdict_of(s, rule, i, r, v, counts))
        v = NULL;
    unsigned flag = dup_mark_flag(&rule->mark, r, v);
    *stays = !(rule->removes && flag & BAM_FDUP);
    if (!*stays)
        drop(s, rule, r, size, counts, v && v->duplicate && !has_lost(s, i));
    else if (!rule->adds_tags || dup_mark_is_flag(&rule->mark, r, v))
        replace_flag(s, r, size, flag);
    else
        return write_anew(s, rule, i, v);
    return 0;
}

/* Records may move until all are made, so a record that is left out has a key of size 0. */
int marked_slice_finish(struct marked_slice *s, const struct marked_rule *rule, struct dup_counts *counts)
{
    struct bam_key *keys = s->records.keys;
    s->checksum = s->records.checksum;
    if (reserve_list(s) < 0)
        return -1;
    for (size_t i = 0; i < s->records.n; i++) {
        bool stays;
        if (finish_record(s, rule, i, counts, &stays) < 0)
            return -1;
        if (!stays)
            keys[i].place = 0;
    }
    const uint8_t *base = s->records.records.p;
    for (size_t i = 0; i < s->records.n; i++)
        if (keys[i].place)
            record_list_add(&s->list, bam_key_record(base, keys[i]), (uint32_t)bam_key_record_size(base, keys[i]), 0);
    return 0;
}
