# SPDX-License-Identifier: MIT
"""What `./bootstrap.sh check` says while it works: before it installs what is optional, and in the long checks."""

import os
import shutil
import subprocess

import pytest
from conftest import REPO, script

APT = """case $* in
update*) echo "lists" >>installed.txt ;;
*--assume-no*) echo 'After this operation, 350 MB of additional disk space will be used.' ;;
*install*) echo "$@" >>installed.txt ;;
esac
"""

MAKE = """case $* in
*show-CC) echo cc ;;
*show-OPENMP_CFLAGS) echo -fopenmp ;;
*show-HTS_LIBS) echo -lhts ;;
*show-DEFLATE_LIBS) echo -ldeflate ;;
*show-LZ4_LIBS) echo -llz4 ;;
*show-*) ;;
*) exit 1 ;;
esac
"""


@pytest.fixture
def tree(tmp_path):
    """A tree in which nothing can be built, on a machine without clang and MPI and with a package manager of ours."""
    (tmp_path / "test").mkdir()
    shutil.copy(REPO / "bootstrap.sh", tmp_path)
    shutil.copy(REPO / "test" / "htslibs.txt", tmp_path / "test")
    script(tmp_path / "bin" / "apt-get", APT)
    for name in ("clang", "mpicc.openmpi", "mpicc.mpich"):
        script(tmp_path / "bin" / name, "exit 1\n")
    script(tmp_path / "bin" / "sudo", "[ \"$1\" != -n ] || shift\nexec \"$@\"\n")
    script(tmp_path / "bin" / "make", MAKE)
    return tmp_path


def check(tree, **env):
    """Ends where it builds, with make's error."""
    path = "%s:%s" % (tree / "bin", os.environ["PATH"])
    outside = {k: v for k, v in os.environ.items() if k != "NO_EXTRAS"}     # these tests may run in such a check
    p = subprocess.run(["sh", "bootstrap.sh", "check"], cwd=tree, env={**outside, "PATH": path, **env},
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    installed = tree / "installed.txt"
    return p.stdout, installed.read_text() if installed.exists() else ""


def test_optional_tools_are_installed_without_a_word(tree):
    said, installed = check(tree)
    assert "optional, for sanitizers: clang" in said and "(350 MB on disk)" in said, said
    assert "NO_EXTRAS=1 leaves them out" in said
    assert " clang " in installed


def test_mpi_is_not_installed_and_its_tests_are_skipped(tree):
    said, installed = check(tree)
    assert "optional, for openmpi: libopenmpi-dev openmpi-bin" in said and "optional, for mpich: libmpich-dev mpich" in said, said
    assert " libopenmpi-dev " in installed and " libmpich-dev " in installed


def test_nothing_optional_can_be_installed_without_lists_of_packages(tree):
    """Where all that is needed is here, nothing else has fetched them."""
    _, installed = check(tree)
    assert installed.splitlines()[0] == "lists" and installed.count("lists") == 1


def test_optional_tools_are_installed_though_not_wanted(tree):
    said, installed = check(tree, NO_EXTRAS="1")
    assert "NO_EXTRAS is set" in said, said
    assert not installed


def test_long_checks_are_silent(tmp_path):
    (tmp_path / "test" / "fuzz").mkdir(parents=True)
    (tmp_path / "build").mkdir()
    shutil.copy(REPO / "test" / "run_tests.sh", tmp_path / "test")
    for name in ("test/check_names.sh", "test/check_tsan.sh", "test/check_static.sh", "test/fuzz/run.sh"):
        (tmp_path / name).write_text("echo ok all\n")
    (tmp_path / "test" / "check_mutants.py").write_text("print('5 passed, 0 failed')\n")
    for name in ("test/check_asan.sh", "test/check_htslibs.sh"):
        (tmp_path / name).write_text("echo at work; sleep 3; echo 5 passed, 0 failed\n")
    p = subprocess.run(["sh", "test/run_tests.sh"], cwd=tmp_path, env={**os.environ, "BUILD": "build", "MORE_CHECKS": "1", "BEAT": "1"},
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = p.stdout.splitlines()
    for name in ("check_asan", "check_htslibs"):
        begin = next(i for i, x in enumerate(lines) if x.startswith("test/%s.sh: " % name))
        assert "minutes" in lines[begin] and ": at work" in lines[begin + 1], p.stdout
