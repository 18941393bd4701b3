/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <htslib/sam.h>
#include <sys/mman.h>
#include "order/coordinate_key.h"
#include "order/key_room.h"
#include "order/minhash.h"

/* The behaviour is that of samtools 1.24, found by experiment; test/oracle_minhash.py checks it. */

/* XORed with every k-mer, so that poly-A is not the smallest of all. */
#define SCRAMBLE 0xdead7878beef7878u
/* Added to every hash, unless the hash is a place in an index. */
#define HASH_BASE ((uint64_t)1 << 30)
#define HASH_MASK (((uint64_t)1 << MINHASH_HASH_BITS) - 1)
#define NO_KMER UINT64_MAX       /* above every hash: a k-mer takes at most 62 bits */
/* All minimisers that begin at this base or later tie. */
enum { START_MAX = 65535 };
_Static_assert(START_MAX + MINHASH_KMER_MAX - 1 < 1 << MINHASH_OFFSET_BITS, "the key holds every offset");

/* The 4-bit bases =ACMGRSVTWYHKDBN as digits of a k-mer. All except A, C, G and T count as A, on the other strand too,
 * so that a turned read keeps its k-mers. */
static const uint8_t digit[16] = {0, 0, 1, 0, 2, 0, 0, 0, 3};
static const uint8_t other_digit[16] = {0, 3, 2, 0, 1};

/* Complements of the 4-bit bases as in samtools: Y stays Y, = becomes N. */
static const uint8_t complement[16] = {15, 8, 4, 12, 2, 10, 6, 14, 1, 9, 10, 13, 3, 11, 7, 15};

/* ---- the index: k-mer -> place in the FASTA ---- */

/* Hash table with open addressing and linear probing. NO_KMER marks a free slot. */
struct kmer_slot {
    uint64_t hash;
    uint64_t place;              /* first base of the k-mer; bases are counted through all sequences */
};

/* flag in a place: the k-mer occurs more than once, and this is its last place */
#define REPEATED ((uint64_t)1 << 60)
#define PLACE_MASK (REPEATED - 1)

struct kmer_index {
    struct kmer_slot *slots;     /* NULL: no index */
    uint8_t *filter;             /* one byte for each slot, see met() */
    int log2_slots;
    size_t n;
    uint64_t empty_place;  /* place of the last window too short for a k-mer, else 0; reads without k-mers get it */
};

enum { INDEX_LOG2_MIN = 12 };    /* the table begins with 2^12 slots */
/* The table is 3/8 to 3/4 full. If it were fuller, failed look-ups, which are the majority, would need long probes. */
#define INDEX_FULL(log2_slots) (((size_t)3 << (log2_slots)) / 4)

struct minhash {
    int kmer;
    int64_t window;
    bool both_strands, squash;
    uint64_t mask;               /* the 2 * kmer bits of a k-mer */
    /* other_digit[], shifted to its position in the k-mer of the reverse strand */
    uint64_t other[16];
    const char *fasta;           /* file named by -I; NULL: none */
    struct kmer_index index;     /* index of the FASTA file: empty before it is built, and after it is dropped */
};

static size_t index_bytes(int log2_slots)
{
    return (sizeof(struct kmer_slot) + 1) << log2_slots;
}

/* Makes an empty table. It requests huge pages; otherwise each look-up would cause a TLB miss besides its cache
 * miss. */
static int table_new(struct kmer_index *index, int log2_slots)
{
    size_t size = index_bytes(log2_slots), n = (size_t)1 << log2_slots;
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return -1;
    madvise(p, size, MADV_HUGEPAGE);
    index->slots = p;
    index->filter = (uint8_t *)(index->slots + n);
    index->log2_slots = log2_slots;
    memset(index->slots, 0xff, n * sizeof *index->slots);     /* every hash is NO_KMER */
    return 0;
}

static void table_free(struct kmer_index *index)
{
    if (index->slots)
        munmap(index->slots, index_bytes(index->log2_slots));
    index->slots = NULL;
}

/* Multiplicative hashing (Knuth 6.4). The upper bits of the product choose the slot; the next three
 * choose the bit in the filter byte of that slot. */
static inline uint64_t spread(uint64_t hash)
{
    return hash * 0x9e3779b97f4a7c15u;
}

static inline size_t home(const struct kmer_index *index, uint64_t hash)
{
    return spread(hash) >> (64 - index->log2_slots);
}

static inline unsigned filter_bit(const struct kmer_index *index, uint64_t hash)
{
    return 1u << (spread(hash) >> (64 - 3 - index->log2_slots) & 7);
}

