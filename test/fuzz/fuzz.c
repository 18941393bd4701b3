/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <htslib/hfile.h>
#include "fuzz.h"

/* References by the four bits of an id: the usual ones more often than none. */
static uint32_t reference(unsigned bits)
{
    return bits < 12 ? bits % FUZZ_REFS : UINT32_MAX;
}

/* n operations, whose bases in SEQ are counted; if there are too many, the CIGAR ends. */
static uint32_t put_cigar(struct feed *f, uint8_t *to, unsigned n, uint32_t *bases)
{
    uint32_t k = 0;
    *bases = 0;
    for (; k < n; k++) {
        uint32_t op = feed_byte(f), length = feed_byte(f), code = op % 9;
        if (bam_cigar_type(code) & 1) {
            if (*bases + length > 255)
                break;
            *bases += length;
        } else if (op & 0x80) {
            length <<= 16;                       /* a long gap or padding */
        }
        store_le32(to + 4 * k, length << BAM_CIGAR_SHIFT | code);
    }
    return k;
}

static uint8_t *put_name(struct feed *f, uint8_t *to, unsigned n)
{
    feed_copy(f, to, n);
    to[n] = 0;
    return to + n + 1;
}

static size_t put_record(struct feed *f, struct bam_record *r)
{
    feed_copy(f, r->flag, 2);
    r->mapq = feed_byte(f);
    unsigned refs = feed_byte(f);
    store_le32(r->ref_id, reference(refs & 15));
    store_le32(r->next_ref_id, reference(refs >> 4));
    feed_copy(f, r->pos, 4);
    feed_copy(f, r->next_pos, 4);
    feed_copy(f, r->tlen, 4);
    store_le16(r->bin, 0);
    unsigned n_name = feed_byte(f) % 255, bases = feed_byte(f), operations = feed_byte(f), tags = feed_byte(f);
    r->name_len = (uint8_t)(n_name + 1);
    uint8_t *at = put_name(f, r->data, n_name);
    uint32_t needed, n_cigar = put_cigar(f, at, operations, &needed);
    at += 4 * n_cigar;
    if (n_cigar)
        bases = needed;
    store_le16(r->n_cigar, (uint16_t)n_cigar);
    store_le32(r->seq_len, bases);
    feed_copy(f, at, (bases + 1) / 2 + bases);
    at += (bases + 1) / 2 + bases;
    feed_copy(f, at, tags);
    at += tags;
    size_t size = (size_t)(at - (uint8_t *)r);
    store_le32(r->block_size, (uint32_t)size - 4);
    return size;
}

size_t fuzz_record(struct feed *f, uint8_t *out)
{
    while (f->left > 0) {
        size_t size = put_record(f, (struct bam_record *)out);
        if (!bam_record_check(out, size, FUZZ_REFS).fault)
            return size;                         /* broken tags may hide what the CIGAR needs */
    }
    return 0;
}

struct sort_order fuzz_order(struct feed *f)
{
    static const enum sort_by then[] = {SORT_COORDINATE, SORT_NAME_NATURAL, SORT_NAME_ASCII, SORT_NAME_PICARD};
    uint8_t by = feed_byte(f), how = feed_byte(f);
    struct sort_order order = {.by = by % (SORT_COLLATE + 1), .n_bins = 1 + how, .then = then[by / 16 % 4], .tag = {'X', 'T'},
                               .kmer = 1 + how % 31, .no_reverse = how & 64, .squash = how & 128};
    if (how & 1)
        memcpy(order.tag, "RG", 2);
    return order;
}

sam_hdr_t *fuzz_header(void)
{
    static const char text[] =
        "@HD\tVN:1.6\n@SQ\tSN:a\tLN:1000\n@SQ\tSN:b\tLN:2147483647\n@SQ\tSN:c\tLN:1\n"
        "@RG\tID:1\tLB:y\n@RG\tID:2\tLB:x\n@RG\tID:3\n@RG\tID:12\tLB:y\n";
    sam_hdr_t *sam = sam_hdr_parse(sizeof text - 1, text);
    MUST(sam && sam_hdr_nref(sam) == FUZZ_REFS);
    return sam;
}

int fuzz_file(const uint8_t *data, size_t size, char path[32])
{
    int fd = memfd_create("fuzz", MFD_CLOEXEC);
    MUST(fd >= 0);
    MUST(size == 0 || write(fd, data, size) == (ssize_t)size);
    MUST(lseek(fd, 0, SEEK_SET) == 0);
    snprintf(path, 32, "/proc/self/fd/%d", fd);
    return fd;
}

htsFormat fuzz_format(const uint8_t *data, size_t size)
{
    htsFormat format;
    char path[32];
    int fd = fuzz_file(data, size, path);
    hFILE *file = hopen(path, "r");
    MUST(file);
    if (hts_detect_format(file, &format) < 0)     /* as in damaged xz */
        memset(&format, 0, sizeof format);
    hclose_abruptly(file);
    close(fd);
    return format;
}

bool fuzz_is_bam(const uint8_t *data, size_t size)
{
    htsFormat format = fuzz_format(data, size);
    return format.format == bam || (format.compression == bgzf && format.category != sequence_data);
}

bool fuzz_can_be_viewed(const uint8_t *data, size_t size)
{
    char path[32];
    int fd = fuzz_file(data, size, path), status = -2;
    samFile *file = sam_open(path, "r");
    sam_hdr_t *header = file ? sam_hdr_read(file) : NULL;
    bam1_t *b = bam_init1();
    kstring_t line = {0, 0, NULL};
    while (header && b && (status = sam_read1(file, header, b)) >= 0)
        if (sam_format1(header, b, &line) < 0)
            break;
    free(line.s);
    bam_destroy1(b);
    sam_hdr_destroy(header);
    if (file)
        sam_close(file);
    close(fd);
    return status == -1;
}
