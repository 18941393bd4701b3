/* SPDX-License-Identifier: MIT */
/* One page: the verdict, numbers, advice, the machine, the picture, a table of the stages, and what the words mean. */
#include <math.h>
#include <stdarg.h>
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

static void put_tiles(const struct report *r, FILE *to)
{
    const struct report_facts *f = &r->facts;
    char count[REPORT_COUNT_SIZE];
    fputs("<div class=\"tiles\">\n", to);
    put_tile(to, "wall time", "%.2f s", r->wall);
    put_tile(to, "CPU time", "%.2f s", f->user + f->system);
    put_tile(to, r->n_threads > 1 ? "threads busy" : "thread busy", "%d &times; %.0f %%", r->n_threads,
             100 * report_busy_share(r));
    if (f->run_queue >= 0)
        put_tile(to, "waited for a CPU", "%.2f s", f->run_queue);
    if (report_speed_in_all(r) >= 0)
        put_tile(to, "uncompressed", "%.0f MB/s", report_speed_in_all(r));
    put_tile(to, "records", "%s", report_count(f->records, count));
    put_tile(to, "of the work is I/O", "%.0f %%", 100 * r->io);
    if (f->peak_rss != REPORT_UNKNOWN && f->huge != REPORT_UNKNOWN)
        put_tile(to, "peak memory / in huge pages", "%.0f / %.0f MB", report_mb(f->peak_rss), report_mb(f->huge));
    else if (f->peak_rss != REPORT_UNKNOWN)
        put_tile(to, "peak memory", "%.0f MB", report_mb(f->peak_rss));
    if (report_serial_per_gb(r) >= 0)
        put_tile(to, "serial: work of one thread", "%.3f s per GB", report_serial_per_gb(r));
    else
        put_tile(to, "serial: work of one thread", "%.3f s", r->serial);
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

/* What the numbers are of: machine, files, versions. */
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

/* On a narrow page a cell names its column. Empty if the number is not known. */
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
    const struct stage_info *info = stats_stage(stage);
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

static void put_stages(const struct report *r, FILE *to)
{
    fputs("<section><h2>Stages</h2><table><thead><tr><th>stage</th><th></th><th>all threads, s</th>"
          "<th>per thread, s</th><th>critical thread, s</th><th>blocked, s</th><th>MB</th><th>MB/s, each thread</th>"
          "<th>MB/s, all threads</th><th>share of the threads&rsquo; time</th></tr></thead><tbody>\n", to);
    for (enum stage stage = 0; stage < N_STAGES; stage++)
        if (report_lists(&r->stages[stage]))
            put_stage(r, stage, to);
    fputs("</tbody></table></section>\n", to);
}

/* Those that a merge has waited for longest. */
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
        fprintf(to, "<p>And %zu inputs that were waited for no longer.</p>\n", inputs->n - ROWS);
    fputs("</section>\n", to);
}

/* ------------------------------------------------------------------- words */

static const char *const words[][2] = {
    {"wall time", "From start to end, by the clock."},
    {"CPU time", "Time in which threads ran on a CPU, of all threads together: their own code and the system&rsquo;s."},
    {"bound by", "What a faster sort would need more of. CPU time decides first; if CPUs stood idle, what threads were "
        "seen to wait for longest is to blame."},
    {"stage", "What a thread is doing. Each thread is in one stage at a time, so its times add up to the wall time."},
    {"busy", "In a stage of work, that is, neither idle nor waiting for other threads nor for a CPU."},
    {"idle, wait", "idle: a thread has nothing to do. wait: it needs what another thread is about to finish, and has "
        "nothing to help with."},
    {"waited for a CPU", "Time in the run queue: a thread could go on, but all CPUs were taken, by other programs or "
        "by more threads than CPUs. All threads together."},
    {"blocked", "In a stage, but without a CPU: mostly for a disk or a pipe."},
    {"critical thread", "The thread with the most work that no other thread can take over, mostly thread 0."},
    {"serial", "Work that is always on the same thread. However many threads there are, the sort takes at least as "
        "long. It is given per GB (10<sup>9</sup> bytes) of uncompressed input."},
    {"in turn", "Work on any thread, but on one at a time."},
    {"MB/s, each thread", "Bytes of the stage per second that one thread spends in it."},
    {"MB/s, all threads", "Bytes of the stage per second in which at least one thread was in it: what the disk, the "
        "pipe or all threads together gave."},
    {"I/O", "Reading and writing: input, output and temporary files."},
    {"block", "BAM is compressed in blocks of up to 64 KiB, each on its own."},
    {"deal", "One thread hands compressed blocks to the others and takes them back in order."},
    {"record, key", "A record is one alignment. Its key is 16 bytes that stand for it while it is sorted."},
    {"sublist", "About a million keys that one thread sorts in memory."},
    {"range", "The keys from one value to another: one thread merges them, of all sublists."},
    {"temporary data", "Sorted records that did not fit into the memory given (-m): packed and written to a disk (-T), "
        "later read and unpacked."},
    {"waits, waited", "How often a merge had nothing to do before the next records of this input came, and how long "
        "that took. Meanwhile the thread that merges does the work of the others."},
    {"peak memory", "The most memory that the process held at any time (RSS)."},
    {"huge pages", "Memory in pages of 2 MiB: fewer look-ups of addresses."},
};

static void put_words(FILE *to)
{
    fputs("<section><h2>What the words mean</h2><dl class=\"words\">\n", to);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        report_markup_word(to, words[i][0], words[i][1]);
    fputs("</dl></section>\n", to);
}

void report_html(const struct report *r, const struct stats *stats, FILE *to)
{
    char heading[64];
    snprintf(heading, sizeof heading, "samtools %s", message_command());
    report_markup_begin(to, heading, r->facts.input, " &rarr; ", r->facts.output);
    put_verdict(r, to);
    put_tiles(r, to);
    put_advice(r, to);
    report_chart(r, stats, to);
    put_stages(r, to);
    put_inputs(&r->facts.merged, to);
    put_facts(r, to);
    put_words(to);
    report_markup_end(to, r->facts.version, r->facts.command_line);
}
