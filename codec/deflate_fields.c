/* SPDX-License-Identifier: MIT */
/* The default level. A block of whole records is matched field by field.
 *
 *   fixed fields, name             the same bytes of other records (deflate_heads.h)
 *   end of the name, CIGAR, tags   lazily, among the last positions of two hashes (deflate_search.h)
 *   SEQ                            the reads before, by position on the reference, or samples (deflate_records.h);
 *                                  lazily from where mapped reads turn out to have little in common
 *   QUAL                           by runs (deflate_qual.h); in a copy of a read, that read's
 *   OQ, of many levels             at what costs least to its end (deflate_noise.h)
 *
 * Anything else is matched lazily altogether (deflate_lazy.c): reads of many lengths, alignments of the same read,
 * qualities that do not come in runs, with all around them, the rest of a block whose reads are copies of each other
 * that positions do not explain. Where fields turn out to give up too much (mostly heads and names, or reads at few
 * places) the rest of the block, or all of it, is searched deeply (deflate_deep.c). Long reads do not come here:
 * deflate_long.c has them at both levels. */
#include "codec/deflate_heads.h"
#include "codec/deflate_noise.h"
#include "codec/deflate_qual.h"
#include "codec/deflate_trial.h"

enum {
    /* doc/tried.md says what other numbers cost. */
    /* Of the first records: mapped reads of another length than the one before; an odd one makes 2. */
    MANY_LENGTHS = 3,
    MANY_COPIES = 2,              /* of them: alignments of the same read */
    SAME_BASES = 16,              /* bytes of SEQ that tell */
    SHORT_QUAL = 40,              /* if they have fewer qualities on average, there is little to gain */
    NO_QUAL = 0xff,
    FEW_RUNS = 7,                 /* as RUN_RATE, where the lazy parser is the other choice */
    /* SEQ bytes that count as explained at the beginning of a block. -l 1 has more, but a
     * block given up late costs twice here. */
    FIRST_SEQ = 1500,
    /* From where more than one byte of SEQ in so many became a literal it is matched lazily: 12 instead of 8 is 10 %
     * slower on whole genomes. In template order 20 gain nothing. */
    LAZY_RATE = 8,
    LAZY_RATE_IN_TURN = 12,
    /* After so many bytes it is seen whether fields give up too much, and after SECOND_TRIAL again: reads that have
     * nothing in common with the first few of a block may have it with more of them. */
    TRIAL = 2 * SEGMENT, SECOND_TRIAL = 5 * SEGMENT,
    /* Heads and names as a part of all bytes, in percent: much of such records (75 bases); where qualities cost less
     * than half as much; where the heads are those of few places; the same where qualities come in long runs and tags
     * are few (amplicons of up to 250 bases); where other reads tell nothing. */
    HEAD_MUCH = 31, HEAD_BESIDE_CHEAP = 26, HEAD_OF_FEW = 25, HEAD_OF_AMPLICONS = 15, HEAD_OF_STRANGERS = 38,
    /* Matches in 1,000 bytes of heads: fewer than at any place; the same where other reads tell nothing; fewer than
     * those of short names. */
    HEADS_ALIKE = 42, HEADS_ALIKE_STRANGERS = 48, HEADS_USUAL = 57, HEADS_ALIKE_LATER = 60,
    /* And of qualities: 4 levels have 10 to 44, of long runs less than 20; 8 levels that change often 52 to 60. */
    QUALS_OF_8 = 45, QUALS_IN_LONG_RUNS = 20,
    TAG_LITERALS = 12,            /* one byte in so many is such: OQ has one in 8 to 10, other tags one in 15 to 90 */
    /* Tags as a part of all bytes in percent, matches of heads for 100 of qualities, and in 1,000 bytes of heads: tags
     * are what costs (bisulfite, single cell). NovaSeq has 26 to 34, and 120 to 170; 10x 28 to 37 in 1,000. */
    TAG_MUCH = 35, TAG_LITTLE = 20, HEADS_TO_QUALS = 185, HEADS_OF_COPIES = 38,
    /* Literals in percent of SEQ from TRIAL on: strangers have more; bisulfite 42 to 56; amplicons by name, with few
     * other tags, less than this, those of 150 bases and more 10 to 45. */
    SEQ_LATER = 40, SEQ_OF_BISULFITE = 57, SEQ_OF_AMPLICONS = 68, SEQ_OF_LONGER = 50,
    /* Whole genomes have reads of so many bases and more on average, and TAG_LITTLE to TAG_MUCH percent of tags.
     * Shorter reads, and amplicons, which have fewer tags, have no room for the 0.5 % that the small table costs. */
    WHOLE_GENOME_BASES = 125,
    DENSE_COPIES = 64,            /* inside longer matches every other position is enough, of reads at few places */
    SEQ_STRIDE = 2,               /* of the positions of earlier SEQ that the lazy search gets to know late */
};

