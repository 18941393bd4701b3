/* SPDX-License-Identifier: MIT
 *
 * gen_bam: seeded test input, shaped like the output of `bwa mem` (or, with
 * --long, of a PacBio HiFi aligner). The same seed and options give the same
 * records on every machine: all randomness comes from the generator below and
 * is integer arithmetic, so neither libc nor libm has a say.
 *
 *   options --> genome (one byte per base) --> templates --> [heap] --> htslib
 *                                                 --sorted only ^
 *   --grow IN.bam: records of IN --> shuffled, renamed, shifted copies --> htslib
 */
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <htslib/hts.h>
#include <htslib/kstring.h>
#include <htslib/sam.h>

enum { N_HUMAN = 25, N_LANES = 4, MAX_ERR = 64 };

/* Shares of templates, in parts per million. */
enum {
    PPM_UNMAPPED   = 25000, /* neither mate placed; human WGS: 1-3 % */
    PPM_ORPHAN     = 20000, /* one mate unmapped, placed beside the other */
    PPM_DISCORDANT = 10000, /* mates on unrelated loci */
    PPM_SPLIT      = 31000, /* per read: a supplementary line follows */
    PPM_CLIP       = 40000, /* per read: soft clip at one end */
    PPM_N          = 2500   /* per error event: the base call is N */
};

struct options {
    int64_t records, size, genome;
    uint64_t seed;
    int refs, read_len, level, threads, jitter;
    int error_ppm, indel_pct;
    bool long_reads, mods, ties, sorted, full_qual;
    const char *out, *fmt, *grow, *fasta;
};

static void die(const char *what, const char *detail)
{
    fprintf(stderr, "gen_bam: %s%s%s\n", what, detail ? ": " : "",
            detail ? detail : "");
    exit(EXIT_FAILURE);
}

static void *xrealloc(void *p, size_t n)
{
    p = realloc(p, n ? n : 1);
    if (!p)
        die("out of memory", NULL);
    return p;
}

/* ---- random numbers: xoshiro256++, seeded by splitmix64 ---- */

struct rng { uint64_t s[4]; };

static inline uint64_t rotl(uint64_t x, int k)
{
    return x << k | x >> (64 - k);
}

static inline uint64_t rng_next(struct rng *r)
{
    uint64_t *s = r->s, out = rotl(s[0] + s[3], 23) + s[0], t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return out;
}

static uint64_t splitmix64(uint64_t *x)
{
    uint64_t z = *x += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* One stream per (seed, stream): template i is the same whatever came before. */
static void rng_seed(struct rng *r, uint64_t seed, uint64_t stream)
{
    uint64_t x = seed;
    x = splitmix64(&x) ^ stream;
    for (int i = 0; i < 4; i++)
        r->s[i] = splitmix64(&x);
}

static inline uint32_t rng_below(struct rng *r, uint32_t n)
{
    return (uint32_t) ((rng_next(r) >> 32) * n >> 32);
}

static int64_t rng_below64(struct rng *r, int64_t n)
{
    return n > 0 ? (int64_t) (rng_next(r) % (uint64_t) n) : 0;
}

static inline bool rng_chance(struct rng *r, uint32_t ppm)
{
    return rng_below(r, 1000000) < ppm;
}

/* Roughly exponential: -log2(u), read off the leading zeros and the 16 bits
 * behind the leading one (a chord per octave; its mean is 1.5, hence 2/3). */
static inline int64_t rng_exp(struct rng *r, uint64_t mean)
{
    uint64_t u = rng_next(r) | 1;
    int lz = __builtin_clzll(u);
    uint64_t mant = lz < 47 ? u << lz << 1 >> 48 : 0;
    uint64_t v = (uint64_t) (lz + 1) * 65536 - mant;
    return (int64_t) (mean * v / 98304);
}

/* Bell-shaped and bounded: the sum of four uniform 16-bit numbers. */
static int rng_bell(struct rng *r, int mean, int sd)
{
    uint64_t u = rng_next(r);
    int64_t sum = (int64_t) ((u & 0xffff) + (u >> 16 & 0xffff)
                             + (u >> 32 & 0xffff) + (u >> 48));
    return mean + (int) ((sum - 131070) * sd / 37837);
}

/* ---- genome ----
 *
 *   | chr1 | chr2 | ... | chrM | chrUn... | contaminant (not in the header) |
 *
 * One byte per base: bits 0-1 base, then flags. Unmapped reads come from the
 * contaminant at the end, so that they too overlap one another. */

enum {
    G_REPEAT = 4,   /* young repeat: aligners cannot tell its copies apart */
    G_SNP    = 8,   /* variant site, alternate base = base ^ (bits 4-5) */
    G_HOM    = 64   /* on both haplotypes */
};

struct ref { char name[24]; int64_t off, len; };

struct genome {
    uint8_t *base;
    int64_t len, tail;      /* mapped bases; contaminant bases behind them */
    int n;
    struct ref *ref;
};

/* GRCh38 lengths in kb, so that the references keep human proportions. */
static const int human_kb[N_HUMAN] = {
    248956, 242194, 198296, 190215, 181538, 170806, 159346, 145139, 138395,
    133797, 135087, 133275, 114364, 107044, 101991, 90338, 83257, 80373, 58618,
    64444, 46710, 50818, 156041, 57227, 17
};

static void genome_layout(struct genome *g, int n, int64_t total, int64_t min_len)
{
    int64_t sum = 0;
    g->n = n;
    g->ref = xrealloc(NULL, (size_t) n * sizeof *g->ref);
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < n; i++) {
            /* unplaced contigs: 30 to 179 kb */
            int64_t kb = i < N_HUMAN ? human_kb[i] : 179 - i % 150;
            struct ref *f = &g->ref[i];
            if (pass == 0) {
                sum += kb;
                continue;
            }
            f->len = (int64_t) ((double) total * (double) kb / (double) sum);
            if (f->len < min_len)
                f->len = min_len;
            if (f->len > INT32_MAX - 1)
                die("a reference would exceed 2^31-1; lower --genome or raise --refs", NULL);
            f->off = g->len;
            g->len += f->len;
            if (i >= N_HUMAN)
                snprintf(f->name, sizeof f->name, "chrUn_GB%06dv1", i);
            else if (i < 22)
                snprintf(f->name, sizeof f->name, "chr%d", i + 1);
            else
                snprintf(f->name, sizeof f->name, "chr%c", "XYM"[i - 22]);
        }
    g->tail = g->len / 64 + 2 * min_len;
}

/* Isochores: the GC share changes every 32 kb between 35 and 55 %. Three of
 * four CpG are mutated away, as in mammals. */
static void genome_background(struct genome *g, struct rng *r)
{
    int64_t size = g->len + g->tail;
    int prev = 0;
    for (int64_t i = 0; i < size;) {
        uint32_t gc = 90 + rng_below(r, 51);
        int64_t end = i + 32768 < size ? i + 32768 : size;
        while (i < end) {
            uint64_t v = rng_next(r);
            for (int k = 0; k < 6 && i < end; k++, v >>= 10, i++) {
                int bit = v >> 8 & 1;
                int b = (v & 255) < gc ? 1 + bit : 3 * bit;
                if (prev == 1 && b == 2 && (v >> 9 & 1))
                    b = 0;
                g->base[i] = (uint8_t) (prev = b);
            }
        }
    }
}

/* Writes one diverged copy of a repeat consensus over the background. */
static void genome_stamp(struct genome *g, struct rng *r, const uint8_t *cons,
                         int64_t n, bool young)
{
    int64_t at = rng_below64(r, g->len - n);
    bool rev = rng_next(r) >> 63;
    uint64_t gap = young ? 200 : 5 + rng_below(r, 12);
    int64_t next = rng_exp(r, gap);
    for (int64_t i = 0; i < n; i++) {
        int b = rev ? 3 - cons[n - 1 - i] : cons[i];
        if (i == next) {
            b = (b + 1 + (int) rng_below(r, 3)) & 3;
            next += 1 + rng_exp(r, gap);
        }
        g->base[at + i] = (uint8_t) (b | (young ? G_REPEAT : 0));
    }
}

/* About 40 % of the genome: SINE-like (300 b), 5'-truncated LINE-like (to 6 kb)
 * and short tandem repeats. Half of the length drawn with overlaps covers 39 %. */
