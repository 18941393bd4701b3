/* SPDX-License-Identifier: MIT */
/* The part that one of several processes reads of a shared input. */
#ifndef INPUT_PART_H
#define INPUT_PART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <htslib/sam.h>

struct byte_window;
struct input;

/* The records of the part are head, then what is in the blocks or lines of the file, or in the window, then tail. All
 * pointers stay the caller's. */
struct input_part {
    sam_hdr_t *sam;              /* the header of the whole input; it is copied */
    struct byte_window *window;  /* bytes of records that come from elsewhere; NULL: the file is read */
    struct input *opened;   /* the whole input, which the sort takes from here; NULL: it opens the part itself */
    uint64_t begin, end;         /* of the file: where the part's first block or line begins, and its last one ends */
    const uint8_t *head, *tail;
    size_t head_size, tail_size;
    const uint8_t *sample;       /* records from which the order learns in every process; NULL: the part's own */
    size_t sample_size;
    size_t overhead;             /* bytes of memory that the process needs meanwhile for what the sort does not know */
    bool prepared;               /* another sort normalised the records; with -M it turned reads, which keep their
                                  * ranks */
    bool silent;                 /* another process tells on stderr what all would */
    bool is_last;                /* the file ends with it, which is when an EOF block is missed */
};

#endif
