/* SPDX-License-Identifier: MIT */
/* Options for reading an input. */
#ifndef INPUT_OPTIONS_H
#define INPUT_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <htslib/hts.h>
#include "base/memory_shares.h"

struct bgzf_codec;
struct engine;
struct input_part;
struct known_headers;

struct input_options {
    const char *path;            /* "-": standard input; this and all pointers below stay the caller's. Within read/ the
                                  * path is the name for messages */
    const char *given;           /* within read/: the name as the user gave it, from which htslib makes names of reads;
                                  * NULL: as path */
    const struct engine *engine;
    size_t piece_size;           /* bytes per read, except for SAM */
    uint32_t n_pieces;           /* see read_ahead_open() */
    struct htslib_room htslib;   /* memory for formats that htslib decodes */
    struct chunk_memory chunks;  /* memory for SAM, see chunk_plan_text() */
    uint64_t header_max;         /* largest size of a SAM header in bytes */
    const char *reference;       /* FASTA for CRAM; NULL: the one that htslib finds */
    const hts_opt *format_options;   /* --input-fmt-option; NULL: none */
    const struct input_part *part;   /* the part that is read, of a file that does not wait; NULL: the complete input */
    bool waits;                  /* another input is read first: if this one is a file, only its header is read now */
    bool shuts;                  /* a file has no descriptor while it is suspended, and from then on
                                  * (input_file_shut()) */
    bool by_region;              /* input_format_choose() chooses the records before they are read */
    bool far;                    /* records with positions beyond 32 bits are accepted (long_pos.h); if not set, they
                                  * are refused */
    struct known_headers *known; /* the headers that were read before. The header of a BAM file that waits is read when
                                  * the file is opened, if that is easy (known_headers_read()); then the file is
                                  * suspended at once. NULL: no header is read in this way */
    struct bgzf_codec **codecs;  /* codecs of each thread (bgzf_codec_of()), for these headers and for packed SAM. NULL:
                                  * packed SAM has its own, and `known` is NULL */
};

#endif
