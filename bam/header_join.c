/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <htslib/kstring.h>
#include "bam/header_join.h"
#include "bam/plain_header.h"
#include "bam/program_lines.h"
#include "bam/ref_union.h"
#include "base/input_name.h"
#include "base/latch.h"
#include "base/message.h"

/* Lines that have an ID: those of the result, and those of the header being added. */
struct id_lines {
    char type[3], program[3];    /* program: the field that names a @PG line: PG of @RG, PP of @PG */
    bool joins;                  /* lines with the same ID become one */
    kstring_t lines;             /* lines of the result, each with its newline */
    kstring_t added;             /* lines of the header being added, each with its NUL; `program` still has its old
                                  * value */
    struct name_table ids;       /* all IDs in use */
};

struct header_join {
    struct header_join_options opt;
    kstring_t first;             /* the @HD line with its newline; empty: none */
    struct ref_union references;
    struct id_lines groups, programs;
    kstring_t comments;          /* @CO lines, each with its newline */
    uint64_t random;             /* state of the generator, 48 bits */
    bool order_lost;
    struct last_header {  /* Results for the last header, which the next one often shares. Zero-initialised: none. */
        sam_hdr_t *sam;
        sam_hdr_t *lines;        /* parsed: the header, or all its lines except @SQ */
        const int32_t *ref_ids;  /* see ref_union_add(), also for the next field */
        bool rises;
    } last;
};

/* State while one header is added. Functions that fail return -1: out of memory. */
struct adding {
    struct header_join *join;
    sam_hdr_t *lines;            /* as in last_header */
    const char *file;
};

/* --------------------------------------------------------------------- IDs */

/* The next number of the 48-bit generator of POSIX (drand48), without its lowest bit. */
static uint32_t next_number(uint64_t *state)
{
    *state = (0x5DEECE66DU * *state + 0xB) & 0xFFFFFFFFFFFFU;
    return (uint32_t)(*state >> 17);
}

static bool is_taken(const struct id_lines *kind, const char *id)
{
    return name_table_find(&kind->ids, id, strlen(id)) >= 0;
}

/* Makes an unused ID from this one. */
static int make_id(struct header_join *join, const struct id_lines *kind, const char *id, kstring_t *made)
{
    made->l = 0;
    if (kputs(id, made) < 0)
        return -1;
    while (is_taken(kind, made->s)) {
        made->l = 0;
        if (ksprintf(made, "%s-%08X", id, (unsigned)next_number(&join->random)) < 0)
            return -1;
    }
    return 0;
}

/* Appends the line with this ID to the lines being added. */
static int append_id_line(struct id_lines *kind, const char *line, const char *id)
{
    return program_lines_replace(&kind->added, line, "ID", id) < 0 || kputc('\0', &kind->added) < 0
        || name_table_add(&kind->ids, id, strlen(id)) < 0 ? -1 : 0;
}

/* Adds line number i, and its old and new ID to `values`. group: the ID that all @RG lines of the header get; NULL:
 * each keeps its own. */
static int add_id_line(const struct adding *a, struct id_lines *kind, int i, const char *group,
                       struct tag_values *values)
{
    kstring_t line = KS_INITIALIZE, made = KS_INITIALIZE;
    const char *id = sam_hdr_line_name(a->lines, kind->type, i), *new_id = group ? group : id;
    int status = -1;
    if (!id || sam_hdr_find_line_id(a->lines, kind->type, "ID", id, &line) < 0)
        goto end;
    bool is_new = !is_taken(kind, new_id);
    if (!is_new && !group && !kind->joins) {
        if (make_id(a->join, kind, id, &made) < 0)
            goto end;
        new_id = made.s;
        is_new = true;
    }
    if (!is_new || append_id_line(kind, line.s, new_id) == 0)
        status = tag_values_add(values, id, new_id);
end:
    ks_free(&line);
    ks_free(&made);
    return status;
}

/* Adds all lines of a type. If no line of the header has the ID `group`, a line with only this ID is added. */
static int add_id_lines(const struct adding *a, struct id_lines *kind, const char *group, struct tag_values *values)
{
    int n = sam_hdr_count_lines(a->lines, kind->type), status = n < 0 ? -1 : 0;
    kind->added.l = 0;
    for (int i = 0; i < n && status == 0; i++)
        status = add_id_line(a, kind, i, group, values);
    if (status == 0 && group && !kind->added.l) {
        kstring_t made = KS_INITIALIZE;
        status = make_id(a->join, kind, group, &made) < 0 ? -1 : append_id_line(kind, "@RG\tID:", made.s);
        ks_free(&made);
    }
    return status;
}

/* ---------------------------------------------- lines that name @PG lines */

