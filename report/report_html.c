/* SPDX-License-Identifier: MIT */
/* One page: headline, verdict, numbers, advice, the picture, a table of the stages, the machine, and a glossary. */
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include "base/message.h"
#include "report/report.h"
#include "report/report_chart.h"
#include "report/report_markup.h"

/* ------------------------------------------------------------ names and numbers */

__attribute__((format(printf, 3, 4))) static void put_tile(FILE *to, const char *what, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fputs("<div><b>", to);
    vfprintf(to, format, args);
    fprintf(to, "</b><span>%s</span></div>\n", what);
    va_end(args);
}

/* Peak memory, as a share of the memory allowed. */
static void put_memory_tile(const struct report *r, FILE *to)
{
    const struct report_facts *f = &r->facts;
    char what[100] = "peak memory", count[REPORT_COUNT_SIZE];
    int n = (int)strlen(what);
    if (f->peak_rss == REPORT_UNKNOWN)
        return;
    if (f->memory)
        n += snprintf(what + n, sizeof what - (size_t)n, ", of %s MB allowed",
                      report_count(f->memory / 1000000, count));
    if (f->huge != REPORT_UNKNOWN && f->huge > 0)
        snprintf(what + n, sizeof what - (size_t)n, "; %.0f MB in huge pages", report_mb(f->huge));
    put_tile(to, what, "%s MB", report_count(f->peak_rss / 1000000, count));
}

static void put_serial_tile(const struct report *r, FILE *to)
{
    double per_gb = report_serial_per_gb(r);
    if (per_gb >= 0)
        put_tile(to, "per GB is serial: only one thread can do it", "%.2f s", per_gb);
    else
        put_tile(to, "is serial: only one thread can do it", "%.2f s", r->serial);
}

/* The facts that the headline leaves out. */
static void put_tiles(const struct report *r, FILE *to)
{
    static const double WORTH_NAMING = 0.01;     /* share of the threads' time */
    const struct report_facts *f = &r->facts;
    char what[100], count[REPORT_COUNT_SIZE];
    fputs("<div class=\"tiles\">\n", to);
    snprintf(what, sizeof what, "of %d thread%s busy", r->n_threads, r->n_threads > 1 ? "s" : "");
    put_tile(to, what, "%.0f %%", 100 * report_busy_share(r));
    snprintf(what, sizeof what, "CPU time, %.2f s of it in the system", f->system);
    put_tile(to, what, "%.2f s", f->user + f->system);
    put_memory_tile(r, to);
    if (report_spilled(r))
        put_tile(to, "of temporary data were spilled", "%s MB",
                 report_count(r->stages[STAGE_SPILL_WRITE].bytes / 1000000, count));
    put_tile(to, "of the work was I/O", "%.0f %%", 100 * r->io);
    put_serial_tile(r, to);
    if (f->run_queue > WORTH_NAMING * r->wall * r->n_threads)
        put_tile(to, "all threads together waited for a CPU", "%.2f s", f->run_queue);
    fputs("</div>\n", to);
}

static void put_verdict(const struct report *r, FILE *to)
{
    fprintf(to, "<section class=\"verdict\"><p><b>Bound by %s:</b> ", report_bound_name(r->bound));
    report_markup_text(to, r->why);
    fputs("</p></section>\n", to);
}

static void put_fact(FILE *to, const char *name, const char *value)
{
    fprintf(to, "<div><dt>%s</dt><dd>", name);
    report_markup_text(to, *value ? value : "unknown");
    fputs("</dd></div>\n", to);
}

static void put_file_fact(FILE *to, const char *name, uint64_t bytes, const char *where)
{
    char count[REPORT_COUNT_SIZE], text[128];
    snprintf(text, sizeof text, "%s%s, %s", report_count(bytes, count), bytes == REPORT_UNKNOWN ? " size" : " bytes",
             where);
    put_fact(to, name, text);
}

