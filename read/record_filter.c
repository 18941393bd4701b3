/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <htslib/hts_expr.h>
#include "hts/bam1_bytes.h"
#include "hts/hts_file.h"
#include "read/record_filter.h"

/* The state of one user. htslib keeps its compiled code in the expression while it evaluates it. */
struct filter_user {
    hts_filter_t *expression;
    bam1_t *record;
};

struct record_filter {
    sam_hdr_t *header;
    bool has_library;            /* the expression contains "library": htslib looks it up in the header, and keeps it in
                                  * one place */
    pthread_mutex_t library;     /* held while such an expression is evaluated */
    uint32_t n;
    struct filter_user users[];
};

const char *record_filter_of(const hts_opt *option)
{
    const hts_opt *last = hts_file_option(option, HTS_OPT_FILTER);
    return last ? last->val.s : NULL;
}

struct record_filter *record_filter_new(const char *expression, const sam_hdr_t *header, uint32_t n)
{
    struct record_filter *f = calloc(1, sizeof *f + n * sizeof *f->users);
    if (!f)
        return NULL;
    f->has_library = strstr(expression, "library");
    pthread_mutex_init(&f->library, NULL);
    f->header = sam_hdr_dup(header);
    bool made = f->header != NULL;
    if (made)
        sam_hdr_count_lines(f->header, "SQ");    /* parses the header now, if possible */
    for (; made && f->n < n; f->n++) {
        struct filter_user *u = &f->users[f->n];
        u->expression = hts_filter_init(expression);
        u->record = bam_init1();
        made = u->expression && u->record;
    }
    if (made)
        return f;
    record_filter_free(f);
    return NULL;
}

void record_filter_free(struct record_filter *f)
{
    if (!f)
        return;
    for (uint32_t i = 0; i < f->n; i++) {
        hts_filter_free(f->users[i].expression);
        bam_destroy1(f->users[i].record);
    }
    sam_hdr_destroy(f->header);
    pthread_mutex_destroy(&f->library);
    free(f);
}

int record_filter_passes(struct record_filter *f, uint32_t user, const struct bam_record *record)
{
    struct filter_user *u = &f->users[user];
    if (bam1_from_record(u->record, record) < 0)
        return -1;
    if (f->has_library)
        pthread_mutex_lock(&f->library);
    int passes = sam_passes_filter(f->header, u->record, u->expression);
    if (f->has_library)
        pthread_mutex_unlock(&f->library);
    return passes;
}
