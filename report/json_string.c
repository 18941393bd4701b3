/* SPDX-License-Identifier: MIT */
#include <stdbool.h>
#include <stdint.h>
#include "report/json_string.h"

/* Bytes of the UTF-8 character at p (RFC 3629); 0: there is no valid one. */
static int utf8_length(const unsigned char *p)
{
    int n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;
    for (int i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)               /* the final NUL ends here too */
            return 0;
    bool too_long = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
    bool surrogate = p[0] == 0xed && p[1] >= 0xa0, beyond = p[0] == 0xf4 && p[1] >= 0x90;
    return n > 1 && (too_long || surrogate || beyond) ? 0 : n;
}

void json_string(FILE *to, const char *text)
{
    const unsigned char *p = (const unsigned char *)text;
    fputc('"', to);
    while (*p) {
        int n = utf8_length(p);
        if (n == 0)
            fputs("\\ufffd", to);
        else if (*p < ' ')
            fprintf(to, "\\u%04x", *p);
        else if (*p == '"' || *p == '\\')
            fprintf(to, "\\%c", *p);
        else
            fwrite(p, 1, (size_t)n, to);
        p += n ? n : 1;
    }
    fputc('"', to);
}
