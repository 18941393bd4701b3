/* SPDX-License-Identifier: MIT */
/* What the sort says on standard error: one line each, "samtools sort: ..." or "samtools sort: warning: ...", so that
 * the log of a pipeline shows who speaks. A line is written at once: those of programs at work together do not mix. */
#ifndef MESSAGE_H
#define MESSAGE_H

#define MESSAGE_PREFIX "samtools sort: "
#define MESSAGE_WARNING MESSAGE_PREFIX "warning: "

void message_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A mistake in the command line: adds where to look. Returns -1. */
int message_mistake(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Not below --verbosity 3. */
void message_warning(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
