/* SPDX-License-Identifier: MIT */
/* -l 1. A block of whole records is matched field by field, since it is known where what is alike lies: no hash, no
 * chain from one match to the next.
 *
 *   fixed fields, name, CIGAR     the same bytes of the records before, and of the mate
 *   SEQ                           the reads before, by position on the reference; where that explains little, samples
 *   QUAL                          runs; in a copy of a read, that read's; greedily where they do not come in runs, and
 *                                 from where reads turn out to have nothing in common
 *   long CIGARs, tags             greedily
 *
 * Anything else is matched greedily (deflate_greedy.c): qualities that go in small steps, with all around them, records
 * without qualities, those whose heads or tags decide, and the rest of a block whose reads turn out not to be
 * alike. */
#include "codec/deflate_greedy.h"
#include "codec/deflate_records.h"

enum {
    /* Records that another one is compared with. 4 instead of 8 are 4 % faster, 1.7 %
     * larger; 12 are 4 % slower, 0.6 % smaller. */
    N_BEFORE = 8,
    MANY_BEFORE = 16,             /* where every other one is of the other place (template order), SEQ tells nothing,
                                     or reads are short */
    TO_MATE_POS = 20,             /* bytes from reference and position to those of the mate */
    NAME_BITS = 10,
    /* Literals of a SEQ from which on it is looked for by samples. 16 instead of 10 are 0.3 %
     * larger on 10x reads, 1 % faster on whole genomes. */
    MANY_LITERALS = 10,
    /* Bytes of a CIGAR from which on it is matched greedily: two operations. */
    LONG_CIGAR = 8,
    TAG_BITS = 13,                /* 16 KiB; 12 are 0.2 % larger */
    TAG_STRIDE = 3,               /* 4 is 0.2 % larger, 1 % faster */
    QUAL_BITS = 14,               /* 32 KiB */
    QUAL_STRIDE = 3,              /* pairs of positions are 0.3 % smaller, 15 % slower */
    NO_QUAL = 0xff,
    SAMPLE_RECORDS = 4,           /* of so many records one is looked at for runs */
    /* SEQ bytes that count as explained at the beginning of a block. */
    FIRST_SEQ = 4000,
    /* After so many bytes it is seen whether fields suit the block, and again after SECOND_TRIAL: the first few records
     * do not show how qualities come that cost next to nothing. */
    TRIAL = 2 * SEGMENT, SECOND_TRIAL = 6 * SEGMENT,
    /* Unrelated reads without mates: in their trial one byte in so many of heads and names becomes a literal, or more.
     * HiSeq by coordinate has one in 3 or 4, by name one in 7. */
    MANY_HEAD_LITERALS = 5,
    LONG_READ = 300,              /* bases */
    SHORT_READ = 60,              /* bases; heads and names are most of such records */
    SHORT_MATCHES = 14,           /* mean length: reads that differ from each other in many places (bisulfite) */
    SHORT_IN_TURN = 16,           /* the same in template order, where SEQ is half explained */
    LONG_MATCHES = 32,
    /* One in so many pairs of qualities must be of the same value, where they do not come in runs, or their matches
     * are too short for a table of 5 bytes: HiSeq has one of 7 to 11, generated ones have one of 19. */
    NOISY_PAIRS = 13,
    /* As RUN_RATE, two in so many: HiSeq has 48 to 61 percent. RNA of 8 levels, between the two, gains nothing by
     * coordinate, and would be 1.0103 of libdeflate's level 1 by name. */
    NOISY_RATE = 5,
    HALF_FROM = 31, HALF_TO = 66, /* percent of SEQ */
    FEW_LITERALS = 9,             /* one byte in so many, */
    FEW_SEQ = 40,                 /* or of SEQ, where copies lie at one place */
    /* Tags are little but literals if more than one byte in so many is a literal of theirs: OQ of 40 levels has one in
     * 6, other tags have one in 11 and fewer. */
    TAG_LITERALS = 7,
    /* Heads and names, in percent of the bytes, from where on they decide: beside qualities of which less than one in
     * FEW_QUALS is a literal, where matches are no longer than FIELD_MATCHES; in template order, where SEQ is half
     * explained. Reads of 150 bases have 18 to 23, of 100 bases 29, of 75 bases 34. */
    HEAD_MUCH = 28, HEAD_MUCH_IN_TURN = 31,
    FEW_QUALS = 15,
    FIELD_MATCHES = 31,
    /* Qualities of 4 levels in long runs: less than one in so many is a literal. Real NovaSeq has one in 16 to 24. */
    CHEAP_QUALS = 26,
    TAGS_APART = 45,              /* bytes to a literal of tags: UMIs, barcodes, bisulfite have 20 to 30 */
    /* Heads beside such tags, in thousandths of the bytes: UMIs in names that tags repeat, 151 bases, have 220,
     * bisulfite reads of 101 bases without them 212. */
    HEAD_APART = 216,
    SEQ_LEFT = 5,                 /* bytes to a literal of SEQ: amplicons by name have 1.5 to 3 */
};
_Static_assert(TAG_STRIDE * INSERT <= FIRST && QUAL_STRIDE * INSERT <= FIRST, "insert_matched() does not go below 0");
_Static_assert(sizeof ((struct deflate_parse *)0)->tag_head == 2 << TAG_BITS, "positions are two bytes");
_Static_assert(sizeof ((struct deflate_parse *)0)->fast_head >= 2 << QUAL_BITS, "so they are here");