/* Returns whether the index may have this k-mer: false for nine in ten of those that it does not have. That costs one
 * byte read and a branch that is easy to predict; a probe costs more. */
static inline bool met(const struct kmer_index *index, uint64_t hash)
{
    return index->filter[home(index, hash)] & filter_bit(index, hash);
}

/* Finds the slot that holds hash, or the free slot for it. */
static inline struct kmer_slot *find(const struct kmer_index *index, uint64_t hash)
{
    size_t mask = ((size_t)1 << index->log2_slots) - 1, i = home(index, hash);
    while (index->slots[i].hash != hash && index->slots[i].hash != NO_KMER)
        i = (i + 1) & mask;
    return &index->slots[i];
}

static void put(struct kmer_index *index, struct kmer_slot *free_slot, struct kmer_slot filled)
{
    *free_slot = filled;
    index->filter[home(index, filled.hash)] |= (uint8_t)filter_bit(index, filled.hash);
}

static int grow(struct kmer_index *index)
{
    struct kmer_index bigger = *index;
    if (table_new(&bigger, index->log2_slots + 1) != 0)
        return -1;
    const struct kmer_slot *end = index->slots + ((size_t)1 << index->log2_slots);
    for (const struct kmer_slot *s = index->slots; s < end; s++)
        if (s->hash != NO_KMER)
            put(&bigger, find(&bigger, s->hash), *s);
    table_free(index);
    *index = bigger;
    return 0;
}

static int add(struct kmer_index *index, uint64_t hash, uint64_t place)
{
    place &= PLACE_MASK;         /* the place of an empty window may be below 0 */
    if (hash == NO_KMER) {
        index->empty_place = place;
        return 0;
    }
    struct kmer_slot *s = find(index, hash);
    if (s->hash == hash) {
        s->place = place | REPEATED;
        return 0;
    }
    put(index, s, (struct kmer_slot){hash, place});
    return ++index->n > INDEX_FULL(index->log2_slots) ? grow(index) : 0;
}

/* ---- k-mers ---- */

/* A walk over the k-mers of the bases [at, end). With squash, the first base of each run of equal bases
 * stands for the run. */
struct kmer_cursor {
    const uint8_t *seq;          /* packed, two bases per byte */
    int64_t at, end;
    unsigned last;               /* the base before `at`; above 15: none */
    uint64_t forward, reverse;
};

/* The hashes of some consecutive k-mers: as many as the look-ups that may run at a time. */
enum { BATCH = 64 };
struct hash_batch {
    uint64_t forward[BATCH], reverse[BATCH];
    int64_t at[BATCH];           /* last base of the k-mer */
};

/* Consumes the base at the cursor. Returns false if it was squashed. */
static inline bool take(const struct minhash *m, struct kmer_cursor *c)
{
    unsigned base = c->seq[c->at >> 1] >> (c->at & 1 ? 0 : 4) & 15;
    c->at++;
    if (m->squash && base == c->last)
        return false;
    c->last = base;
    c->forward = c->forward << 2 | digit[base];
    c->reverse = c->reverse >> 2 | m->other[base];
    return true;
}

/* Places a cursor after all but the last base of the first k-mer. */
static struct kmer_cursor cursor_at(const struct minhash *m, const uint8_t *seq, int64_t start, int64_t end)
{
    struct kmer_cursor c = {.seq = seq, .at = start, .end = end, .last = UINT_MAX};
    for (int n = 0; n < m->kmer - 1 && c.at < c.end;)
        n += take(m, &c);
    return c;
}

/* Returns the number of the next k-mers of the walk, which it stores in the batch; 0 at the end. */
static int next_kmers(const struct minhash *m, struct kmer_cursor *cursor, struct hash_batch *b)
{
    struct kmer_cursor c = *cursor; /* a copy, so that it can be in registers */
    const uint64_t mask = m->mask, scramble = SCRAMBLE & mask;
    int n = 0;
    while (n < BATCH && c.at < c.end) {
        if (!take(m, &c))
            continue;
        b->forward[n] = (c.forward & mask) ^ scramble;
        b->reverse[n] = c.reverse ^ scramble;
        b->at[n++] = c.at - 1;
    }
    *cursor = c;
    return n;
}

struct minimiser {
    uint64_t hash;
    int64_t at;                  /* last base of the k-mer */
};

static const struct minimiser none = {NO_KMER, 0};

/* The smaller of the two; the first of equal ones. */
static inline struct minimiser smaller(struct minimiser best, uint64_t hash, int64_t at)
{
    return hash < best.hash ? (struct minimiser){hash, at} : best;
}

