/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>
#include "base/latch.h"
#include "base/machine.h"
#include "base/message.h"
#include "base/out_file.h"
#include "base/temp_prefix.h"
#include "cli/sort_plan.h"
#include "engine/engine_opts.h"
#include "report/report.h"

enum { WARNINGS_MAX = 8, WARNING_SIZE = PATH_MAX + 200 };

/* A directory for files. */
struct place {
    char dir[PATH_MAX];
    double free;                 /* bytes; 0: unknown */
    int error;                   /* why no file can be made there; 0: one can */
    dev_t device;
};

struct plan {
    const struct engine_opts *opts;
    struct forecast f;
    struct place output, *temp;  /* output: dir is "" if it is not a file */
    double temp_free;            /* free bytes of all file systems of temp together */
    int n_warnings;
    char warnings[WARNINGS_MAX][WARNING_SIZE];
};

/* ------------------------------------------------------------------ places */

static void look_at_place(struct place *p)
{
    struct statvfs fs;
    struct stat st;
    p->error = access(p->dir, W_OK | X_OK) < 0 ? errno : 0;
    p->free = statvfs(p->dir, &fs) == 0 ? (double)fs.f_bavail * (double)fs.f_frsize : 0;
    p->device = stat(p->dir, &st) == 0 ? st.st_dev : 0;
}

static void look_at_places(struct plan *p)
{
    const struct engine_opts *o = p->opts;
    struct stat st;
    char target[PATH_MAX];
    bool there = stat(o->out.path, &st) == 0;
    if (strcmp(o->out.path, "-") != 0 && (!there || S_ISREG(st.st_mode)) && out_file_target(o->out.path, target) == 0) {
        out_file_directory(target, p->output.dir);
        look_at_place(&p->output);
    }
    for (size_t i = 0; i < o->n_temp_prefixes; i++) {
        struct place *t = &p->temp[i];
        temp_prefix_directory(o->temp_prefixes[i], t->dir);
        look_at_place(t);
        bool again = false;
        for (size_t k = 0; k < i; k++)
            again = again || p->temp[k].device == t->device;
        p->temp_free += again ? 0 : t->free;
    }
}

__attribute__((format(printf, 2, 3))) static void forewarn(struct plan *p, const char *format, ...)
{
    va_list values;
    if (p->n_warnings == WARNINGS_MAX)
        return;
    va_start(values, format);
    vsnprintf(p->warnings[p->n_warnings++], WARNING_SIZE, format, values);
    va_end(values);
}

/* Finds files that cannot be written, or do not fit. Temporary data and output may share a file system. */
static void find_warnings(struct plan *p)
{
    const struct forecast *f = &p->f;
    const struct place *out = &p->output;
    if (*out->dir && out->error)
        forewarn(p, "no file can be made in %s: %s", out->dir, strerror(out->error));
    else if (*out->dir && f->output > out->free)
        forewarn(p, "the output takes about %.0f MB, but only %.0f MB are free in %s", f->output / 1e6,
                 out->free / 1e6, out->dir);
    for (size_t i = 0; f->spills && i < p->opts->n_temp_prefixes; i++)
        if (p->temp[i].error)
            forewarn(p, "no temporary file can be made in %s: %s", p->temp[i].dir, strerror(p->temp[i].error));
    if (f->sampled && f->memory > machine_memory())
        forewarn(p, "about %.0f MB of memory are needed, but the machine or its cgroup has %.0f MB. Use a smaller %s",
                 (double)f->memory / 1e6, (double)machine_memory() / 1e6,
                 f->of == FORECAST_MERGE || f->of == FORECAST_MARKDUP ? "--total-memory" : "-m");
    bool shared = *out->dir && p->temp->device == out->device;
    if (f->temporary > p->temp_free)
        forewarn(p, "temporary data take about %.0f MB, but only %.0f MB are free in %s%s. -T names another place",
                 f->temporary / 1e6, p->temp_free / 1e6, p->temp->dir,
                 p->opts->n_temp_prefixes > 1 ? " and the others" : "");
    else if (f->spills && shared && f->output <= out->free && f->temporary + f->output > p->temp_free)
        forewarn(p, "temporary data and output take about %.0f MB together, but only %.0f MB are free in %s. -T names "
                 "another place", (f->temporary + f->output) / 1e6, p->temp_free / 1e6, out->dir);
}

