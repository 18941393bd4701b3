#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the unit tests in $BUILD (default build), replays the cases that fuzzing has found, and runs command-line tests
# with pytest. At the end it repeats what failed, in lines that begin with "! ", and then prints
#     N passed, N failed[, N skipped]
# Exit status 1 if any test failed or none ran. `make check` first builds what is run here.
#
# SAMTOOLS_OMP  the program that the command-line tests run (default $BUILD/samtools)
# TESTS         check (default): the unit tests and replays, and the command-line tests with one set of parameters each;
#               tests that take long only with TEST_LONG=yes (conftest.py).
#               all: with all sets. release: the tests of pages, packages and scripts, which are otherwise only in all.
#               rest: the tests of all that are neither in check nor in release
# TEST_TURN     "n word", with rest: one in n, drawn by the word; and smaller samples of MORE_CHECKS, drawn by it
# PYTEST_ARGS   passed on to pytest
# UNITS         names of the unit tests that are run (default: all)
# BEAT          seconds after which a script that works quietly is reported to be alive, default 30
# MORE_CHECKS   1: also the short forms of the other checks: all tests again under sanitizers, guards disabled in turn,
#               a search for data races, a minute of fuzzing, static checks, all tests with other versions of htslib;
#               each if its tools are here
set -u
cd -- "$(dirname -- "$0")/.." || exit 1

build=${BUILD:-build}
tests=${TESTS:-check}
SAMPLE=1    # so that ./bootstrap.sh check takes 4 minutes on 2 cores
case $tests in
check)   export TEST_SAMPLE="${TEST_SAMPLE:-$SAMPLE}" TEST_RELEASE=no TEST_LONG="${TEST_LONG:-no}" ;;
all)     ;;
rest)    export TEST_REST=$SAMPLE TEST_RELEASE=no ;;
release) export TEST_RELEASE=only ;;
*)       echo "run_tests.sh: TESTS is check, all, rest or release" >&2; exit 2 ;;
esac
passed=0 failed=0 skipped=0 repeated=''

# repeat NAME LINES: repeats the name of a failure and the first lines of its cause at the end of the output
repeat() {
    repeated=$repeated$(printf '\n! %s\n' "$1"; printf '%s\n' "$2" | sed 's/^! //; /^$/d; s/^/!     /' | cut -c 1-300)
}

# The cause of a failure in a unit test or replay: failed assertions, reports of sanitizers, or the last lines before a
# crash.
why_of() {
    { grep -a -E '^\[ +(ERROR|LINE|FAILED) +\]|ERROR: |runtime error: ' "$1" || tail -n 5 "$1"; } | head -n 12
}

# Runs commands, as many at once as there are CPUs. Reads one per line, after the name of its log; its status is stored
# beside the log.
run_at_once() {
    # shellcheck disable=SC2016
    xargs -P "$(getconf _NPROCESSORS_ONLN)" -L 1 sh -c 'log=$1; shift; "$@" >"$log" 2>&1; echo $? >"$log.status"' sh
}

# Sets $log and $status of a finished command.
ended() {
    log=$build/$1.log
    status=$(cat "$log.status") || status=99
}

# Counts what cmocka prints about each test, not its totals: a test that crashes leaves no totals.
count_unit() {
    ended "$1"
    ran=$(grep -c '^\[ RUN ' "$log")
    ok=$(grep -c '^\[  *OK \]' "$log")
    skip=$(grep '^\[  SKIPPED \]' "$log" | grep -v 'test(s)' | sort -u | grep -c .)
    bad=$((ran - ok - skip))
    if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then
        bad=1    # outside a test: a leak at exit, a set-up that failed
    fi
    passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
    if [ "$bad" -eq 0 ]; then
        printf '%-28s %3d passed\n' "$1" "$ok"
    else
        cat "$log"
        repeat "$1 (exit status $status)" "$(why_of "$log")"
        printf '%-28s %3d passed, %d FAILED (exit status %d)\n' "$1" "$ok" "$bad" "$status"
    fi
}

