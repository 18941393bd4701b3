/* SPDX-License-Identifier: MIT */
/* Settings of every htslib file, for reading or writing: options, reference and threads; and files in memory. */
#ifndef HTS_FILE_H
#define HTS_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <htslib/hfile.h>
#include <htslib/hts.h>
#include <htslib/sam.h>
#include "base/memory_shares.h"

struct latch;

struct hts_file_options {
    const char *path;            /* for messages */
    bool writing;
    const hts_opt *format_options;   /* --input-fmt-option or --output-fmt-option; NULL: none */
    const char *reference;       /* FASTA for CRAM; NULL: as htslib finds it */
    int n_threads;  /* for the file: at most this many; fewer if they cannot be started; 1: none are started */
    bool no_threads;             /* a format option "nthreads" starts none either */
    struct latch *latch;
};

/* Returns how many of n_threads threads a file of htslib gets within the room, and the memory it takes with them. */
struct htslib_use hts_file_use(bool is_cram, bool writing, const struct htslib_room *room, int n_threads);

/* Returns the last option of this kind, the one that htslib uses; NULL: none. */
const hts_opt *hts_file_option(const hts_opt *options, enum hts_fmt_option kind);

/* Returns the number that the last option of this kind gives; `none` if there is no such option. */
int hts_file_number(const hts_opt *options, enum hts_fmt_option kind, int none);

/* Returns the FASTA whose sequences htslib uses: where several have a sequence of one name, the one that it loads
 * first. Options are applied before --reference, which is `reference`. htslib takes names that this FASTA lacks from
 * the other one, which is not looked at here. NULL: none is named. */
const char *hts_file_fasta(const char *reference, const hts_opt *options);

/* Applies these options to an open file and starts its threads. It does not call hts_set_threads(), which crashes when
 * a thread cannot be created. -1: failed, and the error is recorded in the latch. */
int hts_file_set_up(htsFile *file, htsThreadPool *threads, const struct hts_file_options *options);

/* Ends the threads of a file after it is closed. Call it even after an error. The pool is zero if there are none. */
void hts_file_end_threads(htsThreadPool *threads);

/* Opens a copy of the n bytes, followed by the text `following`, as a file to read, because htslib reads headers only
 * from files. NULL: out of memory. */
hFILE *hts_file_of_bytes(const void *bytes, size_t n, const char *following);

/* Loads the index of a file and warns, as samtools 1.24, if it is older than the file. sam: the file; NULL: it is a
 * BAM. path: for messages; name: as the user gave it; index: path of the index; NULL: htslib finds it. NULL: there is
 * no index, and the error is recorded in the latch. */
hts_idx_t *hts_file_load_index(samFile *sam, const char *path, const char *name, const char *index,
                               struct latch *latch);

/* Records in the latch that the index does not belong to the file. Returns -1. */
int hts_file_wrong_index(const char *path, struct latch *latch);

/* The cause of a failure in htslib, for the end of a message: `no` is errno, or 0 if that was not set. */
const char *hts_file_cause(int no);

#endif
