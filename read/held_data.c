/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "bam/bam_magic.h"
#include "read/first_bytes.h"
#include "read/held_data.h"

enum { LOOKED_AT = 4096 };       /* bytes at the beginning of a file */

static const struct {
    const char *begin, *name;
} kinds[] = {
    {"\x1f\x8b\x08", "BGZF or gzip"}, {"CRAM", "CRAM"}, {BAM_HEADER_MAGIC, "BAM"}, {"BCF\2", "BCF"},
    {"##fileformat=VCF", "VCF"},
};

/* Returns whether the first line has the fields of a record, because SAM need not have a header. */
static bool is_record(const char *line)
{
    enum { FIELDS = 11 };
    const char *end = line + strcspn(line, "\n"), *flag = memchr(line, '\t', (size_t)(end - line));
    int tabs = 0;
    for (const char *c = line; c < end; c++)
        tabs += *c == '\t';
    size_t digits = flag ? strspn(flag + 1, "0123456789") : 0;
    return tabs >= FIELDS - 1 && digits > 0 && flag[1 + digits] == '\t';
}

static const char *kind_of(const char *bytes, size_t n)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (n >= strlen(kinds[i].begin) && memcmp(bytes, kinds[i].begin, strlen(kinds[i].begin)) == 0)
            return kinds[i].name;
    if (first_bytes_are_index((const uint8_t *)bytes, n, ""))
        return "an index";
    const struct packing *packing = first_bytes_packing((const uint8_t *)bytes, n);
    if (packing)
        return packing->name;
    bool is_text = n > 1 && (isprint((unsigned char)bytes[1]) || isspace((unsigned char)bytes[1]));
    if (is_text && bytes[0] == '>')
        return "FASTA";
    if (is_text && bytes[0] == '@')
        return n > 3 && isupper((unsigned char)bytes[1]) && isupper((unsigned char)bytes[2])
            && isspace((unsigned char)bytes[3]) ? "SAM" : "FASTQ";
    return is_record(bytes) ? "SAM" : NULL;
}

const char *held_data_kind(const char *path)
{
    char bytes[LOOKED_AT + 1];
    struct stat st;
    if (stat(path, &st) < 0 || !S_ISREG(st.st_mode))     /* opening a pipe would wait for its other end */
        return NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, bytes, LOOKED_AT);
    if (fd >= 0)
        close(fd);
    bytes[n > 0 ? n : 0] = 0;
    return n > 0 ? kind_of(bytes, (size_t)n) : NULL;
}