count_replay() {
    ended "$1"
    if [ "$status" -eq 0 ]; then
        passed=$((passed + 1))
        printf '%-28s   1 passed\n' "$1"
    else
        failed=$((failed + 1))
        cat "$log"
        repeat "$1" "$(why_of "$log")"
        printf '%-28s   1 FAILED\n' "$1"
    fi
}

# Moves the unit tests that take longest to the front.
longest_first() {
    for unit; do
        case $unit in
        unit_spill|unit_output_block|unit_bam_inflate|unit_merge_ring|unit_sort_key) echo "1 $unit" ;;
        *) echo "2 $unit" ;;
        esac
    done | sort | cut -d ' ' -f 2
}

# Runs the unit tests, the replay of fuzz cases, and the check of our names against those of libraries. The names are the
# same in all builds, and the check reads all versions of htslib that are here: once is enough.
run_units() {
    units=${UNITS:-$(cd test && ls unit_*.c 2>/dev/null | sed 's/\.c$//')} cases=$(ls test/fuzz/cases 2>/dev/null) names=check_names
    case $build in build-asan|build-htslib-*) names='' ;; esac
    # shellcheck disable=SC2086
    units=$(longest_first $units)
    started=$(date +%s)
    rm -f "$build"/*.log.status
    {
        for script in $names; do echo "$build/$script.log sh test/$script.sh"; done
        for unit in $units; do echo "$build/$unit.log $build/$unit"; done
        for name in $cases; do echo "$build/replay_$name.log $build/replay_$name test/fuzz/cases/$name"; done
    } | BUILD=$build run_at_once
    for unit in $units; do count_unit "$unit"; done
    for name in $cases; do count_replay "replay_$name"; done
    for script in $names; do
        ended "$script"
        count_script "test/$script.sh"
    done
}

# watched WHAT SCRIPT [ARGUMENT]...: its output goes to $log. Prints the start, and the progress every half minute.
watched() {
    what=$1
    shift
    log=$build/$(basename "$1" .sh).log
    started=$(date +%s)
    echo "$1: $what"
    : >"$log"
    while sleep "${BEAT:-30}" >/dev/null 2>&1 && kill -0 $$ 2>/dev/null; do
        printf '    after %d s: %s\n' $(($(date +%s) - started)) "$(tail -n 1 "$log" | cut -c 1-80)"
    done &
    beat=$!
    case $1 in
    *.py) python3 "$@" >"$log" 2>&1 ;;
    *)    sh "$@" >"$log" 2>&1 ;;
    esac
    status=$?
    kill $beat 2>/dev/null
    wait $beat 2>/dev/null
}

# The cause of a failed script: the lines that it repeats at its end, its FAILED lines with those before them, or its
# last lines.
why_of_script() {
    awk '/^! / { if (!on) b = ""; on = 1; b = b $0 "\n"; next } { on = 0 } END { printf "%s", b; exit b == "" }' "$log" ||
        grep -a -B 5 '^FAILED ' "$log" | grep -a -v '^ok ' || tail -n 5 "$log"
}

# add SCRIPT: counts $ok, $bad and $skip of it
add() {
    if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then
        bad=1
    fi
    [ "$bad" -eq 0 ] || repeat "$1" "$(why_of_script | head -n 200)"
    passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
    printf '%-28s %3d passed, after %d s\n' "$1" "$ok" $(($(date +%s) - started))
}

# A script that prints "ok", "FAILED" or "skipped" for each test, in one line.
run_script() {
    watched "$@"
    count_script "$2"
}

count_script() {
    grep -v '^ok ' "$log"
    ok=$(grep -c '^ok ' "$log") bad=$(grep -c '^FAILED ' "$log") skip=$(grep -c '^skipped ' "$log")
    add "$1"
}

# A script whose last line is like this one's.
run_again() {
    watched "$@"
    counts=$(tail -n 1 "$log")
    ok=$(counted passed) bad=$(counted failed) skip=$(counted skipped)
    if [ "$status" -ne 0 ] || [ "$bad" -ne 0 ]; then
        cat "$log"
    else
        grep '^skipped ' "$log"
    fi
    add "$2"
}

# The number before a word of $counts; 0 if the word is missing.
counted() {
    n=$(printf ' %s\n' "$counts" | sed -n "s/.* \([0-9][0-9]*\) $1.*/\1/p")
    echo "${n:-0}"
}

