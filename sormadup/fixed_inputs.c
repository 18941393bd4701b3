/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "base/engine.h"
#include "base/latch.h"
#include "read/input_format.h"
#include "sormadup/fixed_inputs.h"

static struct record_stream current(const struct fixed_inputs *f)
{
    return fixed_records_stream(f->each[f->n_begun - 1]);
}

static int begin_input(struct fixed_inputs *f)
{
    struct input *in = &f->in.each[f->n_begun];
    struct fixed_records_options how = {
        .request = &f->request,
        .is_last = f->n_begun + 1 == f->in.n,
    };
    if (input_begin(in) < 0)
        return -1;
    how.in = (struct chunk_input){.source = in->stream.producer ? NULL : in->source, .stream = in->stream,
                                  .use = f->opt.memory, .path = in->name, .engine = f->opt.engine};
    f->each[f->n_begun] = fixed_records_open(&how, &in->header);
    return f->each[f->n_begun++] ? 0 : -1;
}

/* Ends the current input, whose records were taken. Tasks may still read its rings. */
static void end_input(struct fixed_inputs *f)
{
    struct input *in = &f->in.each[f->n_begun - 1];
    f->before += in->format ? in->format->size : 0;
    input_end(in);
    fixed_records_end(f->each[f->n_begun - 1]);
}

static enum chunk_state advance(void *fixed)
{
    struct fixed_inputs *f = fixed;
    if (f->n_begun == 0 && begin_input(f) < 0)
        return CHUNK_FAILED;
    for (;;) {
        struct record_stream from = current(f);
        enum chunk_state state = from.advance(from.producer);
        if (state != CHUNK_NONE || f->n_begun == f->in.n)
            return state;
        end_input(f);
        if (begin_input(f) < 0)
            return CHUNK_FAILED;
    }
}

static int take(void *fixed, struct record_slice *slice)
{
    const struct fixed_inputs *f = fixed;
    struct record_stream from = current(f);
    if (from.take(from.producer, slice) < 0)
        return -1;
    slice->offset += slice->offset ? f->before : 0;
    return 0;
}

static bool help(void *fixed)
{
    const struct fixed_inputs *f = fixed;
    return f->n_begun > 0 && current(f).help(current(f).producer);
}

/* Each record of the inputs is now counted in *given, or was left out. */
static int end(void *fixed, struct tally *given)
{
    const struct fixed_inputs *f = fixed;
    *given = (struct tally){.n = 0};
    for (size_t i = 0; i < f->in.n; i++) {
        struct record_stream from = fixed_records_stream(f->each[i]);
        struct tally made;
        if (from.end(from.producer, &made) < 0)
            return -1;
        tally_add(given, made);
    }
    return 0;
}

/* The number of records is unknown if some are left out. */
int fixed_inputs_open(struct fixed_inputs *f, struct inputs *in, const struct fixed_inputs_options *options)
{
    struct record_stream stream = {advance, take, help, end, f, .has_keys = true,
                                   .is_reordered = in->each->stream.is_reordered};
    f->opt = *options;
    f->in = *in;
    *in = (struct inputs){.each = NULL};
    sam_hdr_t *sam = f->in.each->header.sam;
    f->each = calloc(f->in.n, sizeof *f->each);
    f->lengths = bam_header_lengths(sam);
    f->request = (struct fix_request){
        .rules = *options->rules, .orphans = options->orphans, .orphans_arg = options->orphans_arg,
    };
    f->request.rules.lengths = f->lengths;
    if (!f->each || !f->lengths || inputs_of_stream(in, &f->in, stream, sam) < 0)
        return latch_fail(options->engine->latch, "out of memory for the header");
    in->n_chunked++;                             /* its records go through chunks again */
    in->size = options->rules->drops ? 0 : in->size;
    in->size_known = in->size_known && !options->rules->drops;
    return 0;
}

void fixed_inputs_close(struct fixed_inputs *f)
{
    inputs_end(&f->in);                          /* the sources are closed before their readers */
    for (size_t i = 0; i < f->n_begun; i++)
        fixed_records_close(f->each[i]);
    inputs_close(&f->in);
    free(f->each);
    free(f->lengths);
    free(f->request.open.p);
}
