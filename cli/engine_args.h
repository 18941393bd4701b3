/* SPDX-License-Identifier: MIT */
/* What the commands of the engine have in common on their command lines: output and its format, threads, memory,
 * references, reports. */
#ifndef ENGINE_ARGS_H
#define ENGINE_ARGS_H

#include <getopt.h>
#include <stdio.h>
#include "cli/count_args.h"
#include "cli/option_words.h"
#include "engine/engine_opts.h"

enum engine_args_result {
    ENGINE_ARGS_ERROR = -1,      /* the cause and, where it helps, the usage were printed to stderr */
    ENGINE_ARGS_RUN,
    ENGINE_ARGS_DONE,            /* help was printed, and that is all */
    ENGINE_ARGS_HAND_ON,         /* the other samtools serves these options */
};

/* What a command says of an option that the command line has. */
enum engine_option {
    ENGINE_OPTION_MISTAKE = -1,  /* told */
    ENGINE_OPTION_TAKEN,
    ENGINE_OPTION_COMMON,        /* it means what it means everywhere */
    ENGINE_OPTION_HANDED_ON,     /* only the other samtools serves it */
};

/* Long options without a letter. Those of one command begin at OPT_OWN. */
enum {
    OPT_NO_PG = OPTION_WORDS_LONG, OPT_VERBOSITY, OPT_REFERENCE, OPT_INPUT_OPTION, OPT_OUTPUT_FMT, OPT_OUTPUT_OPTION,
    OPT_TOTAL_MEMORY, OPT_VERIFY, OPT_CHECKSUM, OPT_REPORT, OPT_TRACE, OPT_PROGRESS, OPT_NO_PROGRESS, OPT_HELP,
    OPT_STATS, OPT_STATS_ARGS, OPT_FLAGSTAT, OPT_IDXSTATS,
    /* only those that list them: */
    OPT_TEMPLATE, OPT_WRITE_INDEX, OPT_COPY_BLOCKS, OPT_PLAN, OPT_SIZE_HINT, OPT_ADD_INPUT, OPT_TMPDIR_ENV,
    OPT_OWN,
};

/* The long options that every command takes and samtools has, for its list. They may be abbreviated as in samtools. */
#define ENGINE_ARGS_LONG_OPTIONS \
    {"threads", required_argument, NULL, '@'}, \
    {"output-fmt", required_argument, NULL, OPT_OUTPUT_FMT}, \
    {"output-fmt-option", required_argument, NULL, OPT_OUTPUT_OPTION}, \
    {"input-fmt-option", required_argument, NULL, OPT_INPUT_OPTION}, \
    {"reference", required_argument, NULL, OPT_REFERENCE}, \
    {"no-PG", no_argument, NULL, OPT_NO_PG}, \
    {"verbosity", required_argument, NULL, OPT_VERBOSITY}, \
    {NULL, 0, NULL, 0}

/* Those that samtools does not have. They must be written in full: an abbreviation that samtools takes for another
 * option, or refuses, would write a file. */
#define ENGINE_ARGS_BEYOND \
    {"total-memory", required_argument, NULL, OPT_TOTAL_MEMORY}, \
    {"checksum", required_argument, NULL, OPT_CHECKSUM}, \
    {"verify", no_argument, NULL, OPT_VERIFY}, \
    {"report", optional_argument, NULL, OPT_REPORT}, \
    {"trace", required_argument, NULL, OPT_TRACE}, \
    {"progress", no_argument, NULL, OPT_PROGRESS}, \
    {"no-progress", no_argument, NULL, OPT_NO_PROGRESS}, \
    {"stats", required_argument, NULL, OPT_STATS}, \
    {"stats-args", required_argument, NULL, OPT_STATS_ARGS}, \
    {"flagstat", required_argument, NULL, OPT_FLAGSTAT}, \
    {"idxstats", required_argument, NULL, OPT_IDXSTATS}, \
    {"help", no_argument, NULL, OPT_HELP}, \
    {NULL, 0, NULL, 0}

/* Rows of usages, each as it stands in those of several commands. file: what the name is of. */
#define HELP_ORDERS \
    "  -n                      by read name, numbers in it by value\n" \
    "  -N                      by read name, as ASCII text\n" \
    "  -t TAG                  by the value of TAG, then by coordinate (or by name, with -n or -N)\n"
#define HELP_TEMPLATE \
    "      --template-coordinate\n" \
    "                          by the coordinates of both ends of the template\n"
#define HELP_OUTPUT_FMT(file) \
    "  -O, --output-fmt FMT[,OPT[=VAL]...]\n" \
    "                          sam, sam.gz, bam, cram, fastq, fasta [by the name of " file ", else bam]\n" \
    HELP_OUTPUT_OPTION
#define HELP_OUTPUT_OPTION "      --output-fmt-option OPT[=VAL]\n"
#define HELP_LEVEL "  -l INT                  compression level, 0 (none) to 9 (smallest)\n"
#define HELP_AS_LEVEL_0 "  -u                      no compression, as -l 0\n"
#define HELP_INPUT_OPTION "      --input-fmt-option OPT[=VAL]\n"
#define HELP_REFERENCE "      --reference FILE    FASTA of the references, for CRAM\n"
#define HELP_WRITE_INDEX \
    "      --write-index       write an index too (CSI; CRAI for CRAM; FILE##idx##NAME.bai for BAI)\n"