enum told { BYTES, RECORDS, SHORT, ALIKE, NOISY };

/* Is it whole records, and do their fields promise to be alike? Qualities come in runs, or do not (NOISY; SHORT: reads
 * below 60 bases): then unmapped reads would be 2 % larger, long ones too, and those that are mostly tags fail the
 * trial. */
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
    if (records < MIN_RECORDS)
        return BYTES;
    if (!runs && s.differ * NOISY_RATE < s.all * 2)
        return BYTES;
    if (quals * QUAL_RATE < p->n)
        return runs ? RECORDS : BYTES;
    if (!runs && quals < records * SHORT_READ)
        return SHORT;
    if (!runs && (quals > records * LONG_READ || tags > quals || unmapped * 2 > records))
        return BYTES;
    return runs ? ALIKE : NOISY;
}

/* Do qualities go in small steps? Looks at one of each half of each read, and at the one behind it. */
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

/* Can qualities that do not come in runs be matched apart from all else? Looks at one of each half of each read. */
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

/* Bytes of a field of the records in the trials, and how many of them became literals. */
struct outcome {
    uint32_t bytes, lits;
};

/* The state that a record is compared with. */
struct history {
    uint32_t record[MANY_BEFORE];                  /* where they begin, the last first */
    uint32_t to_cigar;                             /* bytes before the CIGAR of the last one */
    uint32_t tags;                                 /* where those of the last one begin */
    uint16_t name_end[1 << NAME_BITS];             /* by the hash of its last eight bytes: mates */
    struct reads reads;
    struct outcome head, qual, tag;
};

INLINE void match_greedily(struct deflate_parse *d, struct parse *p, uint32_t from, uint32_t to, const struct greedy *g)
{
    p->at = max_u32(p->at, max_u32(p->anchor, from));
    parse_greedy(d, p, min_u32(to, p->last), g, true);
}

/* The first records, and the mate of a pair in which it comes just before: what is the mate's place there is that of
 * this read here. */
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
        if (dist[k] > f->at)                       /* a shorter name in the first record */
            dist[k] = 1;
}

/* n: of so many records before. */
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

/* No qualities are matched with those of the record before, so that the match goes on into the tags. */
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

/* Adds a field that begins within the trials. *lits: literals before it, then behind it. A match may go back and take
 * some of them. */
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

/* Do heads and names decide, which cost more by fields? */
INLINE bool is_mostly_heads(const struct history *h, const struct deflate_parse *d, uint32_t bytes, bool half)
{
    if (h->head.bytes * 100 >= bytes * HEAD_MUCH_IN_TURN && half)
        return true;
    return h->head.bytes * 100 >= bytes * HEAD_MUCH && h->qual.lits * FEW_QUALS < h->qual.bytes
        && bytes - d->n_lits < FIELD_MATCHES * d->n_seqs;
}

/* Do fields cut what any bytes would have whole: snippets of SEQ, or copies of records? Or is SEQ half explained, as
 * that of bisulfite reads: whole genomes have 8 to 30 % of it left, unrelated reads 70 and more. */
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

/* Are more than n / of of the SEQ bytes of mapped reads literals? */
INLINE bool is_seq_left(const struct reads *h, uint32_t n, uint32_t of)
{
    return h->seq_lits * of > (h->seq_bytes - FIRST_SEQ) * n;
}

/* Have mapped reads nothing in common: low coverage, order of names? Bisulfite reads have one byte in two. */
INLINE bool are_unrelated(const struct reads *h) { return is_seq_left(h, 3, 4); }

/* Do unrelated reads whose qualities are not in runs have bases in common after all? Or do they come without mates, as
 * in a deep file by coordinate, where the reads that are alike lie far apart? Then fields are up to 5 % larger. */
INLINE bool is_known_from_afar(const struct history *h)
{
    return h->head.lits * MANY_HEAD_LITERALS > h->head.bytes || !is_seq_left(&h->reads, 12, 13);
}

/* Do fields not suit a block of which `bytes` were looked at, more than is_cut() has? Only where qualities cost next
 * to nothing can it be told, since all else decides there. Fields lose names and tags that a record shares with any
 * earlier one, and SEQ of which much is left though it is known. A twentieth of unrelated reads that is known is
 * enough: RNA by name. */
