/* SPDX-License-Identifier: MIT */
#include "base/input_name.h"
#include "base/version.h"
#include "mpi/rank_pages.h"
#include "mpi/rank_report.h"
#include "report/report.h"
#include "report/report_chart.h"
#include "report/report_markup.h"

/* ---- columns ---- */

enum { N_COLUMNS = 7 };

/* The columns of a row, without the steps: megabytes, except for the CPU time. */
static const struct {
    const char *key, *name;
} columns[N_COLUMNS] = {
    {"read", "read"}, {"sent", "sent"}, {"received", "received"}, {"written", "written"},
    {"temporary", "temporary"}, {"peak_rss", "peak memory"}, {"cpu", "CPU s"},
};

static double column_of(const struct rank_numbers *n, int column)
{
    const uint64_t bytes[] = {n->bytes, n->sent, n->received, n->written, n->temporary, n->peak_rss};
    return column < N_COLUMNS - 1 ? report_mb(bytes[column]) : n->cpu;
}

/* ---- text ---- */

static void text_row(FILE *to, const struct rank_numbers *n, const char *name, bool steps)
{
    fprintf(to, "%-6s %-16.16s", name, n->host);
    for (int i = 0; i < N_COLUMNS; i++)
        fprintf(to, " %11.*f", i < N_COLUMNS - 1 ? 1 : 2, column_of(n, i));
    for (enum rank_step step = 0; steps && step < N_RANK_STEPS; step++)
        fprintf(to, " %8.3f", rank_report_seconds(n, step));
    fputc('\n', to);
}

static void report_slowest(FILE *to, const struct rank_report *r)
{
    struct rank_slowest s = rank_report_slowest(r);
    fprintf(to, "Rank %d on %s was the slowest to %s: %.3f s. The ranks' mean is %.3f s.", s.rank,
            r->all[s.rank].host, rank_step_name(s.step)->name, s.seconds, s.mean);
}

static void put_text(FILE *to, const struct rank_report *r)
{
    struct rank_numbers sum = rank_report_sum(r);
    char count[REPORT_COUNT_SIZE], number[16];
    fprintf(to, "samtools-omp %s: %d ranks, %d threads in all\n", version_omp(), r->team.size, sum.n_threads);
    fprintf(to, "%s\n", r->request->command_line);
    fprintf(to, "%s records in %.2f s. Columns are MB and CPU seconds, then seconds of each step.\n\n",
            report_count(sum.records, count), rank_report_wall(r));
    fprintf(to, "%-6s %-16s", "rank", "host");
    for (int i = 0; i < N_COLUMNS; i++)
        fprintf(to, " %11s", columns[i].name);
    for (enum rank_step step = 0; step < N_RANK_STEPS; step++)
        fprintf(to, " %8s", rank_step_name(step)->key);
    fputc('\n', to);
    for (int i = 0; i < r->team.size; i++) {
        snprintf(number, sizeof number, "%d", i);
        text_row(to, &r->all[i], number, true);
    }
    text_row(to, &sum, "all", false);
    if (r->team.size > 1) {
        fputc('\n', to);
        report_slowest(to, r);
        fputc('\n', to);
    }
}

/* ---- JSON ---- */

static void json_string(FILE *to, const char *key, const char *text)
{
    fprintf(to, "\"%s\": ", key);
    report_json_string(to, text);
    fputs(", ", to);
}

static void json_count(FILE *to, const char *key, uint64_t n)
{
    fprintf(to, "\"%s\": %llu, ", key, (unsigned long long)n);
}

static void json_rank(FILE *to, const struct rank_numbers *n, int rank)
{
    fprintf(to, "    {\"rank\": %d, ", rank);
    json_string(to, "host", n->host);
    json_count(to, "threads", (uint64_t)n->n_threads);
    json_count(to, "records", n->records);
    json_count(to, "read_bytes", n->bytes);
    json_count(to, "sent_bytes", n->sent);
    json_count(to, "received_bytes", n->received);
    json_count(to, "written_bytes", n->written);
    json_count(to, "temporary_bytes", n->temporary);
    json_count(to, "peak_rss", n->peak_rss);
    fprintf(to, "\"cpu\": %.3f, \"steps\": {", n->cpu);
    for (enum rank_step step = 0; step < N_RANK_STEPS; step++)
        fprintf(to, "%s\"%s\": {\"begin\": %.6f, \"end\": %.6f}", step ? ", " : "", rank_step_name(step)->key,
                n->steps[step].begin, n->steps[step].end);
    fputs("}}", to);
}

static void put_json(FILE *to, const struct rank_report *r)
{
    struct rank_slowest s = rank_report_slowest(r);
    fputs("{\n  ", to);
    json_string(to, "version", version_omp());
    json_string(to, "command_line", r->request->command_line);
    json_string(to, "input", input_name_shown(r->request->inputs[0]));
    json_string(to, "output", r->request->output);
    fprintf(to, "\n  \"wall\": %.6f, \"records\": %llu,\n", rank_report_wall(r),
            (unsigned long long)rank_report_sum(r).records);
    fprintf(to, "  \"slowest\": {\"rank\": %d, \"step\": \"%s\", \"seconds\": %.6f, \"mean\": %.6f},\n  \"ranks\": [\n",
            s.rank, rank_step_name(s.step)->key, s.seconds, s.mean);
    for (int i = 0; i < r->team.size; i++) {
        fputs(i ? ",\n" : "", to);
        json_rank(to, &r->all[i], i);
    }
    fputs("\n  ]\n}\n", to);
}

/* ---- page ---- */

