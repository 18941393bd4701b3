# SPDX-License-Identifier: MIT
# Reads the C text that `cc -E -dD` prints, and prints what each file declares outside functions, one name per line:
#     FILE KIND NAME      KIND: macro, tag, constant (of an enum), or name (function, variable, type)
# ours=1: only files whose path begins here are read, which saves the time for the headers of the system

# The kind of the declaration that ends before `token`; empty: there is none.
function kind_of_last() {
    if (last !~ /^[A-Za-z_]/ || value)
        return ""
    if (parens == 1 && !blocks && two_before == "(" && before == "*" && token == ")")
        return "name"    # int (*name)(void)
    if (parens || blocks > in_enum || token !~ /^[([;,={}]$/)
        return ""
    if (blocks)
        return "constant"
    if (before ~ /^(struct|union|enum)$/)
        return token == "{" ? "tag" : ""
    return "name"
}

function follow() {
    if (token == "{") {
        if (!blocks)
            in_enum = last == "enum" || before == "enum"
        blocks++
    } else if (token == "}") {
        if (--blocks == 0) {
            value = value && !in_enum
            in_enum = 0
        }
    } else if (token ~ /^[([]$/) {
        parens++
    } else if (token ~ /^[])]$/) {
        parens--
    } else if (token == "=" && !parens && blocks <= in_enum) {
        value = 1
    } else if (token == ";" && !blocks || token == "," && in_enum && !parens) {
        value = 0
    }
    two_before = before
    before = last
    last = token
}

# Words of C, and words that begin like the compiler's own, are not names.
function declare(kind, name) {
    if (name !~ /^(_[_A-Z].*|struct|union|enum|extern|void|char|short|int|long|unsigned|signed|float|double)$/)
        print file, kind, name
}

/^# [0-9]+ "/ {
    file = $3
    gsub(/"/, "", file)
    next
}
ours && file ~ /^[\/<]/ { next }
/^#define / {
    sub(/\(.*/, "", $2)
    declare("macro", $2)
}
/^#/ { next }
{
    line = $0
    gsub(/\\["'\\]/, "", line)
    gsub(/"[^"]*"|'[^']*'/, "0", line)
    while (match(line, /[A-Za-z_][A-Za-z_0-9]*|[0-9][A-Za-z_0-9.]*|[^ \t]/)) {
        token = substr(line, RSTART, RLENGTH)
        line = substr(line, RSTART + RLENGTH)
        kind = kind_of_last()
        if (kind)
            declare(kind, last)
        follow()
    }
}
