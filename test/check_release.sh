#!/bin/sh
# SPDX-License-Identifier: MIT
# What a release is made of, checked before it is published: the static tarball is made twice, has the same bytes, and runs
# where nothing else is. `make check-release`; as root, since an empty root needs chroot. One line per test, "ok", "FAILED"
# or "skipped"; exit status 1 if one failed.
set -u
cd -- "$(dirname -- "$0")/.." || exit 1
failed=''
scratch=$(mktemp -d "${TMPDIR:-/tmp}/samtools-omp.XXXXXX") || exit 1
trap 'rm -rf -- "$scratch"' EXIT

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

# An empty root, with the tarball and one file. Its output must have the records of the build here.
alone() {
    root=$scratch/root
    mkdir -p "$root/tmp" && tar -xzf "$scratch"/one/*.tar.gz -C "$root" --strip-components=1 &&
        cp test/data/NA12878.chr22.small.bam "$root/tmp/in.bam" || return 1
    for command in 'sort -@ 2 -n' 'collate -@ 2' 'sort -@ 2 -l 1'; do
        # shellcheck disable=SC2086
        chroot "$root" /bin/samtools-omp $command --no-PG -o /tmp/out.bam /tmp/in.bam &&
            build/samtools $command --no-PG -o "$scratch/out.bam" "$root/tmp/in.bam" &&
            cmp "$root/tmp/out.bam" "$scratch/out.bam" || return 1
    done
    chroot "$root" /bin/samtools-omp sort -O cram,no_ref=1 -o /tmp/out.cram /tmp/in.bam && [ -s "$root/tmp/out.cram" ]
}

if ! git diff --quiet HEAD; then
    echo 'skipped release: there are changes that are not committed'
    exit 0
fi
check 'the static tarball has the same bytes twice' twice
if [ "$(id -u)" -eq 0 ]; then
    check 'it runs in an empty root, and writes the same bytes' alone
else
    echo 'skipped release: an empty root takes root'
fi
[ -z "$failed" ]
