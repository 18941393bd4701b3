#!/bin/sh
# SPDX-License-Identifier: MIT
# Compares ours with samtools 1.24 on a machine with many cores that has nothing but sh, awk and coreutils:
#
#   sh bench/build_samtools.sh FOLDER                                  # here: four programs, linked statically
#   PROGRAMS=FOLDER SECONDS_IN_ALL=360 sh scaling16.sh >table.md       # there
#
# Makes $SIZE (1G) of reads, uncompressed, and as much again as 8 lanes in coordinate order. Then it runs sort at the
# default level, -l 1, -u and -n, merge, collate, fixmate -m, markdup, and sormadup beside the pipe of samtools'
# commands, with each of $THREADS ("16 1 8 4 2"), and 4 GiB of memory in all for a sort. There are at most $ROUNDS (3)
# rounds; no run begins after $SECONDS_IN_ALL (360) seconds. The table shows the least wall time of each, its CPU time
# and peak memory (of a pipe: of its largest process). Files are in $WORK (a folder in /dev/shm if 10 GB are free there,
# else in /tmp) and are removed. $ONLY, an extended regular expression, selects rows by their names. The folder $REPORTS
# gets the reports of our runs, the last of each row. $OURS, $SAMTOOLS, $GEN_BAM and $TIMED name single programs.
set -eu
ours=${OURS:-$PROGRAMS/samtools-omp} theirs=${SAMTOOLS:-$PROGRAMS/samtools-1.24}
gen_bam=${GEN_BAM:-$PROGRAMS/gen_bam} timed=${TIMED:-$PROGRAMS/timed}
size=${SIZE:-1G}
until=$(($(date +%s) + ${SECONDS_IN_ALL:-360}))
if [ -z "${WORK:-}" ]; then
    free=$(df -k /dev/shm 2>/dev/null | awk 'NR == 2 { print int($4 / 1000000) }')
    WORK=/tmp
    [ "${free:-0}" -lt 10 ] || WORK=/dev/shm
fi
[ -z "${REPORTS:-}" ] || mkdir -p "$REPORTS"
work=$(mktemp -d "$WORK/scaling16.XXXXXX")
trap 'rm -rf -- "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# size_in_bytes: the size $size as bytes
size_in_bytes() {
    echo "$size" | awk '{ n = $1 + 0; u = $1; sub(/^[0-9.]*/, "", u)
        printf "%.0f", n * (u == "G" ? 1000000000 : u == "M" ? 1000000 : 1) }'
}

