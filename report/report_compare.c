/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <string.h>
#include <jansson.h>
#include "base/version.h"
#include "report/report.h"
#include "report/report_compare.h"
#include "report/report_markup.h"

/* The kind of a number, which decides its format. */
enum unit { SECONDS, SHARE, MEGABYTES, COUNT };

static const struct row {
    const char *path, *what;
    enum unit unit;
    bool less_is_better;
} rows[REPORT_COMPARE_NUMBERS] = {
    {"wall_s", "wall time, s", SECONDS, true},
    {"user_s", "CPU time of the program, s", SECONDS, true},
    {"system_s", "CPU time of the system, s", SECONDS, true},
    {"run_queue_s", "waited for a CPU, s", SECONDS, true},
    {"serial/s", "work of one thread, s", SECONDS, true},
    {"busy_share", "threads busy, %", SHARE, false},
    {"cpu_share", "CPU time used, %", SHARE, false},
    {"io_share", "I/O of the work, %", SHARE, false},
    {"threads", "threads", COUNT, false},
    {"cpus", "CPUs", COUNT, false},
    {"memory_bytes", "memory allowed, MB", MEGABYTES, false},
    {"peak_rss_bytes", "peak memory, MB", MEGABYTES, true},
    {"mean_rss_bytes", "mean memory, MB", MEGABYTES, true},
    {"stages/spill_write/bytes", "temporary data, MB", MEGABYTES, true},
    {"input_bytes", "input, bytes", COUNT, false},
    {"output_bytes", "output, bytes", COUNT, false},
    {"bytes", "uncompressed, bytes", COUNT, false},
    {"records", "records", COUNT, false},
};
static const struct {
    const char *path, *what;
} texts[REPORT_COMPARE_TEXTS] = {
    {"input", "input"}, {"date", "date"}, {"host", "host"}, {"cpu_model", "CPU"}, {"version", "version"},
    {"verdict/bound_by", "bound by"},
};
enum { INPUT = 0, HOST = 2, CPU = 3, VERSION = 4 };
enum { WALL = 0, THREADS = 8, RECORDS = REPORT_COMPARE_NUMBERS - 1 };

/* ----------------------------------------------------------------- reading */

enum { PATH = 64 };

/* The value at the end of a path of keys, "verdict/bound_by". NULL: none. */
static const json_t *value_at(const json_t *from, const char *path)
{
    char keys[PATH], *rest = keys;
    snprintf(keys, sizeof keys, "%s", path);
    for (char *key; from && (key = strsep(&rest, "/"));)
        from = json_object_get(from, key);
    return from;
}

static void copy_text(const json_t *root, const char *path, char to[REPORT_COMPARE_SIZE])
{
    const char *text = json_string_value(value_at(root, path));
    snprintf(to, REPORT_COMPARE_SIZE, "%s", text ? text : "");
}

/* Returns the number at a path. NAN: it is missing, or below 0, as no number of our reports is. */
static double number_at(const json_t *root, const char *path)
{
    const json_t *value = value_at(root, path);
    double number = json_number_value(value);
    return json_is_number(value) && number >= 0 ? number : NAN;
}

static void take_values(struct report_compare_side *s, const json_t *root)
{
    char path[PATH];
    for (size_t i = 0; i < REPORT_COMPARE_TEXTS; i++)
        copy_text(root, texts[i].path, s->texts[i]);
    for (size_t i = 0; i < REPORT_COMPARE_NUMBERS; i++)
        s->numbers[i] = number_at(root, rows[i].path);
    for (enum stage stage = 0; stage < N_STAGES; stage++) {
        snprintf(path, sizeof path, "stages/%s/s", clocks_stage(stage)->name);
        s->stages[stage] = number_at(root, path);
    }
}

/* JSON of other programs lacks the keys that are checked at the end. */
int report_compare_read(struct report_compare_side *s, const char *name, const char *json, size_t size)
{
    *s = (struct report_compare_side){.name = name};
    json_t *root = json_loadb(json, size, 0, NULL);
    if (!root)
        return -1;
    take_values(s, root);
    json_decref(root);
    return *s->texts[VERSION] && !isnan(s->numbers[WALL]) && !isnan(s->numbers[RECORDS])
        && !isnan(s->stages[STAGE_OTHER]) ? 0 : -1;
}

/* ----------------------------------------------------------------- numbers */

enum { NUMBER_SIZE = 48 };

static const char *number_text(double number, enum unit unit, char text[NUMBER_SIZE])
{
    if (isnan(number))
        return strcpy(text, "unknown");
    if (unit == MEGABYTES)
        number = round(number / 1e6);
    if ((unit == COUNT || unit == MEGABYTES) && number < 1e18)
        return report_count((uint64_t)number, text);
    snprintf(text, NUMBER_SIZE, unit == SECONDS ? "%.2f" : "%.0f", unit == SHARE ? 100 * number : number);
    return text;
}

