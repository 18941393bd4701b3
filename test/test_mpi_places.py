# SPDX-License-Identifier: MIT
"""samtools-omp-mpi: the places of the ranks' temporary files, and the rights of a user other than root.

Skipped without mpicc and mpirun.
"""

import os
import shutil
import subprocess

import pytest

import bamgen
from conftest import BINARY, HANG, clean_env, launch
from test_mpi import ENV, kind, more_than_memory, programs, pytestmark  # noqa: F401
from test_safety import NOBODY


@pytest.fixture
def others(programs, kind, public_dir):
    """A folder of another user, with the program; the command that starts two ranks there as that user."""
    shutil.copy(programs[kind], public_dir + "/samtools-omp-mpi")
    for name in ("home", "out"):
        os.mkdir(public_dir + "/" + name)
        os.chmod(public_dir + "/" + name, 0o777)
    os.mkdir(public_dir + "/closed", 0o755)
    os.mkdir(public_dir + "/closed/scratch")
    os.chmod(public_dir + "/closed/scratch", 0o777)
    if os.geteuid() != 0:
        os.chmod(public_dir + "/closed", 0o555)

    def go(*args, n=2, **env):
        more = ["--oversubscribe"] if kind == "openmpi" else []
        env = clean_env(**{k: v for k, v in ENV.items() if "ALLOW" not in k}, HOME=public_dir + "/home",
                        TMPDIR=public_dir + "/home", **env)
        argv = ["mpirun." + kind, *more, "-n", n, public_dir + "/samtools-omp-mpi", "sort", "-@", "1", *args]
        return subprocess.run(**launch(argv, env, NOBODY), cwd=public_dir + "/out", stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=HANG)

    yield public_dir, go
    os.chmod(public_dir + "/closed", 0o755)


@pytest.mark.parametrize("way", ["-T", "SAMTOOLS_OMP_TMPDIR"])
def test_files_go_beside_the_temporary_folder(others, way):
    """The folder's parent is not theirs. Both sorts of each rank spill, so all kinds of temporary files are made."""
    folder, go = others
    data = more_than_memory()
    with open(folder + "/in.bam", "wb") as f:
        f.write(data)
    args = ["--no-PG", "-m", "3M", "-l", "1", "--write-index", "-o"]
    alone = subprocess.run([BINARY, "sort", *args, folder + "/one.bam", folder + "/in.bam"], env=clean_env(), capture_output=True)
    assert alone.returncode == 0, alone.stderr
    place = folder + "/closed/scratch"
    p = go(*args, "out.bam", *(["-T", place] if way == "-T" else []), "../in.bam",
           **({way: place} if way != "-T" else {}))
    assert p.returncode == 0, p.stderr
    for name in ("", ".csi"):
        with open(folder + "/one.bam" + name, "rb") as one, open(folder + "/out/out.bam" + name, "rb") as many:
            assert one.read() == many.read()
    assert os.listdir(place) == [] and os.listdir(folder + "/closed") == ["scratch"]
    assert sorted(os.listdir(folder + "/out")) == ["out.bam", "out.bam.csi"]


def test_place_that_is_closed_is_told_late_or_by_all(others):
    folder, go = others
    with open(folder + "/in.bam", "wb") as f:
        f.write(bamgen.l_htslib(*bamgen.c_ties()))
    p = go("-T", folder + "/closed/name", "-o", "out.bam", "../in.bam")
    assert p.returncode != 0
    assert p.stderr.count("closed/name.rank1: Permission denied. Nothing was read") == 1, p.stderr
    assert p.stderr.count("samtools sort: rank ") == 1, p.stderr
    assert os.listdir(folder + "/out") == []


def test_long_place_is_cut(others):
    folder, go = others
    p = go("-T", folder + "/home/" + "/" * 4090, "-o", "out.bam", "../in.bam")
    assert p.returncode != 0 and "File name too long. Nothing was read" in p.stderr, p.stderr
