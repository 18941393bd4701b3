/* SPDX-License-Identifier: MIT */
#ifndef SINK_FORM_H
#define SINK_FORM_H

/* Who makes the bytes of the output, and of what form: tasks of ours make BAM and SAM, htslib the rest. */
enum sink_form { SINK_BAM, SINK_SAM, SINK_SAM_GZ, SINK_HTSLIB };

#endif
