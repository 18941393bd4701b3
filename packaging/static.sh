#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes one tarball that runs on any Linux of its processor: the program without shared libraries, with htslib 1.24 in
# it, manuals, completion and module files. The program reads no URLs (its htslib has no libcurl). A commit gives the
# same bytes each time, with the same compiler and libraries. Needs the static libraries of zlib, libdeflate, LZ4,
# jansson, lzma and bzip2 (Debian's -dev packages have them), and a Python package index for the sources of htslib.
#
#   packaging/static.sh [FOLDER]     makes FOLDER/samtools-omp-VERSION-linux-x86_64.tar.gz (default: .) and its .sha256
#
# HOST=aarch64-linux-gnu builds with that cross compiler. EMULATOR, such as qemu-aarch64-static, runs the result once.
set -eu
cd -- "$(dirname -- "$0")/.."
folder=$(mkdir -p "${1:-.}" && cd "${1:-.}" && pwd)
CC=${CC:-${HOST:+$HOST-}gcc}
export CC
processor=$($CC -dumpmachine | cut -d- -f1)
version=$(make -s show-VERSION)
name=samtools-omp-$version-linux-$processor
build=build-static-$processor
scratch=$(mktemp -d "${TMPDIR:-/tmp}/samtools-omp.XXXXXX")
trap 'rm -rf -- "$scratch"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

htslib=$(HOST=${HOST:-} EMULATOR=${EMULATOR:-} sh test/build_htslib.sh 1.24 static)
# The result must not depend on the place and the time of the build.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || date +%s)
export SOURCE_DATE_EPOCH
set -- BUILD="$build" CC="$CC" CFLAGS="-O2 -ffile-prefix-map=$PWD=." CPPFLAGS="-isystem $htslib/include" LDFLAGS=-static \
    HTS_LIBS="-L$htslib/lib -lhts $(cat "$htslib/lib/libhts.libs")"
make -s -j"$(getconf _NPROCESSORS_ONLN)" "$@" "$build/samtools" 2>"$scratch/warnings" || { cat "$scratch/warnings" >&2; exit 1; }
# glibc warns of libraries that it loads at run time, for names of hosts and users. The program looks up neither.
grep -v -e 'in statically linked applications requires at runtime' -e 'in function' "$scratch/warnings" >&2 || :
make -s "$@" INSTALL_PROGRAM="install -s --strip-program=${HOST:+$HOST-}strip" prefix=/ DESTDIR="$scratch/$name" install >/dev/null
# People unpack it anywhere, so its module files take the folder from their own path.
modules=$scratch/$name/share/samtools-omp/modulefiles/samtools-omp/$version
sed -i -e '1a set root [file normalize [file dirname $ModulesCurrentModulefile]/../../../..]' -e 's|{//*\(.*\)}|$root/\1|' "$modules"
sed -i -e '1a local root = myFileName():match("(.*)/share/samtools%-omp/")' -e 's|\[\[//*\(.*\)\]\]|root .. "/\1"|' "$modules.lua"
cp LICENSE NEWS.md "$scratch/$name/"
${EMULATOR:-} "$scratch/$name/bin/samtools-omp" --version >/dev/null
tar -C "$scratch" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=ustar -cf - "$name" |
    gzip -n9 >"$scratch/$name.tar.gz"
(cd "$scratch" && sha256sum "$name.tar.gz" >"$name.tar.gz.sha256")
mv -f "$scratch/$name.tar.gz" "$scratch/$name.tar.gz.sha256" "$folder/"
echo "$folder/$name.tar.gz"
