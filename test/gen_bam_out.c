/* SPDX-License-Identifier: MIT */
#include "gen_bam.h"

struct pending { uint64_t key, seq; bam1_t *rec; };

uint64_t out_key(int tid, int64_t pos, bool rev)
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
        out_key(rec->core.tid, rec->core.pos, bam_is_rev(rec)), o->seq++,
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

void out_drain(struct out *o, uint64_t limit)
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

void out_record(struct out *o, const bam1_t *rec, bool sorted)
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

void out_open(struct out *o, const struct options *opt)
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

void out_close(struct out *o)
{
    if (sam_close(o->fp) < 0)
        die("error on closing the output", NULL);
    sam_hdr_destroy(o->hdr);
    free(o->heap);
}

bool out_reached(const struct options *o, const struct out *out, int per_mille)
{
    int64_t target = o->records ? o->records : o->size;
    int64_t now = o->records ? out->records : out->bytes;
    return (double) now >= (double) target * per_mille / 1000;
}