/* The new ID of the program that the line names; "" if it names none, or if no line has that ID (then it warns). NULL:
 * out of memory. The text belongs to `values`. */
static const char *named_program(const struct adding *a, const struct id_lines *kind, const char *line,
                                 const struct tag_values *values)
{
    char field[] = {'\t', kind->program[0], kind->program[1], ':', 0};
    const char *at = strstr(line, field);
    if (!at)
        return "";
    at += sizeof field - 1;
    size_t n = strcspn(at, "\t");
    const char *id = tag_values_find(values, at, n);
    if (!id)
        message_warning("%s: an @%s line has %s:%.*s, but there is no @PG line of that ID", a->file, kind->type,
                        kind->program, (int)n, at);
    return id ? id : "";
}

/* Moves the lines being added to those of the result. */
static int finish_lines(const struct adding *a, struct id_lines *kind, const struct tag_values *programs)
{
    for (size_t at = 0; at < kind->added.l;) {
        const char *line = kind->added.s + at, *id = named_program(a, kind, line, programs);
        if ((*id ? program_lines_replace(&kind->lines, line, kind->program, id) : kputs(line, &kind->lines)) < 0
            || kputc('\n', &kind->lines) < 0)
            return -1;
        at += strlen(line) + 1;
    }
    return 0;
}

/* ------------------------------------------------------------- other lines */

static int add_first_line(const struct adding *a)
{
    kstring_t *first = &a->join->first;
    int found = first->l ? -1 : sam_hdr_find_hd(a->lines, first);
    return found < -1 || (found == 0 && kputc('\n', first) < 0) ? -1 : 0;
}

static int add_comments(const struct adding *a)
{
    size_t n;
    const char *p = plain_header_text(a->lines, &n), *end = p ? p + n : NULL, *next;
    for (int status = p ? 0 : -1; ; p = next) {
        const char *newline = status == 0 && p < end ? memchr(p, '\n', (size_t)(end - p)) : NULL;
        if (!newline)
            return status;
        next = newline + 1;
        if (strncmp(p, "@CO", 3) == 0 && kputsn(p, (size_t)(next - p), &a->join->comments) < 0)
            status = -1;
    }
}

/* ----------------------------------------------------------------- -r */

/* Returns the read group of an input: the file's name without folder and without .bam, .sam or .cram at its end. A path
 * that is only such an ending stays as it is. NULL: out of memory. */
static char *group_name_of(const char *path)
{
    static const char *const ends[] = {".bam", ".sam", ".cram"};
    const char *name = input_name_base(path);
    size_t n = strlen(name);
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t size = strlen(ends[i]);
        if (n >= size && strlen(path) > size && strcmp(name + n - size, ends[i]) == 0)
            return strndup(name, n - size);
    }
    return strdup(name);
}

/* --------------------------------------------------------------- one header */

struct header_join *header_join_new(const struct header_join_options *options)
{
    struct header_join *join = malloc(sizeof *join);
    if (join)
        *join = (struct header_join){
            .opt = *options,
            .groups = {.type = "RG", .program = "PG", .joins = options->joins_groups},
            .programs = {.type = "PG", .program = "PP", .joins = options->joins_programs},
            .random = ((uint64_t)options->seed & UINT32_MAX) << 16 | 0x330E,
        };
    return join;
}

static int add_lines(const struct adding *a, struct record_remap *remap)
{
    struct header_join *join = a->join;
    return add_first_line(a) < 0 || add_comments(a) < 0
        || add_id_lines(a, &join->groups, remap->group, &remap->groups) < 0
        || add_id_lines(a, &join->programs, NULL, &remap->programs) < 0
        || finish_lines(a, &join->groups, &remap->programs) < 0
        || finish_lines(a, &join->programs, &remap->programs) < 0 ? -1 : 0;
}

static void forget_last(struct header_join *join)
{
    sam_hdr_destroy(join->last.lines);
    sam_hdr_destroy(join->last.sam);
    join->last = (struct last_header){.sam = NULL};
}

/* Warns of the first reference whose length or checksum differs: the first line with its name is kept. */
static void report_clash(const struct ref_union *all, const char *file)
{
    message_warning("%s: %s in an earlier input. Its line is used for all records; check that all "
                    "reads were aligned to the same genome", file, all->clash.s);
}

/* Makes the header the last one and adds its references, unless it is the last one already. */
static int begin_header(struct header_join *join, sam_hdr_t *sam, const char *file)
{
    bool was_reported = join->references.clash.l > 0;
    struct last_header *last = &join->last;
    if (sam == last->sam)
        return 0;
    forget_last(join);
    if (plain_header_is(sam))
        last->lines = plain_header_lines(sam);
    else
        sam_hdr_incr_ref(last->lines = sam);
    if (!last->lines || ref_union_add(&join->references, sam, &last->ref_ids, &last->rises) < 0)
        return -1;
    if (!was_reported && join->references.clash.l > 0)
        report_clash(&join->references, file);
    sam_hdr_incr_ref(last->sam = sam);
    return 0;
}

