#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Times our sort beside every other one on PATH and prints a markdown report. Inputs come from build/gen_bam and are
# kept in $BENCH_DIR. The programs take turns within each round (A B C D, A B C D ...), so that a slow minute of the
# machine affects all of them. With the default sizes all sort in memory. Every setting is an environment variable,
# listed below with its default.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1

SAMTOOLS_OMP=${SAMTOOLS_OMP:-./samtools}        # ours
BENCH_SAMTOOLS=${BENCH_SAMTOOLS:-}              # the peer samtools; else from PATH
BENCH_DIR=${BENCH_DIR:-bench/work}              # inputs and results
BENCH_OUT=${BENCH_OUT:-$BENCH_DIR}              # outputs, temporary files; try /dev/shm
BENCH_SIZE=${BENCH_SIZE:-1G}                    # of each generated input, uncompressed
BENCH_SEED=${BENCH_SEED:-1}
BENCH_INPUTS=${BENCH_INPUTS:-binned full}       # generated kinds, or paths of BAM files
BENCH_PEERS=${BENCH_PEERS:-ours samtools sambamba bamsort}
BENCH_LEVELS=${BENCH_LEVELS:-default 1 0}
BENCH_ORDERS=${BENCH_ORDERS:-coordinate}        # coordinate, name (natural)
BENCH_THREADS=${BENCH_THREADS:-2}
BENCH_MEM=${BENCH_MEM:-1G}                      # per thread, as in samtools -m
BENCH_RUNS=${BENCH_RUNS:-5}                     # timed rounds, after one warm-up
BENCH_TIMEOUT=${BENCH_TIMEOUT:-3600}            # seconds for one run
BENCH_TOUCH=${BENCH_TOUCH:-}                    # MiB to touch before each run, see measure.py
export BENCH_TOUCH
BENCH_REST=${BENCH_REST:-0}                     # seconds of rest before each run

say() { printf 'bench: %s\n' "$*" >&2; }
die() { say "$*"; exit 1; }

# 1G -> 1024 (MiB)
mebibytes() {
    local n=${1%[kKmMgG]}
    case $1 in
        *[kK]) echo $((n / 1024)) ;;
        *[mM]) echo "$n" ;;
        *[gG]) echo $((n * 1024)) ;;
        *) echo $((n / 1048576)) ;;
    esac
}

# The first samtools on PATH that is not ours.
find_samtools() {
    local ours path
    [ -n "$BENCH_SAMTOOLS" ] && { echo "$BENCH_SAMTOOLS"; return; }
    ours=$(readlink -f "$SAMTOOLS_OMP")
    while read -r path; do
        [ "$(readlink -f "$path")" != "$ours" ] && { echo "$path"; return; }
    done < <(type -aP samtools)
}

find_program() {
    case $1 in
        ours) [ -x "$SAMTOOLS_OMP" ] && echo "$SAMTOOLS_OMP" ;;
        samtools) find_samtools ;;
        *) type -P "$1" ;;
    esac
}

# sort_command PROGRAM ORDER LEVEL INPUT OUTPUT: sets the array `command`.
# The programs do equal work, as far as they allow: same level, same threads, same total
# memory, natural name order, no progress output. bamsort's validation and
# checksums of every field are switched off. sambamba spills as soon as half of
# its limit is full, so it gets twice the limit (its RSS stays below the limit of
# the others); it always writes a .bai beside coordinate-sorted output, too.
sort_command() {
    local total=$((memory_mb * BENCH_THREADS)) path=${program_path[$1]}
    case $1 in
        ours | samtools)
            command=("$path" sort -@ "$BENCH_THREADS" -m "$BENCH_MEM")
            [ "$2" = name ] && command+=(-n)
            [ "$3" != default ] && command+=(-l "$3")
            command+=(-T "$work/tmp.$1" -o "$5" "$4") ;;
        sambamba)
            command=("$path" sort -t "$BENCH_THREADS" -m "$((2 * total))M" --tmpdir="$work")
            [ "$2" = name ] && command+=(-N)
            [ "$3" != default ] && command+=(-l "$3")
            command+=(-o "$5" "$4") ;;
        bamsort)
            command=("$path" "inputthreads=$BENCH_THREADS" "outputthreads=$BENCH_THREADS"
                "sortthreads=$BENCH_THREADS" "blockmb=$total" verbose=0 hash=null
                disablevalidation=1 "tmpfile=$work/tmp.bamsort")
            [ "$2" = name ] && command+=(SO=queryname)
            [ "$3" != default ] && command+=("level=$3")
            command+=("I=$4" "O=$5") ;;
        fgumi)
            command=("$path" sort -i "$4" -o "$5" --threads "$BENCH_THREADS" -m "${total}M" -T "$work")
            if [ "$2" = name ]; then command+=(--order queryname); else command+=(--order coordinate); fi
            [ "$3" != default ] && command+=(--compression-level "$3") ;;
    esac
}

