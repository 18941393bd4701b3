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

/* The state that is kept for the text; NULL if there is none. */
void *stats_values_find(struct stats_values *values, const char *text);

/* Takes over `kept` for a text that is not there. NULL: out of memory, or kept is NULL; else `kept`. */
void *stats_values_add(struct stats_values *values, const char *text, void *kept);

/* Frees everything, and each state by `close`. */
void stats_values_free(struct stats_values *values, void (*close)(void *kept));

#endif
