/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <htslib/hts_log.h>
#include "base/message.h"

static void say(const char *prefix, const char *format, va_list values, const char *ending)
{
    char *text = NULL;
    if (vasprintf(&text, format, values) < 0)
        text = NULL;
    fprintf(stderr, "%s%s%s\n", prefix, text ? text : "out of memory", ending);
    free(text);
}

void message_error(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    say(MESSAGE_PREFIX, format, values, "");
    va_end(values);
}

int message_mistake(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    say(MESSAGE_PREFIX, format, values, ". See samtools sort --help");
    va_end(values);
    return -1;
}

void message_warning(const char *format, ...)
{
    va_list values;
    if (hts_verbose < HTS_LOG_WARNING)
        return;
    va_start(values, format);
    say(MESSAGE_WARNING, format, values, "");
    va_end(values);
}
