/* SPDX-License-Identifier: MIT */
/* Points are taken from time to time (curve.h). Numbers that add up are drawn as rates: each step of the time gets its
 * part of the difference between the points around it. */
#include <math.h>
#include "report/report_curves.h"
#include "report/report_plot.h"

enum { STEPS = 125, HEIGHT = 64 };

/* A number of a point. */
typedef double curve_number_fn(const struct curve_point *point);

static double memory_of(const struct curve_point *p) { return (double)p->rss; }
static double cpu_of(const struct curve_point *p) { return (double)p->cpu_ns; }
static double read_of(const struct curve_point *p) { return (double)p->read; }
static double written_of(const struct curve_point *p) { return (double)p->written; }

struct plotted_line {
    const struct curve_point *points;
    size_t n;                    /* at least two */
    curve_number_fn *number;
    bool adds_up;                /* its rate is drawn, in units per ns */
    const char *colour;
};

/* The number at a time, on the straight line between two points. */
static double at_time(const struct plotted_line *l, double ns)
{
    size_t i = 1;
    while (i + 1 < l->n && (double)l->points[i].ns < ns)
        i++;
    double from = (double)l->points[i - 1].ns, took = (double)l->points[i].ns - from;
    double a = l->number(&l->points[i - 1]), b = l->number(&l->points[i]);
    double part = took > 0 ? fmin(fmax((ns - from) / took, 0), 1) : 1;
    return a + part * (b - a);
}

static double step_value(const struct plotted_line *l, double step_ns, int i)
{
    double before = at_time(l, i * step_ns), after = at_time(l, (i + 1) * step_ns);
    return l->adds_up ? (after - before) / step_ns : (before + after) / 2;
}

static double most_of(const struct plotted_line *l, double step_ns)
{
    double most = 0;
    for (int i = 0; i < STEPS; i++)
        most = fmax(most, step_value(l, step_ns, i));
    return most;
}

static void put_line(const struct plotted_line *l, double step_ns, double top, FILE *to)
{
    fprintf(to, "<path class=\"line\" stroke=\"%s\" d=\"M0 %d", l->colour, HEIGHT);
    for (int i = 0; i < STEPS; i++)
        fprintf(to, "L%.1f %.1f", REPORT_PLOT_WIDTH * (i + 0.5) / STEPS,
                HEIGHT * (1 - step_value(l, step_ns, i) / top));
    fputs("\"/>\n", to);
}

/* A round number above the largest, for the top of the axis. */
static double top_of(double most)
{
    static const double LEAST = 0.01;            /* for a line that stays at 0 */
    double step = report_plot_step(fmax(most, LEAST));
    return step * ceil(fmax(most, LEAST) / step);
}

/* Draws up to two lines with the same scale; unit: the number that 1 on the axis stands for. */
static void put_plot(const struct report *r, const struct clocks *clocks, const struct plotted_line *lines, int n,
                     double unit, const char *about, FILE *to)
{
    double step_ns = r->wall * 1e9 / STEPS, most = 0;
    for (int i = 0; i < n; i++)
        most = fmax(most, most_of(&lines[i], step_ns));
    double top = top_of(most / unit);
    report_plot_begin(to, "curve", HEIGHT, about);
    report_plot_lines(r, clocks, HEIGHT, to);
    fprintf(to, "<path class=\"grid\" d=\"M0 0H%dM0 %dH%d\"/>\n", REPORT_PLOT_WIDTH, HEIGHT, REPORT_PLOT_WIDTH);
    for (int i = 0; i < n; i++)
        put_line(&lines[i], step_ns, top * unit, to);
    fprintf(to, "</svg><span class=\"y\" style=\"top:0\">%.10g</span><span class=\"y\" style=\"top:100%%\">0</span>",
            top);
}

void report_curves(const struct report *r, const struct clocks *clocks, FILE *to)
{
    static const char memory[] = "#2f8fd0", cpu[] = "#3aa35a", in[] = "#3f6fd8", out[] = "#d0607a";
    const struct curve_point *points;
    size_t n = clocks_curve(clocks, &points);
    if (n < 2 || r->wall <= 0)
        return;
    struct plotted_line held = {points, n, memory_of, false, memory}, used = {points, n, cpu_of, true, cpu};
    struct plotted_line moved[] = {{points, n, read_of, true, in}, {points, n, written_of, true, out}};
    if (r->mean_rss != REPORT_UNKNOWN) {
        put_plot(r, clocks, &held, 1, 1e6, "memory of the process over time", to);
        fprintf(to, "<span class=\"what\"><b style=\"color:%s\">memory</b>, MB: mean %.0f, peak %.0f</span></div>\n",
                memory, report_mb(r->mean_rss), r->facts.peak_rss != REPORT_UNKNOWN ? report_mb(r->facts.peak_rss) : 0);
    }
    put_plot(r, clocks, &used, 1, 1, "CPUs in use over time", to);
    fprintf(to, "<span class=\"what\"><b style=\"color:%s\">CPUs</b> in use: mean %.2f</span></div>\n", cpu,
            (r->facts.user + r->facts.system) / r->wall);
    put_plot(r, clocks, moved, 2, 1e-3, "bytes read and written over time", to);
    fprintf(to, "<span class=\"what\">MB/s <b style=\"color:%s\">read</b> and <b style=\"color:%s\">written</b></span>"
            "</div>\n", in, out);
}
