/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include <htslib/sam.h>
#include "base/message.h"
#include "cli/option_table.h"
#include "cli/typo.h"

/* getopt_long() returns this plus i for the long option of row i; smaller values are letters. */
enum { LONG = 256 };

static int takes_value(const struct option_row *row)
{
    return !row->value ? no_argument : row->value[0] == '[' ? optional_argument : required_argument;
}

static bool is_end(const struct option_row *row)
{
    return !row->as && !row->help && !row->name && !row->letter;
}

static bool is_heading(const struct option_row *row)
{
    return !row->as && !row->name && !row->letter;
}

void option_table_open(struct option_table *t, const char *command, const struct option_row *rows)
{
    *t = (struct option_table){.command = command, .rows = rows, .letters = ":"};
    struct option *samtools = t->samtools, *beyond = t->beyond;
    char *letter = t->letters + 1;
    for (int i = 0; !is_end(&rows[i]); i++) {
        const struct option_row *row = option_resolved(&rows[i]);
        struct option option = {row->name, takes_value(row), NULL, LONG + i};
        if (row->letter) {
            *letter++ = row->letter;
            if (row->value)
                *letter++ = ':';
        }
        if (row->name && row->beyond)
            *beyond++ = option;
        else if (row->name)
            *samtools++ = option;
    }
}

/* ------------------------------------------------------------------- words */

/* Returns the number of characters of a long option's name in a word that begins with `dashes` dashes. */
static size_t name_size(const char *word, size_t dashes)
{
    return strcspn(word + dashes, "=");
}

/* Returns the option that the word names in full; NULL: none of these. */
static const struct option *find(const struct option *options, const char *word, size_t dashes)
{
    size_t n = name_size(word, dashes);
    for (const struct option *o = options; o->name; o++)
        if (strlen(o->name) == n && memcmp(o->name, word + dashes, n) == 0)
            return o;
    return NULL;
}

/* Returns the first option that the word abbreviates; NULL: none of these. */
static const struct option *find_begun(const struct option *options, const char *word)
{
    size_t n = name_size(word, 2);
    for (const struct option *o = options; o->name; o++)
        if (strncmp(o->name, word + 2, n) == 0)
            return o;
    return NULL;
}

/* Returns the first option of which the word is a typo; NULL: none of these. */
static const struct option *find_meant(const struct option *options, const char *word)
{
    for (const struct option *o = options; o->name; o++)
        if (typo_is_of(word + 2, name_size(word, 2), o->name))
            return o;
    return NULL;
}

/* Returns the next word that getopt_long() will read as options; "": none. */
static const char *next_option(int n, char *const *words)
{
    for (int i = 0; i < n; i++)
        if (words[i][0] == '-' && words[i][1])
            return words[i];
    return "";
}

/* Returns the list for the next call of getopt_long(): the options that samtools lacks if the word is one of them in
 * full; otherwise those of samtools, which may be abbreviated. */
static const struct option *list_for(const struct option_table *known, int n, char *const *words)
{
    const char *word = next_option(n, words);
    bool is_beyond = strncmp(word, "--", 2) == 0 && find(known->beyond, word, 2);
    return is_beyond ? known->beyond : known->samtools;
}

/* Returns whether the word is -help, which prints the help because it begins with -h. */
static bool is_help(const struct option_table *known, const char *word)
{
    const char *h = strchr(known->letters, 'h');
    return h && h[1] != ':' && strcmp(word, "-help") == 0;
}

/* -1, reported: the next word is a long option with one dash (-threads), which would be read as -t hreads. */
static int check_dash(const struct option_table *known, int n, char *const *words)
{
    enum { LEAST = 4 };          /* characters: a shorter word is the beginning of several options */
    const char *word = next_option(n, words);
    if (word[0] != '-' || word[1] == '-' || name_size(word, 1) < LEAST || is_help(known, word))
        return 0;
    if (!find(known->samtools, word, 1) && !find(known->beyond, word, 1))
        return 0;
    return message_mistake("there is no option %.*s: write -%.*s, with two dashes", (int)name_size(word, 1) + 1, word,
                           (int)name_size(word, 1) + 1, word);
}

