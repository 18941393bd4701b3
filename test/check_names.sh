#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks that no name of ours is one of htslib's, libdeflate's, LZ4's or zlib's: their headers would not compile with
# ours, or the linker would take one function for the other. Compares what our sources declare with what the headers of
# these libraries declare and what the libraries define, for the htslib of the build and for all others at hand: the
# system's, and those that test/build_htslib.sh has built. One line per test, "ok", "FAILED" or "skipped"; exit status 1
# if one failed.
#
# usage: test/check_names.sh    (after make; BUILD says where the objects are, default build)
set -u
cd -- "$(dirname -- "$0")/.." || exit 1
build=${BUILD:-build}
if [ "$(uname -s)" = Darwin ]; then
    echo 'skipped names: its nm and its linker speak otherwise'
    exit 0
fi
scratch=$(mktemp -d "${TMPDIR:-/tmp}/samtools-omp.XXXXXX") || exit 1
trap 'rm -rf -- "$scratch"' EXIT
bad=0

setting() { make -s "show-$1"; }
cc=$(setting CC) cppflags=$(setting ALL_CPPFLAGS)
libs="$(setting HTS_LIBS) $(setting DEFLATE_LIBS) $(setting LZ4_LIBS) -lz"

# verdict WHAT FILE [HINT]: the file lists what is wrong
verdict() {
    if [ -s "$2" ]; then
        echo "FAILED names, $1: $(tr '\n' ' ' <"$2")${3:-}"
        bad=1
    else
        echo "ok names, $1"
    fi
}

# declared OURS FILE [FLAG]...: FILE KIND NAME of all that the source and its headers declare; 1: of ours only
declared() {
    ours=$1
    shift
    $cc "$@" -E -dD | awk -v ours="$ours" -f test/names.awk
}

# names [KIND]: of such lines, sorted
names() { awk -v kind="${1:-}" '!kind || $2 == kind { print $3 }' | sort -u; }

# common A B: lines in both
common() { comm -12 "$1" "$2" >"$scratch/common"; }

# defined FILE...: names that objects or libraries define for others. GNU's nm speaks of files without symbols.
defined() { nm -g "$@" 2>/dev/null | awk 'NF >= 3 && $(NF - 1) ~ /^[A-TV-Z]$/ { sub(/@.*/, "", $NF); print $NF }' | sort -u; }

# ---- ours ----

# shellcheck disable=SC2086
our_names() {
    for source in cli/samtools.c $(setting LIB_SRCS); do
        echo "#include \"$source\""
    done >"$scratch/ours.c"                  # all at once, so that headers are read once
    declared 1 -w $cppflags "$scratch/ours.c" | sort -u >"$scratch/ours"
    names <"$scratch/ours" >"$scratch/our_names"
}

objects() { echo "$build/cli/samtools.o $(make -s BUILD="$build" show-LIB_OBJS)"; }

# Otherwise this test would miss names.
all_seen() {
    objects | xargs nm -g 2>/dev/null | awk 'NF == 3 && $2 ~ /^[A-TV-Z]$/ { print $3 }' | grep -v '^_*\(asan\|ubsan\|tsan\|odr\)' |
        sort -u >"$scratch/objects"
    comm -23 "$scratch/objects" "$scratch/our_names" >"$scratch/unseen"
    [ -s "$scratch/objects" ] || echo "no object in $build" >"$scratch/unseen"
    verdict "what $build/*.o define is found in the sources" "$scratch/unseen"
}

# A function, variable or type whose name begins like a library's must begin with one of our nouns, the name of a file
# or a struct, like bam_record_aux_next. New names of the library's next version will begin differently.
rule() {
    {
        cut -d' ' -f1 "$scratch/ours" | sed 's,.*/,,; s/\.[ch]$//'
        names tag <"$scratch/ours"
    } | sort -u >"$scratch/nouns"
    names name <"$scratch/ours" |
        grep -E '^(bam|bgzf|sam|hts|cram|bcf|vcf|tbx|faidx?|hfile|libdeflate|deflate|inflate|compress|crc32|adler32|gz|LZ4F?|XXH[0-9]*)_' |
        awk 'NR == FNR { noun[$1]; next }
             { for (name = $1; name != "" && !(name in noun); ) if (!sub(/_[^_]*$/, "", name)) name = ""
               if (name == "") print }' "$scratch/nouns" - >"$scratch/ruled"
    verdict "what begins like a library's has a noun of ours" "$scratch/ruled" '(begin them with the stem of their file)'
}

