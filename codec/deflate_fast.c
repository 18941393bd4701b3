/* SPDX-License-Identifier: MIT */
/* -l 1. A block of complete records is matched field by field. The fields say where bytes are alike, so no hash is
 * needed, and no search waits for the match before it.
 *
 *   fixed fields, name, CIGAR     with the same bytes of the records before, and of the mate
 *   SEQ                           with the reads before, by position on the reference; where that explains little, by
 *                                 samples
 *   QUAL                          by runs; in a copy of a read, with the qualities of that read; greedily where
 *                                 qualities do not come in runs, and after reads turned out to have nothing in common
 *   long CIGARs, tags             greedily
 *
 * All other bytes are matched greedily (deflate_greedy.c): blocks whose qualities go in small steps, records without
 * qualities, records whose heads or tags decide, and the rest of a block after its reads turned out not to be alike. */
#include "codec/deflate_greedy.h"
#include "codec/deflate_records.h"

enum {
    /* A record is compared with this many records before it. 4 instead of 8 are 4 % faster, 1.7 %
     * larger; 12 are 4 % slower, 0.6 % smaller. */
    N_BEFORE = 8,
    MANY_BEFORE = 16,             /* where every other record lies at the other place (template order), SEQ explains
                                     nothing, or reads are short */
    TO_MATE_POS = 20,             /* bytes from reference and position to the mate's reference and position */
    /* A SEQ with this many literals is looked up by samples. 16 instead of 10 are 0.3 %
     * larger on 10x reads, 1 % faster on whole genomes. */
    MANY_LITERALS = 10,
    /* A CIGAR of this many bytes, which are two operations, is matched greedily. */
    LONG_CIGAR = 8,
    TAG_BITS = 13,                /* 16 KiB; 12 are 0.2 % larger */
    TAG_STRIDE = 3,               /* 4 is 0.2 % larger, 1 % faster */
    QUAL_BITS = 14,               /* 32 KiB */
    QUAL_STRIDE = 3,              /* pairs of positions are 0.3 % smaller, 15 % slower */
    SAMPLE_RECORDS = 4,           /* one record in this many is looked at for runs */
    /* SEQ bytes that count as explained at the beginning of a block. */
    FIRST_SEQ = 4000,
    /* After this many bytes, and again after SECOND_TRIAL, the encoder decides whether fields suit the block. Where
     * qualities cost next to nothing, the first few records do not show it. */
    TRIAL = 2 * SEGMENT, SECOND_TRIAL = 6 * SEGMENT,
    /* Unrelated reads come without mates if more than one byte in this many of heads and names became a literal in the
     * trial. HiSeq by coordinate has one in 3 or 4, by name one in 7. */
    MANY_HEAD_LITERALS = 5,
    SHORT_READ = 60,              /* bases; heads and names are most of such records */
    /* Reads differ from each other in many places (bisulfite) if their matches have a lower mean length. */
    SHORT_MATCHES = 14,
    /* Where qualities do not come in runs, one pair in this many must be equal, or their matches are too short for a
     * table of 6 bytes. HiSeq has one in 7 to 11; generated qualities have one in 19. */
    NOISY_PAIRS = 13,
    /* Where qualities do not come in runs, at least two in this many must differ from the one before (see RUN_RATE).
     * HiSeq has 48 to 61 percent. RNA of 8 levels lies between the two rates; by its fields a real file by name is 2 %
     * larger. */
    NOISY_RATE = 5,
    HALF_FROM = 31, HALF_TO = 66, /* SEQ is half explained if its literals are between these percentages */
    /* Tags are mostly literals if more than one byte of the block in this many is a literal of tags: OQ of 40 levels
     * has one in 6, other tags have one in 11 and fewer. */
    TAG_LITERALS = 7,
    /* Heads and names decide if they are at least HEAD_MUCH percent of the bytes, and less than one quality in
     * FEW_QUALS is a literal. Reads of 150 bases have 18 to 23, of 100 bases 29, of 75 bases 34. */
    HEAD_MUCH = 28,
    FEW_QUALS = 15,
    /* Qualities cost next to nothing if less than one in this many is a literal: 4 levels in long runs. Real NovaSeq
     * has one in 16 to 24. */
    CHEAP_QUALS = 26,             /* without it, -l 1 is 3 % slower over 190 files, and 0.1 % smaller */
    TAGS_APART = 45,              /* bytes per literal of tags: UMIs, barcodes, bisulfite have 20 to 30 */
    /* Heads beside such tags decide if they are more than this many thousandths of the bytes. Reads of 151 bases whose
     * tags repeat the UMI in the name have 220; bisulfite reads of 101 bases without UMIs have 212. */
    HEAD_APART = 216,
    SEQ_LEFT = 5,                 /* bytes per literal of SEQ: amplicons by name have 1.5 to 3 */
};
_Static_assert(TAG_STRIDE * INSERT <= FIRST && QUAL_STRIDE * INSERT <= FIRST, "insert_matched() does not go below 0");
_Static_assert(sizeof ((struct deflate_parse *)0)->tag_head == 2 << TAG_BITS, "positions are two bytes");
_Static_assert(sizeof ((struct deflate_parse *)0)->fast_head >= 2 << QUAL_BITS, "so they are here");