static void genome_repeats(struct genome *g, struct rng *r)
{
    enum { SINES = 16, SINE_LEN = 300, LINES = 4, LINE_LEN = 6000 };
    uint8_t cons[SINES * SINE_LEN + LINES * LINE_LEN], str[60];
    for (size_t i = 0; i < sizeof cons; i++)
        cons[i] = (uint8_t) (rng_next(r) >> 62);
    for (int i = 1; i <= SINES; i++)            /* poly-A tails */
        memset(cons + i * SINE_LEN - 25, 0, 25);

    for (int64_t left = g->len / 2; left > 0;) {
        uint32_t kind = rng_below(r, 100);
        bool young = rng_below(r, 100) < 12;
        const uint8_t *c = cons;
        int64_t n = SINE_LEN;
        if (kind < 75) {
            c += rng_below(r, SINES) * SINE_LEN;
        } else if (kind < 90) {
            n = 500 + rng_below(r, LINE_LEN - 500);
            c += SINES * SINE_LEN + (rng_below(r, LINES) + 1) * LINE_LEN - n;
        } else {
            int unit = 1 + (int) rng_below(r, 6);
            n = 15 + rng_below(r, sizeof str - 15);
            for (int i = 0; i < n; i++)
                str[i] = i < unit ? rng_next(r) >> 62 : str[i - unit];
            c = str;
        }
        if (n < g->len / 2)
            genome_stamp(g, r, c, n, young);
        left -= n;
    }
}

static void genome_build(struct genome *g, uint64_t seed)
{
    struct rng r;
    rng_seed(&r, seed, UINT64_MAX);
    g->base = xrealloc(NULL, (size_t) (g->len + g->tail));
    genome_background(g, &r);
    genome_repeats(g, &r);
    /* one variant site per kilobase, a third of them homozygous */
    for (int64_t i = rng_exp(&r, 1000); i < g->len; i += 1 + rng_exp(&r, 1000)) {
        uint32_t v = rng_below(&r, 9);
        g->base[i] |= (uint8_t) (G_SNP | (1 + v / 3) << 4 | (v % 3 ? 0 : G_HOM));
    }
}

/* The references as FASTA, for CRAM, calmd and sort -I. */
static void genome_write(const struct genome *g, const char *path)
{
    enum { LINE = 60 };
    FILE *fp = fopen(path, "w");
    if (!fp)
        die("cannot open for writing", path);
    for (int i = 0; i < g->n; i++) {
        const struct ref *f = &g->ref[i];
        char line[LINE + 1];
        fprintf(fp, ">%s\n", f->name);
        for (int64_t at = 0; at < f->len; at += LINE) {
            int n = f->len - at < LINE ? (int) (f->len - at) : LINE;
            for (int k = 0; k < n; k++)
                line[k] = "ACGT"[g->base[f->off + at + k] & 3];
            line[n] = '\n';
            fwrite(line, 1, (size_t) n + 1, fp);
        }
    }
    if (ferror(fp) || fclose(fp))
        die("write failed", path);
}

/* The reference that holds genome offset x. */
static int genome_find(const struct genome *g, int64_t x)
{
    int lo = 0, hi = g->n - 1;
    while (lo < hi) {
        int mid = (lo + hi + 1) / 2;
        if (g->ref[mid].off <= x)
            lo = mid;
        else
            hi = mid - 1;
    }
    return lo;
}

/* ---- generator state ---- */

struct locus { int tid; int64_t pos; };

/* One alignment of one read (or of a piece of it). */
struct aln {
    struct locus at;
    bool rev;
    int mapq, nm, score, sub, match;
    int64_t span;               /* reference bases covered */
    uint32_t *cig;
    int n_cig, m_cig;
    kstring_t md;
};

/* One read: bases and qualities lie as in BAM, in reference direction. */
struct mate {
    int len, n_err, err[MAX_ERR];   /* err: miscalled bases, for the qualities */
    bool mapped, split;
    char *base;
    uint8_t *qual;
    struct aln prim, supp;
    char *supp_base;
    uint8_t *supp_qual;
    int supp_len;
};

/* Walks a NovaSeq flow cell: lane, tile, then rows of clusters. The order of
 * names is almost sorted in parts, as it is in FASTQ. */
struct namer {
    struct rng rng;
    int run, lane, tile, x, y, used, per_tile, row_step;
    kstring_t name, rg;
};

struct pending { uint64_t key, seq; bam1_t *rec; };

struct out {
    samFile *fp;
    sam_hdr_t *hdr;
    bool dry;                       /* count only */
    int64_t records, bytes;         /* bytes as in uncompressed BAM */
    uint64_t seq;
    struct pending *heap;           /* --sorted: what may not be written yet */
    size_t n_heap, m_heap;
};

struct gen {
    const struct options *opt;
    struct genome genome;
    struct rng rng;
    struct namer namer;
    struct out out;
    struct mate m[2];
    bam1_t *rec;
    kstring_t text, ml;
    int64_t max_span, max_len;
    bool hap;                       /* haplotype of this template */
    int64_t templates, done;        /* planned; made */
    int64_t cursor;                 /* --sorted: genome offset, 1/256 bases */
};

/* ---- output, with a heap that puts mates in order for --sorted ---- */

static uint64_t coord_key(int tid, int64_t pos, bool rev)
{
    return (uint64_t) (uint32_t) tid << 33 | (uint64_t) (pos + 1) << 1 | rev;
}

static bool pending_before(const struct pending *a, const struct pending *b)
{
    return a->key != b->key ? a->key < b->key : a->seq < b->seq;
}

static void out_write(struct out *o, const bam1_t *rec)
{
    if (sam_write1(o->fp, o->hdr, rec) < 0)
        die("write failed", NULL);
}

static void out_push(struct out *o, const bam1_t *rec)
{
    struct pending p = {
        coord_key(rec->core.tid, rec->core.pos, bam_is_rev(rec)), o->seq++,
        bam_dup1(rec)
    };
    if (!p.rec)
        die("out of memory", NULL);
    if (o->n_heap == o->m_heap) {
        o->m_heap = o->m_heap ? o->m_heap * 2 : 1024;
        o->heap = xrealloc(o->heap, o->m_heap * sizeof *o->heap);
    }
    size_t i = o->n_heap++;
    for (; i && pending_before(&p, &o->heap[(i - 1) / 2]); i = (i - 1) / 2)
        o->heap[i] = o->heap[(i - 1) / 2];
    o->heap[i] = p;
}

/* Writes all pending records whose key is at most limit. */
static void out_drain(struct out *o, uint64_t limit)
{
    while (o->n_heap && o->heap[0].key <= limit) {
        out_write(o, o->heap[0].rec);
        bam_destroy1(o->heap[0].rec);
        struct pending last = o->heap[--o->n_heap];
        size_t i = 0, c;
        while ((c = 2 * i + 1) < o->n_heap) {
            if (c + 1 < o->n_heap && pending_before(&o->heap[c + 1], &o->heap[c]))
                c++;
            if (!pending_before(&o->heap[c], &last))
                break;
            o->heap[i] = o->heap[c];
            i = c;
        }
        o->heap[i] = last;
    }
}

static void out_record(struct out *o, const bam1_t *rec, bool sorted)
{
    o->records++;
    o->bytes += 36 + rec->l_data - rec->core.l_extranul;
    if (o->dry)
        return;
    if (sorted)
        out_push(o, rec);
    else
        out_write(o, rec);
}

static void out_open(struct out *o, const struct options *opt)
{
    char mode[16];
    if (!strcmp(opt->fmt, "sam"))
        snprintf(mode, sizeof mode, "w");
    else if (!strcmp(opt->fmt, "ubam"))
        snprintf(mode, sizeof mode, "wb0");
    else if (opt->level >= 0)
        snprintf(mode, sizeof mode, "wb%d", opt->level);
    else
        snprintf(mode, sizeof mode, "wb");
    o->fp = sam_open(opt->out, mode);
    if (!o->fp)
        die("cannot open for writing", opt->out);
    if (opt->threads > 1)
        hts_set_threads(o->fp, opt->threads);
    if (sam_hdr_write(o->fp, o->hdr) < 0)
        die("cannot write header", opt->out);
}

