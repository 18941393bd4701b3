/* SPDX-License-Identifier: MIT */
/* Replaces standard input for a while. */
#ifndef UNIT_STDIN_H
#define UNIT_STDIN_H

#include <sys/wait.h>
#include "unit.h"

/* Replaces standard input by fd and closes fd; returns the old one, for unit_restore_stdin(). */
static inline int unit_replace_stdin(int fd)
{
    int old = dup(STDIN_FILENO);
    MUST(old >= 0 && dup2(fd, STDIN_FILENO) == STDIN_FILENO);
    close(fd);
    return old;
}

static inline void unit_restore_stdin(int old)
{
    MUST(dup2(old, STDIN_FILENO) == STDIN_FILENO);
    close(old);
}

/* Replaces standard input by a pipe; a child writes the bytes to it, 1 to `most` at a time. Returns the old one, like
 * unit_replace_stdin(). */
static inline int unit_feed_stdin(const struct unit_bytes *b, uint32_t most, pid_t *child)
{
    int ends[2];
    MUST(pipe(ends) == 0);
    *child = fork();
    if (*child == 0) {
        uint64_t seed = 8;
        close(ends[0]);
        for (size_t at = 0, n; at < b->n; at += n) {
            n = 1 + unit_below(&seed, most);
            n = n < b->n - at ? n : b->n - at;
            unit_write(ends[1], b->data + at, n);
        }
        _exit(0);
    }
    close(ends[1]);
    return unit_replace_stdin(ends[0]);
}

/* The child must have written everything. */
static inline void unit_feed_ended(pid_t child)
{
    int status;
    MUST(waitpid(child, &status, 0) == child);
    assert_int_equal(status, 0);
}

#endif