/* Reports a long option that does not exist or may be one of several. Returns -1. */
static int refuse_long(const struct option_table *known, const char *word)
{
    const struct option *begun = find_begun(known->beyond, word);
    if (find_begun(known->samtools, word))
        return message_mistake("option %s is the beginning of several: write one of them in full", word);
    if (strcmp(word, "--check") == 0)
        return message_mistake("there is no option --check in %s: samtools sort --check checks the "
                               "order of a file. --checksum=FILE writes a checksum", known->command);
    if (begun)
        return message_mistake("there is no option %s: write --%s in full, like all options that samtools lacks",
                               word, begun->name);
    const struct option *meant = find_meant(known->samtools, word);
    if (!meant)
        meant = find_meant(known->beyond, word);
    if (meant)
        return message_mistake("there is no option %s, but there is --%s", word, meant->name);
    return message_mistake("there is no option %s", word);
}

/* Reports an option that getopt_long() refused. c: its result; word: the last word that it read. Returns -1. */
static int refuse(const struct option_table *known, int c, const char *word)
{
    bool is_long = strncmp(word, "--", 2) == 0;
    if (c == ':' && !is_long)
        return message_mistake("option -%c requires an argument", optopt);
    if (c == ':')
        return message_mistake("option %s requires an argument", word);
    if (optopt == 0)
        return refuse_long(known, word);
    if (optopt >= LONG || strchr(known->letters, optopt))
        return message_mistake("option %.*s takes no value", (int)strcspn(word, "="), word);
    return message_mistake("there is no option -%c", optopt);
}

int option_table_next(const struct option_table *t, int argc, char **argv, const struct option_row **row, bool *by_name)
{
    if (check_dash(t, argc - optind, argv + optind) < 0)
        return -1;
    int c = getopt_long(argc, argv, t->letters, list_for(t, argc - optind, argv + optind), NULL);
    if (c < 0)
        return 0;
    if (c == '?' || c == ':')
        return refuse(t, c, argv[optind - 1]);
    *by_name = c >= LONG;
    const struct option_row *r = t->rows;
    if (*by_name)
        r += c - LONG;
    else
        while (option_resolved(r)->letter != c)
            r++;
    *row = r;
    return 1;
}

/* -------------------------------------------------------------------- help */

enum { HELP_COLUMN = 26, LINE_MOST = 104 };

/* Prints text whose lines begin in the column of help texts. at: the current column. */
static void put_help(const char *text, int at, FILE *to)
{
    if (at + 2 > HELP_COLUMN) {
        fputc('\n', to);
        at = 0;
    }
    for (;; at = 0) {
        int n = (int)strcspn(text, "\n");
        fprintf(to, "%*s%.*s\n", HELP_COLUMN - at, "", n, text);
        if (!text[n])
            return;
        text += n + 1;
    }
}

/* Returns the text between an option and its value: none if the value is optional or begins with "=". */
static const char *before_value(const struct option_row *row)
{
    return !row->value || row->value[0] == '[' || row->value[0] == '=' ? "" : " ";
}

static void put_row(const struct option_row *row, const char *help, FILE *to)
{
    const char *name = row->name, *value = row->value;
    int at = row->letter ? fprintf(to, "  -%c%s", row->letter, name ? ", " : "") : fprintf(to, "      ");
    at += fprintf(to, "%s%s%s%s", name ? "--" : "", name ? name : "", before_value(row), value ? value : "");
    if (help)
        put_help(help, at, to);
    else
        fputc('\n', to);
}

/* Prints the heading's text and the names of its rows as a paragraph. Returns the row after them. */
static const struct option_row *put_list(const struct option_row *row, FILE *to)
{
    int at = fprintf(to, "\n%s", row->help) - 1;
    for (row++; !is_end(row) && !is_heading(row); row++) {
        bool last = is_end(row + 1) || is_heading(row + 1);
        int n = (int)strlen(option_resolved(row)->name) + 4;
        at = at + n > LINE_MOST ? fprintf(to, "\n") - 1 : at + fprintf(to, " ");
        at += fprintf(to, "--%s%s", option_resolved(row)->name, last ? ".\n" : ",");
    }
    return row;
}

