/* SPDX-License-Identifier: MIT */
/* Text as a JSON string (RFC 8259). */
#ifndef JSON_STRING_H
#define JSON_STRING_H

#include <stdio.h>

/* Writes text in quotation marks. File names may be any bytes: bytes that are not UTF-8 become U+FFFD. */
void json_string(FILE *to, const char *text);

#endif
