/* SPDX-License-Identifier: MIT */
/* The driver: how a BAM file gets sorted.
 *
 *   in.bam --> bgzf_source --> bam_arena --> sort_run --> merge_ring --> bgzf_sink --> out.bam
 *   (or -)     read-ahead,     records and   one task     ranges of      two rings,     (out_file:
 *     |        one inflate     their keys    per sublist, sublists and   one deflate    renamed when
 *     |        task per block  in one region while        runs, a task   task per       whole)
 *     |                        (two of them) reading      for each       block
 *   byte_source: whatever           |                      |     ^
 *   the input is, a stream          +-> spill: arenas ---> |     |
 *   of BAM bytes (SAM, CRAM:            that are full,     | run_reader: slices
 *   hts_reader)                         as packed runs     | come back ahead of
 *                                                          | the merge
 *                                                record_sink (SAM, CRAM: hts_writer)
 *
 * There is one `omp parallel`, below. The master finds blocks and deals them out,
 * takes them back in order, plans the merge and fills output blocks with lists of
 * records; all else is tasks (and a thread that reads a pipe). */
#include <errno.h>
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <htslib/hfile.h>
#include <htslib/hts_log.h>
#include "arena_fill.h"
#include "arena_pair.h"
#include "bam_header.h"
#include "bam_index.h"
#include "bam_sort.h"
#include "bgzf_source.h"
#include "byte_source.h"
#include "checksum_file.h"
#include "far_pos.h"
#include "latch.h"
#include "machine.h"
#include "minhash.h"
#include "out_file.h"
#include "progress.h"
#include "record_sink.h"
#include "sink_verify.h"
#include "sort_opts.h"
#include "sort_report.h"
#include "stats.h"

static const uint64_t THREAD_SPACE = (uint64_t)9 << 20;  /* of addresses: its stack */
static const uint64_t HEADER_LEAST = (uint64_t)64 << 20;     /* with little memory too: half a million references */
static const uint64_t MEMORY_BESIDE = (uint64_t)128 << 20;   /* of addresses: the plan's 64 MiB, and what is never touched */

struct bam_sort {
    const struct sort_opts *opts;
    struct latch latch;
    struct stats *stats;
    struct sort_report report;
    struct progress progress;
    struct sort_input *inputs;   /* in the order in which they are read */
    size_t n_inputs;
    struct record_sink *sink;
    uint64_t budget;             /* bytes of memory; once for all, since what is left becomes less */
    struct memory_plan plan;
    struct arena_pair memory;    /* of the records */
    struct arena_fill fill;      /* reading, into that */
    sam_hdr_t *sam;              /* header of the first input, then of the output */
    struct sort_rule *rule;
    struct minhash *minhash;     /* of -M; else NULL */
    _Atomic bool far;            /* a record has positions beyond 32 bits; its reader sets it */
    struct out_file out, index, checksum;
};

/* ---------------------------------------------------------- before reading */

/* Whether records may have positions beyond 32 bits: BAM has none, and readers refuse
 * them where the output has none. */
static bool may_be_far(const struct bam_sort *s)
{
    bool may = false;
    for (size_t i = 0; i < s->n_inputs; i++)
        may |= byte_source_framing(s->inputs[i].bytes) == BYTES_RECORDS;
    return may && far_pos_fits(&s->opts->out.format);
}

static int prepare_order(struct bam_sort *s)
{
    int32_t n_ref = sam_hdr_nref(s->sam);
    s->rule = sort_rule_new(&s->opts->order, s->sam);
    if (!s->rule)
        return latch_fail(&s->latch, "out of memory");
    if (s->opts->order.by == SORT_MINHASH) {
        if (n_ref >= MINHASH_REF_MAX)
            return latch_fail(&s->latch, "%s: too many references for -M", s->inputs->name);
        if (!(s->minhash = minhash_new(&s->opts->order)))
            return latch_fail(&s->latch, "the index of minimisers (-M, -I) cannot be made");
    }
    bool keys_do = s->minhash ? minhash_decides(s->minhash) : sort_key_decides(s->rule);
    if (keys_do && may_be_far(s)) {
        sort_key_decides_until(s->rule, &s->far);
        keys_do = false;
    }
    arena_pair_set_order(&s->memory, n_ref, keys_do ? NULL : s->rule, s->minhash);
    return 0;
}

