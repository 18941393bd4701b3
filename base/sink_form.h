/* SPDX-License-Identifier: MIT */
#ifndef SINK_FORM_H
#define SINK_FORM_H

/* How the output is made: BAM and SAM by our own tasks, everything else by htslib. */
enum sink_form { SINK_BAM, SINK_SAM, SINK_SAM_GZ, SINK_HTSLIB };

#endif
