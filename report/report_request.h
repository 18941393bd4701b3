/* SPDX-License-Identifier: MIT */
/* The reports that a command makes. The command line fills the struct in, and owns all pointers. */
#ifndef REPORT_REQUEST_H
#define REPORT_REQUEST_H

#include <stddef.h>
#include <stdint.h>

/* REPORT_FOLDER: JSON and HTML, with generated names in a folder. */
enum report_format { REPORT_NONE, REPORT_TEXT, REPORT_JSON, REPORT_HTML, REPORT_FOLDER };

struct report_request {
    enum report_format format;
    const char *file;            /* NULL: standard error, or the folder */
    const char *folder;          /* for REPORT_FOLDER; otherwise NULL */
    const char *trace_file;      /* NULL: none */
    /* Contents of the reports: */
    char *const *inputs;         /* at least one; "-": standard input */
    size_t n_inputs;
    const char *output;          /* "-": standard output */
    const char *temp_prefix;     /* the first of the places for temporary files; NULL: none */
    const char *command_line;
    uint64_t memory;             /* bytes */
    int more_threads;            /* threads in addition to those of -@ */
    int level;                   /* level of the output, as in write/output_request.h */
};

#endif