/* Of what is matched lazily: all but SEQ, and SEQ. Without `deep` names are up to 0.6 % larger where many reads lie at
 * few places. */
static const struct tuning text_wide = {.wide = true, .dense_len = 16, .deep = true, .two_steps = true};
static const struct tuning seq_wide = {.wide = true, .min_gain = 4, .dense_len = 32, .two_steps = true};
/* Of whole genomes: the older four positions and every place of SEQ are worth less than the time that they take. */
static const struct tuning text_near = {.dense_len = 16, .two_steps = true};
static const struct tuning seq_near = {.min_gain = 4, .dense_len = 32, .two_steps = true, .skip = 4};

/* Bytes of a field of all records so far, matches that begin there, and literals (of SEQ and tags). */
struct outcome {
    uint32_t bytes, matches, lits;
};

/* What a record is compared with, and what came of it. */
struct history {
    struct heads heads;
    struct outcome head, seq, qual, tag;           /* seq: from TRIAL on */
    bool strangers;                                /* up to there */
    enum oq oq;
    struct reads reads;
    struct qual_tables quals;
    struct qual_events events;                     /* of the last piece */
};

INLINE void add_outcome(struct outcome *o, uint32_t bytes, uint32_t matches)
{
    o->bytes += bytes;
    o->matches += matches;
}

/* lits: before it. A match may go back and take some of them. */
INLINE void add_literals(struct outcome *o, const struct deflate_parse *d, const struct parse *p, uint32_t from,
                         uint32_t to, uint32_t lits)
{
    o->bytes += to - from;
    o->lits += max_u32(lits_before(d, p, to), lits) - lits;
}

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

/* Another alignment of the same read: name and first bases are those of the record before. */
INLINE bool is_again(const struct parse *p, const struct fields *f, const struct fields *last)
{
    uint32_t name = f->cigar - f->at - BAM_FIXED;
    return name == last->cigar - last->at - BAM_FIXED && f->qual - f->seq >= SAME_BASES
        && memcmp(p->in + f->at + BAM_FIXED, p->in + last->at + BAM_FIXED, name) == 0
        && memcmp(p->in + f->seq, p->in + last->seq, SAME_BASES) == 0;
}

/* What the first records promise. To look at all of them would cost 2 %, since they are not in the cache yet. */
enum promise { NONE, ALIKE, WHOLE_GENOME };

/* Are fields alike: short reads of one length, not copies, with qualities in runs? Tells in *oq how those in OQ are. */
INLINE enum promise find_promise(const struct parse *p, enum oq *oq, agree64_fn *agree)
{
    uint32_t quals = 0, tags = 0, at = 0, lengths = 0, copies = 0;
    struct sampled s = {0, 0};
    struct steps steps = {0};
    struct fields f, last = {0};
    for (uint32_t k = 0; k < FIRST_RECORDS; k++, at = f.end) {
        if (!find_fields(p->in, p->n, at, &f) || f.qual == f.tags || p->in[f.qual] == NO_QUAL)
            return NONE;
        lengths += k > 0 && is_mapped(p, &f) && f.tags - f.qual != last.tags - last.qual;
        copies += k > 0 && is_again(p, &f, &last);
        quals += f.tags - f.qual;
        tags += f.end - f.tags;
        sample_runs(p, &f, &s, agree);
        count_oq_steps(p, &f, &steps);
        last = f;
    }
    *oq = oq_of(&steps);
    if (at * (MIN_RECORDS / FIRST_RECORDS) >= p->n || s.differ * FEW_RUNS > s.all || quals * QUAL_RATE < at
        || quals < FIRST_RECORDS * SHORT_QUAL || lengths >= MANY_LENGTHS || copies >= MANY_COPIES)
        return NONE;
    bool usual_tags = tags * 100 >= TAG_LITTLE * at && tags * 100 < TAG_MUCH * at;
    return quals >= FIRST_RECORDS * WHOLE_GENOME_BASES && usual_tags ? WHOLE_GENOME : ALIKE;
}

/* Of mapped reads that are not alike: less than half of their SEQ was found in other reads. */
INLINE bool are_strangers(const struct reads *h)
{
    return h->seq_bytes > FIRST_SEQ && h->seq_lits * 2 > h->seq_bytes - FIRST_SEQ;
}

