# SPDX-License-Identifier: MIT
"""External events while a sort runs: signals, limits of the machine and of control groups, files that change, file
systems that refuse. Nothing is lost then, and no file is left."""

import contextlib
import errno
import json
import os
import pathlib
import re
import signal
import subprocess
import time

import pytest

import bamgen
from conftest import BINARY, HANG, HTSLIB_LEAKS, PRECIOUS, SANITIZED, blocks, clean_env, limit_on, run, run_sort, sorted_bytes
from test_safety import feed, in_name_space, running, snapshot, until, writes_below
from test_spill import MANY, has_unnamed_files, runs_in

MIB = 1 << 20


# ---------------------------------------------------------------- signals

# All signals that end a process by default and do not report a fault of its own. XFSZ: see full disks in
# test_safety.py.
ENDING = [getattr(signal, "SIG" + name) for name in (
    "HUP", "INT", "QUIT", "TERM", "PIPE", "ALRM", "USR1", "USR2", "XCPU", "VTALRM", "PROF", "POLL", "PWR", "STKFLT")
    if hasattr(signal, "SIG" + name)]


# Statements for launch(): default signals, however the tests were started; and no core files.
AS_FROM_A_SHELL = """
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
signal.pthread_sigmask(signal.SIG_SETMASK, [])
for s in %r:
    signal.signal(s, signal.SIG_DFL)
""" % [int(s) for s in ENDING]


def start(argv, **kw):
    return running([BINARY, "sort", *map(str, argv)], before=AS_FROM_A_SHELL, **kw)


@pytest.fixture(params=[False, True], ids=["unnamed", "named"])
def named(request, fault_shim):
    """The environment of a program whose output has no name, or one that must be removed."""
    return fault_shim | ({"FAULT_NAMED": "1"} if request.param else {})


def names_of_parts(folder):
    return [x for x in os.listdir(folder) if ".tmp-" in x]


@pytest.mark.parametrize("sig", ENDING, ids=lambda s: s.name)
def test_signal_while_waiting_for_input_leaves_something(desk, made, named, sig):
    """There are temporary data on the disk."""
    before = snapshot(desk)
    with start(["-@", 2, "-o", "out.bam"], stdin=subprocess.PIPE, cwd=desk, env=MANY | named) as p:
        feed(p, made("mixed").read_bytes()[:-1000])
        until(lambda: writes_below(p, desk), p)
        assert len(names_of_parts(desk)) == ("FAULT_NAMED" in named)
        p.send_signal(sig)
        assert p.wait(HANG) == -sig
        assert p.stderr.read() == b""
        p.stdin.close()
    assert snapshot(desk) == before


@pytest.mark.parametrize("sig", ENDING, ids=lambda s: s.name)
def test_signal_while_working_leaves_something(desk, long_write, named, sig):
    before = snapshot(desk)
    with start(["-@", 2, "-l", "9", "--write-index", "-o", "out.bam", long_write], cwd=desk, env=named) as p:
        until(lambda: writes_below(p, desk), p)
        assert len(names_of_parts(desk)) == 2 * ("FAULT_NAMED" in named)
        p.send_signal(sig)
        assert p.wait(HANG) == -sig
    assert snapshot(desk) == before


def test_limit_on_cpu_time_leaves_something(desk, long_write, named):
    """ulimit -t, which sends XCPU."""
    limit = AS_FROM_A_SHELL + "resource.setrlimit(resource.RLIMIT_CPU, (1, 20))"
    before = snapshot(desk)
    argv = [BINARY, "sort", "-@", "2", "-l", "9", "-o", "out.bam", *["--add-input", long_write] * 10, long_write]
    with running(argv, limit, cwd=desk, env=named) as p:
        assert p.wait(HANG) == -signal.SIGXCPU, p.stderr.read()
    assert snapshot(desk) == before


def test_reader_that_goes_away_leaves_a_named_file(desk, long_write, named, threads):
    """The named file is that of the checksum. PIPE ends the sort, without a message in a pipeline."""
    before = snapshot(desk)
    with start(["-u", "-@", threads, "--checksum", "sum", long_write], stdout=subprocess.PIPE, cwd=desk, env=named) as p:
        assert len(p.stdout.read(100)) == 100
        assert len(names_of_parts(desk)) == ("FAULT_NAMED" in named)
        p.stdout.close()
        assert p.wait(HANG) == -signal.SIGPIPE
        assert p.stderr.read() == b""
    assert snapshot(desk) == before


