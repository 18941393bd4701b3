/* SPDX-License-Identifier: MIT */
/* The messages of a command on standard error: one line each, "samtools sort: ..." or "samtools sort: warning: ...", so
 * that the log of a pipeline shows which program wrote it. Each line is one write, so lines of concurrent programs do
 * not mix. */
#ifndef MESSAGE_H
#define MESSAGE_H

enum message_kind { MESSAGE_ERROR, MESSAGE_MISTAKE, MESSAGE_WARNING };

/* Sets the name of the command; before that it is "sort". Call it before threads are started. The caller keeps name. */
void message_set_command(const char *name);
/* Sets the name of a separate program instead: messages begin with "bgzip: ..." and refer to the help of bgzip-omp. */
void message_set_program(const char *name);
const char *message_command(void);

/* Returns -1. */
int message_print(enum message_kind kind, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define message_error(...) message_print(MESSAGE_ERROR, __VA_ARGS__)
/* A mistake in the command line: adds a hint where to read about it. */
#define message_mistake(...) message_print(MESSAGE_MISTAKE, __VA_ARGS__)
/* Prints nothing below --verbosity 3. */
#define message_warning(...) message_print(MESSAGE_WARNING, __VA_ARGS__)

#endif
