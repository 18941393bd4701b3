/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "base/latch.h"
#include "base/out_file.h"
#include "write/out_text.h"

int out_text_write(struct out_file *out, const char *text, size_t size, struct latch *latch)
{
    return out_file_begin(out, latch) < 0 || out_file_write(out->fd, out->path, text, size, latch) < 0 ? -1 : 0;
}

int out_text_print(struct out_file *out, out_text_fn *print, void *arg, struct latch *latch)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    int printed = to ? print(arg, to) : -1;
    if (to && (ferror(to) | fclose(to)) != 0)
        printed = -1;
    int result = printed < 0 ? latch_fail(latch, "%s: out of memory for its text", out->path)
                             : out_text_write(out, text, size, latch);
    free(text);
    return result;
}
