# SPDX-License-Identifier: MIT
"""The packages and messages of `./bootstrap.sh check` and `check-all`, and the tests that each of them runs."""

import os
import shutil
import subprocess
import sys

import check_mutants
import pytest
from conftest import BINARY, REPO, script

pytestmark = pytest.mark.release

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
*show-JANSSON_LIBS) echo -ljansson ;;
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


def outside(**env):
    """The environment without the variables that the check sets for these tests."""
    names = ("NO_EXTRAS", "TESTS", "TEST_SAMPLE", "TEST_REST", "TEST_TURN", "TEST_RELEASE", "TEST_LONG", "MORE_CHECKS")
    return {**{k: v for k, v in os.environ.items() if k not in names}, **env}


def check(tree, command="check-all", **env):
    """Runs bootstrap.sh, which stops where it would begin to build: the stand-in for make fails there."""
    path = "%s:%s" % (tree / "bin", os.environ["PATH"])
    p = subprocess.run(["sh", "bootstrap.sh", command], cwd=tree, env=outside(PATH=path, **env),
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
    """If all that is needed is present, nothing else was fetched."""
    _, installed = check(tree)
    assert installed.splitlines()[0] == "lists" and installed.count("lists") == 1


def test_optional_tools_are_installed_though_not_wanted(tree):
    said, installed = check(tree, NO_EXTRAS="1")
    assert "NO_EXTRAS is set" in said, said
    assert not installed


def test_check_installs_what_a_user_does_not_need(tree):
    said, installed = check(tree, "check")
    assert "== Build" in said and "optional" not in said and not installed, said


@pytest.mark.parametrize("root", [False, True])
def test_user_who_may_not_install_is_not_told_of_conda(tree, root):
    if shutil.which("sudo"):
        pytest.skip("sudo is here")
    (tree / "bin" / "sudo").unlink()
    script(tree / "bin" / "id", "echo %d\n" % (0 if root else 1000))
    script(tree / "bin" / "cc", "exit 1\n")
    said, installed = check(tree, "deps", NO_INSTALL="1" if root else "", CC=str(tree / "bin" / "cc"))
    assert not installed and "apt-get install build-essential" in said, said
    assert ("conda install -c conda-forge -c bioconda " in said) == (not root)
    assert "dnf" not in said


@pytest.mark.parametrize("command", ["check-all", "check-rest"])
def test_what_finds_more_is_not_in_check_all(tree, command):
    assert " clang " in check(tree, command)[1]


def collected(*files, **env):
    p = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--collect-only",
                        *(files or ("test/test_coordinate.py", "test/test_spill.py"))],
                       cwd=REPO, env=outside(SAMTOOLS_OMP=BINARY, **env), capture_output=True, text=True)
    assert p.returncode == 0, p.stdout
    return [line for line in p.stdout.splitlines() if "::" in line]


def test_a_test_is_neither_in_check_nor_in_the_rest():
    """No test is in both, either. check has one set of parameters of each test."""
    everything, sample, rest = collected(), collected(TEST_SAMPLE="1"), collected(TEST_REST="1")
    assert sorted(sample + rest) == sorted(everything) and not set(sample) & set(rest)
    assert sorted(name.partition("[")[0] for name in sample) == sorted({name.partition("[")[0] for name in everything})


def test_test_of_pages_is_in_check_or_not_in_the_release():
    """Tests of pages belong to the release checks and to `all` only."""
    files = ("test/test_install.py", "test/test_packaging.py")
    everything, release, others = collected(*files), collected(*files, TEST_RELEASE="only"), collected(*files, TEST_RELEASE="no")
    assert sorted(release + others) == sorted(everything) and release and others
    assert all(name in release for name in everything if "test_packaging" in name)


def test_each_test_of_the_rest_has_its_turn():
    """A word draws about one in three, and another word draws others."""
    rest = set(collected(TEST_REST="1"))
    drawn = [set(collected(TEST_REST="1", TEST_TURN="3 " + word)) for word in ("a", "b")]
    assert all(len(rest) / 4 < len(d) < len(rest) / 2.2 and d < rest for d in drawn)
    assert len(drawn[0] & drawn[1]) < len(drawn[0]) / 2
    samples = [set(collected(TEST_SAMPLE="1", **turn)) for turn in ({}, {"TEST_TURN": "2 a"}, {"TEST_TURN": "2 b"})]
    assert all(len(samples[0]) / 3 < len(s) < len(samples[0]) / 1.5 and s - samples[0] for s in samples[1:])