/* The memory that was asked for, or what a limit on the address space lets one
 * have of it. */
static uint64_t usable_memory(const struct sort_opts *opts)
{
    uint64_t stacks = (uint64_t)opts->n_threads * THREAD_SPACE, space = machine_address_space();
    uint64_t left = space > stacks + MEMORY_BESIDE ? space - stacks - MEMORY_BESIDE : 0;
    return opts->memory < left ? opts->memory : left;
}

static void plan_memory(struct bam_sort *s)
{
    const struct sort_opts *opts = s->opts;
    struct memory_use use = {s->budget, opts->n_threads, opts->out.level, 1 + opts->n_more, 0, 0,
                             stats_memory(opts->n_threads, sort_report_detail(opts))};
    if (opts->out.format.format != bam)
        use.htslib = memory_plan_htslib(opts->out.format.format == cram, true, opts->memory, opts->n_threads).bytes;
    for (size_t i = 0; i < s->n_inputs && s->inputs[i].bytes; i++) {
        use.htslib += byte_source_memory(s->inputs[i].bytes);
        use.header += s->inputs[i].header.sam ? sam_hdr_length(s->inputs[i].header.sam) : 0;
    }
    use.htslib += opts->verify ? sink_verify_memory(opts->n_threads) : 0;
    s->plan = memory_plan_make(&use, arena_fill_slot_memory());
}

/* BAI holds 2^29 bases per reference; an index for longer ones becomes CSI. */
static int index_format(const struct bam_sort *s)
{
    int wanted = s->opts->out.index_format;
    return wanted == HTS_FMT_BAI && !bam_index_fits_bai(s->sam) ? HTS_FMT_CSI : wanted;
}

static int open_index(struct bam_sort *s)
{
    const char *path = s->opts->out.index;
    if (!path)
        return 0;
    if (index_format(s) != s->opts->out.index_format)
        fprintf(stderr, "[W::bam_sort] %s: a reference is too long for BAI; the index is CSI\n", path);
    if (out_file_open(&s->index, path, &s->latch) < 0)
        return -1;
    if (s->index.temp)
        latch_catch_signals();
    return 0;
}

/* -M ranks reads by what it then changes, so that nobody can tell their order afterwards. */
static int open_verify(struct bam_sort *s)
{
    const struct sort_opts *opts = s->opts;
    struct sink_verify_options how = {opts->out.format.format == bam ? opts->n_threads : 0,
                                      s->minhash ? NULL : s->rule, s->out.path, &s->latch};
    struct sink_verify *verify = sink_verify_new(&how);
    if (!verify)
        return latch_fail(&s->latch, "out of memory for --verify");
    record_sink_set_verify(s->sink, verify);
    return 0;
}

static int open_checksum(struct bam_sort *s)
{
    if (out_file_open(&s->checksum, s->opts->checksum, &s->latch) < 0)
        return -1;
    if (s->checksum.temp)
        latch_catch_signals();
    return 0;
}

static int open_output(struct bam_sort *s)
{
    latch_catch_signals();
    if (out_file_open(&s->out, s->opts->out.path, &s->latch) < 0)
        return -1;
    if (!s->out.temp)
        latch_release_signals();                 /* no name to be removed */
    s->sink = record_sink_open(s->opts, s->plan.sink_slots, s->out.fd, s->out.path, &s->latch, s->stats);
    return s->sink ? 0 : -1;
}

