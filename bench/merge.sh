#!/bin/sh
# SPDX-License-Identifier: MIT
# Our merge beside samtools 1.24 and sambamba: lanes in coordinate order become one file.
#
#   make samtools build/gen_bam && bench/merge.sh [gather]
#
# gather: one file for each of 25 chromosomes instead, at the default level; and ours once more, with --copy-blocks.
# $LANES inputs (8) of $SIZE MB (1000) uncompressed in all are made once in $BENCH_DIR (bench/work/merge), each from a
# seed of its own. samtools is $BENCH_SAMTOOLS, else the one that bench/build_samtools.sh builds with libdeflate. The
# programs take turns in each of $ROUNDS rounds (5), after one that does not count, with each of $THREADS ("2") and at
# each of $LEVELS ("default 1 0"); ratios are medians of those of each round. Output goes to $BENCH_OUT (the same
# folder). The first outputs are compared, record by record.
set -eu
cd "$(dirname "$0")/.."
size=${SIZE:-1000} lanes=${LANES:-8} ours=${SAMTOOLS_OMP:-build/samtools}
work=${BENCH_DIR:-bench/work/merge}/$size.$lanes
mkdir -p "$work"
samtools=${BENCH_SAMTOOLS:-$(sh bench/build_samtools.sh)}

make_lane()   # NUMBER
{
    build/gen_bam --size $((size * 1000000 / lanes)) --seed "$1" --level 1 -o "$work/part" 2>/dev/null
    "$ours" sort --no-PG -T "$work/sort" -o "$work/sorted" "$work/part"
    mv "$work/sorted" "$work/lane$1.bam"
    rm "$work/part"
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

n=0
while [ "$n" -lt "$lanes" ]; do
    n=$((n + 1))
    [ -e "$work/lane$n.bam" ] || make_lane "$n"
done
exec python3 bench/merge.py merge "$ours" "$samtools" "${BENCH_OUT:-$work}" "${ROUNDS:-5}" "${THREADS:-2}" \
    "${LEVELS:-default 1 0}" "$work"/lane*.bam
