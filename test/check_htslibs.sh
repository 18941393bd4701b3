#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs all tests with other versions of htslib than the build's: the oldest that we promise and the newest, as listed in
# test/htslibs.txt; build_htslib.sh builds them. Each has a separate build, build-htslib-VERSION. If clang is here, it
# also builds with each, and must sort to the same bytes. "short" builds once with each version, with the newest by
# clang if that is here. It takes each command-line test with one set of its parameters, and omits tests of parts that
# do not use htslib: memory, runs on disk, threads, ranks, reports, units that do not call it. The last lines report
# what failed, each beginning with "! ", and "N passed, N failed[, N skipped]".
#
# usage: test/check_htslibs.sh [short] [VERSION]...
set -u
cd -- "$(dirname -- "$0")/.." || exit 1
passed=0 failed=0 skipped=0 repeated=''
unset MORE_CHECKS SAMTOOLS_OMP
tests=all short=''

# The unit tests whose programs in build/ need functions of htslib.
units_of_htslib() {
    htslib='U (hts|sam|bam|bgzf|cram|fai|faidx|k[a-z]*|h[a-z]*|stringify)_?[a-z0-9_]*(@|$)'
    for unit in build/unit_*; do
        case $unit in
        *.*) ;;
        *)   if nm -D -u "$unit" 2>/dev/null | grep -qE "$htslib"; then echo "${unit#build/}"; fi ;;
        esac
    done
}

if [ "${1:-}" = short ]; then
    tests=check short=1
    export TEST_SAMPLE=1 TEST_SHORT=1 TEST_WITHOUT='affinity commit copy_blocks direct hints install limits messages mpi mpi_faults
        mpi_input mpi_options mpi_output mpi_places mpi_report mpi_trace mpi_whole report settings size spill
        streams stress'
    UNITS=$(units_of_htslib)
    export UNITS
    shift
fi
if [ -n "${NO_EXTRAS:-}" ]; then
    echo 'skipped htslibs: NO_EXTRAS is set'
    echo '0 passed, 0 failed, 1 skipped'
    exit 0
fi
setting() { make -s "show-$1"; }
cppflags=$(setting CPPFLAGS) ldflags=$(setting LDFLAGS)
# Objects of sources that read no header of htslib are the same with any.
# shellcheck disable=SC2046
same=$($(setting CC) $(setting ALL_CPPFLAGS) -M $(setting LIB_SRCS) | awk '
    { rule = rule $0 }
    !/\\$/ { if (rule !~ /htslib\//) { split(rule, word); sub(/c$/, "o", word[2]); print word[2] } rule = "" }')
if [ -z "$same" ]; then
    echo 'FAILED htslibs: all sources seem to read headers of htslib'
    echo '0 passed, 1 failed'
    exit 1
fi
make -s -j"$(getconf _NPROCESSORS_ONLN)" samtools || exit 1

# repeat WHAT LINES: repeats the lines at the end of the output
repeat() {
    repeated=$repeated$(printf '\n! htslib %s\n' "$1"; printf '%s\n' "$2" | sed 's/^! //; /^$/d; s/^/!     /')
}

count() {
    echo "$1 htslib $2"
    case $1 in
    ok)      passed=$((passed + 1)) ;;
    FAILED)  failed=$((failed + 1)); repeat "$2" '' ;;
    skipped) skipped=$((skipped + 1)) ;;
    esac
}

# with BUILD ARGUMENT...: make, with the htslib of $folder, by $compiler or else the build's
# shellcheck disable=SC2046,SC2086
with() {
    build=$1
    shift
    make -s BUILD="$build" ${compiler:+CC=$compiler} CFLAGS="-O2 -g1 ${compiler:+\$(SMALL)}" ${UNITS:+"UNIT_SRCS=$(printf 'test/%s.c ' $UNITS)"} \
        CPPFLAGS="-I$folder/include $cppflags" HTS_LIBS=-lhts \
        LDFLAGS="-L$folder/lib -Wl,-rpath,$folder/lib $ldflags" "$@"
}

