/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "bam/record_checksum.h"
#include "engine/engine_opts.h"
#include "codec/bgzf_block.h"
#include "order/sort_key.h"
#include "order/sort_run.h"
#include "plan/calibration.h"
#include "read/input_sample.h"
#include "sort/record_pack.h"
#include "sort/spill_slice.h"

/* A level that is slow is not timed to the end of the sample. */
static const double SECONDS_MOST = 0.6;

/* The sample's records in the order that is wanted. */
struct sorted {
    const struct input_sample *sample;
    struct bam_key *keys;
    struct bam_key_order order;
};

static const uint8_t *record_of(const struct sorted *s, size_t i, size_t *size)
{
    const uint8_t *base = s->sample->arena.base;
    *size = bam_key_record_size(base, s->keys[i]);
    return bam_key_record(base, s->keys[i]);
}

/* ------------------------------------------------------------------- order */

/* Makes the keys of the order again; those of the sample are by coordinate. A record that lacks a tag keeps that key:
 * the sort will refuse it. */
static void make_keys(struct sorted *s, struct sort_rule *rule)
{
    enum { LEARNED = 256 };
    const struct bam_record *first[LEARNED];
    size_t size, n = s->sample->n < LEARNED ? s->sample->n : LEARNED;
    for (size_t i = 0; i < n; i++)
        first[i] = (const struct bam_record *)record_of(s, i, &size);
    sort_rule_learn(rule, first, n);
    for (size_t i = 0; i < s->sample->n; i++)
        sort_key_make(rule, (const struct bam_record *)record_of(s, i, &size), &s->keys[i].sort);
    s->order.rule = rule;
}

/* The merge compares as often as a sort of few keys: so that is counted twice. */
static void time_sort(struct calibration *c, struct sorted *s, struct sort_rule *rule)
{
    double bytes = (double)s->sample->bytes, before = input_sample_clock();
    if (!sort_key_decides(rule))
        make_keys(s, rule);
    double made = input_sample_clock();
    sort_run(s->keys, s->sample->n, &s->order);
    c->find += (made - before) / bytes;
    c->sort = 2 * (input_sample_clock() - made) / bytes;
}

/* ------------------------------------------------------------------ output */

/* Fills blocks with records, as the output has them, adds up their checksum, and deflates the blocks. */
static int time_deflate(struct calibration *c, const struct sorted *s, int level)
{
    struct bgzf_codec *codec = bgzf_codec_new(level);
    uint8_t *block = malloc(BGZF_FILL), *out = malloc(BGZF_MAX_BLOCK);
    uint64_t taken = 0, deflated = 0;
    volatile uint64_t checksum = 0;
    double before = input_sample_clock(), s_taken = 0;
    for (size_t i = 0, n = 0; codec && block && out && i < s->sample->n && s_taken < SECONDS_MOST; i++) {
        size_t size;
        const uint8_t *record = record_of(s, i, &size);
        checksum += record_checksum(record, size);
        for (size_t done = 0, part; done < size; done += part) {
            part = size - done < BGZF_FILL - n ? size - done : BGZF_FILL - n;
            memcpy(block + n, record + done, part);
            n += part;
            taken += part;
            bool last = i + 1 == s->sample->n && done + part == size;
            if (n < BGZF_FILL && !last)
                continue;
            deflated += bgzf_block_deflate(codec, block, (uint32_t)n, out);
            n = 0;
            s_taken = input_sample_clock() - before;
            c->deflate = s_taken / (double)taken;
            c->deflated = (double)deflated / (double)taken;
        }
    }
    (void)checksum;                              /* made for its time alone */
    int result = codec && block && out ? 0 : -1;
    bgzf_codec_free(codec);
    free(block);
    free(out);
    return result;
}

/* --------------------------------------------------------- temporary files */

static int time_unpack(struct calibration *c, const uint8_t *packed, size_t n)
{
    struct record_unpacker *unpacker = record_unpacker_new();
    struct spill_slice slice = {.size = spill_slice_size(packed)};
    uint8_t *in = malloc(n + RECORD_PACK_SLACK);
    int result = -1;
    if (unpacker && in && posix_memalign((void **)&slice.base, sizeof(struct bam_key), slice.size) == 0) {
        memcpy(in, packed, n);
        double before = input_sample_clock();
        if (spill_slice_unpack(&slice, unpacker, in, n) == 0 && slice.bottom > 0)
            c->unpack = (input_sample_clock() - before) / (double)slice.bottom;
        result = 0;
    }
    free(slice.base);
    free(in);
    record_unpacker_free(unpacker);
    return result;
}

/* Packs the sorted records in slices of their real size, and unpacks the first. */
static int time_pack(struct calibration *c, const struct sorted *s)
{
    static const size_t SLICE = (size_t)2 << 20;
    struct spill_packer *packer = spill_packer_new(SLICE);
    const uint8_t *packed;
    size_t n, sum = 0, i = 0, size;
    double before = input_sample_clock(), seconds = 0;
    int added = packer ? 1 : -1;
    while (added >= 0 && i < s->sample->n) {
        const uint8_t *record = record_of(s, i, &size);
        added = spill_packer_add(packer, s->keys[i].sort, record, size);
        i += added > 0;
        if (added < 0 || (added > 0 && i < s->sample->n))
            continue;
        if ((added = spill_packer_pack(packer, &packed, &n)) < 0)
            break;
        seconds += input_sample_clock() - before;
        if (sum == 0 && (added = time_unpack(c, packed, n)) < 0)
            break;
        sum += n;
        before = input_sample_clock();
    }
    c->pack = seconds / (double)s->sample->bytes;
    c->packed = (double)sum / (double)s->sample->bytes;
    spill_packer_free(packer);
    return added < 0 ? -1 : 0;
}

static double wall_clock(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

int calibration_make(struct calibration *c, const struct input_sample *sample, const struct engine_opts *opts,
                     sam_hdr_t *sam, bool spills)
{
    struct sorted s = {.sample = sample, .keys = malloc(sample->n * sizeof *s.keys), .order.base = sample->arena.base};
    struct sort_rule *rule = sort_rule_new(&opts->order, sam);
    double wall = wall_clock(), cpu = input_sample_clock();
    int result = -1;
    *c = (struct calibration){
        .inflate = sample->inflate_s / (double)sample->inflated,
        .find = sample->find_s / (double)sample->inflated,
    };
    if (s.keys && rule) {
        memcpy(s.keys, sample->keys, sample->n * sizeof *s.keys);
        time_sort(c, &s, rule);
        bool is_bam = opts->out.format.format == bam;
        result = (is_bam && time_deflate(c, &s, opts->out.level) < 0) || (spills && time_pack(c, &s) < 0) ? -1 : 0;
    }
    cpu = input_sample_clock() - cpu;
    c->waited = cpu > 0 ? fmax((wall_clock() - wall) / cpu, 1) : 1;
    sort_rule_free(rule);
    free(s.keys);
    return result;
}