static void out_close(struct out *o)
{
    if (sam_close(o->fp) < 0)
        die("error on closing the output", NULL);
    sam_hdr_destroy(o->hdr);
    free(o->heap);
}

/* ---- names ---- */

static void namer_illumina(struct namer *n)
{
    if (n->used++ == n->per_tile) {
        n->used = 1;
        n->x = n->y = 1000;
        if (++n->lane > N_LANES) {
            n->lane = 1;
            if (++n->tile == 936) {     /* 2 surfaces x 6 swaths x 78 tiles */
                n->tile = 0;
                n->run++;
            }
        }
    }
    n->x += 1 + (int) rng_below(&n->rng, 1300);
    if (n->x > 32767) {
        n->x = 1000 + (int) rng_below(&n->rng, 100);
        n->y += 1 + (int) rng_below(&n->rng, (uint32_t) n->row_step);
    }
    int t = n->tile;
    ks_clear(&n->name);
    kputs("A00297:", &n->name);
    kputw(n->run, &n->name);
    kputs(":HT275DSXX:", &n->name);
    kputw(n->lane, &n->name);
    kputc(':', &n->name);
    kputw((1 + t / 468) * 1000 + (1 + t / 78 % 6) * 100 + t % 78 + 1, &n->name);
    kputc(':', &n->name);
    kputw(n->x, &n->name);
    kputc(':', &n->name);
    kputw(n->y, &n->name);
    ks_clear(&n->rg);
    kputs("HT275DSXX.", &n->rg);
    kputw(n->lane, &n->rg);
}

static void namer_pacbio(struct namer *n)
{
    n->x += 1 + (int) rng_below(&n->rng, 60);
    ks_clear(&n->name);
    ksprintf(&n->name, "m64011_190830_220126/%d/ccs", n->x);
    ks_clear(&n->rg);
    kputs("m64011.1", &n->rg);
}

static void namer_next(struct gen *g)
{
    if (g->opt->long_reads)
        namer_pacbio(&g->namer);
    else
        namer_illumina(&g->namer);
}

static void namer_reset(struct gen *g)
{
    struct namer *n = &g->namer;
    int64_t per_tile = g->templates / 200;
    rng_seed(&n->rng, g->opt->seed, UINT64_MAX - 1);
    n->run = 158;
    n->lane = 1;
    n->tile = n->used = 0;
    n->x = n->y = 1000;
    /* so that even a small file spans lanes and tiles */
    n->per_tile = per_tile < 64 ? 64 : per_tile > 800000 ? 800000 : (int) per_tile;
    /* some 49 clusters a row, the rows spread over the whole height of a tile */
    n->row_step = 2 * 36000 / (n->per_tile / 49 + 1);
}

/* ---- qualities, in the order of sequencing ---- */

/* NovaSeq: long runs of 37, broken by short dips that come closer together
 * towards the end and in poor reads. */
static void qual_binned(struct rng *r, uint8_t *q, int len)
{
    uint32_t class = rng_below(r, 100);
    int64_t gap = class < 50 ? 90 : class < 85 ? 21 : 8;
    memset(q, 37, (size_t) len);
    for (int64_t i = rng_exp(r, (uint64_t) gap); i < len;) {
        uint64_t u = rng_next(r);
        uint8_t v = (u & 127) < 80 ? 23 : (u & 127) < 125 ? 12 : 2;
        for (int n = 1 + !(u >> 8 & 3) + !(u >> 10 & 7); n-- && i < len;)
            q[i++] = v;
        i += 1 + rng_exp(r, (uint64_t) (gap - gap * i / (2 * len)));
    }
}

/* HiSeq with all its levels (2..41): a slowly falling ceiling; a base keeps its
 * predecessor's value or draws a new one below the ceiling. */
static void qual_full(struct rng *r, uint8_t *q, int len, bool second)
{
    static const uint8_t drop[64] = {
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3,
        4, 4, 4, 5, 5, 6, 6, 7, 8, 9, 10, 11, 12, 14, 16, 18, 21, 25, 29, 35
    };
    uint32_t class = rng_below(r, 100);
    int poor = class < 70 ? 0 : class < 92 ? 3 : 9;
    int prev = 31;
    uint64_t u = 0;
    for (int i = 0; i < len; i++, u >>= 16) {
        if (i % 4 == 0)
            u = rng_next(r);
        int top = i < 5 ? 34 : i < 12 ? 39 : 41;
        top -= poor + (int) ((int64_t) i * i * (second ? 10 : 7) / len / len);
        if ((u & 255) >= 120) {
            prev = top - drop[u >> 8 & 63];
            if (prev < 2)
                prev = 2;
        } else if (prev > top) {
            prev = top;
        }
        q[i] = (uint8_t) prev;
    }
}

/* HiFi: mostly the maximum; the binned levels are those of Revio. */
static void qual_hifi(struct rng *r, uint8_t *q, int len, bool full)
{
    static const uint8_t level[8] = { 3, 10, 17, 22, 27, 35, 35, 27 };
    memset(q, full ? 93 : 40, (size_t) len);
    uint64_t gap = 8 + rng_below(r, 40);
    for (int64_t i = rng_exp(r, gap); i < len; i += 1 + rng_exp(r, gap)) {
        uint64_t u = rng_next(r);
        uint8_t v = full ? (uint8_t) (10 + u % 83) : level[u & 7];
        for (int n = 1 + (int) (u >> 32 & 1); n-- && i < len; i++)
            q[i] = v;
    }
}

static void reverse_qual(uint8_t *q, int len)
{
    for (int i = 0, j = len - 1; i < j; i++, j--) {
        uint8_t t = q[i];
        q[i] = q[j];
        q[j] = t;
    }
}

static void make_qual(struct gen *g, struct mate *m, bool rev, bool second)
{
    struct rng *r = &g->rng;
    if (g->opt->long_reads)
        qual_hifi(r, m->qual, m->len, g->opt->full_qual);
    else if (g->opt->full_qual)
        qual_full(r, m->qual, m->len, second);
    else
        qual_binned(r, m->qual, m->len);
    if (rev)
        reverse_qual(m->qual, m->len);
    /* most wrong bases know that they are wrong */
    for (int i = 0; i < m->n_err; i++)
        if (rng_next(r) & 3)
            m->qual[m->err[i]] = g->opt->full_qual ? (uint8_t) (2 + rng_below(r, 18)) : 12;
    for (char *n = m->base; (n = memchr(n, 'N', (size_t) (m->base + m->len - n)));)
        m->qual[n++ - m->base] = 2;
}

/* ---- alignments ---- */

static void aln_push(struct aln *a, int64_t n, int op)
{
    if (n <= 0)
        return;
    if (a->n_cig == a->m_cig) {
        a->m_cig = a->m_cig ? a->m_cig * 2 : 16;
        a->cig = xrealloc(a->cig, (size_t) a->m_cig * sizeof *a->cig);
    }
    a->cig[a->n_cig++] = bam_cigar_gen((uint32_t) n, (uint32_t) op);
}

static void aln_start(struct aln *a, struct locus at, bool rev)
{
    a->at = at;
    a->rev = rev;
    a->nm = a->score = a->sub = a->mapq = a->match = a->n_cig = 0;
    a->span = 0;
    ks_clear(&a->md);
}

/* A pass over the reference: the read's cursor, and what is not yet in CIGAR/MD. */
struct walk {
    const uint8_t *ref;
    int64_t r, ref_left;        /* ref_left: bases a deletion may consume */
    int q, qlen, run, md_run;
    char *out;
};

static void walk_mismatch(struct walk *w, struct aln *a, char call)
{
    kputw(w->md_run, &a->md);
    kputc("ACGT"[w->ref[w->r] & 3], &a->md);
    w->md_run = 0;
    w->out[w->q++] = call;
    w->r++;
    w->run++;
    a->nm++;
    a->score -= 4;
}

static void walk_copy(struct walk *w, struct aln *a, int n, bool hap)
{
    for (; n > 0; n--) {
        uint8_t c = w->ref[w->r];
        if ((c & G_SNP) && (hap || (c & G_HOM))) {
            walk_mismatch(w, a, "ACGT"[(c ^ c >> 4) & 3]);
            continue;
        }
        w->out[w->q++] = "ACGT"[c & 3];
        w->r++;
        w->run++;
        w->md_run++;
        a->score++;
    }
}