# A library cannot mistake a hidden symbol for its own.
hidden() {
    if ! readelf -W -s "$build/cli/samtools.o" >"$scratch/symbols" 2>/dev/null; then
        echo 'skipped names, nothing is open to libraries: no readelf or no ELF here'
        return
    fi
    objects | xargs readelf -W -s 2>/dev/null |
        awk '$5 == "GLOBAL" && $6 == "DEFAULT" && $7 != "UND" { print $8 }' | sort -u >"$scratch/open"
    common "$scratch/open" "$scratch/our_names"
    grep -v '^main$' "$scratch/common" >"$scratch/open"
    verdict 'nothing is open to libraries' "$scratch/open" '(compile with -fvisibility=hidden)'
}

# ---- theirs ----

# has headers|libraries NAME...: checks that this test sees the names that it compares
has() {
    where=$1    # $scratch/their_$1
    shift
    printf '%s\n' "$@" | sort >"$scratch/wanted"
    comm -23 "$scratch/wanted" "$scratch/their_$where" >"$scratch/lacking"
    verdict "$what: $where are read" "$scratch/lacking" "(not there)"
}

# headers [FLAG]...: all headers of htslib, including those that we do not use yet
headers() {
    folder=$(printf '#include <htslib/sam.h>\n' | $cc "$@" -E - 2>/dev/null |
        sed -n 's,^# [0-9]* "\(.*\)/htslib/sam\.h".*,\1,p' | head -n 1)
    for header in "$folder"/htslib/*.h; do
        echo "#include <htslib/${header##*/}>"
    done >"$scratch/theirs.c"
    printf '#include <%s>\n' libdeflate.h lz4.h zlib.h >>"$scratch/theirs.c"
    declared '' -D_GNU_SOURCE "$@" "$scratch/theirs.c" 2>"$scratch/log" |
        grep -E '^[^ ]*/(htslib/[^/ ]*|libdeflate|lz4|zlib|zconf)\.h ' | names >"$scratch/their_headers"
}

# libraries [FLAG]...: those that the linker takes, and the static ones beside them
# shellcheck disable=SC2086
libraries() {
    printf 'int main(void) { return 0; }\n' >"$scratch/empty.c"
    $cc -o "$scratch/empty" "$scratch/empty.c" "$@" $libs -Wl,-t 2>&1 |
        grep -oE '[^ ()]*/lib(hts|deflate|lz4|z)\.(so|a|dylib)[.0-9]*' | sort -u >"$scratch/found"
    sed 's/\.so[.0-9]*$/.a/' "$scratch/found" | sort -u | while read -r static; do
        [ ! -e "$static" ] || echo "$static"
    done >"$scratch/static"
    {
        # shellcheck disable=SC2046
        defined -D $(grep '\.so' "$scratch/found")
        # shellcheck disable=SC2046
        defined $(cat "$scratch/static")
    } | sort -u >"$scratch/their_libraries"
}

# against CPPFLAGS LDFLAGS
# shellcheck disable=SC2086
against() {
    what="htslib $(version $1)"
    headers $1
    case " $seen" in
    *" $folder "*) return ;;
    esac
    seen="$seen$folder "
    has headers bam_read1 bam1_t BAM_FPAIRED HTS_FMT_BAI cram_block_append \
        libdeflate_alloc_compressor LZ4_compress_default inflateInit2_
    common "$scratch/our_names" "$scratch/their_headers"
    verdict "$what: headers" "$scratch/common"
    libraries $2
    has libraries bam_read1 libdeflate_alloc_compressor LZ4_compress_default inflateInit2_
    common "$scratch/our_names" "$scratch/their_libraries"
    verdict "$what: libraries" "$scratch/common"
}

# version [FLAG]...: of the htslib that the compiler finds with these flags
# shellcheck disable=SC2086
version() {
    printf '#include <htslib/hts.h>\nHTS_VERSION\n' | $cc "$@" -E - 2>/dev/null | tail -n 1 |
        awk '/^[0-9]+$/ { printf "%d.%d\n", $1 / 100000, $1 % 100000 / 100 }'
}

# Checks that names of a library among ours would be reported.
planted() {
    printf 'enum { HTS_FMT_BAI };\nstatic int bam_read1(void)\n{\n    return HTS_FMT_BAI;\n}\nint (*cram_block_append)(void);\n' \
        >"$scratch/planted.c"
    declared '' "$scratch/planted.c" | grep planted | names >"$scratch/planted"
    common "$scratch/planted" "$scratch/their_headers"
    printf '%s\n' HTS_FMT_BAI bam_read1 cram_block_append | sort | comm -3 - "$scratch/common" >"$scratch/missed"
    verdict 'a name of theirs among ours is told' "$scratch/missed"
}

our_names
all_seen
rule
hidden
seen=''
against "$cppflags" "$(setting LDFLAGS)"
planted
against '' ''
for built in "${XDG_CACHE_HOME:-${HOME:-/}/.cache}"/samtools-omp/htslib-*/; do
    [ ! -e "${built}include" ] || against "-I${built}include" "-L${built}lib"
done
exit $bad
