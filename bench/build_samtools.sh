#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds samtools 1.24, the newest version, for comparison. An archive of pysam has its sources and those of htslib
# 1.24. The script links samtools with libdeflate, as distributions do, and keeps it under
# ${XDG_CACHE_HOME:-~/.cache}/samtools-omp, outside the tree. It prints the path of the program. It needs what htslib
# needs, with development files: zlib, bzip2, xz, libcurl, libdeflate.
#
# LIBDEFLATE=FOLDER in the environment: the sources of another libdeflate (the crate libdeflate-sys has those of each
# version), which is built and linked instead of the installed one.
#
# "static" links samtools statically and without libcurl, so it reads no URLs. With a folder, the script instead puts
# four programs there, linked in that way: samtools-1.24, our samtools-omp, gen_bam and timed. bench/scaling16.sh needs
# no others on a machine without compilers or libraries.
#
#   BENCH_SAMTOOLS=$(sh bench/build_samtools.sh) bench/bench.sh
#   sh bench/build_samtools.sh static
#   sh bench/build_samtools.sh FOLDER
set -eu
cd -- "$(dirname -- "$0")/.."
into=${1:-} static=${1:+-static}
[ "$into" != static ] || into=''
version=1.24
cc=${CC:-$(make -s show-CC)}
cache=${XDG_CACHE_HOME:-${HOME:?}/.cache}/samtools-omp
libdeflate=${LIBDEFLATE:+$(cd -- "$LIBDEFLATE" && pwd)}
# Another libdeflate is identified by its sources, not by their place.
sources() {
    [ -z "$libdeflate" ] || cat "$libdeflate"/libdeflate.h "$libdeflate"/lib/*.[ch] "$libdeflate"/lib/*/*.[ch]
}

program=$cache/samtools-$version$static-$({ $cc --version; uname -sm; sources; } | cksum | cut -d' ' -f1)
[ -n "$into" ] || [ ! -x "$program" ] || { echo "$program"; exit 0; }

mkdir -p "$cache"
scratch=$(mktemp -d "$cache/build.XXXXXX")
trap 'rm -rf -- "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# step WHAT COMMAND...: its output is shown if it fails
step() {
    what=$1
    shift
    "$@" >"$scratch/log" 2>&1 </dev/null || {
        tail -n 20 "$scratch/log" >&2
        printf 'samtools %s: %s\n' "$version" "$what" >&2
        exit 1
    }
}

# build_libdeflate FOLDER: makes there the one file that the linker needs.
build_libdeflate() {
    mkdir "$1"
    n=0
    for source in "$libdeflate"/lib/*.c "$libdeflate"/lib/*/*.c; do
        n=$((n + 1))
        step 'libdeflate does not build' "$cc" -O2 -c -I"$libdeflate" -o "$1/$n.o" "$source"
    done
    step 'ar failed' ar rcs "$1/libdeflate.a" "$1"/*.o
}

# The archive lacks the viewer, which needs curses. --version would print how it was built.
write_missing() {
    echo 'int bam_tview_main(void) { return 1; }' >"$samtools/no_tview.c"
    echo "#define SAMTOOLS_VERSION \"$version\"" >"$samtools/version.h"
    for name in CC CPPFLAGS CFLAGS LDFLAGS HTSDIR LIBS CURSES_LIB; do
        echo "#define SAMTOOLS_$name \"\""
    done >"$samtools/samtools_config_vars.h"
    : >"$samtools/config.h"
}

requirement=$(grep "# htslib $version\$" test/htslibs.txt)
step 'pip could not fetch its sources; is a Python package index within reach?' sh test/fetch_pysam.sh "$requirement" "$scratch"
samtools=$(echo "$scratch"/pysam-*/samtools) htslib=$(echo "$scratch"/pysam-*/htslib)
[ -z "$libdeflate" ] || build_libdeflate "$scratch/libdeflate"
if [ -n "$static" ]; then
    htslib=$(sh test/build_htslib.sh "$version" static)
    include=$htslib/include archive=$htslib/lib/libhts.a libs=$(cat "$htslib/lib/libhts.libs")
else
    step 'the configure of htslib failed' env -C "$htslib" ./configure -q CC="$cc" CFLAGS='-O2 -g' --with-libdeflate \
        CPPFLAGS="${libdeflate:+-I$libdeflate}" LDFLAGS="${libdeflate:+-L$scratch/libdeflate}"
    step 'htslib does not build' make -C "$htslib" -j"$(getconf _NPROCESSORS_ONLN)" lib-static htslib_static.mk
    include=$htslib archive=$htslib/libhts.a libs=$(sed -n 's/^HTSLIB_static_LIBS *= *//p' "$htslib/htslib_static.mk")
fi
write_missing
rm -f "$samtools"/*.pysam.c
# shellcheck disable=SC2086
step 'it does not build' "$cc" -O2 -w -include "$samtools/samtools_config_vars.h" -I"$samtools" -I"$samtools/lz4" -I"$include" \
    -o "$scratch/samtools" "$samtools"/*.c "$samtools/lz4/lz4.c" "$archive" \
    ${libdeflate:+"-L$scratch/libdeflate"} $libs -lm -lpthread $static
if [ -n "$into" ]; then
    step 'our own does not build' make -j"$(getconf _NPROCESSORS_ONLN)" BUILD=build-static CC="$cc" CPPFLAGS="-I$include" \
        LDFLAGS=-static HTS_LIBS="$archive $libs" build-static/samtools build-static/gen_bam build-static/timed
    mkdir -p "$into"
    cp "$scratch/samtools" "$into/samtools-$version"
    cp build-static/samtools "$into/samtools-omp"
    cp build-static/gen_bam build-static/timed "$into"
    strip "$into/samtools-$version" "$into/samtools-omp" "$into/gen_bam" "$into/timed"
    echo "$into"
    exit 0
fi
[ -z "$static" ] || strip "$scratch/samtools"
mv "$scratch/samtools" "$program"
echo "$program"
