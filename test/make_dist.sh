#!/bin/sh
# SPDX-License-Identifier: MIT
# Makes the tarball of a release from the committed files, with ./configure in it, and FOLDER/NAME.tar.gz.sha256 beside
# it. A commit gives the same bytes every time, with the same git, autoconf and gzip.
# usage: test/make_dist.sh NAME FOLDER
set -eu
name=$1 folder=$2
git rev-parse --verify -q HEAD >/dev/null || { echo 'make dist: this is no checkout of git' >&2; exit 1; }
scratch=$(mktemp -d "${TMPDIR:-/tmp}/samtools-omp.XXXXXX")
trap 'rm -rf -- "$scratch"' EXIT
mkdir "$scratch/tree"
git archive HEAD configure.ac base/version.h | tar -x -C "$scratch/tree"
(cd "$scratch/tree" && autoconf)
git archive --format=tar --prefix="$name/" --add-file="$scratch/tree/configure" HEAD >"$scratch/$name.tar"
gzip -n9 "$scratch/$name.tar"
(cd "$scratch" && { sha256sum "$name.tar.gz" 2>/dev/null || shasum -a 256 "$name.tar.gz"; } >"$name.tar.gz.sha256")
mv -f "$scratch/$name.tar.gz" "$scratch/$name.tar.gz.sha256" "$folder/"
echo "$folder/$name.tar.gz"
