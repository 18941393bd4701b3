/* SPDX-License-Identifier: MIT */
/* Headers of several inputs, joined: once as plain ones, if possible, and once as htslib parses them. First byte: the
 * options; second: the seed. The texts follow, separated by NULs. Texts that are not headers are left out. */
#include <string.h>
#include <htslib/hts_log.h>
#include "bam/header_join.h"
#include "bam/header_text.h"
#include "bam/plain_header.h"
#include "base/latch.h"
#include "fuzz.h"

enum { INPUTS_MOST = 6, NAMES_MOST = 4096 };

struct joined {
    struct header_join *join;
    sam_hdr_t *in[INPUTS_MOST], *sam;
    struct record_remap remaps[INPUTS_MOST];
    int n;
};

/* A line with two names, which htslib accepts, makes a header that it does not accept. */
static bool has_clear_names(sam_hdr_t *sam)
{
    kstring_t name = KS_INITIALIZE;
    bool clear = sam_hdr_count_lines(sam, "SQ") == sam_hdr_nref(sam);
    for (int i = 0; i < sam_hdr_nref(sam) && clear; i++)
        clear = sam_hdr_find_tag_pos(sam, "SQ", i, "SN", &name) == 0 && name.l
             && strcmp(name.s, sam_hdr_tid2name(sam, i)) == 0;
    ks_free(&name);
    return clear;
}

/* NULL: not a header. */
static sam_hdr_t *header_of(const char *text, size_t n, bool plain)
{
    sam_hdr_t *sam = header_text_check(text, n, false).fault ? NULL : sam_hdr_parse(n, text);
    if (sam && !has_clear_names(sam)) {
        sam_hdr_destroy(sam);
        return NULL;
    }
    sam_hdr_t *other = sam && plain ? plain_header_of_text((const uint8_t *)text, n) : NULL;
    if (!other)
        return sam;
    sam_hdr_destroy(sam);
    return other;
}

/* has_first: only the first header is used, without its records (-h). */
static void join(struct joined *j, const struct header_join_options *how, const uint8_t *p, size_t n, bool has_first,
                 bool plain)
{
    static const char *const paths[] = {"a.bam", "b", "x/a.cram", "c.sam", "b.bam", "d"};
    struct latch latch = {0};
    MUST(j->join = header_join_new(how));
    for (size_t at = 0, size; at < n && j->n < INPUTS_MOST; at += size + 1) {
        size = strnlen((const char *)p + at, n - at);
        sam_hdr_t *sam = j->in[j->n] = header_of((const char *)p + at, size, plain);
        if (!sam)
            continue;
        bool is_plain = plain_header_is(sam);
        struct record_remap *remap = has_first && j->n == 0 ? NULL : &j->remaps[j->n];
        MUST(header_join_add(j->join, sam, paths[j->n], remap, &latch) == 0);
        MUST(plain_header_is(sam) == is_plain);
        j->n++;
    }
    MUST(j->sam = header_join_end(j->join, &latch));
}

static void forget(struct joined *j)
{
    for (int i = 0; i < j->n; i++) {
        record_remap_free(&j->remaps[i]);
        sam_hdr_destroy(j->in[i]);
    }
    sam_hdr_destroy(j->sam);
    header_join_free(j->join);
}

/* The text is a header of the same references, and its IDs differ. */
static void check_text(struct joined *j, sam_hdr_t *again)
{
    MUST(again && sam_hdr_nref(again) == sam_hdr_nref(j->sam));
    MUST(sam_hdr_count_lines(again, "SQ") == sam_hdr_nref(again));
    for (int i = 0; i < sam_hdr_nref(again); i++) {
        MUST(strcmp(sam_hdr_tid2name(again, i), sam_hdr_tid2name(j->sam, i)) == 0);
        for (int k = 0; k < i; k++)
            MUST(strcmp(sam_hdr_tid2name(again, i), sam_hdr_tid2name(again, k)) != 0);
    }
    static const char *const types[] = {"RG", "PG"};
    for (int t = 0; t < 2; t++)
        for (int i = sam_hdr_count_lines(again, types[t]) - 1; i >= 0; i--)
            for (int k = 0; k < i; k++)
                MUST(strcmp(sam_hdr_line_name(again, types[t], i), sam_hdr_line_name(again, types[t], k)) != 0);
}

/* Each reference is mapped to one of the same name, or to one that lists its name as another (AN). */
static void check_references(struct joined *j, sam_hdr_t *again, int number)
{
    const int32_t *ids = j->remaps[number].ref_ids;
    for (int i = 0; i < sam_hdr_nref(j->in[number]); i++) {
        int32_t id = ids ? ids[i] : i;
        const char *name = sam_hdr_tid2name(j->in[number], i);
        MUST(id >= 0 && id < sam_hdr_nref(j->sam));
        kstring_t others = KS_INITIALIZE;
        bool same = strcmp(sam_hdr_tid2name(j->sam, id), name) == 0;
        MUST(same || (sam_hdr_find_tag_pos(again, "SQ", id, "AN", &others) == 0 && strstr(others.s, name)));
        ks_free(&others);
    }
}

static void check_ids(const struct tag_values *values, sam_hdr_t *again, const char *type)
{
    for (size_t i = 0; i < name_table_count(&values->from); i++)
        MUST(sam_hdr_line_index(again, type, values->to[i]) >= 0);
}

static void check(struct joined *j)
{
    size_t n;
    const char *text = plain_header_text(j->sam, &n);
    MUST(text && !header_text_check(text, n, false).fault);
    sam_hdr_t *again = sam_hdr_parse(n, text);
    check_text(j, again);
    for (int i = 0; i < j->n; i++) {
        const struct record_remap *remap = &j->remaps[i];
        if (!remap->drops_unknown)               /* -h */
            continue;
        check_references(j, again, i);
        check_ids(&remap->groups, again, "RG");
        check_ids(&remap->programs, again, "PG");
        MUST(!remap->group || sam_hdr_line_index(again, "RG", remap->group) >= 0);
    }
    sam_hdr_destroy(again);
}

static void check_same(const struct joined *a, const struct joined *b)
{
    size_t n, m;
    const char *p = plain_header_text(a->sam, &n), *q = plain_header_text(b->sam, &m);
    MUST(p && q && n == m && memcmp(p, q, n) == 0 && a->n == b->n);
    for (int i = 0; i < a->n; i++) {
        const int32_t *x = a->remaps[i].ref_ids, *y = b->remaps[i].ref_ids;
        MUST(!x == !y && (!x || memcmp(x, y, sizeof *x * (size_t)sam_hdr_nref(a->in[i])) == 0));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct feed f = {data, size};
    uint8_t bits = feed_byte(&f);
    struct header_join_options how = {feed_byte(&f), bits & 1, bits & 2, bits & 4, bits & 8};
    struct joined plain = {.n = 0}, parsed = {.n = 0};
    hts_verbose = HTS_LOG_OFF;
    if (size > NAMES_MOST)                       /* all references are compared with each other */
        return 0;
    join(&plain, &how, f.p, f.left, bits & 16, true);
    join(&parsed, &how, f.p, f.left, bits & 16, false);
    check(&plain);
    check(&parsed);
    check_same(&plain, &parsed);
    forget(&plain);
    forget(&parsed);
    return 0;
}
