/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <htslib/hts_log.h>
#include "base/message.h"

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
    fprintf(stderr, "samtools sort: %s%s%s\n", kind == MESSAGE_WARNING ? "warning: " : "",
            text ? text : "out of memory", kind == MESSAGE_MISTAKE ? ". See samtools sort --help" : "");
    free(text);
    return -1;
}
