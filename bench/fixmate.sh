#!/bin/sh
# SPDX-License-Identifier: MIT
# Compares our fixmate with samtools 1.24 (-m). The input is grouped by name.
#
#   make samtools build/gen_bam && bench/fixmate.sh
#
# $SIZE MB (1000) uncompressed are made and collated once in $BENCH_DIR (bench/work/fixmate). Everything else is as in
# bench/merge.sh: samtools, $ROUNDS, $THREADS, $LEVELS, $BENCH_OUT. The first outputs are compared, record by record.
set -eu
cd "$(dirname "$0")/.."
size=${SIZE:-1000} ours=${SAMTOOLS_OMP:-build/samtools}
work=${BENCH_DIR:-bench/work/fixmate}/$size
mkdir -p "$work"
samtools=${BENCH_SAMTOOLS:-$(sh bench/build_samtools.sh)}
if [ ! -e "$work/grouped.bam" ]; then
    build/gen_bam --size "${size}000000" --seed 1 --level 1 -o "$work/made" 2>/dev/null
    "$ours" collate --no-PG -o "$work/part.bam" "$work/made"
    mv "$work/part.bam" "$work/grouped.bam"
    rm "$work/made"
fi
in=$work/grouped.bam
# fgumi only takes secondary and supplementary records from its own zipper: if it is on PATH, the input has none.
if [ "${WHAT:-}" = chain ] && command -v fgumi >/dev/null; then
    in=$work/primary.bam
    [ -e "$in" ] || { "$samtools" view -F 0x900 -b -o "$in.part" "$work/grouped.bam" && mv "$in.part" "$in"; }
fi
exec python3 bench/merge.py "${WHAT:-fixmate}" "$ours" "$samtools" "${BENCH_OUT:-$work}" "${ROUNDS:-5}" \
    "${THREADS:-2}" "${LEVELS:-default 1 0}" "$in"