/* --------------------------------------------------------------- job script */

/* The resources to request from a batch system, with slack, because a job is killed for one page too many. */
struct job_request {
    uint64_t memory_mib, tmp_mib;    /* tmp_mib: 0 if none */
};

static struct job_request make_request(const struct forecast *f)
{
    static const double MIB = 1 << 20, MEMORY_SLACK = 1.25, TMP_SLACK = 1.3;
    double most = (double)f->memory_most, memory = f->spills || !f->sampled ? most : MEMORY_SLACK * (double)f->memory;
    return (struct job_request){
        .memory_mib = (uint64_t)ceil(fmin(memory, most) / MIB),
        .tmp_mib = (uint64_t)ceil(TMP_SLACK * f->temporary / MIB),
    };
}

static void put_request(const struct forecast *f)
{
    struct job_request r = make_request(f);
    printf("#SBATCH --cpus-per-task=%d\n#SBATCH --mem=%" PRIu64 "M\n", f->n_threads, r.memory_mib);
    if (r.tmp_mib)
        printf("#SBATCH --tmp=%" PRIu64 "M\n", r.tmp_mib);
}

/* -------------------------------------------------------------------- text */

static double mb(double bytes)
{
    return bytes / 1e6;
}

static const char *order_text(const struct sort_order *order)
{
    static const char *const names[] = {
        [SORT_COORDINATE] = "coordinate", [SORT_NAME_NATURAL] = "name", [SORT_NAME_ASCII] = "name as ASCII text",
        [SORT_TAG] = "tag", [SORT_TEMPLATE] = "template coordinate",
    };
    return names[order->by];
}

static void put_inputs(const struct plan *p)
{
    const struct forecast *f = &p->f;
    size_t n = p->opts->in.n;
    printf("inputs: %zu", n);
    if (f->looked)
        printf(" (BAM %zu, SAM %zu, others %zu), %.1f MB\nreferences: %zu", f->n_bam, f->n_sam,
               n - f->n_bam - f->n_sam, mb((double)f->file_bytes), f->n_references);
    printf("\norder: by %s\n", order_text(&p->opts->order));
    if (!f->sampled)
        printf("records: not estimated, nor is the output: %s\n",
               f->looked ? "not all inputs are BAM, or one has no records or is read in part"
                         : "not all inputs are files, and nothing was read");
}

static void put_input(const struct plan *p)
{
    const struct forecast *f = &p->f;
    const char *name = engine_opts_input(p->opts);
    if (!f->looked)
        printf("input: not a file, so nothing was read: records, temporary space and output are not known\n");
    else if (!f->sampled)
        printf("input: %s: not BAM, or empty: records, temporary space and output are not estimated\n", name);
    else
        printf("input: %s%s, %.1f MB\n", name, p->opts->in.n > 1 ? " and others" : "", mb((double)f->file_bytes));
}

/* Returns whether all records may wait in memory, so that none goes to a temporary file. */
static bool waits_in_memory(const struct forecast *f)
{
    return f->sampled && f->record_bytes <= (double)f->fits;
}

static void put_waiting(const struct forecast *f)
{
    if (f->spills)
        printf("records that wait: all, of which %.1f MB fit into memory\n", mb((double)f->fits));
    else if (waits_in_memory(f))
        printf("records that wait: in memory, without temporary files\n");
    else
        printf("records that wait: up to %.1f MB in memory, the others in temporary files\n",
               mb((double)f->fits));
}

