/* SPDX-License-Identifier: MIT */
/* -l 1. A block of complete records is matched field by field, since the place of similar bytes is known: no hash, no
 * chain from one match to the next. The fields are matched as follows:
 *
 *   fixed fields, name, CIGAR     with the same bytes of the records before, and of the mate
 *   SEQ                           with the reads before, by position on the reference; where that explains little, by
 *                                 samples
 *   QUAL                          as runs; in a copy of a read, with the qualities of that read; greedily where they do
 *                                 not come in runs, and after reads turned out to have nothing in common
 *   long CIGARs, tags             greedily
 *
 * All else goes to deflate_any.c: complete blocks whose qualities go in small steps, records without qualities, records
 * whose tags decide the size, and the rest of a block whose reads turn out not to be alike. */
#include "codec/deflate_greedy.h"
#include "codec/deflate_records.h"

enum {
    /* Records that another one is compared with. 4 instead of 8 are 4 % faster, 1.7 %
     * larger; 12 are 4 % slower, 0.6 % smaller. */
    N_BEFORE = 8,
    MANY_BEFORE = 16,             /* where every other record is at the other place (template order), where SEQ does not
                                     help, or where reads are short */
    TO_MATE_POS = 20,             /* bytes from reference and position to the mate's reference and position */
    NAME_BITS = 10,
    /* A SEQ with this many literals is looked up by samples. 16 instead of 10 are 0.3 %
     * larger on 10x reads, 1 % faster on whole genomes. */
    MANY_LITERALS = 10,
    /* A CIGAR of this many bytes or more is matched greedily: two operations. */
    LONG_CIGAR = 8,
    TAG_BITS = 13,                /* 16 KiB; 12 are 0.2 % larger */
    QUAL_BITS = 14,               /* 32 KiB */
    NO_QUAL = 0xff,
    SAMPLE_RECORDS = 4,           /* one in this many records is looked at for runs */
    /* SEQ bytes that count as explained at the beginning of a block. */
    FIRST_SEQ = 4000,
    /* After TRIAL bytes it is decided whether fields suit the block, and again after SECOND_TRIAL: the first few
     * records do not show whether qualities cost next to nothing. */
    TRIAL = 2 * SEGMENT, SECOND_TRIAL = 6 * SEGMENT,
    LONG_READ = 300,              /* bases */
    SHORT_READ = 60,              /* bases; such records consist mostly of heads and names */
    SHORT_MATCHES = 14,           /* mean length: reads that differ from each other in many places (bisulfite) */
    SHORT_IN_TURN = 16,           /* this mean length in template order, where SEQ is half explained */
    LONG_MATCHES = 32,
    /* Where qualities do not come in runs, one in this many pairs of them must be equal. Otherwise their matches are
     * too short for a table of 5 bytes: HiSeq has one in 7 to 11, generated qualities have one in 19. */
    NOISY_PAIRS = 13,
    /* As RUN_RATE, but two in this many: HiSeq has 48 to 61 percent. RNA of 8 levels is between the two; it gains
     * nothing by coordinate, and would be 1.0103 of libdeflate's level 1 by name. */
    NOISY_RATE = 5,
    HALF_FROM = 31, HALF_TO = 66, /* percent of SEQ */
    FEW_LITERALS = 9,             /* one byte in this many, */
    FEW_SEQ = 40,                 /* or one byte of SEQ in this many, where copies lie at one place */
    /* Tags consist of little but literals if more than one byte of the block in this many is a literal of a tag: OQ of
     * 40 levels has one in 6, other tags have one in 11 and fewer. */
    TAG_LITERALS = 7,
    /* Heads and names decide the size from this percentage of the bytes on. HEAD_MUCH applies if less than one quality
     * in FEW_QUALS is a literal and matches are shorter than FIELD_MATCHES. HEAD_MUCH_IN_TURN is for template order,
     * where SEQ is half explained. Reads of 150 bases have 18 to 23, of 100 bases 29, of 75 bases 34. */
    HEAD_MUCH = 28, HEAD_MUCH_IN_TURN = 31,
    FEW_QUALS = 15,
    FIELD_MATCHES = 31,
    /* Qualities of 4 levels in long runs: less than one in this many is a literal. Real NovaSeq has one in 16 to 24. */
    CHEAP_QUALS = 26,
    TAGS_APART = 45,              /* bytes per literal of tags: UMIs, barcodes, bisulfite have 20 to 30 */
    /* Heads beside such tags, in thousandths of the bytes: reads of 151 bases with UMIs in names that tags repeat have
     * 220, bisulfite reads of 101 bases without UMIs have 212. */
    HEAD_APART = 216,
    SEQ_LEFT = 5,                 /* bytes per literal of SEQ: amplicons by name have 1.5 to 3 */
};
_Static_assert(STRIDE * INSERT <= FIRST, "insert_matched() does not go below 0");
_Static_assert(sizeof ((struct deflate_parse *)0)->tag_head == 2 << TAG_BITS, "positions are two bytes");
_Static_assert(sizeof ((struct deflate_parse *)0)->fast_head >= 2 << QUAL_BITS, "so they are here");

