# SPDX-License-Identifier: MIT
"""SAM output is made by tasks: the same text for any number of threads, in memory and spilled, and by more than one
thread."""

import gzip
import json
import subprocess

import pytest

import bamgen
from conftest import BINARY, clean_env, oracle_sort, run_sort, sorted_bytes

SPILLED = {"SAMTOOLS_OMP_ARENA": "1000000"}


def many_reads():
    r = bamgen.rng("sam out")
    for i in range(8000):
        seq = bamgen.bases(r, r.randint(30, 150))
        yield bamgen.record("r%05d" % r.randint(0, 6000), 0, 0, r.randint(0, 900000), seq=seq,
                            tags=b"NMC\1RGZgroup\0")
    for size in (70000, 65280, 1500000):         # longer than a block
        seq = bamgen.bases(r, size)
        yield bamgen.record("long%d" % size, 0, 0, 5, seq=seq)


@pytest.fixture(scope="module")
def reads(tmp_path_factory):
    path = tmp_path_factory.mktemp("sam_out") / "in.bam"
    path.write_bytes(bamgen.bam(bamgen.header(), list(many_reads())))
    return path


@pytest.mark.slow
@pytest.mark.parametrize("fmt", ["sam", "sam.gz"])
@pytest.mark.parametrize("order", [[], ["-n"], ["-M"]], ids="".join)
def test_text_depends_on_threads_or_memory(reads, tmp_path, fmt, order):
    args = ["--no-PG", "-O", fmt, *order]
    status, err = oracle_sort([*args, "-o", tmp_path / "theirs", reads])
    assert status == 0, err
    want, first = (tmp_path / "theirs").read_bytes(), None
    for n, env in ((1, {}), (1, SPILLED), (2, SPILLED), (3, {}), (8, {}), (8, SPILLED)):
        out = tmp_path / "ours"
        p = run_sort([*args, "-@", n, "--verify", "-o", out, reads], env=env)
        assert p.returncode == 0, p.stderr
        first = first or sorted_bytes([*args, "-@", n, reads], env=env)
        assert out.read_bytes() == first, (n, env)
    if fmt == "sam.gz":
        assert first[-28:] == bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
        first, want = gzip.decompress(first), gzip.decompress(want)
    assert first == want


@pytest.mark.parametrize("fmt", ["sam", "sam.gz"])
def test_one_thread_makes_all_lines(reads, tmp_path, fmt):
    report = tmp_path / "report.json"
    p = run_sort(["-O", fmt, "-@", 3, "--report=%s" % report, "-o", tmp_path / "out", reads])
    assert p.returncode == 0, p.stderr
    told = json.loads(report.read_text())
    assert told["stages"]["convert"]["events"] == 0
    assert sum(slot["stages"].get("gather", 0) > 0 for slot in told["slots"]) > 1


@pytest.mark.parametrize("fmt", ["sam", "sam.gz"])
@pytest.mark.parametrize("n", [1, 3, 8])
def test_full_disk_or_closed_pipe_passes(reads, fmt, n):
    p = run_sort(["-O", fmt, "-@", n, "-o", "/dev/full", reads])
    assert p.returncode == 1 and "No space left" in p.stderr, p.stderr
    sort = subprocess.Popen([BINARY, "sort", "-O", fmt, "-@", str(n), str(reads)], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, env=clean_env())
    sort.stdout.read(10)
    sort.stdout.close()
    assert sort.wait(60) != 0
    sort.stderr.close()