# Sets `input` to the file that $1 names, generating it unless it is there and
# newer than the generator's source.
get_input() {
    case $1 in
        binned | full) input=$BENCH_DIR/$1.$BENCH_SIZE.seed$BENCH_SEED.bam ;;
        *) input=$1; [ -r "$input" ] || die "cannot read $input"; return ;;
    esac
    [ -e "$input" ] && [ -z "$(find test -name "gen_bam*" -newer "$input")" ] && return
    [ -x build/gen_bam ] || die "build/gen_bam is missing: make build/gen_bam"
    say "generating $input"
    build/gen_bam --size "$BENCH_SIZE" --qual "$1" --seed "$BENCH_SEED" \
        -@ "$(nproc)" -o "$input.part" >&2 && mv "$input.part" "$input" || die "gen_bam failed"
}

version() {
    local path=${program_path[$1]} line
    case $1 in
        ours) line="$(git describe --always --dirty 2>/dev/null) ($("$path" --version 2>/dev/null </dev/null | head -n 1))" ;;
        samtools) line=$("$path" --version | head -n 1) ;;
        *) line=$("$path" --version 2>&1 </dev/null | grep -m 1 -E '[0-9]+\.[0-9]') ;;
    esac
    printf '%s\n' "$line" | sed 's/^This is //; s/\.$//'
}

# The compression and I/O libraries a program is linked with: real file names,
# and versions where dpkg knows them.
libraries() {
    local file package
    ldd "$(readlink -f "${program_path[$1]}")" 2>/dev/null |
        awk '/libhts\.|libdeflate|libz\.|libmaus2\.|libisal|libgomp|libomp/ { print $3 }' |
        while read -r file; do
            file=$(basename "$(readlink -f "$file")")
            package=$(dpkg-query -S "*/$file" 2>/dev/null | head -n 1 | cut -d : -f 1)
            [ -n "$package" ] && file+=" ($(dpkg-query -W -f '${Version}' "$package" 2>/dev/null | head -n 1))"
            printf '%s\n' "$file"
        done | paste -sd ',' | sed 's/,/, /g'
}

# Checks that the output is complete: it has as many records as the input.
check_output() {
    local counter=${program_path[samtools]:-} n
    [ -n "$counter" ] || return 0
    [ -n "${expected[$1]:-}" ] || expected[$1]=$("$counter" view -c -@ "$BENCH_THREADS" "$1")
    n=$("$counter" view -c -@ "$BENCH_THREADS" "$2" 2>/dev/null)
    [ "$n" = "${expected[$1]}" ]
}

