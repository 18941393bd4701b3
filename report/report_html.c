/* SPDX-License-Identifier: MIT */
/* One page, without scripts and without other files:
 *
 *     names, numbers, advice
 *     how many threads were in which stage over time (stacked)
 *     the same for each thread
 *     stages: legend, and table */
#include <math.h>
#include <stdarg.h>
#include <string.h>
#include "report/report.h"

enum {
    /* The picture, in its own units; the page scales it. */
    LEFT = 76, RIGHT = 12, WIDTH = 1000, PLOT = WIDTH - LEFT - RIGHT,
    AREA_TOP = 24, AREA = 190, GAP = 30, AXIS = 26,
    COLUMNS = 456,               /* each 2 units wide */
    CELLS_MAX = 1 << 14,         /* in all rows; bounds the page: about 20 bytes per cell and stage */
    TICKS = 10,
};

/* The share of each stage in each column, `columns` of which are in use. */
struct cells {
    int columns;
    double ns;                   /* per column */
    double share[COLUMNS][N_STAGES];
};

/* Hues say what is worked on: input blue to green, sorting yellow, output red to orange, writing
 * purple, temporary data teal. They are legible on white and on black. */
static const char *const colours[N_STAGES] = {
    [STAGE_IDLE] = "none", [STAGE_WAIT] = "var(--wait)",
    [STAGE_READ] = "#3f6fd8", [STAGE_DEAL] = "#8db4f4", [STAGE_INFLATE] = "#2fa39a", [STAGE_PARSE] = "#3d8f5a",
    [STAGE_FIND] = "#7fcf9b",
    [STAGE_SORT] = "#efc43a", [STAGE_PLAN] = "#a8713a", [STAGE_MERGE] = "#ec6fa5", [STAGE_FILL] = "#d63b4e",
    [STAGE_GATHER] = "#f7a98b", [STAGE_DEFLATE] = "#f0803c", [STAGE_WRITE] = "#8a5bd6", [STAGE_VERIFY] = "#c77d9b",
    [STAGE_PACK] = "#1f7f8c",
    [STAGE_SPILL_WRITE] = "#b48ae0", [STAGE_SPILL_READ] = "#5a86c9", [STAGE_UNPACK] = "#5fc0c9",
    [STAGE_CONVERT] = "#b5a642", [STAGE_INDEX] = "#d08bd0", [STAGE_FREE] = "#7d6b5d", [STAGE_OTHER] = "#98a0ab",
};

static const char style[] =
    ":root{color-scheme:light dark;--page:#f6f7f9;--card:#fff;--ink:#1b1f26;--soft:#667080;--line:#dfe3e9;"
    "--wait:#e4e7ec;--row:#f3f5f7;--hint:#fff6da;--hint-line:#ecc94b}"
    "@media(prefers-color-scheme:dark){:root{--page:#12151a;--card:#1b2027;--ink:#e8ebf0;--soft:#97a1b0;"
    "--line:#303743;--wait:#353c47;--row:#20262e;--hint:#2d2813;--hint-line:#a98a1f}}"
    "*{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--ink);"
    "font:15px/1.45 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif}"
    "main{max-width:1120px;margin:0 auto;padding:28px 20px 40px}"
    "h1{font-size:22px;margin:0}h2{font-size:16px;margin:0 0 10px}"
    "header p{margin:2px 0 18px;color:var(--soft);overflow-wrap:anywhere}"
    ".tiles{display:grid;grid-template-columns:repeat(4,1fr);gap:10px}"
    ".tiles div,section{background:var(--card);border:1px solid var(--line);border-radius:10px}"
    ".tiles div{padding:10px 14px}.tiles b{display:block;font-size:21px;font-weight:650;white-space:nowrap}"
    ".tiles span{color:var(--soft);font-size:13px}"
    "section{margin-top:14px;padding:16px 18px}"
    "section.advice{background:var(--hint);border-color:var(--hint-line)}.advice p{margin:0}.advice p+p{margin-top:6px}"
    "svg{display:block;width:100%;height:auto}svg text{fill:var(--soft);font-size:12px}"
    "svg .grid{stroke:var(--line);stroke-width:1}svg .row{fill:var(--row)}"
    "svg .phase{stroke:var(--soft);stroke-dasharray:3 3}svg text.phase{stroke:none;fill:var(--ink)}"
    ".verdict p{margin:0;font-size:17px}section.verdict{margin:0 0 10px}"
    ".facts{display:grid;grid-template-columns:repeat(auto-fill,minmax(240px,1fr));gap:6px 18px;margin:0}"
    ".facts dt{color:var(--soft);font-size:13px}.facts dd{margin:0;overflow-wrap:anywhere}"
    ".scroll{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}"
    "th{font-weight:500;color:var(--soft);font-size:13px}th,td{padding:4px 9px;text-align:right;white-space:nowrap}"
    "tbody td{border-top:1px solid var(--line)}th:first-child,td:first-child{text-align:left;padding-left:0}"
    "td:first-child i{display:inline-block;width:11px;height:11px;border-radius:3px;margin-right:9px}"
    "td.bar{width:20%;min-width:90px;padding-right:0}"
    "td.bar i{display:block;height:11px;border-radius:3px;min-width:1px}"
    "td small{color:var(--soft);font-size:13px;margin-left:8px}footer{margin-top:14px;color:var(--soft);font-size:13px;"
    "overflow-wrap:anywhere}"
    "@media(max-width:720px){.tiles{grid-template-columns:repeat(2,1fr)}svg{min-width:640px}td small{display:none}}";

