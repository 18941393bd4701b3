#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks which layer includes which, and whose functions and variables a module uses: rightwards only, and without
# circles of modules (a module is NAME.c and NAME.h together). The uses are those of the object files that `make
# samtools` made. Except in tests, no line of C is longer than 120 columns, and no function longer than 60 lines. A file
# of more than 700 lines is only warned of, because a proof may take room.
#
#   mpi -> cli -> sormadup -> bam_sort, sort/sorted, sort/arena_room, merge, fixmate, markdup, stats, bgzip
#       -> engine -> read, sort, write, report, markdup/marked_*
#       -> bgzf_omp, bam_arena -> order, the serial part of fixmate, markdup and stats -> codec -> bam -> base
#
# The folder of a command has its driver and last producer (layer_of() names them) above engine/, and other producers
# and serial functions below. Folders below engine/ do not include each other, except markdup -> read, sort, write and
# sort -> write. The includes named under "known" are older than this rule. A new one fails. A known one that no longer
# exists fails, too: take it off the list. The last line counts offences and modules in circles.
#
# usage: test/check_layers.sh
set -u
cd -- "$(dirname -- "$0")/.." || exit 1

known='
'

sources=$(ls *.[ch] mpi/*.[ch] cli/*.[ch] sormadup/*.[ch] bgzip/*.[ch] merge/*.[ch] fixmate/*.[ch] markdup/*.[ch] stats/*.[ch] \
    engine/*.[ch] read/*.[ch] hts/*.[ch] sort/*.[ch] write/*.[ch] report/*.[ch] order/*.[ch] codec/*.[ch] bam/*.[ch] base/*.[ch])

# Lines "module included-module", each module as FOLDER/NAME; top-level modules have no folder.
includes() {
    for file in $sources; do
        sed -n "s|^#include \"\\(.*\\)\\.h\"|${file%.*} \\1|p" "$file"
    done | sort -u
}

# Lines of the same form, for symbols that the object file of one module defines and that of another uses.
uses() {
    build=$(make -s show-BUILD)
    for source in $(printf '%s\n' $sources | grep '\.c$'); do
        object=$build/${source%.c}.o
        case $source in
        mpi/*)                                       # only some machines have MPI, with one folder for each
            object=$(ls "$object" "$build"/*/"${source%.c}.o" 2>/dev/null | head -n 1)
            [ -n "$object" ] || continue ;;
        esac
        nm -g -P "$object" | sed "s|^|${source%.c} |" || exit 1
    done >"$build/symbols.txt"
    awk '$3 == "U" || $3 == "w" || $3 == "v" { uses[$1 " " $2] = 1; next }
        { where[$2] = $1 }
        END {
            for (use in uses) {
                split(use, part, " ")
                if (part[2] in where && where[part[2]] != part[1])
                    print part[1], where[part[2]]
            }
        }' "$build/symbols.txt" | sort -u
}

long_lines() {
    LC_ALL=C awk '{
        line = $0
        gsub(/[\200-\277]/, "", line)            # the bytes after the first one of a UTF-8 character
        if (length(line) > 120) {
            print "FAILED static columns: " FILENAME ":" FNR ": " length(line)
            failed = 1
        }
    }
    END { exit failed }' $sources bench/*.[ch]
}

long_parts() {
    awk 'function warn(file, lines) {
            if (lines > 700)
                print "warning: " file " has " lines " lines"
        }
        FNR == 1 { warn(file, last); file = FILENAME }
        /^[{]/ { begin = FNR }
        /^[}]$/ && begin {
            if (FNR - begin + 1 > 60) {
                print "FAILED static lengths: " FILENAME ":" begin ": " FNR - begin + 1 " lines, of at most 60"
                failed = 1
            }
            begin = 0
        }
        { last = FNR }
        END { warn(file, last); exit failed }' $sources
}

