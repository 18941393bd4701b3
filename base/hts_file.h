/* SPDX-License-Identifier: MIT */
/* The needs of every file of htslib, whether it is read or written: options, reference and threads; and files in
 * memory. */
#ifndef HTS_FILE_H
#define HTS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <htslib/hfile.h>
#include <htslib/hts.h>
#include <htslib/sam.h>

struct latch;

struct hts_file_options {
    const char *path;            /* for messages */
    bool writing;
    const hts_opt *format_options;   /* --input-fmt-option or --output-fmt-option; NULL: none */
    const char *reference;       /* FASTA for CRAM; NULL: as htslib finds it */
    int n_threads;               /* for the file: at most these, and as many as can be had; 1: it starts none */
    bool no_threads;             /* a format option "nthreads" starts none either */
    struct latch *latch;
};

/* Applies these options to a file that is open, and starts its threads. It does not call hts_set_threads(), which
 * crashes when a thread cannot be made. -1: failed, and the error is recorded in the latch. */
int hts_file_set_up(htsFile *file, htsThreadPool *threads, const struct hts_file_options *options);

/* Ends the threads of a file after it is closed, also after an error. The pool is zero if there are none. */
void hts_file_end_threads(htsThreadPool *threads);

/* Opens a copy of the n bytes, and of the text that follows them, as a file to read: htslib reads headers only from
 * files. NULL: out of memory. */
hFILE *hts_file_of_bytes(const void *bytes, size_t n, const char *following);

/* Loads the index of a file, and warns if it is older than that, as samtools 1.24. sam: the file; NULL: it is BAM.
 * path: for messages; name: as the user gave it; index: the index's own name; NULL: as htslib finds it. NULL: there is
 * none, and the error is recorded in the latch. */
hts_idx_t *hts_file_load_index(samFile *sam, const char *path, const char *name, const char *index,
                               struct latch *latch);

/* Records in the latch that the file and its index do not fit. Returns -1. */
int hts_file_wrong_index(const char *path, struct latch *latch);

/* Why htslib failed, for the end of a message: `no` is errno, or 0 if that was not set. */
const char *hts_file_cause(int no);

#endif
