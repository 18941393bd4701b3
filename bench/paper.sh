#!/bin/sh
# SPDX-License-Identifier: MIT
# Repeats the experiments of Weeks and Luecke, "Optimization of SAMtools sorting using OpenMP tasks" (2017), at the size
# of this machine: samtools 1.3.1, the samtools on PATH if there is one, and ours sort the same records with 1, 2, 4,
# ... threads, in memory and through temporary files. Writes PAPER.md, paper.csv (every run) and paper-*.svg;
# bench/paper.py does the runs.
#
# samtools 1.3.1 is built once, from the sources in an archive of pysam, and kept with the htslibs of the tests, outside
# the tree.
#
# usage: bench/paper.sh
#
# PAPER_SIZE          uncompressed size of the input (default: 1/64 of the free memory, 256M to 1G)
# PAPER_THREADS       numbers of threads (default: 1 2 4 ... and the number of CPUs)
# PAPER_TRIALS        number of sorts by each program in each way (default 3)
# PAPER_DIR           input, outputs, temporary files (default bench/work)
# PAPER_OUT           folder of the results (default bench/work)
# SAMTOOLS_131        an existing samtools 1.3.1; then none is built
# SAMTOOLS_UPSTREAM   the newer samtools (default: the one on PATH)
set -eu
cd -- "$(dirname -- "$0")/.."
export PAPER_DIR="${PAPER_DIR:-bench/work}" PAPER_OUT="${PAPER_OUT:-bench/work}" PAPER_TRIALS="${PAPER_TRIALS:-3}"
pysam='pysam==0.9.1.4 --hash=sha256:56ee7f8d07fa9d78b5c00dfbf335c95edbfed1518a2c14f8f108e58599922dc4'
build=${BUILD:-build}

say() { printf 'paper: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# quietly COMMAND...: its output is shown if it fails
quietly() {
    "$@" >"$scratch/log" 2>&1 </dev/null || {
        tail -n 20 "$scratch/log" >&2
        die "samtools 1.3.1 cannot be built; SAMTOOLS_131=PATH names one that is there"
    }
}

# ---- samtools 1.3.1 ----

# pysam has turned main() into a function, and standard streams into variables. Only the sort is needed here.
write_main() {
    cat <<'END'
#include <stdio.h>
#include <string.h>
FILE *pysam_stdout, *pysam_stderr;
const char *pysam_stdout_fn;
int bam_sort(int argc, char *argv[]);
int main(int argc, char *argv[])
{
    pysam_stdout = stdout;
    pysam_stderr = stderr;
    if (argc > 1 && strcmp(argv[1], "sort") == 0)
        return bam_sort(argc - 1, argv + 1);
    return argc > 1 && strcmp(argv[1], "--version") == 0 ? puts("samtools 1.3.1") < 0 : 1;
}
END
}

build_131() {
    say 'building samtools 1.3.1, once'
    quietly sh test/fetch_pysam.sh "$pysam" "$scratch"
    source=$scratch/pysam-0.9.1.4
    quietly grep -q '"1.3.1"' "$source/samtools/version.h"
    quietly make -C "$source/htslib" CC="$cc" CFLAGS='-O2 -w -fcommon' lib-static
    write_main >"$scratch/main.c"
    # shellcheck disable=SC2086
    quietly $cc -std=gnu99 -O2 -w -fcommon -I"$source/samtools" -I"$source/htslib" -o "$scratch/done" "$scratch/main.c" \
        "$source/samtools/bam_sort.c.pysam.c" "$source/samtools/sam_opts.c.pysam.c" "$source/htslib/libhts.a" -lz -lm -lpthread
    mv "$scratch/done" "$1"
}

# Sets `old`: the program. The name in the cache holds a number made from compiler and machine, like that of an htslib.
find_131() {
    old=${SAMTOOLS_131:-}
    [ -z "$old" ] || return 0
    cc=${CC:-$(make -s show-CC)}
    cache=${XDG_CACHE_HOME:-${HOME:?}/.cache}/samtools-omp
    old=$cache/samtools-1.3.1-$({ $cc --version; uname -sm; } | cksum | cut -d' ' -f1)
    mkdir -p "$cache"
    scratch=$(mktemp -d "$cache/build.XXXXXX")
    trap 'rm -rf -- "$scratch"' EXIT
    [ -x "$old" ] || build_131 "$old"
}

# ---- what is sorted, and how ----

# 64 to 1024 MiB in steps of 64
default_size() {
    awk '/^MemAvailable/ { m = int($2 / 65536 / 64) * 64; print (m < 256 ? 256 : m > 1024 ? 1024 : m) "M" }' /proc/meminfo
}

default_threads() {
    n=1
    while [ "$n" -lt "$cpus" ]; do
        printf '%d ' "$n"
        n=$((2 * n))
    done
    echo "$cpus"
}

# Makes reads in the order of an aligner's output: templates lie at random places, so a sort moves every record. A seed
# always makes the same file.
make_input() {
    input=$PAPER_DIR/paper.$size.bam
    if [ -e "$input" ] && [ -z "$(find test -name 'gen_bam*' -newer "$input")" ]; then
        return
    fi
    say "generating $input"
    "$build/gen_bam" --size "$size" --seed 1 -@ "$cpus" -o "$input.part" 2>/dev/null
    mv "$input.part" "$input"
}

[ "$(uname -s)" = Linux ] || die 'runs on Linux only: it looks at threads in /proc'
cpus=$(getconf _NPROCESSORS_ONLN)
mkdir -p "$PAPER_DIR" "$PAPER_OUT"
make -s -j"$cpus" BUILD="$build" samtools tools
find_131
new=${SAMTOOLS_UPSTREAM:-$(command -v samtools || :)}
if [ -n "$new" ] && "$new" --version | grep -qiE 'samtools-omp|^samtools 1\.3\.1$'; then
    new=''
fi
size=${PAPER_SIZE:-$(default_size)}
make_input
export PAPER_THREADS="${PAPER_THREADS:-$(default_threads)}"
# shellcheck disable=SC2086
python3 bench/paper.py "$size" "$input" "$old" ${new:+"$new"} "$build/samtools"
