/* SPDX-License-Identifier: MIT */
/* Counters at work. Each counter has sums for each thread, and a part for each slot, in which a range of the stream is
 * counted. Both are made when they are first needed. The functions are serial, but tasks join the sums of the threads
 * before the main thread prints them. The caller passes the number of its thread and of its own slot. */
#ifndef COUNTS_H
#define COUNTS_H

#include "stats/counter.h"

struct counts;
struct engine;

struct counts_options {
    const struct counter *counters;  /* n of them; they and `path` stay the caller's */
    size_t n;
    const char *path;            /* path of the records, for messages */
    const struct engine *engine;
    uint32_t n_slots;
};

/* sam: the header of the records; it lives as long as the counts. regions: all records overlap one; NULL: they may be
 * anywhere. Returns NULL if a counter and the header do not fit together, or if out of memory; the error is recorded in
 * the latch. */
struct counts *counts_open(const struct counts_options *options, sam_hdr_t *sam, const struct ref_regions *regions);
/* Call it after the parallel region, because late tasks still look at their slot. */
void counts_close(struct counts *counts);

/* Counts a record. Any thread may call it, with its own slot. */
void counts_add(struct counts *counts, int thread, uint32_t slot, const uint8_t *record, uint32_t size);

/* Counts a record that follows all records that are joined, for counters that count in sequence. Only one thread may
 * call it at a time. */
void counts_add_joined(struct counts *counts, int thread, const uint8_t *record, uint32_t size);

/* Returns true if one of the counters counts in sequence. */
bool counts_in_sequence(const struct counter *counters, size_t n);

/* Joins the range of the slot; the slot is empty afterwards. Call it when the range is counted and all ranges before it
 * are joined. Only one thread may call it at a time. Returns -1 if a record has a fault, or if out of memory; the error
 * is recorded in the latch. */
int counts_join(struct counts *counts, uint32_t slot);

/* Prepares the range of the slot `left` and the range of the slot `right`, which follows it, so that counts_join() of
 * both takes less time. A range that was prepared with ranges after it stands for all of them in later calls. last: the
 * slot of the last range that `left` stands for; `left` itself if there are no others. Any thread may call it, for
 * slots that no other thread uses. Returns false if nothing can be prepared. */
bool counts_pair(struct counts *counts, uint32_t left, uint32_t last, uint32_t right);

/* Checks the records that were counted in sequence for faults. Returns -1 on an error, as above. */
int counts_check(const struct counts *counts);

/* Prints what counter number i has counted. Call it once, when all ranges are joined. Returns -1 on an error, as
 * above. */
int counts_print(struct counts *counts, size_t i, FILE *out);

/* These three functions are for the files that counter number i writes in addition to its text. Each returns -1 or NULL
 * on an error, as above. *n: the number of files. */
int counts_files(struct counts *counts, size_t i, size_t *n);
/* Returns the path of a file; the caller frees it. */
char *counts_file_path(const struct counts *counts, size_t i, size_t file);
int counts_file_print(struct counts *counts, size_t i, size_t file, FILE *out);

/* Returns the main numbers of the first counter that has some. Call it when everything is printed. */
struct counter_numbers counts_numbers(const struct counts *counts);

/* Returns an upper limit on the bytes of memory that the counters take, as far as there is one. range: bytes of records
 * in a slot. */
size_t counts_memory(const struct counter *counters, size_t n, sam_hdr_t *sam, int n_threads, uint32_t n_slots,
                     size_t range);

#endif
