/* SPDX-License-Identifier: MIT */
/* The default level where the fields of records do not tell: any bytes lazily. Of records with qualities of 40 levels
 * SEQ goes by position (deflate_records.h), QUAL and an OQ of small steps on their own (deflate_noise.h). A block in
 * which this would give up too much goes to deflate_deep.c, which a trial tells. */
#include "codec/deflate_noise.h"
#include "codec/deflate_search.h"
#include "codec/deflate_trial.h"

enum {
    /* After so many segments it is decided whether a block goes to deflate_deep() instead, by what became of them, all
     * but the first. */
    TRIAL = 5,
    LONG_MEAN = 32,               /* of all matches: short reads at few places */
    FEW_BASES = 126, MANY_BASES = 200,             /* of a read */
    /* Fewer pairs of bytes are the same where qualities are matched apart. Generated ones of 40 levels have one in 34
     * to 47; HiSeq has one in 24 to 34, and its qualities have longer matches, which a search of 8 bytes finds. */
    QUALS_APART_RATE = 34,
    STEPS_APART_RATE = 26,        /* the same where qualities go in small steps */
    FIRST_LOOK = 2,               /* segments, after which it is seen whether qualities go at random steps */
    RANDOM_APART = 60,            /* of 100 matches have literals before them: random steps 61 to 67, others 38 to 58 */
    /* What expected_loss() may be at most: of a block that stays here, of one that goes on deeply from where its trial
     * ends, and of one with half of the depth. Of reads of less bases than SHORT_READ more is expected. */
    LOSS_LAZY = 60, LOSS_DEEP_ON = 150, LOSS_SHALLOW = 240,
    SHORT_READ = 60, SHORT_LOSS = 40,
};

/* Whether a sample holds nothing but printable ASCII and white space. BAM has zeros in every record. */
static bool is_text(const uint8_t *in, uint32_t n)
{
    uint32_t others = 0;
    for (uint32_t i = 0; i < n; i += SAMPLE_STRIDE)
        others += in[i] < '\t' || in[i] > '~';
    return others == 0;
}

/* Text has long matches, and fields that come again soon: positions inside a match are worth little. Against the
 * tuning of other bytes: SAM 14 to 20 % faster, 0.3 to 0.6 % larger; FASTQ 8 % and 0.5 %; VCF 7 % and nothing. Without
 * `deep` SAM would be another 8 % faster, 1 % larger. */
static struct tuning tune_text(uint32_t same, uint32_t pairs)
{
    struct tuning t = {.min_gain = 6, .dense_len = 24, .deep = true, .two_steps = true, .sparse_len = 48};
    if (same < pairs / 6)
        t.dense_len = 12, t.sparse_len = 32;
    return t;
}

/* Do the qualities of the first records go in small steps? */
static bool has_first_quals_in_steps(const uint8_t *in, uint32_t n)
{
    const struct parse p = {.in = in};
    struct steps steps = {0};
    struct fields f;
    for (uint32_t k = 0, at = 0; k < FIRST_RECORDS && find_fields(in, n, at, &f); k++, at = f.end)
        count_steps(&p, f.qual, f.tags, &steps);
    return are_steps_small(&steps);
}

/* 40 levels. Qualities are matched apart, but for copies side by side, whose long matches the lazy search finds. The
 * shorter the reads, the more there is to choose from. Of 100 bases that overlap a second step is worth 0.6 %, the
 * older four positions 0.8 %, both 1.2 % and 16 % of the speed; of 150 bases a second step 0.5 % and 7 %. Where a pair
 * lies side by side the older four are not needed. */
static struct tuning tune_noisy(const uint8_t *in, uint32_t n, bool quals_apart)
{
    struct fields f = {0}, next = {0};
    if (!find_fields(in, n, 0, &f))
        return (struct tuning){.dense_len = 32, .noisy = true};
    uint32_t bases = f.tags - f.qual, name = f.cigar - f.at - BAM_FIXED;
    bool pairs = find_fields(in, n, f.end, &next) && next.cigar - next.at - BAM_FIXED == name
        && memcmp(in + f.at + BAM_FIXED, in + next.at + BAM_FIXED, name) == 0;
    quals_apart = quals_apart && !(pairs && bases >= 32 && memcmp(in + f.seq, in + next.seq, 16) == 0);   /* copies */
    return (struct tuning){
        .dense_len = 32, .deep = bases <= FEW_BASES && !pairs, .two_steps = bases <= MANY_BASES && !quals_apart,
        .noisy = true, .quals_apart = quals_apart,
    };
}

/* A second lazy step gains 0.5 % on generated qualities of 40 levels, for 11 % of the speed; the literals of some data
 * cost so little that short matches do not pay (10x reads 0.25 %, unmapped ones 3 %). */