/* The subject of the numbers: machine, files, versions. */
static void put_facts(const struct report *r, FILE *to)
{
    const struct report_facts *f = &r->facts;
    char text[300], cores[64];
    fputs("<section><h2>Machine and files</h2><dl class=\"facts\">\n", to);
    put_fact(to, "host", f->host.name);
    put_fact(to, "date", f->host.date);
    put_fact(to, "system", f->host.system);
    put_fact(to, "CPU", f->host.cpu);
    put_fact(to, "cores by socket", report_host_cores(&f->host, cores, sizeof cores));
    snprintf(text, sizeof text, "%.1f GB", (double)f->machine_memory / 1e9);
    put_fact(to, "memory of the machine", text);
    put_file_fact(to, "input", report_input_bytes(r), report_where(f->input_is, &f->in));
    put_file_fact(to, "output", report_output_bytes(r), report_where(f->output_is, &f->out));
    snprintf(text, sizeof text, "%s, %s", report_where(REPORT_REGULAR, &f->temp),
             report_spilled(r) ? "used" : "not used");
    put_fact(to, "temporary folder", text);
    snprintf(text, sizeof text, "samtools-omp %s, htslib %s, libdeflate %s", f->version,
             f->host.htslib, f->host.libdeflate);
    put_fact(to, "versions", text);
    snprintf(text, sizeof text, "code for %s; the CPU has %s", f->host.code,
             *f->host.widest ? f->host.widest : "vectors unknown");
    put_fact(to, "instructions", text);
    if (f->copied.asked)
        put_fact(to, "copied blocks", report_copied_line(r, text));
    if (f->counted.of)
        put_fact(to, f->counted.of, report_counted_line(r, text));
    fputs("</dl></section>\n", to);
}

static void put_advice(const struct report *r, FILE *to)
{
    if (!r->advice[0][0])
        return;
    fputs("<section class=\"advice\">", to);
    for (int i = 0; i < REPORT_ADVICE_MAX && r->advice[i][0]; i++) {
        fputs("<p>", to);
        report_markup_text(to, r->advice[i]);
        fputs("</p>", to);
    }
    fputs("</section>\n", to);
}

/* ------------------------------------------------------------------ stages */

/* Writes a cell, which is empty if the number is unknown. On a narrow page it names its column. */
static void put_cell(FILE *to, const char *column, int decimals, double number, bool is_known)
{
    if (is_known)
        fprintf(to, "<td data-label=\"%s\">%.*f</td>", column, decimals, number);
    else
        fputs("<td></td>", to);
}

static void put_stage(const struct report *r, enum stage stage, FILE *to)
{
    static const char *const kinds[] = {"", "", "serial", "in turn"};
    const struct report_stage *s = &r->stages[stage];
    const struct stage_info *info = clocks_stage(stage);
    double all = r->wall * r->n_threads;
    fprintf(to, "<tr><td><i style=\"background:%s\"></i>%s</td>", report_chart_colour(stage), info->name);
    fprintf(to, *kinds[info->kind] ? "<td data-label=\"kind\">%s</td>" : "<td>%s</td>", kinds[info->kind]);
    put_cell(to, "all threads, s", 2, s->busy, true);
    put_cell(to, "per thread, s", 2, s->busy / r->n_threads, true);
    put_cell(to, "critical, s", 2, s->critical, true);
    put_cell(to, "blocked, s", 2, s->blocked, info->may_block);
    put_cell(to, "MB", 1, report_mb(s->bytes), s->bytes > 0);
    put_cell(to, "MB/s, each", 0, report_thread_speed(s), s->bytes > 0);
    put_cell(to, "MB/s, all", 0, report_speed(s), s->bytes > 0 && s->any_thread > 0);
    fprintf(to, "<td class=\"bar\"><i style=\"width:%.1f%%;background:%s\"></i></td></tr>\n",
            all > 0 ? fmin(100 * s->busy / all, 100) : 0, report_chart_colour(stage));
}

