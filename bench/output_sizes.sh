#!/bin/sh
# SPDX-License-Identifier: MIT
# How large our output is, of samtools' one, and how fast our encoder and libdeflate are on it:
#
#   make samtools tools build/deflate_bench && bench/output_sizes.sh [FILE.bam...]
#
# Without files, those of ../shared/real. Each as it is and grown to $SIZE (100M; 0: not), in
# each of $ORDERS (coordinate name), at each of $LEVELS (1 default). $BENCH_SAMTOOLS: samtools
# (/usr/bin/samtools). MB/s are deflate_bench's, of the first 6 MB, best of $ROUNDS (5).
set -eu
cd "$(dirname "$0")/.."
samtools=${BENCH_SAMTOOLS:-/usr/bin/samtools} ours=${SAMTOOLS_OMP:-build/samtools}
work=$(mktemp -d) && trap 'rm -rf "$work"' EXIT
[ $# -gt 0 ] || set -- ../shared/real/*.bam

speed()   # FILE CODECS: MB/s of libdeflate and of ours
{
    build/deflate_bench -m 6 -r "${ROUNDS:-5}" -c "$2" "$1" | awk '{ printf " %s |", $3 }'
}

row()     # NAME INPUT ORDER LEVEL
{
    flags='' codecs=6d
    [ "$3" = coordinate ] || flags=-n
    [ "$4" = default ] || { flags="$flags -l $4"; codecs=1f; }
    # shellcheck disable=SC2086
    "$ours" sort --no-PG $flags -o "$work/ours.bam" "$2" 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
    # shellcheck disable=SC2086
    "$samtools" sort --no-PG $flags -o "$work/theirs.bam" "$2" 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
    printf '| %s | %s | %s | %s | %s |' "$1" "$3" "$4" "$(stat -c %s "$work/ours.bam")" \
        "$(echo "$(stat -c %s "$work/ours.bam") $(stat -c %s "$work/theirs.bam")" | awk '{ printf "%.4f", $1 / $2 }')"
    speed "$work/ours.bam" "$codecs"
    echo
}

"$samtools" --version | sed -n '1,2p' | sed 's/^/Against: /'
echo '| file | order | level | bytes | ours / samtools | libdeflate, MB/s | ours, MB/s |'
echo '|---|---|---|---:|---:|---:|---:|'
for file; do
    name=$(basename "$file" .bam)
    if [ "${SIZE:-100M}" != 0 ]; then
        build/gen_bam --grow "$file" --size "${SIZE:-100M}" --seed 1 --level 1 -o "$work/grown.bam" 2>"$work/log"
    fi
    for order in ${ORDERS:-coordinate name}; do
        for level in ${LEVELS:-1 default}; do
            row "$name" "$file" "$order" "$level"
            [ "${SIZE:-100M}" = 0 ] || row "$name, grown" "$work/grown.bam" "$order" "$level"
        done
    done
done
