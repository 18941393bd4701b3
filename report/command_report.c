/* SPDX-License-Identifier: MIT */
#include <limits.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <htslib/hfile.h>
#include "base/latch.h"
#include "base/machine.h"
#include "report/report.h"
#include "report/report_file.h"
#include "report/report_request.h"
#include "report/command_report.h"
#include "base/temp_prefix.h"
#include "base/version.h"

enum clocks_detail command_report_detail(const struct report_request *request)
{
    if (request->trace_file || request->format == REPORT_HTML || request->format == REPORT_FOLDER)
        return CLOCKS_SPANS;
    return request->format ? CLOCKS_CPU : CLOCKS_TIMES;
}

/* ------------------------------------------------------------------- files */

/* Adds the sizes of the inputs; if one is unknown, the sum is unknown. */
static struct report_place place_of_inputs(const struct report_request *o)
{
    struct report_place all = report_place_of("", o->inputs[0], STDIN_FILENO);
    for (size_t i = 1; i < o->n_inputs; i++) {
        uint64_t bytes = report_place_of("", o->inputs[i], STDIN_FILENO).bytes;
        bool known = bytes != REPORT_UNKNOWN && all.bytes != REPORT_UNKNOWN;
        all.bytes = known ? all.bytes + bytes : REPORT_UNKNOWN;
    }
    return all;
}

static bool is_dash(const char *path)
{
    return strcmp(path, "-") == 0;
}

int command_report_open(struct command_report *s, const struct report_request *request, struct latch *latch)
{
    s->request = request;
    s->report.fd = s->trace.fd = -1;
    if (request->format) {
        s->in = place_of_inputs(request);
        s->out_before = is_dash(request->output) ? report_place_of("", "-", STDOUT_FILENO).bytes : 0;
    }
    return (request->file && out_file_open(&s->report, request->file, latch) < 0)
        || (request->trace_file && out_file_open(&s->trace, request->trace_file, latch) < 0) ? -1 : 0;
}

void command_report_close(struct command_report *s)
{
    if (s->request) {
        out_file_abandon(&s->report);
        out_file_abandon(&s->trace);
    }
}

/* ------------------------------------------------------------------- facts */

void command_report_measure_memory(struct command_report *s)
{
    if (s->request->format)
        s->huge_pages = machine_huge_pages();
}

static const char *shown_path(const char *path, const char *dash)
{
    return is_dash(path) ? dash : path;
}

static enum report_file kind_of(const char *path, int dash)
{
    struct stat st;
    if (!is_dash(path) && hisremote(path))
        return REPORT_REMOTE;
    bool there = (is_dash(path) ? fstat(dash, &st) : stat(path, &st)) == 0;
    return there && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode)) ? REPORT_PIPE : REPORT_REGULAR;
}

/* Returns the place of the output, with the bytes that we wrote: if standard output is a file, other programs may have
 * written to it before us. */
static struct report_place place_of_output(const struct command_report *s)
{
    struct report_place out = report_place_of("", s->request->output, STDOUT_FILENO);
    out.bytes -= out.bytes != REPORT_UNKNOWN && s->out_before != REPORT_UNKNOWN ? s->out_before : 0;
    return out;
}

static struct report_place place_of_temp(const char *prefix)
{
    char folder[PATH_MAX];
    return report_place_of("", prefix ? temp_prefix_directory(prefix, folder) : "", -1);
}

static struct report_facts gather_facts(struct command_report *s, const struct clocks *clocks, uint64_t records)
{
    const struct report_request *o = s->request;
    struct machine_usage usage = machine_usage();
    uint64_t queue = machine_run_queue("");
    bool converted = clocks_total(clocks, STAGE_CONVERT).events > 0;
    return (struct report_facts){
        .version = version_omp(), .command_line = o->command_line,
        .input = shown_path(o->inputs[0], "standard input"), .output = shown_path(o->output, "standard output"),
        .host = report_host_of(""), .in = s->in, .out = place_of_output(s), .temp = place_of_temp(o->temp_prefix),
        .input_is = kind_of(o->inputs[0], STDIN_FILENO), .output_is = kind_of(o->output, STDOUT_FILENO),
        .by_htslib = converted, .cpus = machine_cpus(), .topology = machine_topology(),
        .bound = omp_get_proc_bind() != omp_proc_bind_false,
        .user = usage.user, .system = usage.system, .run_queue = queue < UINT64_MAX ? (double)queue / 1e9 : -1,
        .major_faults = usage.major_faults,
        .memory = o->memory, .more_threads = o->more_threads, .level = o->level,
        .machine_memory = machine_memory(),
        .peak_rss = usage.peak_rss, .huge = s->huge_pages, .records = records,
        .merged = s->merged, .copied = s->copied, .counted = s->counted,
    };
}

/* ----------------------------------------------------------------- writing */

struct what {
    const struct report *report; /* NULL: the trace */
    const struct clocks *clocks;
};

static void put(FILE *to, enum report_format format, const void *arg)
{
    const struct what *what = arg;
    if (!what->report)
        report_trace(what->clocks, to);
    else if (format == REPORT_HTML)
        report_html(what->report, what->clocks, to);
    else if (format == REPORT_JSON)
        report_json(what->report, what->clocks, to);
    else
        report_text(what->report, to);
}

int command_report_write(struct command_report *s, const struct clocks *clocks, uint64_t records, struct latch *latch)
{
    const struct report_request *request = s->request;
    struct what what = {.clocks = clocks};
    if (request->format) {
        struct report_facts facts = gather_facts(s, clocks, records);
        struct report report;
        report_make(&report, &facts, clocks);
        what.report = &report;
        if (report_file_put(&s->report, request, put, &what, latch) < 0)
            return -1;
    }
    what.report = NULL;
    return request->trace_file ? report_file_write(&s->trace, REPORT_NONE, put, &what, latch) : 0;
}
