# SPDX-License-Identifier: MIT
"""The number of threads: -@ as in samtools, `-@ auto`, SAMTOOLS_OMP_THREADS. Threads are counted in /proc while a
pipe that stays open keeps the program running, or taken from its report."""

import contextlib
import json
import os
import subprocess
import time

import pytest

import bamgen
from conftest import BINARY, HANG, SANITIZED, clean_env, cpus, in_all, limit_on, only_cpus, read_bam, run
from test_safety import feed, running, snapshot, until

SETTING = "SAMTOOLS_OMP_THREADS"
# The records are in coordinate order, and grouped by name, because no two have the same name. There are more than are
# read to detect a format.
RECORDS = [bamgen.record("r%04d" % i, pos=i) for i in range(2000)]
COUNTED_BESIDE = ("merge", "fixmate", "markdup", "collate")     # commands whose -@ does not count the first thread
COUNTED_IN_ALL = ("sort", "sormadup")

CPUS = sorted(os.sched_getaffinity(0))[:min(3, cpus())] if hasattr(os, "sched_getaffinity") else [0]
ALL = len(CPUS)

# Public command lines for a job of these CPUs, verbatim except the names of files; and the threads that they start.
LINES = {
    "nf-core merge": ("samtools merge --threads {cpus_1} -c -p out.bam IN", ALL),
    "nf-core fixmate": ("samtools fixmate -m --threads {cpus_1} IN out.bam", ALL),
    "nf-core collate": ("samtools collate -@ {cpus} -o out.bam IN", ALL),
    "nf-core markdup": ("samtools markdup -@ {cpus} -T out IN out.bam", ALL),
    "nf-core markdup by its long name": ("samtools markdup --threads {cpus} IN out.bam", ALL),
    "nf-core collate by its long name": ("samtools collate --threads {cpus} IN out", ALL),
    "nf-core sort": ("samtools sort -T out --threads {cpus} -o out.bam IN", ALL),
    "nf-core sort by its short name": ("samtools sort -@ {cpus} -o out.bam -T out IN", ALL),
    "Snakemake merge": ("samtools merge  --threads {cpus_1}  out.bam IN", ALL),
    "Snakemake fixmate": ("samtools fixmate  --threads {cpus_1}  IN out.bam", ALL),
    "Snakemake collate": ("samtools collate --threads {cpus_1}  -o out.bam IN", ALL),
    "Snakemake markdup": ("samtools markdup --threads {cpus_1}  IN out.bam", ALL),
    "Galaxy merge": ("addthreads=${{GALAXY_SLOTS:-1}} && (( addthreads-- )); samtools merge -@ $addthreads -s 1 -f out.bam IN", ALL),
    "one thread": ("samtools merge -@ 0 out.bam IN", 1),
    "no number": ("samtools fixmate IN out.bam", 1),
    "OpenMP's number": ("export OMP_NUM_THREADS=3; samtools merge out.bam IN", 3),
    "auto": ("samtools merge -@ auto out.bam IN", ALL),
    "sort auto": ("samtools sort -@ auto -o out.bam IN", ALL),
}


@contextlib.contextmanager
def at_work(folder, line):
    """A shell becomes the program, which has read all records of the pipe IN and waits for more."""
    os.mkfifo(folder / "IN")
    (folder / "samtools").symlink_to(os.path.realpath(BINARY))
    *before, command = line.split("; ")
    env = clean_env(PATH="%s:%s" % (folder, os.environ["PATH"]), GALAXY_SLOTS=str(ALL), OMP_DYNAMIC="false")
    p = subprocess.Popen(["bash", "-c", "; ".join([*before, "exec " + command])], cwd=folder, env=env, stderr=subprocess.PIPE,
                         preexec_fn=lambda: os.sched_setaffinity(0, CPUS))
    try:
        with open(folder / "IN", "r+b", buffering=0) as pipe:     # both directions: it does not wait for a reader
            pipe.write(bamgen.bgzf(bamgen.header() + b"".join(RECORDS), level=0))
            yield p
        assert p.wait(HANG) == 0, p.stderr.read()
    finally:
        p.kill()
        p.wait()
        p.stderr.close()


@pytest.mark.skipif(SANITIZED or not os.path.isdir("/proc/self/task"), reason="sanitizers have threads of their own; or no /proc")
@pytest.mark.parametrize("name", LINES)
def test_line_of_a_pipeline_leaves_a_cpu_idle_or_takes_more(tmp_path, name):
    """There is also a thread that reads the pipe."""
    line, threads = LINES[name]
    with at_work(tmp_path, line.format(cpus=ALL, cpus_1=ALL - 1)) as p:
        def steady():
            time.sleep(0.01)
            return len(os.listdir("/proc/%d/task" % p.pid)) == threads + 1
        until(lambda: all(steady() for _ in range(20)), p)
    assert len(read_bam(tmp_path / "out.bam").records()) == len(RECORDS)


# ---------------------------------------------------------------- by the report


@pytest.fixture
def here(tmp_path):
    (tmp_path / "in.bam").write_bytes(bamgen.bam(bamgen.header(), RECORDS))
    return tmp_path


def words(command, *more):
    files = {"merge": ["-f", "out.bam", "in.bam"], "fixmate": ["in.bam", "out.bam"], "markdup": ["in.bam", "out.bam"]}
    return [command, *map(str, more), "--report=r.json", *files.get(command, ["-o", "out.bam", "in.bam"])]


def report(here, command, *more, **kw):
    p = run(words(command, *more), cwd=here, **kw)
    assert (p.returncode, p.stderr) == (0, "")
    return json.loads((here / "r.json").read_text())


