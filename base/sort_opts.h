/* SPDX-License-Identifier: MIT */
/* What the command line of `samtools sort` asks for. cli/sort_args.h makes it; nothing changes it afterwards. */
#ifndef SORT_OPTS_H
#define SORT_OPTS_H

#include <stdbool.h>
#include <stdint.h>
#include <htslib/hts.h>
#include "base/input_name.h"
#include "base/progress.h"
#include "base/sort_order.h"

/* What becomes of the sorted records. */
struct sort_output {
    char *path;                  /* "-": standard output; owned */
    htsFormat format;            /* with the options of --output-fmt-option; owned */
    int level;                   /* 0..9, or BGZF_LEVEL_DEFAULT */
    char *index;                 /* file for the index; NULL: none; owned */
    int index_format;            /* HTS_FMT_CSI, HTS_FMT_BAI or HTS_FMT_CRAI */
};

/* REPORT_FOLDER: JSON and HTML, under names of their own in a folder. */
enum report_format { REPORT_NONE, REPORT_TEXT, REPORT_JSON, REPORT_HTML, REPORT_FOLDER };

enum plan_format { PLAN_NONE, PLAN_TEXT, PLAN_JSON };

struct sort_opts {
    char *in;                    /* "-": standard input; owned */
    char **more;                 /* --add-input: read after it; owned, with the names */
    size_t n_more;
    struct sort_output out;
    struct sort_order order;
    const char **temp_prefixes;  /* -T, or what stands for it: places for temporary files; owned ... */
    size_t n_temp_prefixes;      /* ... at least one */
    char *default_prefix;        /* the one made up, or the text that those of the environment lie in; owned */
    uint64_t size_hint;          /* --size-hint: bytes of uncompressed records; 0: not given */
    const char *reference;       /* FASTA for CRAM; NULL: as htslib finds it */
    htsFormat in_format;         /* holds the options of --input-fmt-option; owned */
    int n_threads;               /* at least 1 */
    uint64_t memory;             /* -m for all threads together, or --total-memory; bytes ... */
    uint64_t memory_beside;      /* ... and what the program may take beside it; 0: nothing, and that is refused */
    bool no_pg;
    bool verify;                 /* see sink_verify.h */
    const char *checksum;        /* file for sort_files_checksum(), "-": standard output; NULL: none */
    bool checksum_samtools;      /* it gets the table of `samtools checksum`; else our line */
    bool check;                  /* see sort_check(): nothing is sorted or written */
    enum plan_format plan;       /* see sort_plan(): likewise */
    enum report_format report;
    const char *report_file;     /* NULL: standard error, or the folder */
    const char *report_folder;   /* of REPORT_FOLDER; else NULL */
    const char *trace_file;      /* NULL: none */
    enum progress_when progress;
    char *command_line;          /* for @PG CL; owned */
};

/* The first input as messages name it. */
static inline const char *sort_opts_input(const struct sort_opts *opts)
{
    return input_name_shown(opts->in);
}

/* Sorts opts->in into opts->out: the driver, bam_sort.c. Returns the exit status; the one message of a failure is on
 * stderr. Does not return if a signal ended the work. */
int bam_sort(const struct sort_opts *opts);

#endif