/* Returns the colour of the stage that takes most of a step. */
static const char *colour_of(enum rank_step step)
{
    static const enum stage stages[N_RANK_STEPS] = {
        [RANK_OPEN] = STAGE_READ, [RANK_READ] = STAGE_INFLATE, [RANK_EXCHANGE] = STAGE_MERGE,
        [RANK_MEASURE] = STAGE_PLAN, [RANK_BLOCKS] = STAGE_DEFLATE, [RANK_JOIN] = STAGE_WRITE,
    };
    return report_chart_colour(stages[step]);
}

static void page_timeline(FILE *to, const struct rank_report *r)
{
    enum { ROW = 22, NAME = 60, PLOT = 900 };
    double unit = PLOT / (rank_report_wall(r) > 0 ? rank_report_wall(r) : 1);
    fprintf(to, "<section><h2>Ranks over time</h2><svg viewBox=\"0 0 %d %d\" width=\"100%%\" role=\"img\" "
            "aria-label=\"what each rank did when\">\n", NAME + PLOT, ROW * r->team.size);
    for (int i = 0; i < r->team.size; i++) {
        fprintf(to, "<text x=\"0\" y=\"%d\" font-size=\"13\" fill=\"currentColor\">rank %d</text>\n", ROW * i + 15, i);
        for (enum rank_step step = 0; step < N_RANK_STEPS; step++)
            fprintf(to, "<rect x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\" fill=\"%s\"><title>rank %d: %s, %.3f s"
                    "</title></rect>\n", NAME + unit * r->all[i].steps[step].begin, ROW * i + 2,
                    unit * rank_report_seconds(&r->all[i], step), ROW - 4, colour_of(step), i,
                    rank_step_name(step)->name, rank_report_seconds(&r->all[i], step));
    }
    fputs("</svg>\n<ul class=\"legend\">\n", to);
    for (enum rank_step step = 0; step < N_RANK_STEPS; step++)
        fprintf(to, "<li><span style=\"color:%s\">&#9632;</span> %s</li>\n", colour_of(step),
                rank_step_name(step)->name);
    fputs("</ul></section>\n", to);
}

static void page_row(FILE *to, const struct rank_numbers *n, const char *name, bool steps)
{
    fprintf(to, "<tr><td>%s</td><td data-label=\"host\">", name);
    report_markup_text(to, n->host);
    fputs("</td>", to);
    for (int i = 0; i < N_COLUMNS; i++)
        fprintf(to, "<td data-label=\"%s\">%.*f</td>", columns[i].name, i < N_COLUMNS - 1 ? 1 : 2, column_of(n, i));
    for (enum rank_step step = 0; step < N_RANK_STEPS; step++)
        if (steps)
            fprintf(to, "<td data-label=\"%s\">%.3f</td>", rank_step_name(step)->key, rank_report_seconds(n, step));
        else
            fputs("<td></td>", to);
    fputs("</tr>\n", to);
}

static void page_table(FILE *to, const struct rank_report *r)
{
    struct rank_numbers sum = rank_report_sum(r);
    char number[16];
    fputs("<section><h2>Ranks</h2><p>Megabytes and CPU seconds, then seconds of each step.</p>\n"
          "<table><thead><tr><th>rank</th><th>host</th>", to);
    for (int i = 0; i < N_COLUMNS; i++)
        fprintf(to, "<th>%s</th>", columns[i].name);
    for (enum rank_step step = 0; step < N_RANK_STEPS; step++)
        fprintf(to, "<th>%s</th>", rank_step_name(step)->key);
    fputs("</tr></thead><tbody>\n", to);
    for (int i = 0; i < r->team.size; i++) {
        snprintf(number, sizeof number, "%d", i);
        page_row(to, &r->all[i], number, true);
    }
    page_row(to, &sum, "all", false);
    fputs("</tbody></table></section>\n", to);
}

static void page_words(FILE *to)
{
    report_markup_fold(to, "Glossary");
    fputs("<dl class=\"words\">\n", to);
    report_markup_word(to, "read, sent, received", "Bytes of uncompressed records: of the rank&rsquo;s part of the "
                       "input, to other ranks, and from them.");
    report_markup_word(to, "written", "Compressed bytes of the rank&rsquo;s part of the output.");
    report_markup_word(to, "temporary", "Sorted records that did not fit into the memory given (-m), in both sorts of "
                       "the rank.");
    report_markup_word(to, "gaps", "Between two steps a rank waits for the others.");
    fputs("</dl>" REPORT_MARKUP_UNFOLD, to);
}

static void put_page(FILE *to, const struct rank_report *r)
{
    char count[REPORT_COUNT_SIZE], headline[120];
    struct rank_numbers sum = rank_report_sum(r);
    snprintf(headline, sizeof headline, "%s records, %d ranks, %d threads, %.2f s", report_count(sum.records, count),
             r->team.size, sum.n_threads, rank_report_wall(r));
    report_markup_begin(to, "samtools sort over MPI", headline, input_name_shown(r->request->inputs[0]), " &rarr; ",
                        r->request->output);
    if (r->team.size > 1) {
        fputs("<section class=\"verdict\"><p>", to);
        report_slowest(to, r);
        fputs("</p></section>\n", to);
    }
    page_timeline(to, r);
    page_table(to, r);
    page_words(to);
    report_markup_end(to, version_omp(), r->request->command_line);
}

void rank_pages_put(FILE *to, enum report_format format, const void *report)
{
    if (format == REPORT_HTML)
        put_page(to, report);
    else if (format == REPORT_JSON)
        put_json(to, report);
    else
        put_text(to, report);
}