enum told { BYTES, RECORDS, SHORT, ALIKE, NOISY };

/* Returns what a block holds. BYTES: no complete records, or records whose fields do not promise to be alike. RECORDS:
 * hardly any qualities. ALIKE: qualities come in runs. NOISY: they do not; SHORT: they do not, and reads are below 60
 * bases. Blocks of mostly tags are BYTES if qualities do not come in runs, since they would fail the trial. */
INLINE enum told look(const struct parse *p, agree64_fn *agree)
{
    uint32_t records = 0, quals = 0, tags = 0;
    struct sampled s = {0, 0};
    struct fields f;
    for (uint32_t at = 0; at < p->n; at = f.end) {
        if (!find_fields(p->in, p->n, at, &f))
            return BYTES;
        quals += f.tags - f.qual;
        tags += f.end - f.tags;
        if (records++ % SAMPLE_RECORDS == 0)
            sample_runs(p, &f, &s, agree);
    }
    bool runs = s.differ * RUN_RATE <= s.all;
    if (records < MIN_RECORDS)
        return BYTES;
    if (!runs && s.differ * NOISY_RATE < s.all * 2)
        return BYTES;
    if (quals * QUAL_RATE < p->n)
        return runs ? RECORDS : BYTES;
    if (!runs && quals < records * SHORT_READ)
        return SHORT;
    if (!runs && tags > quals)
        return BYTES;
    return runs ? ALIKE : NOISY;
}

/* Returns whether qualities go in small steps. Looks at one quality in each half of each read, and at the one after
 * it. */
static bool has_quals_in_steps(const struct parse *p)
{
    struct steps s = {0};
    struct fields f;
    uint32_t reads = 0;
    for (uint32_t at = 0; at < p->n && find_fields(p->in, p->n, at, &f); at = f.end, reads++)
        for (uint32_t half = 0; half < 2; half++) {
            uint32_t x = f.qual + (reads % 8 + 8 * half) * (f.tags - f.qual) / 16;
            count_steps(p, x, min_u32(x + 2, f.tags), &s);
        }
    return reads >= MIN_RECORDS && are_steps_small(&s);
}

/* Returns whether qualities that come neither in runs nor in small steps can be matched apart from all other fields.
 * Looks at one quality in each half of each read. */
static bool is_noise_matched(const struct parse *p)
{
    uint16_t count[256] = {0};
    uint32_t same = 0, reads = 0;
    struct fields f;
    for (uint32_t at = 0; at < p->n && find_fields(p->in, p->n, at, &f); at = f.end, reads++) {
        uint32_t quals = f.tags - f.qual, first = f.qual + reads % 8 * quals / 16;
        same += count[p->in[min_u32(first, p->n - 1)]]++;
        same += count[p->in[min_u32(first + quals / 2, p->n - 1)]]++;
    }
    return same * NOISY_PAIRS >= 2 * reads * reads;
}

/* The bytes of a field in the records of the trials, and how many of them became literals. */
struct outcome {
    uint32_t bytes, lits;
};

