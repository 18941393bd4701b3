/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <htslib/hts_log.h>
#include "base/progress.h"
#include "base/stats.h"

/* Painted often enough to be seen to move; plain lines seldom enough for a log. */
static const uint64_t PAINTED_EVERY = 200000000, PLAIN_EVERY = 5000000000;   /* ns */

static bool on_terminal(void)
{
    const char *term = getenv("TERM");
    return isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

static uint64_t interval(const struct progress *p)
{
    return p->painted ? PAINTED_EVERY : PLAIN_EVERY;
}

void progress_start(struct progress *p, enum progress_when when, const struct stats *stats)
{
    bool paint = when == PROGRESS_ON_TERMINAL && hts_verbose >= HTS_LOG_WARNING && on_terminal();
    *p = (struct progress){.stats = stats, .on = paint || when == PROGRESS_ALWAYS, .painted = paint};
    p->next = p->on ? stats_wall(stats) + interval(p) : 0;
}

/* A shell's background job does not scribble over what its user types. */
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
    enum { LEFT_FROM_PERCENT = 2 };              /* before that it is a guess */
    char share[16] = "", left[32] = "";
    double percent = now->share > 1 ? 100 : now->share * 100;
    if (percent >= 0)
        snprintf(share, sizeof share, " %.0f %%,", percent);
    if (percent >= LEFT_FROM_PERCENT) {
        strcpy(left, ", ");
        duration(left + 2, sizeof left - 8, now->seconds * (100 - percent) / percent);
        strcat(left, " left");
    }
    snprintf(line, size, "[sort] %s%s%s %.2f M records, %.0f MB/s%s", now->doing, percent < 0 ? ":" : "", share,
             (double)now->records / 1e6, now->seconds > 0 ? now->bytes / 1e6 / now->seconds : 0, left);
}

static double share_read(const struct progress *p, double inflated)
{
    if (p->file_bytes > 0)
        return (double)stats_total(p->stats, STAGE_READ).bytes / p->file_bytes;
    return p->data_bytes > 0 ? inflated / p->data_bytes : -1;
}

static struct progress_now look(const struct progress *p)
{
    uint64_t start, end;
    uint64_t dealt = stats_total(p->stats, STAGE_DEAL).records;
    double inflated = (double)stats_total(p->stats, STAGE_INFLATE).bytes;
    struct progress_now now = {"reading", dealt, share_read(p, inflated), inflated, 0};
    bool writes = stats_phase_times(p->stats, PHASE_WRITE, &start, &end);
    if (writes) {
        now.doing = "writing";
        now.records = stats_total(p->stats, STAGE_FILL).records + stats_total(p->stats, STAGE_CONVERT).records;
        now.share = dealt ? (double)now.records / (double)dealt : 0;
        now.bytes = now.share * inflated;
    } else {
        stats_phase_times(p->stats, PHASE_READ, &start, &end);
    }
    now.seconds = (double)(end - start) / 1e9;
    return now;
}

void progress_tick(struct progress *p)
{
    char line[128];
    if (!p || !p->on || stats_wall(p->stats) < p->next)
        return;
    p->next = stats_wall(p->stats) + interval(p);
    if (p->painted && in_background())
        return;
    struct progress_now now = look(p);
    progress_line(line, sizeof line, &now);
    /* The cursor goes back, so that a message paints over the line. */
    fprintf(stderr, p->painted ? "\r%s\033[K\r" : "%s\n", line);
}

void progress_end(struct progress *p, bool succeeded)
{
    if (p->on && p->painted) {
        fputs("\r\033[K", stderr);
    } else if (p->on && succeeded) {
        double seconds = (double)stats_wall(p->stats) / 1e9;
        char took[32];
        duration(took, sizeof took, seconds);
        fprintf(stderr, "[sort] done: %.2f M records, %.0f MB/s, %s\n",
                (double)stats_total(p->stats, STAGE_DEAL).records / 1e6,
                (double)stats_total(p->stats, STAGE_INFLATE).bytes / 1e6 / seconds, took);
    }
    p->on = false;
}