/* ---- building the index ---- */

/* Enters the minimiser of each window of the sequence, whose first base is base number `origin` of all. Windows
 * overlap: the next one begins right after the first base of this one's minimiser, but at least kmer bases after the
 * start of this one. The last one may be too short for any k-mer. Returns 0, or -1 with errno set. */
static int index_sequence(struct minhash *m, const uint8_t *seq, int64_t len, uint64_t origin)
{
    for (int64_t start = 0;;) {
        int64_t end = start + m->window < len ? start + m->window : len;
        struct minimiser best = {NO_KMER, start};
        struct hash_batch b;
        struct kmer_cursor c = cursor_at(m, seq, start, end);
        for (int n; (n = next_kmers(m, &c, &b)) > 0;)
            for (int i = 0; i < n; i++)
                best = smaller(best, b.forward[i], b.at[i]);
        int64_t first = best.at - (m->kmer - 1);
        if (add(&m->index, best.hash, origin + (uint64_t)first) != 0)
            return -1;
        if (end == len)
            return 0;
        start = start + m->kmer > first + 1 ? start + m->kmer : first + 1;
    }
}

static int index_records(struct minhash *m, samFile *in, sam_hdr_t *header, bam1_t *b)
{
    uint64_t origin = 0;
    int r;
    while ((r = sam_read1(in, header, b)) >= 0) {
        if (b->core.l_qseq < m->window)
            continue;            /* its bases do not count in later places */
        if (index_sequence(m, bam_get_seq(b), b->core.l_qseq, origin) != 0)
            return -1;
        origin += (uint64_t)b->core.l_qseq;
    }
    if (r < -1 && errno == 0)
        errno = EIO;
    return r < -1 ? -1 : 0;
}

static int index_sequences(struct minhash *m, const char *fasta)
{
    int result = -1;
    sam_hdr_t *header = NULL;
    bam1_t *b = NULL;
    errno = 0;
    samFile *in = sam_open(fasta, "r");
    if (!in)
        return -1;
    if (table_new(&m->index, INDEX_LOG2_MIN) == 0 && (header = sam_hdr_read(in)) && (b = bam_init1()))
        result = index_records(m, in, header, b);
    int cause = errno;
    bam_destroy1(b);
    sam_hdr_destroy(header);
    sam_close(in);
    errno = cause;
    return result;
}

/* Prints the same words as samtools. */
const char *minhash_build_index(struct minhash *m, bool tells)
{
    const char *cause = NULL;
    if (!m->fasta)
        return NULL;
    if (tells) {
        fputs("Building index ... ", stderr);
        fflush(stderr);
    }
    if (index_sequences(m, m->fasta) != 0)
        cause = errno ? strerror(errno) : "not a file of sequences";
    if (tells && cause)
        fprintf(stderr, "failed: %s: %s\n", m->fasta, cause);
    else if (tells)
        fputs("done\n", stderr);
    return cause;
}

void minhash_drop_index(struct minhash *m)
{
    table_free(&m->index);
}

/* ---- ranks ---- */

/* Returns the last base, in the turned read, of the k-mer that ends at base `at` of this read (with squash: of the k
 * bases that end at `at`). */
static int64_t turned(const struct minhash *m, int64_t at, int64_t len)
{
    return len - at + m->kmer - 2;
}

static void rank_by_hash(const struct minhash *m, const uint8_t *seq, int64_t len, struct minhash_rank *rank)
{
    struct minimiser forward = none, reverse = none;     /* `at` counts on the forward strand for both */
    struct hash_batch b;
    struct kmer_cursor c = cursor_at(m, seq, 0, len);
    for (int n; (n = next_kmers(m, &c, &b)) > 0;)
        for (int i = 0; i < n; i++) {
            forward = smaller(forward, b.forward[i], b.at[i]);
            reverse = smaller(reverse, b.reverse[i], b.at[i]);
        }
    rank->reverse = m->both_strands && reverse.hash < forward.hash;
    int64_t at = rank->reverse ? turned(m, reverse.at, len) : forward.at, at_most = START_MAX + m->kmer - 1;
    rank->hash = ((rank->reverse ? reverse.hash : forward.hash) + HASH_BASE) & HASH_MASK;
    rank->offset = (uint32_t)(at < at_most ? at : at_most);
}

/* The matches between the k-mers of one strand of a read and the index. */
struct matches {
    struct minimiser unique;     /* the smallest k-mer that the index has once */
    struct minimiser repeated;   /* the last k-mer that the index has more often, smallest or not */
    struct minimiser absent;     /* the smallest k-mer that the index does not have */
    uint64_t unique_place, repeated_place;
};

