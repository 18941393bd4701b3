/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "base/latch.h"
#include "base/out_file.h"
#include "stats/counts.h"
#include "write/counted_files.h"
#include "write/out_text.h"

struct counted_file {
    struct counted_file *before; /* NULL: none */
    struct counts *counts;
    size_t counter, number;      /* index in the counter's files */
    char *path;
    struct out_file out;
};

static int print(void *file, FILE *to)
{
    const struct counted_file *f = file;
    return counts_file_print(f->counts, f->counter, f->number, to);
}

/* The files are finished one by one: a finished file needs no file descriptor. */
static int write_one(struct counted_files *files, struct counts *counts, size_t counter, size_t number,
                     struct latch *latch)
{
    struct counted_file *f = malloc(sizeof *f);
    if (!f)
        return latch_fail(latch, "out of memory");
    *f = (struct counted_file){.before = files->last, .counts = counts, .counter = counter, .number = number,
                               .path = counts_file_path(counts, counter, number), .out.fd = -1};
    files->last = f;
    return !f->path || out_file_open(&f->out, f->path, latch) < 0 || out_text_print(&f->out, print, f, latch) < 0
        || out_file_finish(&f->out, latch) < 0 ? -1 : 0;
}

int counted_files_write(struct counted_files *files, struct counts *counts, size_t i, struct latch *latch)
{
    size_t n;
    int status = counts_files(counts, i, &n);
    for (size_t k = 0; k < n && status == 0; k++)
        status = write_one(files, counts, i, k, latch);
    return status;
}

void counted_files_take_back(const struct counted_files *files)
{
    for (const struct counted_file *f = files->last; f; f = f->before)
        out_file_remove(&f->out);
}

int counted_files_commit(struct counted_files *files, struct latch *latch)
{
    for (struct counted_file *f = files->last; f; f = f->before)
        if (out_file_commit(&f->out, latch) < 0) {
            counted_files_take_back(files);
            return -1;
        }
    return 0;
}

void counted_files_abandon(struct counted_files *files)
{
    for (struct counted_file *f = files->last; f; f = f->before)
        out_file_abandon(&f->out);
}

void counted_files_close(struct counted_files *files)
{
    counted_files_abandon(files);
    for (struct counted_file *f = files->last, *before; f; f = before) {
        before = f->before;
        free(f->path);
        free(f);
    }
    files->last = NULL;
}
