#!/bin/sh
# SPDX-License-Identifier: MIT
# Compares our merge with samtools 1.24 and sambamba: lanes in coordinate order become one file.
#
#   make samtools build/gen_bam && bench/merge.sh [gather]
#
# gather: the inputs are instead one file for each of 25 chromosomes, and the level is the default. Ours also runs with
# --copy-blocks.
# $LANES inputs (8) of $SIZE MB (1000) uncompressed in all are made once in $BENCH_DIR (bench/work/merge): reads of one
# sample, dealt out by the last digits of their names. samtools is $BENCH_SAMTOOLS, or else the one that
# bench/build_samtools.sh builds with libdeflate. The programs take turns in each of $ROUNDS rounds (5), after one that
# does not count, with each of $THREADS ("2") and at each of $LEVELS ("default 1 0"); a ratio is the median of the
# ratios of all rounds. Output goes to $BENCH_OUT (the same folder). The first outputs are compared, record by record.
set -eu
cd "$(dirname "$0")/.."
size=${SIZE:-1000} lanes=${LANES:-8} ours=${SAMTOOLS_OMP:-build/samtools}
work=${BENCH_DIR:-bench/work/merge}/$size.$lanes
mkdir -p "$work"
samtools=${BENCH_SAMTOOLS:-$(sh bench/build_samtools.sh)}

# Lane n has the reads whose names end with n. With 8 lanes a fifth of the reads is left over, so that many more are
# made.
make_lanes()
{
    last=$((lanes - 1)) all=1
    while [ "$all" -lt "$lanes" ]; do
        all=$((all * 10))
    done
    build/gen_bam --size $((size * 1000000 / lanes * all)) --sorted --seed 1 --level 1 -o "$work/part" 2>/dev/null
    while [ "$last" -ge 0 ]; do
        end=$(printf "%0$((${#all} - 1))d" "$last")
        "$samtools" view --no-PG -e "qname =~ \"$end\$\"" -b -o "$work/made" "$work/part"
        mv "$work/made" "$work/lane$end.bam"
        last=$((last - 1))
    done
    rm "$work/part"
    touch "$work/all"
}

if [ "${1:-}" = gather ]; then
    work=${BENCH_DIR:-bench/work/merge}/$size.chromosomes
    mkdir -p "$work"
    if [ ! -e "$work/whole" ]; then
        build/gen_bam --size "${size}M" --sorted -o "$work/part" 2>/dev/null
        "$samtools" index "$work/part"
        "$samtools" idxstats "$work/part" | cut -f 1 | grep -v '^[*]' | while read -r name; do
            "$samtools" view --no-PG -o "$work/$name.bam" "$work/part" "$name"
        done
        mv "$work/part" "$work/whole"
    fi
    exec python3 bench/merge.py merge "$ours" "$samtools" "${BENCH_OUT:-$work}" "${ROUNDS:-5}" "${THREADS:-2}" gather \
        "$work"/*.bam
fi

[ -e "$work/all" ] || make_lanes
exec python3 bench/merge.py merge "$ours" "$samtools" "${BENCH_OUT:-$work}" "${ROUNDS:-5}" "${THREADS:-2}" \
    "${LEVELS:-default 1 0}" "$work"/lane*.bam
