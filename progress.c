/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <htslib/hts_log.h>
#include "progress.h"
#include "stats.h"

/* Painted often enough to be seen to move; plain lines seldom enough for a log. */
static const uint64_t PAINTED_EVERY = 200000000, PLAIN_EVERY = 5000000000;   /* ns */

static bool on_terminal(void)
{
    const char *term = getenv("TERM");
    return isatty(STDERR_FILENO) && term && strcmp(term, "dumb") != 0;
}

void progress_start(struct progress *p, enum progress_when when, const struct stats *stats)
{
    bool paint = when == PROGRESS_ON_TERMINAL && hts_verbose >= HTS_LOG_WARNING && on_terminal();
    *p = (struct progress){stats, paint || when == PROGRESS_ALWAYS, paint,
                           stats_wall(stats) + (paint ? PAINTED_EVERY : PLAIN_EVERY)};
}

/* A shell's background job does not scribble over what its user types. */
static bool in_background(void)
{
    pid_t front = tcgetpgrp(STDERR_FILENO);
    return front >= 0 && front != getpgrp();
}

bool progress_due(struct progress *p)
{
    if (!p->on || stats_wall(p->stats) < p->next)
        return false;
    p->next = stats_wall(p->stats) + (p->painted ? PAINTED_EVERY : PLAIN_EVERY);
    return !p->painted || !in_background();
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

void progress_show(const struct progress *p, const struct progress_now *now)
{
    char line[128];
    progress_line(line, sizeof line, now);
    /* The cursor goes back, so that a message paints over the line. */
    fprintf(stderr, p->painted ? "\r%s\033[K\r" : "%s\n", line);
}

void progress_end(struct progress *p, bool succeeded, uint64_t records, double bytes)
{
    double seconds = (double)stats_wall(p->stats) / 1e9;
    char took[32];
    if (!p->on)
        return;
    p->on = false;
    if (p->painted) {
        fputs("\r\033[K", stderr);
        return;
    }
    if (!succeeded)
        return;
    duration(took, sizeof took, seconds);
    fprintf(stderr, "[sort] done: %.2f M records, %.0f MB/s, %s\n", (double)records / 1e6, bytes / 1e6 / seconds, took);
}