def refused(here, argv, said, **kw):
    before = snapshot(here)
    p = run(argv, cwd=here, **kw)
    assert p.returncode == 1 and said in p.stderr and len(p.stderr.splitlines()) == 1, p.stderr
    assert p.stdout == b"" and snapshot(here) == before


@pytest.mark.parametrize("command", [*COUNTED_BESIDE, *COUNTED_IN_ALL])
def test_number_is_counted_otherwise_than_by_samtools(here, command):
    more = command in COUNTED_BESIDE
    for number, threads in ((-1, 1), (0, 1), *((n, in_all(n) if more else n) for n in (1, 2, 5))):
        assert report(here, command, "-@", number)["threads"] == threads, number


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no affinity here")
@pytest.mark.parametrize("command", [*COUNTED_BESIDE, *COUNTED_IN_ALL])
def test_first_thread_is_added_without_a_cpu(here, command):
    more = command in COUNTED_BESIDE
    for some in CPUS[:1], CPUS[:2]:
        n = len(some)
        for number, threads in ((0, 1), (n - 1, n if more else max(n - 1, 1)), (n, n), (n + 1, n + 1), (8, 8)):
            assert report(here, command, "-@", number, before=only_cpus(some))["threads"] == threads, (number, n)


@pytest.mark.parametrize("command,each,beside", [("collate", 768, 64), ("markdup", 768, 64), ("merge", 4, 68), ("fixmate", 4, 68)])
def test_memory_forgets_the_first_thread(here, command, each, beside):
    for number in 0, 1, 3:
        assert report(here, command, "-@", number)["memory_bytes"] >> 20 == in_all(number) * each + beside


@pytest.mark.parametrize("command", [*COUNTED_BESIDE, *COUNTED_IN_ALL])
@pytest.mark.parametrize("value,number,threads", [("3", 1, 3), ("1", 4, 1), ("+1", 2, 3), ("+2", 1, 3), ("", 2, 2)])
def test_setting_does_not_beat_the_command_line(here, command, value, number, threads):
    if value[:1] in ("+", "") and command in COUNTED_BESIDE:
        threads += in_all(number) - number
    assert report(here, command, "-@", number, env={SETTING: value})["threads"] == threads


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no affinity here")
@pytest.mark.parametrize("command", [*COUNTED_BESIDE, *COUNTED_IN_ALL])
def test_auto_is_another_number_than_the_cpus(here, command):
    for some in CPUS[:1], CPUS[:2]:
        for args, env in ((["-@", "auto"], {}), (["--threads", "auto"], {}), (["-@", "7"], {SETTING: "auto"})):
            r = report(here, command, *args, env=env, before=only_cpus(some))
            assert r["threads"] == len(some) == r["cpus"]


def test_setting_adds_to_the_number_of_openmp(here):
    for value, threads in (("+1", 3), ("4", 4)):
        assert report(here, "merge", env={SETTING: value, "OMP_NUM_THREADS": "2"})["threads"] == threads


@pytest.mark.parametrize("command", ["sort", "merge", "collate"])
@pytest.mark.parametrize("value", ["x", "0", "-1", "+", "+0", "+x", "1.5", "99999", " 3", "+auto", "Auto"])
def test_bad_setting_is_taken_or_not_named(here, command, value):
    refused(here, words(command), "%s=%s: it can be a number of threads" % (SETTING, value), env={SETTING: value})


def test_bad_setting_keeps_help_from_the_user(here):
    for command in ("sort", "merge", "bgzip"):
        assert run([command, "--help"], env={SETTING: "x"}).returncode == 0
    p = run(["bgzip", "-c", "in.bam"], cwd=here, env={SETTING: "x"})
    assert p.returncode == 1 and p.stdout == b"" and p.stderr.startswith("bgzip: %s=x: " % SETTING)


@pytest.mark.parametrize("command", ["sort", "merge", "markdup", "collate"])
@pytest.mark.parametrize("text", ["x", "", "2x", "automatic", "+", "99999999999"])
def test_number_that_is_none_is_taken(here, command, text):
    refused(here, words(command, "-@", text), "-@ (--threads) needs a number, or auto, not '%s'" % text)


def test_more_threads_than_there_can_be_are_taken_without_a_word(here):
    for command in "sort", "merge":
        p = run(words(command, "-@", "100000"), cwd=here, before=limit_on("NPROC", 1) if os.getuid() else None, env={"OMP_THREAD_LIMIT": "2"})
        assert p.returncode == 0 and "100000 is too large; using 4096\n" in p.stderr


@pytest.mark.skipif(SANITIZED or not os.path.isdir("/proc/self/task"), reason="sanitizers have threads of their own; or no /proc")
@pytest.mark.parametrize("args,env,threads", [(["-@", "3"], {}, 3), (["-@", "0"], {}, 1), (["-@", "2"], {SETTING: "+1"}, 3), (["-@", "5"], {SETTING: "2"}, 2)])
def test_bgzip_counts_otherwise_than_sort(args, env, threads):
    with running([BINARY, "bgzip", *args, "-c"], env=env, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as p:
        feed(p, b"text\n" * 20000)
        until(lambda: len(os.listdir("/proc/%d/task" % p.pid)) == threads + 1, p)
        p.stdin.close()
        assert p.wait(HANG) == 0, p.stderr.read()


def test_plan_tells_other_threads_than_there_are(here):
    for command, threads in (("merge", in_all(2)), ("markdup", in_all(2)), ("sort", 2), ("sormadup", 2)):
        told = run(words(command, "-@", 2, "--plan"), cwd=here).stdout.decode()
        assert "#SBATCH --cpus-per-task=%d\n" % threads in told
        assert json.loads(run(words(command, "-@", 2, "--plan=json"), cwd=here).stdout)["threads"] == threads