CI = """echo working on $1 with WERROR=$WERROR
case $1 in extras) touch extras ;; check) [ -e extras ] && %s ;; check-rest) %s ;; *) exit 9 ;; esac
"""


@pytest.mark.parametrize("check,rest,status,last", [
    ("echo 5 passed, 0 failed, 2 skipped", "echo 7 passed, 0 failed, 1 skipped", 0, "12 passed, 0 failed, 3 skipped"),
    ("echo 5 passed, 0 failed", "echo 7 passed, 0 failed", 0, "12 passed, 0 failed"),
    ("echo 4 passed, 1 failed; exit 1", "echo 17 passed, 0 failed", 1, "21 passed, 1 failed"),
    ("echo 5 passed, 0 failed", "echo make: no rule; exit 2", 1, "5 passed, 1 failed"),
    ("exit 1", "exit 1", 1, "0 passed, 2 failed"),
])
def test_ci_does_not_sum_up_both_parts(tmp_path, check, rest, status, last):
    if not shutil.which("bash"):
        pytest.skip("no bash here")
    (tmp_path / ".ci").mkdir()
    shutil.copy(REPO / ".ci" / "run", tmp_path / ".ci")
    script(tmp_path / "bootstrap.sh", CI % (check, rest))
    p = subprocess.run(["bash", ".ci/run"], cwd=tmp_path, capture_output=True, text=True)
    assert (p.returncode, p.stdout.splitlines()[-1]) == (status, last), p.stdout + p.stderr
    assert "working on check with WERROR=1" in p.stdout and "working on check-rest" in p.stdout


def test_tests_that_are_not_known_are_run_all_the_same(tmp_path):
    p = subprocess.run(["sh", REPO / "test" / "run_tests.sh"], env=outside(TESTS="most"), capture_output=True, text=True)
    assert p.returncode == 2 and "check, all, rest or release" in p.stderr


def test_long_checks_are_silent(tmp_path):
    (tmp_path / "test" / "fuzz").mkdir(parents=True)
    (tmp_path / "build").mkdir()
    shutil.copy(REPO / "test" / "run_tests.sh", tmp_path / "test")
    for name in ("test/check_names.sh", "test/check_tsan.sh", "test/check_static.sh", "test/fuzz/run.sh"):
        (tmp_path / name).write_text("echo ok all\n")
    (tmp_path / "test" / "check_mutants.py").write_text("print('5 passed, 0 failed')\n")
    for name in ("test/check_asan.sh", "test/check_htslibs.sh"):
        (tmp_path / name).write_text("echo at work; sleep 3; echo 5 passed, 0 failed\n")
    p = subprocess.run(["sh", "test/run_tests.sh"], cwd=tmp_path, env=outside(BUILD="build", MORE_CHECKS="1", BEAT="1"),
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    lines = p.stdout.splitlines()
    for name in ("check_asan", "check_htslibs"):
        begin = next(i for i, x in enumerate(lines) if x.startswith("test/%s.sh: " % name))
        assert "minutes" in lines[begin] and ": at work" in lines[begin + 1], p.stdout


def test_row_of_mutants_is_lost_by_layout_or_found_twice():
    """A row's text matches with any spaces and comments. It does not match inside a longer word or a string."""
    text = "int f(int a)\n{\n    if (a   /* why */\n        && b[1] >= 2)\n        return \"if (a && b\";\n}\n"
    begin, end = text.index("a   /*"), text.index(")\n        return")
    assert check_mutants.spans(text, 0, len(text), "a && b[1]  >= 2") == [(begin, end)]
    assert [len(check_mutants.spans(text, 0, len(text), old)) for old in ("a && b", "b[1] >", "ret", "return")] == [1, 0, 0, 1]
    files = check_mutants.functions()["tally_compare"]
    assert [f[0] for f in files] == ["base/tally.c"]
    whole, begin, end = (REPO / files[0][0]).read_text(), *files[0][1:]
    assert "tally_compare(" in whole[begin:end] and whole[begin:end].endswith("\n}")


def test_row_of_mutants_names_parameters_that_no_test_has():
    """A mutant whose test is not there would only be noticed when it is made, in an hour of check-mutants."""
    known, unknown = ["test_bam_filter.py::test_fault_is_told_of_another_record[%s]" % n for n in ("1", "a word")]
    assert check_mutants.unknown_sets([known, unknown]) == [unknown]