/* An insertion or deletion of 1 to 8 bases (mostly 1); false if it does not fit.
 * Ten bases at either end stay clear: aligners clip there instead. */
static bool walk_indel(struct walk *w, struct aln *a, struct rng *r)
{
    uint64_t u = rng_next(r);
    int n = u & 3 ? 1 : 1 + (int) (u >> 2 & 7);
    if (w->run < 10 || w->q + n > w->qlen - 10)
        return false;
    bool del = u >> 63;
    if (del && w->ref_left < n)
        return false;
    aln_push(a, w->run, BAM_CMATCH);
    aln_push(a, n, del ? BAM_CDEL : BAM_CINS);
    w->run = 0;
    if (del) {
        kputw(w->md_run, &a->md);
        kputc('^', &a->md);
        for (int i = 0; i < n; i++)
            kputc("ACGT"[w->ref[w->r++] & 3], &a->md);
        w->md_run = 0;
        w->ref_left -= n;
    } else {
        for (int i = 0; i < n; i++, w->q++)
            w->out[w->q] = u >> (16 + i) & 1 ? w->out[w->q - 1] : "ACGT"[u >> (32 + 2 * i) & 3];
    }
    a->nm += n;
    a->score -= 6 + n;
    return true;
}

/* Reads qlen bases from the genome at a->at into out and appends the CIGAR, MD
 * and scores. Miscalled positions go to m->err (m may be NULL). */
static void aln_walk(struct gen *g, struct aln *a, char *out, int qlen, struct mate *m)
{
    const struct ref *f = &g->genome.ref[a->at.tid];
    struct walk w = {
        .ref = g->genome.base + f->off, .r = a->at.pos,
        .ref_left = f->len - a->at.pos - qlen, .qlen = qlen, .out = out
    };
    struct rng *r = &g->rng;
    const uint64_t gap = 1000000 / (uint64_t) g->opt->error_ppm;
    for (;;) {
        int64_t n = rng_exp(r, gap);
        walk_copy(&w, a, n < qlen - w.q ? (int) n : qlen - w.q, g->hap);
        if (w.q >= qlen)
            break;
        if ((int) rng_below(r, 100) < g->opt->indel_pct && walk_indel(&w, a, r))
            continue;
        if (m && m->n_err < MAX_ERR)
            m->err[m->n_err++] = (int) (out - m->base) + w.q;
        int b = w.ref[w.r] & 3;
        walk_mismatch(&w, a, rng_chance(r, PPM_N) ? 'N' : "ACGT"[(b + 1 + (int) rng_below(r, 3)) & 3]);
    }
    aln_push(a, w.run, BAM_CMATCH);
    kputw(w.md_run, &a->md);
    a->span = w.r - a->at.pos;
    if (a->score < 0)
        a->score = 0;
}

/* Mapping quality and runner-up score: what lies in a young repeat has rivals. */
static void aln_score(struct gen *g, struct aln *a)
{
    const struct ref *f = &g->genome.ref[a->at.tid];
    struct rng *r = &g->rng;
    uint32_t p = rng_below(r, 100);
    if (g->genome.base[f->off + a->at.pos + a->span / 2] & G_REPEAT) {
        int close = (int) rng_below(r, 12);
        a->sub = a->score > close ? a->score - close : 0;
        a->mapq = p < 45 ? 0 : close * 4 + (int) (p & 3);
        if (p < 45)
            a->sub = a->score;
    } else {
        a->mapq = p < 94 ? 60 : 20 + (int) rng_below(r, 40);
        a->sub = p & 1 ? 0 : 19 + (int) rng_below(r, 30);
    }
}

/* Bases that belong to no alignment: the adapter, or another place's sequence. */
static void fill_foreign(struct gen *g, char *out, int n, bool adapter)
{
    static const char truseq[] = "AGATCGGAAGAGCACACGTCTGAACTCCAGTCACATCACGATCTCGTATG";
    const struct genome *gn = &g->genome;
    const uint8_t *from = gn->base + gn->len + rng_below64(&g->rng, gn->tail - n);
    for (int i = 0; i < n; i++)
        out[i] = adapter ? truseq[i % (int) (sizeof truseq - 1)] : "ACGT"[from[i] & 3];
}

static void mate_reserve(struct mate *m, int64_t cap)
{
    m->base = xrealloc(m->base, (size_t) cap);
    m->qual = xrealloc(m->qual, (size_t) cap);
    m->supp_base = xrealloc(m->supp_base, (size_t) cap);
    m->supp_qual = xrealloc(m->supp_qual, (size_t) cap);
}

static void mate_unmapped(struct gen *g, struct mate *m, int len)
{
    m->len = len;
    m->mapped = m->split = false;
    m->n_err = 0;
    fill_foreign(g, m->base, len, false);
}

/* A read with head and tail bases outside its alignment. */
static void mate_map(struct gen *g, struct mate *m, int len, struct locus at,
                     bool rev, int head, int tail, bool adapter)
{
    m->len = len;
    m->mapped = true;
    m->split = false;
    m->n_err = 0;
    aln_start(&m->prim, at, rev);
    aln_push(&m->prim, head, BAM_CSOFT_CLIP);
    if (head)
        fill_foreign(g, m->base, head, adapter);
    aln_walk(g, &m->prim, m->base + head, len - head - tail, m);
    aln_push(&m->prim, tail, BAM_CSOFT_CLIP);
    if (tail)
        fill_foreign(g, m->base + len - tail, tail, adapter);
    aln_score(g, &m->prim);
}

static char complement(char c)
{
    return c == 'A' ? 'T' : c == 'C' ? 'G' : c == 'G' ? 'C' : c == 'T' ? 'A' : 'N';
}

/* Gives the clipped piece of a read (n bases from off) an alignment of its own:
 * a supplementary line, hard clipped, on either strand. */
static void mate_split(struct gen *g, struct mate *m, int off, int n, struct locus at)
{
    struct aln *s = &m->supp;
    bool flip = rng_next(&g->rng) >> 63;
    int head = off, tail = m->len - off - n;
    aln_start(s, at, m->prim.rev ^ flip);
    aln_push(s, flip ? tail : head, BAM_CHARD_CLIP);
    aln_walk(g, s, m->supp_base, n, NULL);
    aln_push(s, flip ? head : tail, BAM_CHARD_CLIP);
    aln_score(g, s);
    for (int i = 0; i < n; i++)
        m->base[off + i] = flip ? complement(m->supp_base[n - 1 - i]) : m->supp_base[i];
    m->supp_len = n;
    m->split = true;
}

/* After the qualities: the supplementary line shows its piece of them. */
static void mate_split_qual(struct mate *m)
{
    if (!m->split)
        return;
    bool clip_first = bam_cigar_op(m->prim.cig[0]) == BAM_CSOFT_CLIP;
    memcpy(m->supp_qual, m->qual + (clip_first ? 0 : m->len - m->supp_len),
           (size_t) m->supp_len);
    if (m->prim.rev != m->supp.rev)
        reverse_qual(m->supp_qual, m->supp_len);
}

/* ---- records ---- */

static void aux_tag(bam1_t *b, const char *tag, char type)
{
    uint8_t *p = b->data + b->l_data;
    p[0] = (uint8_t) tag[0];
    p[1] = (uint8_t) tag[1];
    p[2] = (uint8_t) type;
    b->l_data += 3;
}

/* Integers take the smallest type, as htslib stores those it parses from SAM. */
static void aux_int(bam1_t *b, const char *tag, uint32_t v)
{
    int n = v < 256 ? 1 : v < 65536 ? 2 : 4;
    aux_tag(b, tag, n == 1 ? 'C' : n == 2 ? 'S' : 'I');
    for (int i = 0; i < n; i++)
        b->data[b->l_data++] = (uint8_t) (v >> 8 * i);
}

static void aux_str(bam1_t *b, const char *tag, const char *s, size_t len)
{
    aux_tag(b, tag, 'Z');
    memcpy(b->data + b->l_data, s, len);
    b->data[b->l_data + (int) len] = '\0';
    b->l_data += (int) len + 1;
}

static void put_cigar(kstring_t *s, const struct aln *a, bool hard_as_soft)
{
    for (int i = 0; i < a->n_cig; i++) {
        char c = bam_cigar_opchr(a->cig[i]);
        kputw((int) bam_cigar_oplen(a->cig[i]), s);
        kputc(hard_as_soft && c == 'H' ? 'S' : c, s);
    }
}