INLINE bool is_cut_later(const struct history *h, uint32_t bytes)
{
    bool apart = h->tag.lits * TAGS_APART > bytes;
    if (h->qual.lits * CHEAP_QUALS >= h->qual.bytes || h->tag.lits * TAG_LITERALS > bytes)
        return false;
    if (are_unrelated(&h->reads))
        return apart || !is_seq_left(&h->reads, 19, 20);
    return is_seq_left(&h->reads, 1, SEQ_LEFT) || (apart && h->head.bytes * 1000 > bytes * HEAD_APART);
}

/* Do fields not suit the block, as its records up to the one at [at, end) show? Then *rest says how all is matched. */
INLINE bool is_given_up(const struct deflate_parse *d, const struct parse *p, const struct history *h, uint32_t at,
                        uint32_t end, bool in_turn, bool noisy, enum greedy_bytes *rest)
{
    if (at < TRIAL && end >= TRIAL) {
        bool of_literals = h->tag.lits * TAG_LITERALS > end;
        bool of_heads = h->head.bytes * 100 >= HEAD_MUCH * end && are_unrelated(&h->reads);
        *rest = noisy ? GREEDY_ANY : of_literals || of_heads ? GREEDY_STEPS : GREEDY_HARD;
        return of_literals || is_cut(d, p, h, in_turn, noisy);
    }
    if (noisy || at >= SECOND_TRIAL || end < SECOND_TRIAL)
        return false;
    *rest = are_unrelated(&h->reads) || !is_seq_left(&h->reads, 1, SEQ_LEFT) ? GREEDY_HARD : GREEDY_STEPS;
    return is_cut_later(h, end);
}

INLINE enum greedy_bytes go_on(struct parse *p, enum greedy_bytes rest)
{
    p->at = max_u32(p->at, p->anchor);
    return rest;
}

static const struct effort few = {.n_reads = N_READS, .many_literals = MANY_LITERALS};
static const struct effort many = {.n_reads = MANY_READS, .many_literals = MANY_LITERALS};

/* Up to the last record, or to where fields turn out not to be alike. Returns what the rest is then. */
INLINE enum greedy_bytes parse_records(struct deflate_parse *d, struct parse *p, bool noisy, agree64_fn *agree)
{
    const struct greedy tags = {
        .head = d->tag_head, .factor = HASH_FACTOR(5), .bits = TAG_BITS, .stride = TAG_STRIDE, .far_of_4 = MAX_DIST + 1,
    };
    const struct greedy quals = {
        .head = d->fast_head, .factor = noisy ? HASH_FACTOR(6) : HASH_FACTOR(8), .bits = QUAL_BITS,
        .stride = QUAL_STRIDE, .far_of_4 = MAX_DIST + 1, .nearest = true, .ahead = noisy,
    };
    struct history h = {.reads.seq_bytes = FIRST_SEQ};
    struct fields f;
    enum greedy_bytes rest;
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
        if (is_given_up(d, p, &h, at, f.end, in_turn, noisy, &rest)) {
            begin_anew(d, p);
            return rest;
        }
        if (noisy && !alike && at < TRIAL && f.end >= TRIAL && is_known_from_afar(&h))
            return go_on(p, GREEDY_ANY);
    }
    return go_on(p, GREEDY_HARD);
}

/* parse_records() of qualities that are not in runs is a function of its own. gcc inlines less in a function that holds
 * it twice. */
typedef enum greedy_bytes noisy_fn(struct deflate_parse *d, struct parse *p);

static NOINLINE enum greedy_bytes noisy_older(struct deflate_parse *d, struct parse *p)
{
    return parse_records(d, p, true, agree64);
}
NEWER_AVX2 static NOINLINE enum greedy_bytes noisy_newer(struct deflate_parse *d, struct parse *p)
{
    return parse_records(d, p, true, agree64_avx2);
}

INLINE enum greedy_bytes parse_fields(struct deflate_parse *d, struct parse *p, agree64_fn *agree, noisy_fn *noisy)
{
    enum told told = look(p, agree);
    if (told == ALIKE)
        return parse_records(d, p, false, agree);
    if (told == NOISY)
        return is_noise_matched(p) ? noisy(d, p) : GREEDY_ANY;
    return told == SHORT ? GREEDY_STEPS : told == BYTES ? GREEDY_ANY : GREEDY_HARD;
}

static enum greedy_bytes parse_older(struct deflate_parse *d, struct parse *p)
{
    return parse_fields(d, p, agree64, noisy_older);
}
NEWER_AVX2 static enum greedy_bytes parse_newer(struct deflate_parse *d, struct parse *p)
{
    return parse_fields(d, p, agree64_avx2, noisy_newer);
}

void deflate_fast(struct deflate_parse *d, struct parse *p, bool newer)
{
    enum greedy_bytes rest = (newer ? parse_newer : parse_older)(d, p);
    if (rest == GREEDY_ANY && has_quals_in_steps(p))
        rest = GREEDY_STEPS;
    if (p->at < p->last)
        deflate_greedy(d, p, newer, rest);
}
