/* SPDX-License-Identifier: MIT */
#include <htslib/sam.h>
#include "bam/long_pos.h"
#include "bam/unclipped.h"

int64_t unclipped_own(const struct bam_record *r, enum clips clips, bool last)
{
    uint32_t n;
    const uint8_t *tag, *cigar = bam_record_cigar(r, &n, &tag);
    uint64_t pos = (uint64_t)long_pos(r), span = 0, clip = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t op = load_le32(cigar + 4 * (size_t)i);
        bool hard = bam_cigar_op(op) == BAM_CHARD_CLIP;
        if (bam_cigar_op(op) == BAM_CSOFT_CLIP || (hard && clips == CLIPS_SOFT_AND_HARD)) {
            clip += bam_cigar_oplen(op);
        } else if (!hard) {
            if (!last)
                break;
            clip = 0;
            if (bam_cigar_type(bam_cigar_op(op)) & 2)
                span += bam_cigar_oplen(op);
        }
    }
    return (int64_t)(last ? pos + (span ? span : 1) - 1 + clip : pos - clip);
}

int64_t unclipped_mate(int64_t pos, const char *cigar, enum clips clips, bool last)
{
    uint64_t span = 0, clip = 0;
    bool inside = false;         /* after the clips at the front */
    for (const char *c = cigar; *c && *c != '*'; c++) {
        uint64_t length = (unsigned char)(*c - '0') >= 10;
        for (; (unsigned char)(*c - '0') < 10; c++)
            length = length * 10 + (uint64_t)(*c - '0');
        if (*c == 0)
            break;
        if (*c == 'S' || (clips == CLIPS_SOFT_AND_HARD && *c == 'H')) {
            clip += length;
            span += inside ? length : 0;
        }
        if (*c != 'S' && *c != 'H' && !last)
            break;
        if (*c == 'M' || *c == 'D' || *c == 'N' || *c == '=' || *c == 'X') {
            span += length;
            inside = true;
        }
    }
    return last ? (int64_t)((uint64_t)pos + span - 1) : (int64_t)((uint64_t)pos - clip);
}