INLINE bool has_quals_of_8(const struct history *h)
{
    return h->qual.matches * 1000 >= QUALS_OF_8 * h->qual.bytes;
}

INLINE bool has_long_runs(const struct history *h)
{
    return h->qual.matches * 1000 < QUALS_IN_LONG_RUNS * h->qual.bytes;
}

/* As amplicons that were not recalibrated: what is left are heads and names. */
INLINE bool has_little_but_heads(const struct history *h, uint32_t bytes)
{
    return has_long_runs(h) && h->tag.bytes * 100 < TAG_LITTLE * bytes;
}

/* Would the block be larger than promised? Fields end matches that would go on, and see too few of the records before:
 * it shows where heads and names are most of what is left, qualities have many short runs, tags are literals, or
 * records are copies but for their names. Not so UMIs: long runs, many tags. doc/tried.md has the numbers. */
INLINE bool is_too_large(struct history *h, uint32_t bytes)
{
    uint32_t head = h->head.bytes * 100 / bytes, alike = h->head.matches * 1000 / h->head.bytes;
    bool strangers = are_strangers(&h->reads) && !h->reads.in_turn, of_8 = has_quals_of_8(h);
    bool amplicons = has_little_but_heads(h, bytes);
    h->strangers = strangers;
    if (h->tag.lits * TAG_LITERALS >= bytes && h->tag.bytes * 100 >= TAG_MUCH * bytes
        && (of_8 || !are_strangers(&h->reads)))
        return true;
    if (head >= (amplicons ? HEAD_OF_AMPLICONS : HEAD_OF_FEW)
        && alike < (strangers ? HEADS_ALIKE_STRANGERS : HEADS_ALIKE))
        return amplicons || !has_long_runs(h) || head >= HEAD_MUCH;
    if (of_8 && (!strangers || alike < HEADS_ALIKE_STRANGERS))
        return true;
    if (strangers)
        return head >= HEAD_OF_STRANGERS && alike < HEADS_USUAL;
    return head >= HEAD_MUCH || (head >= HEAD_BESIDE_CHEAP && h->head.matches > 2 * h->qual.matches);
}

/* The same after more bytes, for what the first few records do not show: that reads have much in common with others,
 * though not with those; and that tags are what costs. */
INLINE bool is_too_large_later(const struct history *h, uint32_t bytes)
{
    uint32_t alike = h->head.matches * 1000 / h->head.bytes, seq = h->seq.lits * 100 / max_u32(h->seq.bytes, 1);
    if (h->strangers && has_quals_of_8(h) && seq < SEQ_OF_BISULFITE)
        return true;
    if (h->strangers && alike < HEADS_ALIKE_LATER && h->tag.bytes * 100 < TAG_LITTLE * bytes
        && ((seq < SEQ_OF_AMPLICONS && h->head.bytes * 100 >= HEAD_OF_FEW * bytes)
            || (seq < SEQ_OF_LONGER && has_little_but_heads(h, bytes))))
        return true;
    return seq < SEQ_LATER && h->tag.bytes * 100 >= TAG_MUCH * bytes && alike >= HEADS_OF_COPIES
        && h->head.matches * 100 > HEADS_TO_QUALS * h->qual.matches;
}

/* Is so much of SEQ left that the lazy search finds more? In template order it does sooner: at one of the two places
 * reads are in no order. */
INLINE bool is_lazy_better(const struct reads *h)
{
    return h->seq_lits * (h->in_turn ? LAZY_RATE_IN_TURN : LAZY_RATE) > h->seq_bytes;
}

/* SEQ of all records before end becomes known to the lazy search. */
INLINE void insert_seqs(struct deflate_parse *d, const struct parse *p, uint32_t end, bool wide)
{
    struct fields f;
    for (uint32_t at = 0; at < end && find_fields(p->in, p->n, at, &f); at = f.end)
        for (uint32_t x = f.seq; x < min_u32(f.qual, p->last); x += SEQ_STRIDE)
            lazy_insert(d, p->in, x, wide);
}

/* Lazily, but for qualities in OQ that go in small steps. */
INLINE void match_tags(struct deflate_parse *d, struct parse *p, struct history *h, const struct fields *f,
                       const struct tuning *t)
{
    uint32_t from = h->oq == OQ_ANY ? f->end : find_oq(p, f), to = oq_end(f, from);
    uint32_t lits = lits_before(d, p, f->tags);
    match_lazily(d, p, f->tags, from, t);
    add_literals(&h->tag, d, p, f->tags, from, lits);
    if (h->oq == OQ_NOISY)
        match_lazily(d, p, from, to, t);
    else if (h->oq == OQ_IN_STEPS)
        match_noise(d, p, from, to, noise_usual);
    lits = lits_before(d, p, to);
    match_lazily(d, p, to, f->end, t);
    add_literals(&h->tag, d, p, to, f->end, lits);
}