void option_table_print(const struct option_row *row, FILE *to)
{
    while (!is_end(row)) {
        if (row->listed) {
            row = put_list(row, to);
            continue;
        }
        const char *help = row->help ? row->help : option_resolved(row)->help;
        if (is_heading(row))
            fprintf(to, "%s\n", help);
        else if (!help || *help)
            put_row(option_resolved(row), help, to);
        row++;
    }
}

/* ------------------------------------------------------------- completion */

static void put_word(const char *dashes, const char *name, const char *equals, const struct option_row *row,
                     const char *help, FILE *to)
{
    const char *value = row->value ? row->value : "";
    fprintf(to, "%s%s%s\t%s\t%.*s\n", dashes, name, equals, value, (int)strcspn(help, "\n"), help);
}

/* A long option with an optional value is printed as two words: --report and --report=. */
static void put_words(const struct option_row *row, const char *help, FILE *to)
{
    const char letter[] = {row->letter, 0};
    bool is_optional = row->value && row->value[0] == '[', wants_equals = row->value && row->value[0] == '=';
    if (row->letter)
        put_word("-", letter, "", row, help, to);
    if (row->name && !wants_equals)
        put_word("--", row->name, "", row, help, to);
    if (row->name && (is_optional || wants_equals))
        put_word("--", row->name, "=", row, help, to);
}

void option_table_words(const struct option_row *row, FILE *to)
{
    for (; !is_end(row); row++) {
        const char *help = row->help ? row->help : option_resolved(row)->help;
        if (!is_heading(row) && (!help || *help))
            put_words(option_resolved(row), help ? help : "", to);
    }
}

/* ------------------------------------------------------------------ values */

bool option_ends_with(const char *text, const char *ending)
{
    size_t n = strlen(text), m = strlen(ending);
    return n >= m && strcasecmp(text + n - m, ending) == 0;
}

int option_check_file(const char *option, const char *file, bool apart)
{
    char mode[16] = "";
    if (!*file)
        return message_mistake("%s needs a file", option);
    if (!apart || strcmp(file, "-") == 0)
        return 0;
    if (*file == '-')
        return message_mistake("%s needs a file, and %s is an option. Write %s=FILE", option, file, option);
    if (sam_open_mode(mode, file, NULL) == 0)
        return message_mistake("%s would write to %s, whose name is that of a file of reads. Write %s=FILE", option,
                               file, option);
    return 0;
}

/* Returns whether the word is one of "[=A|B]". */
static bool is_choice(const char *choices, const char *word)
{
    size_t n;
    for (const char *c = choices + 2; *c; c += n + 1) {
        n = strcspn(c, "|]");
        if (strlen(word) == n && strncasecmp(c, word, n) == 0)
            return true;
    }
    return false;
}

int option_check_next(const struct option_row *row, const char *next)
{
    row = option_resolved(row);
    if (!next || !row->value || *row->value != '[')
        return 0;
    bool is_page = option_ends_with(next, ".html") || option_ends_with(next, ".json") || option_ends_with(next, ".txt");
    if (row->writes ? !is_page : !is_choice(row->value, next) || access(next, F_OK) == 0)
        return 0;
    return message_mistake("--%s takes its value as --%s=%s", row->name, row->name, next);
}

int option_split(const char *text, char **words, int *n, int most, char **to)
{
    for (const char *c = text; *(c += strspn(c, " \t\n"));) {
        if (*n == most)
            return message_mistake("there are more than %d words in: %s", most, text);
        words[(*n)++] = *to;
        char quote = 0;
        for (; *c && (quote || !strchr(" \t\n", *c)); c++) {
            if (*c == quote)
                quote = 0;
            else if (!quote && (*c == '\'' || *c == '"'))
                quote = *c;
            else
                *(*to)++ = *c;
        }
        *(*to)++ = 0;
        if (quote)
            return message_mistake("a quote is not closed: %s", text);
    }
    return 0;
}
