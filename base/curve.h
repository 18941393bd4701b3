/* SPDX-License-Identifier: MIT */
/* The resources that the process used over time: a bounded number of points. The first thread that passes when a point
 * is due adds it. */
#ifndef CURVE_H
#define CURVE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* When the list is full, every second point is dropped, and the time between points doubles. */
enum { CURVE_POINTS = 256 };

struct curve_point {
    uint64_t ns;                 /* since the start */
    uint64_t rss;                /* bytes of memory; 0: unknown */
    uint64_t cpu_ns;             /* CPU time so far */
    uint64_t read, written;      /* bytes so far, in all files */
};

struct curve {
    _Atomic uint64_t next;  /* when the next point is due; set by the thread that holds `taken`, read by all threads */
    atomic_flag taken;           /* the thread that has set it may use the fields below; others do not wait */
    int statm;                   /* /proc/self/statm; -1: not available */
    uint64_t every;              /* ns between points */
    size_t n;
    struct curve_point points[CURVE_POINTS];
};

/* NULL: out of memory. */
struct curve *curve_new(void);
void curve_free(struct curve *curve);

/* Returns whether a point is due. ns: the current time. */
static inline bool curve_due(const struct curve *curve, uint64_t ns)
{
    return ns >= atomic_load_explicit(&curve->next, memory_order_relaxed);
}

/* Adds a point for now, unless another thread is adding one. Takes some microseconds. */
void curve_add(struct curve *curve, uint64_t ns, uint64_t read, uint64_t written);

/* The mean memory over time, in bytes; 0: unknown. */
double curve_mean_rss(const struct curve_point *points, size_t n);

#endif
