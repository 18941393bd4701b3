/* SPDX-License-Identifier: MIT */
/* samtools-omp-mpi: `sort` on several nodes. It has no other command. */
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "base/runtime_env.h"
#include "mpi/rank_options.h"
#include "mpi/rank_sort.h"

static bool is_sort(int argc, char **argv)
{
    return argc > 1 && strcmp(argv[1], "sort") == 0;
}

#ifdef __linux__
static void settle_early(int argc, char **argv, char **env)
{
    if (is_sort(argc, argv))
        runtime_env_settle(argv, env);
}
__attribute__((section(".preinit_array"), used)) static void (*const settle)(int, char **, char **) = settle_early;
#endif

static int sort_main(const struct mpi_team *team, int argc, char **argv)
{
    struct engine_opts opts;
    enum engine_args_result asked = rank_options_read(&opts, team, argc, argv);
    int status = asked == ENGINE_ARGS_ERROR ? EXIT_FAILURE : EXIT_SUCCESS;
    if (asked == ENGINE_ARGS_RUN)
        status = rank_sort(&opts, team);
    engine_args_free(&opts);
    return status;
}

int main(int argc, char **argv)
{
    struct mpi_team team;
    if (is_sort(argc, argv))
        runtime_env_settle_late(argv);
    if (mpi_team_open(&team, &argc, &argv) < 0)
        return EXIT_FAILURE;
    signal(SIGXFSZ, SIG_IGN);
    if (mpi_team_check_launcher(&team) < 0)
        return mpi_team_close(&team, EXIT_FAILURE);
    return mpi_team_close(&team, sort_main(&team, argc, argv));
}
