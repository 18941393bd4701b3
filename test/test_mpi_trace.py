# SPDX-License-Identifier: MIT
"""The library between the program and MPI (bench/cluster/mpi_trace.c) must see each message, and change nothing."""

import pathlib
import shutil
import subprocess
import sys

import pytest

import bamgen
from conftest import BINARY, HANG, REPO, SANITIZED, clean_env
from test_mpi import ENV, programs, write  # noqa: F401  (programs: a fixture)

sys.path.insert(0, str(REPO / "bench" / "cluster"))
import mpi_rule  # noqa: E402

KINDS = [k for k in ("openmpi", "mpich") if shutil.which("mpicc." + k) and shutil.which("mpirun." + k)]
pytestmark = [
    pytest.mark.skipif(not KINDS, reason="no mpicc.openmpi or mpicc.mpich here"),
    pytest.mark.skipif(sys.platform != "linux", reason="the recorder is preloaded"),
    pytest.mark.skipif(pathlib.Path(BINARY).resolve().parent != REPO / "build", reason="not the build that make makes"),
    pytest.mark.skipif(SANITIZED, reason="MPI libraries leak on their own"),
]


@pytest.mark.parametrize("kind", KINDS)
def test_message_is_missing_in_the_trace(programs, tmp_path, kind):  # noqa: F811
    recorder, source, out = tmp_path / "mpi_trace.so", tmp_path / "in.bam", tmp_path / "out.bam"
    subprocess.run(["mpicc." + kind, "-std=c11", "-D_GNU_SOURCE", "-O1", "-shared", "-fPIC", "-o", recorder,
                    REPO / "bench/cluster/mpi_trace.c"], check=True)
    write(source, *bamgen.realistic(3000))
    more = ["--oversubscribe"] if kind == "openmpi" else []
    subprocess.run(["mpirun." + kind, *more, "-n", "3", "env", "LD_PRELOAD=%s" % recorder, "MPI_TRACE=%s/t" % tmp_path,
                    "MPI_TRACE_APART=1", programs[kind], "sort", "--no-PG", "-@", "1", "-T", tmp_path / "tmp", "-o", out,
                    source],
                   env=clean_env(**ENV), check=True, timeout=HANG, stdin=subprocess.DEVNULL)
    ranks = mpi_rule.read_run(str(tmp_path / "t"))
    sent, received = mpi_rule.traffic(ranks)
    assert len(ranks) == 3 and sent == received
    assert sum(n for key, n in sent.items() if key[2:] == (mpi_rule.BLOCKS,)) > 0
    assert sum(n for key, n in sent.items() if key[2:] == (mpi_rule.RECORDS,)) > 0
