#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Disables each guard of mutants.py, one at a time, and runs the tests that must notice: `make check-mutants`. A mutant
that passes its tests shows that a test is missing. First, the same tests must pass with the unchanged program.

Works on a copy of the tree, in build-mutants, two mutants at a time. One line each, "ok", "FAILED" or "skipped" (the
test does not run here); the last is "N passed, N failed[, N skipped]".

usage: test/check_mutants.py [short | where] [WORD ...]

short   a sample: SHORT guards, drawn by TEST_TURN's word (conftest.py), so that another commit draws others
where   makes none: says which rows do not find their text, with the lines that are most like it, or name a test that
        is not there
WORD    only those rows in which it is found
"""

import concurrent.futures
import difflib
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading
import time
import zlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORK = ROOT / "build-mutants"
PYTHON = ROOT / ".venv" / "bin" / "python"
JOBS = 2
SHORT = 24
TOO_LONG = 120  # seconds for the tests of a mutant; those of the unchanged program take a few
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "test"))

from mutants import MUTANTS  # noqa: E402


class Broken(Exception):
    """The mutant cannot be judged: it does not compile, or its test is missing."""


def run(argv, folder, seconds, **env):
    """Exit status (None: it took too long) and output. Its child processes end with it."""
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
    """Builds that the tests of mpi/ make themselves. In a test, a compiler error would look like a dead mutant."""
    for kind in ("openmpi", "mpich") if any(t.startswith("test_mpi") for t in tests) else ():
        if shutil.which("mpicc." + kind):
            make(folder, ["MPICC=mpicc." + kind, "MPI_BUILD=build/" + kind, "build/%s/samtools-omp-mpi" % kind])


def targets_of(tests):
    units = ["build/" + t for t in tests if is_unit(t)]
    programs = ["build/samtools", "build/faulty_samtools", "build/fault_shim.so", "build/gen_bam", "build/timed"]
    ranges = ["build/stats_ranges"] if any(t.startswith(("test_stats.py", "test_coverage.py")) for t in tests) else []
    return units + (programs + ranges if len(units) < len(tests) else [])


def pytest(folder, tests, *options, **env):
    env = dict({"SAMTOOLS_OMP": str(folder / "build" / "samtools"), "TEST_TIMEOUT": "30", "TEST_SAMPLE": "", "TEST_REST": "",
                "TEST_TURN": "", "TEST_RELEASE": "", "PYTHONDONTWRITEBYTECODE": "",
                "PYTHONPYCACHEPREFIX": str(WORK / "pycache")}, **env)
    return run([PYTHON, "-m", "pytest", "-q", "-rA", "-p", "no:cacheprovider", "--tb=no", *options,
                *["test/" + t for t in tests]], folder, TOO_LONG if "-x" in options else 1200, **env)


def first_failure(unit, folder):
    """The first test that fails in a unit, or how the unit ends; "" if it passes. The unit is ended at that test, after
    which a mutant may wait for ever."""
    with subprocess.Popen([unit], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, start_new_session=True) as p:
        end = threading.Timer(TOO_LONG, os.killpg, (p.pid, 9))
        end.start()
        try:
            for line in p.stdout:
                failed = re.search(rb"\[  FAILED  \] (test_\w+)", line)
                if failed:
                    os.killpg(p.pid, 9)
                    return failed[1].decode()
        finally:
            end.cancel()
    return "" if p.returncode == 0 else "takes too long" if p.returncode == -9 else "exit status %d" % p.returncode


def why_dead(folder, tests):
    """The test that noticed the mutant; "" if none did."""
    for test in [t for t in tests if is_unit(t)]:
        failed = first_failure(folder / "build" / test, folder)
        if failed:
            return "%s: %s" % (test, failed)
    others = [t for t in tests if not is_unit(t)]
    if not others:
        return ""
    status, out = pytest(folder, others, "-x")
    if status not in (0, 1, None):
        raise Broken("pytest ends with %d:\n%s" % (status, out[-3000:]))
    failed = re.findall(r"^(?:FAILED|ERROR) test/(\S+)", out, re.M)
    return "" if status == 0 else failed[0] if failed else "tests take too long"


# ---------------------------------------------------------------- where a row's text is

# The tokens of C. Spaces, line breaks and comments are not tokens, so a row finds its text in any layout.
TOKEN = re.compile(r"""(?P<none>\s+|/\*.*?\*/|//[^\n]*)
                       |"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\w+|->|\+\+|--|<<=?|>>=?|&&|\|\||[-+*/%&|^=!<>]=|.""", re.S | re.X)
