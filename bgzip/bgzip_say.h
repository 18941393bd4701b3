/* SPDX-License-Identifier: MIT */
/* The messages of bgzip on standard error: one line each, "bgzip: ...", written at once. */
#ifndef BGZIP_SAY_H
#define BGZIP_SAY_H

/* Returns -1. */
int bgzip_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
