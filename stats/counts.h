/* SPDX-License-Identifier: MIT */
/* Counters at work: for each of them sums of each thread, and a part of each slot, in which a range of the stream is
 * counted. Both are made when they are first needed. Serial functions; whoever calls them says which thread it is, and
 * which slot is its own. */
#ifndef COUNTS_H
#define COUNTS_H

#include "stats/counter.h"

struct counts;

struct counts_options {
    const struct counter *counters;  /* n of them; this and the next stay the caller's */
    size_t n;
    const char *path;            /* of the records, for messages */
    int n_threads;
    uint32_t n_slots;
    struct latch *latch;
};

/* sam: of the records; it lives as long as the counts. NULL: a counter and the header do not fit, or no memory, and the
 * error is recorded in the latch. */
struct counts *counts_open(const struct counts_options *options, sam_hdr_t *sam);
void counts_close(struct counts *counts);

/* Counts a record. By any thread, whose slot it is. */
void counts_add(struct counts *counts, int thread, uint32_t slot, const uint8_t *record, uint32_t size);

/* Counts a record that follows on all that are joined, for counters that count in sequence. By one thread at a time. */
void counts_add_joined(struct counts *counts, int thread, const uint8_t *record, uint32_t size);

/* Whether one of the counters does. */
bool counts_in_sequence(const struct counter *counters, size_t n);

/* The range of the slot is counted, and all before it are joined: joins it, and the slot is empty again. By one thread
 * at a time. -1: a record has a fault, or no memory, and the error is recorded in the latch. */
int counts_join(struct counts *counts, uint32_t slot);

/* Likewise for records that were counted in sequence. */
int counts_check(const struct counts *counts);

/* Prints what counter number i has counted, once, when all ranges are joined. -1: as above. */
int counts_print(struct counts *counts, size_t i, FILE *out);

/* Likewise for the files that it has beside the text: how many, the path of one, which is to be freed, and what is
 * printed to it. -1, NULL: as above. */
int counts_files(struct counts *counts, size_t i, size_t *n);
char *counts_file_path(const struct counts *counts, size_t i, size_t file);
int counts_file_print(struct counts *counts, size_t i, size_t file, FILE *out);

/* The main numbers of the first counter that has some, when all is printed. */
struct counter_numbers counts_numbers(const struct counts *counts);

/* Bytes of memory that they take at most, as far as that is bounded. range: bytes of records in a slot. */
size_t counts_memory(const struct counter *counters, size_t n, sam_hdr_t *sam, int n_threads, uint32_t n_slots,
                     size_t range);

#endif
