/* SPDX-License-Identifier: MIT */
/* Plots are stretched to the width of the page, so that nothing is cut on a narrow one. The text beside them is placed
 * in percent. From top to bottom:
 *
 *     the number of threads in each stage over time (stacked)
 *     the same for each thread
 *     the resources of the process (report_curves.c)
 *     the time
 *
 * The legend is beside them, or below. */
#include <math.h>
#include <string.h>
#include "report/report_chart.h"
#include "report/report_curves.h"
#include "report/report_markup.h"
#include "report/report_plot.h"

enum {
    /* The units of the plots; those of the height are pixels. */
    PLOT = REPORT_PLOT_WIDTH, AREA = 190,
    COLUMNS = 500,               /* each 2 units wide */
    CELLS_MAX = 1 << 14,         /* in all rows; bounds the page: about 20 bytes per cell and stage */
};

/* The share of each stage in each column, `columns` of which are in use. */
struct cells {
    int columns;
    double ns;                   /* per column */
    double share[COLUMNS][N_STAGES];
};

/* Hues show the object of the work: input blue to green, sorting yellow, output red to orange, writing purple,
 * temporary data teal. They are legible on white and on black. Stages that touch in the picture also differ in
 * lightness, for readers who see fewer hues. */
static const char *const colours[N_STAGES] = {
    [STAGE_IDLE] = "var(--idle)", [STAGE_WAIT] = "var(--wait)",
    [STAGE_READ] = "#2a4fb8", [STAGE_DEAL] = "#a8d0ff", [STAGE_INFLATE] = "#2fa39a", [STAGE_PARSE] = "#3d8f5a",
    [STAGE_FIND] = "#7fcf9b",
    [STAGE_SORT] = "#efc43a", [STAGE_PLAN] = "#a8713a", [STAGE_MERGE] = "#ec6fa5", [STAGE_FILL] = "#d63b4e",
    [STAGE_GATHER] = "#9c3a17", [STAGE_DEFLATE] = "#f58a3c", [STAGE_WRITE] = "#8a5bd6", [STAGE_VERIFY] = "#c77d9b",
    [STAGE_PACK] = "#1f7f8c",
    [STAGE_SPILL_WRITE] = "#b48ae0", [STAGE_SPILL_READ] = "#5a86c9", [STAGE_UNPACK] = "#5fc0c9",
    [STAGE_CONVERT] = "#b5a642", [STAGE_INDEX] = "#d08bd0", [STAGE_JOIN] = "#b0d45e", [STAGE_FREE] = "#7d6b5d",
    [STAGE_OTHER] = "var(--other)",
};

const char *report_chart_colour(enum stage stage)
{
    return colours[stage];
}

/* ------------------------------------------------------------------ cells */

/* Clears all cells; `columns` columns stand for all of the time. */
static void cells_begin(struct cells *cells, const struct clocks *clocks, int columns)
{
    cells->columns = columns;
    cells->ns = fmax((double)clocks_wall(clocks), 1) / columns;
    memset(cells->share, 0, sizeof cells->share);
}

static double column_x(const struct cells *cells, int column)
{
    return (double)PLOT * column / cells->columns;
}

/* The height below the stage in a column. From the bottom: the working stages, in their order, then waiting. */
static double share_below(const double share[N_STAGES], enum stage stage)
{
    double below = 0;
    for (enum stage other = 0; other < N_STAGES; other++)
        if (clocks_stage(other)->kind != STAGE_RESTS && (other < stage || stage == STAGE_WAIT))
            below += share[other];
    return below;
}

/* ------------------------------------------------------------- all threads */

/* Draws the stage as an area between the steps of its top and of its bottom. */
static void put_area(const struct cells *cells, enum stage stage, double unit, FILE *to)
{
    double any = 0;
    for (int i = 0; i < cells->columns; i++)
        any += cells->share[i][stage];
    if (any * unit < 0.5)                        /* less than one square unit */
        return;
    fprintf(to, "<path fill=\"%s\" d=\"M0 %d", colours[stage], AREA);
    for (int i = 0; i < cells->columns; i++)
        fprintf(to, "V%.1fH%.1f", AREA - unit * (share_below(cells->share[i], stage) + cells->share[i][stage]),
                column_x(cells, i + 1));
    for (int i = cells->columns - 1; i >= 0; i--)
        fprintf(to, "V%.1fH%.1f", AREA - unit * share_below(cells->share[i], stage), column_x(cells, i));
    fprintf(to, "z\"><title>%s</title></path>\n", clocks_stage(stage)->what);
}

