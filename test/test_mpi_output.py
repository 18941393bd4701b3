# SPDX-License-Identifier: MIT
"""samtools-omp-mpi: which ranks write the blocks into the one file, and the memory of a rank. Skipped like
test_mpi.py."""

import shutil
import subprocess
import sys

import pytest

import bamgen
import test_mpi
from conftest import BINARY, REPO, clean_env
from test_mpi import desk, kind, programs  # noqa: F401 (fixtures)

pytestmark = test_mpi.pytestmark
KIND = test_mpi.KINDS[0] if test_mpi.KINDS else None


@pytest.fixture
def source(tmp_path):
    return test_mpi.write(tmp_path / "in.bam", *bamgen.realistic(20000))


def test_own_writes_of_ranks_change_the_bytes(programs, desk, source):  # noqa: F811
    test_mpi.same(programs, desk, source, [2, 3, 7], index="csi")


def traced(programs, desk, source, kind, env=()):
    """The files that each of three ranks opens for writing only, by rank; the desk has their output afterwards."""
    if not shutil.which("strace") or subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True).returncode:
        pytest.skip("no strace that may trace here")
    script, logs = desk / "traced", desk / "logs"
    logs.mkdir()
    more = " ".join("-E " + e for e in env)
    script.write_text(f"""#!/bin/sh
exec strace -f {more} -e trace=open,openat -o {logs}/${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}} {programs[kind]} "$@"
""")
    script.chmod(0o755)
    status, err = test_mpi.sort_mpi(script, kind, 3, ["--no-PG", "-T", desk / "tmp", "-o", desk / "out.bam", source])
    assert status == 0, err
    return [[line.split('"')[1] for line in log.read_text(errors="replace").splitlines()
             if "O_WRONLY" in line and "= -1" not in line and '"' in line] for log in sorted(logs.iterdir())]


def shared_by_process(names):
    return any(name.startswith("/proc/") and "/fd/" in name and "/self/" not in name for name in names)


def test_one_rank_writes_the_blocks_of_all(programs, desk, source):  # noqa: F811
    """Each rank except the first must open the first one's file."""
    opened = traced(programs, desk, source, KIND)
    assert [shared_by_process(names) for names in opened] == [False, True, True]


@pytest.fixture
def apart(programs, desk, kind):  # noqa: F811
    """A library that makes each rank believe that it has its own host."""
    shim = desk / "apart_shim.so"
    subprocess.run(["mpicc." + kind, "-shared", "-fPIC", "-o", shim, REPO / "test/apart_shim.c"], check=True)
    return shim


def whole(desk, source):
    subprocess.run([BINARY, "sort", "--no-PG", "-o", desk / "one.bam", source], check=True, env=clean_env())
    return (desk / "one.bam").read_bytes()


def test_ranks_on_other_hosts_send_other_bytes(programs, desk, source, kind, apart):  # noqa: F811
    """If the output has no name, they cannot open it."""
    opened = traced(programs, desk, source, kind, [f"LD_PRELOAD={apart}"])
    assert not any(shared_by_process(names) or any("out.bam" in name for name in names) for names in opened)
    assert (desk / "out.bam").read_bytes() == whole(desk, source)


def test_ranks_on_other_hosts_send_what_they_could_write(programs, desk, source, kind, apart, fault_shim):  # noqa: F811
    """The output has a name from the start, as on NFS."""
    env = [f"LD_PRELOAD={apart}:{fault_shim['LD_PRELOAD']}", "FAULT_NAMED=1"]
    opened = traced(programs, desk, source, kind, env)
    assert [any(".out.bam.tmp-" in name for name in names) for names in opened[1:]] == [True, True]
    assert (desk / "out.bam").read_bytes() == whole(desk, source)
    assert not [p.name for p in desk.iterdir() if "tmp" in p.name]


def peak(programs, desk, n, source, kind, args=()):
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
    status, err = test_mpi.sort_mpi(script, kind, n, [*args, "-m", "16M", "-l", "0", "-T", desk / "tmp", "-o", desk / "out.bam", source])
    assert status == 0, err
    return max(map(int, peaks.read_text().split())) / 1024


def test_two_sorts_of_a_rank_take_the_memory_twice(programs, desk, tmp_path):  # noqa: F811
    """The limit of one process, -m and 64 MiB, includes the memory of MPI."""
    large = tmp_path / "large.bam"
    large.write_bytes(test_mpi.more_than_memory(150000))
    took = peak(programs, desk, 2, large, KIND)
    print("%.1f MiB" % took)
    assert took < 16 + 64


def test_index_of_minimisers_stays_beside_the_second_sort(programs, desk, tmp_path):  # noqa: F811
    """The one for 30 Mb needs 36 MB, and each rank has one."""
    source, fasta = tmp_path / "large.bam", tmp_path / "genome.fa"
    source.write_bytes(test_mpi.more_than_memory())
    r = bamgen.rng("genome")
    fasta.write_bytes(b"".join(b">c%d\n%s\n" % (i, r.randbytes(300000).translate(b"ACGT" * 64)) for i in range(100)))
    took = peak(programs, desk, 2, source, KIND, ["-I", fasta, "-w", "50"])
    assert took < 16 + 64