enum told { BYTES, ALIKE, NOISY };

/* Returns whether the block has complete records whose fields promise to be alike. Qualities come in runs (ALIKE), or
 * do not (NOISY). In the latter case short, long and unmapped reads would be 2 % larger, and reads that are mostly tags
 * would fail the trial; so these are BYTES. */
INLINE enum told look(const struct parse *p, agree64_fn *agree)
{
    uint32_t records = 0, quals = 0, tags = 0, unmapped = 0;
    struct sampled s = {0, 0};
    struct fields f;
    for (uint32_t at = 0; at < p->n; at = f.end) {
        if (!find_fields(p->in, p->n, at, &f))
            return BYTES;
        quals += f.tags - f.qual;
        tags += f.end - f.tags;
        unmapped += (bam_record_flag((const void *)(p->in + at)) & FLAG_UNMAPPED) != 0;
        if (records++ % SAMPLE_RECORDS == 0)
            sample_runs(p, &f, &s, agree);
    }
    bool runs = s.differ * RUN_RATE <= s.all;
    if (records < MIN_RECORDS || quals * QUAL_RATE < p->n)
        return BYTES;
    if (runs)
        return ALIKE;
    bool fit = quals >= records * SHORT_READ && quals <= records * LONG_READ && tags <= quals;
    return s.differ * NOISY_RATE >= s.all * 2 && fit && unmapped * 2 <= records ? NOISY : BYTES;
}

/* Returns whether qualities go in small steps. Looks at one quality of each half of each read, and at the next one. */
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

/* Returns whether qualities that do not come in runs can be matched apart from all else. Looks at one quality of each
 * half of each read. */
INLINE bool is_noise_matched(const struct parse *p)
{
    uint16_t count[256] = {0};
    uint32_t same = 0, reads = 0;
    struct fields f;
    for (uint32_t at = 0; at < p->n && find_fields(p->in, p->n, at, &f); at = f.end, reads++) {
        uint32_t quals = f.tags - f.qual, first = f.qual + reads % 8 * quals / 16;
        same += count[p->in[min_u32(first, p->n - 1)]]++;
        same += count[p->in[min_u32(first + quals / 2, p->n - 1)]]++;
    }
    return same * NOISY_PAIRS >= 2 * reads * reads && !has_quals_in_steps(p);
}

/* The bytes of a field of the records in the trials, and how many of them became literals. */
struct outcome {
    uint32_t bytes, lits;
};

/* The state that a record is compared with. */
struct history {
    uint32_t record[MANY_BEFORE];                  /* where records begin, the last first */
    uint32_t to_cigar;                             /* bytes before the CIGAR of the last record */
    uint32_t tags;                                 /* where the tags of the last record begin */
    uint16_t name_end[1 << NAME_BITS];             /* by the hash of a name's last eight bytes: mates */
    struct reads reads;
    struct outcome head, qual, tag;
};

INLINE void match_greedily(struct deflate_parse *d, struct parse *p, uint32_t from, uint32_t to, const struct greedy *g)
{
    p->at = max_u32(p->at, max_u32(p->anchor, from));
    parse_greedy(d, p, min_u32(to, p->last), g);
}

/* Sets dist[] to the distances that a head is compared at: those of the n records before and of the mate. If the mate
 * comes just before, its fields for the mate's place hold this read's place, so they are compared, too. */
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

/* Matches the head of a record with the n records before. */
INLINE void match_head(struct deflate_parse *d, struct parse *p, struct history *h, const struct fields *f, uint32_t n,
                       const struct greedy *tags, agree64_fn *agree)
{
    uint32_t dist[MANY_BEFORE + 1];
    bool is_long = f->seq - f->cigar >= LONG_CIGAR;
    uint16_t *mate = &h->name_end[hash(load_le64(p->in + f->cigar - 9), HASH_FACTOR(8), NAME_BITS)];
    find_heads(h, f, *mate, n, dist);
    if (f->at > 0)
        match_at(d, p, f->at, is_long ? f->cigar : f->seq, dist, n + 1, false, agree);
    if (is_long)
        match_greedily(d, p, f->cigar, f->seq, tags);
    *mate = (uint16_t)f->cigar;
    memmove(h->record + 1, h->record, sizeof h->record - sizeof *h->record);
    h->record[0] = f->at;
    h->to_cigar = f->cigar - f->at;
}
_Static_assert(BAM_FIXED + 1 >= 9, "eight bytes before the NUL can be loaded");

