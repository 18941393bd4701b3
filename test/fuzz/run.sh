#!/bin/sh
# SPDX-License-Identifier: MIT
# Fuzzes each target for some seconds, two at a time, with libFuzzer: `make fuzz FUZZ_SECONDS=n`. The inputs that it
# learns stay in build-fuzz/corpus, and those that show a fault in build-fuzz/found. When the fault is fixed, its input
# goes to test/fuzz/cases/TARGET, where `make check` replays it. One line per target, "ok", "FAILED" or "skipped"; exit
# status 1 if one failed.
#
# usage: test/fuzz/run.sh SECONDS [TARGET]...
set -u
cd -- "$(dirname -- "$0")/../.." || exit 1
seconds=$1
shift
build=build-fuzz
[ $# -gt 0 ] || set -- $(ls test/fuzz/fuzz_*.c | sed 's,test/fuzz/fuzz_,,; s,\.c$,,')

# fuzz TARGET
fuzz() {
    log=$build/$1.log
    mkdir -p "$build/corpus/$1" "$build/seeds/$1" "$build/found"
    [ ! -d "test/fuzz/cases/$1" ] || cp "test/fuzz/cases/$1"/* "$build/seeds/$1"
    # Memory: more than any target may allocate, for any sizes that its input states.
    if "$build/fuzz_$1" -max_total_time="$seconds" -timeout=30 -rss_limit_mb=1024 -malloc_limit_mb=512 -close_fd_mask=3 \
        -artifact_prefix="$build/found/$1-" "$build/corpus/$1" "$build/seeds/$1" >"$log" 2>&1; then
        echo "ok fuzz $1: $(sed -n 's/^Done \([0-9]*\) runs.*/\1/p' "$log") inputs"
    else
        grep -a -v -e '^#[0-9]' -e '^INFO' "$log" | tail -n 60
        echo "FAILED fuzz $1"
    fi
}

mkdir -p $build
echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return n && !d; }' >$build/probe.c
if ! clang -fsanitize=fuzzer,address,undefined -fopenmp -o $build/probe $build/probe.c -lhts >$build/probe.log 2>&1; then
    echo 'skipped fuzz: no clang with libFuzzer and OpenMP here (Debian: clang, libclang-rt-dev, libomp-dev)'
    exit 0
fi
if ! make -s -j"$(getconf _NPROCESSORS_ONLN)" CC=clang BUILD=$build fuzz-programs \
    CFLAGS='-O1 -g1 $(SMALL) -fno-omit-frame-pointer -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all'; then
    echo 'FAILED fuzz: it does not build'
    exit 1
fi
python3 test/fuzz/seeds.py $build/seeds test/data/*.bam || exit 1
: >$build/fuzz.txt
while [ $# -gt 0 ]; do
    fuzz "$1" >>$build/fuzz.txt &
    [ $# -eq 1 ] || { shift; fuzz "$1" >>$build/fuzz.txt; }
    shift
    wait
done
cat $build/fuzz.txt
! grep -q ^FAILED $build/fuzz.txt