static int open_input(struct bam_sort *s, struct sort_input *in, const char *path)
{
    const struct sort_opts *opts = s->opts;
    in->name = strcmp(path, "-") == 0 ? "standard input" : path;
    uint64_t most = s->budget > HEADER_LEAST ? s->budget : HEADER_LEAST;
    struct byte_source_options file = {path, opts->n_threads, opts->memory,
                                       memory_plan_sam(s->budget, s->n_inputs, opts->n_threads), most,
                                       opts->reference, opts->in_format.specific,
                                       far_pos_fits(&opts->out.format) ? &s->far : NULL, &s->latch, s->stats};
    if (!(in->bytes = byte_source_open(&file)))
        return -1;
    struct bgzf_source_options from = {in->bytes, in->name, opts->n_threads, s->plan.source_slots,
                                       s->plan.piece_size, &s->latch, s->stats, false};
    if (!(in->source = bgzf_source_open(&from)))
        return -1;
    return bam_header_read(&in->header, in->bytes, in->source, most, in->name, &s->latch);
}

static int open_inputs(struct bam_sort *s)
{
    const struct sort_opts *opts = s->opts;
    s->inputs = calloc(1 + opts->n_more, sizeof *s->inputs);
    if (!s->inputs)
        return latch_fail(&s->latch, "out of memory");
    s->n_inputs = 1 + opts->n_more;
    for (size_t i = 0; i < s->n_inputs; i++) {
        struct sort_input *in = &s->inputs[i];
        if (open_input(s, in, i ? opts->more[i - 1] : opts->in) < 0
            || (i && bam_header_merge(s->inputs[0].header.sam, in->header.sam, in->name, &s->latch) < 0))
            return -1;
    }
    s->sam = s->inputs[0].header.sam;
    return 0;
}

/* As samtools, which looks no further than the header. */
static int check_references(struct bam_sort *s)
{
    const char *far = far_pos_fits(&s->opts->out.format) ? NULL : far_pos_reference(s->sam);
    if (!far)
        return 0;
    return latch_fail(&s->latch, "%s: reference %s is longer than 2^31-1 and does not fit into BAM or CRAM; "
                      "use -O sam. Nothing was read", s->inputs->name, far);
}

static int reserve_memory(struct bam_sort *s)
{
    const struct sort_opts *opts = s->opts;
    plan_memory(s);                              /* again: now the headers are known */
    struct arena_fill_options fill = {&s->memory, s->inputs, s->n_inputs, s->plan.source_slots, opts->size_hint,
                                      &s->progress, &s->latch, s->stats};
    if (arena_fill_open(&s->fill, &fill) < 0)
        return -1;
    struct arena_pair_options how = {s->plan, opts->temp_prefixes, opts->n_temp_prefixes, arena_fill_least(&s->fill),
                                     arena_fill_expected, &s->fill, opts->n_threads, &s->latch, s->stats};
    return arena_pair_open(&s->memory, &how);
}

/* A FASTA that is named and not there is told before a pipe is waited for. */
static int check_fasta(struct bam_sort *s, const char *path)
{
    struct stat st;
    if (!path || hisremote(path))
        return 0;
    if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
        return latch_fail(&s->latch, "cannot read %s: it is a directory. Nothing was read", path);
    if (access(path, R_OK) < 0)
        return latch_fail(&s->latch, "cannot read %s: %s. Nothing was read", path, strerror(errno));
    return 0;
}

static void warn_of_memory(const struct sort_opts *opts)
{
    uint64_t there = machine_memory();
    if (opts->memory > there && hts_verbose >= HTS_LOG_WARNING)
        fprintf(stderr, "[W::bam_sort] %llu MB of memory may be used (-m x -@), but the machine or its cgroup has "
                "%llu MB. Use a smaller -m, or --total-memory 80%%\n", (unsigned long long)(opts->memory >> 20),
                (unsigned long long)(there >> 20));
}

