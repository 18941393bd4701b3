/* SPDX-License-Identifier: MIT */
/* The settings of the OpenMP runtime in the environment. The runtime reads them when it is loaded, so one that is
 * set later has no effect: the program starts itself once more to change one.
 *
 *   OMP_WAIT_POLICY=passive   is added, unless the user says how threads wait: idle threads sleep (doc/dev/tried.md)
 *   GOMP_CPU_AFFINITY         loses the CPUs that the process may not use: GCC's runtime would end the program when
 *                             it puts a thread on one of them
 *   OMP_NUM_THREADS           is left out if it is no number: LLVM's runtime would end the program
 *   *_STACKSIZE               are left out. Our threads need as much as they need: with 16k they crash, and of 64G
 *                             the runtime gets none and ends the program */
#ifndef RUNTIME_ENV_H
#define RUNTIME_ENV_H

#include <stdbool.h>
#include "base/affinity.h"

/* The program's file is started once more, with these arguments and with what of env suits. Returns if nothing has
 * to change, or if it cannot be done (no /proc, no memory): then the runtime's own rules hold.
 *
 * For a function in .preinit_array: it runs before the constructors of all libraries, so that the runtime has neither
 * shown its settings (OMP_DISPLAY_ENV) nor bound the first thread. Libraries that a user preloads stand in for
 * readlink() and execv() and are not ready yet; hence system calls. */
void runtime_env_settle(char **argv, char **env);

/* Does the same from main(), for C libraries that do not call .preinit_array (musl). The first thread may already be
 * bound, and would start the program bound. */
void runtime_env_settle_late(char **argv);

/* What the user is to be told of variables that this start was spared, without an end of line. NULL: nothing. */
const char *runtime_env_warning(void);

/* How many threads OMP_NUM_THREADS asks for, of at most so many that a program may have; 1 if it does not. */
enum { RUNTIME_ENV_THREADS_MAX = 4096 };
int runtime_env_threads(void);

/* ---- for tests ---- */

/* The list of CPUs ("0 3-5 8-14:2", with blanks or commas) without those that are not allowed, in its order, to be
 * freed. "" if none is left or it is no such list. NULL: all are allowed, or nobody knows, or there is no memory. */
char *runtime_env_usable_cpus(const char *list, const struct affinity *allowed);

/* Whether the text is a number of threads, or one for each level: "8", "4,2". */
bool runtime_env_counts_threads(const char *text);

/* env as it suits. The caller frees it by runtime_env_free(). NULL: it does so already, or there is no memory. */
char **runtime_env_suited(char **env, const struct affinity *allowed);
void runtime_env_free(char **env);

#endif
