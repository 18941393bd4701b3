/* SPDX-License-Identifier: MIT */
#include <getopt.h>
#include <limits.h>
#include "gen_bam.h"

void die(const char *what, const char *detail)
{
    fprintf(stderr, "gen_bam: %s%s%s\n", what, detail ? ": " : "",
            detail ? detail : "");
    exit(EXIT_FAILURE);
}

void *xrealloc(void *p, size_t n)
{
    p = realloc(p, n ? n : 1);
    if (!p)
        die("out of memory", NULL);
    return p;
}

/* ---- a complete file ---- */

static sam_hdr_t *make_header(const struct gen *g)
{
    const struct options *o = g->opt;
    kstring_t s = KS_INITIALIZE;
    kputs(o->sorted ? "@HD\tVN:1.6\tSO:coordinate\n"
                    : "@HD\tVN:1.5\tSO:unsorted\tGO:query\n", &s);
    for (int i = 0; i < g->genome.n; i++)
        ksprintf(&s, "@SQ\tSN:%s\tLN:%" PRId64 "\n", g->genome.ref[i].name,
                 g->genome.ref[i].len);
    for (int i = 1; i <= N_LANES && !o->long_reads; i++)
        ksprintf(&s, "@RG\tID:HT275DSXX.%d\tSM:sample1\tLB:lib%d\tPL:ILLUMINA\tPU:HT275DSXX.%d\n",
                 i, 2 - i % 2, i);
    if (o->long_reads)
        kputs("@RG\tID:m64011.1\tSM:sample1\tLB:lib1\tPL:PACBIO\tPU:m64011_190830_220126\n", &s);
    ksprintf(&s, "@PG\tID:gen_bam\tPN:gen_bam\tDS:synthetic test input\tCL:gen_bam --seed %" PRIu64
             " --records %" PRId64 " --size %" PRId64 " --qual %s%s%s%s\n", o->seed,
             o->records, o->size, o->full_qual ? "full" : "binned",
             o->long_reads ? " --long" : "", o->ties ? " --ties" : "",
             o->sorted ? " --sorted" : "");
    sam_hdr_t *h = sam_hdr_parse(s.l, s.s);
    if (!h || !(h->text = strdup(s.s)))
        die("cannot make the header", NULL);
    h->l_text = s.l;
    free(s.s);
    return h;
}

/* Mean bytes and records of a template, from a dry run over other streams. */
static void calibrate(struct gen *g)
{
    const struct options *o = g->opt;
    int n = o->long_reads ? 1000 : 10000;
    g->templates = n;
    namer_reset(g);
    g->out.dry = true;
    for (int i = 0; i < n; i++)
        template_make(g, UINT64_MAX / 2 + (uint64_t) i, INT64_MAX, false);
    double by_size = (double) o->size * n / (double) g->out.bytes;
    double by_records = (double) o->records * n / (double) g->out.records;
    g->templates = (int64_t) (o->records ? by_records : by_size) + 1;
    g->out.dry = false;
    g->out.bytes = g->out.records = g->done = g->cursor = 0;
}

static void generate(struct gen *g)
{
    const struct options *o = g->opt;
    const int unmapped_pm = o->long_reads ? 10 : 25;     /* neither mate placed; human WGS: 1-3 % */
    calibrate(g);
    namer_reset(g);
    if (o->sorted)          /* unmapped templates come last and need no place */
        g->templates -= g->templates * unmapped_pm / 1000;
    while (!out_reached(o, &g->out, 1000)) {
        uint64_t i = (uint64_t) g->done;
        struct rng pick;
        rng_seed(&pick, o->seed ^ 0xabcdef, i);
        bool unmapped = o->sorted ? out_reached(o, &g->out, 1000 - unmapped_pm)
                                  : rng_chance(&pick, (uint32_t) unmapped_pm * 1000);
        template_make(g, i, o->records ? o->records - g->out.records : INT64_MAX, unmapped);
    }
    out_drain(&g->out, UINT64_MAX);
}

