/* SPDX-License-Identifier: MIT */
/* A table of texts that keeps something for each value of a tag. */
#ifndef STATS_VALUES_H
#define STATS_VALUES_H

#include <stddef.h>
#include <stdint.h>

struct stats_value {
    char *text;
    void *kept;                  /* what is kept for this text */
};

/* A zero-initialised struct is empty. */
struct stats_values {
    struct stats_value *each;    /* n values, in the order in which they came */
    size_t n, room;
    uint32_t *slots;             /* a hash table: each slot is 1 + the number of a value; 0: free */
    size_t n_slots;              /* a power of 2, more than n */
    size_t last;                 /* the value found last; mostly the next record has the same value */
};

/* The functions that open and close the kept things. */
struct stats_values_kind {
    void *(*open)(const void *arg);      /* returns NULL if out of memory */
    void (*close)(void *kept);           /* kept may be NULL */
};

/* Returns what is kept for the text, and opens it if there is nothing yet. Returns NULL if out of memory. */
void *stats_values_take(struct stats_values *values, const char *text, const struct stats_values_kind *kind,
                        const void *arg);

/* Frees everything. */
void stats_values_free(struct stats_values *values, const struct stats_values_kind *kind);

#endif
