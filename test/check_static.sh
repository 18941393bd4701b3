#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs all checks that need not run the program: more warnings of the compiler, cppcheck, clang-tidy (.clang-tidy),
# includes that point the wrong way, and guards of mutants.py that no longer exist. `make check-static` needs all three
# tools. "short", for continuous integration, omits tools that are missing here, and tools of other versions than
# those with which the tree is clean: each version finds something else. One line per tool, "ok", "FAILED" or "skipped";
# exit status 1 if one failed. TEST_TURN="n word": clang-tidy reads one file in n, drawn by the word.
#
# usage: test/check_static.sh [short]
set -u
cd -- "$(dirname -- "$0")/.." || exit 1
short=${1:-}
[ -z "$short" ] || export TIDY_NODES=60000
failed=''

# The files that clang-tidy reads: all, or those whose turn it is.
tidy_files() {
    for file in $(make -s show-STATIC_SRCS); do
        sum=$(echo "${TEST_TURN#* }$file" | cksum)
        [ $((${sum%% *} % ${TEST_TURN%% *})) -ne 0 ] || echo "$file"
    done
}

# static NAME TARGET: the target of the Makefile, all sources at once
static() {
    if make -s -k -j"$(getconf _NPROCESSORS_ONLN)" ${TIDY_NODES:+TIDY_NODES=$TIDY_NODES} ${tidy:+"TIDY_SRCS=$tidy"} "$2"; then
        echo "ok static $1"
    else
        echo "FAILED static $1"
        failed=1
    fi
}

# versioned NAME VERSION TARGET: the same by a tool that may be missing or another version
versioned() {
    found=$("$1" --version 2>/dev/null | sed -n 's/.*[Vv]ersion \([0-9]*\).*/\1/p; s/^Cppcheck //p')
    if [ -n "$short" ] && [ "$found" != "$2" ]; then
        echo "skipped static $1: ${found:-none} here, not $2"
    else
        static "$1" "$3"
    fi
}

tidy=''
[ -z "${TEST_TURN:-}" ] || tidy=$(tidy_files)
[ -n "$(make -s show-MPI_HEADERS)" ] || echo 'skipped static mpi/: no MPI here (mpicc with mpi.h)'
static compiler static-compiler
versioned cppcheck 2.10 static-cppcheck
versioned clang-tidy 14 static-tidy
sh test/check_layers.sh || failed=1
python3 test/check_mutants.py where || failed=1
[ -z "$failed" ]