/* The state that a record is compared with. */
struct history {
    uint32_t record[MANY_BEFORE];                  /* where records begin, the last first */
    uint32_t to_cigar;                             /* bytes of the last record before its CIGAR */
    uint32_t tags;                                 /* where the tags of the last record begin */
    struct mates mates;
    struct reads reads;
    bool noisy;                                    /* qualities do not come in runs */
    bool alike;                                    /* mapped reads are alike so far */
    bool hashed;                                   /* fast_head has qualities */
    struct outcome head, qual, tag;
};

/* Sets dist[0 .. n]: the distances to n records before, then to the mate, whose CIGAR begins at `mate`. Up to three
 * distances to the oldest records are replaced. If the heads of this record and the last one differ in length, one
 * distance compares their CIGARs. If the last record is the mate, one distance compares the position here with the
 * mate's position there, and another one compares the mate's position here with the position there. */
INLINE void find_heads(const struct history *h, const struct fields *f, uint32_t mate, uint32_t n, uint32_t *dist)
{
    uint32_t to_cigar = f->cigar - f->at, *special = dist + n;
    for (uint32_t k = 0; k < n; k++)
        dist[k] = distance(f->at, h->record[k]);
    if (to_cigar != h->to_cigar)
        special[-1] = distance(f->cigar, h->record[0] + h->to_cigar);
    special[0] = distance(f->cigar, mate);
    if (mate > h->record[0]) {
        special[-2] = distance(f->cigar, mate + TO_MATE_POS);
        special[-3] = distance(f->cigar, (int64_t)mate - TO_MATE_POS);
    }
    for (uint32_t k = n - 3; k <= n; k++)
        if (dist[k] > f->at)                       /* the first record has a shorter name */
            dist[k] = 1;
}

INLINE bool is_short(const struct fields *f) { return f->tags - f->qual < SHORT_READ; }
INLINE bool is_cigar_long(const struct fields *f) { return f->seq - f->cigar >= LONG_CIGAR; }

/* Matches the fields before SEQ, but no long CIGAR. They are compared with those of n records before. */
INLINE void match_head(struct deflate_parse *d, struct parse *p, struct history *h, const struct fields *f, uint32_t n,
                       agree64_fn *agree)
{
    uint32_t dist[MANY_BEFORE + 1];
    uint16_t *mate = mate_slot(&h->mates, p, f);
    find_heads(h, f, *mate, n, dist);
    if (f->at > 0)
        match_at(d, p, f->at, is_cigar_long(f) ? f->cigar : f->seq, dist, n + 1, false, agree);
    *mate = (uint16_t)f->cigar;
    memmove(h->record + 1, h->record, sizeof h->record - sizeof *h->record);
    h->record[0] = f->at;
    h->to_cigar = f->cigar - f->at;
}

/* Matches QUAL by runs. Qualities of a copy are matched with those of its read. Absent qualities are matched with those
 * of the record before, so that the match continues into the tags. */
INLINE void match_qual_runs(struct deflate_parse *d, struct parse *p, struct history *h, const struct fields *f,
                            bool copy, agree64_fn *agree)
{
    uint32_t dist[2] = {1, 1};
    if (copy)
        dist[1] = p->dist;
    else if (f->qual < f->tags && p->in[f->qual] == NO_QUAL && f->tags - h->tags <= f->qual)
        dist[0] = distance(f->tags, h->tags);
    if (dist[0] != dist[1])
        match_at(d, p, f->qual, f->tags, dist, 2, false, agree);
    else
        match_at(d, p, f->qual + 1, f->tags, (const uint32_t[]){1}, 1, false, agree);
    h->tags = f->tags;
}

/* Matches QUAL by runs, or greedily if qualities do not come in runs or reads have nothing in common. */
INLINE void match_qual(struct deflate_parse *d, struct parse *p, struct history *h, const struct fields *f,
                       agree64_fn *agree)
{
    const struct greedy quals = {
        .head = d->fast_head, .factor = HASH_FACTOR(8), .bits = QUAL_BITS, .stride = QUAL_STRIDE,
        .far_of_4 = MAX_DIST + 1, .nearest = true,
    };
    const struct greedy noise = {
        .head = d->fast_head, .factor = HASH_FACTOR(6), .bits = QUAL_BITS, .far_of_4 = MAX_DIST + 1, .nearest = true,
        .ahead = true,
    };
    bool copy = is_copy(p, f, agree);
    if (copy || (h->alike && !h->noisy)) {
        match_qual_runs(d, p, h, f, copy, agree);
        return;
    }
    if (!h->hashed)
        memset(d->fast_head, 0, 2 << QUAL_BITS);
    h->hashed = true;
    if (h->noisy)
        match_greedily(d, p, f->qual, f->tags, &noise);
    else
        match_greedily(d, p, f->qual, f->tags, &quals);
}