/* SA:Z:rname,pos,strand,CIGAR,mapQ,NM; */
static void put_sa(kstring_t *s, const struct gen *g, const struct aln *a)
{
    kputs(g->genome.ref[a->at.tid].name, s);
    kputc(',', s);
    kputll(a->at.pos + 1, s);
    kputs(a->rev ? ",-," : ",+,", s);
    put_cigar(s, a, true);
    kputc(',', s);
    kputw(a->mapq, s);
    kputc(',', s);
    kputw(a->nm, s);
    kputc(';', s);
}

static int64_t genome_any(struct gen *g, int64_t from)
{
    return from + rng_below64(&g->rng, g->genome.len - from);
}

/* Genome offset to a place where a fragment fits. Monotone, so --sorted may
 * rely on it; with --ties the genome has 64 such places. */
static struct locus locus_at(struct gen *g, int64_t x)
{
    if (g->opt->ties)
        x -= x % (g->genome.len / 64 + 1);
    int tid = genome_find(&g->genome, x);
    const struct ref *f = &g->genome.ref[tid];
    return (struct locus) { tid, (x - f->off) * (f->len - g->max_span) / f->len };
}

/* XA:Z:rname,strand pos,CIGAR,NM; for 1 to 3 rival places */
static void put_xa(kstring_t *s, struct gen *g, const struct aln *a)
{
    for (int n = 1 + (int) rng_below(&g->rng, 3); n--;) {
        struct locus l = locus_at(g, genome_any(g, 0));
        kputs(g->genome.ref[l.tid].name, s);
        kputs(rng_next(&g->rng) >> 63 ? ",+" : ",-", s);
        kputll(l.pos + 1, s);
        kputc(',', s);
        put_cigar(s, a, true);
        kputc(',', s);
        kputw(a->nm + (int) rng_below(&g->rng, 3), s);
        kputc(';', s);
    }
}

/* MM/ML: 5mC calls at every CpG, counted along the original strand. */
static void aux_mods(struct gen *g, bam1_t *b, const struct mate *m, bool rev)
{
    int skip = 0;
    ks_clear(&g->text);
    ks_clear(&g->ml);
    kputs("C+m", &g->text);
    for (int k = 0; k + 1 < m->len; k++) {
        int i = rev ? m->len - 1 - k : k;
        if (m->base[i] != (rev ? 'G' : 'C'))
            continue;
        if (m->base[rev ? i - 1 : i + 1] != (rev ? 'C' : 'G')) {
            skip++;
            continue;
        }
        uint64_t u = rng_next(&g->rng);
        kputc(',', &g->text);
        kputw(skip, &g->text);
        kputc((u & 3 ? 255 - (int) (u >> 8 & 31) : (int) (u >> 8 & 63)), &g->ml);
        skip = 0;
    }
    kputc(';', &g->text);
    aux_str(b, "MM", g->text.s, g->text.l);
    aux_tag(b, "ML", 'B');
    b->data[b->l_data++] = 'C';
    for (int i = 0; i < 4; i++)
        b->data[b->l_data++] = (uint8_t) (g->ml.l >> 8 * i);
    if (g->ml.l)
        memcpy(b->data + b->l_data, g->ml.s, g->ml.l);
    b->l_data += (int) g->ml.l;
}

/* What the lines of one read have in common, and which of them is written. */
struct line {
    const struct mate *m, *mate;    /* mate: NULL if the read is not paired */
    bool supp;
    int flag;
    struct locus at, next;
    int64_t tlen;
};

/* Tags in the order of bwa mem: NM MD MC AS XS RG SA XA. */
static void emit_tags(struct gen *g, bam1_t *b, const struct line *l, const struct aln *a)
{
    if (a) {
        aux_int(b, "NM", (uint32_t) a->nm);
        aux_str(b, "MD", a->md.s, a->md.l);
    }
    if (l->mate && l->mate->mapped) {
        ks_clear(&g->text);
        put_cigar(&g->text, &l->mate->prim, false);
        aux_str(b, "MC", g->text.s, g->text.l);
    }
    aux_int(b, "AS", a ? (uint32_t) a->score : 0);
    aux_int(b, "XS", a ? (uint32_t) a->sub : 0);
    aux_str(b, "RG", g->namer.rg.s, g->namer.rg.l);
    if (l->m->split) {
        ks_clear(&g->text);
        put_sa(&g->text, g, l->supp ? &l->m->prim : &l->m->supp);
        aux_str(b, "SA", g->text.s, g->text.l);
    }
    if (a && a->mapq < 10 && a->sub && !l->supp && a->n_cig < 64) {
        ks_clear(&g->text);
        put_xa(&g->text, g, a);
        aux_str(b, "XA", g->text.s, g->text.l);
    }
    if (g->opt->mods && !l->supp)
        aux_mods(g, b, l->m, (l->flag & BAM_FREVERSE) != 0);
}

/* An upper bound of the bytes emit_tags() adds: CIGAR texts take at most 11
 * bytes an operation, XA has less than 64 of them three times. */
static size_t tag_room(const struct gen *g, const struct line *l)
{
    size_t n = 4096 + l->m->prim.md.l;
    n += 11 * (size_t) (l->m->prim.n_cig + l->m->supp.n_cig);
    if (l->mate)
        n += 11 * (size_t) l->mate->prim.n_cig;
    if (l->m->split)
        n += l->m->supp.md.l;
    if (g->opt->mods)
        n += 6 * (size_t) l->m->len;
    return n;
}

static void emit(struct gen *g, const struct line *l)
{
    const struct mate *m = l->m;
    const struct aln *a = !m->mapped ? NULL : l->supp ? &m->supp : &m->prim;
    int flag = l->flag | (l->supp ? BAM_FSUPPLEMENTARY : 0);
    if (bam_set1(g->rec, g->namer.name.l, g->namer.name.s, (uint16_t) flag,
                 a ? a->at.tid : l->at.tid, a ? a->at.pos : l->at.pos,
                 (uint8_t) (a ? a->mapq : 0), a ? (size_t) a->n_cig : 0,
                 a ? a->cig : NULL, l->next.tid, l->next.pos, l->tlen,
                 (size_t) (l->supp ? m->supp_len : m->len),
                 l->supp ? m->supp_base : m->base,
                 (const char *) (l->supp ? m->supp_qual : m->qual),
                 tag_room(g, l)) < 0)
        die("bam_set1 failed", NULL);
    emit_tags(g, g->rec, l, a);
    out_record(&g->out, g->rec, g->opt->sorted);
}

/* The primary line, then the supplementary one on its own strand. */
static void emit_read(struct gen *g, struct line *l)
{
    l->supp = false;
    emit(g, l);
    if (!l->m->split)
        return;
    l->supp = true;
    l->flag = (l->flag & ~BAM_FREVERSE) | (l->m->supp.rev ? BAM_FREVERSE : 0);
    if (l->mate && l->m->supp.at.tid != l->next.tid)
        l->tlen = 0;
    emit(g, l);
}

/* ---- templates ---- */

/* Starts the next template and says where. Unsorted: anywhere. Sorted: an
 * exponential step, whose mean is what is left divided by what is to come. */
static struct locus next_locus(struct gen *g)
{
    if (!g->opt->sorted)
        return locus_at(g, genome_any(g, 0));
    int64_t end = g->genome.len << 8, left = g->templates - g->done;
    g->cursor += rng_exp(&g->rng, (uint64_t) ((end - g->cursor) / (left > 0 ? left : 1)) & ((1ull << 40) - 1));
    if (g->cursor >= end)
        g->cursor = end - 1;
    struct locus l = locus_at(g, g->cursor >> 8);
    if (!g->out.dry)
        out_drain(&g->out, coord_key(l.tid, l.pos, false));
    return l;
}

/* A second, unrelated place; when sorted, one that is still ahead. */
static struct locus remote_locus(struct gen *g)
{
    return locus_at(g, genome_any(g, g->opt->sorted ? g->cursor >> 8 : 0));
}

/* Maps a read of len bases, of which the alignment gets at most fit. The rest is
 * adapter; otherwise some reads are clipped, or split in two alignments. */
