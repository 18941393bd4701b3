#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Compares our sort with samtools 1.24, by default and at -l 1, on fourteen kinds of data:
#
#   make samtools build/gen_bam && bench/heldout.sh > report.md
#
# Each file has $SIZE MB (500) uncompressed. The files are made once, from $SEED (9990) on, in $BENCH_DIR
# (bench/work/heldout). Generated data are new with each seed. Real files (../shared/real) are grown to that size, and
# so are those of kinds.py, which is slow. Everything else is as in bench/bench.sh: $BENCH_RUNS (2), $BENCH_LEVELS,
# $BENCH_SAMTOOLS.
set -euo pipefail
cd "$(dirname "$0")/.."
megabytes=${SIZE:-500} seed=${SEED:-9990}
[[ $megabytes =~ ^[1-9][0-9]*$ ]] || { echo "heldout: SIZE is a number of MB, not '$megabytes'" >&2; exit 1; }
work=${BENCH_DIR:-bench/work/heldout}
files=$work/${megabytes}M.seed$seed
real=../shared/real
mkdir -p "$files"
inputs=()

# make_input NAME OPTION...: a file of gen_bam's
make_input() {
    local file=$files/$1.bam
    shift
    if [ ! -e "$file" ]; then
        build/gen_bam --size "${megabytes}M" --level 1 "$@" -o "$file.part" 2>/dev/null
        mv "$file.part" "$file"
    fi
    inputs+=("$file")
}

# make_covered NAME COVERAGE OPTION...: reads of 150 bases, which take some 500 bytes each
make_covered() {
    make_input "$1" --genome $((megabytes * 1000000 * 150 / 495 / $2)) --seed "$seed" "${@:3}"
}

grow_real() {
    if [ -e "$real/$2.bam" ]; then
        make_input "$1" --grow "$real/$2.bam" --seed "$seed"
    else
        echo "heldout: no $real/$2.bam, skipped" >&2
    fi
}

# grow_kind NAME KIND
grow_kind() {
    local small=$files/$1.small
    [ -e "$files/$1.bam" ] || python3 bench/kinds.py "$2" "$seed" -s 16 | build/samtools sort -u -o "$small" -
    make_input "$1" --grow "$small" --seed "$seed"
    rm -f "$small"
}

make_covered 4_levels_coverage_5 5
make_covered 4_levels_coverage_30 30
make_covered 40_levels_coverage_3 3 --qual full
grow_kind OQ 'OQ, 8 levels'
grow_kind UMIs 'UMIs, 4 levels'
grow_kind UMIs_40_levels 'UMIs, 40 levels'
grow_kind single_cell 'single cell, 8 levels'
grow_kind bisulfite 'bisulfite, 4 levels'
grow_kind Nanopore_MM_ML 'Nanopore, 50 levels, MM/ML'
grow_real NovaSeq NA12878.chr22.s
grow_real HiSeq NA12878_S1.chr20.10_10p1mb
grow_real RNA test.rna.paired_end.sorted.chr6
grow_real HiFi HG002-SRF.m84011_220902_175841_s1.GRCh38
grow_real Nanopore_moves dorado-draft
BENCH_DIR=$work BENCH_INPUTS=${inputs[*]} BENCH_LEVELS=${BENCH_LEVELS:-default 1} BENCH_RUNS=${BENCH_RUNS:-2} \
    BENCH_PEERS=${BENCH_PEERS:-ours samtools} BENCH_SAMTOOLS=${BENCH_SAMTOOLS:-$(sh bench/build_samtools.sh)} \
    exec bench/bench.sh
