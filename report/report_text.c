/* SPDX-License-Identifier: MIT */
#include "base/message.h"
#include "report/report.h"

static void print_host(const struct report *r, FILE *to)
{
    const struct report_facts *f = &r->facts;
    const struct report_host *h = &f->host;
    char cores[64], count[REPORT_COUNT_SIZE];
    fprintf(to, "  host %.48s, %.24s, %.64s\n", report_host_known(h->name), report_host_known(h->date),
            report_host_known(h->system));
    fprintf(to, "  CPU %.64s, cores by socket %.32s, memory %.1f GB\n", report_host_known(h->cpu),
            report_host_known(report_host_cores(h, cores, sizeof cores)), (double)f->machine_memory / 1e9);
    fprintf(to, "  samtools-omp %s, htslib %.24s, libdeflate %s; code for %s, CPU has %s\n", f->version,
            report_host_known(h->htslib), report_host_known(h->libdeflate), report_host_known(h->code),
            report_host_known(h->widest));
    fprintf(to, "  input %s bytes (%s)", report_count(report_input_bytes(r), count), report_where(f->input_is, &f->in));
    fprintf(to, ", output %s bytes (%s)", report_count(report_output_bytes(r), count),
            report_where(f->output_is, &f->out));
    fprintf(to, ", temporary folder (%s) %s\n", report_where(REPORT_REGULAR, &f->temp),
            report_spilled(r) ? "used" : "not used");
}

static void print_totals(const struct report *r, FILE *to)
{
    const struct report_facts *f = &r->facts;
    char line[REPORT_LINE_SIZE];
    fprintf(to, "  wall %.2f s, CPU %.2f s (system %.2f), %d thread%s busy %.0f %%", r->wall, f->user + f->system,
            f->system, r->n_threads, r->n_threads > 1 ? "s" : "", 100 * report_busy_share(r));
    if (f->cpus)
        fprintf(to, " on %d CPU%s", f->cpus, f->cpus > 1 ? "s" : "");
    if (f->topology.cores)
        fprintf(to, " (cores %d, sockets %d, NUMA nodes %d)", f->topology.cores, f->topology.sockets,
                f->topology.nodes);
    fprintf(to, "\n  %llu records, %.0f MB uncompressed", (unsigned long long)f->records, report_mb(r->bytes));
    if (report_speed_in_all(r) >= 0)
        fprintf(to, " at %.0f MB/s", report_speed_in_all(r));
    if (f->peak_rss != REPORT_UNKNOWN)
        fprintf(to, "; peak RSS %.0f MB", report_mb(f->peak_rss));
    if (r->mean_rss != REPORT_UNKNOWN)
        fprintf(to, " (mean %.0f)", report_mb(r->mean_rss));
    if (f->huge != REPORT_UNKNOWN)
        fprintf(to, ", %.0f MB in huge pages", report_mb(f->huge));
    if (f->run_queue >= 0)
        fprintf(to, "; waited for a CPU %.2f s", f->run_queue);
    fprintf(to, "; I/O %.0f %% of the work\n", 100 * r->io);
    if (f->copied.asked)
        fprintf(to, "  copied blocks: %s\n", report_copied_line(r, line));
    if (f->counted.of)
        fprintf(to, "  %s: %s\n", f->counted.of, report_counted_line(r, line));
}

static void print_stage(const struct report *r, enum stage stage, FILE *to)
{
    const struct report_stage *s = &r->stages[stage];
    fprintf(to, "  %-12s %9.2f %9.2f %9.2f", clocks_stage(stage)->name, s->busy, s->busy / r->n_threads, s->critical);
    if (clocks_stage(stage)->may_block)
        fprintf(to, " %9.2f", s->blocked);
    if (s->bytes)
        fprintf(to, " %*.0f %9.0f", clocks_stage(stage)->may_block ? 9 : 19, report_mb(s->bytes),
                report_thread_speed(s));
    if (s->bytes && s->any_thread > 0)
        fprintf(to, " %9.0f", report_speed(s));
    fputc('\n', to);
}

/* Prints the inputs that were waited for longest. */
static void print_inputs(const struct report_inputs *inputs, FILE *to)
{
    enum { ROWS = 8 };
    char bytes[REPORT_COUNT_SIZE], records[REPORT_COUNT_SIZE];
    const struct report_input *row = NULL;
    if (inputs->n == 0)
        return;
    fprintf(to, "  %19s %19s %9s %9s  %s\n", "bytes", "records", "waits", "waited, s", "input");
    for (size_t i = 0; i < ROWS && (row = report_next_input(inputs, row)); i++)
        fprintf(to, "  %19s %19s %9llu %9.2f  %s\n", report_count(row->bytes, bytes),
                report_count(row->records, records), (unsigned long long)row->waits, row->waited, row->name);
    if (inputs->n > ROWS)
        fprintf(to, "  and %zu inputs that were waited for no longer\n", inputs->n - ROWS);
    fputc('\n', to);
}

static void print_serial(const struct report *r, FILE *to)
{
    const char *sep = "";
    double per_gb = report_serial_per_gb(r);
    fprintf(to, "  serial: %.3f %s on %s (", per_gb >= 0 ? per_gb : r->serial, per_gb >= 0 ? "s/GB" : "s",
            r->critical_name);
    for (enum stage stage = 0; stage < N_STAGES; stage++)
        if (r->serial_stages[stage] >= 0.005 * r->serial) {
            fprintf(to, "%s%s %.3f s", sep, clocks_stage(stage)->name, r->serial_stages[stage]);
            sep = ", ";
        }
    fprintf(to, "); in turn: %.3f s\n", r->in_turn);
}

void report_text(const struct report *r, FILE *to)
{
    fprintf(to, "samtools %s: %s -> %s\n", message_command(), r->facts.input, r->facts.output);
    fprintf(to, "  bound by %s: %s\n", report_bound_name(r->bound), r->why);
    print_host(r, to);
    print_totals(r, to);
    fprintf(to, "\n  %-12s %9s %9s %9s %9s %9s %9s %9s\n", "stage", "s", "/ thread", "critical", "blocked", "MB",
            "MB/s each", "MB/s all");
    for (enum stage stage = 0; stage < N_STAGES; stage++)
        if (report_lists(&r->stages[stage]))
            print_stage(r, stage, to);
    fputc('\n', to);
    print_inputs(&r->facts.merged, to);
    print_serial(r, to);
    for (int i = 0; i < REPORT_ADVICE_MAX && r->advice[i][0]; i++)
        fprintf(to, "  %s %s\n", i ? "       " : "advice:", r->advice[i]);
}
