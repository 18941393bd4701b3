#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs all tests under the address and the undefined-behaviour sanitizer, in a separate build: `make check-asan`.
# "short" runs the part for which continuous integration has time: unit tests, replays, and each command-line test with
# one set of its parameters, or by TEST_TURN (conftest.py) a sample of those. The first finding ends a program with a
# status that no test expects. The last line is that of run_tests.sh, "N passed, N failed[, N skipped]".
#
# usage: test/check_asan.sh [short]
set -u
cd -- "$(dirname -- "$0")/.." || exit 1
build=build-asan
sanitize=-fsanitize=address,undefined

# Checks that the compiler has the sanitizers, and that they run here.
works() {
    printf '#include <htslib/sam.h>\nint main(void) { return !hts_version(); }\n' >$build/probe.c
    # shellcheck disable=SC2046
    $(make -s show-CC) $(make -s show-CPPFLAGS) $sanitize -o $build/probe $build/probe.c \
        $(make -s show-LDFLAGS) $(make -s show-HTS_LIBS) >$build/probe.log 2>&1 && $build/probe >>$build/probe.log 2>&1
}

mkdir -p $build
if ! works; then
    echo "skipped asan: the compiler has no such sanitizers here, see $build/probe.log"
    echo '0 passed, 0 failed, 1 skipped'
    exit 0
fi
if ! make -s -j"$(getconf _NPROCESSORS_ONLN)" BUILD=$build check-programs \
    CFLAGS="-O1 -g1 \$(SMALL) -fno-omit-frame-pointer $sanitize -fno-sanitize-recover=all"; then
    echo 'FAILED asan: it does not build'
    echo '0 passed, 1 failed'
    exit 1
fi
export ASAN_OPTIONS="exitcode=99:${ASAN_OPTIONS:-}" UBSAN_OPTIONS="print_stacktrace=1:${UBSAN_OPTIONS:-}"
export LSAN_OPTIONS="print_suppressions=0:suppressions=$PWD/test/lsan.supp:${LSAN_OPTIONS:-}"
tests=all
[ -z "${1:-}" ] || { export TEST_SAMPLE=1 TEST_SHORT=1 TEST_WITHOUT=install; tests=check; }
unset MORE_CHECKS SAMTOOLS_OMP
BUILD=$build TESTS=$tests sh test/run_tests.sh
