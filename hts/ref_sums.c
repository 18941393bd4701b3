/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <htslib/faidx.h>
#include "hts/hts_file.h"
#include "hts/ref_sums.h"
#include "base/latch.h"

enum { PIECE = 1 << 20 };        /* bases that are read at once */
enum { SEEN = 1, BEGUN = 2 };    /* states of a reference */

/* 32 digits, and the NUL. */
typedef char md5_text[33];

struct ref_sums {
    sam_hdr_t *header;
    const char *fasta, *path;
    struct latch *latch;
    pthread_mutex_t lock;        /* guards the index, which reads the file */
    faidx_t *index;              /* NULL: htslib reports why it cannot read the FASTA */
    atomic_uchar *states;        /* states of references */
};

struct ref_sums *ref_sums_new(sam_hdr_t *header, const char *fasta, const char *path, struct latch *latch)
{
    struct ref_sums *s = calloc(1, sizeof *s);
    if (!s || !(s->states = calloc((size_t)sam_hdr_nref(header) + 1, sizeof *s->states))) {
        latch_fail(latch, "out of memory");
        free(s);
        return NULL;
    }
    s->header = header;
    s->fasta = fasta;
    s->path = path;
    s->latch = latch;
    pthread_mutex_init(&s->lock, NULL);
    s->index = fai_load3(fasta, NULL, NULL, 0);
    sam_hdr_count_lines(header, "SQ");  /* makes htslib parse the header before several threads ask for its tags */
    return s;
}

void ref_sums_free(struct ref_sums *s)
{
    if (!s)
        return;
    fai_destroy(s->index);
    pthread_mutex_destroy(&s->lock);
    free(s->states);
    free(s);
}

const char *ref_sums_fasta(const char *reference, const hts_opt *options)
{
    return hts_file_number(options, CRAM_OPT_IGNORE_MD5, 0) ? NULL : hts_file_fasta(reference, options);
}

/* Computes the checksum of a sequence of the FASTA. -1: the sequence cannot be read, or there is no memory. */
static int sum_sequence(struct ref_sums *s, const char *name, md5_text sum)
{
    unsigned char digest[16];
    hts_md5_context *md5 = hts_md5_init();
    hts_pos_t size = faidx_seq_len(s->index, name), got = PIECE;
    for (hts_pos_t at = 0; md5 && at < size && got > 0 && !latch_tripped(s->latch); at += got) {
        char *bases = faidx_fetch_seq64(s->index, name, at, at + PIECE - 1, &got);
        for (hts_pos_t i = 0; bases && i < got; i++)
            bases[i] = (char)toupper((unsigned char)bases[i]);
        if (bases)
            hts_md5_update(md5, bases, (unsigned long)got);
        free(bases);
    }
    if (!md5)
        return -1;
    hts_md5_final(digest, md5);
    hts_md5_hex(sum, digest);
    hts_md5_destroy(md5);
    return got > 0 ? 0 : -1;
}

static int check_sequence(struct ref_sums *s, const char *name, const char *wanted)
{
    md5_text sum;
    pthread_mutex_lock(&s->lock);
    int status = sum_sequence(s, name, sum);
    pthread_mutex_unlock(&s->lock);
    if (status < 0)
        return latch_fail(s->latch, "%s: reference %s cannot be read from %s", s->path, name, s->fasta);
    if (latch_tripped(s->latch) || strcasecmp(sum, wanted) == 0)
        return 0;
    return latch_fail(s->latch, "%s: reference %s of %s is not the one of the header: the MD5 of its sequence is %s, "
                      "and the header has M5:%s. Name the FASTA that the reads were aligned to (--reference)", s->path,
                      name, s->fasta, sum, wanted);
}

int ref_sums_check(struct ref_sums *s, int32_t reference)
{
    if (reference < 0 || !s->index || atomic_fetch_or(&s->states[reference], BEGUN) & BEGUN)
        return 0;
    kstring_t wanted = KS_INITIALIZE;
    const char *name = sam_hdr_tid2name(s->header, reference);
    int result = 0;
    if (faidx_has_seq(s->index, name) && sam_hdr_find_tag_id(s->header, "SQ", "SN", name, "M5", &wanted) == 0)
        result = check_sequence(s, name, wanted.s);
    ks_free(&wanted);
    return result;
}

void ref_sums_see(struct ref_sums *s, int32_t reference)
{
    if (reference >= 0 && !(atomic_load_explicit(&s->states[reference], memory_order_relaxed) & SEEN))
        atomic_fetch_or(&s->states[reference], SEEN);
}

int ref_sums_check_seen(struct ref_sums *s)
{
    for (int i = 0; i < sam_hdr_nref(s->header); i++)
        if (atomic_load(&s->states[i]) & SEEN && ref_sums_check(s, i) < 0)
            return -1;
    return 0;
}

int ref_sums_check_all(struct ref_sums *s)
{
    for (int i = 0; i < sam_hdr_nref(s->header); i++)
        if (ref_sums_check(s, i) < 0)
            return -1;
    return 0;
}
