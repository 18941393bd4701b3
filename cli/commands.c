/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <htslib/hts.h>
#include "base/htslib_version.h"
#include "base/version.h"
#include "cli/commands.h"
#include "cli/upstream.h"
#include "write/cram_settings.h"

/* The first lines have the form of samtools' own, because pipelines look for the line with "Version". There must be
 * only one such line, so that of the samtools behind us is not shown. */
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
            "see `samtools sort --help`. `samtools-omp --env` puts it first on PATH.\n", hts_version());
}

static void print_ours(FILE *to)
{
    fputs("\n"
          "Commands:\n"
          "     sort           sort alignment file\n"
          "     report         compare two reports of sort\n"
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

struct listing {
    FILE *to;
    const char *path;            /* of the program that lists its commands */
};

/* Copies the list of commands; its title names who runs them. */
static bool copy_commands(void *arg, FILE *from)
{
    const struct listing *l = arg;
    char *line = NULL, version[32] = "";
    size_t size = 0;
    bool found = false;
    while (getline(&line, &size, from) >= 0) {
        if (found) {
            fputs(line, l->to);
        } else if (strncmp(line, "Commands:", strlen("Commands:")) == 0) {
            fprintf(l->to, "\nCommands, all but `sort` run by %s%s%s:\n", l->path,
                    *version ? ", version " : "", version);
            found = true;
        } else {
            sscanf(line, "Version: %31s", version);
        }
    }
    free(line);
    return found;
}

static void print_theirs(FILE *to, char *path)
{
    char help[] = "help", *argv[] = {path, help, NULL};
    struct listing listing = {to, path};
    if (upstream_read(path, argv, copy_commands, &listing))
        return;
    print_ours(to);
    fprintf(to, "All other commands are run by %s: see its own help.\n", path);
}

void commands_print(FILE *to)
{
    char *path = upstream_find();
    print_head(to);
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
    if (!cram_settings_version(htslib_version()))
        fputs("CRAM is written as version 3.0: 3.1, the default of " SAMTOOLS_VERSION ", takes htslib 1.18 or later.\n",
              to);
}

void commands_version_only(FILE *to)
{
    fprintf(to, SAMTOOLS_VERSION "+htslib-%s\n", hts_version());
}
