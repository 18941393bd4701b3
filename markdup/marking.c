/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "bam/plain_header.h"
#include "base/engine.h"
#include "base/message.h"
#include "markdup/dup_counts.h"
#include "engine/driver.h"
#include "markdup/markdup_opts.h"
#include "markdup/marked_store.h"
#include "markdup/marking.h"
#include "write/record_list.h"
#include "write/record_sink.h"

/* -------------------------------------------------------------------- open */

static const struct engine_opts *common(const struct marking *m)
{
    return &m->opts->common;
}

static int out_of_memory(struct marking *m)
{
    return latch_fail(m->d->engine.latch, "%s: out of memory", engine_opts_input(common(m)));
}

/* Names the read groups. Like samtools, continues without groups if they cannot be distinguished. lines: the header;
 * NULL: its lines cannot be parsed. */
static int name_groups(struct marking *m, sam_hdr_t *lines)
{
    int n = lines ? sam_hdr_count_lines(lines, "RG") : 0;
    const char *why = n > 0 ? NULL : "the header has no @RG line";
    for (int i = 0; i < n && !why; i++) {
        const char *id = sam_hdr_line_name(lines, "RG", i);
        if (!id || name_table_find(&m->groups, id, strlen(id)) >= 0)
            why = "two @RG lines have the same ID";
        else if (name_table_add(&m->groups, id, strlen(id)) < 0)
            return out_of_memory(m);
    }
    if (why)
        message_warning("%s: %s, so read groups are not distinguished", engine_opts_input(common(m)), why);
    else
        m->rule.groups = &m->groups;
    return 0;
}

static int read_header(struct marking *m, sam_hdr_t *sam, bool is_broken)
{
    if (is_broken || !m->opts->use_read_groups)
        return m->opts->use_read_groups ? name_groups(m, NULL) : 0;
    sam_hdr_t *lines = plain_header_is(sam) ? plain_header_lines(sam) : sam;
    if (!lines)
        return out_of_memory(m);
    int status = name_groups(m, lines);
    if (lines != sam)
        sam_hdr_destroy(lines);
    return status;
}

static int open_rule(struct marking *m)
{
    const struct markdup_opts *o = m->opts;
    m->rule.mode = o->mode;
    m->rule.include_fails = o->include_fails;
    memcpy(m->rule.barcode_tag, o->barcode_tag, sizeof o->barcode_tag);
    m->rule.barcode_group = o->barcode_group;
    if (o->distance && dup_coords_open(&m->coords_rule, o->read_coords, o->coords_order))
        return latch_fail(m->d->engine.latch, "out of memory for the expression '%s'", o->read_coords);
    m->reads_coords = o->distance;
    if (!o->barcode_regex)
        return 0;
    if (regcomp(&m->barcode, o->barcode_regex, REG_EXTENDED) != 0)
        return latch_fail(m->d->engine.latch, "out of memory for the expression '%s'", o->barcode_regex);
    m->rule.barcode_name = &m->barcode;
    return 0;
}

/* The packer's buffer is a multiple of a key, because keys are at its end. */
static int open_store(struct marking *m, const struct marking_options *how)
{
    size_t slice = marked_slice_memory_of(how->slice_size);
    struct marked_store_options store = {
        .store = engine_opts_store(common(m), &m->d->engine),
        .slice_size = slice / sizeof(struct bam_key) * sizeof(struct bam_key),
    };
    return (m->store = marked_store_open(&store)) ? 0 : -1;
}

/* For tests, an environment variable sets the size, as for a sort. */
size_t marking_room(int n_threads, size_t slice_size, size_t left)
{
    const char *test = getenv("SAMTOOLS_OMP_ARENA");
    return test ? strtoull(test, NULL, 0) : marked_flow_room(n_threads, slice_size) + left;
}

static struct marked_rule mark_rule(const struct marking *m)
{
    const struct markdup_opts *o = m->opts;
    return (struct marked_rule){
        .read = &m->rule,
        .mark = {
            .clear = o->clear,
            .counts = o->counts,
            .pass = o->pass,
            .others = o->others,
            .ends_at_nul = o->common.out.format.format == cram,
            .umi = o->move_umi ? &m->barcode : NULL,
            .umi_group = o->barcode_group,
            .umi_separator = o->umi_separator,
        },
        .removes = o->remove,
        .adds_tags = o->originals || o->counts || o->distance || o->others || o->clear || o->move_umi,
        .others = o->others ? &m->others : NULL,
    };
}

static int open_flow(struct marking *m, const struct marking_options *to)
{
    const struct markdup_opts *o = m->opts;
    struct marked_flow_options how = {
        .source = to->source,
        .rule = mark_rule(m),
        .chains = {
            .names = o->originals,
            .counts = o->counts,
            .pass = o->pass,
            .distance = o->distance,
            .coords_rule = o->distance ? &m->coords_rule : NULL,
            .others = o->others ? &m->others : NULL,
            .warnings = &m->warnings,
        },
        .follows = o->originals || o->counts || o->distance || o->others,
        .window = o->window,
        .room = marking_room(to->d->engine.n_threads, to->slice_size, to->left),
        .store = m->store,
        .n_counts = 1 + name_table_count(&m->groups),
        .path = engine_opts_input(common(m)),
        .sink = m->d->out.sink,
        .engine = &m->d->engine,
    };
    return (m->flow = marked_flow_open(&how)) ? 0 : -1;
}

