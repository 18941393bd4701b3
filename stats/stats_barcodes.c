/* SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include "base/byte_buffer.h"
#include "base/message.h"
#include "stats/stats_barcodes.h"

enum { BASES = 5, QUALITIES = 256, FIRST_QUALITY = 33, NO_PLACE = -1 };

const char stats_barcode_tags[BARCODE_TAGS][2][3] = {{"BC", "QT"}, {"CR", "CY"}, {"OX", "BZ"}, {"RX", "QX"}};

struct barcode_group {
    int tag;
    uint32_t length;
    int64_t place;               /* place of the first character that is not a base */
    uint64_t n;                  /* number of barcodes */
    uint64_t (*qualities)[QUALITIES];    /* for each position; NULL: none yet */
    uint64_t bases[][BASES];     /* for each position */
};

static void free_group(struct barcode_group *group)
{
    free(group->qualities);
    free(group);
}

void stats_barcodes_free(struct stats_barcodes *b)
{
    for (size_t i = 0; i < b->n; i++)
        free_group(b->groups[i]);
    free(b->groups);
    *b = (struct stats_barcodes){0};
}

static bool is_group(const struct barcode_group *group, int tag, uint32_t length, int64_t place)
{
    return group->tag == tag && group->length == length && group->place == place;
}

/* Finds the group, or makes it if there is none. Returns NULL if out of memory. */
static struct barcode_group *find_group(struct stats_barcodes *b, int tag, uint32_t length, int64_t place)
{
    size_t i = b->last[tag];
    if (i >= b->n || !is_group(b->groups[i], tag, length, place))
        for (i = 0; i < b->n && !is_group(b->groups[i], tag, length, place);)
            i++;
    b->last[tag] = i;
    if (i < b->n)
        return b->groups[i];
    void *grown = byte_buffer_grow(b->groups, b->n, &b->room, sizeof(struct barcode_group *));
    if (!grown)
        return NULL;
    b->groups = grown;
    struct barcode_group *group = calloc(1, sizeof *group + length * sizeof *group->bases);
    if (!group)
        return NULL;
    group->tag = tag;
    group->length = length;
    group->place = place;
    b->groups[b->n++] = group;
    return group;
}

static int base_of(char c)
{
    switch (c) {
    case 'A': return 0;
    case 'C': return 1;
    case 'G': return 2;
    case 'T': return 3;
    case 'N': return 4;
    default: return -1;
    }
}

/* Returns the first position from `at` on that does not hold a base, or `length` if there is none. */
static uint32_t skip_bases(const char *text, uint32_t at, uint32_t length)
{
    while (at < length && base_of(text[at]) >= 0)
        at++;
    return at;
}

static int count_qualities(struct barcode_group *group, const char *qualities)
{
    if (!group->qualities && !(group->qualities = calloc(group->length, sizeof *group->qualities)))
        return -1;
    for (uint32_t i = 0; i < group->length; i++) {
        uint8_t c = (uint8_t)qualities[i];
        if (c >= FIRST_QUALITY)
            group->qualities[i][c - FIRST_QUALITY]++;
    }
    return 0;
}

/* Notes what this barcode decides if it is the first one. Returns -1 if out of memory. */
static int note_order(struct stats_barcode_order *order, int tag, uint32_t length, uint32_t place)
{
    if (order->length[tag] == 0)
        order->length[tag] = length;
    if (place == length)
        return 0;
    for (size_t i = 0; i < order->n; i++)
        if (order->firsts[i].tag == tag && order->firsts[i].length == length)
            return 0;
    void *grown = byte_buffer_grow(order->firsts, order->n, &order->room, sizeof *order->firsts);
    if (!grown)
        return -1;
    order->firsts = grown;
    order->firsts[order->n++] = (struct barcode_first){tag, length, place};
    return 0;
}

int stats_barcodes_add(struct stats_barcodes *b, struct stats_barcode_order *order, int tag, const char *text,
                       const char *qualities)
{
    uint32_t length = (uint32_t)strlen(text), first = skip_bases(text, 0, length);
    uint32_t second = first < length ? skip_bases(text, first + 1, length) : length;
    struct barcode_group *group = find_group(b, tag, length, first < length ? (int64_t)first : NO_PLACE);
    if (!group || note_order(order, tag, length, first) < 0)
        return -1;
    group->n++;
    for (uint32_t i = 0; i < second; i++)
        if (i != first)
            group->bases[i][base_of(text[i])]++;
    bool is_whole = second == length && qualities && strlen(qualities) == length;
    return is_whole ? count_qualities(group, qualities) : 0;
}

static void add_numbers(uint64_t *to, const uint64_t *from, size_t n)
{
    for (size_t i = 0; i < n; i++)
        to[i] += from[i];
}

int stats_barcodes_join(struct stats_barcodes *b, const struct stats_barcodes *from)
{
    for (size_t i = 0; i < from->n; i++) {
        const struct barcode_group *add = from->groups[i];
        struct barcode_group *group = find_group(b, add->tag, add->length, add->place);
        if (!group)
            return -1;
        group->n += add->n;
        add_numbers(group->bases[0], add->bases[0], add->length * (size_t)BASES);
        if (!add->qualities)
            continue;
        if (!group->qualities && !(group->qualities = calloc(group->length, sizeof *group->qualities)))
            return -1;
        add_numbers(group->qualities[0], add->qualities[0], add->length * (size_t)QUALITIES);
    }
    return 0;
}

