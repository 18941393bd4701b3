#!/bin/sh
# SPDX-License-Identifier: MIT
# Compares our sormadup with other programs that mark duplicates. All begin with records that are grouped by name. They
# fill in the mates' fields, sort the records by coordinate, and give duplicates their flag.
#
#   make samtools build/gen_bam && bench/chain.sh
#
# The others are the three commands in a pipe, of samtools 1.24 and of ours ("steps"), and those of bamsormadup
# (biobambam2), sambamba, elPrep and fgumi that are on PATH. sambamba, elPrep and bamsormadup need no tags of the mates;
# elPrep has no levels, so it runs at the default one only. The input and everything else are as in bench/fixmate.sh;
# memory is that of the largest process. The first outputs must have all records, and those of samtools and ours must be
# equal. Lines on standard error report how many duplicates each has marked.
set -eu

# steps: the three commands in a pipe. Ours get this many threads in total, whatever -@ says, because samtools'
# value does not count the first one.
steps() {
    export SAMTOOLS_OMP_THREADS="$threads"
    "$path" fixmate -@ "$threads" -m -u "$in" - | "$path" sort -@ "$threads" -u -T "$out.tmp" - |
        "$path" markdup -@ "$threads" -T "$out.tmp" ${level:+-O "bam,level=$level"} - "$out"
}

# run PROGRAM: its path is in $path
run() {
    case $1 in
        ours) "$path" sormadup -@ "$threads" ${level:+-l "$level"} -T "$out.tmp" -o "$out" "$in" ;;
        samtools | steps) steps ;;
        bamsormadup)
            "$path" threads="$threads" level="${level:--1}" SO=coordinate tmpfile="$out.tmp" <"$in" >"$out" ;;
        sambamba)
            "$path" sort -t "$threads" -l 0 --tmpdir="$out.tmp" -o "$out.1" "$in"
            "$path" markdup -t "$threads" ${level:+-l "$level"} --tmpdir="$out.tmp" "$out.1" "$out" ;;
        elprep)
            "$path" filter "$in" "$out" --mark-duplicates --sorting-order coordinate --nr-of-threads "$threads" ;;
        fgumi)
            "$path" sort -i "$in" -o "$out.1" --order template-coordinate --threads "$threads"
            "$path" dedup -i "$out.1" -o "$out.2" --no-umi -n --include-unmapped --threads "$threads"
            "$path" sort -i "$out.2" -o "$out" --order coordinate --threads "$threads" \
                ${level:+--compression-level "$level"} ;;
    esac
    rm -rf "$out".[12]* "$out".tmp*
}

if [ "${1:-}" = run ]; then
    path=$3 threads=$4 level=${5#default} out=$6 in=$7
    run "$2"
    exit
fi
cd "$(dirname "$0")/.."
WHAT=chain exec sh bench/fixmate.sh