#define HELP_NO_PG "      --no-PG             add no @PG line to the header\n"
#define HELP_THREADS \
    "  -@, --threads INT|auto  threads in all; auto: all CPUs of the job [OMP_NUM_THREADS if set, else 1]\n"
#define HELP_MORE_THREADS \
    "  -@, --threads INT|auto  threads beside the first one, as in samtools; auto: all CPUs of the job\n" \
    "                          [OMP_NUM_THREADS in all if set, else 0]\n"
#define HELP_MEMORY "  -m SIZE                 memory per thread; suffixes K M G T, decimals allowed [768M]\n"
#define HELP_TOTAL_MEMORY \
    "      --total-memory SIZE|N%\n" \
    "                          memory in all, or as a share of what the machine or its cgroup has\n"
#define HELP_VERBOSITY "      --verbosity INT     below 3: no warnings\n"
#define HELP_HELP "  -h, --help              print this text\n"
#define HELP_LONG_HELP "      --help              print this text\n"

struct engine_args;

/* A command: what getopt_long() takes, what its own options do, its help, and what holds where the command line says
 * nothing. */
struct engine_command {
    const char *name;            /* "sort" */
    const char *short_options;   /* begins with ':' */
    const struct option *long_options;           /* those of samtools */
    const struct option *beyond;                 /* those that only we have */
    enum engine_option (*take)(struct engine_args *args, int c);    /* c: as getopt_long() returns it. -h is help
                                                                     * if it is COMMON */
    const char *usage;           /* what its help prints */
    int level;                   /* of compression */
    int more_threads;            /* than -@ says: 1 where samtools counts those beside the first one, else 0 */
    struct sort_order order;
    bool keeps_order;            /* records come in that of the input */
};

/* The command line as far as it was read; what it means together is settled at its end. */
struct engine_args {
    const struct engine_command *command;
    struct engine_opts *o;
    void *own;                   /* the command's, for its take() */
    bool is_step;                /* of sormadup: the command's own options are read, and no operands. Set it before */
    bool apart;                  /* the option at work has its value in a word of its own */
    const char *next;            /* the word behind it and its value; NULL: there is none */
    bool format_given;           /* by -O or --output-fmt */
    int level;                   /* of -l, -u */
    uint64_t per_thread;         /* of -m; 0: not given */
    uint64_t total;              /* of --total-memory; 0: not given */
    bool tmpdir_env;             /* --tmpdir-env */
    bool write_index;            /* --write-index */
    const char *index_format;    /* of --write-index=...; NULL: by the name */
    const char *index_name;      /* of FILE##idx##INDEX; NULL: after FILE */
    struct count_words counts;   /* --stats and so on */
};

/* Reads the options and leaves the operands behind optind. argv[0] is the program, argv[1] the command. RUN: go on and
 * settle. Whatever the result, call engine_args_free() afterwards. */
enum engine_args_result engine_args_read(struct engine_args *args, const struct engine_command *command,
                                         struct engine_opts *opts, int argc, char **argv);
void engine_args_free(struct engine_opts *opts);

/* An integer; *value is clamped to low..high. name: of the option, for the message. -1: it is none, told. */
int engine_args_count(const char *name, const char *text, int low, int high, int *value);
int engine_args_output(struct engine_args *args, const char *name);
/* --write-index of a command whose output has no order: samtools takes it and makes no index. Warns. */
enum engine_option engine_args_no_index(const struct engine_args *args);

/* ---- what the options mean together, when all are read. -1: a mistake, told. ---- */

/* The operands are one input and one output, which is settled as follows. */
int engine_args_settle_files(struct engine_args *args, int n, char **operands);
/* The output's name and that of its index, and format and level: by -O, else by the name, else BAM, as in samtools. */
int engine_args_settle_output(struct engine_args *args);
/* The index of --write-index, if there is to be one. The output is settled, and in an order that has an index. */
int engine_args_settle_index(const struct engine_args *args);
/* --total-memory, else -m for each thread, else what the environment says, else what is usual for each thread. */
int engine_args_settle_memory(struct engine_args *args);
/* The same for who keeps nothing (MEMORY_AT_ONCE): what is usual are the blocks and chunks that are under way. */
int engine_args_settle_memory_at_once(struct engine_args *args);
/* Adds a place for temporary files, if -T names none: TMPDIR with --tmpdir-env; else that of the environment, if it
 * names some; else beside the output; or, where no file can be made beside it, and where it is standard output or what
 * somebody has open (/dev/null, /dev/stdout, a shell's >(command)), those that begin with `elsewhere`. */
int engine_args_settle_temp(struct engine_args *args, const char *elsewhere);

/* The environment's folder for reports, if the command line wants none; and what reports tell. Call it last. */
void engine_args_settle_report(struct engine_opts *opts);

int engine_args_no_memory(void);

#endif
