/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdlib.h>
#include <sys/types.h>
#include "base/byte_buffer.h"
#include "base/latch.h"
#include "base/out_file.h"
#include "write/out_text.h"

int out_text_write(struct out_file *out, const char *text, size_t size, struct latch *latch)
{
    return out_file_begin(out, latch) < 0 || out_file_write(out->fd, out->path, text, size, latch) < 0 ? -1 : 0;
}

/* The bytes printed to a stream. Linux does without glibc's open_memstream(): if its memory cannot grow, it reports no
 * error, and part of the text is lost. */
struct printed_text {
    struct byte_buffer bytes;
    bool failed;
};

#ifdef __linux__
static ssize_t keep(void *text, const char *bytes, size_t n)
{
    struct printed_text *t = text;
    if (t->failed || byte_buffer_append(&t->bytes, bytes, n) < 0) {
        t->failed = true;
        return 0;
    }
    return (ssize_t)n;
}

static FILE *open_stream(struct printed_text *text)
{
    return fopencookie(text, "w", (cookie_io_functions_t){.write = keep});
}
#else
static FILE *open_stream(struct printed_text *text)
{
    return open_memstream((char **)&text->bytes.p, &text->bytes.n);
}
#endif

int out_text_print(struct out_file *out, out_text_fn *print, void *arg, struct latch *latch)
{
    struct printed_text text = {.failed = false};
    FILE *to = open_stream(&text);
    int printed = to ? print(arg, to) : -1;
    if (to && (ferror(to) | fclose(to)) != 0)
        printed = -1;
    int result = printed < 0 || text.failed ? latch_fail(latch, "%s: out of memory for its text", out->path)
                                            : out_text_write(out, (char *)text.bytes.p, text.bytes.n, latch);
    free(text.bytes.p);
    return result;
}