/* Matches the qualities. Absent qualities are matched with those of the record before, so that the match continues
 * into the tags. */
INLINE void match_qual(struct deflate_parse *d, struct parse *p, struct history *h, const struct fields *f,
                       agree64_fn *agree)
{
    uint32_t dist[2] = {1, 1};
    if (is_copy(p, f, agree))
        dist[1] = p->dist;
    else if (f->qual < f->tags && p->in[f->qual] == NO_QUAL && f->tags - h->tags <= f->qual)
        dist[0] = distance(f->tags, h->tags);
    if (dist[0] != dist[1])
        match_at(d, p, f->qual, f->tags, dist, 2, false, agree);
    else
        match_at(d, p, f->qual + 1, f->tags, (const uint32_t[]){1}, 1, false, agree);
    h->tags = f->tags;
}

/* Adds a field that begins within the trials. *lits: the literals before the field; set to those before its end. A
 * match may go back and take some of them. */
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

/* Returns whether the size depends mostly on heads and names, which cost more by fields. */
INLINE bool is_mostly_heads(const struct history *h, const struct deflate_parse *d, uint32_t bytes, bool half)
{
    if (h->head.bytes * 100 >= bytes * HEAD_MUCH_IN_TURN && half)
        return true;
    return h->head.bytes * 100 >= bytes * HEAD_MUCH && h->qual.lits * FEW_QUALS < h->qual.bytes
        && bytes - d->n_lits < FIELD_MATCHES * d->n_seqs;
}

/* Returns whether fields cut matches that the search for any bytes would find complete: snippets of SEQ, or copies of
 * records. Also returns true if SEQ is half explained, as in bisulfite reads: whole genomes have 8 to 30 % of SEQ left,
 * unrelated reads 70 and more. */
INLINE bool is_cut(const struct deflate_parse *d, const struct parse *p, const struct history *h, bool in_turn,
                   bool noisy)
{
    uint32_t matched = p->anchor - d->n_lits, seq = h->reads.seq_bytes - FIRST_SEQ, lits = h->reads.seq_lits;
    bool half = lits * 100 > seq * HALF_FROM && lits * 100 < seq * HALF_TO;
    if ((half && !in_turn) || is_mostly_heads(h, d, p->anchor, half))
        return true;
    if (noisy)
        return false;
    return matched < (in_turn && half ? SHORT_IN_TURN : SHORT_MATCHES) * d->n_seqs
        || (matched > LONG_MATCHES * d->n_seqs && d->n_lits * FEW_LITERALS < p->anchor
            && lits * FEW_SEQ > h->reads.seq_bytes);
}

/* Returns whether more than n / `of` of the SEQ bytes of mapped reads are literals. */
INLINE bool is_seq_left(const struct reads *h, uint32_t n, uint32_t of)
{
    return h->seq_lits * of > (h->seq_bytes - FIRST_SEQ) * n;
}

/* Returns whether mapped reads have nothing in common: low coverage, order of names. Bisulfite reads have one byte in
 * two in common. */
INLINE bool are_unrelated(const struct reads *h) { return is_seq_left(h, 3, 4); }

/* Returns whether fields do not suit a block of which `bytes` were looked at, for reasons that is_cut() does not see.
 * This shows only where qualities cost next to nothing, since all other fields decide there. Fields lose the names and
 * tags that a record shares with any earlier record, and SEQ of which much is left though it was seen before. If reads
 * are unrelated, a twentieth of SEQ that was seen before is enough: RNA by name. */
INLINE bool is_cut_later(const struct history *h, uint32_t bytes)
{
    bool apart = h->tag.lits * TAGS_APART > bytes;
    if (h->qual.lits * CHEAP_QUALS >= h->qual.bytes || h->tag.lits * TAG_LITERALS > bytes)
        return false;
    if (are_unrelated(&h->reads))
        return apart || !is_seq_left(&h->reads, 19, 20);
    return is_seq_left(&h->reads, 1, SEQ_LEFT) || (apart && h->head.bytes * 1000 > bytes * HEAD_APART);
}