static inline void match(const struct kmer_index *index, uint64_t hash, int64_t at, struct matches *found)
{
    const struct kmer_slot *s = find(index, hash);
    if (s->hash == NO_KMER) {
        found->absent = smaller(found->absent, hash, at);
    } else if (s->place & REPEATED) {
        found->repeated = (struct minimiser){hash, at};
        found->repeated_place = s->place & PLACE_MASK;
    } else {
        found->unique = (struct minimiser){hash, at};
        found->unique_place = s->place;
    }
}

/* Looks up n k-mers, at most BATCH. Once it has found a k-mer that the index has once, only smaller ones matter. Three
 * passes, so that the cache misses overlap. */
static void look_up(const struct kmer_index *index, const uint64_t *hash, const int64_t *at, int n,
                    struct matches *found)
{
    int maybe[BATCH], n_maybe = 0;
    for (int i = 0; i < n; i++)
        if (hash[i] < found->unique.hash)
            __builtin_prefetch(&index->filter[home(index, hash[i])]);
    for (int i = 0; i < n; i++) {
        if (hash[i] >= found->unique.hash)
            continue;
        if (met(index, hash[i])) {
            __builtin_prefetch(&index->slots[home(index, hash[i])]);
            maybe[n_maybe++] = i;
        } else {
            found->absent = smaller(found->absent, hash[i], at[i]);
        }
    }
    for (int i = 0; i < n_maybe; i++)
        if (hash[maybe[i]] < found->unique.hash)
            match(index, hash[maybe[i]], at[maybe[i]], found);
}

struct choice {
    struct minimiser minimiser;
    uint64_t place;              /* in the FASTA; the hash if the k-mer is not there */
    bool found;
};

static struct choice choose(const struct kmer_index *index, const struct matches *found)
{
    if (found->unique.hash != NO_KMER)
        return (struct choice){found->unique, found->unique_place, true};
    if (found->repeated.hash != NO_KMER)
        return (struct choice){found->repeated, found->repeated_place, true};
    if (found->absent.hash != NO_KMER)
        return (struct choice){found->absent, found->absent.hash, false};
    return (struct choice){none, index->empty_place, false};
}

static void rank_by_index(const struct minhash *m, const uint8_t *seq, int64_t len, struct minhash_rank *rank)
{
    struct matches forward = {none, none, none, 0, 0}, reverse = forward;
    struct hash_batch b;
    struct kmer_cursor c = cursor_at(m, seq, 0, len);
    for (int n; (n = next_kmers(m, &c, &b)) > 0;) {
        look_up(&m->index, b.forward, b.at, n, &forward);
        if (m->both_strands)
            look_up(&m->index, b.reverse, b.at, n, &reverse);
    }
    struct choice f = choose(&m->index, &forward), r = choose(&m->index, &reverse);
    /* A strand that is in the index wins over one that is not. Otherwise the smaller hash wins. */
    rank->reverse = m->both_strands
        && (f.found != r.found ? r.found : r.minimiser.hash < f.minimiser.hash);
    struct choice best = rank->reverse ? r : f;
    int64_t at = rank->reverse ? turned(m, r.minimiser.at, len) : f.minimiser.at;
    rank->hash = (best.place - (uint64_t)at) & HASH_MASK;
    rank->offset = 0;
}

void minhash_rank(const struct minhash *m, const struct bam_record *r, struct minhash_rank *rank)
{
    const uint8_t *seq = bam_record_seq(r);
    int64_t len = load_le32(r->seq_len);
    if (m->fasta)
        rank_by_index(m, seq, len, rank);
    else
        rank_by_hash(m, seq, len, rank);
}

/* ---- turning a read ---- */

static inline uint8_t turn_pair(uint8_t pair)
{
    return (uint8_t)(complement[pair & 15] << 4 | complement[pair >> 4]);
}

static void turn_seq(uint8_t *seq, size_t len)
{
    size_t n = (len + 1) / 2;
    if (n == 0)
        return;
    uint8_t unused = seq[n - 1] & 15;
    for (size_t i = 0, j = n - 1; i <= j && j < n; i++, j--) {
        uint8_t head = turn_pair(seq[i]);
        seq[i] = turn_pair(seq[j]);
        seq[j] = head;
    }
    if (len % 2 == 0)
        return;
    /* The unused half byte is now in front: move everything by one base, and put it back. */
    for (size_t i = 0; i + 1 < n; i++)
        seq[i] = (uint8_t)(seq[i] << 4 | seq[i + 1] >> 4);
    seq[n - 1] = (uint8_t)(seq[n - 1] << 4 | unused);
}

