/* SPDX-License-Identifier: MIT */
#include "bam/long_pos.h"
#include "base/input_name.h"
#include "base/latch.h"
#include "base/machine.h"
#include "engine/engine_opts.h"
#include "base/clocks.h"
#include "engine/memory_plan.h"
#include "engine/limits.h"
#include "engine/engine_memory.h"
#include "report/command_report.h"
#include "write/record_sink.h"

static const unsigned long long MIB = 1 << 20;
/* With -m, the limit for a header's bytes is at least this, because samtools reads headers with 30 million
 * references. */
static const uint64_t HEADER_LEAST = (uint64_t)1 << 30;
enum { HEADER_SHARE = 4 };       /* part of --total-memory: the header is kept twice, and its names as well */

/* Returns the number of inputs that wait for their turn with buffers: see input_begin(). */
static size_t inputs_waiting(const struct input_request *in, enum memory_reads reads)
{
    size_t n = 0;
    for (size_t i = 1; i < in->n; i++)
        n += reads != MEMORY_IN_TURN || !input_name_is_file(in->paths[i]);
    return n;
}

/* A block does not show its level, so only a request for level 0 rules out copies. Each reference to a
 * record holds the number of its input in 16 bits. */
const char *engine_memory_copies_none(const struct engine_opts *opts)
{
    const struct output_request *out = &opts->out;
    return record_sink_form(out) != SINK_BAM || out->level == 0 ? "the output is not compressed BAM"
         : opts->in.n > UINT16_MAX ? "there are too many inputs" : NULL;
}

struct memory_rings engine_memory_rings(const struct engine_opts *opts, const struct input_request *in,
                                      enum memory_reads reads, bool writes)
{
    struct memory_job job = {
        .all = limits_memory(opts->memory, opts->memory_overhead, opts->n_threads),
        .n_threads = opts->n_threads,
        .form = record_sink_form(&opts->out),
        .level = writes ? opts->out.level : 0,
        .n_inputs = in->n,
        .n_waiting = inputs_waiting(in, reads),
        .in_chunks = reads == MEMORY_AT_ONCE,
        .copies = reads == MEMORY_AT_ONCE && opts->out.copies && !engine_memory_copies_none(opts),
        .program = (size_t)machine_program_memory(),
        .thread_space = limits_thread_space(),
    };
    return memory_plan_rings(&job);
}

struct inputs_options engine_memory_inputs(const struct engine_opts *opts, const struct input_request *in,
                                              const struct memory_rings *rings, const struct engine *engine)
{
    uint64_t all = rings->job.all;
    return (struct inputs_options){
        .request = in,
        .other_fasta = opts->order.index_fasta,
        .rings = *rings,
        .header_max = opts->memory_overhead == 0 ? all / HEADER_SHARE : all > HEADER_LEAST ? all : HEADER_LEAST,
        .far = long_pos_fits(&opts->out.format),
        .engine = engine,
    };
}

static int too_little(const struct memory_rings *rings, const struct engine_opts *opts, const struct memory_use *use,
                      struct latch *latch)
{
    /* The memory that the program has written at its start differs by some pages from run to run. Parts grow by steps,
     * so one more page may make some more MiB necessary. */
    struct memory_job next = rings->job;
    next.program += MIB;
    unsigned long long asked = opts->memory, enough = memory_plan_enough(&next, use) + MIB;
    return latch_fail(latch, "%s: --total-memory of %llu MiB is too little: with %d thread%s and these inputs, "
                      "%lluM is enough. Nothing was written", engine_opts_input(opts), asked / MIB, opts->n_threads,
                      opts->n_threads > 1 ? "s" : "", enough / MIB);
}

static struct memory_use use_of(const struct memory_rings *rings, const struct engine_opts *opts,
                                const struct inputs *inputs, struct output_use output)
{
    output.overhead += inputs->overhead;
    return (struct memory_use){
        .header = inputs->header_size,
        .references = inputs->n_references,
        .parsed = inputs->parsed || rings->job.form == SINK_HTSLIB,
        .htslib = inputs->memory,
        .n_chunked = inputs->n_chunked,
        .clocks = clocks_memory(opts->n_threads, command_report_detail(&opts->report)),
        .output = output,
    };
}

struct memory_plan engine_memory_plan_any(const struct memory_rings *rings, const struct engine_opts *opts,
                                        const struct inputs *inputs, struct output_use output)
{
    struct memory_use use = use_of(rings, opts, inputs, output);
    return memory_plan_make(rings, &use);
}

int engine_memory_plan(struct memory_plan *plan, const struct memory_rings *rings, const struct engine_opts *opts,
                     const struct inputs *inputs, struct output_use output, struct latch *latch)
{
    struct memory_use use = use_of(rings, opts, inputs, output);
    *plan = memory_plan_make(rings, &use);
    if (opts->memory_overhead > 0 || memory_plan_takes(plan) <= opts->memory)
        return 0;
    return too_little(rings, opts, &use, latch);
}
