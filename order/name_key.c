/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <htslib/sam.h>
#include "base/ascii.h"
#include "order/key_room.h"
#include "order/name_key.h"
#include "order/name_natural.h"

/* ---- groups ---- */

/* The maximum number of separators in a group: instrument, run and flowcell are three. */
enum { SEPARATORS_MAX = 6 };

/* Compares the name with a group: < 0, it comes before all names of the group; 0, it is in the group, and *rest is the
 * text after it; > 0, it comes after them. In natural order a name may be in a group without having its bytes (a07: is
 * in the group a7:). */
static int group_compare(bool natural, const char *group, const char *name, const char **rest)
{
    if (natural)
        return -name_natural_prefix(group, name, rest);
    for (; *group && *group == *name; group++)
        name++;
    *rest = name;
    return *group ? (uint8_t)*name - (uint8_t)*group : 0;
}

/* Returns the part of the name after its group and sets *key to the first key of the group. For a name in no group,
 * returns NULL and sets *key to the full key of the name. */
static const char *groups_find(const struct name_groups *groups, const char *name, uint64_t *key)
{
    size_t low = 0, high = groups->n;
    const char *rest = NULL;
    *key = 0;
    if (groups->n == 0)
        return name;
    while (low < high) {
        size_t mid = (low + high) / 2;
        int order = group_compare(groups->natural, groups->name[mid], name, &rest);
        if (order == 0) {
            *key = mid * (groups->range + 1) + 1;
            return rest;
        }
        if (order < 0)
            high = mid;
        else
            low = mid + 1;
    }
    *key = low * (groups->range + 1);
    return NULL;
}

/* Length of the name up to and including its n-th separator; 0 if it has fewer. */
static size_t group_length(const char *name, int n)
{
    for (const char *s = name; *s; s++)
        if (!ascii_is_alnum((unsigned char)*s) && --n == 0)
            return (size_t)(s + 1 - name);
    return 0;
}

static bool group_add(struct name_groups *groups, const char *name, size_t length, size_t *used)
{
    for (size_t i = 0; i < groups->n; i++)
        if (strncmp(groups->name[i], name, length) == 0 && groups->name[i][length] == 0)
            return true;
    if (groups->n == GROUPS_MAX || *used + length + 1 > GROUPS_POOL)
        return false;
    char *copy = memcpy(groups->pool + *used, name, length);
    copy[length] = 0;
    *used += length + 1;
    groups->name[groups->n++] = copy;
    return true;
}

/* Cuts every name after its k-th separator, where k = separators: the part before the cut names a group, and the
 * remainder goes into rests[]. Returns false if there are too many groups, or if keys cannot distinguish all
 * remainders. */
static bool groups_try(struct name_groups *groups, const struct text *sample, struct text *rests, size_t n,
                       int separators)
{
    size_t used = 0;
    groups->n = 0;
    for (size_t i = 0; i < n; i++) {
        size_t length = group_length(sample[i].s, separators);
        if (length == 0 || !group_add(groups, sample[i].s, length, &used))
            return false;
        rests[i] = (struct text){sample[i].s + length, sample[i].n - length};
    }
    if (groups->n == 0)
        return false;
    groups->range = UINT64_MAX / groups->n - 1;
    return text_code_fits(groups->natural, groups->range, rests, n);
}

static int order_natural(const void *a, const void *b)
{
    return name_natural_compare(*(char *const *)a, *(char *const *)b);
}

static int order_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorts the groups. Returns false if two of them are the same name in natural order (a7: and a07:),
 * because such groups cannot both be used. */
static bool groups_sort(struct name_groups *groups)
{
    qsort(groups->name, groups->n, sizeof *groups->name, groups->natural ? order_natural : order_bytes);
    for (size_t i = 1; i < groups->n && groups->natural; i++)
        if (order_natural(&groups->name[i - 1], &groups->name[i]) == 0)
            return false;
    return true;
}

/* Finds the groups of the n names and removes them from the names in sample. If the names do not fall into groups,
 * groups->n becomes 0 and sample stays as it is. */
static void groups_learn(struct name_groups *groups, bool natural, struct text *sample, size_t n)
{
    groups->natural = natural;
    struct text *rests = calloc(n + 1, sizeof *rests);
    bool found = false;
    if (rests && n > 0 && !text_code_fits(natural, UINT64_MAX, sample, n))
        for (int i = 1; i <= SEPARATORS_MAX && !found; i++)
            found = groups_try(groups, sample, rests, n, i);
    if (found && groups_sort(groups)) {
        memcpy(sample, rests, n * sizeof *sample);
    } else {
        groups->n = 0;
        groups->range = UINT64_MAX;
    }
    free(rests);
}

/* ---- names ---- */

/* samtools' rule for records with the same name. Read 1 and 2, secondary and supplementary count in this order. So a
 * template comes as none < R1 < R2 < both, and in each of them primary < supplementary < secondary < both. */
enum { RULE_BITS = 4, PICARD_BITS = 5 };

/* At most one name in this many may have another form; such names are then not learned from. */
enum { STRANGE_SHARE = 10 };

static unsigned flag_rule(const struct bam_record *r)
{
    unsigned flag = bam_record_flag(r);
    return (flag >> 6 & 3) << 2 | (flag >> 8 & 1) << 1 | (flag >> 11 & 1);
}

/* htsjdk's rule (SAMRecordQueryNameComparator): paired before unpaired; of paired reads, first of pair before second;
 * forward before reverse; primary before secondary; non-supplementary before supplementary; no HI tag before one, and
 * the lower HI first. In htsjdk a paired read that is neither first nor second, or both, ties with some of its mates
 * and not with others, which is not an order. Here such reads come between first and second. */
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

/* A number for the sequence of separators in the name. It differs between names of different instruments or
 * programs. */
static uint32_t name_form(const char *s)
{
    uint32_t form = 0;
    for (; *s; s++)
        if (!ascii_is_alnum((unsigned char)*s))
            form = form * 257 + (unsigned char)*s + 1;
    return form;
}

/* If nearly all names have one form, keeps only those: a few unusual names must not spoil the shape of the others.
 * Returns the number of names left. */
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
    groups_learn(&names->groups, natural, sample, n);
    text_code_learn(&names->rest, natural, names->groups.range, sample, n);
}

uint64_t name_key_make(const struct name_key *names, const struct bam_record *r)
{
    uint64_t base, room, sub = names->by == SORT_NAME_PICARD ? (uint64_t)flag_picard(r) << (64 - PICARD_BITS)
                                                             : (uint64_t)flag_rule(r) << (64 - RULE_BITS);
    const char *name = bam_record_name(r);
    const char *rest = groups_find(&names->groups, name, &base);
    if (!rest)
        return base;
    uint64_t key = text_code_key(&names->rest, (struct text){rest, r->name_len - 1u - (size_t)(rest - name)}, &room);
    return base + key + key_nest(room, sub);
}

/* The HI tag of r. htsjdk only reads integers, so a tag of another type counts as absent. */
static bool hit_index(const struct bam_record *r, int64_t *hit)
{
    int bad;
    const uint8_t *end = bam_record_end(r);
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
