/* SPDX-License-Identifier: MIT */
/* The ranks of a unit test, which all files that call MPI share. */
#include "mpi.h"

struct unit_world unit_world = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
_Thread_local int unit_rank;
