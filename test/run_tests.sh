#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the unit tests in $BUILD (default build), replays what fuzzing has found, runs the command-line tests with pytest,
# and closes with
#     N passed, N failed[, N skipped]
# Exit status 1 if any test failed or none ran. `make check` builds first what is run here.
#
# SAMTOOLS_OMP  the program the command-line tests run (default $BUILD/samtools)
# PYTEST_ARGS   passed on to pytest
# MORE_CHECKS   1: also the short forms of what else there is: all once more under sanitizers, a search for data races,
#               a minute of fuzzing, static checks; each where the tools are here
set -u
cd -- "$(dirname -- "$0")/.." || exit 1

build=${BUILD:-build}
passed=0 failed=0 skipped=0

# Counts what cmocka prints about each test, not its totals: a test that crashes leaves no totals.
run_unit() {
    log=$build/$(basename "$1").log
    "$1" >"$log" 2>&1
    status=$?
    ran=$(grep -c '^\[ RUN ' "$log")
    ok=$(grep -c '^\[  *OK \]' "$log")
    skip=$(grep '^\[  SKIPPED \]' "$log" | grep -v 'test(s)' | sort -u | grep -c .)
    bad=$((ran - ok - skip))
    if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then
        bad=1    # outside a test: a leak at exit, a set-up that failed
    fi
    passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
    if [ "$bad" -eq 0 ]; then
        printf '%-28s %3d passed\n' "$(basename "$1")" "$ok"
    else
        cat "$log"
        printf '%-28s %3d passed, %d FAILED (exit status %d)\n' "$(basename "$1")" "$ok" "$bad" "$status"
    fi
}

run_replay() {
    log=$build/$(basename "$1").log
    if "$1" "$2" >"$log" 2>&1; then
        passed=$((passed + 1))
        printf '%-28s   1 passed\n' "$(basename "$1")"
    else
        failed=$((failed + 1))
        cat "$log"
        printf '%-28s   1 FAILED\n' "$(basename "$1")"
    fi
}

# A script that says "ok", "FAILED" or "skipped" of each test, in a line.
run_script() {
    log=$build/$(basename "$1" .sh).log
    sh "$@" >"$log" 2>&1
    status=$?
    grep -v '^ok ' "$log"
    ok=$(grep -c '^ok ' "$log") bad=$(grep -c '^FAILED ' "$log") skip=$(grep -c '^skipped ' "$log")
    if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then
        bad=1
    fi
    passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
    printf '%-28s %3d passed\n' "$1" "$ok"
}

# A script whose last line is like this one's.
run_again() {
    log=$build/$(basename "$1" .sh).log
    case $1 in
        *.py) python3 "$@" >"$log" 2>&1 ;;
        *) sh "$@" >"$log" 2>&1 ;;
    esac
    status=$?
    counts=$(tail -n 1 "$log")
    ok=$(counted passed) bad=$(counted failed) skip=$(counted skipped)
    if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then
        bad=1
    fi
    [ "$bad" -eq 0 ] || cat "$log"
    passed=$((passed + ok)) failed=$((failed + bad)) skipped=$((skipped + skip))
    printf '%-28s %3d passed\n' "$1" "$ok"
}

# The number before a word of $counts; 0: it is not there.
counted() {
    n=$(printf ' %s\n' "$counts" | sed -n "s/.* \([0-9][0-9]*\) $1.*/\1/p")
    echo "${n:-0}"
}

# One number of pytest's own report.
junit() {
    sed -n "s/.*<testsuite [^>]*$1=\"\([0-9]*\)\".*/\1/p" "$build/pytest.xml" | head -n 1
}

run_pytest() {
    if ! [ -x .venv/bin/python ]; then
        echo "command-line tests: no .venv here; ./bootstrap.sh check makes it"
        failed=$((failed + 1))
        return
    fi
    rm -f "$build/pytest.xml"
    # shellcheck disable=SC2086
    SAMTOOLS_OMP=${SAMTOOLS_OMP:-$PWD/$build/samtools} PYTHONDONTWRITEBYTECODE=1 \
        .venv/bin/python -m pytest -q -p no:cacheprovider --junitxml="$build/pytest.xml" ${PYTEST_ARGS:-} test
    status=$?
    if ! [ -s "$build/pytest.xml" ]; then
        failed=$((failed + 1))
        return
    fi
    bad=$(($(junit failures) + $(junit errors)))
    skip=$(junit skipped)
    passed=$((passed + $(junit tests) - bad - skip)) skipped=$((skipped + skip))
    if [ "$status" -ne 0 ] && [ "$bad" -eq 0 ]; then
        bad=1    # no test found, interrupted, a broken conftest
    fi
    failed=$((failed + bad))
}

for unit in test/unit_*.c; do
    [ -e "$unit" ] || continue
    run_unit "$build/$(basename "$unit" .c)"
done
for cases in fuzz/cases/*; do
    run_replay "$build/replay_$(basename "$cases")" "$cases"
done
run_pytest
if [ -n "${MORE_CHECKS:-}" ]; then
    run_again test/check_asan.sh short
    run_again test/check_mutants.py short
    run_script test/check_tsan.sh short
    run_script fuzz/run.sh 4
    run_script test/check_static.sh short
fi

echo
line="$passed passed, $failed failed"
[ "$skipped" -eq 0 ] || line="$line, $skipped skipped"
echo "$line"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
