/* SPDX-License-Identifier: MIT */
/* samtools-omp-mpi: `sort` on several nodes. It knows no other command. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/message.h"
#include "cli/sort_args.h"
#include "cli/sort_paths.h"
#include "mpi/rank_sort.h"

static int usage(int rank)
{
    if (rank == 0)
        fputs("usage: samtools-omp-mpi sort [options of samtools sort] -o out.bam in.bam\n", stderr);
    return EXIT_FAILURE;
}

static enum sort_args_result parse(struct sort_opts *opts, int argc, char **argv, bool tells)
{
    enum sort_args_result parsed = sort_args_parse(opts, argc, argv);
    if (parsed != SORT_ARGS_RUN || !tells)
        return parsed;
    const char *why = rank_sort_refuses(opts);
    if (why)
        message_error("over MPI, %s. Nothing was read.", why);
    return why || sort_paths_check(opts) < 0 ? SORT_ARGS_ERROR : parsed;
}

/* Rank 0 reads the command line before the others do, so that a mistake is told once. */
static int sort_main(const struct mpi_team *team, int argc, char **argv)
{
    struct sort_opts opts;
    int parsed = SORT_ARGS_RUN, status = EXIT_FAILURE;
    if (team->rank == 0)
        parsed = parse(&opts, argc, argv, true);
    MPI_Bcast(&parsed, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (team->rank > 0 && parsed != SORT_ARGS_RUN)
        return parsed == SORT_ARGS_DONE ? EXIT_SUCCESS : EXIT_FAILURE;
    if (team->rank > 0)
        parse(&opts, argc, argv, false);
    if (parsed == SORT_ARGS_RUN)
        status = rank_sort(&opts, team);
    else if (parsed == SORT_ARGS_DONE)
        status = EXIT_SUCCESS;
    sort_args_free(&opts);
    return status;
}

int main(int argc, char **argv)
{
    struct mpi_team team;
    if (mpi_team_open(&team, &argc, &argv) < 0)
        return EXIT_FAILURE;
    signal(SIGXFSZ, SIG_IGN);
    if (mpi_team_check_launcher(&team) < 0)
        return mpi_team_close(EXIT_FAILURE);
    bool sorts = argc > 1 && strcmp(argv[1], "sort") == 0;
    return mpi_team_close(sorts ? sort_main(&team, argc, argv) : usage(team.rank));
}
