/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <htslib/sam.h>
#include "order/key_room.h"
#include "order/name_key.h"
#include "order/name_natural.h"

/* samtools' rule among records of one name. Read 1 and 2, secondary and supplementary weigh in this order. So a
 * template comes as none < R1 < R2 < both, and in each of these primary < supplementary < secondary < both. */
enum { RULE_BITS = 4, PICARD_BITS = 5 };

/* At most one name in so many may have another form; then those names are left out of the learning. */
enum { STRANGE_SHARE = 10 };

static unsigned flag_rule(const struct bam_record *r)
{
    unsigned flag = bam_record_flag(r);
    return (flag >> 6 & 3) << 2 | (flag >> 8 & 1) << 1 | (flag >> 11 & 1);
}

/* htsjdk's rule (SAMRecordQueryNameComparator): paired before unpaired; of paired reads, first of pair
 * before second; forward before reverse; then primary before secondary; then non-supplementary before
 * supplementary; then records without HI tag before those with it, and the lower HI first.
 *
 * htsjdk lets a paired read that is neither first nor second, or both, tie with some of its mates and not
 * with others, which is no order. Here such reads come between first and second. */
static unsigned flag_picard(const struct bam_record *r)
{
    static const unsigned mate[4] = {1, 0, 2, 1};    /* index: flag bits 0x80 and 0x40 */
    unsigned flag = bam_record_flag(r);
    unsigned pair = flag & 1 ? mate[flag >> 6 & 3] : 3;
    return pair << 3 | (flag >> 4 & 1) << 2 | (flag >> 8 & 1) << 1 | (flag >> 11 & 1);
}

void name_key_init(struct name_key *names, enum sort_by by)
{
    names->by = by;
    names->groups.n = 0;
    text_code_init(&names->rest, by == SORT_NAME_NATURAL, UINT64_MAX);
}

/* A number for the sequence of separators in the name. It tells names of one writer from those of another. */
static uint32_t name_form(const char *s)
{
    uint32_t form = 0;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s))
            form = form * 257 + (unsigned char)*s + 1;
    return form;
}

/* If nearly all names have one form, keeps only those: a few strange names must not spoil the shape of the
 * others. Returns how many names are left. */
static size_t names_usual(struct text *sample, size_t n)
{
    size_t lead = 0, count = 0, kept = 0;
    uint32_t form = 0;
    /* majority vote: finds the only form that can be that of most names */
    for (size_t i = 0; i < n; i++) {
        uint32_t mine = name_form(sample[i].s);
        if (lead == 0)
            form = mine;
        lead += mine == form ? 1 : (size_t)-1;
    }
    for (size_t i = 0; i < n; i++)
        count += name_form(sample[i].s) == form;
    if (count == n || n - count > n / STRANGE_SHARE)
        return n;
    for (size_t i = 0; i < n; i++)
        if (name_form(sample[i].s) == form)
            sample[kept++] = sample[i];
    return kept;
}

void name_key_learn(struct name_key *names, struct text *sample, size_t n)
{
    bool natural = names->by == SORT_NAME_NATURAL;
    n = names_usual(sample, n);
    name_groups_learn(&names->groups, natural, sample, n);
    text_code_learn(&names->rest, natural, names->groups.range, sample, n);
}

static uint64_t flag_sub_key(enum sort_by by, const struct bam_record *r)
{
    return by == SORT_NAME_PICARD ? (uint64_t)flag_picard(r) << (64 - PICARD_BITS)
                                  : (uint64_t)flag_rule(r) << (64 - RULE_BITS);
}

uint64_t name_key_make(const struct name_key *names, const struct bam_record *r)
{
    uint64_t base, room, sub = flag_sub_key(names->by, r);
    const char *name = bam_record_name(r);
    const char *rest = name_groups_find(&names->groups, name, &base);
    if (!rest)
        return base;
    uint64_t key = text_code_key(&names->rest, (struct text){rest, r->name_len - 1u - (size_t)(rest - name)}, &room);
    return base + key + key_nest(room, sub);
}

/* The HI tag of r. htsjdk knows only integers, so a tag of another type counts as absent. */
static bool hit_index(const struct bam_record *r, int64_t *hit)
{
    int bad;
    const uint8_t *end = (const uint8_t *)r + bam_record_size(r);
    const uint8_t *hi = bam_record_aux_find(bam_record_aux(r), end, "HI", &bad);
    if (!hi || !strchr("cCsSiI", *hi))
        return false;
    *hit = bam_aux2i(hi);
    return true;
}

static int hit_compare(const struct bam_record *a, const struct bam_record *b)
{
    int64_t x = 0, y = 0;
    bool has_a = hit_index(a, &x), has_b = hit_index(b, &y);
    if (has_a != has_b)
        return has_a ? 1 : -1;
    return key_compare_signed(x, y);
}

int name_key_compare(enum sort_by by, const struct bam_record *a, const struct bam_record *b)
{
    const char *x = bam_record_name(a), *y = bam_record_name(b);
    int order = by == SORT_NAME_NATURAL ? name_natural_compare(x, y) : strcmp(x, y);
    if (order)
        return order;
    if (by != SORT_NAME_PICARD)
        return key_compare(flag_rule(a), flag_rule(b));
    order = key_compare(flag_picard(a), flag_picard(b));
    return order ? order : hit_compare(a, b);
}
