/* SPDX-License-Identifier: MIT */
/* The words of a command line that name options: which list a long one is looked up in, and what is said of one that
 * cannot be taken. */
#ifndef OPTION_WORDS_H
#define OPTION_WORDS_H

#include <getopt.h>
#include <stdbool.h>

/* The options of a command. The values of long options without a letter begin at OPTION_WORDS_LONG. */
struct option_words {
    const char *command;         /* "sort" */
    const char *short_options;   /* begins with ':' */
    const struct option *samtools;       /* long ones of samtools, which may be abbreviated */
    const struct option *beyond; /* those that only we have */
};

enum { OPTION_WORDS_LONG = 256 };

/* The list for the next call of getopt_long(), which will look at one of these words: the options beyond samtools if
 * that word is one of them in full, else those of samtools, which may be abbreviated. */
const struct option *option_words_list(const struct option_words *known, int n, char *const *words);

/* -1, told: the next word is a long option with one dash (-threads), which would be taken for -t hreads. */
int option_words_check_dash(const struct option_words *known, int n, char *const *words);

/* Tells what is wrong with an option that getopt_long() could not take. c: what it returned; word: the last it has
 * looked at. Returns -1. */
int option_words_refuse(const struct option_words *known, int c, const char *word);

/* Of a step of sormadup: tells that it has no such option. Returns -1. */
int option_words_refuse_in_step(const struct option_words *known, int c);

enum { OPTION_WORDS_MOST = 64 };  /* of a text */

/* Adds the words of the text, which blanks part and quotes hold together, to words[*n], of which there may be `most`. *to
 * is where they are put, and goes on behind them: they take no more than the text, with a NUL each. -1: too many, or a
 * quote is open; told. */
int option_words_split(const char *text, char **words, int *n, int most, char **to);

/* -1, told: the file of an option that writes it ("--trace") can hardly be meant. apart: it is a word of its own, so it
 * may be the input, or the next option. */
int option_words_check_file(const char *option, const char *file, bool apart);

/* -1, told: `next`, the word behind an option without its value, looks like that value. next: NULL if there is none. */
int option_words_check_next(const char *option, const char *next);

#endif
