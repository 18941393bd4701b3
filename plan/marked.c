/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <htslib/kstring.h>
#include "bam/bam_header.h"
#include "bam/plain_header.h"
#include "base/message.h"
#include "base/stats.h"
#include "duplicates/dup_counts.h"
#include "plan/markdup_opts.h"
#include "plan/marked.h"
#include "plan/marked_slice.h"
#include "plan/marked_store.h"
#include "plan/memory_plan.h"
#include "plan/sort_memory.h"
#include "report/sort_report.h"
#include "write/record_list.h"
#include "write/record_sink.h"
#include "write/written.h"

/* -------------------------------------------------------------------- open */

static const struct sort_opts *common(const struct marked *m)
{
    return &m->opts->common;
}

static int out_of_memory(struct marked *m)
{
    return latch_fail(m->latch, "%s: out of memory", sort_opts_input(common(m)));
}

/* As samtools, which looks no further than the header. */
static int check_order(struct marked *m, sam_hdr_t *lines)
{
    kstring_t order = KS_INITIALIZE;
    bool by_name = sam_hdr_find_tag_hd(lines, "SO", &order) == 0 && strcmp(order.s, "queryname") == 0;
    free(order.s);
    return by_name ? latch_fail(m->latch, "%s: is sorted by queryname, and must be sorted by coordinate. Nothing was "
                                "written; use samtools sort first", sort_opts_input(common(m))) : 0;
}

/* As samtools, which goes on without groups where they cannot be told apart. */
static int name_groups(struct marked *m, sam_hdr_t *lines)
{
    int n = m->opts->use_read_groups ? sam_hdr_count_lines(lines, "RG") : 0;
    const char *why = n > 0 ? NULL : "the header has no @RG line";
    for (int i = 0; i < n && !why; i++) {
        const char *id = sam_hdr_line_name(lines, "RG", i);
        if (!id || name_table_find(&m->groups, id, strlen(id)) >= 0)
            why = "two @RG lines have one ID";
        else if (name_table_add(&m->groups, id, strlen(id)) < 0)
            return out_of_memory(m);
    }
    if (m->opts->use_read_groups && why)
        message_warning("%s: %s, so read groups are not told apart", sort_opts_input(common(m)), why);
    else if (m->opts->use_read_groups)
        m->rule.groups = &m->groups;
    return 0;
}

static int read_header(struct marked *m)
{
    sam_hdr_t *sam = m->sam, *lines = plain_header_is(sam) ? plain_header_lines(sam) : sam;
    if (!lines)
        return out_of_memory(m);
    int status = m->in.n && check_order(m, lines) < 0 ? -1 : name_groups(m, lines);
    if (lines != sam)
        sam_hdr_destroy(lines);
    return status;
}

/* Its records are taken in chunks, as a merge takes them. */
static int take_header(void *marked, struct sort_input *in)
{
    (void)marked;
    (void)in;
    return 0;
}

static int open_input(struct marked *m)
{
    const struct sort_opts *o = common(m);
    struct sort_inputs_options how = sort_memory_inputs(o, &o->in, &m->rings, m->latch, m->stats);
    how.join = take_header;
    if (sort_inputs_open(&m->in, &how) < 0)
        return -1;
    m->sam = m->in.each->header.sam;
    if (read_header(m) < 0)
        return -1;
    if (written_takes_reference(&o->out.format) && !(m->lengths = bam_header_lengths(m->sam)))
        return out_of_memory(m);
    m->wish.lengths = m->lengths;
    m->in.each->merge = &m->wish;
    return 0;
}

struct memory_rings marked_rings(const struct sort_opts *opts)
{
    struct memory_rings rings = sort_memory_rings(opts, &opts->in, MEMORY_AT_ONCE, true);
    rings.job.holds = true;
    return rings;
}

int marked_look(struct marked *m, const struct markdup_opts *opts)
{
    m->opts = opts;
    m->rings = marked_rings(&opts->common);
    return open_input(m);
}

static int open_rule(struct marked *m)
{
    const struct markdup_opts *o = m->opts;
    m->rule.mode = o->mode;
    m->rule.include_fails = o->include_fails;
    memcpy(m->rule.barcode_tag, o->barcode_tag, sizeof o->barcode_tag);
    m->rule.barcode_group = o->barcode_group;
    if (o->distance && dup_spots_open(&m->spots, o->read_coords, o->coords_order))
        return latch_fail(m->latch, "out of memory for the expression '%s'", o->read_coords);
    m->reads_spots = o->distance;
    if (!o->barcode_regex)
        return 0;
    if (regcomp(&m->barcode, o->barcode_regex, REG_EXTENDED) != 0)
        return latch_fail(m->latch, "out of memory for the expression '%s'", o->barcode_regex);
    m->rule.barcode_name = &m->barcode;
    return 0;
}