static void put_text(FILE *to, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '&': fputs("&amp;", to); break;
        case '<': fputs("&lt;", to); break;
        case '>': fputs("&gt;", to); break;
        case '"': fputs("&quot;", to); break;
        default: fputc(*text, to);
        }
}

/* ------------------------------------------------------------ names and numbers */

static void put_head(const struct report *r, FILE *to)
{
    fputs("<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
          "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>samtools sort: ", to);
    put_text(to, r->facts.input);
    fprintf(to, "</title>\n<style>%s</style></head>\n<body><main>\n<header><h1>samtools sort</h1><p>", style);
    put_text(to, r->facts.input);
    fputs(" &rarr; ", to);
    put_text(to, r->facts.output);
    fputs("</p></header>\n", to);
}

static void put_tile(FILE *to, const char *what, const char *format, ...) __attribute__((format(printf, 3, 4)));

static void put_tile(FILE *to, const char *what, const char *format, ...)
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
    put_tile(to, r->n_threads > 1 ? "threads busy" : "thread busy", "%d &times; %.0f %%", r->n_threads, 100 * report_busy_share(r));
    if (f->run_queue >= 0)
        put_tile(to, "waited for a CPU", "%.2f s", f->run_queue);
    if (report_speed_in_all(r) >= 0)
        put_tile(to, "uncompressed", "%.0f MB/s", report_speed_in_all(r));
    put_tile(to, "records", "%s", report_count(f->records, count));
    put_tile(to, "of the work is I/O", "%.0f %%", 100 * r->io);
    if (f->peak_rss != REPORT_UNKNOWN && f->huge != REPORT_UNKNOWN)
        put_tile(to, "peak RSS / huge pages", "%.0f / %.0f MB", report_mb(f->peak_rss), report_mb(f->huge));
    else if (f->peak_rss != REPORT_UNKNOWN)
        put_tile(to, "peak RSS", "%.0f MB", report_mb(f->peak_rss));
    if (report_lists_nodes(r))
        put_tile(to, "of the memory is on the fullest NUMA node", "%.0f %%",
                 100 * memory_nodes_share(&f->nodes, memory_nodes_fullest(&f->nodes)));
    if (report_serial_per_gb(r) >= 0)
        put_tile(to, "serial, on one thread", "%.3f s/GB", report_serial_per_gb(r));
    else
        put_tile(to, "serial, on one thread", "%.3f s", r->serial);
    fputs("</div>\n", to);
}

static void put_verdict(const struct report *r, FILE *to)
{
    fprintf(to, "<section class=\"verdict\"><p><b>Bound by %s:</b> ", report_bound_name(r->bound));
    put_text(to, r->why);
    fputs("</p></section>\n", to);
}