/* 30-fold coverage: the amount of data determines the size of the genome, unless --genome does. */
static int64_t genome_size(const struct options *o)
{
    double bases, per_record = 154 + 1.5 * o->read_len;
    if (o->genome)
        return o->genome;
    if (o->long_reads)
        per_record += o->read_len * (o->error_ppm * 1e-5 + (o->mods ? 0.06 : 0));
    bases = o->records ? (double) o->records * o->read_len
                       : (double) o->size / per_record * o->read_len;
    return bases / 30 < 3.1e9 ? (int64_t) (bases / 30) : 3100000000;
}

static void run_generate(const struct options *o)
{
    struct gen g = { .opt = o };
    int64_t insert = o->read_len < 160 ? 400 : (int64_t) o->read_len * 5 / 2;
    /* the largest fragment (mean + 3.47 deviations) or long read, and then some */
    int64_t max_len = (int64_t) o->read_len * 2;
    g.max_span = (o->long_reads ? max_len : insert * 2) + 64;
    genome_layout(&g.genome, o->refs, genome_size(o), g.max_span * 3 / 2);
    genome_build(&g.genome, o->seed);
    if (o->fasta)
        genome_write(&g.genome, o->fasta);
    for (int i = 0; i < 2; i++)
        mate_init(&g.m[i], max_len);
    g.rec = bam_init1();
    g.out.hdr = make_header(&g);
    out_open(&g.out, o);
    generate(&g);
    fprintf(stderr, "gen_bam: %" PRId64 " records, %" PRId64 " bytes uncompressed, genome %" PRId64 "\n",
            g.out.records, g.out.bytes, g.genome.len);
    out_close(&g.out);
    bam_destroy1(g.rec);
    for (int i = 0; i < 2; i++)
        mate_free(&g.m[i]);
    free(g.text.s), free(g.ml.s), free(g.namer.name.s), free(g.namer.rg.s);
    free(g.genome.base), free(g.genome.ref);
}

/* ---- command line ---- */

static void usage(FILE *fp)
{
    fputs("Usage: gen_bam [options]\n"
          "  --records N        number of records, exactly   (default 10000)\n"
          "  --size N[KMG]      or: size as uncompressed BAM, roughly\n"
          "  --seed N           same seed and options, same records   (1)\n"
          "  --refs N           number of references   (25, human proportions)\n"
          "  --genome N[KMG]    genome length   (30-fold coverage)\n"
          "  --read-len N       read length   (150; with --long the mean, 15000)\n"
          "  --qual KIND        binned (NovaSeq, default) or full (HiSeq)\n"
          "  --error RATE       miscalls and indels per base   (0.004)\n"
          "  --long             unpaired PacBio-HiFi-like reads\n"
          "  --mods             MM and ML tags\n"
          "  --ties             many records at few places\n"
          "  --sorted           in coordinate order\n"
          "  --fasta FILE       write the reference sequences, too\n"
          "  --grow IN          shuffled, renamed, shifted copies of IN's records\n"
          "  --jitter N         with --grow: shift by at most N bases   (10000)\n"
          "  -O, --output-fmt F bam, sam or ubam   (bam)\n"
          "  --level N          compression level   (htslib's default)\n"
          "  -@, --threads N    compression threads   (1)\n"
          "  -o FILE            output   (- is stdout, the default)\n", fp);
}

static int64_t parse_size(const char *s, const char *what)
{
    char *end;
    double v = strtod(s, &end);
    static const char unit[] = "KMGT";
    const char *u = *end ? strchr(unit, *end & ~32) : NULL;
    if (end == s || v < 0 || (*end && (!u || end[1])))
        die("bad number for", what);
    for (int n = u ? (int) (u - unit) + 1 : 0; n--;)
        v *= 1024;
    return (int64_t) v;
}

static int parse_int(const char *s, const char *what, int lo, int hi)
{
    int64_t v = parse_size(s, what);
    if (v < lo || v > hi)
        die("out of range", what);
    return (int) v;
}

enum {
    O_RECORDS = 256, O_SIZE, O_SEED, O_REFS, O_GENOME, O_LEN, O_QUAL, O_ERROR,
    O_LONG, O_MODS, O_TIES, O_SORTED, O_GROW, O_JITTER, O_LEVEL, O_FASTA
};

