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

/* The records of the part are those in head, then those in the blocks or lines of the file, or in the window, then
 * those in tail. All pointers stay the caller's. */
struct input_part {
    sam_hdr_t *sam;              /* the header of the complete input; it is copied */
    struct byte_window *window;  /* bytes of records that do not come from the file; NULL: the file is read */
    struct input *opened;   /* the complete input, which the sort takes over from here; NULL: the sort opens the part
                                  * itself */
    uint64_t begin, end;         /* range in the file: where the part's first block or line begins, and where its last
                                  * one ends */
    const uint8_t *head, *tail;
    size_t head_size, tail_size;
    const uint8_t *sample;       /* records from which the order learns in every process; NULL: it learns from the
                                  * part's own records */
    size_t sample_size;
    size_t overhead;             /* bytes of memory that the process needs at the same time, and that the sort does not
                                  * know of */
    bool prepared;               /* another sort has normalised the records; with -M it has turned reads, which keep
                                  * their ranks */
    bool silent;                 /* another process writes to stderr the messages that all processes would write */
    bool is_last;                /* the file ends with this part: only then is a missing EOF block noticed */
};

#endif