# A function from its start at the beginning of a line up to its brace. Its last brace begins a line, or ends this one.
HEAD = re.compile(r"^(?!typedef)[A-Za-z_][^;{}#=]*?\b(\w+)\([^;{}#]*\)\s*\{(?:[^\n]*\}$)?", re.M)


def tokens(text):
    """The tokens, and the start and end of each."""
    found = [m for m in TOKEN.finditer(text) if m["none"] is None]
    return [m[0] for m in found], [m.span() for m in found]


@functools.cache
def functions():
    """Returns, by name, the functions of that name: file, begin, end."""
    places = {}
    for path in sorted([*ROOT.glob("*.[ch]"), *ROOT.glob("*/*.[ch]")]):
        if str(path.relative_to(ROOT)).startswith(("build", "test")):
            continue
        text = path.read_text()
        for head in HEAD.finditer(text):
            end = head.end() if head[0].endswith("}") else text.find("\n}", head.end()) + 2
            places.setdefault(head[1], []).append((str(path.relative_to(ROOT)), head.start(), end))
    return places


def places_of(row):
    """The places where the row's text may be: (file, begin, end). A row names a function, "file: function" or a
    file."""
    file, _, name = row[0].rpartition(": ")
    if "." not in name:
        return [p for p in functions().get(name, []) if file in ("", p[0])]
    return [(name, 0, len((ROOT / name).read_text()))] if (ROOT / name).exists() else []


def spans(text, begin, end, old):
    """The places of the tokens of old in text[begin:end]."""
    wanted, (there, where) = tokens(old)[0], tokens(text[begin:end])
    n = len(wanted)
    return [(begin + where[i][0], begin + where[i + n - 1][1]) for i in range(len(there) - n + 1) if there[i:i + n] == wanted]


@functools.cache
def is_there(test):
    file, _, name = test.partition("::")
    path = ROOT / "test" / (file + ".c" if is_unit(test) else file)
    return path.exists() and (not name or re.search(r"^def %s\(" % name.partition("[")[0], path.read_text(), re.M))


def find(row):
    """The file of the row's text, and the text's start and end."""
    places = places_of(row)
    for test in row[3]:
        if not is_there(test):
            raise Broken("there is no test %s" % test)
    found = [(p[0], *span) for p in places for span in spans((ROOT / p[0]).read_text(), *p[1:], row[1])]
    if not places:
        raise Broken("there is no %s" % row[0])
    if len(found) != 1:
        raise Broken("its text is there %d times, not once" % len(found))
    return found[0]


def nearest(row):
    """The two lines that the row's text may have become."""
    def unlike(line):
        return -difflib.SequenceMatcher(None, tokens(row[1])[0], tokens(line)[0]).ratio()
    lines = {line.strip() for p in places_of(row) for line in (ROOT / p[0]).read_text()[p[1]:p[2]].split("\n")}
    return sorted(lines, key=unlike)[:2]


def unknown_sets(tests):
    """Those tests whose set of parameters, in brackets, pytest does not know. is_there() sees only the function."""
    sets = sorted(t for t in tests if "[" in t)
    # Nothing is run, so any program will do. The tests of MPI are collected, too.
    status, out = pytest(ROOT, sets, "--collect-only", SAMTOOLS_OMP=str(PYTHON), TEST_LONG="") if sets else (0, "")
    unknown = re.findall(r"^ERROR: not found: .*/test/(.*)$", out, re.M)
    if status != 0 and not unknown:
        raise Broken("pytest ends with %s:\n%s" % (status, out[-3000:]))
    return unknown


