/* SPDX-License-Identifier: MIT */
/* A sequence is read completely when the first thread asks for it. It is kept until the last thread that uses it asks
 * for another one. In a sorted file, all threads are on one or two references at a time. */
#include <pthread.h>
#include <stdlib.h>
#include <htslib/faidx.h>
#include "base/latch.h"
#include "stats/stats_fasta.h"

struct stats_fasta {
    faidx_t *index;
    pthread_mutex_t lock;
    struct stats_sequence *first;        /* sequences in use, and one that is no longer used; under the lock */
};

struct stats_fasta *stats_fasta_open(const char *path, struct latch *latch)
{
    struct stats_fasta *fasta = calloc(1, sizeof *fasta);
    if (!fasta) {
        latch_fail(latch, "out of memory");
        return NULL;
    }
    fasta->index = fai_load(path);
    if (!fasta->index || pthread_mutex_init(&fasta->lock, NULL) != 0) {
        latch_fail(latch, "%s: the FASTA file or its index cannot be read. samtools faidx makes the index", path);
        if (fasta->index)
            fai_destroy(fasta->index);
        free(fasta);
        return NULL;
    }
    return fasta;
}

static void free_sequence(struct stats_sequence *sequence)
{
    free(sequence->bases);
    free(sequence);
}

void stats_fasta_close(struct stats_fasta *fasta)
{
    if (!fasta)
        return;
    for (struct stats_sequence *s = fasta->first, *next; s; s = next) {
        next = s->next;
        free_sequence(s);
    }
    fai_destroy(fasta->index);
    pthread_mutex_destroy(&fasta->lock);
    free(fasta);
}

static struct stats_sequence *read_sequence(struct stats_fasta *fasta, int32_t ref, const char *name)
{
    struct stats_sequence *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    hts_pos_t n;
    s->bases = faidx_fetch_seq64(fasta->index, name, 0, HTS_POS_MAX, &n);
    if (!s->bases || n < 0) {
        free_sequence(s);
        return NULL;
    }
    s->ref = ref;
    s->n = n;
    s->next = fasta->first;
    fasta->first = s;
    return s;
}

/* Frees all unused sequences except `kept`. */
static void sweep(struct stats_fasta *fasta, const struct stats_sequence *kept)
{
    for (struct stats_sequence **at = &fasta->first; *at;) {
        struct stats_sequence *s = *at;
        if (s->users > 0 || s == kept) {
            at = &s->next;
        } else {
            *at = s->next;
            free_sequence(s);
        }
    }
}

struct stats_sequence *stats_fasta_take(struct stats_fasta *fasta, int32_t ref, const char *name)
{
    pthread_mutex_lock(&fasta->lock);
    struct stats_sequence *s = fasta->first;
    while (s && s->ref != ref)
        s = s->next;
    if (!s)
        s = read_sequence(fasta, ref, name);
    if (s) {
        s->users++;
        sweep(fasta, s);
    }
    pthread_mutex_unlock(&fasta->lock);
    return s;
}

void stats_fasta_release(struct stats_fasta *fasta, struct stats_sequence *sequence)
{
    if (!sequence)
        return;
    pthread_mutex_lock(&fasta->lock);
    sequence->users--;
    pthread_mutex_unlock(&fasta->lock);
}

float stats_sequence_gc(const struct stats_sequence *sequence, int64_t begin, int64_t n)
{
    int64_t end = n < sequence->n - begin ? begin + n : sequence->n;
    uint64_t gc = 0, at = 0;
    for (int64_t i = begin < 0 ? 0 : begin; i < end; i++) {
        char c = (char)(sequence->bases[i] & ~0x20);     /* letters only: lower case becomes upper case */
        gc += c == 'G' || c == 'C';
        at += c == 'A' || c == 'T';
    }
    return gc + at ? (float)gc / (float)(gc + at) : 0;
}