/* Returns whether a comes before b in the table: working stages by time, then resting ones. */
static bool is_listed_before(const struct report *r, enum stage a, enum stage b)
{
    bool a_rests = clocks_stage(a)->kind == STAGE_RESTS, b_rests = clocks_stage(b)->kind == STAGE_RESTS;
    double more = r->stages[a].busy - r->stages[b].busy;
    return a_rests != b_rests ? b_rests : more != 0 ? more > 0 : a < b;
}

/* Lists the stages in the order of the table. Returns their number. */
static int sort_stages(const struct report *r, enum stage sorted[N_STAGES])
{
    int n = 0;
    for (enum stage stage = 0; stage < N_STAGES; stage++) {
        if (!report_lists(&r->stages[stage]))
            continue;
        int at = n++;
        for (; at > 0 && is_listed_before(r, stage, sorted[at - 1]); at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = stage;
    }
    return n;
}

static const char stage_heads[] = "<table><thead><tr><th>stage</th><th></th><th>all threads, s</th>"
    "<th>per thread, s</th><th>critical thread, s</th><th>blocked, s</th><th>MB</th><th>MB/s, each thread</th>"
    "<th>MB/s, all threads</th><th>share of the threads&rsquo; time</th></tr></thead><tbody>\n";

/* Returns whether the stage is folded, because its share of the threads' time is small. */
static bool is_short(const struct report *r, enum stage stage)
{
    static const double SHORT = 0.01;
    return r->stages[stage].busy < SHORT * r->wall * r->n_threads;
}

static void put_stages(const struct report *r, FILE *to)
{
    enum stage sorted[N_STAGES];
    int n = sort_stages(r, sorted), n_short = 0;
    fprintf(to, "<section><h2>Stages</h2>%s", stage_heads);
    for (int i = 0; i < n; i++)
        if (is_short(r, sorted[i]))
            n_short++;
        else
            put_stage(r, sorted[i], to);
    fputs("</tbody></table>\n", to);
    if (n_short > 0) {
        fprintf(to, "<details class=\"more\"><summary>%d more, each below 1 %% of the threads&rsquo; time</summary>%s",
                n_short, stage_heads);
        for (int i = 0; i < n; i++)
            if (is_short(r, sorted[i]))
                put_stage(r, sorted[i], to);
        fputs("</tbody></table></details>\n", to);
    }
    fputs("</section>\n", to);
}

/* Lists the inputs that a merge has waited for longest. */
static void put_inputs(const struct report_inputs *inputs, FILE *to)
{
    enum { ROWS = 50 };
    char bytes[REPORT_COUNT_SIZE], records[REPORT_COUNT_SIZE];
    const struct report_input *row = NULL;
    if (inputs->n == 0)
        return;
    fputs("<section><h2>Inputs</h2><table><thead><tr><th>input</th><th>bytes</th><th>records</th><th>waits</th>"
          "<th>waited, s</th></tr></thead><tbody>\n", to);
    for (size_t i = 0; i < ROWS && (row = report_next_input(inputs, row)); i++) {
        fputs("<tr><td>", to);
        report_markup_text(to, row->name);
        fprintf(to, "</td><td data-label=\"bytes\">%s</td><td data-label=\"records\">%s</td><td data-label=\"waits\">"
                "%llu</td><td data-label=\"waited, s\">%.2f</td></tr>\n", report_count(row->bytes, bytes),
                report_count(row->records, records), (unsigned long long)row->waits, row->waited);
    }
    fputs("</tbody></table>\n", to);
    if (inputs->n > ROWS)
        fprintf(to, "<p>And %zu more inputs, which were waited for less.</p>\n", inputs->n - ROWS);
    fputs("</section>\n", to);
}

/* ------------------------------------------------------------------- words */

static const char *const words[][2] = {
    {"wall time", "Elapsed time from start to end."},
    {"CPU time", "Time in which threads ran on a CPU, of all threads together: their own code and the system&rsquo;s."},
    {"bound by", "The resource that a faster run needs more of: CPU time first; if CPUs were idle, the resource for "
        "which the threads waited longest."},
    {"stage", "The work that a thread is doing. A thread is in one stage at a time, so its times add up to the wall "
        "time."},
    {"busy", "In a stage of work: neither idle nor waiting for other threads or for a CPU."},
    {"idle, wait", "idle: the thread has nothing to do. wait: it needs the result of another thread and cannot "
        "help with it."},
    {"waited for a CPU", "Time in the run queue, of all threads together: a thread could run, but other programs or "
        "other threads had all CPUs."},
    {"blocked", "In a stage, but without a CPU: mostly for a disk or a pipe."},
    {"critical thread", "The thread with the most work that no other thread can take over, mostly thread 0."},
    {"serial", "Work that is always on the same thread. No number of threads makes the run shorter than that. Per GB "
        "(10<sup>9</sup> bytes) of uncompressed input."},
    {"in turn", "Work on any thread, but on one at a time."},
    {"MB/s, each thread", "Bytes of the stage per second that one thread spends in it."},
    {"MB/s, all threads", "Bytes of the stage per second in which at least one thread was in it: the rate of the disk, "
        "of the pipe, or of all threads together."},
    {"I/O", "Reading and writing: input, output and temporary files."},
    {"block", "BAM is compressed in blocks of up to 64 KiB, each on its own."},
    {"deal", "One thread hands compressed blocks to the others and takes them back in order."},
    {"record, key", "A record is one alignment. Its key is 16 bytes that stand for it while it is sorted."},
    {"sublist", "About a million keys that one thread sorts in memory."},
    {"range", "A part of the order, which one thread merges from all sublists."},
    {"temporary data", "Sorted records that did not fit into the memory (-m): spilled to a disk (-T), then read "
        "again."},
    {"waits, waited", "How often, and how long, a merge had to wait for the next records of this input. Meanwhile "
        "the thread that merges helps the others."},
    {"peak memory", "The most memory that the process held at any time (RSS)."},
    {"huge pages", "Memory in pages of 2 MiB, which needs fewer address look-ups."},
};

static void put_glossary(FILE *to)
{
    report_markup_fold(to, "Glossary");
    fputs("<dl class=\"words\">\n", to);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        report_markup_word(to, words[i][0], words[i][1]);
    fputs("</dl>" REPORT_MARKUP_UNFOLD, to);
}

#define NO_BREAK "\xc2\xa0"                      /* a space between a number and its unit */

/* Writes the file's name without its folder, records, time and speed. */
static void write_headline(const struct report *r, char *text, size_t size)
{
    const char *slash = strrchr(r->facts.input, '/'), *name = slash && slash[1] ? slash + 1 : r->facts.input;
    char count[REPORT_COUNT_SIZE];
    int n = snprintf(text, size, "%.120s: %s records, %.*f" NO_BREAK "s", name, report_count(r->facts.records, count),
                     r->wall < 10 ? 2 : 1, r->wall);
    if (report_speed_in_all(r) >= 0)
        snprintf(text + n, size - (size_t)n, ", %.0f" NO_BREAK "MB/s", report_speed_in_all(r));
}

void report_html(const struct report *r, const struct clocks *clocks, FILE *to)
{
    char of[64], headline[240];
    snprintf(of, sizeof of, "samtools %s", message_command());
    write_headline(r, headline, sizeof headline);
    report_markup_begin(to, of, headline, r->facts.input, " &rarr; ", r->facts.output);
    put_verdict(r, to);
    put_tiles(r, to);
    put_advice(r, to);
    report_chart(r, clocks, to);
    put_stages(r, to);
    put_inputs(&r->facts.merged, to);
    put_facts(r, to);
    put_glossary(to);
    report_markup_end(to, r->facts.version, r->facts.command_line);
}