# One number of pytest's own report.
junit() {
    sed -n "s/.*<testsuite [^>]*$1=\"\([0-9]*\)\".*/\1/p" "$build/pytest.xml" | head -n 1
}

# The tests that failed in pytest's own report, and the first line of why.
failed_in_junit() {
    .venv/bin/python - "$build/pytest.xml" <<'END'
import sys, xml.etree.ElementTree as tree
for test in tree.parse(sys.argv[1]).iter("testcase"):
    for why in [*test.findall("failure"), *test.findall("error")]:
        where = test.get("classname", "").replace(".", "/") + ".py::" + test.get("name", "")
        print(where, "-", (why.get("message") or "").split("\n")[0])
END
}

run_pytest() {
    if ! [ -x .venv/bin/python ]; then
        echo "command-line tests: no .venv here; ./bootstrap.sh check makes it"
        repeat pytest 'no .venv here'
        failed=$((failed + 1))
        return
    fi
    rm -f "$build/pytest.xml"
    # No test takes a minute. One that hangs outside a program, as in Python, must not stop the others. All builds share
    # the compiled tests. At the end, unraisableexception would search 9,000 tests five times for garbage.
    # shellcheck disable=SC2086
    SAMTOOLS_OMP=${SAMTOOLS_OMP:-$PWD/$build/samtools} PYTHONDONTWRITEBYTECODE='' PYTHONPYCACHEPREFIX=$PWD/build/pycache \
        .venv/bin/python -m pytest -q -p no:cacheprovider -p no:unraisableexception -n "$(getconf _NPROCESSORS_ONLN)" --timeout=$((5 * ${TEST_TIMEOUT:-120})) --junitxml="$build/pytest.xml" ${PYTEST_ARGS:-} test
    status=$?
    if ! [ -s "$build/pytest.xml" ]; then
        repeat pytest "exit status $status, and no report"
        failed=$((failed + 1))
        return
    fi
    bad=$(($(junit failures) + $(junit errors)))
    skip=$(junit skipped)
    passed=$((passed + $(junit tests) - bad - skip)) skipped=$((skipped + skip))
    if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then
        bad=1    # no test found, interrupted, a broken conftest
    fi
    [ "$bad" -eq 0 ] || repeat "pytest (exit status $status)" "$(failed_in_junit)"
    failed=$((failed + bad))
}

case $tests in check|all) run_units ;; esac
echo "command-line tests: some minutes on 2 cores"
run_pytest
turn=${TEST_TURN:-}
unset TEST_SAMPLE TEST_REST TEST_TURN TEST_RELEASE TEST_LONG TESTS

# one_in N: sets the sample of the next check, if TEST_TURN requests samples
one_in() { [ -z "$turn" ] || export TEST_TURN="$1 ${turn#* }"; }

if [ -n "${MORE_CHECKS:-}" ]; then
    one_in 4
    run_again 'all once more under sanitizers; some 5 minutes on 2 cores' test/check_asan.sh short
    run_again 'guards made blind in turn, a sample; some 3 minutes' test/check_mutants.py short
    run_script 'data races; some 2 minutes' test/check_tsan.sh short
    run_script 'each fuzz target, for 2 seconds; with the build some 2 minutes' test/fuzz/run.sh 2
    run_script 'static checks; some 2 to 4 minutes' test/check_static.sh short
    run_again 'all once more with other versions of htslib; some 4 to 12 minutes' test/check_htslibs.sh short
fi

echo "$repeated"
line="$passed passed, $failed failed"
[ "$skipped" -eq 0 ] || line="$line, $skipped skipped"
echo "$line"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
