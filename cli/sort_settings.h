/* SPDX-License-Identifier: MIT */
/* What the environment's SAMTOOLS_OMP_* say of a sort whose command line leaves it open, so that scripts need no
 * change. An empty variable is none. */
#ifndef SORT_SETTINGS_H
#define SORT_SETTINGS_H

#include <stdint.h>

struct report_request;
struct engine_opts;

/* SAMTOOLS_OMP_TOTAL_MEMORY, as --total-memory; *total stays as it is without. -1 after a message on stderr. */
int sort_settings_memory(uint64_t *total);

/* SAMTOOLS_OMP_TMPDIR: directories with colons between them, each as one -T. Call it while opts has no places for
 * temporary files; it gets none without the variable. -1 after a message on stderr: one of them is no directory in
 * which files can be made. */
int sort_settings_temp(struct engine_opts *opts);

/* SAMTOOLS_OMP_REPORT: the folder for reports. No sort is lost for a report, so a folder that cannot be written is
 * a warning, and there is no report. */
void sort_settings_report(struct report_request *report);

#endif
