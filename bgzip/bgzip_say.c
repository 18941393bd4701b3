/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include "bgzip/bgzip_say.h"

int bgzip_say(const char *format, ...)
{
    char *text = NULL;
    va_list values;
    va_start(values, format);
    if (vasprintf(&text, format, values) < 0)
        text = NULL;
    va_end(values);
    fprintf(stderr, "bgzip: %s\n", text ? text : "out of memory");
    free(text);
    return -1;
}
