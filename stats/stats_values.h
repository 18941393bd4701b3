/* SPDX-License-Identifier: MIT */
/* Something for each value of a tag: a table of texts. */
#ifndef STATS_VALUES_H
#define STATS_VALUES_H

#include <stddef.h>
#include <stdint.h>

struct stats_value {
    char *text;
    void *kept;                  /* what is kept for it */
};

/* A zero-initialised struct is empty. */
struct stats_values {
    struct stats_value *each;    /* n, in the order in which they came */
    size_t n, room;
    uint32_t *slots;             /* a hash table of numbers, each 1 + that of a value; 0: free */
    size_t n_slots;              /* a power of 2, more than n */
    size_t last;                 /* the value found last: mostly it is that of the next record */
};

/* How something is kept. */
struct stats_values_kind {
    void *(*open)(const void *arg);      /* NULL: out of memory */
    void (*close)(void *kept);           /* also of NULL */
};

/* What is kept for the text; it is opened if there is none. NULL: out of memory. */
void *stats_values_take(struct stats_values *values, const char *text, const struct stats_values_kind *kind,
                        const void *arg);

/* Frees everything. */
void stats_values_free(struct stats_values *values, const struct stats_values_kind *kind);

#endif