static void map_one(struct gen *g, struct mate *m, int len, int fit, struct locus at,
                    bool rev, bool may_split)
{
    if (fit < len) {
        mate_map(g, m, len, at, rev, rev ? len - fit : 0, rev ? 0 : len - fit, true);
        return;
    }
    bool head = rng_next(&g->rng) >> 63, split = len >= 80;
    split = split && rng_chance(&g->rng, PPM_SPLIT) && may_split;
    int n = 0;
    if (split)
        n = 30 + (int) rng_below(&g->rng, (uint32_t) (len / 2 - 30));
    else if (len >= 40 && rng_chance(&g->rng, PPM_CLIP))
        n = 3 + (int) rng_below(&g->rng, (uint32_t) (len < 150 ? len / 4 : 40));
    if (head && !g->opt->ties)
        at.pos += n;
    mate_map(g, m, len, at, rev, head ? n : 0, head ? 0 : n, false);
    if (split)
        mate_split(g, m, head ? 0 : len - n, n, remote_locus(g));
}

/* As bwa does it: from the 5' end of one mate to that of the other. */
static int64_t template_len(const struct aln *a, const struct aln *b)
{
    if (a->at.tid != b->at.tid)
        return 0;
    int64_t p = a->at.pos + (a->rev ? a->span - 1 : 0);
    int64_t q = b->at.pos + (b->rev ? b->span - 1 : 0);
    return q - p + (q > p) - (q < p);
}

/* Writes both mates, m[first] as READ1. */
static void emit_pair(struct gen *g, int first, bool proper)
{
    for (int k = 0; k < 2; k++) {
        const struct mate *m = &g->m[first ^ k], *o = &g->m[first ^ k ^ 1];
        struct line l = { .m = m, .mate = o, .at = { -1, -1 }, .next = { -1, -1 } };
        /* an unmapped mate lies where the other is, and takes its strand */
        const struct aln *a = m->mapped ? &m->prim : o->mapped ? &o->prim : NULL;
        const struct aln *b = o->mapped ? &o->prim : m->mapped ? &m->prim : NULL;
        l.flag = BAM_FPAIRED | (k ? BAM_FREAD2 : BAM_FREAD1)
               | (proper ? BAM_FPROPER_PAIR : 0)
               | (m->mapped ? 0 : BAM_FUNMAP) | (o->mapped ? 0 : BAM_FMUNMAP);
        if (a) {
            l.flag |= (a->rev ? BAM_FREVERSE : 0) | (b->rev ? BAM_FMREVERSE : 0);
            l.at = a->at;
            l.next = b->at;
        }
        if (m->mapped && o->mapped)
            l.tlen = template_len(a, b);
        emit_read(g, &l);
    }
}

static void make_pair(struct gen *g, bool unmapped, bool may_split)
{
    struct rng *r = &g->rng;
    const int len = g->opt->read_len, mean = len < 160 ? 400 : len * 5 / 2;
    int first = (int) (rng_next(r) >> 63);
    struct mate *fwd = &g->m[0], *rev = &g->m[1];
    uint32_t kind = rng_below(r, 1000000);
    bool orphan = kind < PPM_ORPHAN;
    bool discordant = !orphan && kind < PPM_ORPHAN + PPM_DISCORDANT;

    if (unmapped) {
        mate_unmapped(g, fwd, len);
        mate_unmapped(g, rev, len);
    } else {
        int insert = g->opt->ties ? mean : rng_bell(r, mean, mean * 22 / 100);
        if (insert < 50)
            insert = 50;
        int fit = insert < len ? insert : len;
        struct locus at = next_locus(g), end = { at.tid, at.pos + insert - fit };
        map_one(g, fwd, len, fit, at, false, may_split);
        if (orphan)
            mate_unmapped(g, rev, len);
        else if (discordant)
            map_one(g, rev, len, len, remote_locus(g), first, may_split);
        else
            map_one(g, rev, len, fit, end, true, may_split);
    }
    make_qual(g, fwd, false, first == 1);
    make_qual(g, rev, rev->mapped ? rev->prim.rev : false, first == 0);
    mate_split_qual(fwd);
    mate_split_qual(rev);
    emit_pair(g, first, !unmapped && !orphan && !discordant);
}

/* An unpaired read: all of --long, and the odd record at the end of --records. */
static void make_single(struct gen *g, bool unmapped, bool may_split)
{
    struct mate *m = &g->m[0];
    int len = g->opt->read_len;
    if (g->opt->long_reads)
        len = rng_bell(&g->rng, len, len / 5);
    bool rev = rng_next(&g->rng) >> 63;
    struct line l = { .m = m, .at = { -1, -1 }, .next = { -1, -1 } };
    if (unmapped)
        mate_unmapped(g, m, len);
    else
        map_one(g, m, len, len, next_locus(g), rev, may_split);
    make_qual(g, m, m->mapped && rev, false);
    mate_split_qual(m);
    l.flag = !m->mapped ? BAM_FUNMAP : rev ? BAM_FREVERSE : 0;
    emit_read(g, &l);
}

/* Makes template i with at most room records. */
static void make_template(struct gen *g, uint64_t i, int64_t room, bool unmapped)
{
    rng_seed(&g->rng, g->opt->seed, i);
    g->hap = rng_next(&g->rng) >> 63;
    namer_next(g);
    if (g->opt->long_reads || room == 1)
        make_single(g, unmapped, room >= 2);
    else
        make_pair(g, unmapped, room >= 4);
    g->done++;
}

/* ---- a whole file ---- */

static sam_hdr_t *make_header(const struct gen *g)
{
    const struct options *o = g->opt;
    kstring_t s = KS_INITIALIZE;
    kputs(o->sorted ? "@HD\tVN:1.6\tSO:coordinate\n"
                    : "@HD\tVN:1.5\tSO:unsorted\tGO:query\n", &s);
    for (int i = 0; i < g->genome.n; i++)
        ksprintf(&s, "@SQ\tSN:%s\tLN:%" PRId64 "\n", g->genome.ref[i].name,
                 g->genome.ref[i].len);
    for (int i = 1; i <= N_LANES && !o->long_reads; i++)
        ksprintf(&s, "@RG\tID:HT275DSXX.%d\tSM:sample1\tLB:lib%d\tPL:ILLUMINA\tPU:HT275DSXX.%d\n",
                 i, 2 - i % 2, i);
    if (o->long_reads)
        kputs("@RG\tID:m64011.1\tSM:sample1\tLB:lib1\tPL:PACBIO\tPU:m64011_190830_220126\n", &s);
    ksprintf(&s, "@PG\tID:gen_bam\tPN:gen_bam\tDS:synthetic test input\tCL:gen_bam --seed %" PRIu64
             " --records %" PRId64 " --size %" PRId64 " --qual %s%s%s%s\n", o->seed,
             o->records, o->size, o->full_qual ? "full" : "binned",
             o->long_reads ? " --long" : "", o->ties ? " --ties" : "",
             o->sorted ? " --sorted" : "");
    sam_hdr_t *h = sam_hdr_parse(s.l, s.s);
    if (!h || !(h->text = strdup(s.s)))
        die("cannot make the header", NULL);
    h->l_text = s.l;
    free(s.s);
    return h;
}

/* Mean bytes and records of a template, from a dry run over other streams. */
static void calibrate(struct gen *g)
{
    const struct options *o = g->opt;
    int n = o->long_reads ? 1000 : 10000;
    g->templates = n;
    namer_reset(g);
    g->out.dry = true;
    for (int i = 0; i < n; i++)
        make_template(g, UINT64_MAX / 2 + (uint64_t) i, INT64_MAX, false);
    double by_size = (double) o->size * n / (double) g->out.bytes;
    double by_records = (double) o->records * n / (double) g->out.records;
    g->templates = (int64_t) (o->records ? by_records : by_size) + 1;
    g->out.dry = false;
    g->out.bytes = g->out.records = g->done = g->cursor = 0;
}

/* Has the output reached per_mille of its target? */
static bool reached(const struct options *o, const struct out *out, int per_mille)
{
    int64_t target = o->records ? o->records : o->size;
    int64_t now = o->records ? out->records : out->bytes;
    return (double) now >= (double) target * per_mille / 1000;
}

