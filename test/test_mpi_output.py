# SPDX-License-Identifier: MIT
"""samtools-omp-mpi: who writes the blocks of the ranks into the one file, and the memory of a rank. Skipped as
test_mpi.py is."""

import shutil
import subprocess
import sys

import pytest

import bamgen
import test_mpi
from test_mpi import desk, programs  # noqa: F401 (fixtures)

pytestmark = test_mpi.pytestmark
KIND = test_mpi.KINDS[0] if test_mpi.KINDS else None


@pytest.fixture
def source(tmp_path):
    return test_mpi.write(tmp_path / "in.bam", *bamgen.realistic(20000))


def test_own_writes_of_ranks_change_the_bytes(programs, desk, source):  # noqa: F811
    test_mpi.same(programs, desk, source, [1, 2, 3, 4, 7], index="csi")


@pytest.mark.skipif(not shutil.which("strace"), reason="no strace")
def test_one_rank_writes_the_blocks_of_all(programs, desk, source, tmp_path):  # noqa: F811
    """Each rank but the first must open the first one's file."""
    script, logs = tmp_path / "traced", tmp_path / "logs"
    logs.mkdir()
    script.write_text(f'#!/bin/sh\nexec strace -f -e trace=open,openat -o {logs}/$$ {programs[KIND]} "$@"\n')
    script.chmod(0o755)
    if subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True).returncode != 0:
        pytest.skip("strace may not trace here")
    status, err = test_mpi.sort_mpi(script, KIND, 3, ["-T", desk / "tmp", "-o", desk / "out.bam", source])
    assert status == 0, err
    opened = [any("/proc/" in line and "/fd/" in line and "/proc/self" not in line and "O_WRONLY" in line
                  and "= -1" not in line for line in log.read_text(errors="replace").splitlines())
              for log in logs.iterdir()]
    assert sorted(opened) == [False, True, True]


def peak(programs, desk, n, source, kind):
    """MiB that the largest of n ranks took at -m 16M -@ 1."""
    script, peaks = desk / "measured", desk / "peaks"
    script.write_text(f"""#!{sys.executable}
import os, resource, subprocess, sys
status = subprocess.call([{str(programs[kind])!r}, *sys.argv[1:]])
with open("{peaks}", "a") as f:
    f.write("%d\\n" % resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
sys.exit(status)
""")
    script.chmod(0o755)
    peaks.write_text("")
    status, err = test_mpi.sort_mpi(script, kind, n, ["-m", "16M", "-l", "0", "-T", desk / "tmp", "-o", desk / "out.bam", source])
    assert status == 0, err
    return max(map(int, peaks.read_text().split())) / 1024


def test_two_sorts_of_a_rank_take_the_memory_twice(programs, desk, tmp_path):  # noqa: F811
    """The promise of one process, -m and 64 MiB. MPI's own memory, and the program's, show with a small input."""
    small = test_mpi.write(tmp_path / "small.bam", *bamgen.c_ties())
    large = tmp_path / "large.bam"
    large.write_bytes(test_mpi.more_than_memory())
    program = 4                                  # MiB that it takes without MPI, or a little more
    assert peak(programs, desk, 2, large, KIND) < 16 + 64 + peak(programs, desk, 2, small, KIND) - program
