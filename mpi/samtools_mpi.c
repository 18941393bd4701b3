/* SPDX-License-Identifier: MIT */
/* samtools-omp-mpi: `sort` on several nodes. It knows no other command. */
#include <signal.h>
#include <stdlib.h>
#include "mpi/rank_options.h"
#include "mpi/rank_sort.h"

static int sort_main(const struct mpi_team *team, int argc, char **argv)
{
    struct sort_opts opts;
    enum sort_args_result asked = rank_options_read(&opts, team, argc, argv);
    int status = asked == SORT_ARGS_ERROR ? EXIT_FAILURE : EXIT_SUCCESS;
    if (asked == SORT_ARGS_RUN)
        status = rank_sort(&opts, team);
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
        return mpi_team_close(&team, EXIT_FAILURE);
    return mpi_team_close(&team, sort_main(&team, argc, argv));
}
