#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds a version of htslib that htslibs.txt lists, for tests. The sources are in an archive of pysam, which pip
# fetches. The result is kept under ${XDG_CACHE_HOME:-~/.cache}/samtools-omp, outside the tree: include/, lib/. Its name
# there has the version and a number made from compiler and machine. Prints the folder; exit status 1 and one line on
# standard error if htslib cannot be built.
#
# "static" instead makes lib/libhts.a for a program without shared libraries: without libcurl, so without URLs. Then
# lib/libhts.libs names the libraries that it needs.
#
# usage: test/build_htslib.sh VERSION [static]
set -eu
cd -- "$(dirname -- "$0")/.."
version=$1 kind=${2:-shared}
cc=${CC:-$(make -s show-CC)}
cache=${XDG_CACHE_HOME:-${HOME:?}/.cache}/samtools-omp
folder=$cache/htslib-$version${2:+-$2}-$({ $cc --version; uname -sm; } | cksum | cut -d' ' -f1)

mkdir -p "$cache"
scratch=$(mktemp -d "$cache/build.XXXXXX")
trap 'rm -rf -- "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

die() {
    printf 'htslib %s: %s\n' "$version" "$*" >&2
    exit 1
}

# step WHAT COMMAND...: its output is shown if it fails
step() {
    what=$1
    shift
    "$@" >"$scratch/log" 2>&1 </dev/null || {
        tail -n 20 "$scratch/log" >&2
        die "$what"
    }
}

# libs_of FOLDER: the libraries that a program is linked with
libs_of() {
    case $kind in
    static) echo "-static -L$1/lib -lhts $(cat "$1/lib/libhts.libs" 2>/dev/null)" ;;
    *)      echo "-L$1/lib -Wl,-rpath,$1/lib -lhts" ;;
    esac
}

# runs FOLDER: checks that a program can be linked with the htslib there, and runs with that one. EMULATOR starts a
# program of another processor.
runs() {
    printf '#include <stdio.h>\n#include <htslib/hts.h>\nint main(void) { return puts(hts_version()) < 0; }\n' >"$scratch/probe.c"
    # shellcheck disable=SC2046
    $cc -I"$1/include" -o "$scratch/probe" "$scratch/probe.c" $(libs_of "$1") 2>"$scratch/log" &&
        [ "$(${EMULATOR:-} "$scratch/probe" 2>/dev/null)" = "$version" ]
}

fetch() {
    requirement=$(grep "# htslib $version\$" test/htslibs.txt) || die 'not in test/htslibs.txt'
    step 'pip could not fetch its sources; is a Python package index within reach?' \
        sh test/fetch_pysam.sh "$requirement" "$scratch"
    source=$(echo "$scratch"/pysam-*/htslib)
}

# without OPTION HEADER: the option, if the compiler does not find the header
without() {
    echo "#include <$2>" | $cc -E - >/dev/null 2>&1 || echo "$1"
}

# configured OPTION...
configured() {
    # shellcheck disable=SC2046
    step 'its configure failed' env -C "$source" ./configure -q CC="$cc" CFLAGS=-O2 --disable-s3 --disable-gcs \
        $(without --disable-bz2 bzlib.h) $(without --disable-lzma lzma.h) "$@"
    mkdir "$scratch/done" "$scratch/done/include" "$scratch/done/lib"
    cp -R "$source/htslib" "$scratch/done/include"
}

build_static() {
    configured --disable-libcurl --disable-plugins --with-libdeflate ${HOST:+--host="$HOST"}
    step 'it does not build' make -C "$source" -j"$(getconf _NPROCESSORS_ONLN)" lib-static htslib_static.mk
    cp "$source/libhts.a" "$scratch/done/lib"
    sed -n 's/^HTSLIB_static_LIBS = //p' "$source/htslib_static.mk" >"$scratch/done/lib/libhts.libs"
    [ -s "$scratch/done/lib/libhts.libs" ] || die 'htslib_static.mk does not name its libraries'
}

build_shared() {
    # shellcheck disable=SC2046
    configured $(without --disable-libcurl curl/curl.h)
    step 'it does not build' make -C "$source" -j"$(getconf _NPROCESSORS_ONLN)" lib-shared
    cp -P "$source"/libhts.so* "$scratch/done/lib"
    # The library is made from the same objects, for check_names.sh: a static library defines more names.
    find "$source" -name '*.pico' -exec ar -q "$scratch/done/lib/libhts.a" {} + 2>/dev/null
}

if ! runs "$folder"; then
    [ "$(uname -s)" = Linux ] || die 'built on Linux only'
    fetch
    "build_$kind"
    runs "$scratch/done" || die 'what was built does not run'
    rm -rf "$folder"
    mv "$scratch/done" "$folder"
fi
echo "$folder"
