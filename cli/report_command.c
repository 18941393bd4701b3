/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "base/latch.h"
#include "base/out_file.h"
#include "cli/report_command.h"
#include "read/held_data.h"
#include "report/report_compare.h"

enum { REPORT_MOST = 16 << 20 };                 /* bytes; ours take 100 KB, and some 500 bytes per thread */

static const char usage[] =
    "Usage: samtools-omp report [-o page.html] A.json B.json\n"
    "Compares two reports, which commands write with --report=FILE.json: a table, or with -o a page.\n";

__attribute__((format(printf, 1, 2))) static int fail(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    fputs("samtools report: ", stderr);
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    va_end(values);
    return -1;
}

/* Reads a file. The caller frees the bytes. NULL: the cause was reported. */
static char *read_file(const char *path, size_t *size)
{
    FILE *file = fopen(path, "rb");
    char *bytes = file ? malloc(REPORT_MOST + 1) : NULL;
    *size = bytes ? fread(bytes, 1, REPORT_MOST + 1, file) : 0;
    bool read = bytes && !ferror(file);
    if (!read)
        fail("cannot read %s: %s", path, strerror(errno));
    if (file)
        fclose(file);
    if (!read)
        free(bytes);
    return read ? bytes : NULL;
}

static int read_side(struct report_compare_side *side, const char *path)
{
    size_t size;
    char *json = read_file(path, &size);
    if (!json)
        return -1;
    int result = size > REPORT_MOST ? -1 : report_compare_read(side, path, json, size);
    free(json);
    return result < 0 ? fail("%s is not a report that --report=FILE.json has written", path) : 0;
}

/* Writes the page, which gets its name when it is complete. */
static int write_page(const struct report_compare_side sides[2], const char *path)
{
    struct latch latch = {0};
    struct out_file page;
    int result = -1;
    if (out_file_open(&page, path, &latch) == 0 && out_file_begin(&page, &latch) == 0) {
        int fd = dup(page.fd);
        FILE *to = fd >= 0 ? fdopen(fd, "w") : NULL;
        if (to) {
            report_compare_html(sides, to);
            bool written = !ferror(to);
            if (fclose(to) == 0 && written && out_file_finish(&page, &latch) == 0)
                result = out_file_commit(&page, &latch);
        }
    }
    out_file_abandon(&page);
    return result < 0 ? fail("%s", latch_tripped(&latch) ? latch.message : "the page could not be written") : 0;
}

/* Returns whether the page would replace a report. */
static bool is_report(const char *page, const char *report)
{
    struct stat x, y;
    return stat(page, &x) == 0 && stat(report, &y) == 0 && out_file_is_same(&x, &y);
}

int report_command(int argc, char **argv)
{
    const char *names[2], *page = NULL;
    struct report_compare_side sides[2];
    int n = 0;
    for (int i = 2; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return fputs(usage, stdout) < 0 || fflush(stdout) != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
        else if (strcmp(argv[i], "-o") == 0 && i + 1 < argc)
            page = argv[++i];
        else if (argv[i][0] == '-' || n >= 2)
            n = 3;
        else
            names[n++] = argv[i];
    if (n != 2) {
        fputs(usage, stderr);
        return EXIT_FAILURE;
    }
    for (int i = 0; i < 2; i++)
        if (page && is_report(page, names[i]))
            return fail("%s cannot be both report and page", page), EXIT_FAILURE;
    if (page && held_data_kind(page))
        return fail("%s holds %s, so the page does not replace it", page, held_data_kind(page)), EXIT_FAILURE;
    for (int i = 0; i < 2; i++)
        if (read_side(&sides[i], names[i]) < 0)
            return EXIT_FAILURE;
    if (page)
        return write_page(sides, page) < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
    report_compare_text(sides, stdout);
    return fflush(stdout) != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
