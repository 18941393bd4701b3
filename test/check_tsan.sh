#!/bin/sh
# SPDX-License-Identifier: MIT
# Looks for data races with ThreadSanitizer. Needs clang, LLVM's OpenMP runtime, and Archer, which comes with the
# runtime and reports to the sanitizer what the runtime synchronises. `make check-tsan` runs all of it; "short" is the
# part for which continuous integration has time. One line per test, "ok", "FAILED" or "skipped"; exit status 1 if one
# failed.
#
# usage: test/check_tsan.sh [short]
set -u
cd -- "$(dirname -- "$0")/.." || exit 1
short=${1:-}
build=build-tsan
work=$build/tsan

# Sets `why` to the reason why the check cannot run here. If it can, `why` is empty and `archer` is the library.
find_tools() {
    why='no clang here'
    command -v clang >/dev/null 2>&1 || return
    archer=$(clang -print-file-name=libarcher.so)
    [ -e "$archer" ] || archer=$(clang -print-resource-dir)/../../libarcher.so
    why='no libarcher.so here (Debian: libomp-dev)'
    [ -e "$archer" ] || return
    cat >"$work/probe.c" <<'END'
#include <htslib/sam.h>
int main(void)
{
    int n = 0;
    #pragma omp parallel reduction(+ : n)
    n++;
    return n < 1 || !hts_version();
}
END
    why='clang cannot link -fopenmp -fsanitize=thread (Debian: libclang-rt-dev, libomp-dev)'
    clang -fopenmp -fsanitize=thread -o "$work/probe" "$work/probe.c" -lhts >"$work/probe.log" 2>&1 || return
    why='no llvm-symbolizer here, which tsan.supp takes names from (Debian: llvm)'
    command -v llvm-symbolizer >/dev/null 2>&1 || return
    why='Archer does not start with this OpenMP runtime'
    OMP_TOOL_LIBRARIES=$archer ARCHER_OPTIONS=verbose=1 "$work/probe" 2>&1 | grep -q 'Archer detected' && why=''
}

failed() {
    echo "FAILED tsan $*"
    touch "$work/failed"
}

# run NAME COMMAND...
run() {
    name=$1
    shift
    if "$@" >"$work/log" 2>&1; then
        echo "ok tsan $name"
    else
        status=$?
        head -n 100 "$work/log"
        failed "$name (exit status $status)"
    fi
}

unit() {
    run "unit_$1" "$build/unit_$1"
}

# same NAME: the output in $work/out equals the previous one of this order
same() {
    if ! [ -e "$work/want" ]; then
        mv "$work/out" "$work/want"
    else
        cmp "$work/out" "$work/want" || failed "$1: other bytes"
    fi
}

# sorts NAME OPTION...: in memory and not, from a file and a pipe, with few threads and more
sorts() {
    order=$1
    shift
    rm -f "$work/want"
    for threads in 2 17; do                  # 16 and more: tasks come in batches
        for arena in '' 262144; do
            [ -n "$short" ] && [ "$threads$arena" != 17262144 ] && continue
            export SAMTOOLS_OMP_ARENA=$arena
            [ -n "$arena" ] || unset SAMTOOLS_OMP_ARENA
            what="$order, $threads threads${arena:+, on disk}"
            run "$what, file" "$build/samtools" sort --no-PG -l 1 -@ $threads "$@" -o "$work/out" "$work/in.bam"
            same "$what, file"
            [ -n "$short" ] && continue
            # shellcheck disable=SC2002
            cat "$work/in.bam" | run "$what, pipe" "$build/samtools" sort --no-PG -l 1 -@ $threads "$@" -o "$work/out"
            same "$what, pipe"
        done
    done
    unset SAMTOOLS_OMP_ARENA
}

rm -rf "$work"
mkdir -p "$work"
find_tools
if [ -n "$why" ]; then
    echo "skipped tsan: $why"
    exit 0
fi
if ! make -s -j"$(getconf _NPROCESSORS_ONLN)" CC=clang BUILD=$build CFLAGS='-O1 -g1 $(SMALL) -fsanitize=thread' tsan-programs; then
    echo 'FAILED tsan: it does not build'
    exit 1
fi
export OMP_TOOL_LIBRARIES="$archer" OMP_WAIT_POLICY=passive    # otherwise the program starts itself again
# unit_latch forks and then starts threads.
export TSAN_OPTIONS="ignore_noninstrumented_modules=1 die_after_fork=0 suppressions=$PWD/test/tsan.supp"
$build/gen_bam --size 4M --level 1 -o "$work/in.bam" 2>/dev/null
unit bgzf_source
unit sam_reader
unit spill_store
sorts coordinate
sorts n -n
sorts N -N
sorts picard --picard
sorts 't NM' -t NM
sorts 't RG, n' -t RG -n
sorts template --template-coordinate
sorts M -M
sorts 'M, K 25' -M -K 25
sorts index --write-index
sorts 'two inputs' --add-input "$work/in.bam"
sorts 'to SAM' -O sam
mv "$work/want" "$work/in.bam"
sorts 'from SAM'
run 'check, SAM' "$build/samtools" sort --check -@ 3 "$work/in.bam"
run 'check' "$build/samtools" sort --check -@ 3 "$work/want"
if [ -z "$short" ]; then
    run 'to CRAM' "$build/samtools" sort --no-PG -@ 3 -O cram,no_ref=1 -o "$work/in.cram" "$work/in.bam"
    mv "$work/in.cram" "$work/in.bam"
    sorts 'from CRAM'
    for name in bgzf_sink latch merge_ring out_pipe output_block sam_text spill; do unit $name; done
fi
[ ! -e "$work/failed" ]
