/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include <htslib/sam.h>
#include "base/message.h"
#include "cli/option_words.h"

/* The characters of a long option's name in a word, which begins with `dashes` dashes. */
static size_t name_size(const char *word, size_t dashes)
{
    return strcspn(word + dashes, "=");
}

/* The option that the word names in full; NULL: none of these. */
static const struct option *find(const struct option *options, const char *word, size_t dashes)
{
    size_t n = name_size(word, dashes);
    for (const struct option *o = options; o->name; o++)
        if (strlen(o->name) == n && memcmp(o->name, word + dashes, n) == 0)
            return o;
    return NULL;
}

/* The first option that the word abbreviates; NULL: none of these. */
static const struct option *find_begun(const struct option *options, const char *word)
{
    size_t n = name_size(word, 2);
    for (const struct option *o = options; o->name; o++)
        if (strncmp(o->name, word + 2, n) == 0)
            return o;
    return NULL;
}

/* The next word that getopt_long() takes for options; "": there is none. */
static const char *next_option(int n, char *const *words)
{
    for (int i = 0; i < n; i++)
        if (words[i][0] == '-' && words[i][1])
            return words[i];
    return "";
}

const struct option *option_words_list(const struct option_words *known, int n, char *const *words)
{
    const char *word = next_option(n, words);
    bool is_beyond = strncmp(word, "--", 2) == 0 && find(known->beyond, word, 2);
    return is_beyond ? known->beyond : known->samtools;
}

/* -h prints the help, and so does -help, which begins with it. */
static bool is_help(const struct option_words *known, const char *word)
{
    const char *h = strchr(known->short_options, 'h');
    return h && h[1] != ':' && strcmp(word, "-help") == 0;
}

int option_words_check_dash(const struct option_words *known, int n, char *const *words)
{
    enum { LEAST = 4 };          /* characters: shorter ones may be several options */
    const char *word = next_option(n, words);
    if (word[0] != '-' || word[1] == '-' || name_size(word, 1) < LEAST || is_help(known, word))
        return 0;
    if (!find(known->samtools, word, 1) && !find(known->beyond, word, 1))
        return 0;
    return message_mistake("there is no option %.*s: write -%.*s, with two dashes", (int)name_size(word, 1) + 1, word,
                           (int)name_size(word, 1) + 1, word);
}

/* Of a long option that there is not, or that may be several. */
static int refuse_long(const struct option_words *known, const char *word)
{
    const struct option *begun = find_begun(known->beyond, word);
    if (find_begun(known->samtools, word))
        return message_mistake("option %s may mean several", word);
    if (strcmp(word, "--check") == 0)
        return message_mistake("there is no option --check in %s: samtools sort --check looks whether a file is in "
                               "order. --checksum=FILE writes a checksum", known->command);
    if (begun)
        return message_mistake("there is no option %s: write --%s in full, as all options that samtools does not have",
                               word, begun->name);
    return message_mistake("there is no option %s", word);
}

int option_words_refuse(const struct option_words *known, int c, const char *word)
{
    bool is_long = strncmp(word, "--", 2) == 0;
    if (c == ':' && !is_long)
        return message_mistake("option -%c requires an argument", optopt);
    if (c == ':')
        return message_mistake("option %s requires an argument", word);
    if (optopt == 0)
        return refuse_long(known, word);
    if (optopt >= OPTION_WORDS_LONG || strchr(known->short_options, optopt))
        return message_mistake("option %.*s takes no value", (int)strcspn(word, "="), word);
    return message_mistake("there is no option -%c", optopt);
}

int option_words_refuse_in_step(const struct option_words *known, int c)
{
    static const char why[] = "is no option of this step: give it to sormadup itself";
    if (c < OPTION_WORDS_LONG)
        return message_mistake("-%c %s", c, why);
    const struct option *lists[] = {known->samtools, known->beyond};
    for (int i = 0; i < 2; i++)
        for (const struct option *o = lists[i]; o->name; o++)
            if (o->val == c)
                return message_mistake("--%s %s", o->name, why);
    return message_mistake("this %s", why);
}

int option_words_check_file(const char *option, const char *file, bool apart)
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

int option_words_check_next(const char *option, const char *next)
{
    static const struct { const char *option, *ending; } values[] = {
        {"--report", ".html"}, {"--report", ".json"}, {"--report", ".txt"},
        {"--plan", "json"}, {"--write-index", "bai"}, {"--write-index", "csi"},
    };
    size_t size = next ? strlen(next) : 0;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        size_t n = strlen(values[i].ending);
        bool ends = size >= n && strcasecmp(next + size - n, values[i].ending) == 0;
        if (ends && strcmp(option, values[i].option) == 0 && (*values[i].ending == '.' || size == n)
            && (*values[i].ending == '.' || access(next, F_OK) < 0))
            return message_mistake("%s takes its value as %s=%s", option, option, next);
    }
    return 0;
}

int option_words_split(const char *text, char **words, int *n, int most, char **to)
{
    for (const char *c = text; *(c += strspn(c, " \t\n"));) {
        if (*n == most)
            return message_mistake("more than %d words: %s", most, text);
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
