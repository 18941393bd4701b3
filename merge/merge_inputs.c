/* SPDX-License-Identifier: MIT */
#include <string.h>
#include "bam/header_join.h"
#include "bam/plain_header.h"
#include "base/engine.h"
#include "base/latch.h"
#include "merge/merge_inputs.h"
#include "merge/merge_opts.h"
#include "merge/merge_regions.h"
#include "engine/engine_memory.h"
#include "read/input_format.h"

/* Headers with the same text share one object, even if they are not from BAM (header_read()). The references of a BAM
 * are those of its list, whose order may differ from that of the text. */
static void share_header(struct bam_header *header, sam_hdr_t *before)
{
    sam_hdr_t **sam = &header->sam;
    size_t n, n_before;
    if (header->is_shared)
        return;
    const char *text = plain_header_text(*sam, &n), *text_before = plain_header_text(before, &n_before);
    if (!text || !text_before || n != n_before || memcmp(text, text_before, n) != 0
        || !bam_header_same_references(*sam, before))
        return;
    sam_hdr_destroy(*sam);
    sam_hdr_incr_ref(before);
    *sam = before;
    header->is_shared = true;
}

/* Joins headers like a sort: the first one becomes that of the output. */
static int join_for_sort(void *inputs, struct input *in)
{
    struct merge_inputs *m = inputs;
    if (in == m->in.each) {
        sam_hdr_incr_ref(m->sam = in->header.sam);
        return 0;
    }
    return inputs_join(&m->in, in, in->format->opt.engine->latch);
}

static int join_header(void *inputs, struct input *in)
{
    struct merge_inputs *m = inputs;
    if (header_join_has_first(m->join) && bam_header_drop_unlisted(&in->header) < 0)
        return latch_fail(in->format->opt.engine->latch, "%s: out of memory for its header", in->name);
    if (header_join_add(m->join, in->header.sam, in->format->opt.given, &in->remap, in->format->opt.engine->latch) < 0)
        return -1;
    in->remap.leaves_tags = in->format->opt.chunks.keeps;
    if (in > m->in.each)
        share_header(&in->header, in[-1].header.sam);
    return 0;
}

/* Joins the header of -h; its records are ignored. */
static int join_other_header(struct merge_inputs *m, const char *path, const struct inputs_options *how)
{
    struct input in = {0};
    if (!path)
        return 0;
    int result = input_open(&in, path, NULL, how) < 0
              || header_join_add(m->join, in.header.sam, path, NULL, how->engine->latch) < 0 ? -1 : 0;
    input_close(&in);
    return result;
}

static int choose_regions(struct merge_inputs *m, const struct merge_opts *o, struct latch *latch)
{
    struct merge_regions regions = {.latch = latch};
    char *const *indexes = o->common.in.indexes;
    latch->by_index = true;
    int status = merge_regions_open(&regions, o, m->sam, latch);
    for (size_t i = 0; i < m->in.n && status == 0; i++) {
        struct input *in = &m->in.each[i];
        status = merge_regions_choose(&regions, in, indexes ? indexes[i] : NULL);
        m->in.overhead += ref_regions_memory(&in->regions) + (in->format->extents ? in->format->memory : 0);
    }
    merge_regions_close(&regions);
    return status;
}

int merge_inputs_open(struct merge_inputs *m, const struct merge_opts *o, const struct memory_rings *rings,
                      const struct engine *engine)
{
    bool by_coordinate = o->common.order.by == SORT_COORDINATE;
    struct header_join_options joins = {o->seed, o->join_groups, o->join_programs, o->groups_by_file, by_coordinate};
    struct inputs_options how = engine_memory_inputs(&o->common, &o->common.in, rings, engine);
    how.waits = true;            /* if the inputs are files, only the headers are read now */
    how.join = o->sorts ? join_for_sort : join_header;
    how.arg = m;
    if (o->sorts)
        return inputs_open(&m->in, &how);
    if (!(m->join = header_join_new(&joins)))
        return latch_fail(engine->latch, "out of memory");
    if (join_other_header(m, o->header, &how) < 0)
        return -1;
    how.by_region = merge_regions_wanted(o);
    if (inputs_open(&m->in, &how) < 0 || !(m->sam = header_join_end(m->join, engine->latch))
        || (how.by_region && choose_regions(m, o, engine->latch) < 0))
        return -1;
    inputs_count_header(&m->in, m->sam);
    return 0;
}

void merge_inputs_close(struct merge_inputs *m)
{
    inputs_close(&m->in);
    header_join_free(m->join);
    sam_hdr_destroy(m->sam);
    *m = (struct merge_inputs){.join = NULL};
}