static void put_fact(FILE *to, const char *name, const char *value)
{
    fprintf(to, "<div><dt>%s</dt><dd>", name);
    put_text(to, *value ? value : "unknown");
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
    fputs("<section><dl class=\"facts\">\n", to);
    put_fact(to, "host", f->host.name);
    put_fact(to, "date", f->host.date);
    put_fact(to, "system", f->host.system);
    put_fact(to, "CPU", f->host.cpu);
    put_fact(to, "cores by socket", report_host_cores(&f->host, cores, sizeof cores));
    snprintf(text, sizeof text, "%.1f GB", (double)f->machine_memory / 1e9);
    put_fact(to, "memory of the machine", text);
    put_file_fact(to, "input", report_input_bytes(r), report_where(f->input_is, &f->in));
    put_file_fact(to, "output", report_output_bytes(r), report_where(f->output_is, &f->out));
    snprintf(text, sizeof text, "%s, %s", report_where(REPORT_REGULAR, &f->temp), report_spilled(r) ? "used" : "not used");
    put_fact(to, "temporary folder", text);
    snprintf(text, sizeof text, "samtools-omp %s, htslib %s, libdeflate %s", f->version, f->host.htslib, f->host.libdeflate);
    put_fact(to, "versions", text);
    snprintf(text, sizeof text, "code for %s; the CPU has %s", f->host.code, *f->host.widest ? f->host.widest : "vectors unknown");
    put_fact(to, "instructions", text);
    fputs("</dl></section>\n", to);
}

static void put_advice(const struct report *r, FILE *to)
{
    if (!r->advice[0][0])
        return;
    fputs("<section class=\"advice\">", to);
    for (int i = 0; i < REPORT_ADVICE_MAX && r->advice[i][0]; i++) {
        fputs("<p>", to);
        put_text(to, r->advice[i]);
        fputs("</p>", to);
    }
    fputs("</section>\n", to);
}

/* ------------------------------------------------------------------ cells */

/* Adds the slot's spans to the cells. */
static void add_slot(struct cells *cells, const struct stats *stats, int slot)
{
    struct stats_span span;
    for (size_t at = 0; stats_next_span(stats, slot, &at, &span);) {
        double from = (double)span.start / cells->ns, end = (double)span.end / cells->ns;
        for (int i = (int)from; i < cells->columns && i < end; i++)
            cells->share[i][span.stage] += fmin(end, i + 1) - fmax(from, i);
    }
}

/* Clears all; so many columns are to stand for the whole time. */
static void cells_begin(struct cells *cells, const struct stats *stats, int columns)
{
    cells->columns = columns;
    cells->ns = fmax((double)stats_wall(stats), 1) / columns;
    memset(cells->share, 0, sizeof cells->share);
}

static double column_x(const struct cells *cells, int column)
{
    return LEFT + (double)PLOT * column / cells->columns;
}

/* The height below the stage in a column. From the bottom: the stages that
 * work, in their order, then waiting. */
static double share_below(const double share[N_STAGES], enum stage stage)
{
    double below = 0;
    for (enum stage other = 0; other < N_STAGES; other++)
        if (stats_stage(other)->kind != STAGE_RESTS && (other < stage || stage == STAGE_WAIT))
            below += share[other];
    return below;
}

/* ---------------------------------------------------------------- picture */

/* Draws the stage as an area between the steps of its top and of its bottom. */
static void put_area(const struct cells *cells, enum stage stage, double unit, FILE *to)
{
    double bottom = AREA_TOP + AREA, any = 0;
    for (int i = 0; i < cells->columns; i++)
        any += cells->share[i][stage];
    if (any * unit < 0.5)                        /* less than one square unit */
        return;
    fprintf(to, "<path fill=\"%s\" d=\"M%d %.1f", colours[stage], LEFT, bottom);
    for (int i = 0; i < cells->columns; i++)
        fprintf(to, "V%.1fH%.1f", bottom - unit * (share_below(cells->share[i], stage) + cells->share[i][stage]),
                column_x(cells, i + 1));
    for (int i = cells->columns - 1; i >= 0; i--)
        fprintf(to, "V%.1fH%.1f", bottom - unit * share_below(cells->share[i], stage), column_x(cells, i));
    fprintf(to, "z\"><title>%s</title></path>\n", stats_stage(stage)->what);
}

/* The step of an axis: 1, 2 or 5 times a power of ten, so that there are at most TICKS. */
static double tick_step(double range)
{
    double power = pow(10, floor(log10(range / TICKS)));
    static const double steps[] = {1, 2, 5};
    int i = 0;
    while (range / (steps[i] * power) > TICKS) {
        power *= i == 2 ? 10 : 1;
        i = (i + 1) % 3;
    }
    return steps[i] * power;
}