/* Slices have so many bytes of records, mostly. What the packer gathers is a multiple of a key: keys lie at its end. */
static int open_store(struct marked *m, size_t records_size)
{
    size_t slice = marked_slice_memory_of(records_size);
    struct marked_store_options store = {
        .prefixes = common(m)->temp_prefixes,
        .n_prefixes = common(m)->n_temp_prefixes,
        .slice_size = slice / sizeof(struct bam_key) * sizeof(struct bam_key),
        .n_threads = m->rings.job.n_threads,
        .latch = m->latch,
        .stats = m->stats,
    };
    return (m->store = marked_store_open(&store)) ? 0 : -1;
}

/* For tests, the environment says how much, as for a sort. */
static size_t room_or_test(size_t room)
{
    const char *test = getenv("SAMTOOLS_OMP_ARENA");
    return test ? strtoull(test, NULL, 0) : room;
}

/* What the plan leaves of all is for records that wait, too. */
size_t marked_room(const struct memory_plan *plan)
{
    const struct memory_rings *r = &plan->rings;
    size_t left = r->job.all > plan->fixed ? (size_t)(r->job.all - plan->fixed) : 0;
    return room_or_test(marked_flow_room(r->job.n_threads, r->sam.records_size) + left);
}

static int divide_memory(struct marked *m)
{
    struct memory_plan plan;
    size_t records_size = m->rings.sam.records_size;
    struct output_use output = written_use(&common(m)->out, m->sam, &m->rings);
    if (sort_memory_plan(&plan, &m->rings, common(m), &m->in, output, m->latch) < 0)
        return -1;
    m->room = marked_room(&plan);
    return open_store(m, records_size);
}

static enum chunk_state advance(void *marked)
{
    struct marked *m = marked;
    enum chunk_state state = chunk_reader_advance(passed_records_chunks(m->in.each->passed));
    if (state == CHUNK_NONE)
        sort_input_end(m->in.each);
    return state;
}

static int take(void *marked, struct record_slice *slice)
{
    struct marked *m = marked;
    return chunk_reader_take(passed_records_chunks(m->in.each->passed), slice);
}

static bool help(void *marked)
{
    struct marked *m = marked;
    return chunk_reader_help(passed_records_chunks(m->in.each->passed));
}

static struct marked_rule mark_rule(const struct marked *m)
{
    const struct markdup_opts *o = m->opts;
    return (struct marked_rule){
        .read = &m->rule,
        .mark = {
            .clear = o->clear,
            .counts = o->counts,
            .others = o->others,
            .umi = o->move_umi ? &m->barcode : NULL,
            .umi_group = o->barcode_group,
            .umi_separator = o->umi_separator,
        },
        .removes = o->remove,
        .tells = o->originals || o->counts || o->distance || o->others || o->clear || o->move_umi,
        .others = o->others ? &m->others : NULL,
    };
}

static int open_flow(struct marked *m, struct marked_source source)
{
    const struct markdup_opts *o = m->opts;
    struct marked_flow_options how = {
        .source = source,
        .rule = mark_rule(m),
        .tell = {
            .names = o->originals,
            .counts = o->counts,
            .pass = o->pass,
            .distance = o->distance,
            .spots = o->distance ? &m->spots : NULL,
            .others = o->others ? &m->others : NULL,
            .warnings = &m->warnings,
        },
        .follows = o->originals || o->counts || o->distance || o->others,
        .window = o->window,
        .n_threads = m->rings.job.n_threads,
        .room = m->room,
        .store = m->store,
        .n_counts = 1 + name_table_count(&m->groups),
        .path = sort_opts_input(common(m)),
        .sink = m->sink,
        .latch = m->latch,
        .stats = m->stats,
    };
    return (m->flow = marked_flow_open(&how)) ? 0 : -1;
}

int marked_open(struct marked *m, const struct markdup_opts *opts, struct written *to)
{
    const struct sort_opts *o = &opts->common;
    m->opts = opts;
    m->to = to;
    if (!(m->stats = stats_new(o->n_threads, sort_report_detail(&o->report))))
        return latch_fail(m->latch, "out of memory");
    stats_phase(m->stats, PHASE_OPEN);
    progress_start(&m->progress, o->progress, m->stats);
    m->rings = marked_rings(o);
    if (written_open(to, &o->out, &m->rings, sort_opts_input(o), m->latch, m->stats) < 0)
        return -1;
    m->sink = to->sink;
    record_sink_set_progress(m->sink, &m->progress);
    return open_input(m) < 0 || open_rule(m) < 0 || divide_memory(m) < 0
        || written_prepare(to, m->sam, NULL) < 0 ? -1
         : open_flow(m, (struct marked_source){advance, take, help, m});
}

