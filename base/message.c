/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <htslib/hts_log.h>
#include "base/message.h"

/* A message begins with `before` and `command`: "samtools sort: ...". A message that refers to the help names
 * `before`, `command` and `behind`. */
static const char *before = "samtools ", *command = "sort", *behind = "";

void message_set_command(const char *name)
{
    command = name;
}

void message_set_program(const char *name)
{
    command = name;
    before = "";
    behind = "-omp";
}

const char *message_command(void)
{
    return command;
}

/* Names of files and records may hold line ends, which would split a message in two, and control sequences for
 * terminals. */
static void hide_controls(char *text)
{
    for (; text && *text; text++)
        if ((unsigned char)*text < ' ' || *text == 127)
            *text = '?';
}

int message_print(enum message_kind kind, const char *format, ...)
{
    char *text = NULL;
    va_list values;
    if (kind == MESSAGE_WARNING && hts_verbose < HTS_LOG_WARNING)
        return -1;
    va_start(values, format);
    if (vasprintf(&text, format, values) < 0)
        text = NULL;
    va_end(values);
    hide_controls(text);
    bool mistake = kind == MESSAGE_MISTAKE;
    fprintf(stderr, "%s%s: %s%s%s%s%s%s%s\n", before, command, kind == MESSAGE_WARNING ? "warning: " : "",
            text ? text : "out of memory", mistake ? ". See " : "", mistake ? before : "", mistake ? command : "",
            mistake ? behind : "", mistake ? " --help" : "");
    free(text);
    return -1;
}
