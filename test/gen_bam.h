/* SPDX-License-Identifier: MIT */
/* gen_bam: seeded test input, shaped like the output of `bwa mem` (or, with
 * --long, of a PacBio HiFi aligner). A seed and options give the same
 * records on every machine: all randomness comes from gen_bam_rng.h and is
 * integer arithmetic, so neither libc nor libm matters.
 *
 *   options --> genome (one byte per base) --> templates --> [heap] --> htslib
 *                                     of reads   --sorted only ^
 *   --grow IN.bam: records of IN --> shuffled, renamed, shifted copies --> htslib
 */
#ifndef GEN_BAM_H
#define GEN_BAM_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <htslib/hts.h>
#include <htslib/kstring.h>
#include <htslib/sam.h>

#include "gen_bam_rng.h"

enum { N_HUMAN = 25, N_LANES = 4, MAX_ERR = 64 };

struct options {
    int64_t records, size, genome;
    uint64_t seed;
    int refs, read_len, level, threads, jitter;
    int error_ppm, indel_pct;
    bool long_reads, mods, ties, sorted, full_qual;
    const char *out, *fmt, *grow, *fasta;
};

/* ---- errors end the program; detail may be NULL ---- */

_Noreturn void die(const char *what, const char *detail);
void *xrealloc(void *p, size_t n);

/* ---- genome ----
 *
 *   | chr1 | chr2 | ... | chrM | chrUn... | contaminant (not in the header) |
 *
 * One byte per base: bits 0-1 base, then flags. Unmapped reads come from the
 * contaminant at the end, so that they too overlap one another. */

enum {
    G_REPEAT = 4,   /* young repeat: aligners cannot tell its copies apart */
    G_SNP    = 8,   /* variant site, alternate base = base ^ (bits 4-5) */
    G_HOM    = 64   /* on both haplotypes */
};

struct ref { char name[24]; int64_t off, len; };

struct genome {
    uint8_t *base;
    int64_t len, tail;      /* mapped bases; contaminant bases after them */
    int n;
    struct ref *ref;
};

/* Names and lengths of n references: `total` bases together, min_len or more each. */
void genome_layout(struct genome *g, int n, int64_t total, int64_t min_len);

/* Makes their bases. */
void genome_build(struct genome *g, uint64_t seed);

/* The references as FASTA, for CRAM, calmd and sort -I. */
void genome_write(const struct genome *g, const char *path);

/* The reference that holds genome offset x. */
int genome_find(const struct genome *g, int64_t x);

/* ---- output, with a heap that puts mates in order for --sorted ---- */

struct out {
    samFile *fp;
    sam_hdr_t *hdr;
    bool dry;                       /* count only */
    int64_t records, bytes;         /* bytes as in uncompressed BAM */
    uint64_t seq;
    struct pending *heap;           /* --sorted: records that may not be written yet */
    size_t n_heap, m_heap;
};

/* Writes the header, out->hdr; frees it at the end. */
void out_open(struct out *o, const struct options *opt);
void out_close(struct out *o);

/* Writes a record; if sorted, keeps a copy for out_drain(). */
void out_record(struct out *o, const bam1_t *rec, bool sorted);

/* Writes all kept records whose out_key() is at most limit. */
void out_drain(struct out *o, uint64_t limit);
uint64_t out_key(int tid, int64_t pos, bool rev);

/* Returns whether the output has reached per_mille of its target. */
bool out_reached(const struct options *o, const struct out *out, int per_mille);

/* ---- reads: bases, qualities, alignments ---- */

struct locus { int tid; int64_t pos; };

/* One alignment of one read (or of a piece of it). */
struct aln {
    struct locus at;
    bool rev;
    int mapq, nm, score, sub;
    int64_t span;               /* reference bases covered */
    uint32_t *cig;
    int n_cig, m_cig;
    kstring_t md;
};

/* One read: bases and qualities lie as in BAM, in reference direction. */
struct mate {
    int len, n_err, err[MAX_ERR];   /* err: miscalled bases, for the qualities */
    bool mapped, split;
    char *base;
    uint8_t *qual;
    struct aln prim, supp;
    char *supp_base;
    uint8_t *supp_qual;
    int supp_len;
};

struct gen;

/* Room for cap bases. */
void mate_init(struct mate *m, int64_t cap);
void mate_free(struct mate *m);

void mate_unmapped(struct gen *g, struct mate *m, int len);

/* A read with head and tail bases outside its alignment. */
void mate_map(struct gen *g, struct mate *m, int len, struct locus at, bool rev, int head, int tail, bool adapter);

/* Gives the clipped piece of a read (n bases from off) a separate alignment:
 * a supplementary line, hard clipped, on either strand. */
void mate_split(struct gen *g, struct mate *m, int off, int n, struct locus at);

/* Makes its qualities, after that; second: of READ2. */
void mate_qual(struct gen *g, struct mate *m, bool second);

/* ---- templates: one or two reads with a name ---- */

/* Walks a NovaSeq flow cell: lane, tile, then rows of clusters. The order of
 * names is almost sorted in parts, as it is in FASTQ. */
struct namer {
    struct rng rng;
    int run, lane, tile, x, y, used, per_tile, row_step;
    kstring_t name, rg;
};

struct gen {
    const struct options *opt;
    struct genome genome;
    struct rng rng;
    struct namer namer;
    struct out out;
    struct mate m[2];
    bam1_t *rec;
    kstring_t text, ml;
    int64_t max_span;
    bool hap;                       /* haplotype of this template */
    int64_t templates, done;        /* planned; made */
    int64_t cursor;                 /* --sorted: genome offset, 1/256 bases */
};

/* Begins anew with the names of g->templates. */
void namer_reset(struct gen *g);

/* Makes template i with at most room records. */
void template_make(struct gen *g, uint64_t i, int64_t room, bool unmapped);

/* ---- --grow ---- */

void grow_run(const struct options *o);

#endif
