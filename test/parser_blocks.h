/* SPDX-License-Identifier: MIT */
/* Blocks of records for the tests of one parser, which include its source. */
#ifndef PARSER_BLOCKS_H
#define PARSER_BLOCKS_H

#include "unit.h"
#include "codec/deflate_parse.h"
#include "record_kinds.h"

enum { BLOCK = 65280 };

static uint8_t in[PARSE_MAX], *genome;
static struct deflate_parse parsed;

static int set_up(void **state)
{
    (void)state;
    genome = record_genome();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    free(genome);
    return 0;
}

/* A block of such records in `in`, always the same one; returns its size. */
static uint32_t make_block(struct record_kind kind)
{
    static struct record_maker maker;
    maker = (struct record_maker){.kind = &kind, .seed = 1, .genome = genome};
    return (uint32_t)record_block(&maker, in, BLOCK);
}

/* The parser at the beginning of n bytes. */
static struct parse begin(struct deflate_parse *d, const uint8_t *data, uint32_t n)
{
    struct parse p = {.in = data, .n = n, .last = n - MARGIN};
    begin_anew(d, &p);
    return p;
}

#endif
