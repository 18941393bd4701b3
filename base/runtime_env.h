/* SPDX-License-Identifier: MIT */
/* The settings of the OpenMP runtime in the environment. The runtime reads them when it is loaded, so a later change
 * has no effect: the program starts itself again to change one.
 *
 *   OMP_WAIT_POLICY=passive   is added, unless the user says how threads wait: idle threads sleep (doc/dev/tried.md)
 *   GOMP_CPU_AFFINITY         loses the CPUs that the process may not use: GCC's runtime would end the program when
 *                             it puts a thread on one of them
 *   OMP_NUM_THREADS           is left out if it is not a number: LLVM's runtime would end the program
 *   *_STACKSIZE               are left out. The default suits our threads: with 16k they crash, and with 64G the
 *                             runtime gets no stack and ends the program */
#ifndef RUNTIME_ENV_H
#define RUNTIME_ENV_H

#include <stdbool.h>
#include "base/affinity.h"

/* Starts the program's file again, with these arguments and the suitable variables of env. Returns if nothing has to
 * change, or if it cannot be done (no /proc, out of memory): then the runtime's own rules hold.
 *
 * Call it from a function in .preinit_array, which runs before the constructors of all libraries. Then the runtime has
 * neither shown its settings (OMP_DISPLAY_ENV) nor bound the first thread. Libraries that a user preloads replace
 * readlink() and execv() and are not ready yet; hence system calls. */
void runtime_env_settle(char **argv, char **env);

/* Does the same from main(), for C libraries that do not call .preinit_array (musl). The first thread may already be
 * bound, and would start the program bound. */
void runtime_env_settle_late(char **argv);

/* The warning about variables that were left out for this start, without a line end. NULL: none. */
const char *runtime_env_warning(void);

/* The number of threads that OMP_NUM_THREADS sets, at most RUNTIME_ENV_THREADS_MAX; 1 if it sets none. */
enum { RUNTIME_ENV_THREADS_MAX = 4096 };
int runtime_env_threads(void);

/* ---- for tests ---- */

/* The list of CPUs ("0 3-5 8-14:2", with blanks or commas) without those that are not allowed, in its order, to be
 * freed. "" if none is left or it is not a list of CPUs. NULL: all are allowed, or that is unknown, or out of
 * memory. */
char *runtime_env_usable_cpus(const char *list, const struct affinity *allowed);

/* Returns whether the text is a number of threads, or a list with one for each level: "8", "4,2". */
bool runtime_env_counts_threads(const char *text);

/* The suitable form of env. runtime_env_free() frees it. NULL: env is suitable already, or out of memory. */
char **runtime_env_suited(char **env, const struct affinity *allowed);
void runtime_env_free(char **env);

#endif
