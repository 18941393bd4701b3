/* SPDX-License-Identifier: MIT */
#ifndef SINK_FORM_H
#define SINK_FORM_H

/* How the output is made: our own tasks make BAM and SAM, htslib makes all other formats. */
enum sink_form { SINK_BAM, SINK_SAM, SINK_SAM_GZ, SINK_HTSLIB };

#endif
