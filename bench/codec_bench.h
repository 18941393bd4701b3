/* SPDX-License-Identifier: MIT */
/* The parts that the benchmarks of codecs share: command line, clock, the records of a BAM file. */
#ifndef CODEC_BENCH_H
#define CODEC_BENCH_H

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <htslib/bgzf.h>
#include <htslib/sam.h>

_Noreturn static inline void die(const char *what)
{
    fprintf(stderr, "%s: %s\n", program_invocation_short_name, what);
    exit(1);
}

static inline void *room(size_t n)
{
    void *p = malloc(n ? n : 1);
    if (!p)
        die("out of memory");
    memset(p, 1, n);             /* so that page faults are not counted */
    return p;
}

static inline double seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

struct bench_options {
    size_t max;                  /* -m, bytes of each file */
    int rounds;                  /* -r */
    const char *codecs, *units;  /* -c, -u */
    int every;                   /* -e: one of this many blocks is measured */
};

/* Sets the options given, -e and -u only if there is a default; files begin at optind. */
static inline void bench_options_parse(struct bench_options *o, int argc, char **argv)
{
    for (int opt; (opt = getopt(argc, argv, o->units ? "m:r:c:u:" : o->every ? "m:r:c:e:" : "m:r:c:")) != -1;)
        switch (opt) {
        case 'm': o->max = strtoul(optarg, NULL, 10) << 20; break;
        case 'r': o->rounds = atoi(optarg); break;
        case 'e': o->every = atoi(optarg) > 0 ? atoi(optarg) : 1; break;
        case 'c': o->codecs = optarg; break;
        case 'u': o->units = optarg; break;
        default: die("the options are at the top of its source");
        }
}

/* The first records of a file, up to *size bytes, in memory with slack more bytes; to be freed. */
static inline uint8_t *load_records(const char *path, size_t *size, size_t slack)
{
    uint8_t *data = room(*size + slack);
    BGZF *fp = bgzf_open(path, "r");
    bam_hdr_t *header = fp ? bam_hdr_read(fp) : NULL;
    ssize_t got = header ? bgzf_read(fp, data, *size) : -1;
    if (got <= 0)
        die(path);
    *size = (size_t)got;
    bam_hdr_destroy(header);
    bgzf_close(fp);
    return data;
}

#endif