bool header_join_has_first(const struct header_join *join)
{
    return join->first.l > 0;
}

static void note_reference_order(struct header_join *join, const char *file)
{
    if (!join->opt.by_coordinate || join->last.rises)
        return;
    message_warning("%s: the order of its references differs from that of the output, which is therefore not sorted "
                    "by coordinate. @HD will say SO:unsorted", file);
    join->order_lost = true;
}

int header_join_add(struct header_join *join, sam_hdr_t *sam, const char *path, struct record_remap *remap,
                    struct latch *latch)
{
    struct record_remap of_no_record = {.ref_ids = NULL}, *r = remap ? remap : &of_no_record;
    bool grouped = join->opt.groups_by_file && remap;
    struct adding a = {.join = join, .file = input_name_shown(path)};
    *r = (struct record_remap){.group = grouped ? group_name_of(path) : NULL, .drops_unknown = true};
    if (r->group && r->group[strcspn(r->group, "\t\r\n")])
        return latch_fail(latch, "%s: a name with a tab or a newline cannot be that of a read group (-r)", a.file);
    if (r->group && !*r->group)
        message_warning("%s: the ID of its read group (-r) is empty, because nothing of its name is left", a.file);
    int status = grouped && !r->group ? -1 : begin_header(join, sam, a.file);
    if (status == 0) {
        a.lines = join->last.lines;
        r->ref_ids = join->last.ref_ids;
        if (remap)
            note_reference_order(join, a.file);
        status = add_lines(&a, r);
    }
    record_remap_free(&of_no_record);
    return status == 0 ? 0
         : latch_fail(latch, "%s: its header cannot be joined to those before it: out of memory", a.file);
}

/* --------------------------------------------------------------- the result */

/* Makes @HD state that the records are unsorted. */
static int unsort(kstring_t *first)
{
    size_t n;
    sam_hdr_t *sam = sam_hdr_parse(first->l, first->s);
    const char *text = NULL;
    first->l = 0;
    if (sam && sam_hdr_remove_tag_hd(sam, "SS") >= 0 && sam_hdr_remove_tag_hd(sam, "GO") >= 0
        && sam_hdr_update_hd(sam, "SO", "unsorted") >= 0)
        text = plain_header_text(sam, &n);
    int status = text && kputsn(text, n, first) >= 0 ? 0 : -1;
    sam_hdr_destroy(sam);
    return status;
}

/* Makes the result, and frees what it does not need. NULL: out of memory, or htslib cannot parse it. */
static sam_hdr_t *make_header(struct header_join *join)
{
    kstring_t *const parts[] = {&join->first, &join->references.lines, &join->groups.lines, &join->programs.lines,
                                &join->comments};
    enum { N_PARTS = sizeof parts / sizeof *parts };
    kstring_t text = KS_INITIALIZE;
    size_t n = 0;
    for (int i = 0; i < N_PARTS; i++)
        n += parts[i]->l;
    int status = ks_resize(&text, n + 1);
    forget_last(join);
    for (int i = 0; i < N_PARTS; i++) {
        if (status == 0 && parts[i]->l)
            kputsn(parts[i]->s, parts[i]->l, &text);
        ks_free(parts[i]);
    }
    ref_union_end(&join->references);
    sam_hdr_t *sam = status == 0 ? plain_header_of_text((const uint8_t *)text.s, n) : NULL;
    if (!sam && status == 0)
        sam = sam_hdr_parse(n, text.s);
    ks_free(&text);
    return sam;
}

sam_hdr_t *header_join_end(struct header_join *join, struct latch *latch)
{
    int status = 0;
    if (!join->first.l)
        message_warning("no input has an @HD line, so the output has none");
    else if (join->order_lost)
        status = unsort(&join->first);
    sam_hdr_t *sam = status == 0 ? make_header(join) : NULL;
    if (!sam)
        latch_fail(latch, "the headers of the inputs cannot be joined: out of memory, or a line has its SN or ID "
                   "twice");
    return sam;
}

static void free_id_lines(struct id_lines *kind)
{
    ks_free(&kind->lines);
    ks_free(&kind->added);
    name_table_free(&kind->ids);
}

void header_join_free(struct header_join *join)
{
    if (!join)
        return;
    ks_free(&join->first);
    forget_last(join);
    ref_union_free(&join->references);
    free_id_lines(&join->groups);
    free_id_lines(&join->programs);
    ks_free(&join->comments);
    free(join);
}
