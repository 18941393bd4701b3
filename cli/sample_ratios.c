/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include "codec/bgzf_block.h"
#include "engine/engine_opts.h"
#include "order/sort_key.h"
#include "order/sublist_sort.h"
#include "cli/sample_ratios.h"
#include "read/input_sample.h"
#include "sort/spill_slice.h"

/* The sample's records in the requested order. */
struct sorted_sample {
    const struct input_sample *sample;
    struct bam_key *keys;
    struct bam_key_order order;
};

static const uint8_t *record_of(const struct sorted_sample *s, size_t i, size_t *size)
{
    const uint8_t *base = s->sample->arena.base;
    *size = bam_key_record_size(base, s->keys[i]);
    return bam_key_record(base, s->keys[i]);
}

/* ------------------------------------------------------------------- order */

/* Makes the keys of the order; the sample has keys by coordinate. A record that lacks a tag keeps its old key: the sort
 * will refuse it. */
static void make_keys(struct sorted_sample *s, struct sort_rule *rule)
{
    enum { LEARNED = 256 };
    const struct bam_record *first[LEARNED];
    size_t size, n = s->sample->n < LEARNED ? s->sample->n : LEARNED;
    for (size_t i = 0; i < n; i++)
        first[i] = bam_record_at(record_of(s, i, &size));
    sort_rule_learn(rule, first, n);
    for (size_t i = 0; i < s->sample->n; i++)
        sort_key_make(rule, bam_record_at(record_of(s, i, &size)), &s->keys[i].sort);
    s->order.rule = rule;
}

/* ------------------------------------------------------------------ output */

/* Deflates the records in the blocks that the output would have. */
static int measure_deflated(struct sample_ratios *ratios, const struct sorted_sample *s, int level)
{
    struct bgzf_codec *codec = bgzf_codec_new(level);
    uint8_t *block = malloc(BGZF_FILL), *out = malloc(BGZF_MAX_BLOCK);
    bool enough = codec && block && out;
    uint64_t deflated = 0;
    size_t n = 0, size, i = 0, done = 0;
    while (enough && i < s->sample->n) {
        const uint8_t *record = record_of(s, i, &size);
        size_t part = size - done < BGZF_FILL - n ? size - done : BGZF_FILL - n;
        memcpy(block + n, record + done, part);
        n += part;
        done = done + part < size ? done + part : 0;
        i += done == 0;
        if (n < BGZF_FILL && i < s->sample->n)
            continue;
        deflated += bgzf_block_deflate(codec, block, (uint32_t)n, out);
        n = 0;
    }
    if (enough)
        ratios->deflated = (double)deflated / (double)s->sample->bytes;
    bgzf_codec_free(codec);
    free(block);
    free(out);
    return enough ? 0 : -1;
}

/* --------------------------------------------------------- temporary files */

/* Packs the sorted records in slices of their real size. */
static int measure_packed(struct sample_ratios *ratios, const struct sorted_sample *s)
{
    static const size_t SLICE = (size_t)2 << 20;
    struct spill_packer *packer = spill_packer_new(SLICE);
    const uint8_t *packed;
    size_t n, sum = 0, i = 0, size;
    int added = packer ? 1 : -1;
    while (added >= 0 && i < s->sample->n) {
        const uint8_t *record = record_of(s, i, &size);
        added = spill_packer_add(packer, s->keys[i].sort, record, size);
        i += added > 0;
        if (added < 0 || (added > 0 && i < s->sample->n))
            continue;
        added = spill_packer_pack(packer, &packed, &n);
        sum += added < 0 ? 0 : n;
    }
    ratios->packed = (double)sum / (double)s->sample->bytes;
    spill_packer_free(packer);
    return added < 0 ? -1 : 0;
}

int sample_ratios_measure(struct sample_ratios *ratios, const struct input_sample *sample,
                          const struct engine_opts *opts, sam_hdr_t *sam, bool spills)
{
    struct sorted_sample s = {.sample = sample, .keys = malloc(sample->n * sizeof *s.keys),
                              .order.base = sample->arena.base};
    struct sort_rule *rule = sort_rule_new(&opts->order, sam);
    int result = -1;
    *ratios = (struct sample_ratios){0};
    if (s.keys && rule) {
        memcpy(s.keys, sample->keys, sample->n * sizeof *s.keys);
        if (!sort_key_decides(rule))
            make_keys(&s, rule);
        sublist_sort(s.keys, sample->n, &s.order);
        bool is_bam = opts->out.format.format == bam;
        result = is_bam ? measure_deflated(ratios, &s, opts->out.level) : 0;
        result = spills && result == 0 ? measure_packed(ratios, &s) : result;
    }
    sort_rule_free(rule);
    free(s.keys);
    return result;
}