static struct tuning tune(const uint8_t *in, uint32_t n)
{
    uint32_t pairs, same = same_pairs(in, n, &pairs);
    if (is_text(in, n))
        return tune_text(same, pairs);
    bool apart = same < pairs / QUALS_APART_RATE
        || (same < pairs / STEPS_APART_RATE && has_first_quals_in_steps(in, n));
    if (apart || same < pairs / 32)
        return tune_noisy(in, n, apart);
    if (same < pairs / 16)
        return (struct tuning){.dense_len = 32, .two_steps = true};
    if (same < pairs / 9)
        return (struct tuning){.min_gain = 4, .dense_len = 128, .deep = true, .two_steps = true};
    if (same < pairs / 9 * 2)
        return (struct tuning){.dense_len = 32, .deep = true, .two_steps = true};
    return (struct tuning){.min_gain = 6, .dense_len = 32, .deep = true, .two_steps = true};
}

/* How qualities are matched apart: at first; where levels go at random steps, and there few literals are left (reads of
 * 76 bases and less, high coverage); and where few literals are left beside tags. */
static const struct noise_effort noise_first = {.depth = 4, .literal = 48};
static const struct noise_effort noise_random = {.depth = 2, .literal = 40};
static const struct noise_effort noise_random_few = {.depth = 4, .literal = 40};
static const struct noise_effort noise_much = {.depth = 8, .literal = NOISE_LITERAL_MAX};

/* After a trial. */
enum way {
    LAZILY,
    DEEPLY,                       /* by deflate_deep(), from the beginning */
    DEEPLY_ON,                    /* the same from here on */
};

/* Of the last segments. */
static struct trial look_at(const struct deflate_parse *d, uint32_t segments)
{
    return look_back(d, d->mark[d->n_segments - segments], d->mark[d->n_segments]);
}

/* What the lazy search gives up on mapped reads, as a part of what level 7 of libdeflate takes, in 1/10,000: a linear
 * estimate by least squares from the trials of 4,109 blocks. doc/tried.md says how good it is. */
static int32_t expected_loss(const struct trial *t, const struct head_share *h)
{
    const int32_t always = 590, by_one = 725, apart = -454, from_8 = -487, from_16 = -306, near = -228;
    const int32_t lits = -696, in_long = -193, heads = 370;
    int32_t by_match = by_one * (int32_t)t->by_one + apart * (int32_t)t->apart + from_8 * (int32_t)t->from_8
        + from_16 * (int32_t)t->from_16 + near * (int32_t)t->near;
    int32_t by_byte = lits * (int32_t)t->lits + in_long * (int32_t)t->in_long;
    bool is_short = h->quals < FIRST_RECORDS * SHORT_READ;
    return always + by_match / (int32_t)t->seqs + by_byte / (int32_t)t->bytes
        + heads * (int32_t)h->heads / (int32_t)h->bytes + (is_short ? SHORT_LOSS : 0);
}

/* Long matches with literals before most of them, as alignments of the same read side by side have: each copies the one
 * before but for what differs. expected_loss() is too low for them, so that a rule alone decides. */
static bool are_secondary(const struct trial *t)
{
    return t->in_long * 10 > t->bytes * 6 && t->apart * 10 > t->seqs * 6;
}

/* Whether the search gives up more than promised, though the deep one with half of its depth does not. */
static bool is_misled_a_little(const struct trial *t, const struct tuning *tuning)
{
    bool wide = tuning->wide && !tuning->noisy;
    if (t->seqs == 0 || tuning->sparse_len || (wide && tuning->min_gain == 0))
        return false;
    uint32_t lits = t->lits * 100 / t->bytes, apart = t->apart * 100 / t->seqs;
    uint32_t in_long = t->in_long * 100 / t->bytes;
    if (lits < 10)
        return false;
    if (wide && lits < 13 && in_long < 22)                             /* 36 bases, 4 levels */
        return true;
    /* barcodes in names */
    if (wide && lits >= 12 && lits < 15 && apart < 62 && in_long >= 33 && in_long < 41 && t->same * 33 < t->pairs)
        return true;
    if (in_long >= 11)
        return false;
    return (lits < (in_long < 4 ? 24 : 21) && apart < 63)              /* bisulfite of 40 levels, amplicons by name */
        || (lits < 24 && apart >= 60 && !tuning->noisy && !tuning->wide);      /* 36 and 50 bases, 40 levels */
}

