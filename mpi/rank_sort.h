/* SPDX-License-Identifier: MIT */
/* The sort that all ranks of an MPI run do together: doc/mpi.md. */
#ifndef RANK_SORT_H
#define RANK_SORT_H

#include "engine/engine_opts.h"
#include "mpi/mpi_team.h"

/* Returns why these options cannot be used over MPI; NULL: they can. */
const char *rank_sort_refuses(const struct engine_opts *opts);

/* Every rank calls it with the same options. Returns the exit status; the only message of a failure is on stderr. */
int rank_sort(const struct engine_opts *opts, const struct mpi_team *team);

#endif
