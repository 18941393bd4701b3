/* SPDX-License-Identifier: MIT */
/* Writes the report on all ranks as text, JSON or an HTML page. */
#ifndef RANK_PAGES_H
#define RANK_PAGES_H

#include <stdio.h>
#include "report/report_request.h"

/* report: a struct rank_report with the numbers of all ranks. */
void rank_pages_put(FILE *to, enum report_format format, const void *report);

#endif
