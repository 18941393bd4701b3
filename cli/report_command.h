/* SPDX-License-Identifier: MIT */
/* samtools-omp report A.json B.json [-o page.html]: compares two runs by their files of --report. */
#ifndef REPORT_COMMAND_H
#define REPORT_COMMAND_H

/* argv[1] is "report". Returns the exit status; a failure prints one message on standard error. */
int report_command(int argc, char **argv);

#endif
