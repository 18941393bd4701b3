/* SPDX-License-Identifier: MIT */
/* How an input is to be read. */
#ifndef INPUT_OPTIONS_H
#define INPUT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <htslib/hts.h>
#include "base/memory_shares.h"

struct bgzf_codec;
struct input_part;
struct known_headers;
struct latch;
struct clocks;

struct input_options {
    const char *path;            /* "-": standard input; this and all pointers below stay the caller's. Within read/
                                    it is the name for messages */
    const char *given;           /* within read/: the name as the user gave it, of which htslib makes names of reads;
                                    NULL: the same */
    int n_threads;               /* of the team, or of htslib's own where htslib decodes */
    size_t piece_size;           /* bytes per read, but for SAM */
    uint32_t n_pieces;           /* see read_ahead_open() */
    struct htslib_room htslib;   /* memory for formats that htslib decodes */
    struct chunk_memory chunks;  /* memory for SAM, see memory_plan_chunks() */
    uint64_t header_max;         /* most bytes of a SAM header */
    const char *reference;       /* FASTA for CRAM; NULL: as htslib finds it */
    const hts_opt *format_options;   /* --input-fmt-option; NULL: none */
    const struct input_part *part;   /* all that is read of it; NULL: the whole input */
    bool waits;                  /* another input is read first: of a file, only the header is read now */
    bool shuts;                  /* while a file is suspended, and from then on, it has no descriptor
                                  * (input_file_shut()) */
    bool by_region;              /* before its records are read, input_format_choose() says which ones are */
    bool far;                    /* takes records with positions beyond 32 bits (long_pos.h); else they are refused */
    struct known_headers *known; /* what was read before. The header of a BAM file that waits is read when it is opened,
                                  * if that is easy (known_headers_read()); then the file is suspended at once. NULL: no
                                  * header is read so */
    struct bgzf_codec **codecs;  /* of each thread (bgzf_codec_of()), for that */
    struct latch *latch;
    struct clocks *clocks;       /* may be NULL */
};

#endif