static void turn_qual(uint8_t *qual, size_t len)
{
    for (size_t i = 0, j = len; i + 1 < j; i++) {
        uint8_t head = qual[i];
        qual[i] = qual[--j];
        qual[j] = head;
    }
}

void minhash_apply(struct bam_record *r, const struct minhash_rank *rank)
{
    if (rank->reverse) {
        size_t len = load_le32(r->seq_len);
        uint8_t *seq = (uint8_t *)r + bam_record_seq_at(r);
        turn_seq(seq, len);
        turn_qual(seq + (len + 1) / 2, len);
        store_le16(r->flag, bam_record_flag(r) ^ FLAG_REVERSE);
    }
    minhash_keep(r, rank);
}

void minhash_keep(struct bam_record *r, const struct minhash_rank *rank)
{
    store_le32(r->pos, (uint32_t)(rank->hash >> 31));
    store_le32(r->next_pos, (uint32_t)rank->hash & 0x7fffffffu);
    store_le32(r->tlen, rank->offset);
}

struct minhash_rank minhash_kept(const struct bam_record *r)
{
    return (struct minhash_rank){
        .hash = (uint64_t)load_le32(r->pos) << 31 | load_le32(r->next_pos),
        .offset = load_le32(r->tlen),
        .reverse = false,
    };
}

/* ---- keys ---- */

/* Without an index a hash has 2 * kmer bits, and one more because HASH_BASE was added. */
static bool offset_fits_key(const struct minhash *m)
{
    return !m->fasta && 2 * m->kmer + 1 + MINHASH_OFFSET_BITS + 1 <= 63;
}

bool minhash_decides(const struct minhash *m)
{
    return m->fasta || offset_fits_key(m);
}

/*   63  62                                  0
 *   0 | reference | position+1    | reverse |     placed (coordinate_key_far)
 *   1 | place in the FASTA, 62    | reverse |     index
 *   1 | hash, 45 | offset, 17     | reverse |     -K up to 22
 *   1 | hash, 62                  | 0       |     longer k-mers  */
uint64_t minhash_key(const struct minhash *m, const struct bam_record *r)
{
    if (!minhash_applies(r))
        return coordinate_key_far(r);
    struct minhash_rank rank = minhash_kept(r);
    uint64_t reverse = (bam_record_flag(r) & FLAG_REVERSE) != 0;
    uint64_t unplaced = (uint64_t)1 << 63;
    if (m->fasta)
        return unplaced | rank.hash << 1 | reverse;
    if (offset_fits_key(m))
        return unplaced | rank.hash << (MINHASH_OFFSET_BITS + 1) | (uint64_t)rank.offset << 1 | reverse;
    return unplaced | rank.hash << 1;
}

int minhash_compare(const struct bam_record *a, const struct bam_record *b)
{
    if (!minhash_applies(a) || !minhash_applies(b))
        return coordinate_key_compare(a, b);
    struct minhash_rank rank_a = minhash_kept(a), rank_b = minhash_kept(b);
    if (rank_a.hash != rank_b.hash)
        return key_compare(rank_a.hash, rank_b.hash);
    if (rank_a.offset != rank_b.offset)
        return key_compare(rank_a.offset, rank_b.offset);
    return key_compare(bam_record_flag(a) & FLAG_REVERSE, bam_record_flag(b) & FLAG_REVERSE);
}

/* ---- made and freed ---- */

struct minhash *minhash_new(const struct sort_order *order)
{
    struct minhash *m = calloc(1, sizeof *m);
    if (!m)
        return NULL;
    m->kmer = order->kmer < 1 ? 1 : order->kmer > MINHASH_KMER_MAX ? MINHASH_KMER_MAX : order->kmer;
    m->window = order->window;
    m->both_strands = !order->no_reverse;
    m->squash = order->squash;
    m->mask = ((uint64_t)1 << (2 * m->kmer)) - 1;
    for (int i = 0; i < 16; i++)
        m->other[i] = (uint64_t)other_digit[i] << (2 * (m->kmer - 1));
    m->fasta = order->index_fasta;
    return m;
}

void minhash_free(struct minhash *m)
{
    if (!m)
        return;
    table_free(&m->index);
    free(m);
}

size_t minhash_memory(const struct minhash *m)
{
    return m->index.slots ? index_bytes(m->index.log2_slots) : 0;
}
