/* SPDX-License-Identifier: MIT */
/* The command line: words, each ended by a NUL. */
#include <unistd.h>
#include "codec/bgzf_block.h"
#include "fuzz.h"
#include "cli/command_args.h"

enum { WORDS = 32 };

static void check(const struct engine_opts *o)
{
    MUST(o->in.paths[0] && o->out.path && o->out.command_line);
    MUST(o->n_threads >= 1 && o->memory >= 1 << 20);
    MUST(o->out.level >= BGZF_LEVEL_DEFAULT && o->out.level <= BGZF_LEVEL_MAX);
    MUST(o->n_temp_prefixes >= 1 && o->temp_prefixes[0]);
    MUST(!strpbrk(o->out.command_line, "\t\n"));
    MUST(!o->out.index || o->order.by == SORT_COORDINATE || o->order.by == SORT_MINHASH);
    MUST(o->order.kmer >= 1 && o->order.window >= 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char program[] = "samtools", command[] = "sort";
    char *words[WORDS + 3] = {program, command}, *text = (char *)must_alloc(size + 1);
    int n = 2;
    if (size)
        memcpy(text, data, size);
    text[size] = 0;
    for (char *at = text; at < text + size && n < WORDS + 2; at += strlen(at) + 1)
        words[n++] = at;
    optind = 0;                                  /* getopt() remembers its place in a word */
    (void)getopt(1, words, "");
    struct engine_opts opts;
    if (sort_args_parse(&opts, n, words) == ENGINE_ARGS_RUN)
        check(&opts);
    engine_args_free(&opts);
    free(text);
    return 0;
}