make_inputs() {
    bytes=$(size_in_bytes)
    for lane in 1 2 3 4 5 6 7 8; do
        "$gen_bam" --size $((bytes / 8)) --sorted --seed "$lane" -o "$work/lane$lane.bam" 2>/dev/null &
    done
    "$gen_bam" --size "$bytes" --seed 9 -@ 4 -o "$work/in.bam" 2>/dev/null
    wait
    "$ours" sort -@ 16 --no-PG -l 1 -o "$work/sorted.bam" "$work/in.bam"
    "$ours" collate -@ 16 --no-PG -o "$work/grouped.bam" "$work/sorted.bam"
    "$ours" fixmate -m -@ 16 --no-PG -u "$work/grouped.bam" "$work/fixed.bam"
    "$ours" sort -@ 16 --no-PG -l 1 -o "$work/marked.bam" "$work/fixed.bam"
    rm "$work/fixed.bam"
    cat "$work"/*.bam >/dev/null
}

# time_one NAME THREADS LABEL COMMAND...: does nothing when the time is used up
time_one() {
    name=$1 threads=$2 label=$3
    shift 3
    left=$((until - $(date +%s)))
    [ "$left" -gt 0 ] && echo "$name" | grep -Eq -- "${ONLY:-.}" || return 0
    if timeout $((left + 60)) "$timed" "$work/cost" "$@" >"$work/log" 2>&1; then
        echo "$name;$threads;$label;$(tr ' ' ';' <"$work/cost")" >>"$work/costs"
    else
        echo "FAILED: $*: $(tail -n 1 "$work/log")" >&2
    fi
    rm -f "$work/out.bam"
}

# report_of NAME THREADS: the option that writes a report
report_of() { [ -z "${REPORTS:-}" ] || echo "--report=$REPORTS/$(echo "$1" | tr -c 'a-z0-9\n' _).$2.json"; }

# run NAME THREADS ARGUMENT...: both programs in turn
# shellcheck disable=SC2046
run() {
    what=$1 n=$2
    shift 2
    time_one "$what" "$n" ours "$ours" "$@" $(report_of "$what" "$n")
    time_one "$what" "$n" theirs "$theirs" "$@"
}

# chain NAME THREADS FILE COMMAND: sormadup of FILE, and samtools' commands, the first of which is COMMAND
# shellcheck disable=SC2046
chain() {
    time_one "$1" "$2" ours "$ours" sormadup -@ "$2" --total-memory 6G -T "$work/tmp" -o "$work/out.bam" "$3" \
        $(report_of "$1" "$2")
    time_one "$1" "$2" theirs sh -c "$4 | $theirs sort -u -@ $2 -m $((4096 / $2))M -T $work/tmp - |
        $theirs markdup -@ $2 -T $work/tmp2 - $work/out.bam"
}

# shellcheck disable=SC2086
runs() {
    n=$1 out=$work/out.bam
    export SAMTOOLS_OMP_THREADS="$n"             # in total, whatever -@ says for ours
    sort="sort -@ $n -m $((4096 / n))M -T $work/tmp -o $out"
    run 'sort' "$n" $sort "$work/in.bam"
    run 'sort -l 1' "$n" $sort -l 1 "$work/in.bam"
    run 'sort -u' "$n" $sort -u "$work/in.bam"
    run 'sort -n' "$n" $sort -n "$work/in.bam"
    run 'merge of 8' "$n" merge -f -c -p -@ "$n" -o "$out" "$work"/lane?.bam
    run 'merge -l 1' "$n" merge -f -c -p -l 1 -@ "$n" -o "$out" "$work"/lane?.bam
    run 'merge -u' "$n" merge -f -c -p -u -@ "$n" -o "$out" "$work"/lane?.bam
    run 'collate' "$n" collate -@ "$n" -o "$out" -T "$work/tmp" "$work/sorted.bam"
    run 'fixmate -m' "$n" fixmate -m -@ "$n" "$work/grouped.bam" "$out"
    run 'markdup' "$n" markdup -T "$work/tmp" -@ "$n" "$work/marked.bam" "$out"
    run 'markdup -u' "$n" markdup -u -T "$work/tmp" -@ "$n" "$work/marked.bam" "$out"
    chain 'sormadup, grouped' "$n" "$work/grouped.bam" "$theirs fixmate -m -u -@ $n $work/grouped.bam -"
    chain 'sormadup, sorted' "$n" "$work/sorted.bam" \
        "$theirs collate -O -u -@ $n $work/sorted.bam $work/tmp3 | $theirs fixmate -m -u -@ $n - -"
}

table() {
    cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
    printf '%s uncompressed, %s, %s CPUs, files in %s, %s\n\n' "$size" "$cpu" "$(getconf _NPROCESSORS_ONLN)" "$WORK" \
        "$(date -u +%F)"
    printf '%s' '| | `-@` | ours: wall s | CPU s | peak RSS MiB | samtools: wall s | CPU s | peak RSS MiB '
    echo '| ours / samtools | ours, times as fast as with 1 |'
    echo '|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|'
    sed 's/wall=//; s/cpu=//; s/rss_kb=//' "$work/costs" | awk -F';' '
        { key = $1 ";" $2 ";" $3 }
        !($1 in seen) { seen[$1]; names[++n] = $1 }
        !(key in wall) || $4 < wall[key] { wall[key] = $4 + 0; cpu[key] = $5; rss[key] = $6 / 1024 }
        function cells(key) {
            return key in wall ? sprintf("%.2f | %.1f | %.0f", wall[key], cpu[key], rss[key]) : " | | "
        }
        function part(a, b) { return a > 0 && b > 0 ? sprintf("%.2f", a / b) : "" }
        END {
            for (i = 1; i <= n; i++)
                for (t = 1; t <= 1024; t++) {
                    o = names[i] ";" t ";ours"; s = names[i] ";" t ";theirs"
                    if (o in wall || s in wall)
                        printf "| %s | %d | %s | %s | %s | %s |\n", names[i], t, cells(o), cells(s),
                            part(wall[o], wall[s]), part(wall[names[i] ";1;ours"], wall[o])
                }
        }'
}

make_inputs
: >"$work/costs"
round=0
while [ "$round" -lt "${ROUNDS:-3}" ] && [ "$(date +%s)" -lt "$until" ]; do
    for n in ${THREADS:-16 1 8 4 2}; do
        runs "$n"
    done
    round=$((round + 1))
done
table
