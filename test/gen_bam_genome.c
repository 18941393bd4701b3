/* SPDX-License-Identifier: MIT */
#include "gen_bam.h"

/* GRCh38 lengths in kb, so that the references keep human proportions. */
static const int human_kb[N_HUMAN] = {
    248956, 242194, 198296, 190215, 181538, 170806, 159346, 145139, 138395,
    133797, 135087, 133275, 114364, 107044, 101991, 90338, 83257, 80373, 58618,
    64444, 46710, 50818, 156041, 57227, 17
};

void genome_layout(struct genome *g, int n, int64_t total, int64_t min_len)
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

void genome_build(struct genome *g, uint64_t seed)
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

void genome_write(const struct genome *g, const char *path)
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

int genome_find(const struct genome *g, int64_t x)
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
