/* SPDX-License-Identifier: MIT */
/* The destination of a report: a file that the user named, a folder in which each run leaves one, or standard error. */
#ifndef REPORT_FILE_H
#define REPORT_FILE_H

#include <stdio.h>
#include "base/out_file.h"
#include "report/report_request.h"

struct latch;

/* Writes the report in one of its formats. */
typedef void report_file_fn(FILE *to, enum report_format format, const void *arg);

/* Writes an open file, and gives it its name. -1: failed, and the error is recorded in the latch. */
int report_file_write(struct out_file *file, enum report_format format, report_file_fn *put, const void *arg,
                      struct latch *latch);

/* Writes the report to the requested destination; `file` is open if the request names one. Call it when the output is
 * complete. The folder may have been set by someone other than the user, so an error there is only a warning. */
int report_file_put(struct out_file *file, const struct report_request *request, report_file_fn *put, const void *arg,
                    struct latch *latch);

#endif
