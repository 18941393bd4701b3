/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <htslib/hts_log.h>
#include "base/machine.h"
#include "base/message.h"
#include "base/progress.h"
#include "base/clocks.h"

/* The painted line is shown often enough to move visibly, plain lines seldom enough for a log. */
static const uint64_t PAINTED_EVERY = 200000000, PLAIN_EVERY = 5000000000;   /* ns */

void progress_start(struct progress *p, enum progress_when when, const struct clocks *clocks)
{
    const char *term = getenv("TERM");
    bool paint = when == PROGRESS_ON_TERMINAL && hts_verbose >= HTS_LOG_WARNING && isatty(STDERR_FILENO) && term
                 && strcmp(term, "dumb") != 0;
    *p = (struct progress){.clocks = clocks, .on = paint || when == PROGRESS_ALWAYS, .painted = paint};
    p->every = paint ? PAINTED_EVERY : PLAIN_EVERY;
    p->cpus = p->on ? machine_cpus() : 0;
    p->next = p->on ? clocks_wall(clocks) + p->every : 0;
}

/* A background job of a shell must not paint over the user's typing. */
static bool in_background(void)
{
    pid_t front = tcgetpgrp(STDERR_FILENO);
    return front >= 0 && front != getpgrp();
}

static void duration(char *text, size_t size, double seconds)
{
    unsigned long s = (unsigned long)(seconds + 0.5);
    if (s < 100)
        snprintf(text, size, "%lu s", s);
    else if (s < 3600)
        snprintf(text, size, "%lu:%02lu min", s / 60, s % 60);
    else
        snprintf(text, size, "%lu:%02lu h", s / 3600, s / 60 % 60);
}

void progress_line(char *line, size_t size, const struct progress_now *now)
{
    char share[16] = "", left[32] = "";
    if (now->share >= 0)                         /* only the last line says 100 */
        snprintf(share, sizeof share, " %d %%,", now->share < 0.99 ? (int)(now->share * 100) : 99);
    if (now->left >= 0) {
        strcpy(left, ", ");
        duration(left + 2, sizeof left - 8, now->left);
        strcat(left, " left");
    }
    snprintf(line, size, "samtools %s: %s%s%s %.2f M records, %.0f MB/s%s", message_command(),
             now->doing, now->share < 0 ? ":" : "", share, (double)now->records / 1e6,
             now->seconds > 0 ? now->bytes / 1e6 / now->seconds : 0, left);
}

double progress_left(const struct progress_work *w)
{
    static const double GUESS_WEIGHS = 0.05;     /* the guess weighs as much as this share of the writing */
    if (w->writing) {
        if (w->write_share < 0)
            return -1;
        double share = w->write_share < 1 ? w->write_share : 1;
        return (1 - share) * (w->write_seconds + GUESS_WEIGHS * w->write_guess) / (share + GUESS_WEIGHS);
    }
    if (w->read_share <= 0)
        return -1;
    double share = w->read_share < 1 ? w->read_share : 1;
    return w->read_seconds * (1 - share) / share + w->write_guess;
}

/* The time to inflate is the measure: blocks that are slow to inflate are slow to deflate, and threads that share CPUs
 * are slow in both. If nothing was inflated, or data were only copied, the speed of an ordinary CPU is the measure.
 * Spilled data are read back, which takes time, too. */
static double guess_writing(const struct progress *p, double data_bytes)
{
    static const double PLAIN = 1e-9, SPILLED = 1.5;   /* seconds per byte; spilling, relative to the time to inflate */
    struct clocks_count inflate = clocks_total(p->clocks, STAGE_INFLATE), pack = clocks_total(p->clocks, STAGE_PACK);
    double inflated = (double)inflate.bytes + 1, threads = clocks_threads(p->clocks);
    double measured = (double)inflate.ns / 1e9 / inflated / threads;
    double plain = PLAIN / (p->cpus < threads ? p->cpus : threads);
    double cost = p->write_cost + SPILLED * (double)pack.bytes / inflated;
    return data_bytes * (measured > plain ? measured : plain) * cost;
}

static double seconds_of(const struct clocks *clocks, enum phase phase)
{
    uint64_t start, end;
    return clocks_phase_times(clocks, phase, &start, &end) ? (double)(end - start) / 1e9 : 0;
}

static double input_bytes(const struct progress *p)
{
    return (double)clocks_input_bytes(clocks_total(p->clocks, STAGE_INFLATE).bytes,
                                      clocks_total(p->clocks, STAGE_FIND).bytes);
}

/* Returns the work of the complete sort; *now describes the phase. */
static struct progress_work work_of(const struct progress *p, struct progress_now *now)
{
    uint64_t start, end;
    double bytes = input_bytes(p), all = bytes;
    struct progress_work w = {
        .read_seconds = seconds_of(p->clocks, PHASE_READ),
        .read_share = p->file_bytes > 0 ? (double)clocks_total(p->clocks, STAGE_READ).bytes / p->file_bytes
                    : p->data_bytes > 0 ? bytes / p->data_bytes : -1,
        .writing = clocks_phase_times(p->clocks, PHASE_WRITE, &start, &end),
        .write_seconds = seconds_of(p->clocks, PHASE_WRITE),
    };
    uint64_t dealt = clocks_total(p->clocks, STAGE_DEAL).records;
    *now = (struct progress_now){"reading", dealt ? dealt : p->taken, bytes, w.read_seconds, -1, -1};
    if (w.writing) {
        uint64_t put = clocks_total(p->clocks, STAGE_FILL).records + clocks_total(p->clocks, STAGE_CONVERT).records;
        w.write_share = dealt ? (double)put / (double)dealt : w.read_share;   /* without a sort, both at once */
        *now = (struct progress_now){"writing", put, dealt ? w.write_share * bytes : bytes, w.write_seconds, -1, -1};
    } else if (w.read_share > 0 && w.read_share < 1) {
        all = bytes / w.read_share;
    }
    w.write_guess = guess_writing(p, all);
    return w;
}

static struct progress_now look(const struct progress *p)
{
    static const double TOLD_FROM = 0.02;        /* share of the input; before it, the guess would rest on too little */
    struct progress_now now;
    struct progress_work w = work_of(p, &now);
    double left = progress_left(&w), spent = w.read_seconds + w.write_seconds;
    if (left >= 0 && (w.writing || w.read_share >= TOLD_FROM)) {
        now.left = left;
        now.share = spent / (spent + left);
    }
    return now;
}

void progress_tick(struct progress *p)
{
    char line[128];
    if (!p || !p->on || clocks_wall(p->clocks) < p->next)
        return;
    p->next = clocks_wall(p->clocks) + p->every;
    if (p->painted && in_background())
        return;
    struct progress_now now = look(p);
    if (now.share >= 0)                          /* guesses change, but the shown share never falls */
        now.share = p->shown = now.share < p->shown ? p->shown : now.share;
    progress_line(line, sizeof line, &now);
    /* The cursor returns to the start, so that a message overwrites the line. */
    fprintf(stderr, p->painted ? "\r%s\033[K\r" : "%s\n", line);
}

void progress_end(struct progress *p, bool succeeded, uint64_t records)
{
    if (p->on && p->painted) {
        fputs("\r\033[K", stderr);
    } else if (p->on && succeeded) {
        double seconds = (double)clocks_wall(p->clocks) / 1e9;
        char took[32];
        duration(took, sizeof took, seconds);
        fprintf(stderr, "samtools %s: done: 100 %%, %.2f M records, %.0f MB/s, %s\n", message_command(),
                (double)records / 1e6, input_bytes(p) / 1e6 / seconds, took);
    }
    p->on = false;
}
