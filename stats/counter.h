/* SPDX-License-Identifier: MIT */
/* A counter sees every record of a stream and prints what it counted: stats, flagstat, idxstats, coverage. Many threads
 * count, so the counts are kept in two places:
 *
 *   sums  one for each thread: everything that does not depend on the order (sums, maxima, histograms). They are added
 *         up at the end.
 *   part  one for each range of the stream (a slice, or the records of an output block): everything that depends on the
 *         order. It is small, because parts are joined from left to right while the stream continues. One thread at a
 *         time joins. The other threads prepare neighbouring parts in pairs, if the counter can do that.
 *
 * This header does not deal with threads or files. stats/counts drives counters, for stats/counted (the input of a
 * command) and write/written (the output of a command), like this:
 *
 *   begin --> open sums, parts --> add ... --> part.join ... --> sums.join --> fault, print --> close
 */
#ifndef COUNTER_H
#define COUNTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <htslib/sam.h>

struct latch;
struct ref_regions;

/* The functions that keep sums or parts. settings: the settings of the counter, which outlive the sums and parts. */
struct counter_store {
    void *(*open)(const void *settings);             /* returns an empty one, or NULL if out of memory. NULL pointer:
                                                      * none are kept */
    int (*join)(void *left, void *right);            /* adds right to left and makes right empty; right may be used
                                                      * again. Parts: right follows left in the stream. Returns -1 if
                                                      * out of memory */
    void (*close)(void *store);                      /* store: NULL if nothing was opened */
    size_t (*memory)(const void *settings, sam_hdr_t *sam, size_t range);    /* returns the most bytes that one takes,
                                                               * as far as that is bounded. range: bytes of records in a
                                                               * range. Called before begin() */
};

/* Files that a counter writes in addition to its text, after everything is counted and the sums of all threads are
 * joined. */
struct counter_files {
    size_t (*n)(const void *sums);                   /* returns the number of files. NULL pointer: never any */
    char *(*path)(const void *settings, const void *sums, size_t i);     /* the caller frees it; NULL: out of memory */
    int (*print)(void *sums, void *part, size_t i, FILE *out, struct latch *latch);      /* as print() below */
};

/* The main numbers, for reports. */
struct counter_numbers {
    const char *of;              /* the command that counted; NULL: no command did */
    uint64_t reads, mapped, duplicates;  /* as that command counts them */
    bool has_pairs;              /* the next two are known */
    double insert_size, error_rate;      /* the mean of insert sizes; mismatches of all mapped bases */
};

struct counter {
    const char *command;                             /* "stats", "flagstat", "idxstats", "coverage" */
    void *settings;
    /* Gets the header of the records, which lives as long as the counter. regions: all records overlap one of these;
     * begin() may copy them. NULL: records may be anywhere. Called before all others, on one thread. Returns -1 if the
     * settings and the header do not fit together; the error is recorded in the latch. NULL if not needed */
    int (*begin)(void *settings, sam_hdr_t *sam, const struct ref_regions *regions, struct latch *latch);
    struct counter_store sums, part;
    size_t (*whole_memory)(const void *settings, sam_hdr_t *sam);    /* additional bytes of the part to which
                                                                      * all others are joined; NULL: none */
    /* Prepares two parts, of which `right` follows `left`, so that less is left to do when both are joined. A part that
     * was prepared with parts after it stands for all of them in later calls. last: the last of the parts that `left`
     * stands for; `left` itself if there are no others. Any thread may call it, while another thread joins other parts.
     * Returns false if it does nothing. NULL: parts are not prepared. If several counters of a run have it, only the
     * parts of the first are prepared. */
    bool (*pair)(void *left, const void *last, void *right);
    /* Returns true if all records must be counted into one part, in their order. NULL: never. */
    bool (*in_sequence)(const void *settings);
    /* Counts a complete record as BAM has it, from its block_size on (bam/bam_record.h). The record was checked and
     * normalised; it need not be aligned. sums: those of this thread; part: NULL if there are none. Returns -1 on an
     * error of the data, or if out of memory. The part keeps the error and the number of the record inside the part;
     * later adds to this part do nothing. */
    int (*add)(void *sums, void *part, const uint8_t *record, uint32_t size);
    /* Returns the fault of the first record that has one. *record gets the number of that record, from 0, among all
     * that were joined. Returns NULL if there is no fault. If this pointer is NULL, add() never fails. */
    const char *(*fault)(const void *part, uint64_t *record);
    /* Closes the counting and prints the text; the caller checks that the stream took all of it. Returns -1 if the
     * settings do not fit what was counted, or if out of memory; the error is recorded in the latch. */
    int (*print)(void *sums, void *part, FILE *out, struct latch *latch);
    struct counter_files files;
    /* Called when everything is printed. NULL: the counter has no numbers */
    void (*numbers)(const void *sums, struct counter_numbers *numbers);
    void (*end)(void *settings);                     /* frees what the settings own; NULL: they own nothing */
};

/* The counters, by their commands. Each NAME has struct NAME_settings and NAME_counter(), and NAME_args_parse() reads
 * the command line of the command. Commands that write records count in their pass, too: --NAME FILE
 * (cli/count_args.c). */
#define COUNTER_LIST(X) X(stats) X(flagstat) X(idxstats) X(coverage)

#define COUNTER_NUMBER(name) COUNTER_##name,
enum counter_number { COUNTER_LIST(COUNTER_NUMBER) COUNTERS };

#endif
