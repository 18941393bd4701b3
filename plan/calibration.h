/* SPDX-License-Identifier: MIT */
/* What a byte of records costs on this machine: the steps of a sort, done once with a sample and timed, on one thread.
 * All are CPU seconds per byte of records as they lie in memory. */
#ifndef CALIBRATION_H
#define CALIBRATION_H

#include <stdbool.h>
#include <htslib/sam.h>

struct input_sample;
struct engine_opts;

struct calibration {
    double inflate, find, sort, deflate;
    double pack, unpack;         /* of what goes through temporary files */
    double deflated;             /* bytes of output per byte; 0: not known, the output is not BAM */
    double packed;               /* bytes of temporary data per byte */
    double waited;               /* wall seconds per CPU second meanwhile: above 1 if other programs want the CPUs */
};

/* spills: pack and unpack, too. sam: the header of the inputs. The sample is not empty. -1: no memory. */
int calibration_make(struct calibration *calibration, const struct input_sample *sample, const struct engine_opts *opts,
                     sam_hdr_t *sam, bool spills);

#endif