static void put_areas(struct cells *cells, const struct clocks *clocks, double unit, FILE *to)
{
    cells_begin(cells, clocks, COLUMNS);
    for (int i = 0; i < clocks_slots(clocks); i++)
        report_add_spans(clocks, i, cells->ns, cells->share, cells->columns);
    for (enum stage stage = STAGE_WAIT; stage < N_STAGES; stage++)      /* the rest of the height is idle */
        put_area(cells, stage, unit, to);
}

static void put_all_threads(struct cells *cells, const struct report *r, const struct clocks *clocks, FILE *to)
{
    int n_slots = clocks_slots(clocks), step = (int)fmax(report_plot_step(n_slots), 1);
    double unit = (double)AREA / n_slots;
    report_plot_begin(to, "area", AREA, "how many threads are in which stage, over time");
    put_areas(cells, clocks, unit, to);
    report_plot_lines(r, clocks, AREA, to);
    fputs("</svg>", to);
    report_plot_phases(clocks, to);
    for (int i = 0; i <= n_slots; i += step)
        fprintf(to, "<span class=\"y\" style=\"top:%.1f%%\">%d%s</span>", 100 - 100.0 * i / n_slots, i,
                i + step > n_slots ? n_slots > 1 ? " threads" : " thread" : "");
    fputs("</div>\n", to);
}

/* -------------------------------------------------------------------- rows */

/* Draws the stage's part of a thread's row; cells that look alike are joined. */
static void put_bars(const struct cells *cells, enum stage stage, double y, double height, FILE *to)
{
    static const double LEAST = 0.02;            /* share of the height; less is invisible */
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
        fprintf(to, "\"><title>%s</title></path>\n", clocks_stage(stage)->what);
}

static void put_row(const struct cells *cells, double y, double height, FILE *to)
{
    fprintf(to, "<rect class=\"row\" x=\"0\" y=\"%.1f\" width=\"%d\" height=\"%.1f\"/>\n", y, PLOT, height);
    for (enum stage stage = STAGE_WAIT; stage < N_STAGES; stage++)
        put_bars(cells, stage, y, height, to);
}

static double row_pitch(int n_slots)
{
    return n_slots <= 4 ? 34 : n_slots <= 8 ? 26 : n_slots <= 32 ? 17 : n_slots <= 128 ? 7 : 3;
}

static void put_row_names(const struct clocks *clocks, double pitch, double height, FILE *to)
{
    char name[CLOCKS_NAME_SIZE];
    for (int slot = 0; slot < clocks_slots(clocks); slot++)
        if (pitch > 13 || slot % 8 == 0) {
            fprintf(to, "<span class=\"y\" style=\"top:%.1fpx\">", pitch * slot + height / 2);
            report_markup_text(to, clocks_name(clocks, slot, name));
            fputs("</span>", to);
        }
}

static void put_rows(struct cells *cells, const struct report *r, const struct clocks *clocks, FILE *to)
{
    int n_slots = clocks_slots(clocks), columns = COLUMNS;
    double pitch = row_pitch(n_slots), height = pitch - (pitch > 10 ? 3 : 1);
    while (columns * n_slots > CELLS_MAX && columns > COLUMNS / 8)
        columns /= 2;
    report_plot_begin(to, "rows", pitch * n_slots, "what each thread does, over time");
    for (int i = 0; i < n_slots; i++) {
        cells_begin(cells, clocks, columns);
        report_add_spans(clocks, i, cells->ns, cells->share, cells->columns);
        put_row(cells, pitch * i, height, to);
    }
    report_plot_lines(r, clocks, pitch * n_slots, to);
    fputs("</svg>", to);
    put_row_names(clocks, pitch, height, to);
    fputs("</div>\n", to);
}

/* ------------------------------------------------------------------ legend */

static void put_legend(const struct report *r, FILE *to)
{
    fputs("<ul class=\"legend\">\n", to);
    for (enum stage stage = 0; stage < N_STAGES; stage++)
        if (report_lists(&r->stages[stage]))
            fprintf(to, "<li><i style=\"background:%s\"></i><b>%s</b> %s</li>\n", colours[stage],
                    clocks_stage(stage)->name, clocks_stage(stage)->what);
    fputs("</ul>", to);
}

void report_chart(const struct report *r, const struct clocks *clocks, FILE *to)
{
    struct cells cells;
    fputs("<section><h2>Threads over time</h2>\n<div class=\"picture\"><div>\n", to);
    put_all_threads(&cells, r, clocks, to);
    put_rows(&cells, r, clocks, to);
    report_curves(r, clocks, to);
    report_plot_axis(r, to);
    fputs("</div>\n", to);
    put_legend(r, to);
    fputs("</div></section>\n", to);
}
