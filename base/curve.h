/* SPDX-License-Identifier: MIT */
/* What the process used over time: a bounded number of points, taken by whichever thread comes by when one is due. */
#ifndef CURVE_H
#define CURVE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* When it is full, every second point goes, and the time between points doubles. */
enum { CURVE_POINTS = 256 };

struct curve_point {
    uint64_t ns;                 /* since the beginning */
    uint64_t rss;                /* bytes of memory; 0: not known */
    uint64_t cpu_ns;             /* CPU time so far */
    uint64_t read, written;      /* bytes so far, of all files */
};

struct curve {
    _Atomic uint64_t next;       /* when the next point is due; set by who has `taken`, read by all threads */
    atomic_flag taken;           /* who has set it may use the fields below; the others do not wait */
    int statm;                   /* /proc/self/statm; -1: there is none */
    uint64_t every;              /* ns between points */
    size_t n;
    struct curve_point points[CURVE_POINTS];
};

/* NULL: out of memory. */
struct curve *curve_new(void);
void curve_free(struct curve *curve);

/* Whether it is time for a point. ns: the time now. */
static inline bool curve_due(const struct curve *curve, uint64_t ns)
{
    return ns >= atomic_load_explicit(&curve->next, memory_order_relaxed);
}

/* Adds a point of now, if no other thread is at it. Some microseconds. */
void curve_add(struct curve *curve, uint64_t ns, uint64_t read, uint64_t written);

/* The mean of the memory over time, in bytes; 0: not known. */
double curve_mean_rss(const struct curve_point *points, size_t n);

#endif
