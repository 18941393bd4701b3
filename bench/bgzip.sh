#!/bin/sh
# SPDX-License-Identifier: MIT
# Compares our bgzip with htslib's (and with crabz, if it is on PATH), both ways: speed and size of four kinds of data.
#
#   make samtools build/gen_bam && bench/bgzip.sh [KIND...]
#
# KINDs: bam sam fastq vcf. Each is $SIZE MB (200) and is made once in $BENCH_DIR (bench/work/bgzip): BAM bytes, SAM and
# FASTQ of a file of ../shared/real ($REAL), grown from a seed; VCF by a seeded generator. The programs take turns in
# each of $ROUNDS rounds (5), after one that does not count, with each of $THREADS ("1 2"); a ratio is the median of the
# ratios of all rounds. Output goes to $BENCH_OUT (the same folder).
set -eu
cd "$(dirname "$0")/.."
work=${BENCH_DIR:-bench/work/bgzip} real=${REAL:-../shared/real/NA12878.chr22.s.bam} size=${SIZE:-200}
ours=${SAMTOOLS_OMP:-build/samtools} samtools=${BENCH_SAMTOOLS:-/usr/bin/samtools}
mkdir -p "$work"
[ $# -gt 0 ] || set -- bam sam fastq vcf

# The first $size MB
first() { head -c "${size}000000"; }

make_data()   # KIND
{
    grown=$work/grown.bam
    [ "$1" = vcf ] || [ -e "$grown" ] ||
        { build/gen_bam --grow "$real" --size $((size * 3 / 2))M --seed 1 --level 1 -o "$work/part" && "$ours" sort --no-PG -l 1 -o "$grown" "$work/part"; rm -f "$work/part"; }
    case $1 in
        bam) gzip -dc "$grown" 2>/dev/null | first ;;
        sam) "$samtools" view -h "$grown" 2>/dev/null | first ;;
        fastq) "$samtools" fastq "$grown" 2>/dev/null | first ;;
        vcf) python3 bench/bgzip.py vcf "$size" ;;
        *) echo "bgzip.sh: no such kind: $1" >&2; return 1 ;;
    esac >"$work/part" || [ -s "$work/part" ]
    mv "$work/part" "$work/data.$1"
}

for kind; do
    [ -e "$work/data.$kind" ] || make_data "$kind"
done
exec python3 bench/bgzip.py table "$ours" "$work" "${BENCH_OUT:-$work}" "${ROUNDS:-5}" "${THREADS:-1 2}" "$@"
