/* SPDX-License-Identifier: MIT */
/* Reads JSON (RFC 8259) from outside, strictly: one value and nothing behind it. Serial. */
#ifndef JSON_READER_H
#define JSON_READER_H

#include <stddef.h>

enum json_kind { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_TEXT };

enum {
    JSON_DEPTH = 8,              /* objects and arrays within each other; more are refused */
    JSON_PATH = 256,             /* bytes of the keys that lead to a value; more are refused */
};

struct json_value {
    const char *path;            /* keys, and numbers of array elements, with "/" between them: "stages/read/s" */
    enum json_kind kind;
    double number;
    const char *text;            /* UTF-8; ends at its first NUL; valid during the call */
};

/* Takes a value that is neither object nor array. */
typedef void json_value_fn(void *arg, const struct json_value *value);

/* Calls value(arg) for each value. -1: it is not JSON, or larger than the limits, or there is no memory; values before
 * that place have been given. */
int json_reader_run(const char *json, size_t size, json_value_fn *value, void *arg);

#endif
