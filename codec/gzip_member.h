/* SPDX-License-Identifier: MIT */
/* Plain gzip (RFC 1952), which has no blocks: it is decompressed serially. */
#ifndef GZIP_MEMBER_H
#define GZIP_MEMBER_H

#include <stddef.h>
#include <stdint.h>

struct gzip_member;

/* At the beginning of a gzip header. NULL: out of memory. */
struct gzip_member *gzip_member_open(void);
void gzip_member_close(struct gzip_member *member);

enum gzip_member_state { GZIP_MEMBER_GOES_ON, GZIP_MEMBER_ENDS, GZIP_MEMBER_IS_DAMAGED, GZIP_MEMBER_NO_MEMORY };

/* Decompresses from in[*n_in] to out[*n_out], as much as goes; the numbers become those of the bytes used. At its end
 * its CRC-32 and its size are right. */
enum gzip_member_state gzip_member_inflate(struct gzip_member *member, const uint8_t *in, size_t *n_in, uint8_t *out,
                                           size_t *n_out);

#endif