/* What is known before reading of how much there is to do. */
static void expect_progress(struct bam_sort *s)
{
    bool known = true;
    for (size_t i = 0; i < s->n_inputs; i++) {
        uint64_t size = byte_source_size(s->inputs[i].bytes);
        s->progress.file_bytes += (double)size;
        known = known && size > 0;
    }
    s->progress.file_bytes = known ? s->progress.file_bytes : 0;
    s->progress.data_bytes = (double)s->opts->size_hint;
    record_sink_set_progress(s->sink, &s->progress);
}

/* Opens and allocates all that may fail, before the work that must not; first
 * what can be told before a pipe is waited for. */
static int open_all(struct bam_sort *s)
{
    if (!(s->stats = stats_new(s->opts->n_threads, sort_report_detail(s->opts))))
        return latch_fail(&s->latch, "out of memory");
    stats_phase(s->stats, PHASE_OPEN);
    progress_start(&s->progress, s->opts->progress, s->stats);
    warn_of_memory(s->opts);
    s->budget = usable_memory(s->opts);
    plan_memory(s);
    if (check_fasta(s, s->opts->reference) < 0 || check_fasta(s, s->opts->order.index_fasta) < 0
        || open_output(s) < 0 || (s->opts->checksum && open_checksum(s) < 0)
        || sort_report_open(&s->report, s->opts, &s->latch) < 0)
        return -1;
    if (open_inputs(s) < 0 || check_references(s) < 0 || reserve_memory(s) < 0 || prepare_order(s) < 0
        || (s->opts->verify && open_verify(s) < 0))
        return -1;
    expect_progress(s);
    return open_index(s);
}

/* ----------------------------------------------------------------- writing */

/* With -M the header depends on whether any record has a reference. */
static int put_header(struct bam_sort *s)
{
    const struct sort_opts *opts = s->opts;
    sam_hdr_t *sam = s->sam;
    if (bam_header_mark_sorted(sam, &opts->order, arena_pair_unplaced(&s->memory), SAMTOOLS_VERSION,
                               opts->no_pg ? NULL : opts->command_line) < 0)
        return latch_fail(&s->latch, "%s: the header could not be changed", s->inputs->name);
    return record_sink_header(s->sink, sam, opts->out.index ? out_file_name(&s->index) : NULL, index_format(s));
}

/* Puts away the rank that the merge has compared. */
static void finish_minhash(uint8_t *record)
{
    if (minhash_applies((const struct bam_record *)record))
        minhash_finish((struct bam_record *)record);
}

/* Phase 2: merge the runs and the sorted sublists into the sink. */
static int write_output(struct bam_sort *s)
{
    if (s->minhash && !minhash_decides(s->minhash))
        record_sink_set_finish(s->sink, finish_minhash);
    stats_phase(s->stats, PHASE_WRITE);
    return put_header(s) < 0 || arena_pair_merge(&s->memory, s->sink) < 0 ? -1 : record_sink_finish(s->sink);
}

/* Records in == records out, byte for byte: what makes it safe to delete the input. */
static int verify(struct bam_sort *s)
{
    uint64_t in = s->memory.arena->checksum + s->memory.turned, out = record_sink_checksum(s->sink);
    uint64_t n_in = s->memory.arena->n_records, n_out = record_sink_count(s->sink);
    if (n_in == n_out && in == out)
        return 0;
    return latch_fail(&s->latch, "%s: %llu records with checksum %016llx were read, but %llu with %016llx went "
                      "to the output. Memory may be faulty, or this is our bug: please report it",
                      s->inputs->name, (unsigned long long)n_in, (unsigned long long)in,
                      (unsigned long long)n_out, (unsigned long long)out);
}

/* --------------------------------------------------------------- the flow */

/* Phase 1: fill the memory; inflate, find and sort as the blocks come. */
static int read_input(struct bam_sort *s)
{
    stats_phase(s->stats, PHASE_READ);
    return arena_fill_read(&s->fill, s->rule);
}

