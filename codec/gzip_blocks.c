/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include "codec/gzip_blocks.h"
#include "codec/gzip_member.h"

struct gzip_blocks *gzip_blocks_open(const struct byte_window *w)
{
    struct gzip_blocks *g = malloc(sizeof *g);
    if (!g)
        return NULL;
    g->begin = w->offset;
    g->ended = false;
    g->size = 0;
    if ((g->member = gzip_member_open()))
        return g;
    free(g);
    return NULL;
}

void gzip_blocks_close(struct gzip_blocks *g)
{
    if (!g)
        return;
    gzip_member_close(g->member);
    free(g);
}

enum bgzf_fault gzip_blocks_next(struct gzip_blocks *g, struct byte_window *w, task_help_fn *help, void *arg)
{
    g->size = 0;
    while (!g->ended && g->size < sizeof g->data) {
        size_t used = w->size, made = sizeof g->data - g->size;
        enum gzip_member_state state = gzip_member_inflate(g->member, w->data, &used, g->data + g->size, &made);
        byte_window_skip(w, used);
        g->size += (uint32_t)made;
        g->ended = state == GZIP_MEMBER_ENDS;
        if (state == GZIP_MEMBER_IS_DAMAGED)
            return BGZF_BAD_DEFLATE;
        if (state == GZIP_MEMBER_NO_MEMORY)
            return BGZF_NO_MEMORY;
        if (!g->ended && g->size < sizeof g->data && w->size == 0 && byte_window_more(w, help, arg) <= 0)
            return BGZF_MORE;
    }
    return BGZF_OK;
}
