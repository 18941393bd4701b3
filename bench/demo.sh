#!/bin/sh
# SPDX-License-Identifier: MIT
# Sorts some hundred MB of reads with our samtools, and with that of the system if there is one. Prints first the times
# and whether the records are the same, then the details. `./bootstrap.sh demo` builds everything and runs this.
#
# usage: bench/demo.sh BUILD FOLDER     the programs in BUILD are used; FOLDER keeps what is made
#
# DEMO_SIZE           uncompressed size of the input (default 300M)
# DEMO_ROUNDS         number of sorts by each program (default 3)
# SAMTOOLS_UPSTREAM   the samtools to compare with (default: the first on PATH that is not samtools-omp)
set -eu
cd -- "$(dirname -- "$0")/.."
build=$1 demo=$2
size=${DEMO_SIZE:-300M} rounds=${DEMO_ROUNDS:-3}
ours=./samtools
[ "$build" = build ] || ours=$build/samtools

step() { printf '\n== %s\n' "$*"; }
die() { printf 'demo: %s\n' "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }
cores() { nproc 2>/dev/null || sysctl -n hw.ncpu 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1; }
megabytes() { awk -v b="$1" 'BEGIN { printf "%.0f MB", b / 1e6 }'; }
file_size() { wc -c <"$1" | tr -d ' '; }

# field N of the tab-separated line of check_sorted
field() { printf '%s\n' "$1" | cut -f "$2"; }

# ---- the other samtools ----

# is_other PROGRAM: a samtools, and not ours under any name
is_other() {
    [ -f "$1" ] && [ -x "$1" ] && "$1" --version >"$demo/version.txt" 2>/dev/null </dev/null &&
        grep -q '^samtools [0-9]' "$demo/version.txt" && ! grep -qi samtools-omp "$demo/version.txt"
}

# Sets `other`, empty if there is none, and its version in words, `other_name`.
find_other() {
    other=${SAMTOOLS_UPSTREAM:-}
    if [ -n "$other" ]; then
        is_other "$other" || die "SAMTOOLS_UPSTREAM=$other is not another samtools that runs"
    else
        rest=$PATH:
        while [ -n "$rest" ] && [ -z "$other" ]; do
            folder=${rest%%:*} rest=${rest#*:}
            ! is_other "${folder:-.}/samtools" || other=${folder:-.}/samtools
        done
    fi
    [ -z "$other" ] || other_name=$(sed -n '1s/^\(samtools [^ ]*\).*/\1/p' "$demo/version.txt")
    rm -f "$demo/version.txt"
}

how_to_get_one() {
    if have apt-get; then echo 'apt-get install samtools'
    elif have dnf; then echo 'dnf install samtools'
    elif have apk; then echo 'apk add samtools'
    elif have brew; then echo 'brew install samtools'
    else echo 'conda install -c conda-forge -c bioconda samtools'
    fi
}

# ---- sorting ----

make_input() {
    data=test/data/NA12878.chr22.small.bam
    key="$data $(cksum <$data) size=$size seed=1"
    if [ -e "$demo/in.bam" ] && [ "$(cat "$demo/in.key" 2>/dev/null)" = "$key" ]; then
        return
    fi
    rm -f "$demo/in.key"
    "$build/gen_bam" --grow $data --size "$size" --seed 1 -o "$demo/in.bam" 2>"$demo/log.txt" || die "$(cat "$demo/log.txt")"
    printf '%s\n' "$key" >"$demo/in.key"
}

# sort_by PROGRAM OUTPUT TIMES [OPTION]...: its cost becomes one more line of TIMES
sort_by() {
    program=$1 output=$2 times=$3
    shift 3
    "$build/timed" "$demo/timed.txt" "$program" sort -@ "$threads" "$@" -o "$output" "$demo/in.bam" 2>"$demo/log.txt" || return 1
    cat "$demo/timed.txt" >>"$times"
}

sort_by_us() {
    sort_by "$ours" "$demo/out.bam" "$@" || die "the sort failed: $(tail -n 3 "$demo/log.txt")"
}

# Continues without the other one if it fails.
sort_by_other() {
    sort_by "$other" "$demo/other.bam" "$demo/other.txt" && return
    printf '(%s could not sort it: %s) ' "$other" "$(tail -n 1 "$demo/log.txt")"
    other=''
}

# In turn, so that a slow minute of the machine affects both.
sort_in_turn() {
    rm -f "$demo/ours.txt" "$demo/other.txt"
    round=0
    while [ "$round" -lt "$rounds" ]; do
        sort_by_us "$demo/ours.txt"
        [ -z "$other" ] || sort_by_other
        round=$((round + 1))
        printf '.'
    done
    echo
}

# median TIMES NAME
median() {
    tr ' =' '\n ' <"$1" | sed -n "s/^$2 //p" | sort -n | sed -n "$(((rounds + 1) / 2))p"
}

# range TIMES: the shortest and the longest wall time
range() {
    tr ' =' '\n ' <"$1" | sed -n 's/^wall //p' | sort -n | sed -n '1p;$p' | paste -s -d ' ' - | sed 's/ / to /; s/$/ s/'
}

# Succeeds if other programs used the CPUs: the report of the first sort says so, or one run took half as long again as
# another.
machine_is_busy() {
    grep -q 'other programs on these CPUs' "$demo/report.html" ||
        range "$demo/ours.txt" | awk '{ exit !($3 > 1.5 * $1) }'
}

# ---- what came of it ----

# Sets `same`: the sentence about the records of both.
compare() {
    theirs=$("$build/check_sorted" "$demo/other.bam") || die "$other wrote what htslib cannot read"
    if [ "$("$build/check_sorted" --same "$demo/out.bam" "$demo/other.bam")" = same ]; then
        same='the same records in the same order'
    elif [ "$(field "$theirs" 2,4)" = "$(field "$out" 2,4)" ] && [ "$(field "$theirs" 6)" = sorted ]; then
        same='the same records, those of one position in another order'
    else
        same="other records: $(field "$theirs" 2) of $(field "$in" 2), $(field "$theirs" 6)"
    fi
}

# row NAME TIMES OUTPUT
row() {
    awk -v name="$1" -v wall="$(median "$2" wall)" -v cpu="$(median "$2" cpu)" -v kb="$(median "$2" rss_kb)" \
        -v bytes="$(file_size "$3")" \
        'BEGIN { printf "  %-24s %8.2f %8.2f %11.0f %11.1f\n", name, wall, cpu, kb * 1024 / 1e6, bytes / 1e6 }'
}

headline() {
    wall=$(median "$demo/ours.txt" wall)
    if [ -n "$other" ]; then
        awk -v a="$wall" -v b="$(median "$demo/other.txt" wall)" -v what="$other_name: $same" \
            'BEGIN { printf "  %.1f x faster than %s\n", b / a, what }'
    else
        awk -v n="$(field "$in" 2)" -v bytes="$(field "$in" 3)" -v s="$wall" \
            'BEGIN { printf "  %d records sorted in %.2f seconds, %.0f MB/s of uncompressed data: all there, in order\n", n, s, bytes / 1e6 / s }'
    fi
}

result() {
    printf '\n=====================================================================\n'
    headline
    printf '\n  %-24s %8s %8s %11s %11s\n' '' 'wall s' 'CPU s' 'memory MB' 'output MB'
    row "$our_name" "$demo/ours.txt" "$demo/out.bam"
    if [ -n "$other" ]; then
        row "$other_name" "$demo/other.txt" "$demo/other.bam"
    else
        echo "  (no samtools on PATH to compare with: $(how_to_get_one))"
    fi
    ! machine_is_busy || echo '  (other programs on these CPUs took some of the time: compare CPU seconds)'
    echo '====================================================================='
}

verdict() {
    printf '  %-48s ' "$1"
    if [ "$2" = "$3" ]; then
        echo "yes ($2)"
    else
        echo "NO: $2, not $3"
    fi
}

verdicts() {
    verdict 'records in coordinate order' "$(field "$out" 6)" sorted
    verdict '@HD says so' "$(field "$out" 5)" coordinate
    verdict 'as many records as in the input' "$(field "$out" 2)" "$(field "$in" 2)"
    verdict 'the same records (checksum over their content)' "$(field "$out" 4)" "$(field "$in" 4)"
    [ -z "$other" ] || printf '  %-48s %s\n' "compared one by one with $other_name" "$same"
}

next_step() { printf '  %-52s # %s\n' "$1" "$2"; }

# Commands that work here unchanged.
next_steps() {
    next_step "$ours sort -@ $threads -o $demo/out.bam $demo/in.bam" 'the same again; try a file of your own'
    if [ -n "$other" ]; then
        next_step "$ours view -c $demo/out.bam" "runs $other"
    fi
    if [ "$(id -u)" -eq 0 ]; then
        next_step 'make install' 'as samtools-omp, into /usr/local/bin'
    elif have sudo; then
        next_step 'sudo make install' 'as samtools-omp, into /usr/local/bin'
    else
        # shellcheck disable=SC2016
        next_step 'make install prefix=$HOME/.local' 'as samtools-omp, into $HOME/.local/bin'
    fi
    # shellcheck disable=SC2016
    next_step 'eval "$(samtools-omp --env)"' 'from now on, samtools is samtools-omp in this shell'
    next_step './bootstrap.sh check' 'tests, some 4 minutes'
}

mkdir -p "$demo"
threads=$(cores)
our_name="samtools-omp $("$ours" --version | sed -n 's/.*[Ss]amtools-omp[^0-9]*\([0-9][0-9.]*[0-9]\).*/\1/p' | head -n 1)"
find_other

step "Input: real reads from test/data, grown to $size"
make_input
in=$("$build/check_sorted" "$demo/in.bam")
echo "$demo/in.bam: $(field "$in" 2) records, $(megabytes "$(field "$in" 3)") uncompressed," \
    "$(megabytes "$(file_size "$demo/in.bam")") on disk, $(field "$in" 6)"

step "Sort${other:+, in turn with $other}: $rounds times, -@ $threads"
sort_by_us "$demo/warm.txt" --report="$demo/report.html"
sort_in_turn
out=$("$build/check_sorted" "$demo/out.bam")
[ -z "$other" ] || compare
checks=$(verdicts)
case $checks in
*' NO: '*) printf '%s\n' "$checks"; die 'the result is wrong' ;;
esac
result

step "Details: medians of $rounds runs of"
echo "  $ours sort -@ $threads -o $demo/out.bam $demo/in.bam ($(range "$demo/ours.txt"))"
[ -z "$other" ] || echo "  $other sort -@ $threads -o $demo/other.bam $demo/in.bam ($(range "$demo/other.txt"))"
printf '%s\n' "$checks"
echo "  where the time went, in a browser: $demo/report.html"
echo "  the first records of $demo/out.bam:"
"$build/check_sorted" -n 3 "$demo/out.bam" | cut -c 1-100 | sed 's/^/    /'
rm -f "$demo/other.bam" "$demo/timed.txt" "$demo/log.txt" "$demo/warm.txt"

step 'Next'
next_steps
