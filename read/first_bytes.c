/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include "read/first_bytes.h"

/* Marks from the descriptions of the formats; see also file(1). */
static const struct known {
    struct packing is;
    const char *begin;           /* how the file begins */
    size_t at, size;             /* offset of its mark, and size of the mark */
    const char *mark;
} known[] = {
    {{"xz", "xz -dc"}, "", 0, 6, "\xfd" "7zXZ\0"},
    {{"zstd", "zstd -dc"}, "", 0, 4, "\x28\xb5\x2f\xfd"},
    {{"bzip2", "bzip2 -dc"}, "BZh", 4, 6, "1AY&SY"},
    {{"bzip2", "bzip2 -dc"}, "BZh", 4, 6, "\x17\x72\x45\x38\x50\x90"},      /* an empty file */
    {{"RAZF", "gzip -dc"}, "\x1f\x8b", 12, 4, "RAZF"},
    {{"lz4", "lz4 -dc"}, "", 0, 4, "\x04\x22\x4d\x18"},
    {{"lzip", "lzip -dc"}, "", 0, 5, "LZIP\1"},
    {{"compress", "gzip -dc"}, "", 0, 2, "\x1f\x9d"},
    {{"zip", "unzip -p"}, "", 0, 4, "PK\3\4"},
    {{"7-Zip", "7z x -so"}, "", 0, 6, "7z\xbc\xaf\x27\x1c"},
};

const struct packing *first_bytes_packing(const uint8_t *bytes, size_t n)
{
    for (const struct known *k = known; k < known + sizeof known / sizeof *known; k++)
        if (n >= k->at + k->size && memcmp(bytes + k->at, k->mark, k->size) == 0
            && memcmp(bytes, k->begin, strlen(k->begin)) == 0)
            return &k->is;
    return NULL;
}

bool first_bytes_are_index(const uint8_t *bytes, size_t n, const char *path)
{
    static const char *const marks[] = {"BAI\1", "CSI\1", "TBI\1"};
    static const char *const endings[] = {".bai", ".csi", ".crai", ".tbi", ".fai", ".gzi"};
    enum { MARK = 4 };
    const char *ending = strrchr(path, '.');
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (n >= MARK && memcmp(bytes, marks[i], MARK) == 0)
            return true;
    for (size_t i = 0; ending && i < sizeof endings / sizeof *endings; i++)
        if (strcmp(ending, endings[i]) == 0)
            return true;
    return false;
}

const char *first_bytes_show(const uint8_t *bytes, size_t n, char *text)
{
    size_t at = 0;
    text[0] = 0;
    for (size_t i = 0; i < n && i < FIRST_BYTES && bytes[i] != '\n'; i++) {
        bool printable = bytes[i] >= ' ' && bytes[i] <= '~';
        at += (size_t)snprintf(text + at, FIRST_BYTES_TEXT - at, printable ? "%c" : "\\x%02x", bytes[i]);
    }
    return text;
}