/* Whether it gives up even more. doc/tried.md has the numbers. */
static bool is_misled(const struct trial *t, const struct tuning *tuning)
{
    if (t->seqs == 0)
        return false;
    uint32_t lits = t->lits * 100 / t->bytes, apart = t->apart * 100 / t->seqs;
    uint32_t in_long = t->in_long * 100 / t->bytes;
    bool cheap_lits = t->same * 18 > t->pairs, wide = tuning->wide && !tuning->noisy;
    if (tuning->sparse_len)
        return lits >= 10 && lits < 20 && apart < 55 && cheap_lits;
    if (wide && tuning->min_gain == 0)     /* copies of unmapped reads; else 4 levels, RNA */
        return lits >= 5 && lits < 10 && apart < 48 && in_long >= 60;
    if (in_long >= (wide ? 60 : 55))       /* copies of copies, cut where positions are left out */
        return apart >= 60 || in_long >= 85 || (wide && t->bytes - t->lits >= LONG_MEAN * t->seqs);
    if (wide && cheap_lits && lits >= 40)  /* short matches cost more than their literals */
        return true;
    if (lits < 10)
        return in_long < 32 || (lits >= 6 && apart < 52 && in_long < 50);
    if (lits >= 20)
        return false;
    return (apart < 58 && !wide) || (apart < 60 && in_long < 33) || (in_long < 12 && !wide);
}

static struct tuning tune_deep(const struct trial *t, bool shallow)
{
    bool copies = t->in_long * 10 > t->bytes * 6;
    return (struct tuning){
        .min_gain = copies ? 3 : cheap_literals(t), .dense_len = MAX_MATCH, .two_steps = copies, .shallow = shallow,
    };
}

/* Zeros, or bytes of as few values: a deep search gains nothing. */
static bool is_often_same(const struct tuning *t) { return t->min_gain > 4 && !t->sparse_len; }

/* After the trial: where does the block go? If to deflate_deep(), *t says how. Of mapped reads a rule and the estimate
 * must agree. */
static enum way choose_way(const struct deflate_parse *d, const struct parse *p, struct tuning *t)
{
    struct trial trial = look_at(d, TRIAL - 1);
    struct head_share h = {0};
    enum way way = DEEPLY;
    bool full = is_misled(&trial, t);
    if (trial.seqs == 0 || !(full || is_misled_a_little(&trial, t)))
        return LAZILY;
    if (!t->noisy && !are_secondary(&trial) && measure_heads(p, &h)) {
        int32_t loss = expected_loss(&trial, &h);
        if (loss <= LOSS_LAZY)
            return LAZILY;
        way = loss <= LOSS_DEEP_ON ? DEEPLY_ON : DEEPLY;
        full = full && loss > LOSS_SHALLOW;
    }
    *t = tune_deep(&trial, !full);
    return way;
}

/* deep: how the block goes to deflate_deep(), if it does; begins as *t. */
INLINE enum way parse_segments(struct deflate_parse *d, struct parse *p, const struct tuning *t, struct tuning *deep)
{
    const bool on_trial = p->at < SEGMENT && !is_often_same(t);
    for (uint32_t end = SEGMENT; p->at < p->last; end += SEGMENT) {
        parse_lazy(d, p, min_u32(end, p->last), t);
        put_mark(d);
        enum way way = on_trial && end == TRIAL * SEGMENT ? choose_way(d, p, deep) : LAZILY;
        if (way != LAZILY)
            return way;
    }
    return LAZILY;
}

/* Do the first records have an OQ that goes in small steps? */
static bool has_oq_in_steps(const struct parse *p)
{
    struct steps steps = {0};
    struct fields f;
    for (uint32_t k = 0, at = 0; k < FIRST_RECORDS && find_fields(p->in, p->n, at, &f); k++, at = f.end)
        count_oq_steps(p, &f, &steps);
    return oq_of(&steps) == OQ_IN_STEPS;
}

/* After FIRST_LOOK: levels at random steps have literals before most matches, which cost little, and there is much to
 * choose from. */
static struct noise_effort noise_effort_first(const struct deflate_parse *d)
{
    struct trial trial = look_at(d, 1);
    return trial.seqs > 0 && trial.apart * 100 >= RANDOM_APART * trial.seqs ? noise_random : noise_first;
}

/* After the trial of records. Returns false where the block shall go to deflate_deep(): copies; SEQ that is known,
 * though its position does not tell where (near, as in RNA; or far back, as with UMIs at low coverage); much of tags or
 * heads. doc/tried.md has the numbers. */
