/* SPDX-License-Identifier: MIT */
#include "gen_bam.h"

enum { PPM_N = 2500 };          /* parts per million of error events: the base call is N */

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

/* Copies the qualities to the supplementary line, once they are made. */
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

void mate_qual(struct gen *g, struct mate *m, bool second)
{
    struct rng *r = &g->rng;
    if (g->opt->long_reads)
        qual_hifi(r, m->qual, m->len, g->opt->full_qual);
    else if (g->opt->full_qual)
        qual_full(r, m->qual, m->len, second);
    else
        qual_binned(r, m->qual, m->len);
    if (m->mapped && m->prim.rev)
        reverse_qual(m->qual, m->len);
    /* most wrong bases have a low quality */
    for (int i = 0; i < m->n_err; i++)
        if (rng_next(r) & 3)
            m->qual[m->err[i]] = g->opt->full_qual ? (uint8_t) (2 + rng_below(r, 18)) : 12;
    for (char *n = m->base; (n = memchr(n, 'N', (size_t) (m->base + m->len - n)));)
        m->qual[n++ - m->base] = 2;
    mate_split_qual(m);
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
    a->nm = a->score = a->sub = a->mapq = a->n_cig = 0;
    a->span = 0;
    ks_clear(&a->md);
}

/* A pass over the reference: the read's cursor, and the parts not yet in CIGAR/MD. */
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

/* Mapping quality and runner-up score: bases in a young repeat have rivals. */
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

void mate_init(struct mate *m, int64_t cap)
{
    *m = (struct mate) {
        .base = xrealloc(NULL, (size_t) cap), .qual = xrealloc(NULL, (size_t) cap),
        .supp_base = xrealloc(NULL, (size_t) cap), .supp_qual = xrealloc(NULL, (size_t) cap)
    };
}

void mate_free(struct mate *m)
{
    free(m->base), free(m->qual), free(m->supp_base), free(m->supp_qual);
    free(m->prim.cig), free(m->prim.md.s), free(m->supp.cig), free(m->supp.md.s);
}

void mate_unmapped(struct gen *g, struct mate *m, int len)
{
    m->len = len;
    m->mapped = m->split = false;
    m->n_err = 0;
    fill_foreign(g, m->base, len, false);
}

void mate_map(struct gen *g, struct mate *m, int len, struct locus at,
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

void mate_split(struct gen *g, struct mate *m, int off, int n, struct locus at)
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
