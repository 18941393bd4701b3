/* SPDX-License-Identifier: MIT */
#include "gen_bam.h"

/* Shares, in parts per million. */
enum {
    PPM_ORPHAN     = 20000, /* templates with one mate unmapped, placed beside the other */
    PPM_DISCORDANT = 10000, /* mates on unrelated loci */
    PPM_SPLIT      = 31000, /* reads that a supplementary line follows */
    PPM_CLIP       = 40000  /* soft clip at one end */
};

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

void namer_reset(struct gen *g)
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
    /* some 49 clusters a row, the rows spread over the full height of a tile */
    n->row_step = 2 * 36000 / (n->per_tile / 49 + 1);
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

/* The parts that the lines of one read share, and which of them is written. */
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

/* Starts the next template and returns its place. Unsorted: anywhere. Sorted: an
 * exponential step, whose mean is the rest of the genome divided by the rest of the templates. */
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
        out_drain(&g->out, out_key(l.tid, l.pos, false));
    return l;
}

/* A second, unrelated place; when sorted, one that is still ahead. */
static struct locus remote_locus(struct gen *g)
{
    return locus_at(g, genome_any(g, g->opt->sorted ? g->cursor >> 8 : 0));
}

/* Maps a read of len bases, at most fit of which are aligned. The rest is
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

/* Measures as bwa does: from the 5' end of one mate to that of the other. */
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
        /* an unmapped mate gets the place of the other, and its strand */
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
    mate_qual(g, fwd, first == 1);
    mate_qual(g, rev, first == 0);
    emit_pair(g, first, !unmapped && !orphan && !discordant);
}

/* An unpaired read: all of --long, and a single record at the end of --records. */
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
    mate_qual(g, m, false);
    l.flag = !m->mapped ? BAM_FUNMAP : rev ? BAM_FREVERSE : 0;
    emit_read(g, &l);
}

void template_make(struct gen *g, uint64_t i, int64_t room, bool unmapped)
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