/* A smaller number of seconds, or share, is shown as 0. */
static const double LEAST = 0.005;

/* The second number as a multiple of the first; "" if that is meaningless. */
static const char *ratio_text(double a, double b, char text[NUMBER_SIZE])
{
    *text = 0;
    if (a >= LEAST && !isnan(b))
        snprintf(text, NUMBER_SIZE, "%.2f", b / a);
    return text;
}

static bool is_listed(double a, double b)
{
    return a >= LEAST || b >= LEAST;
}

/* A sentence if the two cannot be compared directly, or "". */
static const char *caution(const struct report_compare_side sides[2])
{
    const struct report_compare_side *a = &sides[0], *b = &sides[1];
    if (a->numbers[RECORDS] != b->numbers[RECORDS])
        return "The numbers of records differ: A and B processed different data.";
    if (strcmp(a->texts[HOST], b->texts[HOST]) != 0 || strcmp(a->texts[CPU], b->texts[CPU]) != 0)
        return "A and B ran on different machines.";
    return "";
}

/* ---------------------------------------------------------------- headline */

/* A smaller change may be noise: as a share of the time of all threads (for seconds), or of the number itself. */
static const double NOISE_OF_ALL = 0.02, NOISE = 0.1;

/* The time of all threads of the longer run. */
static double time_of_all(const struct report_compare_side sides[2])
{
    double most = 0;
    for (int i = 0; i < 2; i++)
        most = fmax(most, sides[i].numbers[WALL] * fmax(sides[i].numbers[THREADS], 1));
    return most;
}

static double change_of(const struct report_compare_side sides[2], enum stage stage)
{
    double change = sides[1].stages[stage] - sides[0].stages[stage];
    return isnan(change) ? 0 : change;
}

static bool is_noise(double a, double b, double all)
{
    return fabs(b - a) <= NOISE * a || fabs(b - a) < NOISE_OF_ALL * all;
}

/* Lists the stages that took time, those that changed most first. Returns their number. */
static int sort_by_change(const struct report_compare_side sides[2], enum stage sorted[N_STAGES])
{
    int n = 0;
    for (enum stage stage = 0; stage < N_STAGES; stage++) {
        if (!is_listed(sides[0].stages[stage], sides[1].stages[stage]))
            continue;
        int at = n++;
        for (; at > 0 && fabs(change_of(sides, stage)) > fabs(change_of(sides, sorted[at - 1])); at--)
            sorted[at] = sorted[at - 1];
        sorted[at] = stage;
    }
    return n;
}

/* Adds up to three stages that changed in the direction of the wall time. */
static void name_changes(const struct report_compare_side sides[2], bool slower, char *text, size_t size)
{
    enum { NAMED = 3 };
    enum stage sorted[N_STAGES];
    int n = sort_by_change(sides, sorted), named = 0;
    for (int i = 0; i < n && named < NAMED; i++) {
        double change = change_of(sides, sorted[i]);
        if (clocks_stage(sorted[i])->kind == STAGE_RESTS || (change > 0) != slower
            || is_noise(sides[0].stages[sorted[i]], sides[1].stages[sorted[i]], time_of_all(sides)))
            continue;
        size_t at = strlen(text);
        snprintf(text + at, size - at, "%s %s %+.2f s", named++ ? "," : ":", clocks_stage(sorted[i])->name, change);
    }
}

enum { HEADLINE_SIZE = 200 };

/* Describes the difference of the wall times and names the stages that caused it, or says that the runs cannot be
 * compared. */
static const char *headline(const struct report_compare_side sides[2], char text[HEADLINE_SIZE])
{
    static const double SAME = 0.03;
    double a = sides[0].numbers[WALL], b = sides[1].numbers[WALL];
    if (sides[0].numbers[RECORDS] != sides[1].numbers[RECORDS] || a <= 0 || b <= 0)
        return strcpy(text, "A and B processed different data");
    if (fabs(b - a) <= SAME * fmax(a, b))
        return strcpy(text, "A and B take the same time, within 3 %");
    snprintf(text, HEADLINE_SIZE, "B is %.2f x %s", fmax(a, b) / fmin(a, b), b > a ? "slower" : "faster");
    name_changes(sides, b > a, text, HEADLINE_SIZE);
    return text;
}

/* -------------------------------------------------------------------- text */

static void print_texts(FILE *to, const char *what, const char *a, const char *b)
{
    fprintf(to, "  %-28s %24.24s %24.24s\n", what, report_host_known(a), report_host_known(b));
}

static void print_row(FILE *to, const char *what, enum unit unit, double a, double b)
{
    char x[NUMBER_SIZE], y[NUMBER_SIZE], ratio[NUMBER_SIZE];
    fprintf(to, "  %-28s %24s %24s %8s\n", what, number_text(a, unit, x), number_text(b, unit, y),
            ratio_text(a, b, ratio));
}