static void put_temporary(const struct plan *p)
{
    const struct forecast *f = &p->f;
    printf("temporary: %.1f MB of spilled data, of which %.1f MB go to disk in %zu file%s\n", mb(f->packed),
           mb(f->temporary), p->opts->n_temp_prefixes, p->opts->n_temp_prefixes > 1 ? "s" : "");
    for (size_t i = 0; i < p->opts->n_temp_prefixes; i++)
        printf("temporary place: %s, %.1f MB free\n", p->temp[i].dir, mb(p->temp[i].free));
    if (f->memory_to_fit)
        printf("in memory with: --total-memory %.0fM\n", ceil((double)f->memory_to_fit / (1 << 20)));
}

static void put_spill(const struct plan *p)
{
    const struct forecast *f = &p->f;
    if (f->of == FORECAST_MERGE)
        return;
    if (f->collates)
        printf("collated: before that, by a separate sort; each of the two has half of the memory\n");
    if (f->of == FORECAST_MARKDUP)
        put_waiting(f);
    else if (!f->sampled)
        printf("fits in memory: up to %.1f MB uncompressed, of which each record takes 16 bytes more%s\n",
               mb((double)f->fits), p->opts->size_hint > f->fits ? "; not what --size-hint says" : "");
    else if (!f->spills)
        printf("sorted: in memory, without temporary files\n");
    else
        printf("sorted: not in memory at once; about %.0f run%s, of which one merge takes %" PRIu64 "\n", f->runs,
               f->runs > 1 ? "s" : "", f->merged_at_once);
    if (f->spills)
        put_temporary(p);
}

static void put_text(const struct plan *p)
{
    const struct forecast *f = &p->f;
    if (f->of == FORECAST_MERGE)
        put_inputs(p);
    else
        put_input(p);
    if (f->sampled)
        printf("records: about %.0f, %.1f MB uncompressed\n", f->records, mb(f->record_bytes));
    bool known = f->sampled && f->of != FORECAST_MERGE && (f->of != FORECAST_MARKDUP || f->keeps);
    printf("memory: %s%.1f MB\n", known ? "about " : "at most ", mb((double)f->memory));
    if (f->large)
        printf("large records: one of %.1f MB was seen, for which up to %.1f MB of this are needed\n",
               mb((double)f->large), mb((double)f->memory_of_large));
    put_spill(p);
    if (f->copies)
        printf("copied blocks: %s%s\n", f->copies_none ? "none: " : "", f->copies_none ? f->copies_none
               : f->of == FORECAST_MERGE ? "where the records of one input follow each other"
               : "if the input is in this order");
    if (f->output > 0)
        printf("output: about %.1f MB\n", mb(f->output));
    if (f->output > 0 && *p->output.dir)
        printf("output place: %s, %.1f MB free\n", p->output.dir, mb(p->output.free));
    put_request(f);
    for (int i = 0; i < p->n_warnings; i++)
        printf("warning: %s\n", p->warnings[i]);
}

/* -------------------------------------------------------------------- JSON */

/* Prints a value, or null if it is unknown. */
static void put_count(const char *name, double value, bool known)
{
    if (known)
        printf("  \"%s\": %.0f,\n", name, value);
    else
        printf("  \"%s\": null,\n", name);
}

static void put_text_or_null(const char *name, const char *text)
{
    printf("  \"%s\": ", name);
    if (text)
        report_json_string(stdout, text);
    fputs(text ? ",\n" : "null,\n", stdout);
}

static void put_list(const char *name, size_t n, const char *(*text)(const struct plan *p, size_t i),
                     const struct plan *p, const char *end)
{
    printf("  \"%s\": [", name);
    for (size_t i = 0; i < n; i++) {
        fputs(i ? ", " : "", stdout);
        report_json_string(stdout, text(p, i));
    }
    printf("]%s\n", end);
}

