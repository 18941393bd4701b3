# SPDX-License-Identifier: MIT
"""samtools-omp-mpi: who writes the blocks of the ranks into the one file. Skipped as test_mpi.py is."""

import random
import shutil
import subprocess

import pytest

import test_mpi
from conftest import BINARY, clean_env
from test_mpi import desk, programs  # noqa: F401 (fixtures)

pytestmark = test_mpi.pytestmark
KIND = test_mpi.KINDS[0] if test_mpi.KINDS else None


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.sam"
    dice = random.Random(5)
    with open(path, "w") as f:
        f.write("@HD\tVN:1.6\n@SQ\tSN:a\tLN:1000000\n")
        for i in range(40000):
            bases = "".join(dice.choices("ACGT", k=50))
            f.write(f"r{i}\t0\ta\t{dice.randrange(1, 900000)}\t60\t50M\t*\t0\t0\t{bases}\t{'I' * 50}\n")
    subprocess.run([BINARY, "sort", "-n", "-o", tmp_path / "in.bam", path], check=True, env=clean_env(),
                   stderr=subprocess.DEVNULL)
    return tmp_path / "in.bam"


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
