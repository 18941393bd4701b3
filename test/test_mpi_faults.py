# SPDX-License-Identifier: MIT
"""samtools-omp-mpi: a rank fails, or a signal ends it, while the others work or wait.

Skipped without mpicc and mpirun.
"""

import contextlib
import os
import resource
import subprocess
import time

import pytest

import bamgen
from conftest import HANG, clean_env, feeding
from test_mpi import ENV, desk, kill_all, kind, launch, programs, pytestmark, ranks_of, write  # noqa: F401


@pytest.fixture
def silent_pipe(desk):
    """A named pipe that is open for writing, with nothing written yet: (its name, the writing end)."""
    os.mkfifo(desk / "fifo")
    fd = os.open(desk / "fifo", os.O_RDWR)
    with open(fd, "wb", buffering=0) as to:
        yield desk / "fifo", to


def broken(n=3000):
    """The broken block is not rank 0's."""
    data = bytearray(bamgen.l_htslib(*bamgen.realistic(n)))
    data[len(data) * 9 // 10] ^= 0x55
    return bytes(data)


def lines_of(err):
    return [x for x in err.decode(errors="replace").splitlines() if x.startswith("samtools sort: rank")]


def test_rank_that_fails_waits_until_another_has_read_for_an_hour(programs, desk, kind, silent_pipe):
    """Rank 0 reads a pipe that stays silent after its header and some records. Another has a broken file."""
    fifo, to = silent_pipe
    data = bamgen.l_htslib(*bamgen.realistic(3000))
    (desk / "in.bam").write_bytes(broken())
    job = launch(programs[kind], kind, 3, ["-o", desk / "out.bam", "--add-input", desk / "in.bam", fifo],
                 env={"MPI_TEST": str(desk)}, start_new_session=True)
    try:
        with contextlib.suppress(BrokenPipeError):
            to.write(data[:len(data) // 2])
        _, err = job.communicate(timeout=HANG)
        assert job.returncode != 0
        assert len(lines_of(err)) == 1 and "rank 0: " not in lines_of(err)[0] and "in.bam: block" in lines_of(err)[0], err
    finally:
        kill_all(job, desk)
    assert sorted(p.name for p in desk.iterdir()) == ["fifo", "in.bam"]


@pytest.mark.parametrize("rank", [0, 1, 2])
@pytest.mark.parametrize("call", ["pwritev", "writev", "linkat"])
def test_signal_leaves_named_files_or_is_not_named(programs, desk, kind, fault_shim, rank, call):
    """If there are no unnamed files, or when one gets its name, signals are caught. Only rank 0 gives a name."""
    source = write(desk / "in.bam", *bamgen.realistic(3000))
    line = ["mpirun." + kind, *["--oversubscribe"] * (kind == "openmpi")]
    for i in range(3):
        faults = ["FAULT_CALL=" + call, "FAULT_AT=1", "FAULT_SIGNAL=15"] if i == rank else []
        named = ["FAULT_NAMED=1"] * (call != "linkat")
        line += [":"] * (i > 0) + ["-n", "1", "env", "LD_PRELOAD=" + fault_shim["LD_PRELOAD"], *named, *faults,
                                   str(programs[kind]), "sort", "-@", "1", "-T", str(desk / "tmp"), "-o",
                                   str(desk / "out.bam"), str(source)]
    p = subprocess.run(line, env=clean_env(**ENV), stdin=subprocess.DEVNULL, capture_output=True, timeout=HANG)
    if p.returncode == 0:
        assert call != "pwritev" and (rank or call != "linkat"), "no such call was made"
        return
    assert lines_of(p.stderr) == ["samtools sort: rank %d: ended by signal 15 (Terminated)." % rank]
    assert [p.name for p in desk.iterdir()] == ["in.bam"]


def test_idle_threads_of_ranks_spin(programs, desk, kind, silent_pipe):
    """Each rank starts itself again, as the ordinary program does, unless the user sets how threads wait."""
    env = {k: v for k, v in ENV.items() if k != "OMP_WAIT_POLICY"}
    for policy in (None, "active"):
        job = subprocess.Popen(["mpirun." + kind, *["--oversubscribe"] * (kind == "openmpi"), "-n", "2", programs[kind], "sort",
                                "-@", "2", "-o", desk / "out.bam", silent_pipe[0]], stdin=subprocess.DEVNULL,
                               env=clean_env(**env, MPI_TEST=str(desk), **({"OMP_WAIT_POLICY": policy} if policy else {})),
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        try:
            until, said = time.monotonic() + HANG, {}
            wanted = {rank: [b"OMP_WAIT_POLICY=" + (policy or "passive").encode()] for rank in (0, 1)}
            while time.monotonic() < until and job.poll() is None and said != wanted:
                time.sleep(0.5)
                for rank, pid in ranks_of(desk).items():
                    with contextlib.suppress(OSError), open("/proc/%d/environ" % pid, "rb") as f:
                        said[rank] = [x for x in f.read().split(b"\0") if x.startswith(b"OMP_WAIT_POLICY=")]
            assert said == wanted
        finally:
            kill_all(job, desk)


def test_ranks_spin_while_they_wait(programs, desk, kind):
    """Nothing comes through the pipe for three seconds, in which a rank that spins takes as many."""
    seconds = {}
    for late in (0, 3):
        os.mkfifo(desk / "fifo")
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        job = launch(programs[kind], kind, 4, ["-@", "2", "-o", desk / "out.bam", desk / "fifo"])
        source = write(desk / "in.bam", *bamgen.c_ties())
        with feeding(["sh", "-c", "exec >%s; sleep %d; cat %s" % (desk / "fifo", late, source)]) as feed:
            _, err = job.communicate(timeout=HANG)
            assert job.returncode == 0 and feed.wait(timeout=HANG) == 0, err
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds[late] = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        (desk / "fifo").unlink()
    assert seconds[3] - seconds[0] < 0.7, seconds
