# SPDX-License-Identifier: MIT
"""samtools-omp-mpi: the ranks together must write the bytes that one process writes.

Skipped without mpicc and mpirun. Builds `make mpi` for each MPI that is there, in a folder of its own.
MPI_LONG=1: every layout, order and file, with many ranks and little memory: minutes.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import time

import pytest

import bamgen
import ordergen
from conftest import BINARY, REAL_DIR, REPO, SANITIZED, clean_env

LONG = os.environ.get("MPI_LONG") == "1"
KINDS = [k for k in ("openmpi", "mpich") if shutil.which("mpicc." + k) and shutil.which("mpirun." + k)]
pytestmark = [
    pytest.mark.skipif(not KINDS, reason="no mpicc.openmpi or mpicc.mpich here"),
    pytest.mark.skipif(pathlib.Path(BINARY).resolve().parent != REPO / "build", reason="another build than make's own"),
    pytest.mark.skipif(SANITIZED, reason="MPI libraries leak on their own"),
    pytest.mark.xdist_group("mpi"),
]
ENV = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_WAIT_POLICY": "passive",
       "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}


@pytest.fixture(scope="module")
def programs():
    """The program, by kind of MPI."""
    made = {}
    for kind in KINDS:
        build = pathlib.Path(BINARY).resolve().parent
        made[kind] = build / kind / "samtools-omp-mpi"
        run = subprocess.run(["make", "-s", "-j2", "BUILD=" + build.name, "MPICC=mpicc." + kind,
                              "MPI_BUILD=%s/%s" % (build.name, kind), str(made[kind].relative_to(REPO))],
                             cwd=REPO, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
    return made


def launch(program, kind, n, args, **kw):
    more = ["--oversubscribe"] if kind == "openmpi" else []
    return subprocess.Popen(["mpirun." + kind, *more, "-n", str(n), program, "sort", "-@", "1", *map(str, args)],
                            env=clean_env(**ENV), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, **kw)


def sort_mpi(program, kind, n, args):
    job = launch(program, kind, n, args)
    try:
        _, err = job.communicate(timeout=100)
    finally:
        job.kill()
    return job.returncode, err.decode(errors="replace")


def same(programs, desk, source, ns, args=(), kind=KINDS[0] if KINDS else None, index=False):
    """Whether n ranks write what one process writes."""
    one, many = desk / "one.bam", desk / "many.bam"
    write = ["--write-index"] if index else []
    subprocess.run([BINARY, "sort", "--no-PG", *args, *write, "-o", one, source], check=True, env=clean_env(),
                   stderr=subprocess.DEVNULL)
    for n in ns:
        status, err = sort_mpi(programs[kind], kind, n, ["--no-PG", *args, *write, "-T", desk / "tmp", "-o", many, source])
        assert status == 0, err
        assert many.read_bytes() == one.read_bytes(), (n, args)
        if index:
            assert many.with_suffix(".bam.csi").read_bytes() == one.with_suffix(".bam.csi").read_bytes(), (n, args)
        many.unlink()


@pytest.fixture
def desk(tmp_path):
    return tmp_path


def write(path, head, records, layout=bamgen.l_htslib):
    path.write_bytes(layout(head, records))
    return path


# Ties of one position, one key, no references, the header alone, records of several blocks, small blocks.
SHAPES = ["ties", "one_key", "all_unmapped", "header_only", "one_record", "long_records", "block_edges", "cg_long"]


@pytest.mark.parametrize("shape", SHAPES)
def test_ranks_part_ties_and_empty_inputs_otherwise_than_one_process(programs, desk, shape):
    source = write(desk / "in.bam", *getattr(bamgen, "c_" + shape)())
    same(programs, desk, source, (1, 2, 3, 4, 7) if LONG else (3,))


@pytest.mark.parametrize("args", [["-n"], ["-N"], ["-t", "NM"], ["-u"]], ids=" ".join)
def test_keys_of_ranks_disagree(programs, desk, args):
    source = write(desk / "in.bam", *ordergen.n_traps(), bamgen.l_prime_blocks)
    same(programs, desk, source, (2, 5) if LONG else (3,), args)


@pytest.mark.parametrize("name", ["test2.bam", "cigar-64k.bam"])
def test_real_file_or_its_index_differs(programs, desk, name):
    if not (REAL_DIR / name).exists():
        pytest.skip("no %s here" % name)
    same(programs, desk, REAL_DIR / name, (1, 2, 3, 4, 7) if LONG else (2, 4), index=True)


def test_other_mpi_writes_other_bytes(programs, desk):
    if len(KINDS) < 2:
        pytest.skip("one MPI only")
    source = write(desk / "in.bam", *ordergen.n_traps())
    same(programs, desk, source, (3,), kind=KINDS[1])


def test_ranks_that_spill_lose_the_order(programs, desk):
    """Both sorts of a rank go to temporary files, and come back twice."""
    source = write(desk / "in.bam", *bamgen.incompressible(40000))
    same(programs, desk, source, (2,), ["-m", "6M"])
    assert not [p for p in desk.iterdir() if p.name.startswith("tmp")]


@pytest.mark.parametrize("args, why", [
    (["-M"], "-M"), (["-O", "sam"], "BAM"), (["--verify"], "--verify"), (["--add-input", "x.bam"], "one input")],
    ids=lambda a: a if isinstance(a, str) else " ".join(a))
def test_what_cannot_be_had_is_not_refused(programs, desk, args, why):
    source = write(desk / "in.bam", *bamgen.c_ties())
    run = subprocess.run([programs[KINDS[0]], "sort", *args, "-o", desk / "out.bam", source], capture_output=True,
                         text=True, env=clean_env(**ENV))
    err = run.stderr
    assert run.returncode == 1
    assert why in err
    assert "Nothing was read" in err
    assert err.count("over MPI") == 1
    assert not (desk / "out.bam").exists()


def test_broken_input_is_told_by_each_rank_or_leaves_something(programs, desk):
    data = bytearray(bamgen.l_htslib(*bamgen.realistic(2000)))
    data[len(data) // 3] ^= 0x55
    source = desk / "in.bam"
    source.write_bytes(data)
    status, err = sort_mpi(programs[KINDS[0]], KINDS[0], 3, ["-T", desk / "tmp", "-o", desk / "out.bam", source])
    assert status == 1
    assert len([line for line in err.splitlines() if "rank" in line and "in.bam" in line]) == 1, err
    assert sorted(p.name for p in desk.iterdir()) == ["in.bam"]


def ranks_of(job):
    """The processes that mpirun started, or what it starts them with."""
    found, wanted = [], {job.pid}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            found.append((int(stat.parent.name), int(stat.read_text().rpartition(")")[2].split()[1]),
                          (stat.parent / "comm").read_text().strip()))
        except (OSError, IndexError):
            pass
    for _ in range(4):
        wanted |= {pid for pid, parent, _ in found if parent in wanted}
    return [pid for pid, _, name in found if pid in wanted and name.startswith("samtools-omp-mp")]


def are_sorting(ranks, source):
    """Whether all have the input open. (While MPI begins, a kill may be mpirun's own matter.)"""
    try:
        return len(ranks) == 3 and all(any(os.path.realpath(fd) == str(source) for fd in
                                           pathlib.Path("/proc/%d/fd" % pid).iterdir()) for pid in ranks)
    except OSError:
        return False


@pytest.mark.skipif(not LONG, reason="MPI_LONG=1")
@pytest.mark.parametrize("last", [False, True], ids=["first", "last"])
def test_killed_rank_leaves_a_file_or_the_others_wait(programs, desk, last):
    source = write(desk / "in.bam", *bamgen.incompressible(40000))
    job = launch(programs[KINDS[0]], KINDS[0], 3, ["-l", "9", "-T", desk / "tmp", "-o", desk / "out.bam", source])
    try:
        until = time.monotonic() + 30
        while not are_sorting(ranks_of(job), source) and job.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        assert job.poll() is None, "it ended before it could be killed"
        os.kill(sorted(ranks_of(job))[-1 if last else 0], signal.SIGKILL)
        job.communicate(timeout=30)
    finally:
        job.kill()
    assert job.returncode != 0
    assert sorted(p.name for p in desk.iterdir()) == ["in.bam"]


def test_launcher_of_another_mpi_sorts_many_times(programs, desk):
    source = write(desk / "in.bam", *bamgen.c_ties())
    run = subprocess.run([programs[KINDS[0]], "sort", "-o", desk / "out.bam", source], capture_output=True, text=True,
                         env=clean_env(**ENV, SLURM_STEP_NUM_TASKS="4"))
    assert run.returncode == 1
    assert "the launcher started 4 tasks" in run.stderr
    assert not (desk / "out.bam").exists()


@pytest.mark.skipif(not LONG, reason="MPI_LONG=1")
@pytest.mark.parametrize("file", sorted(REAL_DIR.glob("*.bam")), ids=lambda p: p.name)
@pytest.mark.parametrize("args", [[], ["-n"], ["-N"], ["-t", "NM"], ["--template-coordinate"], ["-m", "4M"]], ids=" ".join)
def test_some_file_and_order_differs(programs, desk, file, args):
    same(programs, desk, file, (2, 4, 7), args)