/* How much of a block is done by fields. */
enum done {
    ALL,
    PART,
    GIVEN_UP,                     /* a part, beyond which fields would give up too much */
    DROPPED,                      /* a part in which they gave up so much that it is done anew */
};

/* Up to the end; or to what is no record, or copies; or to where it is seen that fields give up too much. */
INLINE enum done parse_records(struct deflate_parse *d, struct parse *p, enum oq oq, const struct tuning *text,
                               const struct tuning *seq, agree64_fn *agree)
{
    struct history h = {.reads.seq_bytes = FIRST_SEQ, .oq = oq};
    struct qual_costs costs;
    struct fields f;
    bool alike = true;
    qual_costs_make(&costs);
    lazy_begin(d, text->wide);
    if (oq == OQ_IN_STEPS)
        noise_begin(&d->noise);
    for (uint32_t at = 0; at < p->n; at = f.end) {
        uint32_t n_seqs = d->n_seqs, lits;
        if (!find_fields(p->in, p->n, at, &f))
            return PART;
        match_head(d, p, &h.heads, &f, text, agree);
        add_outcome(&h.head, f.seq - f.at, d->n_seqs - n_seqs);
        lits = lits_before(d, p, f.seq);
        if (alike)
            match_seq(d, p, &h.reads, &f, thorough, agree);
        else
            match_lazily(d, p, f.seq, f.qual, seq);
        if (at >= TRIAL)
            add_literals(&h.seq, d, p, f.seq, f.qual, lits);
        n_seqs = d->n_seqs;
        match_qual(d, p, &h, &f, &costs, agree);
        add_outcome(&h.qual, f.tags - f.qual, d->n_seqs - n_seqs);
        match_tags(d, p, &h, &f, text);
        p->at = max_u32(f.end, p->anchor);
        if (at < TRIAL && f.end >= TRIAL && is_too_large(&h, f.end))
            return GIVEN_UP;
        if (at < SECOND_TRIAL && f.end >= SECOND_TRIAL && is_too_large_later(&h, f.end))
            return h.tag.bytes * 100 < TAG_LITTLE * f.end ? DROPPED : GIVEN_UP;
        if (!alike || !is_lazy_better(&h.reads))
            continue;
        if (is_unlike(&h.reads) && !are_strangers(&h.reads))
            return PART;
        alike = false;
        insert_seqs(d, p, f.end, text->wide);
    }
    return ALL;
}

INLINE enum done parse_fields(struct deflate_parse *d, struct parse *p, agree64_fn *agree)
{
    enum oq oq = OQ_ANY;
    enum promise promise = find_promise(p, &oq, agree);
    if (promise == NONE)
        return PART;
    return promise == WHOLE_GENOME ? parse_records(d, p, oq, &text_near, &seq_near, agree)
                                   : parse_records(d, p, oq, &text_wide, &seq_wide, agree);
}

static enum done parse_older(struct deflate_parse *d, struct parse *p)
{
    return parse_fields(d, p, agree64);
}
NEWER_AVX2 static enum done parse_newer(struct deflate_parse *d, struct parse *p)
{
    return parse_fields(d, p, agree64_avx2);
}

/* How what fields give up goes deeply: with half of the depth. Copies (reads at few places) and unmapped reads need all
 * of it. */
static struct tuning tune_deep(const struct deflate_parse *d, const struct parse *p)
{
    const struct trial trial = look_back(d, (struct mark){0, 0}, (struct mark){d->n_seqs, d->n_lits});
    struct head_share h = {0};
    const bool copies = trial.in_long * 10 >= trial.bytes * 6;
    return (struct tuning){
        .min_gain = cheap_literals(&trial),
        .dense_len = copies ? DENSE_COPIES : MAX_MATCH,
        .shallow = !copies && measure_heads(p, &h),
    };
}

void deflate_fields(struct deflate_parse *d, struct parse *p, bool newer)
{
    enum done done = (newer ? parse_newer : parse_older)(d, p);
    if (done == ALL || p->at >= p->last)
        return;
    if (done == PART) {
        deflate_lazy(d, p, newer);
        return;
    }
    struct tuning deep = tune_deep(d, p);
    if (done == DROPPED)
        begin_anew(d, p);
    deflate_deep(d, p, newer, &deep);
}