/* Adds the field [from, to) if it begins within the trials. *lits is the number of literals before the field, and
 * becomes the number before its end. The second may be smaller, since a match may extend back. */
INLINE void add_outcome(struct outcome *o, const struct deflate_parse *d, const struct parse *p, uint32_t from,
                        uint32_t to, uint32_t *lits)
{
    if (from >= SECOND_TRIAL)
        return;
    uint32_t now = lits_before(d, p, to);
    o->bytes += to - from;
    o->lits += max_u32(now, *lits) - *lits;
    *lits = now;
}

/* Returns whether heads and names decide, which cost more by fields. */
INLINE bool is_mostly_heads(const struct history *h, uint32_t bytes)
{
    return h->head.bytes * 100 >= bytes * HEAD_MUCH && h->qual.lits * FEW_QUALS < h->qual.bytes;
}

/* Returns whether fields cut matches that a search among any bytes would find complete: snippets of SEQ. Also returns
 * true if SEQ is half explained, as in bisulfite reads. Whole genomes have 8 to 30 % of SEQ left, unrelated reads 70 %
 * and more. */
INLINE bool is_cut(const struct deflate_parse *d, const struct parse *p, const struct history *h)
{
    uint32_t matched = p->anchor - d->n_lits, seq = h->reads.seq_bytes - FIRST_SEQ, lits = h->reads.seq_lits;
    bool half = lits * 100 > seq * HALF_FROM && lits * 100 < seq * HALF_TO;
    if (half || is_mostly_heads(h, p->anchor))
        return true;
    return !h->noisy && matched < SHORT_MATCHES * d->n_seqs;
}

/* Returns whether more than n in `of` SEQ bytes of mapped reads are literals. */
INLINE bool is_seq_left(const struct reads *h, uint32_t n, uint32_t of)
{
    return h->seq_lits * of > (h->seq_bytes - FIRST_SEQ) * n;
}

/* Returns whether mapped reads have nothing in common, as with low coverage or in order of names. In bisulfite reads,
 * one byte in two is a literal. */
INLINE bool are_unrelated(const struct reads *h) { return is_seq_left(h, 3, 4); }

/* Returns whether unrelated reads whose qualities are not in runs come without mates, as in a deep file by coordinate,
 * where the reads that are alike lie far apart. By fields such reads of 12 levels at 130 places are 2.4 % larger. */
INLINE bool is_known_from_afar(const struct history *h)
{
    return h->head.lits * MANY_HEAD_LITERALS > h->head.bytes;
}

/* Returns whether fields do not suit a block after all, although is_cut() passed it. `bytes` of the block were looked
 * at. The answer is no unless qualities cost next to nothing, because only then do the other fields decide. Fields miss
 * names and tags that a record shares with a record further back. If much of SEQ is left, fields also miss bases that
 * were there before. In unrelated reads it is enough if a twentieth of SEQ was there before: RNA by name. Without that,
 * a genome of coverage 40 by name is 0.56 % larger. */
INLINE bool is_cut_later(const struct history *h, uint32_t bytes)
{
    bool apart = h->tag.lits * TAGS_APART > bytes;
    if (h->qual.lits * CHEAP_QUALS >= h->qual.bytes || h->tag.lits * TAG_LITERALS > bytes)
        return false;
    if (are_unrelated(&h->reads))
        return apart || !is_seq_left(&h->reads, 19, 20);
    return is_seq_left(&h->reads, 1, SEQ_LEFT) || (apart && h->head.bytes * 1000 > bytes * HEAD_APART);
}

/* Returns whether the records up to the one at [at, end) show that fields do not suit the block. Then *rest says how
 * the whole block is matched. */
