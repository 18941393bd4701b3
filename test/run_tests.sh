#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs the unit tests in $BUILD (default build) and the command-line tests with pytest, and closes with
#     N passed, N failed[, N skipped]
# Exit status 1 if any test failed or none ran. `make check` builds first what is run here.
#
# SAMTOOLS_OMP  the program the command-line tests run (default $BUILD/samtools)
# PYTEST_ARGS   passed on to pytest
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
run_pytest

echo
line="$passed passed, $failed failed"
[ "$skipped" -eq 0 ] || line="$line, $skipped skipped"
echo "$line"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