/* Returns whether the records up to the one at [at, end) show that fields do not suit the block. */
INLINE bool is_given_up(const struct deflate_parse *d, const struct parse *p, const struct history *h, uint32_t at,
                        uint32_t end, bool in_turn, bool noisy)
{
    if (at < TRIAL && end >= TRIAL)
        return h->tag.lits * TAG_LITERALS > end || is_cut(d, p, h, in_turn, noisy);
    return !noisy && at < SECOND_TRIAL && end >= SECOND_TRIAL && is_cut_later(h, end);
}

static const struct effort few = {.n_reads = N_READS, .many_literals = MANY_LITERALS};
static const struct effort many = {.n_reads = MANY_READS, .many_literals = MANY_LITERALS};

/* Parses up to the last record, or up to where fields turn out not to be alike. Parses nothing where fields do not suit
 * the block. */
INLINE void parse_records(struct deflate_parse *d, struct parse *p, bool noisy, agree64_fn *agree)
{
    const struct greedy tags = {
        .head = d->tag_head, .factor = HASH_FACTOR(5), .bits = TAG_BITS,
    };
    const struct greedy quals = {
        .head = d->fast_head, .factor = noisy ? HASH_FACTOR(6) : HASH_FACTOR(8), .bits = QUAL_BITS,
        .ahead = noisy,
    };
    struct history h = {.reads.seq_bytes = FIRST_SEQ};
    struct fields f;
    bool alike = true, is_short = false, hashed = false, in_turn = false;
    memset(d->tag_head, 0, sizeof d->tag_head);
    for (uint32_t at = 0; at < p->n && find_fields(p->in, p->n, at, &f); at = f.end) {
        uint32_t lits = lits_before(d, p, f.at);
        is_short = f.tags - f.qual < SHORT_READ;
        if (h.reads.in_turn || is_short || !alike)
            match_head(d, p, &h, &f, MANY_BEFORE, &tags, agree);
        else
            match_head(d, p, &h, &f, N_BEFORE, &tags, agree);
        add_outcome(&h.head, d, p, f.at, f.seq, &lits);
        if (h.reads.in_turn)
            match_seq(d, p, &h.reads, &f, many, agree);
        else
            match_seq(d, p, &h.reads, &f, few, agree);
        in_turn |= h.reads.in_turn;
        lits = lits_before(d, p, f.qual);
        if (alike && is_unlike(&h.reads)) {
            if (is_short || !is_seq_left(&h.reads, 2, 3))
                break;
            alike = hashed = false;
        }
        if ((alike && !noisy && !(is_short && h.reads.in_turn)) || is_copy(p, &f, agree)) {
            match_qual(d, p, &h, &f, agree);
        } else {
            if (!hashed)
                memset(d->fast_head, 0, 2 << QUAL_BITS);
            hashed = true;
            match_greedily(d, p, f.qual, f.tags, &quals);
        }
        add_outcome(&h.qual, d, p, f.qual, f.tags, &lits);
        match_greedily(d, p, f.tags, f.end, &tags);
        add_outcome(&h.tag, d, p, f.tags, f.end, &lits);
        if (is_given_up(d, p, &h, at, f.end, in_turn, noisy)) {
            begin_anew(d, p);
            return;
        }
    }
    p->at = max_u32(p->at, p->anchor);
}

/* parse_records() for qualities that are not in runs is a function of its own: gcc inlines less in a function that
 * holds parse_records() twice. */
typedef void noisy_fn(struct deflate_parse *d, struct parse *p);

static NOINLINE void noisy_older(struct deflate_parse *d, struct parse *p) { parse_records(d, p, true, agree64); }
NEWER_AVX2 static NOINLINE void noisy_newer(struct deflate_parse *d, struct parse *p)
{
    parse_records(d, p, true, agree64_avx2);
}

INLINE void parse_fields(struct deflate_parse *d, struct parse *p, agree64_fn *agree, noisy_fn *noisy)
{
    enum told told = look(p, agree);
    if (told == ALIKE)
        parse_records(d, p, false, agree);
    else if (told == NOISY && is_noise_matched(p))
        noisy(d, p);
}

static void parse_older(struct deflate_parse *d, struct parse *p) { parse_fields(d, p, agree64, noisy_older); }
NEWER_AVX2 static void parse_newer(struct deflate_parse *d, struct parse *p)
{
    parse_fields(d, p, agree64_avx2, noisy_newer);
}

void deflate_fast(struct deflate_parse *d, struct parse *p, bool newer)
{
    (newer ? parse_newer : parse_older)(d, p);
    if (p->at < p->last)
        deflate_any(d, p, newer);
}