INLINE bool is_given_up(const struct deflate_parse *d, const struct parse *p, const struct history *h, uint32_t at,
                        uint32_t end, enum greedy_bytes *rest)
{
    if (at < TRIAL && end >= TRIAL) {
        bool of_literals = h->tag.lits * TAG_LITERALS > end;
        *rest = h->noisy ? GREEDY_ANY : of_literals ? GREEDY_STEPS : GREEDY_HARD;
        return of_literals || is_cut(d, p, h);
    }
    if (h->noisy || at >= SECOND_TRIAL || end < SECOND_TRIAL)
        return false;
    *rest = GREEDY_HARD;
    return is_cut_later(h, end);
}

static const struct effort few = {.n_reads = N_READS, .many_literals = MANY_LITERALS};
static const struct effort many = {.n_reads = MANY_READS, .many_literals = MANY_LITERALS};

/* Matches records up to the last one, or until fields turn out not to be alike. Returns how the rest is matched. */
INLINE enum greedy_bytes parse_records(struct deflate_parse *d, struct parse *p, bool noisy, agree64_fn *agree)
{
    const struct greedy tags = {
        .head = d->tag_head, .factor = HASH_FACTOR(5), .bits = TAG_BITS, .stride = TAG_STRIDE, .far_of_4 = MAX_DIST + 1,
    };
    struct history h = {.reads.seq_bytes = FIRST_SEQ, .noisy = noisy, .alike = true};
    struct fields f;
    enum greedy_bytes rest, after = GREEDY_HARD;
    memset(d->tag_head, 0, sizeof d->tag_head);
    for (uint32_t at = 0; at < p->n && find_fields(p->in, p->n, at, &f); at = f.end) {
        uint32_t lits = lits_before(d, p, f.at);
        if (h.reads.in_turn || is_short(&f) || !h.alike)
            match_head(d, p, &h, &f, MANY_BEFORE, agree);
        else
            match_head(d, p, &h, &f, N_BEFORE, agree);
        if (is_cigar_long(&f))
            match_greedily(d, p, f.cigar, f.seq, &tags);
        add_outcome(&h.head, d, p, f.at, f.seq, &lits);
        if (h.reads.in_turn)
            match_seq(d, p, &h.reads, &f, many, agree);
        else
            match_seq(d, p, &h.reads, &f, few, agree);
        lits = lits_before(d, p, f.qual);
        if (h.alike && is_unlike(&h.reads)) {
            if (is_short(&f) || !is_seq_left(&h.reads, 2, 3))
                break;
            h.alike = h.hashed = false;
        }
        match_qual(d, p, &h, &f, agree);
        add_outcome(&h.qual, d, p, f.qual, f.tags, &lits);
        match_greedily(d, p, f.tags, f.end, &tags);
        add_outcome(&h.tag, d, p, f.tags, f.end, &lits);
        if (is_given_up(d, p, &h, at, f.end, &rest)) {
            begin_anew(d, p);
            return rest;
        }
        if (noisy && !h.alike && at < TRIAL && f.end >= TRIAL && is_known_from_afar(&h)) {
            after = GREEDY_ANY;
            break;
        }
    }
    p->at = max_u32(p->at, p->anchor);
    return after;
}

INLINE enum greedy_bytes parse_fields(struct deflate_parse *d, struct parse *p, agree64_fn *agree)
{
    enum told told = look(p, agree);
    if (told == RECORDS)
        return GREEDY_HARD;
    if (told == SHORT || (told != ALIKE && has_quals_in_steps(p)))
        return GREEDY_STEPS;
    if (told == BYTES || (told == NOISY && !is_noise_matched(p)))
        return GREEDY_ANY;
    return parse_records(d, p, told == NOISY, agree);
}

static enum greedy_bytes parse_older(struct deflate_parse *d, struct parse *p) { return parse_fields(d, p, agree64); }
NEWER_AVX2 static enum greedy_bytes parse_newer(struct deflate_parse *d, struct parse *p)
{
    return parse_fields(d, p, agree64_avx2);
}

void deflate_fast(struct deflate_parse *d, struct parse *p, bool newer)
{
    enum greedy_bytes rest = (newer ? parse_newer : parse_older)(d, p);
    if (p->at < p->last)
        deflate_greedy(d, p, newer, rest);
}