# take FROM TO: copies parts between build folders, because half of the work of a build is to compile identical sources.
take() {
    for object in $same; do
        mkdir -p "$(dirname "$2/$object")" && cp -p "$1/$object" "$2/$object"
    done
}

# The number before a word of $counts; 0 if the word is missing.
counted() {
    n=$(printf ' %s\n' "$counts" | sed -n "s/.* \([0-9][0-9]*\) $1.*/\1/p")
    echo "${n:-0}"
}

tests() {
    with "build-htslib-$version" check "TESTS=$tests" 2>&1 | tee "build-htslib-$version/tests.log"
    counts=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "build-htslib-$version/tests.log" | tail -n 1)
    [ -n "$counts" ] || counts='0 passed, 1 failed'
    [ "$(counted failed)" -eq 0 ] ||
        repeat "$version" "$(grep '^! ' "build-htslib-$version/tests.log" || tail -n 5 "build-htslib-$version/tests.log")"
    passed=$((passed + $(counted passed))) failed=$((failed + $(counted failed))) skipped=$((skipped + $(counted skipped)))
}

# sorts BUILD: sorts to BUILD/sorted.bam, with the htslib of this version and no other
sorts() {
    "$1/samtools" --version | grep -qx "Using htslib $version" &&
        "$1/samtools" sort --no-PG -@ 2 -o "$1/sorted.bam" test/data/NA12878.chr22.small.bam
}

# Builds them as test_affinity.py does.
# shellcheck disable=SC2046
objects_of_clang() {
    make -s -j"$(getconf _NPROCESSORS_ONLN)" CC=clang BUILD=build-clang 'CFLAGS=-O2 -g1 $(SMALL)' $(printf 'build-clang/%s ' $same)
}

has_clang() { command -v clang >/dev/null 2>&1; }

# same_bytes WHAT BUILD: checks that the build sorts to the bytes of the first build
same_bytes() {
    if ! sorts "$2"; then
        count FAILED "$1: the program runs with another htslib, or does not sort"
    elif [ -n "$first" ] && ! cmp "$2/sorted.bam" "$first/sorted.bam"; then
        count FAILED "$1: sorts otherwise than $first"
    else
        count ok "$1: is what the program runs with; it sorts to the same bytes"
    fi
    first=${first:-$2}
}

clang_too() {
    clang=build-htslib-$version-clang compiler=clang
    if ! has_clang; then
        count skipped "$version, clang: not here"
    elif ! { objects_of_clang && take build-clang "$clang" && with "$clang" -j"$(getconf _NPROCESSORS_ONLN)" "$clang/samtools"; }; then
        count FAILED "$version, clang: it does not build"
    else
        same_bytes "$version, clang" "$clang"
    fi
}

check() {
    version=$1 compiler='' objects=build
    mkdir -p "build-htslib-$version"
    if ! folder=$(sh test/build_htslib.sh "$version" 2>"build-htslib-$version/build.log"); then
        count skipped "$version: $(tail -n 1 "build-htslib-$version/build.log")"
        return
    fi
    if [ -n "$short" ] && [ -n "$first" ] && has_clang; then
        compiler=clang objects=build-clang
        objects_of_clang
    fi
    take $objects "build-htslib-$version"
    if ! with "build-htslib-$version" -j"$(getconf _NPROCESSORS_ONLN)" check-programs; then
        count FAILED "$version${compiler:+, $compiler}: it does not build"
        return
    fi
    same_bytes "$version${compiler:+, $compiler}" "build-htslib-$version"
    tests
    [ -n "$short" ] || clang_too
}

first=''
# shellcheck disable=SC2046
[ $# -gt 0 ] || set -- $(sed -n 's/.*# htslib //p' test/htslibs.txt)
for version; do
    check "$version"
done
echo "$repeated"
line="$passed passed, $failed failed"
[ "$skipped" -eq 0 ] || line="$line, $skipped skipped"
echo "$line"
[ "$failed" -eq 0 ]
