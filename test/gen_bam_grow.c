/* SPDX-License-Identifier: MIT */
#include "gen_bam.h"

struct grow {
    bam1_t **rec;           /* in order of (name, place in the input) */
    size_t n, m;
    size_t *start, n_start; /* first record of each template; n after the last */
    int64_t tile_step;      /* number that a copy adds to the tile; 0: append "_copy" */
};

/* The fifth of seven colon-separated fields, if it is a number; otherwise NULL. */
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

/* Finds the templates of the input, in any order, and a way to rename their copies. */
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

void grow_run(const struct options *o)
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
    for (int64_t copy = 0; !out_reached(o, &out, 1000); copy++) {
        rng_seed(&rng, o->seed, UINT64_MAX - (uint64_t) copy);
        for (size_t i = w.n_start; i-- > 1;) {
            size_t j = (size_t) rng_below64(&rng, (int64_t) i + 1), t = order[i];
            order[i] = order[j];
            order[j] = t;
        }
        for (size_t i = 0; i < w.n_start && !out_reached(o, &out, 1000); i++)
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
