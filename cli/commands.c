/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>
#include <htslib/hts.h>
#include "base/version.h"
#include "cli/commands.h"
#include "cli/upstream.h"

/* The first lines have the form of samtools' own: pipelines look for the line with "Version". There must
 * be one such line, so that of the samtools behind us is not shown. */
static void print_head(FILE *to)
{
    fprintf(to,
            "\n"
            "Program: samtools (Tools for alignments in the SAM format)\n"
            "Version: " SAMTOOLS_VERSION " (using htslib %s)\n"
            "\n"
            "Usage:   samtools <command> [options]\n"
            "\n"
            "This is samtools-omp " SAMTOOLS_OMP_VERSION ". It runs `sort`, as samtools " SAMTOOLS_VERSION
            " does, on every core:\n"
            "see `samtools sort --help`.\n", hts_version());
}

static void print_ours(FILE *to)
{
    fputs("\n"
          "Commands:\n"
          "     sort           sort alignment file\n"
          "     help [cmd]     display this help message or help for [cmd]\n"
          "     version        detailed version information\n"
          "\n", to);
}

static void print_how_to_get_one(FILE *to)
{
    const char *chosen = getenv("SAMTOOLS_UPSTREAM");
    fputs("All other commands (view, index, merge ...) need another samtools beside this one. ", to);
    if (chosen && *chosen)
        fprintf(to, "SAMTOOLS_UPSTREAM\nis to name it, but %s cannot be run. Correct or unset it.\n", chosen);
    else
        fputs("There is none on PATH.\n"
              "Install one (apt install samtools; conda install -c bioconda samtools) in a folder that comes after\n"
              "this program's on PATH, or set SAMTOOLS_UPSTREAM to its full name.\n", to);
}

/* In the child: becomes the samtools behind us, which prints its help into the pipe. */
static void become_upstream(int pipe_end)
{
    char name[] = "samtools", help[] = "help", *argv[] = {name, help, NULL};
    int null = open("/dev/null", O_RDWR);
    if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(null, STDERR_FILENO) >= 0
        && dup2(pipe_end, STDOUT_FILENO) >= 0)
        upstream_exec(argv);
    _exit(EXIT_FAILURE);
}

/* A stream of what it prints; NULL: it cannot be run. */
static FILE *ask_upstream(pid_t *child)
{
    int ends[2];
    if (pipe(ends) < 0)
        return NULL;
    *child = fork();
    if (*child == 0)
        become_upstream(ends[1]);
    close(ends[1]);
    FILE *answer = *child < 0 ? NULL : fdopen(ends[0], "r");
    if (!answer)
        close(ends[0]);
    return answer;
}

/* Copies the list of commands; its title names who runs them. */
static bool copy_commands(FILE *to, FILE *answer, const char *path)
{
    char *line = NULL, version[32] = "";
    size_t size = 0;
    bool found = false;
    while (getline(&line, &size, answer) >= 0) {
        if (found) {
            fputs(line, to);
        } else if (strncmp(line, "Commands:", strlen("Commands:")) == 0) {
            fprintf(to, "\nCommands, all but `sort` run by %s%s%s:\n", path, *version ? ", version " : "", version);
            found = true;
        } else {
            sscanf(line, "Version: %31s", version);
        }
    }
    free(line);
    return found;
}

static void print_theirs(FILE *to, const char *path)
{
    pid_t child;
    FILE *answer = ask_upstream(&child);
    bool found = answer && copy_commands(to, answer, path);
    if (answer) {
        fclose(answer);
        waitpid(child, NULL, 0);
    }
    if (found)
        return;
    print_ours(to);
    fprintf(to, "All other commands are run by %s: see its own help.\n", path);
}

void commands_print(FILE *to)
{
    char *path = upstream_find();
    print_head(to);
    fflush(to);                                  /* or the child would have it, too */
    if (path) {
        print_theirs(to, path);
    } else {
        print_ours(to);
        print_how_to_get_one(to);
    }
    free(path);
}

/* Pipelines cut the version out of this text with sed, grep, head and awk (test_version.py has their
 * lines). Some join all lines into one and keep what follows the last "samtools "; others keep each line with
 * "samtools" in it. So the word, in small letters, is in the first line only. */
void commands_version(FILE *to)
{
    fprintf(to,
            "samtools " SAMTOOLS_VERSION "\n"
            "Using htslib %s\n"
            "Samtools-omp " SAMTOOLS_OMP_VERSION " sorts in place of that version, on OpenMP tasks.\n"
            "All commands but `sort` are run by the next one on PATH, or by $SAMTOOLS_UPSTREAM; --help names it.\n",
            hts_version());
}

void commands_version_only(FILE *to)
{
    fprintf(to, SAMTOOLS_VERSION "+htslib-%s\n", hts_version());
}
