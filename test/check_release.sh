#!/bin/sh
# SPDX-License-Identifier: MIT
# Checks the parts of a release before it is published. The static tarball is made twice, has the same bytes, and runs
# where nothing else is: in an empty root, beside busybox, and in the systems that check_root.sh made (ROOTS, as there).
# `make check-release` must run as root, since that needs chroot. One line per test, "ok", "FAILED" or "skipped"; exit
# status 1 if one failed.
set -u
cd -- "$(dirname -- "$0")/.." || exit 1
failed=''
scratch=$(mktemp -d "${TMPDIR:-/tmp}/samtools-omp.XXXXXX") || exit 1
trap 'rm -rf -- "$scratch"' EXIT
input=test/data/NA12878.chr22.small.bam

# check NAME COMMAND...
check() {
    name=$1
    shift
    if "$@" >"$scratch/log" 2>&1; then
        echo "ok release: $name"
    else
        tail -n 20 "$scratch/log"
        echo "FAILED release: $name"
        failed=1
    fi
}

# The second build has another folder: the program must not contain the path of either.
twice() {
    packaging/static.sh "$scratch/one" && git worktree add -q --detach "$scratch/tree" HEAD &&
        (cd "$scratch/tree" && packaging/static.sh "$scratch/two")
    status=$?
    git worktree remove --force "$scratch/tree" 2>/dev/null
    [ $status -eq 0 ] && cmp "$scratch"/one/*.tar.gz "$scratch"/two/*.tar.gz
}

# same_as_here ROOT: checks that the tarball in that root writes the bytes that the build here writes.
same_as_here() {
    rm -rf "$1/opt/samtools-omp"
    mkdir -p "$1/opt/samtools-omp" && tar -xzf "$scratch"/one/*.tar.gz -C "$1/opt/samtools-omp" --strip-components=1 || return 1
    for command in 'sort -@ 2 -n --no-PG -' 'collate -@ 2 --no-PG -O -' 'sormadup -@ 2 --no-PG -' \
        'stats -' 'flagstat -' 'bgzip -c'; do
        # shellcheck disable=SC2086
        chroot "$1" /opt/samtools-omp/bin/samtools-omp $command <"$input" >"$scratch/there" &&
            build/samtools $command <"$input" >"$scratch/here" && cmp "$scratch/there" "$scratch/here" || return 1
    done
}

empty_root() {
    mkdir "$scratch/empty" && same_as_here "$scratch/empty"
}

# A shell and nothing else, as in small images. CRAM has other bytes with another htslib, so its records are compared.
busybox_root() {
    lines='samtools collate --no-PG -O -u - | samtools fixmate --no-PG -m -u - - | samtools sort -@ 2 -m 1M -O cram,no_ref=1 - |
        samtools sort -O sam -'
    mkdir -p "$scratch/busybox/bin" "$scratch/busybox/tmp" && cp "$busybox" "$scratch/busybox/bin/sh" && same_as_here "$scratch/busybox" &&
        TMPDIR=/tmp chroot "$scratch/busybox" /bin/sh -c 'eval "$(/opt/samtools-omp/bin/samtools-omp --env)"'"
            $lines" <"$input" >"$scratch/there.sam" &&
        PATH=$PWD/build:$PATH sh -c "$lines" <"$input" >"$scratch/here.sam" && [ -s "$scratch/here.sam" ] &&
        grep -v '^@' "$scratch/there.sam" >"$scratch/there" && grep -v '^@' "$scratch/here.sam" | cmp - "$scratch/there"
}

# The module files find the folder that the tarball was unpacked to.
modules() {
    folder=$scratch/empty/opt/samtools-omp
    file=$(ls "$folder"/share/samtools-omp/modulefiles/samtools-omp/*[!a]) &&
        printf 'foreach name {prepend-path append-path module-whatis} {proc $name args {puts $args}}\nset ModulesCurrentModulefile %s\nsource %s\n' \
            "$file" "$file" | tclsh >"$scratch/here" && grep -qxF "PATH $folder/libexec/samtools-omp" "$scratch/here" &&
        printf 'function f(...) print(...) end help, whatis, prepend_path, append_path = f, f, f, f
            function myFileName() return "%s" end dofile("%s")\n' "$file.lua" "$file.lua" | lua - >"$scratch/here" &&
        grep -qF "$folder/libexec/samtools-omp" "$scratch/here"
}

if ! git diff --quiet HEAD; then
    echo 'skipped release: there are changes that are not committed'
    exit 0
fi
check 'the static tarball has the same bytes twice' twice
if [ "$(id -u)" -eq 0 ]; then
    check 'it runs in an empty root, and writes the same bytes' empty_root
    busybox=$(command -v busybox) && ! ldd "$busybox" >/dev/null 2>&1 &&
        check 'it runs beside busybox, and writes the same bytes' busybox_root
    for root in "${ROOTS:-/tmp/samtools-omp-roots}"/*/; do
        [ ! -e "$root/made" ] || check "it runs in $root, and writes the same bytes" same_as_here "$root"
    done
    if command -v tclsh >/dev/null && command -v lua >/dev/null; then
        check 'its module files name their own folder' modules
    else
        echo 'skipped release: module files take tclsh and lua'
    fi
else
    echo 'skipped release: an empty root takes root'
fi
[ -z "$failed" ]
