/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <omp.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <htslib/hfile.h>
#include "base/latch.h"
#include "base/machine.h"
#include "report/report.h"
#include "base/sort_opts.h"
#include "report/sort_report.h"
#include "report/trace.h"
#include "base/version.h"

enum stats_detail sort_report_detail(const struct sort_opts *o)
{
    if (o->trace_file || o->report == REPORT_HTML)
        return STATS_SPANS;
    return o->report ? STATS_CPU : STATS_TIMES;
}

/* ------------------------------------------------------------------- files */

int sort_report_open(struct sort_report *s, const struct sort_opts *o, struct latch *latch)
{
    *s = (struct sort_report){.opts = o, .report.fd = -1, .trace.fd = -1};
    return (o->report_file && out_file_open(&s->report, o->report_file, latch) < 0)
        || (o->trace_file && out_file_open(&s->trace, o->trace_file, latch) < 0) ? -1 : 0;
}

void sort_report_close(struct sort_report *s)
{
    if (s->opts) {
        out_file_abandon(&s->report);
        out_file_abandon(&s->trace);
    }
}

/* ------------------------------------------------------------------- facts */

static const char *name_of(const char *path, const char *dash)
{
    return strcmp(path, "-") == 0 ? dash : path;
}

static enum report_file kind_of(const char *path, int dash)
{
    struct stat st;
    bool is_dash = strcmp(path, "-") == 0;
    if (!is_dash && hisremote(path))
        return REPORT_REMOTE;
    return (is_dash ? fstat(dash, &st) : stat(path, &st)) == 0 && !S_ISREG(st.st_mode) ? REPORT_PIPE : REPORT_REGULAR;
}

static struct report_facts gather_facts(const struct sort_opts *o, const struct stats *stats, uint64_t records)
{
    struct machine_usage usage = machine_usage();
    bool converted = stats_total(stats, STAGE_CONVERT).events > 0;
    return (struct report_facts){
        .version = SAMTOOLS_OMP_VERSION, .command_line = o->command_line,
        .input = name_of(o->in, "standard input"), .output = name_of(o->out.path, "standard output"),
        .input_is = kind_of(o->in, STDIN_FILENO), .output_is = kind_of(o->out.path, STDOUT_FILENO),
        .by_htslib = converted, .cpus = machine_cpus(), .numa_nodes = machine_numa_nodes(),
        .bound = omp_get_proc_bind() != omp_proc_bind_false,
        .user = usage.user, .system = usage.system, .memory = o->memory, .machine_memory = machine_memory(),
        .peak_rss = usage.peak_rss, .huge = machine_huge_pages(), .records = records,
    };
}

/* ----------------------------------------------------------------- writing */

static int put_report(const struct report *r, const struct stats *stats, enum report_format format, FILE *to)
{
    if (format == REPORT_HTML)
        return report_html(r, stats, to);
    if (format == REPORT_JSON)
        report_json(r, stats, to);
    else
        report_text(r, to);
    return 0;
}

static int finish_file(struct out_file *file, FILE *to, bool failed, struct latch *latch)
{
    failed = failed || ferror(to);
    if (fclose(to) != 0 || failed)
        return latch_fail(latch, "writing %s failed: %s. The sorted output is complete", file->path, strerror(errno));
    return out_file_finish(file, latch) < 0 ? -1 : out_file_commit(file, latch);
}

static FILE *stream_of(struct out_file *file, struct latch *latch)
{
    if (out_file_begin(file, latch) < 0)
        return NULL;
    int fd = dup(file->fd);
    FILE *to = fd < 0 ? NULL : fdopen(fd, "w");
    if (!to && fd >= 0)
        close(fd);
    if (!to)
        latch_fail(latch, "writing %s failed: %s. The sorted output is complete", file->path, strerror(errno));
    return to;
}

static int write_report(struct sort_report *s, const struct report *r, const struct stats *stats, struct latch *latch)
{
    if (!s->opts->report_file) {
        report_text(r, stderr);
        return 0;
    }
    FILE *to = stream_of(&s->report, latch);
    return to ? finish_file(&s->report, to, put_report(r, stats, s->opts->report, to) < 0, latch) : -1;
}

static int write_trace(struct sort_report *s, const struct stats *stats, struct latch *latch)
{
    FILE *to = stream_of(&s->trace, latch);
    if (!to)
        return -1;
    trace_write(stats, to);
    return finish_file(&s->trace, to, false, latch);
}

int sort_report_write(struct sort_report *s, const struct stats *stats, uint64_t records, struct latch *latch)
{
    struct report_facts facts = gather_facts(s->opts, stats, records);
    struct report report;
    if (s->opts->report) {
        report_make(&report, &facts, stats);
        if (write_report(s, &report, stats, latch) < 0)
            return -1;
    }
    return s->opts->trace_file ? write_trace(s, stats, latch) : 0;
}