# one_run INPUT_NAME ORDER LEVEL PROGRAM ROUND: appends a line to $results.
one_run() {
    local out=$work/out.$4.bam cost code size=0 status=ok
    [ -n "${broken[$1.$2.$3.$4]:-}" ] && return
    sort_command "$4" "$2" "$3" "$input" "$out"
    cat "$input" >/dev/null                     # into the page cache
    sync "$work"; sleep "$BENCH_REST"
    cost=$(python3 bench/measure.py "$work/log" "$BENCH_TIMEOUT" "${command[@]}") ||
        cost=$'0\t0\t0\t127'
    code=${cost##*$'\t'}
    [ -f "$out" ] && size=$(stat -c %s "$out")
    if [ "$code" != 0 ]; then
        status="exit status $code, $(grep -v '^ *$' "$work/log" | tail -n 1 | tr '\t|' '  ' | cut -c 1-120)"
    elif [ "$5" = 0 ] && ! check_output "$input" "$out"; then
        status="records missing from the output"
    fi
    [ "$status" = ok ] || { broken[$1.$2.$3.$4]=1; say "$4 FAILED: $status"; }
    printf '%s\t' "$1" "$2" "$3" "$4" "$5" "${cost%$'\t'*}" "$size" >>"$results"
    printf '%s\n' "$status" >>"$results"
    say "$1 $2 level $3 round $5 $4: $(cut -f 1 <<<"$cost") s"
    rm -f "$out" "$out".bai "$work"/tmp.*
}

print_header() {
    local p
    printf '# Sorting benchmark\n\n'
    printf -- '- machine: %s, %s cores, %s GiB RAM, %s\n' \
        "$(awk -F ': *' '/model name/ { print $2; exit }' /proc/cpuinfo)" "$(nproc)" \
        "$(awk '/MemTotal/ { printf "%.0f", $2 / 1048576 }' /proc/meminfo)" "$(uname -sr)"
    printf -- '- date: %s; load before the first run: %s\n' "$(date -u +%FT%TZ)" "$(cut -d ' ' -f 1-3 /proc/loadavg)"
    printf -- '- %s timed rounds after a warm-up, programs in turn within a round; %s threads; memory %s a thread; output on %s; memory touched before each run: %s MiB\n' \
        "$BENCH_RUNS" "$BENCH_THREADS" "$BENCH_MEM" "$(stat -f -c %T "$BENCH_OUT")" "${BENCH_TOUCH:-0}"
    printf -- '- wall/samtools and size/samtools: median of the ratios within each round\n'
    for p in "${programs[@]}"; do
        printf -- '- %s: %s `%s`; libraries: %s\n' "$p" "$(version "$p")" "${program_path[$p]}" "$(libraries "$p")"
    done
    for p in "${skipped[@]}"; do printf -- '- %s: not found, skipped\n' "$p"; done
    printf '\n'
}

print_inputs() {
    local name size fits
    for name in $BENCH_INPUTS; do
        get_input "$name"
        size=$(gzip -dc "$input" 2>/dev/null | wc -c)
        # sorting in memory takes up to 1.5 times the records' own size
        fits='in memory'
        ((size * 3 / 2 > memory_mb * BENCH_THREADS * 1048576)) && fits='**through temporary files**'
        printf -- '- input %s: %s bytes, %s bytes uncompressed, sorted %s\n' "$name" \
            "$(stat -c %s "$input")" "$size" "$fits"
    done
    printf '\n'
}

print_commands() {
    local p level order
    printf 'Command lines:\n\n```\n'
    for order in $BENCH_ORDERS; do
        for level in $BENCH_LEVELS; do
            for p in "${programs[@]}"; do
                sort_command "$p" "$order" "$level" IN.bam OUT.bam
                printf '%s\n' "${command[*]}"
            done
        done
    done
    printf '```\n\n'
}

run_all() {
    local name order level round p
    for name in $BENCH_INPUTS; do
        get_input "$name"
        for order in $BENCH_ORDERS; do
            for level in $BENCH_LEVELS; do
                for ((round = 0; round <= BENCH_RUNS; round++)); do
                    for p in "${programs[@]}"; do
                        one_run "$(basename "$name" .bam)" "$order" "$level" "$p" "$round"
                    done
                done
            done
        done
    done
}

declare -A program_path expected broken
programs=() skipped=() command=()
type -P python3 >/dev/null || die "python3 is needed"
mkdir -p "$BENCH_DIR" "$BENCH_OUT" || exit 1
work=$(mktemp -d "$BENCH_OUT/bench.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
results=$BENCH_DIR/results.tsv
: >"$results"
memory_mb=$(mebibytes "$BENCH_MEM")
for p in $BENCH_PEERS; do
    path=$(find_program "$p")
    if [ -n "$path" ]; then
        program_path[$p]=$path
        programs+=("$p")
    else
        skipped+=("$p")
        say "$p: not found, skipped"
    fi
done
[ ${#programs[@]} -gt 0 ] || die "nothing to run"
for order in $BENCH_ORDERS; do
    [[ $order == coordinate || $order == name ]] || die "unknown order: $order"
done

print_header
print_inputs
print_commands
run_all
python3 bench/report.py "$results"