static const char *warning_text(const struct plan *p, size_t i) { return p->warnings[i]; }
static const char *temp_text(const struct plan *p, size_t i) { return p->temp[i].dir; }

/* Prints the fields that a merge does not have. */
static void put_spill_json(const struct plan *p)
{
    const struct forecast *f = &p->f;
    bool known = f->sampled && (f->of != FORECAST_MARKDUP || f->spills || waits_in_memory(f));
    put_count("large_record_bytes", (double)f->large, f->large > 0);
    put_count("fits_bytes", (double)f->fits, true);
    put_count("memory_to_fit_bytes", (double)f->memory_to_fit, f->memory_to_fit > 0);
    printf("  \"in_memory\": %s,\n", !known ? "null" : f->spills ? "false" : "true");
    if (f->of == FORECAST_SORMADUP)
        printf("  \"collates\": %s,\n", f->collates ? "true" : "false");
    put_count("runs", f->runs, f->sampled && f->of != FORECAST_MARKDUP);
    put_count("packed_bytes", f->packed, known);
    put_count("temporary_bytes", f->temporary, known);
    put_count("temporary_free_bytes", p->temp_free, true);
    put_count("request_tmp_mib", (double)make_request(f).tmp_mib, true);
    put_list("temporary_places", p->opts->n_temp_prefixes, temp_text, p, ",");
}

/* Prints the fields that a sort does not have. */
static void put_merge_json(const struct plan *p)
{
    const struct forecast *f = &p->f;
    put_count("inputs", (double)p->opts->in.n, true);
    put_count("bam_inputs", (double)f->n_bam, f->looked);
    put_count("sam_inputs", (double)f->n_sam, f->looked);
    put_count("references", (double)f->n_references, f->looked);
    printf("  \"order\": \"%s\",\n", order_text(&p->opts->order));
}

static void put_json(const struct plan *p)
{
    const struct forecast *f = &p->f;
    struct job_request r = make_request(f);
    bool sampled = f->sampled;
    printf("{\n  \"input\": ");
    report_json_string(stdout, engine_opts_input(p->opts));
    printf(",\n  \"threads\": %d,\n", f->n_threads);
    put_count("input_bytes", (double)f->file_bytes, f->file_bytes > 0);
    put_count("records", f->records, sampled);
    put_count("record_bytes", f->record_bytes, sampled);
    put_count("memory_bytes", (double)f->memory, true);
    put_count("memory_most_bytes", (double)f->memory_most, true);
    if (f->of == FORECAST_MERGE)
        put_merge_json(p);
    else
        put_spill_json(p);
    put_count("output_bytes", f->output, f->output > 0);
    put_count("output_free_bytes", p->output.free, *p->output.dir != 0);
    if (f->copies)
        put_text_or_null("copied_none_because", f->copies_none);
    put_count("request_mem_mib", (double)r.memory_mib, true);
    put_list("warnings", (size_t)p->n_warnings, warning_text, p, "");
    printf("}\n");
}

int sort_plan(const struct engine_opts *opts, struct forecast forecast)
{
    struct plan *p = calloc(1, sizeof *p);
    int status = EXIT_FAILURE;
    if (latch_failed(&forecast.latch)) {
        message_error("%s.", forecast.latch.message);
        goto out;
    }
    if (!p || !(p->temp = calloc(opts->n_temp_prefixes + 1, sizeof *p->temp))) {
        message_error("out of memory");
        goto out;
    }
    p->opts = opts;
    p->f = forecast;
    look_at_places(p);
    find_warnings(p);
    if (opts->plan == PLAN_JSON)
        put_json(p);
    else
        put_text(p);
    if (fflush(stdout) == 0)
        status = EXIT_SUCCESS;
    else
        message_error("writing to standard output failed: %s", strerror(errno));
out:
    free(p ? p->temp : NULL);
    free(p);
    return status;
}
