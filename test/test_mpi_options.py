# SPDX-License-Identifier: MIT
"""samtools-omp-mpi: ranks that were not given the same command line or environment.

Skipped without mpicc and mpirun.
"""

import subprocess

import pytest

import bamgen
from conftest import BINARY, HANG, clean_env
from test_mpi import ENV, KINDS, desk, kind, programs, pytestmark, write  # noqa: F401


@pytest.fixture
def apart(programs, kind, desk):
    """Starts a rank for each list of words, with one environment each if given."""
    write(desk / "in.bam", *bamgen.realistic(2000))

    def go(*ranks, words=("sort",)):
        line = ["mpirun." + kind, *["--oversubscribe"] * (kind == "openmpi")]
        for i, rank in enumerate(ranks):
            env = [x for x in rank if "=" in x and x.isupper() or x.startswith("SAMTOOLS_OMP_")]
            line += [":"] * (i > 0) + ["-n", "1", "env", *env, str(programs[kind]), *words,
                                       *[str(x) for x in rank if x not in env]]
        job = subprocess.run(line, cwd=desk, env=clean_env(**ENV), stdin=subprocess.DEVNULL, capture_output=True, text=True,
                             timeout=HANG)
        ours = [x for x in job.stderr.splitlines() if x.startswith("samtools sort:")]
        assert (job.returncode == 0 and bool(words)) == (desk / "out.bam").exists()
        return job.returncode, ours, job.stdout

    return go


SORT = ["-@", "1", "--no-PG", "-o", "out.bam", "in.bam"]
# The words of the second of three ranks in place of SORT, and the message about them.
OTHERS = [
    ([*SORT, "-n"], "its order is '-n', and rank 0's is 'by coordinate'"),
    ([*SORT, "-M", "-K", "9"], "its order is '-M'"),
    ([*SORT, "-l", "1"], "its -l is '1'"),
    ([*SORT, "-u"], "its -l is '0'"),
    ([*SORT, "--write-index"], "its --write-index is 'out.bam.csi', and rank 0's is ''"),
    (["-o", "other.bam", "in.bam"], "its -o is 'other.bam', and rank 0's is 'out.bam'"),
    (["-o", "out.bam", "--add-input", "b.bam", "in.bam"], "its input is 'in.bam b.bam', and rank 0's is 'in.bam'"),
    (["-o", "out.bam", "gone.bam"], "its input is 'gone.bam'"),
    ([*SORT, "--input-fmt-option", "filter=mapq>1"], "its --input-fmt-option is 'filter=mapq>1'"),
    ([*SORT, "--reference", "x.fa"], "its --reference is 'x.fa'"),
    ([*SORT, "--size-hint", "5G"], "its --size-hint is '5"),
    ([*SORT, "--check"], "its --check is '1'"),
    ([*SORT, "-h"], "it was asked for help or a version, and rank 0 to sort"),
    ([*SORT, "--nonsense"], "its command line or environment is refused, and rank 0's is not: there is no option --nonsense"),
    ([*SORT, "-@", "many"], "is refused, and rank 0's is not: "),
    (["SAMTOOLS_OMP_TMPDIR=/not/there", *SORT], "is refused, and rank 0's is not: SAMTOOLS_OMP_TMPDIR names '/not/there'"),
]


@pytest.mark.parametrize("other, why", OTHERS, ids=lambda a: a[:30] if isinstance(a, str) else "")
def test_rank_with_other_options_crashes_or_hangs(apart, other, why):
    status, ours, out = apart(SORT, other, SORT)
    assert status != 0
    assert len(ours) == 1 and ours[0].startswith("samtools sort: rank 1: ") and why in ours[0], ours
    assert "Usage" not in out


def test_rank_0_alone_has_other_options(apart):
    status, ours, _ = apart([*SORT, "-n"], SORT)
    assert status != 0 and len(ours) == 1, ours
    assert "rank 1: its order is 'by coordinate', and rank 0's is '-n'" in ours[0]


def test_rank_0_alone_is_asked_for_help(apart):
    status, ours, out = apart([*SORT, "-h"], SORT)
    assert status != 0 and len(ours) == 1 and "rank 1: it was asked to sort, and rank 0 for help" in ours[0], ours


def test_rank_0_alone_refuses_its_options(apart):
    status, ours, _ = apart([*SORT, "--nonsense"], SORT, SORT)
    assert status != 0 and ours == ["samtools sort: there is no option --nonsense. See samtools sort --help"]


@pytest.mark.parametrize("rank", [["--help"], ["-h"], ["--version"], ["help"]], ids=" ".join)
def test_answer_comes_from_each_rank_or_fails(apart, rank):
    status, ours, out = apart(rank, rank, words=())
    assert status == 0 and not ours
    assert out.count("samtools-omp-mpi 0." if "version" in rank[0] else "Usage: mpirun") == 1, out


def test_what_may_differ_is_refused(apart, desk):
    """Threads, memory, places for temporary files and reports: nodes may differ in these. The bytes are the same."""
    (desk / "b").mkdir()
    data = bamgen.bgzf(b"".join([(lambda h, r: h + b"".join(r))(*bamgen.incompressible(9000))]), level=0)
    (desk / "in.bam").write_bytes(data)
    alone = subprocess.run([BINARY, "sort", "--no-PG", "-o", desk / "one.bam", desk / "in.bam"], env=clean_env())
    assert alone.returncode == 0
    status, ours, _ = apart(["SAMTOOLS_OMP_REPORT=b", *SORT], ["-@", "2", "-m", "2M", "-T", "b", *SORT[2:]],
                            ["SAMTOOLS_OMP_TMPDIR=b", "--verbosity", "1", *SORT])
    assert status == 0 and not ours, ours
    assert (desk / "out.bam").read_bytes() == (desk / "one.bam").read_bytes()
    assert len(list((desk / "b").glob("*.json"))) == 1
    (desk / "out.bam").unlink()
    status, ours, _ = apart(SORT, ["SAMTOOLS_OMP_REPORT=b", *SORT])
    assert status == 0 and not ours, ours


def test_memory_that_is_named_as_enough_is_refused(apart):
    """A rank needs more than a single program."""
    for too_little in "1M", "30M":
        status, said, _ = apart(*[[*SORT, "--total-memory", too_little]] * 2)
        assert status != 0 and len(said) == 1 and "66M" in said[0], said
    for threads in "1", "4":
        assert apart(*[["-@", threads, "--total-memory", "66M", "-o", "out.bam", "in.bam"]] * 2)[:2] == (0, [])


def test_small_memory_of_threads_is_told_as_another_option(apart):
    status, said, _ = apart(*[[*SORT, "-m", "1M"]] * 2)
    assert status != 0 and said == ["samtools sort: over MPI, -m times -@ is for a rank and must be at least 2M. Nothing was read."]


@pytest.mark.parametrize("command", ["merge", "view", "srot"])
def test_other_command_is_answered_by_the_usage(programs, kind, command):
    p = subprocess.run(["mpirun." + kind, "-n", "1", str(programs[kind]), command, "-o", "x.bam", "in.bam"], env=clean_env(**ENV),
                       stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANG)
    assert p.returncode != 0 and "Usage" not in p.stdout + p.stderr
    assert "samtools-omp-mpi: '%s': only sort runs over MPI" % command in p.stderr