int marked_open_behind(struct marked *m, const struct markdup_opts *opts, struct written *to,
                       const struct marked_before *before)
{
    m->opts = opts;
    m->to = to;
    m->sink = to->sink;
    m->sam = before->sam;
    m->stats = before->stats;
    m->rings = *before->rings;
    m->room = marked_flow_room(m->rings.job.n_threads, before->slice_size);
    m->room = room_or_test(m->room > before->room ? m->room : before->room);
    return read_header(m) < 0 || open_rule(m) < 0 || open_store(m, before->slice_size) < 0 ? -1
         : open_flow(m, before->source);
}

/* ------------------------------------------------------------------ records */

int marked_begin(struct marked *m)
{
    return written_header(m->to, m->sam, NULL, false, false) < 0 ? -1 : sort_input_begin(m->in.each);
}

int marked_next(struct marked *m, struct record_list *list)
{
    progress_tick(&m->progress);
    return marked_flow_next(m->flow, list);
}

uint64_t marked_count(const struct marked *m)
{
    return m->flow ? marked_flow_read(m->flow) : 0;
}

/* The sum over all groups. */
static struct dup_counts sum_of(const struct dup_counts *counts, size_t n)
{
    struct dup_counts sum = {.read = 0};
    for (size_t i = 0; i < n; i++)
        dup_counts_add(&sum, &counts[i]);
    return sum;
}

/* Each record that was read is written, or was left out. */
static int compare(struct marked *m, const struct dup_counts *counts, size_t n)
{
    struct dup_counts sum = sum_of(counts, n);
    uint64_t seen = marked_flow_read(m->flow), written = marked_flow_written(m->flow);
    uint64_t dropped = marked_flow_dropped(m->flow);
    return sum.read == seen && sum.examined + sum.excluded == seen && written + dropped == seen
         ? 0 : latch_fail(m->latch, "%s: %llu records were read, but %llu were looked at, %llu written and %llu left "
                          "out. Memory may be faulty, or this is our bug: please report it", sort_opts_input(common(m)),
                          (unsigned long long)seen, (unsigned long long)sum.read, (unsigned long long)written,
                          (unsigned long long)dropped);
}

/* Before the output has its name: memory may be short. */
static int make_statistics(struct marked *m, const struct dup_counts *counts)
{
    const struct markdup_opts *o = m->opts;
    int (*put)(struct byte_buffer *, const char *, const struct dup_counts *, const struct name_table *) =
        o->json ? dup_counts_json : dup_counts_text;
    return o->stats && put(&m->statistics, o->command, counts, m->rule.groups) < 0 ? out_of_memory(m) : 0;
}

int marked_end(struct marked *m)
{
    size_t n = 1 + name_table_count(&m->groups);
    struct dup_counts *counts = calloc(n, sizeof *counts);
    if (!counts)
        return out_of_memory(m);
    marked_flow_counts(m->flow, counts);
    int status = compare(m, counts, n) < 0 ? -1 : make_statistics(m, counts);
    free(counts);
    return status < 0 ? -1 : written_finish(m->to, marked_flow_written(m->flow), marked_flow_checksum(m->flow));
}

/* -------------------------------------------------------------------- close */

static int write_statistics(struct marked *m)
{
    const struct byte_buffer *text = &m->statistics;
    const char *path = common(m)->statistics;
    FILE *to = path ? fopen(path, "w") : NULL;
    if (path && !to)
        message_warning("cannot write statistics to %s; they go to standard error", path);
    bool well = fwrite(text->p, 1, text->n, to ? to : stderr) == text->n;
    if (to && (fclose(to) != 0 || !well))
        return latch_fail(m->latch, "cannot write statistics to %s", path);
    return 0;
}

/* What is to be said of records that are in place. */
static void say_all(struct marked *m)
{
    if (latch_tripped(m->latch))
        return;
    dup_warnings_end(&m->warnings);
    if (m->opts->stats)
        write_statistics(m);
}

static void free_all(struct marked *m)
{
    marked_flow_close(m->flow);
    marked_store_close(m->store);
    name_table_free(&m->groups);
    if (m->rule.barcode_name)
        regfree(&m->barcode);
    if (m->reads_spots)
        dup_spots_close(&m->spots);
    dup_others_free(&m->others);
    free(m->statistics.p);
}

void marked_close(struct marked *m)
{
    say_all(m);
    free_all(m);
}

void marked_look_end(struct marked *m)
{
    free_all(m);
    sort_inputs_close(&m->in);
    free(m->lengths);
}

void marked_finish(struct marked *m)
{
    stats_phase(m->stats, PHASE_FINISH);
    if (!latch_tripped(m->latch))
        written_commit(m->to);
    say_all(m);
    written_close(m->to);
    marked_look_end(m);
    stats_stop(m->stats);
    if (m->stats)
        progress_end(&m->progress, !latch_tripped(m->latch));
}
