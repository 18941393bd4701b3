/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include "bam/bam_record.h"
#include "markdup/dup_name.h"

enum { GROUPS = 4 };

const char *dup_coords_open(struct dup_coords_rule *rule, const char *regex, const char *order)
{
    static const char *const orders[] = {"txy", "tyx", "xyt", "yxt", "xty", "ytx", "xy", "yx"};
    bool known = !order;
    for (size_t i = 0; i < sizeof orders / sizeof *orders && !known; i++)
        known = strcmp(order, orders[i]) == 0;
    if (!known)
        return "the order of coordinates is none of txy, tyx, xyt, yxt, xty, ytx, xy, yx";
    *rule = (struct dup_coords_rule){.by_regex = regex};
    for (const char *c = order ? order : "txy", *begin = c; *c; c++) {
        unsigned char group = (unsigned char)(c - begin + 1);
        *(*c == 't' ? &rule->tile : !rule->x ? &rule->x : &rule->y) = group;
    }
    if (regex && regcomp(&rule->regex, regex, REG_EXTENDED) != 0)
        return "the expression for coordinates cannot be compiled";
    return NULL;
}

void dup_coords_close(struct dup_coords_rule *rule)
{
    if (rule->by_regex)
        regfree(&rule->regex);
    rule->by_regex = false;
}

/* The number at the beginning of text; other characters may follow it. */
static bool parse_long(const char *text, long *value)
{
    char *end;
    *value = strtol(text, &end, 10);
    return end != text;
}

static enum dup_name_fault read_by_colons(const char *name, struct dup_coords *coords)
{
    /* The number of the field that is x, by number of colons; y is the next field. */
    static const unsigned char x_field[] = {[3] = 2, [4] = 3, [6] = 5, [7] = 5};
    const char *field[8] = {name};
    unsigned n = 0;
    for (const char *c = name; (c = strchr(c, ':')); c++)
        if (++n < 8)
            field[n] = c + 1;
    if (n >= sizeof x_field || !x_field[n])
        return DUP_NAME_UNLIKE;
    const char *x = field[x_field[n]];
    if (!parse_long(x, &coords->x))
        return DUP_NAME_NO_X;
    if (!parse_long(field[x_field[n] + 1], &coords->y))
        return DUP_NAME_NO_Y;
    coords->tile = 0;
    coords->n_tile = (uint8_t)(x - name);
    return DUP_NAME_OK;
}

/* The number at the beginning of the part of the name that a group matched; characters after it are ignored. */
static bool parse_match(const char *name, regmatch_t part, long *value)
{
    char text[BAM_NAME_SIZE_MAX];
    size_t n = (size_t)(part.rm_eo - part.rm_so);
    if (n >= sizeof text)
        return false;
    memcpy(text, name + part.rm_so, n);
    text[n] = 0;
    return parse_long(text, value);
}

static enum dup_name_fault read_by_regex(const struct dup_coords_rule *rule, const char *name,
                                         struct dup_coords *coords)
{
    regmatch_t part[GROUPS];
    if (regexec(&rule->regex, name, GROUPS, part, 0) != 0 || part[rule->x].rm_so < 0 || part[rule->y].rm_so < 0
        || (rule->tile && part[rule->tile].rm_so < 0))
        return DUP_NAME_NO_MATCH;
    if (!parse_match(name, part[rule->x], &coords->x))
        return DUP_NAME_NO_X;
    if (!parse_match(name, part[rule->y], &coords->y))
        return DUP_NAME_NO_Y;
    const regmatch_t *tile = &part[rule->tile];
    coords->tile = (uint8_t)(rule->tile ? tile->rm_so : 0);
    coords->n_tile = (uint8_t)(rule->tile ? tile->rm_eo - tile->rm_so : 0);
    return DUP_NAME_OK;
}

enum dup_name_fault dup_coords_read(const struct dup_coords_rule *rule, const char *name, struct dup_coords *coords)
{
    return rule->by_regex ? read_by_regex(rule, name, coords) : read_by_colons(name, coords);
}

static bool is_within(long a, long b, long distance)
{
    return (a > b ? (unsigned long)a - (unsigned long)b : (unsigned long)b - (unsigned long)a)
        <= (unsigned long)distance;
}

bool dup_coords_are_near(const char *name, const struct dup_coords *coords, const char *other,
                         const struct dup_coords *there, long distance)
{
    return coords->n_tile == there->n_tile && memcmp(name + coords->tile, other + there->tile, coords->n_tile) == 0
        && is_within(coords->x, there->x, distance) && is_within(coords->y, there->y, distance);
}

const char *dup_barcode_find(const regex_t *regex, unsigned group, const char *name, int *n)
{
    regmatch_t part[GROUPS];
    if (regexec(regex, name, GROUPS, part, 0) != 0 || part[group].rm_so < 0)
        return NULL;
    *n = (int)(part[group].rm_eo - part[group].rm_so);
    return name + part[group].rm_so;
}

uint32_t dup_barcode_hash(const char *text, int n)
{
    uint32_t h = 0;
    for (int i = 0; i < n; i++) {
        h += (unsigned char)text[i];
        h += h << 10;
        h ^= h >> 6;
    }
    h += h << 3;
    h ^= h >> 11;
    return h + (h << 15);
}