static void run_phases(struct bam_sort *s)
{
    if (read_input(s) == 0 && write_output(s) == 0 && verify(s) == 0 && s->opts->checksum)
        checksum_file_write(&s->checksum, record_sink_count(s->sink), record_sink_checksum(s->sink), &s->latch);
}

static void abandon_files(struct bam_sort *s)
{
    out_file_abandon(&s->out);
    out_file_abandon(&s->index);
    out_file_abandon(&s->checksum);
}

/* Behind the parallel region: tasks that came too late still look at their slots. */
static void close_all(struct bam_sort *s)
{
    record_sink_close(s->sink);
    sort_rule_free(s->rule);
    minhash_free(s->minhash);
    for (size_t i = 0; i < s->n_inputs; i++)
        sort_input_close(&s->inputs[i]);
    free(s->inputs);
    arena_pair_close(&s->memory);
    abandon_files(s);
    arena_fill_close(&s->fill);
    sort_report_close(&s->report);
    stats_free(s->stats);
}

/* The index first: while it is new and the data are old, readers complain of it
 * and nothing worse. It must not stay so. */
static void commit(struct bam_sort *s)
{
    stats_phase(s->stats, PHASE_FINISH);
    enum stage before = stats_enter(s->stats, STAGE_WRITE);
    latch_hide_signals(true);                    /* a file may have a temporary name for a moment */
    if (out_file_finish(&s->index, &s->latch) == 0 && out_file_finish(&s->out, &s->latch) == 0
        && out_file_commit(&s->checksum, &s->latch) == 0 && out_file_commit(&s->index, &s->latch) == 0
        && out_file_commit(&s->out, &s->latch) < 0 && s->index.target)
        unlink(s->index.target);
    abandon_files(s);
    latch_hide_signals(false);
    stats_leave(s->stats, before, 0);
}

/* What the sort took. */
static void tell(struct bam_sort *s)
{
    uint64_t records = s->memory.arena ? s->memory.arena->n_records : 0;
    stats_stop(s->stats);
    if (!s->stats)
        return;
    progress_end(&s->progress, !latch_tripped(&s->latch));
    if (!latch_tripped(&s->latch))
        sort_report_write(&s->report, s->stats, records, &s->latch);
}

/* OpenMP runtimes end the process when a thread cannot be made. Each file of htslib's may
 * start one more in the sort. */
static int threads_to_be_had(const struct bam_sort *s)
{
    const struct sort_opts *opts = s->opts;
    int later = opts->out.format.format != bam;
    for (size_t i = 0; i < s->n_inputs; i++)
        later += byte_source_access(s->inputs[i].bytes) == BYTES_IN_TURN;
    int n = 1 + (opts->n_threads > 1 ? machine_threads(opts->n_threads - 1 + later) - later : 0);
    n = n > 1 ? n : 1;
    if (n < opts->n_threads && hts_verbose >= HTS_LOG_WARNING)
        fprintf(stderr, "[W::bam_sort] only %d of %d threads can be started: a limit on processes (ulimit -u, a "
                "container's) or on memory is reached. It goes on with those\n", n, opts->n_threads);
    return n;
}

int bam_sort(const struct sort_opts *opts)
{
    struct bam_sort s = {.opts = opts, .out.fd = -1, .index.fd = -1, .checksum.fd = -1};
    signal(SIGXFSZ, SIG_IGN);                    /* a limit on file sizes (ulimit -f) is an error like a full disk */
    if (open_all(&s) == 0) {
        latch_hide_signals(true);
        int n_threads = threads_to_be_had(&s);
        #pragma omp parallel num_threads(n_threads)
        #pragma omp master
        {
            latch_hide_signals(false);
            run_phases(&s);
        }
        if (!latch_tripped(&s.latch))
            commit(&s);
    }
    tell(&s);
    close_all(&s);
    latch_reraise();
    if (!latch_tripped(&s.latch))
        return EXIT_SUCCESS;
    fprintf(stderr, "samtools sort: %s.\n", s.latch.message);
    return EXIT_FAILURE;
}