static void generate(struct gen *g)
{
    const struct options *o = g->opt;
    const int unmapped_pm = o->long_reads ? 10 : PPM_UNMAPPED / 1000;
    calibrate(g);
    namer_reset(g);
    if (o->sorted)          /* unmapped templates come last and need no place */
        g->templates -= g->templates * unmapped_pm / 1000;
    while (!reached(o, &g->out, 1000)) {
        uint64_t i = (uint64_t) g->done;
        struct rng pick;
        rng_seed(&pick, o->seed ^ 0xabcdef, i);
        bool unmapped = o->sorted ? reached(o, &g->out, 1000 - unmapped_pm)
                                  : rng_chance(&pick, (uint32_t) unmapped_pm * 1000);
        make_template(g, i, o->records ? o->records - g->out.records : INT64_MAX, unmapped);
    }
    out_drain(&g->out, UINT64_MAX);
}

/* 30-fold coverage of whatever genome the amount of data allows, unless told. */
static int64_t genome_size(const struct options *o)
{
    double bases, per_record = 154 + 1.5 * o->read_len;
    if (o->genome)
        return o->genome;
    if (o->long_reads)
        per_record += o->read_len * (o->error_ppm * 1e-5 + (o->mods ? 0.06 : 0));
    bases = o->records ? (double) o->records * o->read_len
                       : (double) o->size / per_record * o->read_len;
    return bases / 30 < 3.1e9 ? (int64_t) (bases / 30) : 3100000000;
}

static void run_generate(const struct options *o)
{
    struct gen g = { .opt = o };
    int64_t insert = o->read_len < 160 ? 400 : (int64_t) o->read_len * 5 / 2;
    /* the largest fragment (mean + 3.47 deviations) or long read, and then some */
    g.max_len = (int64_t) o->read_len * 2;
    g.max_span = (o->long_reads ? g.max_len : insert * 2) + 64;
    genome_layout(&g.genome, o->refs, genome_size(o), g.max_span * 3 / 2);
    genome_build(&g.genome, o->seed);
    if (o->fasta)
        genome_write(&g.genome, o->fasta);
    for (int i = 0; i < 2; i++)
        mate_reserve(&g.m[i], g.max_len);
    g.rec = bam_init1();
    g.out.hdr = make_header(&g);
    out_open(&g.out, o);
    generate(&g);
    fprintf(stderr, "gen_bam: %" PRId64 " records, %" PRId64 " bytes uncompressed, genome %" PRId64 "\n",
            g.out.records, g.out.bytes, g.genome.len);
    out_close(&g.out);
    bam_destroy1(g.rec);
    for (int i = 0; i < 2; i++) {
        struct mate *m = &g.m[i];
        free(m->base), free(m->qual), free(m->supp_base), free(m->supp_qual);
        free(m->prim.cig), free(m->prim.md.s), free(m->supp.cig), free(m->supp.md.s);
    }
    free(g.text.s), free(g.ml.s), free(g.namer.name.s), free(g.namer.rg.s);
    free(g.genome.base), free(g.genome.ref);
}

/* ---- --grow ---- */

struct grow {
    bam1_t **rec;           /* in order of (name, place in the input) */
    size_t n, m;
    size_t *start, n_start; /* first record of each template; n behind the last */
    int64_t tile_step;      /* what a copy adds to the tile; 0: append "_copy" */
};

/* The fifth of seven colon-separated fields, if it is a number; else NULL. */
static const char *tile_field(const char *name)
{
    const char *tile = NULL;
    int colons = 0;
    for (const char *p = name; *p; p++)
        if (*p == ':' && ++colons == 4)
            tile = p + 1;
    return colons == 6 && tile && *tile >= '1' && *tile <= '9' ? tile : NULL;
}

static void grow_load(struct grow *w, samFile *in, sam_hdr_t *hdr)
{
    int ret;
    bam1_t *b = bam_init1();
    while ((ret = sam_read1(in, hdr, b)) >= 0) {
        if (w->n == w->m) {
            w->m = w->m ? w->m * 2 : 4096;
            w->rec = xrealloc(w->rec, w->m * sizeof *w->rec);
        }
        if (!(w->rec[w->n] = bam_dup1(b)))
            die("out of memory", NULL);
        w->rec[w->n]->id = w->n;
        w->n++;
    }
    bam_destroy1(b);
    if (ret < -1)
        die("error reading the file to grow", NULL);
    if (!w->n)
        die("the file to grow has no records", NULL);
}

static int by_name(const void *a, const void *b)
{
    const bam1_t *x = *(bam1_t *const *) a, *y = *(bam1_t *const *) b;
    int c = strcmp(bam_get_qname(x), bam_get_qname(y));
    return c ? c : (x->id > y->id) - (x->id < y->id);
}

/* Templates of the input, whatever its order, and how to rename their copies. */
static void grow_index(struct grow *w)
{
    bool illumina = true;
    long max = 0;
    qsort(w->rec, w->n, sizeof *w->rec, by_name);
    w->start = xrealloc(NULL, (w->n + 1) * sizeof *w->start);
    for (size_t i = 0; i < w->n; i++) {
        const char *name = bam_get_qname(w->rec[i]), *tile = tile_field(name);
        if (!i || strcmp(name, bam_get_qname(w->rec[i - 1])))
            w->start[w->n_start++] = i;
        if (!tile)
            illumina = false;
        else if (strtol(tile, NULL, 10) > max)
            max = strtol(tile, NULL, 10);
    }
    w->start[w->n_start] = w->n;
    if (!illumina || max > 1000000)
        return;
    /* a power of ten above every tile, so that no two copies share a name */
    for (w->tile_step = 10; w->tile_step <= max;)
        w->tile_step *= 10;
}

static void grow_name(const struct grow *w, kstring_t *s, const char *name, int64_t copy)
{
    ks_clear(s);
    if (copy && w->tile_step) {
        const char *tile = tile_field(name);
        char *rest;
        int64_t v = strtol(tile, &rest, 10) + copy * w->tile_step;
        kputsn(name, tile - name, s);
        kputll(v, s);
        kputs(rest, s);
    } else {
        kputs(name, s);
        if (copy)
            ksprintf(s, "_%" PRId64, copy);
    }
    if (s->l > 254)
        die("a copied name would be too long", s->s);
}

/* The shifts a template's records on this reference allow, within +-jitter. */
static int64_t grow_shift(const struct grow *w, size_t t, int tid, int jitter,
                          sam_hdr_t *h, struct rng rng)
{
    int64_t lo = -jitter, hi = jitter, len = sam_hdr_tid2len(h, tid);
    for (size_t i = w->start[t]; i < w->start[t + 1]; i++) {
        const bam1_core_t *c = &w->rec[i]->core;
        int64_t pos[2] = { c->tid == tid ? c->pos : -1, c->mtid == tid ? c->mpos : -1 };
        int64_t end[2] = { pos[0] < 0 ? -1 : bam_endpos(w->rec[i]), pos[1] + 1 };
        for (int k = 0; k < 2; k++) {
            if (pos[k] < 0)
                continue;
            lo = lo < -pos[k] ? -pos[k] : lo;
            hi = hi > len - end[k] ? len - end[k] : hi;
        }
    }
    return lo < hi ? lo + rng_below64(&rng, hi - lo + 1) : 0;
}

/* Writes copy `copy` of template t. Mates on one reference move together, so
 * TLEN and MC stay true; SA and XA keep their old text. */
static void grow_emit(const struct grow *w, size_t t, int64_t copy, const struct options *o,
                      struct out *out, bam1_t *b, kstring_t *name)
{
    struct rng rng;
    rng_seed(&rng, o->seed, (uint64_t) copy << 40 ^ t);
    grow_name(w, name, bam_get_qname(w->rec[w->start[t]]), copy);
    for (size_t i = w->start[t]; i < w->start[t + 1]; i++) {
        if (!bam_copy1(b, w->rec[i]) || bam_set_qname(b, name->s) < 0)
            die("out of memory", NULL);
        bam1_core_t *c = &b->core;
        if (copy && c->tid >= 0 && c->pos >= 0) {
            c->pos += grow_shift(w, t, c->tid, o->jitter, out->hdr, rng);
            c->bin = (uint16_t) hts_reg2bin(c->pos, bam_endpos(b), 14, 5);
        }
        if (copy && c->mtid >= 0 && c->mpos >= 0)
            c->mpos += grow_shift(w, t, c->mtid, o->jitter, out->hdr, rng);
        out_record(out, b, false);
    }
}