def say_where(rows):
    lost, known = 0, "texts and tests"
    for row in rows:
        try:
            find(row)
        except Broken as why:
            lost += 1
            print("FAILED mutants, %s, %s: %s:" % (row[0], row[4], why), row[1], *nearest(row), sep="\n    ")
    if PYTHON.exists():
        try:
            for test in unknown_sets({t for row in rows for t in row[3] if is_there(t)}):
                lost += 1
                print("FAILED mutants: pytest knows no test %s" % test)
        except Broken as why:
            lost += 1
            print("FAILED mutants: %s" % why)
    else:
        known = "texts and functions of tests"
        print("skipped mutants: no .venv here, so the parameters of tests are not checked")
    if not lost:
        print("ok mutants: the %s of all %d are there" % (known, len(rows)))
    return 1 if lost else 0


def mutate(folder, row):
    """Returns the file that was changed."""
    file, begin, end = find(row)
    path = folder / file
    text = path.read_text()
    path.write_text(text[:begin] + row[2] + text[end:])
    ahead = time.time() + 1                      # newer than all built files, even with coarse clocks
    os.utime(path, (ahead, ahead))
    return file


def copy_tree(into):
    for name in ("Makefile", "config.mk", *[p.name for p in ROOT.glob("*.[ch]")]):
        if (ROOT / name).exists():
            into.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, into / name)
    for name in sorted({p.parent.name for p in ROOT.glob("*/*.[ch]")} - {"bench"} | {"doc"}):
        if name.startswith("build"):             # made by the compiler's trials
            continue
        shutil.copytree(ROOT / name, into / name, ignore=shutil.ignore_patterns("__pycache__"))


def copy_build(into, targets):
    """Copies the objects, and those of the targets, that `make` has built, so that little but mutants is compiled. Their
    flags may be others. Times are kept: make compiles anew what is older than its source."""
    keep = {"parts.a", "no_mpi.a", "libraries.found", "mpicc.show", *[pathlib.Path(t).name for t in targets]}
    for path in (ROOT / "build").rglob("*"):
        if path.is_file() and (path.suffix in (".o", ".d") or path.name in keep):
            to = into / path.relative_to(ROOT)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, to)


def restore(folder, pristine, file):
    """Undoes a mutant: its source, and all that was built of it."""
    shutil.copy2(pristine / file, folder / file)
    for path in (folder / "build").rglob("*"):
        if path.is_file() and not (pristine / path.relative_to(folder)).exists():
            path.unlink()
    for path in (pristine / "build").rglob("*"):
        to = folder / path.relative_to(pristine)
        if path.is_file() and not (to.exists() and to.stat().st_mtime_ns == path.stat().st_mtime_ns):
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, to)


def check_unchanged(pristine, tests):
    """The tests that pass with the unchanged program; the others were skipped. Any failure ends the run."""
    make(pristine, targets_of(tests))
    make_mpi(pristine, tests)
    passed, units = set(), [t for t in tests if is_unit(t)]
    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        results = list(pool.map(lambda test: run([pristine / "build" / test], pristine, TOO_LONG), units))
    for test, (status, out) in zip(units, results):
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
    tests, file = row[3], None
    if not any(t in passed for t in tests):
        return "skipped", "none of its tests runs here"
    try:
        file = mutate(folder, row)
        make(folder, targets_of(tests))
        make_mpi(folder, tests)
        dead = why_dead(folder, tests)
        return ("ok", dead) if dead else ("FAILED", "survived: no test of %s notices" % ", ".join(tests))
    except Broken as why:
        return "FAILED", "error: %s" % why
    finally:
        if file:
            restore(folder, pristine, file)


def chosen(short, words):
    rows = [row for row in MUTANTS if all(w in " ".join([*row[:3], *row[3], row[4]]) for w in words)]
    if short:
        word = os.environ.get("TEST_TURN", "").partition(" ")[2]
        rows = sorted(rows, key=lambda row: zlib.crc32((word + row[0] + row[1] + row[2]).encode()))[:SHORT]
    return rows


def main(argv):
    if set(argv) & {"-h", "--help"}:
        print(__doc__.strip())
        return 0
    how = argv[0] if argv[:1] in (["short"], ["where"]) else ""
    rows = chosen(how == "short", argv[1:] if how else argv)
    if how == "where":
        return say_where(rows)
    shutil.rmtree(WORK, ignore_errors=True)
    pristine = WORK / "pristine"
    copy_tree(pristine)
    tests = sorted({t for row in rows for t in row[3]})
    copy_build(pristine, targets_of(tests))
    passed = check_unchanged(pristine, tests)
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
