#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes each guard of mutants.py blind, one at a time, and runs the tests that must notice: `make check-mutants`. A
mutant that passes its tests shows a test that is missing. Before, the same tests pass with the program as it is.

Works on a copy of the tree, in build-mutants, two mutants at a time. One line each, "ok", "FAILED" or "skipped" (the
test does not run here); the last is "N passed, N failed[, N skipped]". "short": of each file's guards the first.

usage: test/check_mutants.py [short] [WORD ...]      WORD: only those rows in which it is found
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / "build-mutants"
PYTHON = ROOT / ".venv" / "bin" / "python"
JOBS = 2
TOO_LONG = 120  # seconds for the tests of a mutant; those of the program as it is take a few
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "test"))

from mutants import MUTANTS  # noqa: E402


class Broken(Exception):
    """Nothing can be said of the mutant: it does not compile, or its test is not there."""


def run(argv, folder, seconds, **env):
    """Exit status (None: it took too long) and output. What it has started ends with it."""
    with subprocess.Popen([str(x) for x in argv], cwd=folder, env=dict(os.environ, **env), stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True) as p:
        try:
            out, _ = p.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, 9)
            p.communicate()
            return None, "it took more than %d s" % seconds
    return p.returncode, out.decode(errors="replace")


def make(folder, targets):
    status, out = run(["make", "-j%d" % JOBS, "BUILD=build", "WARN=", "CFLAGS=-O1 $(SMALL)", "HARDEN_CFLAGS=", "HARDEN_LDFLAGS=", *targets], folder, 600)
    if status != 0:
        raise Broken("it does not compile:\n" + out[-3000:])


def is_unit(test):
    return test.startswith("unit_")


def make_mpi(folder, tests):
    """What tests of mpi/ build for themselves. There an error of the compiler would pass for a dead mutant."""
    for kind in ("openmpi", "mpich") if any(t.startswith("test_mpi") for t in tests) else ():
        if shutil.which("mpicc." + kind):
            make(folder, ["MPICC=mpicc." + kind, "MPI_BUILD=build/" + kind, "build/%s/samtools-omp-mpi" % kind])


def targets_of(tests):
    units = ["build/" + t for t in tests if is_unit(t)]
    programs = ["build/samtools", "build/faulty_samtools", "build/fault_shim.so", "build/gen_bam", "build/timed"]
    return units + (programs if len(units) < len(tests) else [])


def pytest(folder, tests, *options):
    return run([PYTHON, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "--tb=no", *options,
                *["test/" + t for t in tests]], folder, TOO_LONG if "-x" in options else 1200,
               SAMTOOLS_OMP=str(folder / "build" / "samtools"), TEST_TIMEOUT="30", TEST_SAMPLE="", TEST_REST="", PYTHONDONTWRITEBYTECODE="1")


def why_dead(folder, tests):
    """What has noticed the mutant; "" if nothing has."""
    for test in [t for t in tests if is_unit(t)]:
        status, out = run([folder / "build" / test], folder, TOO_LONG)
        if status != 0:
            failed = re.findall(r"^\[  FAILED  \] (test_\w+)", out, re.M)
            return "%s: %s" % (test, failed[0] if failed else "takes too long" if status is None else "exit status %d" % status)
    others = [t for t in tests if not is_unit(t)]
    if not others:
        return ""
    status, out = pytest(folder, others, "-x")
    if status not in (0, 1, None):
        raise Broken("pytest ends with %d:\n%s" % (status, out[-3000:]))
    failed = re.findall(r"^(?:FAILED|ERROR) test/(\S+)", out, re.M)
    return "" if status == 0 else failed[0] if failed else "tests take too long"


def mutate(folder, file, old, new):
    path = folder / file
    text = path.read_text()
    if text.count(old) != 1:
        raise Broken("its text is there %d times, not once" % text.count(old))
    path.write_text(text.replace(old, new))
    ahead = time.time() + 1                      # newer than all that is built, on coarse clocks too
    os.utime(path, (ahead, ahead))


def copy_tree(into):
    for name in ("Makefile", "config.mk", *[p.name for p in ROOT.glob("*.[ch]")]):
        if (ROOT / name).exists():
            into.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, into / name)
    for name in sorted({p.parent.name for p in ROOT.glob("*/*.[ch]")} - {"bench"} | {"doc"}):
        if name.startswith("build"):             # of the compiler's trials
            continue
        shutil.copytree(ROOT / name, into / name, ignore=shutil.ignore_patterns("__pycache__"))


def restore(folder, pristine, file):
    shutil.copy2(pristine / file, folder / file)
    shutil.rmtree(folder / "build")
    shutil.copytree(pristine / "build", folder / "build")


def check_unchanged(pristine, tests):
    """The tests that pass with the program as it is; the others were skipped. Any that fails ends the whole."""
    make(pristine, targets_of(tests))
    make_mpi(pristine, tests)
    passed = set()
    for test in [t for t in tests if is_unit(t)]:
        status, out = run([pristine / "build" / test], pristine, TOO_LONG)
        if status != 0:
            sys.exit("FAILED mutants: %s fails without a mutant\n%s\n0 passed, 1 failed" % (test, out[-3000:]))
        passed.add(test)
    others = [t for t in tests if not is_unit(t)]
    status, out = pytest(pristine, others, "-n%d" % JOBS) if others else (0, "")
    if status != 0:
        sys.exit("FAILED mutants: a test fails without a mutant\n%s\n0 passed, 1 failed" % out[-6000:])
    for name in re.findall(r"^PASSED test/(\S+)", out, re.M):
        passed |= {name, name.partition("[")[0]}
    return passed


def check_mutant(folder, pristine, row, passed):
    file, old, new, tests, _ = row
    if not any(t in passed for t in tests):
        return "skipped", "none of its tests runs here"
    try:
        mutate(folder, file, old, new)
        make(folder, targets_of(tests))
        make_mpi(folder, tests)
        dead = why_dead(folder, tests)
        return ("ok", dead) if dead else ("FAILED", "survived: no test of %s notices" % ", ".join(tests))
    except Broken as why:
        return "FAILED", "error: %s" % why
    finally:
        restore(folder, pristine, file)


def chosen(short, words):
    rows, files = [], set()
    for row in MUTANTS:
        if short and row[0] in files:
            continue
        if all(w in " ".join([*row[:3], *row[3], row[4]]) for w in words):
            rows.append(row)
            files.add(row[0])
    return rows


def main(argv):
    short = argv[:1] == ["short"]
    rows = chosen(short, argv[short:])
    shutil.rmtree(WORK, ignore_errors=True)
    pristine = WORK / "pristine"
    copy_tree(pristine)
    passed = check_unchanged(pristine, sorted({t for row in rows for t in row[3]}))
    counts, lock, left = {"ok": 0, "FAILED": 0, "skipped": 0}, threading.Lock(), list(enumerate(rows))

    def work(number):
        folder = WORK / str(number)
        shutil.copytree(pristine, folder)
        while True:
            with lock:
                if not left:
                    return
                at, row = left.pop(0)
            result, told = check_mutant(folder, pristine, row, passed)
            with lock:
                counts[result] += 1
                print("%s mutant %d, %s, %s: %s" % (result, at + 1, row[0], row[4], told), flush=True)

    workers = [threading.Thread(target=work, args=(i,)) for i in range(JOBS)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    print("%d passed, %d failed%s" % (counts["ok"], counts["FAILED"], ", %d skipped" % counts["skipped"] if counts["skipped"] else ""))
    return 1 if counts["FAILED"] or not counts["ok"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
