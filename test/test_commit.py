# SPDX-License-Identifier: MIT
"""The moment at which complete files get their names."""

import os
import signal
import subprocess

import pytest

import bamgen
from conftest import BINARY, HANG, clean_env, launch, run_sort
from test_safety import DEFAULT_SIGNALS, feed, running, snapshot


@pytest.mark.parametrize("call", ["linkat", "rename"])
@pytest.mark.parametrize("args", [
    ["-O", "bam", "-o", "out.bam", "in.bam"], ["-O", "sam.gz", "-o", "out.bam", "in.bam"],   # with threads of htslib
    ["--checksum=sum", "--write-index", "-o", "out.bam", "in.bam"], ["--check", "--checksum=sum", "sorted.bam"],
    ["--report=report", "--trace=trace", "-o", "out.bam", "in.bam"],
], ids=lambda args: " ".join(args[:2]))
def test_signal_while_files_get_their_names_leaves_another(desk, made, fault_shim, args, call):
    """All old or all new, and no other files."""
    (desk / "in.bam").write_bytes(made("mixed").read_bytes())
    assert run_sort(["-o", "sorted.bam", "in.bam"], cwd=desk).returncode == 0
    names = {"in.bam", "sorted.bam", "out.bam"}
    for at in range(1, 5):
        env = {**fault_shim, "FAULT_CALL": call, "FAULT_AT": str(at), "FAULT_SIGNAL": str(int(signal.SIGTERM))}
        p = subprocess.run(**launch([BINARY, "sort", "-@", "4", *args], clean_env(**env), DEFAULT_SIGNALS), cwd=desk,
                           capture_output=True, timeout=HANG)
        assert p.returncode in (0, -signal.SIGTERM), p.stderr
        left = set(os.listdir(desk))
        assert left <= names | {"sum", "out.bam.csi", "report", "trace"}
        if "--write-index" in args:
            assert len({"sum", "out.bam.csi"} & left) in (0, 2)


@pytest.mark.parametrize("args", [["--checksum=sum", "--write-index"], ["--stats=stats", "--stats-args=-S XV -P value"]], ids=str)
def test_output_that_cannot_be_put_in_place_leaves_files_beside_it(tmp_path, args):
    """A directory has taken its name during the sort."""
    data = bamgen.bam(bamgen.header(), [bamgen.record("a", 0, 0, 5 + i, tags=b"XVZ%d\0" % (i % 3)) for i in range(30)])
    with running([BINARY, "sort", *args, "-o", "out.bam", "-"], stdin=subprocess.PIPE, cwd=tmp_path) as p:
        feed(p, data)
        (tmp_path / "out.bam").mkdir()
        before = snapshot(tmp_path)
        p.stdin.close()
        assert p.wait(HANG) == 1
        assert b"out.bam" in p.stderr.read()
    assert snapshot(tmp_path) == before
