/* SPDX-License-Identifier: MIT */
/* The default level, for whole genomes with qualities in runs (NovaSeq): records are matched field by field.
 *
 *   fixed fields, name             with the same bytes of other records (deflate_heads.h)
 *   end of the name, CIGAR, tags   lazily, among the last positions of two hashes (deflate_search.h)
 *   SEQ                            with the reads before, by position on the reference, or by samples
 *                                  (deflate_records.h)
 *   QUAL                           by runs (deflate_qual.h); in a copy of a read, with the qualities of that read
 *
 * All other blocks go to deflate_lanes.c, which looks at every byte. Here only the ends of runs are looked at. That is
 * faster where most bytes are qualities that come in runs, and as small where reads have a few tags. */
#include "codec/deflate_heads.h"
#include "codec/deflate_qual.h"

enum {
    /* Parsing by fields is faster than lanes if most of a block's matches lie in the qualities: if qualities change at
     * least MANY_RUNS times in a read on average, and runs are as long as RUN_RATE says. NovaSeq has 10 to 20 runs of
     * LEVELS qualities in a read. Where there are more levels, lanes find more: reads of 8 levels by name or template
     * are up to 1.07 of level 7 by their fields. */
    MANY_RUNS = 8,
    LEVELS = 4,
};

/* The state that a record is compared with, and the outcome. */
struct history {
    struct heads heads;
    struct reads reads;
    struct qual_tables quals;
    struct qual_events events;                     /* events of the last piece */
};

INLINE void match_qual(struct deflate_parse *d, struct parse *p, struct history *h, const struct fields *f,
                       const struct qual_costs *costs, agree64_fn *agree)
{
    struct qual_events *q = &h->events;
    if (is_copy(p, f, agree))
        match_at(d, p, f->qual, f->tags, (const uint32_t[]){1, p->dist}, 2, false, agree);
    for (uint32_t from = max_u32(f->qual, p->anchor); from < f->tags; from = max_u32(q->at[q->n], p->anchor)) {
        qual_find_events(q, p, from, min_u32(f->tags, from + QUAL_PIECE), agree);
        qual_find_matches(q, p, &h->quals, agree);
        qual_find_costs(q, costs, q->at[q->n] == f->tags ? TAG_COST : 0);
        qual_put(d, p, q, costs);
    }
}

/* Returns how many qualities differ from the one before. All are counted, since the ends of a read differ from its
 * middle. */
INLINE uint32_t count_runs(const struct parse *p, const struct fields *f, agree64_fn *agree)
{
    uint32_t runs = 0;
    for (uint32_t x = f->qual + 1; x < f->tags; x += WINDOW)
        runs += (uint32_t)__builtin_popcountll(~same_window(p, x, 1, agree) & below(min_u32(f->tags - x, WINDOW)));
    return runs;
}

/* Adds the qualities of a read to a set, one in three of them. */
INLINE void add_levels(const struct parse *p, const struct fields *f, uint64_t levels[2])
{
    for (uint32_t x = f->qual; x < f->tags; x += 3)
        levels[p->in[x] >> 6 & 1] |= (uint64_t)1 << (p->in[x] & 63);
}

/* Returns whether the block begins like a whole genome by NovaSeq: reads with few levels of qualities, in many runs.
 * Looking at more than the first records would cost 2 %, since the others are not in the cache yet. */
INLINE bool is_whole_genome(const struct parse *p, agree64_fn *agree)
{
    uint32_t at = 0, quals = 0, runs = 0;
    uint64_t levels[2] = {0};
    struct fields f;
    for (uint32_t k = 0; k < FIRST_RECORDS; k++, at = f.end) {
        if (!find_fields(p->in, p->n, at, &f) || f.qual == f.tags || p->in[f.qual] == NO_QUAL)
            return false;
        quals += f.tags - f.qual;
        runs += count_runs(p, &f, agree);
        add_levels(p, &f, levels);
    }
    return at * (MIN_RECORDS / FIRST_RECORDS) < p->n && runs >= FIRST_RECORDS * MANY_RUNS && runs * RUN_RATE <= quals
        && __builtin_popcountll(levels[0]) + __builtin_popcountll(levels[1]) <= LEVELS;
}

INLINE void parse_records(struct deflate_parse *d, struct parse *p, agree64_fn *agree)
{
    struct history h = {0};
    struct qual_costs costs;
    struct fields f;
    uint32_t at = 0;
    qual_costs_make(&costs);
    lazy_begin(d);
    for (; at < p->n && find_fields(p->in, p->n, at, &f); at = f.end) {
        match_head(d, p, &h.heads, &f, agree);
        match_lazily(d, p, tail_of_head(&f), f.seq, agree);
        match_seq(d, p, &h.reads, &f, thorough, 0, agree);
        match_qual(d, p, &h, &f, &costs, agree);
        match_lazily(d, p, f.tags, f.end, agree);
        p->at = max_u32(f.end, p->anchor);
    }
    match_lazily(d, p, max_u32(at, FIRST), p->last, agree);
}

INLINE bool parse_fields(struct deflate_parse *d, struct parse *p, agree64_fn *agree)
{
    if (!is_whole_genome(p, agree))
        return false;
    parse_records(d, p, agree);
    return true;
}

static bool parse_older(struct deflate_parse *d, struct parse *p) { return parse_fields(d, p, agree64); }
NEWER_AVX2 static bool parse_newer(struct deflate_parse *d, struct parse *p)
{
    return parse_fields(d, p, agree64_avx2);
}

bool deflate_fields(struct deflate_parse *d, struct parse *p, bool newer)
{
    return (newer ? parse_newer : parse_older)(d, p);
}
