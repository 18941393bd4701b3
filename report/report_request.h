/* SPDX-License-Identifier: MIT */
/* The reports that a command is to make. The command line fills it in; all pointers stay its own. */
#ifndef REPORT_REQUEST_H
#define REPORT_REQUEST_H

#include <stddef.h>
#include <stdint.h>

/* REPORT_FOLDER: JSON and HTML, under names of their own in a folder. */
enum report_format { REPORT_NONE, REPORT_TEXT, REPORT_JSON, REPORT_HTML, REPORT_FOLDER };

struct report_request {
    enum report_format format;
    const char *file;            /* NULL: standard error, or the folder */
    const char *folder;          /* of REPORT_FOLDER; else NULL */
    const char *trace_file;      /* NULL: none */
    /* What they tell of what was asked for: */
    char *const *inputs;         /* at least one; "-": standard input */
    size_t n_inputs;
    const char *output;          /* "-": standard output */
    const char *temp_prefix;     /* the first of the places for temporary files; NULL: there are none */
    const char *command_line;
    uint64_t memory;             /* bytes */
    int more_threads;            /* than -@ says */
};

#endif
