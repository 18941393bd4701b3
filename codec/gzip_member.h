/* SPDX-License-Identifier: MIT */
/* Plain gzip (RFC 1952), which has no blocks: it is decompressed serially. */
#ifndef GZIP_MEMBER_H
#define GZIP_MEMBER_H

#include <stddef.h>
#include <stdint.h>

struct gzip_member;

/* Opens a member, whose input begins with a gzip header. Returns NULL if out of memory. */
struct gzip_member *gzip_member_open(void);
void gzip_member_close(struct gzip_member *member);

enum gzip_member_state { GZIP_MEMBER_GOES_ON, GZIP_MEMBER_ENDS, GZIP_MEMBER_IS_DAMAGED, GZIP_MEMBER_NO_MEMORY };

/* Decompresses as many bytes as possible from in[*n_in] to out[*n_out], and sets both numbers to the bytes used. At
 * GZIP_MEMBER_ENDS the member's CRC-32 and size were found right. */
enum gzip_member_state gzip_member_inflate(struct gzip_member *member, const uint8_t *in, size_t *n_in, uint8_t *out,
                                           size_t *n_out);

#endif
