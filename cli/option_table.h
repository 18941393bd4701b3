/* SPDX-License-Identifier: MIT */
/* The options of a command as a table, one row for each option. The parser, the help text, shell completion and the
 * list of command lines that upstream samtools supports are all made from it. */
#ifndef OPTION_TABLE_H
#define OPTION_TABLE_H

#include <getopt.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct engine_args;

/* The effect of an option. Only the first kind needs its own code. */
enum option_kind {
    OPTION_TAKEN,                /* calls take() */
    OPTION_SETS, OPTION_CLEARS,  /* a bool */
    OPTION_TEXT,                 /* stores the value in a const char * */
    OPTION_FILE,                 /* like OPTION_TEXT, for a file that is read: without file:// */
    OPTION_NUMBER,               /* stores an int, clamped to least..most */
    OPTION_STORES,               /* stores `least` in an int or enum */
    OPTION_HELP,                 /* prints the help and ends the command */
    OPTION_HANDED_ON,            /* only the next samtools on PATH supports it, and gets the full command line */
};

/* The location of the target: in the command's options (which begin with struct engine_opts), in struct engine_args, or
 * in engine_args.own. */
enum option_base { OPTION_OPTS, OPTION_ARGS, OPTION_OWN };

struct option_row {
    char letter;                 /* 0: none */
    const char *name;            /* name of the long option; NULL: none */
    const char *value;           /* as shown by the help: "INT", "=FILE", "[=json]" if it is optional; NULL: none */
    const char *help;            /* lines separated by \n; NULL: only the option is shown; "": not even that */
    enum option_kind kind;
    enum option_base base;
    size_t offset;               /* offset of the target in the base */
    int least, most;             /* limits of a number */
    int (*take)(struct engine_args *args, const char *value);    /* -1: a mistake, reported. value: NULL: none */
    bool beyond;                 /* samtools lacks the long name, so it must be written in full */
    bool writes;                 /* the value names a file that is written, or a place for files */
    bool listed;                 /* a heading; the help shows its rows as a list of names */
    const struct option_row *as; /* the row that this one refers to; its help is used if this one has none; or NULL */
};

static inline const struct option_row *option_resolved(const struct option_row *row)
{
    return row->as ? row->as : row;
}

/* Rows. ACTION is one of the actions below. A table ends with OPTION_END. */
#define OPTION(letter_, name_, value_, action, help_) \
    {.letter = letter_, .name = name_, .value = value_, .help = help_, action}
#define OPTION_BEYOND(letter_, name_, value_, action, help_) \
    {.letter = letter_, .name = name_, .value = value_, .help = help_, .beyond = true, action}
#define OPTION_HEADING(text) {.help = text}
#define OPTION_LIST(text) {.help = text, .listed = true}
#define OPTION_END {.help = NULL}

/* Actions. where: OPTION_IN(base, struct, member). */
#define OPTION_IN(base_, type, member) .base = base_, .offset = offsetof(type, member)
#define SETS(where) .kind = OPTION_SETS, where
#define CLEARS(where) .kind = OPTION_CLEARS, where
#define TEXT(where) .kind = OPTION_TEXT, where
#define INPUT_FILE(where) .kind = OPTION_FILE, where
#define NUMBER(where, least_, most_) .kind = OPTION_NUMBER, .least = least_, .most = most_, where
#define STORES(value_, where) .kind = OPTION_STORES, .least = value_, where
#define TAKES(function) .take = function
#define TAKES_INTO(function, where) .take = function, where
#define WRITES(function) .take = function, .writes = true
#define WRITES_INTO(function, where) .take = function, .writes = true, where
#define OUTPUT_FILE(where) .kind = OPTION_TEXT, .writes = true, where
#define HANDED_ON .kind = OPTION_HANDED_ON

enum { OPTION_TABLE_ROWS = 64 };

/* A table in the form for getopt_long(). */
struct option_table {
    const char *command;         /* "sort" */
    const struct option_row *rows;
    char letters[2 + 2 * OPTION_TABLE_ROWS];
    struct option samtools[OPTION_TABLE_ROWS];   /* long options of samtools, which may be abbreviated */
    struct option beyond[OPTION_TABLE_ROWS];     /* options that only we have */
};

/* rows: at most OPTION_TABLE_ROWS - 1 options. */
void option_table_open(struct option_table *table, const char *command, const struct option_row *rows);

/* Reads the next option like getopt_long(), and sets optarg and optind. Returns 1 with its row; 0 at the end of the
 * options; -1 at a mistake, which was reported. *by_name: it was given by its long name. */
int option_table_next(const struct option_table *table, int argc, char **argv, const struct option_row **row,
                      bool *by_name);

/* Prints the help: headings, and one or more lines for each option. */
void option_table_print(const struct option_row *rows, FILE *to);

/* Prints the words for shell completion: one line for each word in the help, with its value as shown there ("" if none)
 * and the first line of its help. Tabs separate the three. */
void option_table_words(const struct option_row *rows, FILE *to);

/* Checks the file of an option that writes it ("--trace"). -1: it is probably not intended, reported. apart: the file
 * is a separate word, so it may be the input, or the next option. */
int option_check_file(const char *option, const char *file, bool apart);

/* Checks `next`, the word after an option that was given without its optional value; NULL: the option is the last word.
 * -1: `next` is probably meant as the value, which is reported: the row lists it, or the option writes a page or text
 * and `next` is the name of one. */
int option_check_next(const struct option_row *row, const char *next);

enum { OPTION_WORDS_MOST = 64 };  /* words of a text */

/* Adds the words of the text, separated by blanks and grouped by quotes, to words[*n], which has room for `most`. Their
 * characters are stored at *to, which moves past them. They need no more room than the text, plus a NUL each. -1: too
 * many words, or a quote is open, which is reported. */
int option_split(const char *text, char **words, int *n, int most, char **to);

/* Returns whether text has this ending. Ignores case. */
bool option_ends_with(const char *text, const char *ending);

#endif