static void put_time_axis(const struct report *r, int bottom, FILE *to)
{
    double step = tick_step(fmax(r->wall, 1e-3));
    int decimals = step >= 1 ? 0 : (int)ceil(-log10(step));
    for (int i = 0; r->wall > 0 && i * step <= r->wall; i++) {
        double x = LEFT + PLOT * i * step / r->wall;
        fprintf(to, "<path class=\"grid\" d=\"M%.1f %dV%d\"/><text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.*f s"
                "</text>\n", x, AREA_TOP, bottom, x, bottom + 16, decimals, i * step);
    }
}

static void put_phases(const struct stats *stats, int bottom, FILE *to)
{
    double wall = (double)stats_wall(stats);
    static const char *const names[N_PHASES] = {"opening", "reading", "writing", "finishing"};
    for (enum phase phase = 0; phase < N_PHASES; phase++) {
        uint64_t start, end;
        if (!stats_phase_times(stats, phase, &start, &end) || (double)(end - start) < wall / 15 || wall <= 0)
            continue;                            /* too short for its name */
        double x = LEFT + PLOT * (double)start / wall;
        fprintf(to, "<path class=\"phase\" d=\"M%.1f %dV%d\"/><text class=\"phase\" x=\"%.1f\" y=\"14\">%s</text>\n",
                x, AREA_TOP - 20, bottom, x + 6, names[phase]);
    }
}

static void put_thread_axis(int n_slots, double unit, FILE *to)
{
    int step = (int)fmax(tick_step(n_slots), 1);
    for (int i = 0; i <= n_slots; i += step) {
        double y = AREA_TOP + AREA - unit * i;
        fprintf(to, "<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%d</text>\n",
                LEFT, y, LEFT + PLOT, LEFT - 8, y + 4, i);
    }
    fprintf(to, "<text transform=\"translate(24 %d) rotate(-90)\" text-anchor=\"middle\">threads at work</text>\n",
            AREA_TOP + AREA / 2);
}

/* Draws the stage's part of a thread's row; cells that look alike are joined. */
static void put_bars(const struct cells *cells, enum stage stage, double y, double height, FILE *to)
{
    static const double LEAST = 0.02;            /* of the height; less cannot be seen */
    int begun = 0;
    for (int i = 0, end; i < cells->columns; i = end) {
        const double *share = cells->share[i];
        double below = share_below(share, stage), own = share[stage];
        for (end = i + 1; end < cells->columns && fabs(cells->share[end][stage] - own) < LEAST
                          && fabs(share_below(cells->share[end], stage) - below) < LEAST; end++)
            ;
        if (own < LEAST)
            continue;
        if (!begun++)
            fprintf(to, "<path fill=\"%s\" d=\"", colours[stage]);
        fprintf(to, "M%.1f %.1fH%.1fv%.1fH%.1fz", column_x(cells, i), y + height * (1 - below - own),
                column_x(cells, end), height * own, column_x(cells, i));
    }
    if (begun)
        fprintf(to, "\"><title>%s</title></path>\n", stats_stage(stage)->what);
}