# ---------------------------------------------------------------- control groups


def memory_groups():
    """Yields places where groups with limited memory can be made below our own: (folder, name of the limit's
    file)."""
    with contextlib.suppress(OSError), open("/proc/self/cgroup") as f:
        for line in f:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            if "memory" in controllers.split(","):
                yield pathlib.Path("/sys/fs/cgroup/memory" + path), "memory.limit_in_bytes"
            elif not controllers:
                yield pathlib.Path("/sys/fs/cgroup" + path), "memory.max"


@pytest.fixture
def group():
    """group(bytes) -> statements for launch() that enter a control group with this limit."""
    made = []

    def make(limit):
        for parent, name in memory_groups():
            folder = parent / ("samtools-omp-test-%d" % os.getpid())
            with contextlib.suppress(OSError):
                folder.mkdir()
                made.append(folder)
                (folder / name).write_text(str(limit))
                assert int((folder / name).read_text()) == limit
                return "with open(%r, 'w') as f:\n    f.write(str(os.getpid()))" % str(folder / "cgroup.procs")
        pytest.skip("no control group with a limit on memory can be made here")

    yield make
    for folder in made:
        assert until_removed(folder), "%s could not be removed" % folder


def until_removed(folder):
    end = time.monotonic() + HANG
    while time.monotonic() < end:
        with contextlib.suppress(OSError):
            folder.rmdir()
            return True
        time.sleep(0.05)
    return False


@pytest.fixture(scope="session")
def large(gen_bam):
    """150 MB when uncompressed."""
    return gen_bam("--size", "150M", "--level", 1)


@pytest.mark.slow
@pytest.mark.skipif(SANITIZED, reason="sanitizers need memory of their own")
@pytest.mark.parametrize("n", [1, 2, 8])
@pytest.mark.parametrize("share", ["50%", "100%"])
def test_share_of_a_group_is_taken_of_the_machine_or_killed(tmp_path, group, large, share, n):
    """Batch systems limit jobs in this way. Only the group shows how much memory there is. The kernel kills under
    pressure, so some must be left for the pages of files that are being written."""
    enter, most = group(100 * MIB), 50 if share == "50%" else 68
    out, report = tmp_path / "out.bam", tmp_path / "report.json"
    p = run_sort(["-l", "1", "-@", n, "--total-memory", share, "-T", tmp_path, "--report=%s" % report, "-o", out, large], before=enter)
    assert p.returncode == 0, (p.returncode, p.stderr)
    assert json.loads(report.read_text())["peak_rss_bytes"] <= most * MIB
    assert runs_in(p.stderr) > 0 and "warning" not in p.stderr, p.stderr
    assert run_sort(["--check", "-@", 2, out]).returncode == 0


WARNED = r"the records will take (\d+) MB of memory or more, as -m x -@ allow, but the machine or its cgroup has %s MB\. Use a smaller -m"


@pytest.mark.parametrize("pipe", [False, True], ids=["file", "pipe"])
def test_little_data_are_warned_of_for_the_memory_allowed(made, pipe):
    """A laptop sorts 4 MB with -m 3G -@ 32."""
    data = made("ties")
    args = ["-m", "1T", "-@", 3]
    p = run_sort(args, stdin=data.read_bytes()) if pipe else run_sort([*args, data])
    assert p.returncode == 0 and p.stderr == ""


@pytest.mark.skipif(SANITIZED, reason="sanitizers need memory of their own")
@pytest.mark.parametrize("way", ["file", "pipe", "hint"])
def test_more_memory_than_the_group_has_is_not_warned_of(group, large, way):
    """The warning comes before the kernel kills the sort."""
    enter = group(120 * MIB)
    args = ["-u", "-@", 2, "-m", "500M", *(["--size-hint", "150M"] if way == "hint" else [])]
    with open(large, "rb") as data:
        p = run_sort([*args, large], before=enter) if way == "file" else run_sort(args, stdin=data, before=enter)
    found = re.search(WARNED % 120, p.stderr)
    assert p.returncode == -signal.SIGKILL and found and p.stderr.count("will take") == 1, (p.returncode, p.stderr)
    assert way == "pipe" or int(found[1]) >= 120, "it was to be foreseen"