/* The end of a long name is more useful than its beginning. */
static const char *tail_of(const char *name)
{
    enum { SHOWN = 24 };
    size_t n = strlen(name);
    return n > SHOWN ? name + n - SHOWN : name;
}

void report_compare_text(const struct report_compare_side sides[2], FILE *to)
{
    const struct report_compare_side *a = &sides[0], *b = &sides[1];
    char line[HEADLINE_SIZE];
    fprintf(to, "  %s\n\n", headline(sides, line));
    fprintf(to, "  %-28s %24s %24s %8s\n", "", tail_of(a->name), tail_of(b->name), "ratio");
    print_texts(to, texts[INPUT].what, tail_of(a->texts[INPUT]), tail_of(b->texts[INPUT]));
    for (size_t i = INPUT + 1; i < REPORT_COMPARE_TEXTS; i++)
        print_texts(to, texts[i].what, a->texts[i], b->texts[i]);
    for (size_t i = 0; i < REPORT_COMPARE_NUMBERS; i++)
        print_row(to, rows[i].what, rows[i].unit, a->numbers[i], b->numbers[i]);
    fputs("  seconds of all threads:\n", to);
    for (enum stage stage = 0; stage < N_STAGES; stage++)
        if (is_listed(a->stages[stage], b->stages[stage]))
            print_row(to, clocks_stage(stage)->name, SECONDS, a->stages[stage], b->stages[stage]);
    if (*caution(sides))
        fprintf(to, "  %s\n", caution(sides));
}

/* -------------------------------------------------------------------- page */

static void put_texts(FILE *to, const char *what, const char *a, const char *b)
{
    fprintf(to, "<tr><td>%s</td><td data-label=\"A\">", what);
    report_markup_text(to, report_host_known(a));
    fputs("</td><td data-label=\"B\">", to);
    report_markup_text(to, report_host_known(b));
    fputs("</td><td></td></tr>\n", to);
}

/* Writes a row. A number that is better or worse has a colour, unless that may be noise. all: the time of all threads
 * together, of which `a` and `b` are a part; 0 for the wall time. */
static void put_row(FILE *to, const char *what, enum unit unit, bool less_is_better, double all, double a, double b)
{
    char x[NUMBER_SIZE], y[NUMBER_SIZE], ratio[NUMBER_SIZE];
    bool counts = less_is_better && !is_noise(a, b, unit == SECONDS ? all : 0);
    bool better = counts && b < a, worse = counts && b > a;
    fprintf(to, "<tr><td>%s</td><td data-label=\"A\">%s</td><td data-label=\"B\">%s</td>", what,
            number_text(a, unit, x), number_text(b, unit, y));
    if (*ratio_text(a, b, ratio))
        fprintf(to, "<td data-label=\"B / A\"%s>%s</td></tr>\n",
                better ? " class=\"good\"" : worse ? " class=\"bad\"" : "", ratio);
    else
        fputs("<td></td></tr>\n", to);
}

static void begin_table(FILE *to, const char *heading)
{
    fprintf(to, "<section><h2>%s</h2><table class=\"two\"><thead><tr><th></th><th>A</th><th>B</th><th>B / A</th></tr>"
            "</thead><tbody>\n", heading);
}

void report_compare_html(const struct report_compare_side sides[2], FILE *to)
{
    const struct report_compare_side *a = &sides[0], *b = &sides[1];
    char line[HEADLINE_SIZE];
    enum stage sorted[N_STAGES];
    int n = sort_by_change(sides, sorted);
    double all = time_of_all(sides);
    report_markup_begin(to, "samtools: two reports", headline(sides, line), a->name, " (A) &rarr; (B) ", b->name);
    if (*caution(sides))
        fprintf(to, "<section class=\"advice\"><p>%s</p></section>\n", caution(sides));
    begin_table(to, "Seconds of all threads, by stage: the largest changes first");
    for (int i = 0; i < n; i++)
        put_row(to, clocks_stage(sorted[i])->name, SECONDS, clocks_stage(sorted[i])->kind != STAGE_RESTS, all,
                a->stages[sorted[i]], b->stages[sorted[i]]);
    fputs("</tbody></table></section>\n", to);
    begin_table(to, "Numbers");
    for (size_t i = 0; i < REPORT_COMPARE_NUMBERS; i++)
        put_row(to, rows[i].what, rows[i].unit, rows[i].less_is_better, i == WALL ? 0 : all, a->numbers[i],
                b->numbers[i]);
    fputs("</tbody></table></section>\n", to);
    begin_table(to, "Files and machines");
    for (size_t i = 0; i < REPORT_COMPARE_TEXTS; i++)
        put_texts(to, texts[i].what, a->texts[i], b->texts[i]);
    fputs("</tbody></table></section>\n", to);
    report_markup_end(to, version_omp(), "green: less; red: more; no colour: within 10 % or 2 % of the time");
}
