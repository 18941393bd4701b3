/* SPDX-License-Identifier: MIT */
/* The parts that all modules of one command share. The driver fills this struct once, and each module that runs tasks
 * gets a pointer to it. Serial functions get only the latch or the clocks. */
#ifndef ENGINE_H
#define ENGINE_H

struct clocks;
struct latch;

struct engine {
    struct latch *latch;         /* the first error */
    struct clocks *clocks;       /* NULL: nothing is measured */
    int n_threads;               /* threads of the team; the system may start fewer */
};

#endif