@pytest.mark.skipif(SANITIZED, reason="sanitizers need memory of their own")
@pytest.mark.parametrize("memory,size", [("500M", 500), ("50M", 150)], ids=["data fit", "others go to disk"])
def test_memory_that_the_group_has_is_warned_of(group, large, memory, size):
    p = run_sort(["-u", "-@", 2, "-m", memory, "-o", "/dev/null", large], before=group(size * MIB))
    assert p.returncode == 0 and "will take" not in p.stderr, p.stderr


@pytest.mark.skipif(SANITIZED, reason="sanitizers need memory of their own")
@pytest.mark.parametrize("n", [1, 8])
def test_sort_that_is_killed_for_its_memory_leaves_something(desk, group, large, n):
    """The request exceeds the group's memory, in spite of the warning."""
    has_unnamed_files(desk)
    before = snapshot(desk)
    p = run_sort(["-@", n, "-m", "1G", "--write-index", "-o", "out.bam", large], before=group(60 * MIB), cwd=desk)
    assert p.returncode == -signal.SIGKILL and "cgroup has 60 MB" in p.stderr, (p.returncode, p.stderr)
    assert snapshot(desk) == before


# ---------------------------------------------------------------- input that changes

EMPTY = bamgen.block(b"")


@pytest.fixture
def late(desk, made):
    """late(options...): a sort that has opened in.bam, begun to read it, and waits for the end of another input,
    which has no records. Its messages are in its .told afterwards."""
    head, recs = bamgen.incompressible(6000)
    (desk / "in.bam").write_bytes(bamgen.bgzf(head + b"".join(recs), level=0))
    first = bamgen.bgzf(head)

    @contextlib.contextmanager
    def begin(*args):
        with start([*args, "--no-PG", "-l", "1", "-o", "out.bam", "--add-input", "in.bam", "-"], cwd=desk,
                   stdin=subprocess.PIPE) as p:
            feed(p, first[:-len(bamgen.EOF_BLOCK)] + EMPTY * 10000)  # htslib waits for more than a header
            until(lambda: has_read(p, desk / "in.bam"), p)
            yield p
            with contextlib.suppress(BrokenPipeError):
                p.stdin.write(bamgen.EOF_BLOCK)
                p.stdin.close()
            p.told = p.stderr.read().decode()
            p.wait(HANG)

    return begin


def has_read(process, path):
    """Returns whether the process has opened the file and read its first bytes: in each way of reading, it has read
    further."""
    fds = "/proc/%d/fd" % process.pid
    with contextlib.suppress(OSError):
        for fd in os.listdir(fds):
            if os.readlink("%s/%s" % (fds, fd)) == str(path):
                return rchar(process) > 100000
    return False


def rchar(process):
    with open("/proc/%d/io" % process.pid) as f:
        return int(re.search(r"^rchar: (\d+)", f.read(), re.M).group(1))


