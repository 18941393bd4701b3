/* SPDX-License-Identifier: MIT */
#include <math.h>
#include "report/report_plot.h"

enum { TICKS = 10 };

void report_plot_begin(FILE *to, const char *kind, double height, const char *about)
{
    fprintf(to, "<div class=\"plot %s\" style=\"height:%.0fpx\"><svg viewBox=\"0 0 %d %.0f\" "
            "preserveAspectRatio=\"none\" role=\"img\" aria-label=\"%s\">\n", kind, height, REPORT_PLOT_WIDTH, height,
            about);
}

double report_plot_step(double range)
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

/* The number of times that have a line, the first at 0; *step: the time between them. */
static int time_ticks(const struct report *r, double *step)
{
    *step = report_plot_step(fmax(r->wall, 1e-3));
    return r->wall > 0 ? (int)(r->wall / *step) + 1 : 0;
}

static void put_time_lines(const struct report *r, double height, FILE *to)
{
    double step;
    for (int i = 0, n = time_ticks(r, &step); i < n; i++)
        fprintf(to, "<path class=\"grid\" d=\"M%.1f 0V%.0f\"/>", REPORT_PLOT_WIDTH * i * step / r->wall, height);
    fputc('\n', to);
}

void report_plot_axis(const struct report *r, FILE *to)
{
    double step;
    int n = time_ticks(r, &step), decimals = step >= 1 ? 0 : (int)ceil(-log10(step));
    fputs("<div class=\"axis\">", to);
    for (int i = 0; i < n; i++)
        fprintf(to, "<span%s style=\"left:%.2f%%\">%.*f s</span>", n > 4 && i % 2 ? " class=\"odd\"" : "",
                100 * i * step / r->wall, decimals, i * step);
    fputs("</div>\n", to);
}

/* Returns whether the phase is long enough for its name, on a telephone too, where a fifth of the plot is 58 pixels.
 * *at: its start, as a share of the wall time. */
static bool phase_begins(const struct clocks *clocks, enum phase phase, double *at)
{
    uint64_t start, end;
    double wall = (double)clocks_wall(clocks);
    bool named = clocks_phase_times(clocks, phase, &start, &end) && wall > 0 && (double)(end - start) >= wall / 5;
    *at = named ? (double)start / wall : 0;
    return named;
}

void report_plot_phases(const struct clocks *clocks, FILE *to)
{
    static const char *const names[N_PHASES] = {"opening", "reading", "writing", "finishing"};
    double at;
    for (enum phase phase = 0; phase < N_PHASES; phase++)
        if (phase_begins(clocks, phase, &at))
            fprintf(to, "<span class=\"phase\" style=\"left:%.2f%%\">%s</span>", 100 * at, names[phase]);
}

static void put_phase_marks(const struct clocks *clocks, double height, FILE *to)
{
    double at;
    for (enum phase phase = 0; phase < N_PHASES; phase++)
        if (phase_begins(clocks, phase, &at) && at > 0)
            fprintf(to, "<path class=\"mark\" d=\"M%.1f 0V%.0f\"/>", REPORT_PLOT_WIDTH * at, height);
}

void report_plot_lines(const struct report *r, const struct clocks *clocks, double height, FILE *to)
{
    put_time_lines(r, height, to);
    put_phase_marks(clocks, height, to);
}
