/* SPDX-License-Identifier: MIT
 *
 * dup_dump [OPTIONS of markdup] IN.bam: what the core of markdup finds in a file that is sorted by coordinate, in one
 * shard: FLAG, do, dt and dc of each record, a line each, "-" for what is not there; then the statistics. Used by
 * test_duplicates.py. */
#include <getopt.h>
#include <htslib/sam.h>
#include <stdio.h>
#include <unistd.h>
#include "bam/bam1_bytes.h"
#include "test/dup_driver.h"

struct settings {
    struct dup_rule rule;
    struct dup_driver driver;
    struct dup_spots spots;
    regex_t barcode;
    struct name_table groups;
    const char *coords, *order;
    bool use_groups, json;
};

static void read_options(struct settings *s, int argc, char **argv)
{
    static const struct option options[] = {
        {"include-fails", no_argument, NULL, 'F'}, {"no-multi-dup", no_argument, NULL, 'N'},
        {"read-coords", required_argument, NULL, 'r'}, {"coords-order", required_argument, NULL, 'o'},
        {"barcode-tag", required_argument, NULL, 'b'}, {"barcode-name", no_argument, NULL, 'n'},
        {"barcode-rgx", required_argument, NULL, 'x'}, {"use-read-groups", no_argument, NULL, 'g'},
        {"duplicate-count", no_argument, NULL, 'c'}, {"json", no_argument, NULL, 'j'}, {NULL, 0, NULL, 0},
    };
    s->driver.window = 300;
    s->driver.shards = 1;
    s->driver.opt.pass = true;
    for (int c; (c = getopt_long(argc, argv, "l:d:tm:", options, NULL)) >= 0;)
        switch (c) {
        case 'l': s->driver.window = atoi(optarg); break;
        case 'd': s->driver.opt.distance = atoi(optarg); break;
        case 't': s->driver.opt.names = true; break;
        case 'm': s->rule.mode = *optarg == 's' ? DUP_BY_SEQUENCE : DUP_BY_TEMPLATE; break;
        case 'F': s->rule.include_fails = true; break;
        case 'N': s->driver.opt.pass = false; break;
        case 'r': s->coords = optarg; break;
        case 'o': s->order = optarg; break;
        case 'b': memcpy(s->rule.barcode_tag, optarg, 2); break;
        case 'n':
        case 'x':
            s->rule.barcode_group = c == 'n' ? 2 : 1;
            MUST(regcomp(&s->barcode, c == 'n' ? DUP_BARCODE_NAME : optarg, REG_EXTENDED) == 0);
            s->rule.barcode_name = &s->barcode;
            break;
        case 'g': s->use_groups = true; break;
        case 'c': s->driver.opt.counts = true; break;
        case 'j': s->json = true; break;
        default: exit(EXIT_FAILURE);
        }
    MUST(!dup_spots_open(&s->spots, s->coords, s->order));
    s->driver.opt.spots = &s->spots;
}

/* Reads all records; their bytes stay. Returns their flags. */
static uint16_t *read_records(struct settings *s, samFile *in, sam_hdr_t *header)
{
    struct dup_driver *d = &s->driver;
    uint16_t *flags = NULL;
    bam1_t *b = bam_init1();
    size_t max = 0;
    while (sam_read1(in, header, b) >= 0) {
        struct byte_buffer bytes = {NULL, 0, 0};
        MUST(bam1_bytes_append(&bytes, b) == 0);
        if (d->n == max) {
            max = 2 * max + 1024;
            d->records = realloc(d->records, max * sizeof *d->records);
            flags = realloc(flags, max * sizeof *flags);
            MUST(d->records && flags);
        }
        const struct bam_record *r = (const struct bam_record *)bytes.p;
        struct dup_record *record = &d->records[d->n];
        *record = (struct dup_record){.name = bam_record_name(r), .ref = bam_record_ref_id(r),
                                      .ends_all = bam_record_ref_id(r) == -1 && bam_record_pos(r) == -1};
        enum bam_fault fault = dup_key_make(&s->rule, r, &record->read);
        if (fault) {
            fprintf(stderr, "%s\n", bam_fault_text(fault));
            exit(EXIT_FAILURE);
        }
        flags[d->n++] = bam_record_flag(r);
    }
    bam_destroy1(b);
    return flags;
}

static void print(struct settings *s, const uint16_t *flags)
{
    static const char *const types[] = {"-", "LB", "SQ"};
    struct dup_driver *d = &s->driver;
    struct byte_buffer text = {NULL, 0, 0};
    for (size_t i = 0; i < d->n; i++) {
        const struct dup_record *r = &d->records[i];
        unsigned flag = flags[i] | (r->lost ? BAM_FDUP : 0);
        d->counts[r->read.group].written++;
        printf("%u %s %s ", flag, r->original ? r->original : "-", types[r->type]);
        if (d->opt.counts && !(flag & BAM_FDUP))
            printf("%llu\n", (unsigned long long)r->count);
        else
            printf("-\n");
    }
    MUST((s->json ? dup_counts_json : dup_counts_text)(&text, "C", d->counts, s->use_groups ? &s->groups : NULL) == 0);
    fwrite(text.p, 1, text.n, stdout);
}

int main(int argc, char **argv)
{
    static struct settings s;
    read_options(&s, argc, argv);
    samFile *in = sam_open(argv[optind], "r");
    sam_hdr_t *header = in ? sam_hdr_read(in) : NULL;
    MUST(header);
    int n_groups = s.use_groups ? sam_hdr_count_lines(header, "RG") : 0;
    for (int i = 0; i < n_groups; i++) {
        const char *id = sam_hdr_line_name(header, "RG", i);
        MUST(name_table_add(&s.groups, id, strlen(id)) >= 0);
    }
    s.rule.groups = s.use_groups ? &s.groups : NULL;
    s.driver.counts = calloc((size_t)n_groups + 1, sizeof *s.driver.counts);
    const uint16_t *flags = read_records(&s, in, header);
    enum dup_fault fault = driver_run(&s.driver);
    if (fault) {
        fprintf(stderr, "fault %d\n", fault);
        return EXIT_FAILURE;
    }
    print(&s, flags);
    fflush(stdout);
    _exit(EXIT_SUCCESS);                         /* with all that was read: leaks are looked for in the units */
}
