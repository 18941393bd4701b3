/* SPDX-License-Identifier: MIT */
/* samtools-omp report A.json B.json [-o page.html]: what --report=FILE.json wrote of two sorts, beside each other. */
#ifndef REPORT_COMMAND_H
#define REPORT_COMMAND_H

/* argv[1] is "report". Returns the exit status; the one message of a failure is on standard error. */
int report_command(int argc, char **argv);

#endif