static void put_row(const struct cells *cells, const struct stats *stats, int slot, double y, double height, FILE *to)
{
    char name[STATS_NAME_SIZE];
    fprintf(to, "<rect class=\"row\" x=\"%d\" y=\"%.1f\" width=\"%d\" height=\"%.1f\"/>\n", LEFT, y, PLOT, height);
    for (enum stage stage = STAGE_WAIT; stage < N_STAGES; stage++)
        put_bars(cells, stage, y, height, to);
    if (height >= 10 || slot % 8 == 0) {
        fprintf(to, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", LEFT - 8, y + height / 2 + 4);
        put_text(to, stats_name(stats, slot, name));
        fputs("</text>\n", to);
    }
}

static double row_pitch(int n_slots)
{
    return n_slots <= 4 ? 40 : n_slots <= 8 ? 28 : n_slots <= 32 ? 18 : n_slots <= 128 ? 7 : 3;
}

static void put_rows(struct cells *cells, const struct stats *stats, FILE *to)
{
    int n_slots = stats_slots(stats), columns = COLUMNS;
    double pitch = row_pitch(n_slots), gap = pitch > 10 ? 3 : 1;
    while (columns * n_slots > CELLS_MAX && columns > COLUMNS / 8)
        columns /= 2;
    for (int i = 0; i < n_slots; i++) {
        cells_begin(cells, stats, columns);
        add_slot(cells, stats, i);
        put_row(cells, stats, i, AREA_TOP + AREA + GAP + pitch * i, pitch - gap, to);
    }
}

static void put_areas(struct cells *cells, const struct stats *stats, double unit, FILE *to)
{
    cells_begin(cells, stats, COLUMNS);
    for (int i = 0; i < stats_slots(stats); i++)
        add_slot(cells, stats, i);
    for (enum stage stage = 0; stage < N_STAGES; stage++)
        if (stats_stage(stage)->kind != STAGE_RESTS)
            put_area(cells, stage, unit, to);
}

static void put_picture(const struct report *r, const struct stats *stats, FILE *to)
{
    int n_slots = stats_slots(stats), bottom = AREA_TOP + AREA + GAP + (int)(row_pitch(n_slots) * n_slots);
    double unit = (double)AREA / n_slots;
    struct cells cells;
    fprintf(to, "<section><h2>Threads over time</h2>\n<div class=\"scroll\"><svg viewBox=\"0 0 %d %d\" role=\"img\" "
            "aria-label=\"threads over time by stage\">\n", WIDTH, bottom + AXIS);
    put_thread_axis(n_slots, unit, to);
    put_time_axis(r, bottom, to);
    put_areas(&cells, stats, unit, to);
    put_rows(&cells, stats, to);
    put_phases(stats, bottom, to);
    fputs("</svg></div></section>\n", to);
}

/* ------------------------------------------------------------------ stages */

/* Empty if the number is not known. */
static void put_cell(FILE *to, double number, bool is_known)
{
    if (is_known)
        fprintf(to, "<td>%.0f</td>", number);
    else
        fputs("<td></td>", to);
}

static void put_stage(const struct report *r, enum stage stage, FILE *to)
{
    static const char *const kinds[] = {"", "", "serial", "in turn"};
    const struct report_stage *s = &r->stages[stage];
    const struct stage_info *info = stats_stage(stage);
    double all = r->wall * r->n_threads;
    fprintf(to, "<tr><td><i style=\"background:%s\"></i>%s<small>%s</small></td><td>%s</td><td>%.2f</td><td>%.2f</td>"
            "<td>%.2f</td>", colours[stage], info->name, info->what, kinds[info->kind], s->busy,
            s->busy / r->n_threads, s->critical);
    if (info->may_block)
        fprintf(to, "<td>%.2f</td>", s->blocked);
    else
        fputs("<td></td>", to);
    put_cell(to, report_mb(s->bytes), s->bytes > 0);
    put_cell(to, report_thread_speed(s), s->bytes > 0);
    put_cell(to, report_speed(s), s->bytes > 0 && s->any_thread > 0);
    fprintf(to, "<td class=\"bar\"><i style=\"width:%.1f%%;background:%s\"></i></td></tr>\n",
            all > 0 ? fmin(100 * s->busy / all, 100) : 0, colours[stage]);
}

static void put_stages(const struct report *r, FILE *to)
{
    fputs("<section><h2>Stages</h2><div class=\"scroll\"><table><thead><tr><th>stage</th><th></th><th>s</th>"
          "<th>s per thread</th><th>s critical</th><th>s blocked</th><th>MB</th><th>MB/s each</th><th>MB/s all</th>"
          "<th>share of the threads&rsquo; time</th></tr></thead><tbody>\n", to);
    for (enum stage stage = 0; stage < N_STAGES; stage++)
        if (report_lists(&r->stages[stage]))
            put_stage(r, stage, to);
    fputs("</tbody></table></div></section>\n", to);
}

static void put_foot(const struct report *r, FILE *to)
{
    fprintf(to, "<footer>samtools-omp %s &middot; ", r->facts.version);
    put_text(to, r->facts.command_line);
    fputs("</footer>\n</main></body></html>\n", to);
}

void report_html(const struct report *r, const struct stats *stats, FILE *to)
{
    put_head(r, to);
    put_verdict(r, to);
    put_tiles(r, to);
    put_advice(r, to);
    put_facts(r, to);
    put_picture(r, stats, to);
    put_stages(r, to);
    put_foot(r, to);
}
