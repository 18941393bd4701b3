/* SPDX-License-Identifier: MIT */
/* A counter sees every record of a stream and prints what it counted: stats, flagstat, idxstats. Many threads count, so
 * what is counted is kept in two places:
 *
 *   sums  one for each thread: all that is the same in any order (sums, maxima, histograms). Added up at the end.
 *   part  one for each range of the stream (a slice, or the records of an output block): what depends on the order. It
 *         is small, because parts are joined from left to right while the stream goes on: by one thread at a time, for
 *         each 64 KiB of records.
 *
 * Nothing here knows of threads or files. stats/counts drives counters, for stats/counted (the input of a command) and
 * write/written (the output of one), like this:
 *
 *   begin --> open sums, parts --> add ... --> part.join ... --> sums.join --> fault, print --> close */
#ifndef COUNTER_H
#define COUNTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <htslib/sam.h>

struct latch;

/* How sums are kept, or parts. settings: those of the counter; they live longer than what is kept. */
struct counter_store {
    void *(*open)(const void *settings);             /* an empty one. NULL: out of memory. Itself NULL: none */
    int (*join)(void *left, void *right);            /* adds right, which follows left (parts: in the stream), and is
                                                      * empty afterwards and may be used again. -1: out of memory */
    void (*close)(void *store);                      /* NULL: nothing was opened */
    size_t (*memory)(const void *settings, sam_hdr_t *sam, size_t range);    /* bytes that one takes at most, as far as
                                                               * that is bounded, with ranges of so many bytes of
                                                               * records; called before begin() */
};

/* Files that a counter writes beside its text, when all is counted and the sums of all threads are joined. */
struct counter_files {
    size_t (*n)(const void *sums);                   /* how many. NULL: never any */
    char *(*path)(const void *settings, const void *sums, size_t i);     /* to be freed; NULL: out of memory */
    int (*print)(void *sums, void *part, size_t i, FILE *out, struct latch *latch);      /* as print() below */
};

/* The main numbers, for reports. */
struct counter_numbers {
    const char *of;              /* the command that says so; NULL: nobody counted */
    uint64_t reads, mapped, duplicates;  /* as that command counts them */
    bool has_pairs;              /* the next two are known */
    double insert_size, error_rate;      /* the mean of insert sizes; mismatches of all mapped bases */
};

struct counter {
    const char *command;                             /* "stats", "flagstat", "idxstats" */
    void *settings;
    /* The header of the records, which lives as long as the counter. Before all others, on one thread. -1: the settings
     * and the header do not fit, and the error is recorded in the latch. NULL: nobody asks */
    int (*begin)(void *settings, sam_hdr_t *sam, struct latch *latch);
    struct counter_store sums, part;
    size_t (*whole_memory)(const void *settings, sam_hdr_t *sam);    /* likewise, what the part takes beside that to
                                                                      * which all others are joined; NULL: nothing */
    /* Whether all records must be counted into one part, in their order. NULL: never. */
    bool (*in_sequence)(const void *settings);
    /* Counts a whole record as BAM has it, from its block_size on (bam/bam_record.h), which was checked and mended. It
     * need not be aligned. sums: of this thread; part: NULL if there are none. -1: an error of the data, or no memory,
     * kept in the part with the number of the record inside the part; later adds to this part do nothing. */
    int (*add)(void *sums, void *part, const uint8_t *record, uint32_t size);
    /* The fault of the first record that has one, and its number from 0 on among all that were joined. NULL: nothing.
     * If this is NULL, add() never fails. */
    const char *(*fault)(const void *part, uint64_t *record);
    /* Closes the counting and prints the text; the caller looks at whether the stream took all. -1: the settings do
     * not fit what was counted, or no memory, and the error is recorded in the latch. */
    int (*print)(void *sums, void *part, FILE *out, struct latch *latch);
    struct counter_files files;
    /* When all is printed. NULL: it has none */
    void (*numbers)(const void *sums, struct counter_numbers *numbers);
    void (*end)(void *settings);                     /* gives back what the settings own; NULL: they own nothing */
};

enum { COUNTERS = 3 };           /* how many there are */

#endif
