/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include "report/report.h"

bool report_is_io(enum stage stage)
{
    return stage == STAGE_READ || stage == STAGE_WRITE || stage == STAGE_SPILL_WRITE || stage == STAGE_SPILL_READ;
}

double report_work(const struct report *r)
{
    double sum = 0;
    for (enum stage stage = 0; stage < N_STAGES; stage++)
        sum += clocks_stage(stage)->kind == STAGE_RESTS ? 0 : report_worked(&r->stages[stage]);
    return sum;
}

/* A thread is also in the queue when it wakes up to look for work. So the share is at least that of the CPU time
 * used. */
double report_busy_share(const struct report *r)
{
    double all = r->wall * r->n_threads, queue = r->facts.run_queue > 0 ? r->facts.run_queue : 0;
    double used = r->facts.user + r->facts.system;
    return all > 0 ? fmin(fmax(r->busy - queue / all, used / all), r->busy) : 0;
}

double report_thread_speed(const struct report_stage *s)
{
    return s->busy > 0 ? report_mb(s->bytes) / s->busy : 0;
}

double report_speed(const struct report_stage *s)
{
    return s->any_thread > 0 ? report_mb(s->bytes) / s->any_thread : 0;
}

const char *report_copied_line(const struct report *r, char text[REPORT_LINE_SIZE])
{
    const struct report_copied *c = &r->facts.copied;
    char blocks[REPORT_COUNT_SIZE], bytes[REPORT_COUNT_SIZE];
    if (c->why)
        snprintf(text, REPORT_LINE_SIZE, "none: %s", c->why);
    else
        snprintf(text, REPORT_LINE_SIZE, "%s, with %s bytes of the output", report_count(c->blocks, blocks),
                 report_count(c->bytes, bytes));
    return text;
}

const char *report_counted_line(const struct report *r, char text[REPORT_LINE_SIZE])
{
    const struct counter_numbers *c = &r->facts.counted;
    double all = c->reads ? (double)c->reads / 100 : 1;
    int at = snprintf(text, REPORT_LINE_SIZE, "%.2f %% mapped, %.2f %% duplicates", (double)c->mapped / all,
                      (double)c->duplicates / all);
    if (c->has_pairs)
        snprintf(text + at, (size_t)(REPORT_LINE_SIZE - at), ", mean insert size %.1f, error rate %.4f %%",
                 c->insert_size, 100 * c->error_rate);
    return text;
}

uint64_t report_input_bytes(const struct report *r)
{
    uint64_t read = r->stages[STAGE_READ].bytes;
    return r->facts.in.bytes != REPORT_UNKNOWN || read == 0 ? r->facts.in.bytes : read;
}

/* The bytes that went into a pipe are those written, unless htslib wrote them. */
uint64_t report_output_bytes(const struct report *r)
{
    uint64_t written = r->stages[STAGE_WRITE].bytes;
    return r->facts.out.bytes != REPORT_UNKNOWN || written == 0 ? r->facts.out.bytes : written;
}

const char *report_where(enum report_file kind, const struct report_place *place)
{
    return kind == REPORT_PIPE ? "pipe" : kind == REPORT_REMOTE ? "remote"
         : *place->file_system ? place->file_system : "file system unknown";
}

bool report_spilled(const struct report *r)
{
    return r->stages[STAGE_SPILL_WRITE].events > 0;
}

const char *report_count(uint64_t n, char text[REPORT_COUNT_SIZE])
{
    char digits[REPORT_COUNT_SIZE];
    int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n), at = 0;
    for (int i = 0; i < length; i++) {
        if (i > 0 && (length - i) % 3 == 0)
            text[at++] = ',';
        text[at++] = digits[i];
    }
    text[at] = 0;
    return n == REPORT_UNKNOWN ? strcpy(text, "unknown") : text;
}

bool report_lists(const struct report_stage *s)
{
    return s->events || s->busy >= 0.005;
}

/* Returns whether there is enough input for a rate: with less, starting takes all the time. */
static bool is_enough(const struct report *r)
{
    static const uint64_t ENOUGH = 1000000;      /* bytes */
    return r->bytes >= ENOUGH && r->wall > 0;
}

double report_serial_per_gb(const struct report *r)
{
    return is_enough(r) ? r->serial / ((double)r->bytes / 1e9) : -1;
}

double report_speed_in_all(const struct report *r)
{
    return is_enough(r) ? report_mb(r->bytes) / r->wall : -1;
}

/* Returns whether a was waited for longer than b, or as long and comes before it in the list. */
static bool was_waited_longer(const struct report_input *a, const struct report_input *b)
{
    return a->waited != b->waited ? a->waited > b->waited : a < b;
}

const struct report_input *report_next_input(const struct report_inputs *inputs, const struct report_input *last)
{
    const struct report_input *next = NULL;
    for (const struct report_input *i = inputs->each; i < inputs->each + inputs->n; i++)
        if ((!last || was_waited_longer(last, i)) && (!next || was_waited_longer(i, next)))
            next = i;
    return next;
}