static const struct option long_options[] = {
    { "records", required_argument, NULL, O_RECORDS },
    { "size", required_argument, NULL, O_SIZE },
    { "seed", required_argument, NULL, O_SEED },
    { "refs", required_argument, NULL, O_REFS },
    { "genome", required_argument, NULL, O_GENOME },
    { "read-len", required_argument, NULL, O_LEN },
    { "qual", required_argument, NULL, O_QUAL },
    { "error", required_argument, NULL, O_ERROR },
    { "long", no_argument, NULL, O_LONG },
    { "mods", no_argument, NULL, O_MODS },
    { "ties", no_argument, NULL, O_TIES },
    { "sorted", no_argument, NULL, O_SORTED },
    { "grow", required_argument, NULL, O_GROW },
    { "fasta", required_argument, NULL, O_FASTA },
    { "jitter", required_argument, NULL, O_JITTER },
    { "level", required_argument, NULL, O_LEVEL },
    { "output-fmt", required_argument, NULL, 'O' },
    { "threads", required_argument, NULL, '@' },
    { "help", no_argument, NULL, 'h' },
    { NULL, 0, NULL, 0 }
};

static void set_option(struct options *o, int c, const char *arg)
{
    switch (c) {
    case O_RECORDS: o->records = parse_size(arg, "--records"); break;
    case O_SIZE: o->size = parse_size(arg, "--size"); break;
    case O_SEED: o->seed = strtoull(arg, NULL, 0); break;
    case O_REFS: o->refs = parse_int(arg, "--refs", 1, 10000000); break;
    case O_GENOME: o->genome = parse_size(arg, "--genome"); break;
    case O_LEN: o->read_len = parse_int(arg, "--read-len", 20, 1 << 27); break;
    case O_QUAL:
        o->full_qual = !strcmp(arg, "full");
        if (!o->full_qual && strcmp(arg, "binned"))
            die("--qual is binned or full, not", arg);
        break;
    case O_ERROR: o->error_ppm = (int) (strtod(arg, NULL) * 1e6); break;
    case O_LONG: o->long_reads = true; break;
    case O_MODS: o->mods = true; break;
    case O_TIES: o->ties = true; break;
    case O_SORTED: o->sorted = true; break;
    case O_GROW: o->grow = arg; break;
    case O_FASTA: o->fasta = arg; break;
    case O_JITTER: o->jitter = parse_int(arg, "--jitter", 0, INT_MAX / 2); break;
    case O_LEVEL: o->level = parse_int(arg, "--level", 0, 9); break;
    case 'O': o->fmt = arg; break;
    case '@': o->threads = parse_int(arg, "-@", 0, 1024); break;
    case 'o': o->out = arg; break;
    case 'h': usage(stdout); exit(EXIT_SUCCESS);
    default: usage(stderr); exit(EXIT_FAILURE);
    }
}

int main(int argc, char **argv)
{
    struct options o = {
        .seed = 1, .refs = N_HUMAN, .level = -1, .threads = 1, .jitter = 10000,
        .error_ppm = 4000, .indel_pct = 3, .out = "-", .fmt = "bam"
    };
    int c;
    while ((c = getopt_long(argc, argv, "O:@:o:h", long_options, NULL)) >= 0)
        set_option(&o, c, optarg);
    if (optind < argc)
        die("unexpected argument", argv[optind]);
    if (strcmp(o.fmt, "bam") && strcmp(o.fmt, "sam") && strcmp(o.fmt, "ubam"))
        die("unknown output format", o.fmt);
    if (o.error_ppm < 1 || o.error_ppm > 500000)
        die("--error must lie between 0.000001 and 0.5", NULL);
    if (o.grow && o.sorted)
        die("--grow gives unsorted output; drop --sorted", NULL);
    if (!o.records && !o.size)
        o.records = 10000;
    if (!o.read_len)
        o.read_len = o.long_reads ? 15000 : 150;
    if (o.long_reads)
        o.indel_pct = 60;
    if (o.grow)
        grow_run(&o);
    else
        run_generate(&o);
    return EXIT_SUCCESS;
}