def cuts(path):
    """The start of a block in the file's last third, and a place in it."""
    data = path.read_bytes()
    b = [b for b in blocks(data) if b.offset > len(data) * 2 // 3][0]
    return b.offset, b.offset + b.size // 2


@pytest.mark.parametrize("n", [1, 4])
@pytest.mark.parametrize("to", ["nothing", "whole blocks", "middle of a block"])
def test_input_that_shrinks_ends_by_bus_error_or_is_taken_for_whole(desk, late, to, n):
    before = snapshot(desk)
    with late("-@", n) as p:
        os.truncate(desk / "in.bam", dict(zip(("whole blocks", "middle of a block"), cuts(desk / "in.bam"))).get(to, 0))
    assert p.returncode == 1 and re.search("in.bam.*shorter", p.told), p.told
    after = snapshot(desk)
    assert after.pop("in.bam") != before.pop("in.bam") and after == before


@pytest.mark.parametrize("n", [1, 4])
def test_input_that_is_removed_or_replaced_is_not_the_one_that_was_opened(desk, late, n):
    expected = sorted_bytes(["--no-PG", "-l", "1", desk / "in.bam"])
    with late("-@", n) as p:
        os.unlink(desk / "in.bam")
        (desk / "in.bam").write_bytes(b"another")
    assert p.returncode == 0, p.told
    assert (desk / "out.bam").read_bytes() == expected


def test_input_is_mapped(desk, late):
    """Reading mapped bytes that were cut off ends a process by BUS."""
    with late("-@", 2) as p:
        maps = pathlib.Path("/proc/%d/maps" % p.pid).read_text()
        assert BINARY in maps or os.path.realpath(BINARY) in maps
        assert str(desk) not in maps
    assert p.returncode == 0, p.told


# ---------------------------------------------------------------- file systems that refuse


@pytest.mark.parametrize("args,file", [
    (["-o", "out.bam"], "out.bam"), (["-@", 3, "-O", "sam", "-o", "out.bam"], "out.bam"),
    (["--write-index", "-o", "out.bam"], "out.bam.csi"), (["--checksum", "sum", "-o", "out.bam"], "sum"),
    ([], "standard output")], ids=lambda v: v if isinstance(v, str) else "")
def test_error_when_a_file_is_closed_is_not_told(desk, made, fault_shim, args, file):
    """Network file systems may report only then that written data are lost."""
    before, told = snapshot(desk), 0
    env = fault_shim | {"ASAN_OPTIONS": fault_shim["ASAN_OPTIONS"] + ":detect_leaks=0"}
    for at in range(1, 100):
        report = desk.parent / "report"
        with open(desk.parent / "stdout", "wb") as stdout:
            p = subprocess.run([BINARY, "sort", *map(str, args), made("ties")], cwd=desk, stdout=stdout, stderr=subprocess.PIPE,
                               timeout=HANG, env=clean_env(FAULT_CALL="close", FAULT_AT=str(at), FAULT_ERROR=str(errno.EIO),
                                                           FAULT_REPORT=str(report), **env))
        if "struck 0" in report.read_text():
            break
        if p.returncode == 0:
            for path in desk.iterdir():
                path.unlink()
            (desk / "out.bam").write_bytes(PRECIOUS)
            before = snapshot(desk)
            continue
        assert p.returncode == 1 and snapshot(desk) == before
        told += file in p.stderr.decode() and os.strerror(errno.EIO) in p.stderr.decode()
    assert told > 0


@pytest.fixture
def mounted(desk):
    """mounted(options, args): a sort with a file system with these mount options in the folder disk. A file that is
    put there first uses up a file system of one block."""
    (desk / "disk").mkdir()

    def run(options, args, **env):
        argv = in_name_space("mount -t tmpfs -o %s none disk" % options + (" && echo >disk/x" if options != "ro" else ""), cwd=desk)
        return subprocess.run([*argv, BINARY, "sort", *map(str, args)], cwd=desk, capture_output=True, timeout=HANG,
                              env=clean_env(**HTSLIB_LEAKS, **env))

    return run


@pytest.mark.parametrize("args", [["-o", "disk/new.bam"], ["-T", "disk/x", "-o", "out.bam"],
                                  ["--write-index", "-o", "out.bam##idx##disk/x.csi"],
                                  ["--checksum", "disk/sum", "-o", "out.bam"]], ids=lambda a: a[0])
def test_file_system_that_is_read_only_is_not_told(desk, made, mounted, args):
    before = snapshot(desk)
    p = mounted("ro", [*args, made("mixed")], **MANY)
    assert p.returncode == 1 and b"Read-only file system" in p.stderr and b"disk" in p.stderr, p.stderr
    errors = [line for line in p.stderr.splitlines() if b": warning: " not in line]
    assert len(errors) == 1 and snapshot(desk) == before and p.stdout == b""


@pytest.mark.parametrize("option", ["--write-index", "--checksum"])
def test_full_disk_of_an_index_is_not_told_or_costs_the_output(desk, gen_bam, mounted, option):
    args = {"--write-index": ["--write-index", "-o", "out.bam##idx##disk/file"],
            "--checksum": ["--checksum", "disk/file", "-o", "out.bam"]}[option]
    before = snapshot(desk)
    p = mounted("nr_blocks=1", [*args, gen_bam("--size", "9M", "--level", 1)])
    assert p.returncode == 1 and re.search(rb"(index|disk/file).*: No space left", p.stderr), p.stderr
    assert snapshot(desk) == before and p.stdout == b""


@pytest.mark.parametrize("total", [100, 120, 150])
@pytest.mark.parametrize("args", [["sort", "-O", "cram,no_ref=1"], ["markdup", "-S"]], ids=lambda a: a[0])
def test_more_is_enough_for_cram_than_is_said(made, tmp_path, args, total):
    path = tmp_path / "in.cram"
    path.write_bytes(sorted_bytes(["-O", "cram,no_ref=1", made("ties")]))
    names = ["-o", tmp_path / "out", path] if args[0] == "sort" else [path, tmp_path / "out"]
    p = run([*args, "-@", 8, "--total-memory", "%dM" % total, *names])
    said = re.search(r"inputs, (\d+M) is enough", p.stderr)
    if said:
        p = run([*args, "-@", 8, "--total-memory", said[1], *names])
    assert p.returncode == 0 or "too little" not in p.stderr, p.stderr


# ---------------------------------------------------------------- limits on addresses


@pytest.fixture(scope="module")
def crams(gen_bam, tmp_path_factory):
    """A BAM file and the same as CRAM, with some containers."""
    bam = gen_bam("--size", "12M", "--qual", "full")
    cram = tmp_path_factory.mktemp("crams") / "in.cram"
    cram.write_bytes(sorted_bytes(["--no-PG", "-O", "cram", "--output-fmt-option", "no_ref=1", bam]))
    return bam, cram


@pytest.mark.parametrize("argv", [["sort", "x.bam"], ["merge", "-", "x.bam"], ["bgzip", "-c", "x.bam"]], ids=str)
def test_small_stack_ends_it_without_a_word(argv):
    """ulimit -s sets 64 KiB."""
    p = run(argv, before=limit_on("STACK", 64 << 10))
    assert (p.returncode, p.stdout, p.stderr.count("\n")) == (1, b"", 1) and "run ulimit -s" in p.stderr, p.stderr


@pytest.mark.slow
@pytest.mark.skipif(SANITIZED, reason="sanitizers need larger stacks")
def test_smallest_stack_is_too_small(crams, tmp_path):
    expected = sorted_bytes(["--no-PG", crams[1]])
    for args in (["-O", "cram,no_ref=1"], ["-O", "sam"], ["-m", "1M", "--report=" + str(tmp_path / "r.html")]):
        p = run_sort(["--no-PG", "-@", 3, "-T", tmp_path, *args, crams[1]], before=limit_on("STACK", 256 << 10))
        assert p.returncode == 0, p.stderr
        assert run_sort(["--no-PG", "-"], stdin=p.stdout).stdout == expected


# MiB and threads.
LIMITS_ON_ADDRESSES = pytest.mark.parametrize("limit,n", [(500, 2), (700, 4), (1000, 2), (1000, 8), (1500, 8)])


def sort_limited(args, limit, folder):
    return run_sort(["--no-PG", "-m", "2G", "-T", folder, *args],
                    before=limit_on("AS", limit * MIB))


@pytest.mark.skipif(SANITIZED, reason="sanitizers need address space without limit")
@pytest.mark.parametrize("limit", [64, 72, 80, 88, 96])
def test_threads_take_the_addresses_that_their_work_needs(crams, limit):
    for command in ["sort"], ["merge", "-"], ["collate", "-O"]:
        p = run([*command, "--no-PG", "-@", 8, crams[0]], before=limit_on("AS", limit * MIB))
        assert p.returncode == 0 and p.stdout == run([*command, "--no-PG", crams[0]]).stdout, p.stderr


@pytest.mark.skipif(SANITIZED, reason="sanitizers need address space without limit")
@LIMITS_ON_ADDRESSES
def test_several_cram_inputs_are_each_given_all_memory(crams, tmp_path, limit, n):
    """Under ulimit -v, htslib's threads reached the limit in the middle of a container, with messages like "broken"
    files."""
    args = ["-@", n, *["--add-input", crams[1]] * 4, crams[1]]
    p = sort_limited(args, limit, tmp_path)
    assert p.returncode == 0, p.stderr
    assert p.stdout == sorted_bytes(["--no-PG", *args])


@pytest.mark.skipif(SANITIZED, reason="sanitizers need address space without limit")
@LIMITS_ON_ADDRESSES
def test_cram_output_is_given_memory_that_is_not_there(crams, tmp_path, limit, n):
    """Under ulimit -v, htslib's threads wait forever, or crash."""
    p = sort_limited(["-@", n, "-O", "cram", "--output-fmt-option", "no_ref=1", crams[0]], limit, tmp_path)
    assert p.returncode == 0, p.stderr
    (tmp_path / "out.cram").write_bytes(p.stdout)
    assert sorted_bytes(["--no-PG", tmp_path / "out.cram"]) == sorted_bytes(["--no-PG", crams[1]])
