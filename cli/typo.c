/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <string.h>
#include "cli/typo.h"

static bool is_same(char a, char b)
{
    return tolower((unsigned char)a) == tolower((unsigned char)b);
}

bool typo_is_of(const char *word, size_t n, const char *known)
{
    size_t m = strlen(known), begin = 0, end = 0;
    while (begin < n && begin < m && is_same(word[begin], known[begin]))
        begin++;
    while (end < n - begin && end < m - begin && is_same(word[n - 1 - end], known[m - 1 - end]))
        end++;
    size_t n_rest = n - begin - end, m_rest = m - begin - end;
    return (n_rest <= 1 && m_rest <= 1)
        || (n_rest == 2 && m_rest == 2 && is_same(word[begin], known[begin + 1])
            && is_same(word[begin + 1], known[begin]));
}