void stats_barcode_order_free(struct stats_barcode_order *order)
{
    free(order->firsts);
    *order = (struct stats_barcode_order){0};
}

void stats_barcode_order_clear(struct stats_barcode_order *order)
{
    order->n = 0;
    memset(order->length, 0, sizeof order->length);
}

int stats_barcode_order_join(struct stats_barcode_order *order, const struct stats_barcode_order *right)
{
    for (int tag = 0; tag < BARCODE_TAGS; tag++)
        if (order->length[tag] == 0)
            order->length[tag] = right->length[tag];
    for (size_t i = 0; i < right->n; i++)
        if (note_order(order, right->firsts[i].tag, right->firsts[i].length, right->firsts[i].place) < 0)
            return -1;
    return 0;
}

/* ---- what counts ---- */

struct barcode_sum {
    uint32_t length;
    int64_t separator;
    int last_quality;            /* -1: none was counted */
    uint64_t left_out;           /* barcodes that are not fully counted */
    uint64_t (*qualities)[QUALITIES];
    uint64_t (*bases)[BASES];
};

static int64_t find_separator(const struct stats_barcode_order *order, int tag)
{
    for (size_t i = 0; i < order->n; i++)
        if (order->firsts[i].tag == tag && order->firsts[i].length <= order->length[tag])
            return order->firsts[i].place;
    return NO_PLACE;
}

static void add_to_sum(struct barcode_sum *sum, const struct barcode_group *group)
{
    bool counts_all = group->place == NO_PLACE || group->place == sum->separator;
    if (group->length > sum->length) {
        sum->left_out += group->n;
        return;
    }
    if (!counts_all)
        sum->left_out += group->n;
    add_numbers(sum->bases[0], group->bases[0], (counts_all ? group->length : (size_t)group->place) * BASES);
    if (counts_all && group->qualities)
        add_numbers(sum->qualities[0], group->qualities[0], group->length * (size_t)QUALITIES);
}

static void print_barcode_bases(const struct barcode_sum *sum, const char *tag, FILE *out)
{
    fprintf(out, "# ACGT content per cycle for barcodes. Use `grep ^%sC | cut -f 2-` to extract this part. "
            "The columns are: cycle; A,C,G,T base counts as a percentage of all A/C/G/T bases [%%]; and N counts as a "
            "percentage of all A/C/G/T bases [%%]\n", tag);
    for (uint32_t i = 0; i < sum->length; i++) {
        const uint64_t *n = sum->bases[i];
        uint64_t all = n[0] + n[1] + n[2] + n[3];
        bool is_second = sum->separator != NO_PLACE && i > sum->separator;
        if (all == 0 || i == sum->separator)
            continue;
        fprintf(out, "%sC%d\t%" PRId64, tag, is_second ? 2 : 1, is_second ? i - sum->separator : i + INT64_C(1));
        for (int base = 0; base < BASES; base++)
            fprintf(out, "\t%.2f", 100.0 * (double)n[base] / (double)all);
        fputc('\n', out);
    }
}

static void print_qualities(const struct barcode_sum *sum, const char *tag, FILE *out)
{
    fprintf(out, "# Barcode Qualities. Use `grep ^%sQ | cut -f 2-` to extract this part.\n"
            "# Columns correspond to qualities and rows to barcode cycles. First column is the cycle number.\n", tag);
    for (uint32_t i = 0; i < sum->length; i++) {
        bool is_second = sum->separator != NO_PLACE && i > sum->separator;
        if (i == sum->separator)
            continue;
        fprintf(out, "%sQ%d\t%" PRId64, tag, is_second ? 2 : 1, is_second ? i - sum->separator : i + INT64_C(1));
        for (int quality = 0; quality <= sum->last_quality; quality++)
            fprintf(out, "\t%" PRIu64, sum->qualities[i][quality]);
        fputc('\n', out);
    }
}

static int last_quality(const struct barcode_sum *sum)
{
    int most = -1;
    for (uint32_t i = 0; i < sum->length; i++)
        for (int quality = most + 1; quality < QUALITIES; quality++)
            if (sum->qualities[i][quality] > 0)
                most = quality;
    return most;
}

static int print_tag(const struct stats_barcodes *b, const struct stats_barcode_order *order, int tag, FILE *out)
{
    struct barcode_sum sum = {.length = order->length[tag], .separator = find_separator(order, tag)};
    sum.bases = calloc(sum.length, sizeof *sum.bases);
    sum.qualities = calloc(sum.length, sizeof *sum.qualities);
    int result = -1;
    if (sum.bases && sum.qualities) {
        for (size_t i = 0; i < b->n; i++)
            if (b->groups[i]->tag == tag)
                add_to_sum(&sum, b->groups[i]);
        sum.last_quality = last_quality(&sum);
        print_barcode_bases(&sum, stats_barcode_tags[tag][0], out);
        print_qualities(&sum, stats_barcode_tags[tag][1], out);
        if (sum.left_out > 0)
            message_warning("%" PRIu64 " barcodes in %s are not fully counted: those longer than the first barcode "
                            "are left out, and those with the separator elsewhere are counted up to it", sum.left_out,
                            stats_barcode_tags[tag][0]);
        result = 0;
    }
    free(sum.bases);
    free(sum.qualities);
    return result;
}

int stats_barcodes_print(const struct stats_barcodes *b, const struct stats_barcode_order *order, FILE *out)
{
    for (int tag = 0; tag < BARCODE_TAGS; tag++)
        if (order->length[tag] > 0 && print_tag(b, order, tag, out) < 0)
            return -1;
    return 0;
}