static void run_grow(const struct options *o)
{
    struct grow w = { 0 };
    struct out out = { 0 };
    struct rng rng;
    kstring_t name = KS_INITIALIZE;
    samFile *in = sam_open(o->grow, "r");
    if (!in || !(out.hdr = sam_hdr_read(in)))
        die("cannot read", o->grow);
    grow_load(&w, in, out.hdr);
    sam_close(in);
    grow_index(&w);
    if (!sam_hdr_find_hd(out.hdr, &name)) {
        sam_hdr_update_hd(out.hdr, "SO", "unsorted");
        sam_hdr_remove_tag_hd(out.hdr, "SS");
        sam_hdr_remove_tag_hd(out.hdr, "GO");
    }
    out_open(&out, o);

    size_t *order = xrealloc(NULL, w.n_start * sizeof *order);
    for (size_t i = 0; i < w.n_start; i++)
        order[i] = i;
    bam1_t *b = bam_init1();
    for (int64_t copy = 0; !reached(o, &out, 1000); copy++) {
        rng_seed(&rng, o->seed, UINT64_MAX - (uint64_t) copy);
        for (size_t i = w.n_start; i-- > 1;) {
            size_t j = (size_t) rng_below64(&rng, (int64_t) i + 1), t = order[i];
            order[i] = order[j];
            order[j] = t;
        }
        for (size_t i = 0; i < w.n_start && !reached(o, &out, 1000); i++)
            grow_emit(&w, order[i], copy, o, &out, b, &name);
    }
    fprintf(stderr, "gen_bam: %" PRId64 " records, %" PRId64 " bytes uncompressed, from %zu records\n",
            out.records, out.bytes, w.n);
    out_close(&out);
    bam_destroy1(b);
    for (size_t i = 0; i < w.n; i++)
        bam_destroy1(w.rec[i]);
    free(w.rec), free(w.start), free(order), free(name.s);
}

/* ---- command line ---- */

static void usage(FILE *fp)
{
    fputs("Usage: gen_bam [options]\n"
          "  --records N        number of records, exactly   (default 10000)\n"
          "  --size N[KMG]      or: size as uncompressed BAM, roughly\n"
          "  --seed N           same seed and options, same records   (1)\n"
          "  --refs N           number of references   (25, human proportions)\n"
          "  --genome N[KMG]    genome length   (30-fold coverage)\n"
          "  --read-len N       read length   (150; with --long the mean, 15000)\n"
          "  --qual KIND        binned (NovaSeq, default) or full (HiSeq)\n"
          "  --error RATE       miscalls and indels per base   (0.004)\n"
          "  --long             unpaired PacBio-HiFi-like reads\n"
          "  --mods             MM and ML tags\n"
          "  --ties             many records at few places\n"
          "  --sorted           in coordinate order\n"
          "  --fasta FILE       write the reference sequences, too\n"
          "  --grow IN          shuffled, renamed, shifted copies of IN's records\n"
          "  --jitter N         with --grow: shift by at most N bases   (10000)\n"
          "  -O, --output-fmt F bam, sam or ubam   (bam)\n"
          "  --level N          compression level   (htslib's default)\n"
          "  -@, --threads N    compression threads   (1)\n"
          "  -o FILE            output   (- is stdout, the default)\n", fp);
}

static int64_t parse_size(const char *s, const char *what)
{
    char *end;
    double v = strtod(s, &end);
    static const char unit[] = "KMGT";
    const char *u = *end ? strchr(unit, *end & ~32) : NULL;
    if (end == s || v < 0 || (*end && (!u || end[1])))
        die("bad number for", what);
    for (int n = u ? (int) (u - unit) + 1 : 0; n--;)
        v *= 1024;
    return (int64_t) v;
}

static int parse_int(const char *s, const char *what, int lo, int hi)
{
    int64_t v = parse_size(s, what);
    if (v < lo || v > hi)
        die("out of range", what);
    return (int) v;
}

enum {
    O_RECORDS = 256, O_SIZE, O_SEED, O_REFS, O_GENOME, O_LEN, O_QUAL, O_ERROR,
    O_LONG, O_MODS, O_TIES, O_SORTED, O_GROW, O_JITTER, O_LEVEL, O_FASTA
};

static const struct option long_options[] = {
    { "records", required_argument, NULL, O_RECORDS },
    { "size", required_argument, NULL, O_SIZE },
    { "seed", required_argument, NULL, O_SEED },
    { "refs", required_argument, NULL, O_REFS },
    { "genome", required_argument, NULL, O_GENOME },
    { "read-len", required_argument, NULL, O_LEN },
    { "qual", required_argument, NULL, O_QUAL },
    { "error", required_argument, NULL, O_ERROR },
    { "long", no_argument, NULL, O_LONG },
    { "mods", no_argument, NULL, O_MODS },
    { "ties", no_argument, NULL, O_TIES },
    { "sorted", no_argument, NULL, O_SORTED },
    { "grow", required_argument, NULL, O_GROW },
    { "fasta", required_argument, NULL, O_FASTA },
    { "jitter", required_argument, NULL, O_JITTER },
    { "level", required_argument, NULL, O_LEVEL },
    { "output-fmt", required_argument, NULL, 'O' },
    { "threads", required_argument, NULL, '@' },
    { "help", no_argument, NULL, 'h' },
    { NULL, 0, NULL, 0 }
};

static void set_option(struct options *o, int c, const char *arg)
{
    switch (c) {
    case O_RECORDS: o->records = parse_size(arg, "--records"); break;
    case O_SIZE: o->size = parse_size(arg, "--size"); break;
    case O_SEED: o->seed = strtoull(arg, NULL, 0); break;
    case O_REFS: o->refs = parse_int(arg, "--refs", 1, 10000000); break;
    case O_GENOME: o->genome = parse_size(arg, "--genome"); break;
    case O_LEN: o->read_len = parse_int(arg, "--read-len", 20, 1 << 27); break;
    case O_QUAL:
        o->full_qual = !strcmp(arg, "full");
        if (!o->full_qual && strcmp(arg, "binned"))
            die("--qual is binned or full, not", arg);
        break;
    case O_ERROR: o->error_ppm = (int) (strtod(arg, NULL) * 1e6); break;
    case O_LONG: o->long_reads = true; break;
    case O_MODS: o->mods = true; break;
    case O_TIES: o->ties = true; break;
    case O_SORTED: o->sorted = true; break;
    case O_GROW: o->grow = arg; break;
    case O_FASTA: o->fasta = arg; break;
    case O_JITTER: o->jitter = parse_int(arg, "--jitter", 0, INT_MAX / 2); break;
    case O_LEVEL: o->level = parse_int(arg, "--level", 0, 9); break;
    case 'O': o->fmt = arg; break;
    case '@': o->threads = parse_int(arg, "-@", 0, 1024); break;
    case 'o': o->out = arg; break;
    case 'h': usage(stdout); exit(EXIT_SUCCESS);
    default: usage(stderr); exit(EXIT_FAILURE);
    }
}

int main(int argc, char **argv)
{
    struct options o = {
        .seed = 1, .refs = N_HUMAN, .level = -1, .threads = 1, .jitter = 10000,
        .error_ppm = 4000, .indel_pct = 3, .out = "-", .fmt = "bam"
    };
    int c;
    while ((c = getopt_long(argc, argv, "O:@:o:h", long_options, NULL)) >= 0)
        set_option(&o, c, optarg);
    if (optind < argc)
        die("unexpected argument", argv[optind]);
    if (strcmp(o.fmt, "bam") && strcmp(o.fmt, "sam") && strcmp(o.fmt, "ubam"))
        die("unknown output format", o.fmt);
    if (o.error_ppm < 1 || o.error_ppm > 500000)
        die("--error must lie between 0.000001 and 0.5", NULL);
    if (o.grow && o.sorted)
        die("--grow gives unsorted output; drop --sorted", NULL);
    if (!o.records && !o.size)
        o.records = 10000;
    if (!o.read_len)
        o.read_len = o.long_reads ? 15000 : 150;
    if (o.long_reads)
        o.indel_pct = 60;
    if (o.grow)
        run_grow(&o);
    else
        run_generate(&o);
    return EXIT_SUCCESS;
}
