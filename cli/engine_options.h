/* SPDX-License-Identifier: MIT */
/* The options that several commands share, and the struct that they are read into. */
#ifndef ENGINE_OPTIONS_H
#define ENGINE_OPTIONS_H

#include "cli/option_table.h"
#include "engine/engine_opts.h"

enum engine_args_result {
    ENGINE_ARGS_ERROR = -1,      /* the cause and, if useful, the usage were printed to stderr */
    ENGINE_ARGS_RUN,
    ENGINE_ARGS_DONE,            /* only help was printed */
    ENGINE_ARGS_HAND_ON,         /* upstream samtools supports these options */
};

/* A command: its options, its help, and its defaults. */
struct engine_command {
    const char *name;            /* "sort" */
    const struct option_row *options;
    const char *usage;           /* start of its help ... */
    const char *more;            /* ... and end; NULL: none */
    int level;                   /* default compression level */
    int more_threads;  /* threads in addition to those of -@: 1 if samtools does not count the first one, otherwise 0 */
    struct sort_order order;
    bool keeps_order;            /* records keep the order of the input; `order` is not used */
};

/* The command line as far as it was read; the combination of options is settled at its end. */
struct engine_args {
    const struct engine_command *command;
    struct engine_opts *o;
    void *own;                   /* the command's own struct, for its options */
    bool is_step;  /* a step of sormadup: only the command's own options are read, and no operands. Set it before */
    bool is_program;             /* bgzip: no word before the options names a command, and there is no `o` */
    char option[48];             /* the current option as given: "-K", "--report" ... */
    void *target;                /* ... and its target, if its row has one */
    bool apart;                  /* the current option's value is a separate word */
    bool ascii;                  /* -N was given: names stay ASCII, even if -n follows */
    bool by_tag, many_tags;      /* -t was given; -t was given with another tag, too */
    bool format_given;           /* by -O or --output-fmt */
    int level;                   /* level of -l, -u */
    uint64_t per_thread;         /* bytes of -m; 0: not given */
    uint64_t total;              /* bytes of --total-memory; 0: not given */
    bool tmpdir_env;             /* --tmpdir-env */
    bool write_index;            /* --write-index */
    const char *index_format;    /* from --write-index=...; NULL: by the name */
    const char *index_name;      /* from FILE##idx##INDEX; NULL: derived from FILE */
    const char *counted[COUNTERS];   /* files for the counters of the output; NULL: not requested */
    const char *stats_args;      /* --stats-args; NULL: not given */
};

#define ENGINE_COUNTER(name) ENGINE_##name,

/* The options that several commands share. A row ENGINE(LEVEL) in a command's table stands for one of them. A step of
 * sormadup accepts none of them. */
enum engine_option {
    ENGINE_OUTPUT, ENGINE_FORMAT, ENGINE_LONG_FORMAT /* without -O */, ENGINE_FORMAT_OPTION, ENGINE_LEVEL,
    ENGINE_UNCOMPRESSED, ENGINE_WRITE_INDEX, ENGINE_NO_INDEX /* accepted, with a warning */, ENGINE_NO_PG,
    ENGINE_REFERENCE, ENGINE_INPUT_OPTION,
    ENGINE_BY_NAME, ENGINE_BY_ASCII, ENGINE_BY_TAG, ENGINE_BY_TEMPLATE,
    ENGINE_THREADS, ENGINE_MORE_THREADS /* without the first one, as in samtools */, ENGINE_MEMORY, ENGINE_TEMP,
    ENGINE_VERBOSITY, ENGINE_HELP, ENGINE_LONG_HELP /* for commands where -h is another option */,
    /* Options that samtools lacks: */
    ENGINE_ADD_INPUT, ENGINE_CHECKSUM, COUNTER_LIST(ENGINE_COUNTER) /* ENGINE_stats ... */ ENGINE_STATS_ARGS,
    ENGINE_COPY_BLOCKS, ENGINE_PLAN, ENGINE_PROGRESS, ENGINE_NO_PROGRESS, ENGINE_REPORT, ENGINE_SIZE_HINT,
    ENGINE_TMPDIR_ENV, ENGINE_TOTAL_MEMORY, ENGINE_TRACE, ENGINE_VERIFY,
};
extern const struct option_row engine_options[];

#define ENGINE(option) {.as = &engine_options[ENGINE_##option]}
#define ENGINE_SAYS(option, help_) {.as = &engine_options[ENGINE_##option], .help = help_}

/* Rows that are adjacent in most tables. */
#define ENGINE_ORDER_ROWS ENGINE(BY_NAME), ENGINE(BY_ASCII), ENGINE(BY_TAG)
#define ENGINE_READING_ROWS ENGINE(REFERENCE), ENGINE(INPUT_OPTION)
#define ENGINE_COUNT_ROW(name) ENGINE(name),
#define ENGINE_COUNT_ROWS COUNTER_LIST(ENGINE_COUNT_ROW) ENGINE(STATS_ARGS)
#define ENGINE_REPORT_ROWS ENGINE(PROGRESS), ENGINE(NO_PROGRESS), ENGINE(REPORT), ENGINE(TRACE), ENGINE(VERIFY)

/* Prints the help of a command. */
void engine_args_help(const struct engine_command *command, FILE *to);

/* Reads the options from word number 2 on (number 1 if args->is_program) by the table of args->command. Sets optind to
 * the first operand. o->values must have room for all words. RUN: the operands come next; HAND_ON: one of the options
 * is not ours. */
enum engine_args_result engine_args_options(struct engine_args *args, int argc, char **argv);

/* Reads an integer; *value is clamped to low..high. name: the option, for the message. -1: not an integer, which is
 * reported. */
int engine_args_count(const char *name, const char *text, int low, int high, int *value);
int engine_args_output(struct engine_args *args, const char *name);
int engine_args_no_memory(void);

#endif