int marking_open(struct marking *m, const struct marking_options *how)
{
    m->opts = how->opts;
    m->d = how->d;
    m->source = how->source;
    return read_header(m, how->sam, how->is_broken) < 0 || open_rule(m) < 0 || open_store(m, how) < 0
         ? -1 : open_flow(m, how);
}

/* ------------------------------------------------------------------ records */

static enum chunk_state advance(void *marking)
{
    return marked_flow_advance(((struct marking *)marking)->flow);
}

static int take(void *marking, struct record_list *list)
{
    struct marking *m = marking;
    progress_tick(&m->d->progress);
    marked_flow_take(m->flow, list);
    return 0;
}

static bool help(void *marking)
{
    return marked_flow_help(((struct marking *)marking)->flow);
}

uint64_t marking_count(const struct marking *m)
{
    return m->flow ? marked_flow_totals(m->flow)->taken.n : 0;
}

/* The sum over all groups. */
static struct dup_counts sum_of(const struct dup_counts *counts, size_t n)
{
    struct dup_counts sum = {.read = 0};
    for (size_t i = 0; i < n; i++)
        dup_counts_add(&sum, &counts[i]);
    return sum;
}

/* Compares the records taken with those the source gave. Each record that was taken was keyed, and is given or was left
 * out. */
static int compare(struct marking *m, const struct dup_counts *counts, size_t n)
{
    const struct marked_totals *t = marked_flow_totals(m->flow);
    const char *path = engine_opts_input(common(m));
    struct dup_counts sum = sum_of(counts, n);
    struct tally taken = {.n = t->taken.n, .counts_only = true}, seen = {.n = sum.read};
    struct tally judged = {.n = sum.examined + sum.excluded}, gone = {.n = t->given.n + t->dropped};
    struct latch *latch = m->d->engine.latch;
    return record_stream_end(m->source, t->taken, "on the way into markdup", path, latch) < 0
        || tally_compare(taken, seen, "where markdup makes keys", path, latch) < 0
        || tally_compare(taken, judged, "where markdup finds duplicates", path, latch) < 0
        || tally_compare(taken, gone, "where markdup marks duplicates", path, latch) < 0 ? -1 : 0;
}

/* The command line as in statistics, where other programs expect "samtools markdup": another program name is replaced
 * by it. */
static char *statistics_command(const char *line)
{
    static const char command[] = " markdup", program[] = "samtools";
    const char *at = strstr(line, command);
    size_t n = sizeof program - 1, size = strlen(line) + sizeof program;
    bool is_named = !at || (at - line >= (ptrdiff_t)n && strncmp(at - n, program, n) == 0);
    char *text = malloc(size);
    if (text)
        snprintf(text, size, "%s%s", is_named ? "" : program, is_named ? line : at);
    return text;
}

/* Called before the output gets its name, because memory may run out. */
static int make_statistics(struct marking *m, const struct dup_counts *counts)
{
    const struct markdup_opts *o = m->opts;
    int (*put)(struct byte_buffer *, const char *, const struct dup_counts *, const struct name_table *) =
        o->json ? dup_counts_json : dup_counts_text;
    if (!o->stats)
        return 0;
    char *command = statistics_command(o->common.out.command_line);
    bool is_put = command && put(&m->statistics, command, counts, m->rule.groups) == 0;
    free(command);
    return is_put ? 0 : out_of_memory(m);
}

static int end(void *marking, struct tally *given)
{
    struct marking *m = marking;
    size_t n = 1 + name_table_count(&m->groups);
    struct dup_counts *counts = calloc(n, sizeof *counts);
    if (!counts)
        return out_of_memory(m);
    marked_flow_counts(m->flow, counts);
    int status = compare(m, counts, n) < 0 ? -1 : make_statistics(m, counts);
    free(counts);
    *given = marked_flow_totals(m->flow)->given;
    return status;
}

struct list_stream marking_stream(struct marking *m)
{
    return (struct list_stream){advance, take, help, end, m};
}

/* -------------------------------------------------------------------- close */

static int write_statistics(struct marking *m)
{
    const struct byte_buffer *text = &m->statistics;
    const char *path = common(m)->statistics;
    FILE *to = path ? fopen(path, "w") : NULL;
    if (path && !to)
        message_warning("cannot write statistics to %s; they go to standard error", path);
    bool well = fwrite(text->p, 1, text->n, to ? to : stderr) == text->n;
    if (to && (fclose(to) != 0 || !well))
        return latch_fail(m->d->engine.latch, "cannot write statistics to %s", path);
    return 0;
}

/* Prints the warnings and counts once all records are in place. */
static void say_all(struct marking *m)
{
    if (latch_tripped(m->d->engine.latch))
        return;
    progress_end(&m->d->progress, true, marking_count(m));
    dup_warnings_end(&m->warnings, m->opts->barcode_tag);
    if (m->opts->stats)
        write_statistics(m);
}

void marking_close(struct marking *m)
{
    if (!m->opts)
        return;
    say_all(m);
    marked_flow_close(m->flow);
    marked_store_close(m->store);
    name_table_free(&m->groups);
    if (m->rule.barcode_name)
        regfree(&m->barcode);
    if (m->reads_coords)
        dup_coords_close(&m->coords_rule);
    dup_others_free(&m->others);
    free(m->statistics.p);
}