# Options travel no lower than engine/: readers, sinks and reports only know their requests. A declaration is not an
# include, so the check searches for names.
low_options() {
    ! grep -lw 'engine_opts\|merge_opts\|fixmate_opts\|markdup_opts\|sormadup_opts\|stats_opts' $(printf '%s\n' $sources |
        grep -v '^\(bam_sort\|mpi/\|cli/\|sormadup/\|merge/\|engine/\|sort/sorted\.\|fixmate/bam_\|fixmate/fix[a-z]*_opts\|fixmate/fixed\.\|markdup/bam_\|markdup/mark[a-z]*_opts\|markdup/marked\.\|markdup/marking\.\|stats/bam_\|stats/stats_opts\|stats/counted\.\)') \
        /dev/null | sed 's/^/FAILED static layers: names the options of a command: /' | grep .
}

failed=0
long_lines || failed=1
long_parts || failed=1
low_options || failed=1
make -s samtools || failed=1
{ printf '%s\n' "$known" | sed -n 's/^\(.*\) -> \(.*\)$/known \1 \2/p'; { includes; uses; } | sort -u; } | awk '
    BEGIN {
        n = split("mpi cli sormadup command engine stage ring serial codec bam base", layers, " ")
        for (i = 1; i <= n; i++)
            rank[layers[i]] = i
        rank["bam_sort"] = rank["merge"] = rank["bgzip"] = rank["command"]
        rank["order"] = rank["serial"]
        split("read sort markdup write report", stages, " ")
        for (i in stages)
            rank[stages[i]] = rank["stage"]
        passes["sort write"] = passes["markdup read"] = passes["markdup sort"] = passes["markdup write"] = 1
    }

    # The layer, by the names above: usually that of the folder.
    function layer_of(module) {
        if (module ~ /^(fixmate|markdup|stats)\/(bam_.*|fixed|marked|marking|counted|.*_opts)$/ || module ~ /^sort\/(sorted|arena_room)$/)
            return "command"
        if (module ~ /^(fixmate|stats)\// || (module ~ /^markdup\// && module !~ /^markdup\/marked_/))
            return "serial"
        if (module ~ /^hts\/(hts_file|htslib_version)$/)
            return "base"
        if (module ~ /^hts\/(cram_count|ref_sums|ref_lookup|bam1_bytes)$/)
            return "bam"
        if (module ~ /^hts\//)
            return module ~ /reader|input/ ? "read" : "write"
        if (module ~ /\//)
            return substr(module, 1, index(module, "/") - 1)
        return module == "bam_sort" ? module : "ring"
    }

    function offence(from, to) {
        if (!(from in rank) || !(to in rank))
            return "unknown"
        if (rank[to] < rank[from])
            return "upward"
        return rank[to] == rank["stage"] && rank[from] == rank["stage"] && from != to && !((from " " to) in passes) \
             ? "sideways" : ""
    }

    $1 == "known" { known[$2 " " $3] = 1; next }
    $1 == $2 { next }
    {
        from[++arrows] = $1; to[arrows] = $2
        modules[$1] = modules[$2] = 1
        kind = offence(layer_of($1), layer_of($2))
        if (kind == "")
            next
        count[kind]++
        seen[$0] = 1
        if (!($0 in known)) {
            print "FAILED static layers: " kind ": " $1 " includes or uses " $2
            failed = 1
        }
    }

    END {
        for (line in known)
            if (!(line in seen)) {
                print "FAILED static layers: no longer there, take it off the list: " line
                failed = 1
            }
        # A module that includes none of the remaining modules is in no circle.
        do {
            went = 0
            for (m in modules) {
                held = 0
                for (i = 1; i <= arrows; i++)
                    if (from[i] == m && to[i] in modules)
                        held = 1
                if (!held) {
                    delete modules[m]
                    went = 1
                }
            }
        } while (went)
        # Nor are modules that only lead into a circle.
        do {
            went = 0
            for (m in modules) {
                held = 0
                for (i = 1; i <= arrows; i++)
                    if (to[i] == m && from[i] in modules)
                        held = 1
                if (!held) {
                    delete modules[m]
                    went = 1
                }
            }
        } while (went)
        for (m in modules)
            circle = circle " " m
        if (!failed)
            print "ok static layers: nothing new"
        n = split(circle, unused, " ")
        printf "%d upward, %d sideways, %d modules in circles%s\n", count["upward"], count["sideways"], n, (n ? ":" circle : "")
        exit failed
    }' || failed=1
exit $failed