static bool choose_effort(const struct trial *t, const struct tuning *tuning, const struct reads *reads, bool oq,
                          struct noise_effort *effort)
{
    if (t->seqs == 0)
        return true;
    uint32_t lits = t->lits * 100 / t->bytes, apart = t->apart * 100 / t->seqs;
    uint32_t in_long = t->in_long * 100 / t->bytes, seq = reads->seq_lits * 100 / max_u32(reads->seq_bytes, 1);
    if ((lits < 10 || in_long >= 55) && is_misled(t, tuning))
        return false;
    if (apart >= RANDOM_APART) {
        *effort = lits < 19 ? noise_random_few : noise_random;
        return true;
    }
    *effort = lits < 24 ? noise_much : noise_usual;
    bool known = seq >= (oq ? 60 : 24) && (seq < 95 || reads->in_turn);
    bool many_tags = lits < 13 && in_long >= 34, many_heads = !oq && lits < 14 && apart < 46 && in_long < 20;
    bool near = lits < 23 && apart < 48, far = lits >= 23 && lits < 32 && apart >= 48 && apart < 58 && seq < 86;
    return !(known && (near || far)) && !many_tags && !many_heads;
}

/* Lazily, but for qualities in OQ. */
INLINE void match_tags(struct deflate_parse *d, struct parse *p, const struct fields *f, const struct tuning *t,
                       bool oq, struct noise_effort effort)
{
    uint32_t from = oq ? find_oq(p, f) : f->end, to = oq_end(f, from);
    match_lazily(d, p, f->tags, from, t);
    match_noise(d, p, from, to, effort);
    match_lazily(d, p, to, f->end, t);
}

/* The same by records, up to what is none: SEQ with the reads before, by position, and qualities on their own. */
INLINE enum way parse_records(struct deflate_parse *d, struct parse *p, const struct tuning *t, struct tuning *deep)
{
    struct noise_effort effort = noise_first;
    struct reads reads = {0};
    struct fields f;
    const bool oq = has_oq_in_steps(p);
    noise_begin(&d->noise);
    for (uint32_t at = 0, end = SEGMENT; p->at < p->last && find_fields(p->in, p->n, at, &f); at = f.end) {
        match_lazily(d, p, p->at, f.seq, t);
        if (reads.in_turn)         /* template order: at one of the two places reads are in no order */
            match_lazily(d, p, f.seq, f.qual, t);
        else
            match_seq(d, p, &reads, &f, thorough, agree64);
        match_noise(d, p, f.qual, f.tags, effort);
        match_tags(d, p, &f, t, oq, effort);
        p->at = max_u32(f.end, p->anchor);
        if (p->at < end)
            continue;
        put_mark(d);
        end = p->at + SEGMENT;
        if (d->n_segments == FIRST_LOOK)
            effort = noise_effort_first(d);
        if (d->n_segments == TRIAL) {
            struct trial trial = look_at(d, TRIAL - 1);
            if (!choose_effort(&trial, t, &reads, oq, &effort)) {
                *deep = tune_deep(&trial, false);
                return DEEPLY;
            }
            if (effort.depth > NOISE_NEWER)
                noise_deepen(&d->noise);
        }
    }
    return LAZILY;
}

/* Compiled for both values of `wide`, since a table of the newer positions alone is up to 16 % faster (40 levels). The
 * copy of *t tells the compiler that neither value changes. */
INLINE enum way parse(struct deflate_parse *d, struct parse *p, struct tuning *t, bool wide)
{
    t->wide = t->deep = wide;
    struct tuning tuning = *t;
    tuning.wide = tuning.deep = wide;
    lazy_begin(d, wide);
    for (uint32_t i = FIRST; i < p->at; i += 2)    /* what is matched already can be referred to */
        lazy_insert(d, p->in, i, wide);
    if (tuning.quals_apart && p->at == FIRST && parse_records(d, p, &tuning, t) == DEEPLY)
        return DEEPLY;
    return parse_segments(d, p, &tuning, t);
}

INLINE enum way parse_any(struct deflate_parse *d, struct parse *p, struct tuning *t)
{
    return t->deep ? parse(d, p, t, true) : parse(d, p, t, false);
}

static enum way parse_older(struct deflate_parse *d, struct parse *p, struct tuning *t)
{
    return parse_any(d, p, t);
}
NEWER static enum way parse_newer(struct deflate_parse *d, struct parse *p, struct tuning *t)
{
    return parse_any(d, p, t);
}

void deflate_lazy(struct deflate_parse *d, struct parse *p, bool newer)
{
    const struct parse begin = *p;
    const uint32_t n_seqs = d->n_seqs, n_lits = d->n_lits, n_segments = d->n_segments;
    struct tuning t = tune(p->in, p->n);
    enum way way = (newer ? parse_newer : parse_older)(d, p, &t);
    if (way == LAZILY)
        return;
    if (way == DEEPLY) {
        *p = begin;
        d->n_seqs = n_seqs;
        d->n_lits = n_lits;
        d->n_segments = n_segments;
    }
    deflate_deep(d, p, newer, &t);
}
