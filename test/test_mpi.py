# SPDX-License-Identifier: MIT
"""samtools-omp-mpi: the ranks together must write the bytes that one process writes.

Skipped without mpicc and mpirun. Builds `make mpi` for OpenMPI and MPICH, if they are installed, in one folder each.
MPI_LONG=1: every layout, order and file, with many ranks and little memory, 200 random settings, and each rank killed
at ten moments: minutes.
"""

import collections
import contextlib
import fcntl
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import tempfile
import time

import pytest

import bamgen
import ordergen
from conftest import BINARY, HANG, REAL_DIR, REPO, SANITIZED, clean_env

LONG = os.environ.get("MPI_LONG") == "1"
KINDS = [k for k in ("openmpi", "mpich") if shutil.which("mpicc." + k) and shutil.which("mpirun." + k)]
BOTH = [pytest.param(k, marks=[] if k in KINDS else pytest.mark.skip(reason="no mpicc.%s or mpirun.%s here" % (k, k)))
        for k in ("openmpi", "mpich")]
pytestmark = [
    pytest.mark.skipif(not KINDS, reason="no mpicc.openmpi or mpicc.mpich here"),
    pytest.mark.skipif(pathlib.Path(BINARY).resolve().parent != REPO / "build", reason="not the build that make makes"),
    pytest.mark.skipif(SANITIZED, reason="MPI libraries leak on their own"),
]
# Ranks that are killed leave their segments of shared memory, 4 MB each, which must not fill /dev/shm.
SEGMENTS = tempfile.TemporaryDirectory(prefix="mpi")
ENV = {"OMPI_MCA_btl_vader_backing_directory": SEGMENTS.name, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMP_WAIT_POLICY": "passive",
       "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_mpi_yield_when_idle": "1"}


@pytest.fixture(scope="module")
def programs():
    """The program, by kind of MPI. Tests run in several processes, one of which builds."""
    build, made = pathlib.Path(BINARY).resolve().parent, {}
    with open(build / "mpi.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for kind in KINDS:
            made[kind] = build / kind / "samtools-omp-mpi"
            run = subprocess.run(["make", "-s", "-j2", "BUILD=" + build.name, "MPICC=mpicc." + kind,
                                  "MPI_BUILD=%s/%s" % (build.name, kind), str(made[kind].relative_to(REPO))],
                                 cwd=REPO, capture_output=True, text=True)
            assert run.returncode == 0, run.stderr
    return made


@pytest.fixture(params=BOTH)
def kind(request):
    return request.param


def launch(program, kind, n, args, env={}, **kw):
    more = ["--oversubscribe"] if kind == "openmpi" else []
    threads = [] if "-@" in args else ["-@", "1"]
    kw.setdefault("stdin", subprocess.DEVNULL)
    return subprocess.Popen(["mpirun." + kind, *more, "-n", str(n), program, "sort", *threads, *map(str, args)],
                            env=clean_env(**ENV, **env), stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kw)


def sort_mpi(program, kind, n, args, env={}):
    job = launch(program, kind, n, args, env)
    try:
        _, err = job.communicate(timeout=HANG)
    finally:
        job.kill()
    return job.returncode, err.decode(errors="replace")


def same(programs, desk, source, ns, args=(), kind=KINDS[0] if KINDS else None, index=None, refused=False, env={}):
    """Checks that n ranks write the same as one process; refused: or refuse what it refuses. index: "csi" or "bai".
    env: of the ranks. Returns the messages of the last ranks."""
    one, many = desk / "one.bam", desk / "many.bam"

    def output(path):
        return ["-o", "%s##idx##%s.bai" % (path, path) if index == "bai" else path, *["--write-index"] * bool(index)]

    alone = subprocess.run([BINARY, "sort", "--no-PG", *args, *output(one), source], env=clean_env(), capture_output=True)
    assert alone.returncode == 0 or refused, alone.stderr
    err = None
    for n in ns:
        status, err = sort_mpi(programs[kind], kind, n, ["--no-PG", *args, "-T", desk / "tmp", *output(many), source], env)
        assert status == alone.returncode, err
        if status != 0:
            assert not [p.name for p in desk.iterdir() if p != source]
            continue
        assert many.read_bytes() == one.read_bytes(), (n, args)
        if index:
            assert pathlib.Path("%s.%s" % (many, index)).read_bytes() == pathlib.Path("%s.%s" % (one, index)).read_bytes()
        assert not list(desk.glob("tmp*")), (n, args)
        many.unlink()
    return err


@pytest.fixture
def desk(tmp_path):
    return tmp_path


def write(path, head, records, layout=bamgen.l_htslib):
    path.write_bytes(layout(head, records))
    return path


# Ties of one position, one key, no references, only a header, records of several blocks, small blocks.
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
    same(programs, desk, REAL_DIR / name, (1, 2, 3, 4, 7) if LONG else (2, 4), index="csi")


@pytest.mark.parametrize("args, index", [
    (["-t", "RG", "-n"], None), (["-N", "-l", "0"], None), (["-@", "3", "-l", "9"], "bai"), (["-@", "2"], "csi")], ids=str)
def test_setting_or_the_other_mpi_changes_the_bytes(programs, desk, kind, args, index):
    source = write(desk / "in.bam", *bamgen.realistic(2000))
    same(programs, desk, source, (2, 5) if LONG else (3,), args, kind, index)


def more_than_memory(n=52000):
    """Each of two ranks gets more than fits into -m 3M plus 64 MiB."""
    head, records = bamgen.incompressible(n)
    return bamgen.bgzf(head + b"".join(records), level=0)


def test_ranks_that_spill_lose_the_order(programs, desk):
    """Both sorts of a rank go to temporary files, and back: rank 0 reports it once."""
    source = desk / "in.bam"
    source.write_bytes(more_than_memory())
    told = same(programs, desk, source, (2,), ["-m", "3M", "-l", "0"])
    assert told.count("merging from") == 1, told


# ---------------------------------------------------------------- minimisers

# Keys that decide, and keys of too long k-mers, where records are compared, too; the index has its own kind of keys.
MINHASH = [["-M"], ["-M", "-K", "25"], ["-I", "genome.fa", "-w", "30"], ["-M", "-R", "-H", "-K", "9"]]


def half_placed(n=8000):
    """Reads with and without reference; those without have fields and bins that the order clears or keeps."""
    r = bamgen.rng("half placed")
    return bamgen.header(), [
        bamgen.record("p%d" % i, r.choice((0, 16, 4)), r.randrange(3), r.randrange(900), cigar=[]) if r.random() < .3
        else ordergen.unplaced(r, i, ordergen.genome_read(r, r.choice((20, 80, 150)))) for i in range(n)]


@pytest.mark.release
def test_line_of_the_page_is_refused(programs, desk, monkeypatch):
    """Ranks start here by mpirun, with fewer threads and less memory than on a cluster's nodes."""
    page = (pathlib.Path(__file__).parent.parent / "doc" / "mpi.md").read_text().split("\n## Use\n")[1].split("\n## ")[0]
    lines = re.findall(r"^    .*samtools-omp-mpi sort (.*)$", page.replace("\\\n", ""), re.M)
    assert len(lines) == 3
    write(desk / "in.bam", *bamgen.realistic(3000))
    (desk / "sorted").mkdir()
    monkeypatch.chdir(desk)
    for line in lines:
        words = re.sub(r"/scratch(/\S+)?", str(desk), line.replace("-@ 32", "-@ 2").replace("-m 3G", "-m 64M")).split()
        out = desk / words[words.index("-o") + 1]
        status, err = sort_mpi(programs[KINDS[0]], KINDS[0], 2, words)
        assert status == 0 and out.read_bytes()[:4] == b"\x1f\x8b\x08\x04", (line, err)
        out.unlink()


@pytest.fixture
def ranked(programs, desk, monkeypatch):
    """Returns same(), in a folder that has the genome of the reads."""
    (desk.parent / "genome.fa").write_text(">g\n%s\n" % ordergen.genome())
    monkeypatch.chdir(desk.parent)
    return lambda *args, **kw: same(programs, desk, *args, **kw)


@pytest.mark.parametrize("args", MINHASH, ids=" ".join)
@pytest.mark.parametrize("shape", ["m_ties", "m_placed", "c_all_unmapped", "c_header_only"] if LONG else ["m_placed"])
def test_ranks_rank_reads_otherwise_than_one_process(desk, ranked, shape, args):
    source = write(desk / "in.bam", *getattr(bamgen if shape[0] == "c" else ordergen, shape)(), bamgen.l_prime_blocks)
    ranked(source, (1, 2, 3, 7) if LONG else (3,), args)


def test_header_says_sorted_or_not_by_one_ranks_reads(desk, ranked):
    """Only the last rank has a read with a reference; in the other input, only the first one."""
    head, reads = ordergen.m_overlapping()
    placed = bamgen.record("placed", 0, 1, 7)
    for records in (reads, [*reads, placed], [placed, *reads]):
        ranked(write(desk / "in.bam", head, records, bamgen.l_prime_blocks), (3,), ["-M"], index="csi")


@pytest.mark.parametrize("args", MINHASH, ids=" ".join)
def test_ranks_are_lost_in_temporary_files_or_the_index_sees_them(desk, ranked, kind, args):
    """Both sorts of each of the last ranks spill. One rank reports the index of minimisers."""
    source = write(desk / "in.bam", *half_placed())
    told = ranked(source, (5, 2) if LONG else (3,), args, kind, "csi", env={"SAMTOOLS_OMP_ARENA": "270000"})
    assert told.count("merging from") == 1, told
    assert told.count("Building index ... done") == ("-I" in args), told


@pytest.mark.parametrize("form", ["sam", "cram,no_ref=1"])
def test_form_of_the_input_changes_ranks(desk, ranked, form):
    source = write(desk / "bam.bam", *ordergen.m_overlapping())
    other = desk / "other"
    subprocess.run([BINARY, "sort", "--no-PG", "-n", "-O", form, "-o", other, source], check=True, env=clean_env())
    ranked(other, (3,), ["-M"])


def test_each_rank_says_that_the_index_of_minimisers_cannot_be_made(programs, desk):
    source = write(desk / "in.bam", *ordergen.m_ties())
    (desk / "junk.fa").write_text("what?\n")
    status, err = sort_mpi(programs[KINDS[0]], KINDS[0], 3, ["-I", desk / "junk.fa", "-o", desk / "out.bam", source])
    assert status == 1
    assert err.count("Building index ... failed") == err.count("rank 0: the index of minimisers") == 1, err
    assert err.count("cannot be made") == 1
    assert not (desk / "out.bam").exists()


# ---------------------------------------------------------------- refused, broken


@pytest.mark.parametrize("args, why", [
    (["-O", "sam"], "BAM"), (["--verify"], "--verify"), (["--plan"], "--plan"),
    (["--progress"], "--progress"), (["--check"], "--check"), (["--trace=t.json"], "--trace")],
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


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_launcher_that_spoils_standard_input_is_trusted(programs, desk, name):
    run = subprocess.run([programs[KINDS[0]], "sort", "-o", desk / "out.bam", name], capture_output=True, stdin=subprocess.DEVNULL,
                         text=True, env=clean_env(**ENV, PRTE_LAUNCHED="1"))
    assert run.returncode == 1 and "named pipe. Nothing was read" in run.stderr
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


# ---------------------------------------------------------------- random settings

SOURCES = [bamgen.c_ties, bamgen.c_mixed, bamgen.c_all_unmapped, bamgen.c_block_edges, ordergen.n_traps, ordergen.t_all,
           ordergen.n_late, ordergen.m_placed, half_placed, lambda: bamgen.realistic(3000), lambda: bamgen.incompressible(9000)]
LAYOUTS = [bamgen.l_htslib, bamgen.l_straddle, bamgen.l_prime_blocks]
Setting = collections.namedtuple("Setting", "source layout args n kind index")


def setting(seed):
    """Draws a setting. Its source is None if there are more data than fit into memory."""
    r = random.Random("ranks %d" % seed)
    order = r.choice([[], [], [], ["-n"], ["-N"], ["-t", "RG"], ["-t", "NM"], ["-t", "XT", "-n"], ["-t", "XT"], ["-M"],
                      ["-M", "-K", "25"], ["-M", "-R"], ["-M", "-H", "-K", "7"]])
    args = [*order, *r.choice([[], *[["-l", level] for level in "0169"]]), "-@", r.choice("1123"),
            *r.choice([[], ["-m", "4M"], ["-m", "9M"], ["--no-PG"]])]
    index = r.choice([None, "csi", "bai"]) if not order or order[0] == "-M" else None
    if LONG and seed % 10 == 9:
        return Setting(None, None, [*order, "-l", r.choice("01"), "-@", r.choice("12"), "-m", r.choice(("2M", "3M"))],
                       r.choice((1, 2)), KINDS[seed // 10 % len(KINDS)], index)
    return Setting(r.randrange(len(SOURCES)), r.randrange(len(LAYOUTS)), args, r.choice((1, 2, 2, 3, 4, 5, 7) if LONG else (2, 3)),
                   KINDS[seed % len(KINDS)], index)


@pytest.mark.parametrize("seed", range(200 if LONG else 8))
def test_random_setting_changes_the_bytes(programs, desk, seed):
    s = setting(seed)
    source = desk / "in.bam"
    source.write_bytes(LAYOUTS[s.layout](*SOURCES[s.source]()) if s.layout is not None else more_than_memory())
    same(programs, desk, source, (s.n,), s.args, s.kind, s.index, refused=True)


# ---------------------------------------------------------------- killed ranks

KILLED = 3  # ranks


def ranks_of(mark):
    """The processes of ours that have this in their environment, by rank."""
    found = {}
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if not (folder / "comm").read_text().startswith("samtools-omp-mp"):
                continue
            env = dict(x.split(b"=", 1) for x in (folder / "environ").read_bytes().split(b"\0") if b"=" in x)
        except OSError:
            continue
        rank = env.get(b"OMPI_COMM_WORLD_RANK", env.get(b"PMI_RANK"))
        if env.get(b"MPI_TEST") == os.fsencode(mark) and rank is not None:
            found[int(rank)] = int(folder.name)
    return found


def have_begun(ranks, source):
    """Returns whether all have the input open. (While MPI starts, mpirun handles a kill itself.)"""
    try:
        return len(ranks) == KILLED and all(any(os.path.realpath(fd) == str(source) for fd in
                                                pathlib.Path("/proc/%d/fd" % pid).iterdir()) for pid in ranks.values())
    except OSError:
        return False


def kill_all(job, mark):
    """A rank may be gone by then: mpirun kills the others when one dies."""
    for pid in ranks_of(mark).values():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    if job.poll() is None:
        os.killpg(job.pid, signal.SIGKILL)
    job.wait()


def begin(programs, kind, source, out):
    """A sort whose ranks have all begun, and the ranks."""
    job = launch(programs[kind], kind, KILLED, ["--no-PG", "-l", "6", "-m", "24M", "-T", out.parent / "tmp", "-o", out, source],
                 env={"MPI_TEST": str(out)}, start_new_session=True)
    until = time.monotonic() + HANG
    while job.poll() is None and time.monotonic() < until:
        ranks = ranks_of(out)
        if have_begun(ranks, source):
            return job, ranks
        time.sleep(0.002)
    return job, {}


@pytest.fixture(scope="module")
def long_sort(programs, tmp_path_factory):
    """Its input, its output, and by kind of MPI its seconds since the ranks have begun."""
    folder, spans = tmp_path_factory.mktemp("killed"), {}
    source, out = write(folder / "in.bam", *bamgen.incompressible(14000)), folder / "out.bam"
    for kind in KINDS:
        job, ranks = begin(programs, kind, source, out)
        begun = time.monotonic()
        try:
            _, err = job.communicate(timeout=HANG)
        finally:
            kill_all(job, out)
        assert job.returncode == 0, err
        spans[kind] = time.monotonic() - begun
    return source, out.read_bytes(), spans


def kill_at(programs, kind, source, desk, rank, seconds):
    """The status of a sort, or None if it had ended before."""
    out = desk / "out.bam"
    job, ranks = begin(programs, kind, source, out)
    try:
        time.sleep(seconds if ranks else 0)
        if rank not in ranks or ranks_of(out).get(rank) != ranks[rank]:
            return None
        os.kill(ranks[rank], signal.SIGKILL)
        job.communicate(timeout=HANG)
        end = time.monotonic() + HANG
        while ranks_of(out):
            assert time.monotonic() < end, "ranks wait for ever"
            time.sleep(0.02)
        return job.returncode
    finally:
        kill_all(job, out)


MOMENTS = 10 if LONG else 3
KILLS = [(rank, moment) for rank in range(KILLED) for moment in range(MOMENTS) if LONG or rank == moment]


@pytest.mark.skipif(not pathlib.Path("/proc/self/environ").exists(), reason="no /proc that shows ranks")
@pytest.mark.parametrize("rank, moment", KILLS)
def test_killed_rank_leaves_a_file_or_the_others_wait(programs, desk, long_sort, kind, rank, moment):
    source, whole, spans = long_sort
    seconds, ended = spans[kind] * (moment + 0.3) / MOMENTS, None
    for _ in range(9):                           # if a sort was faster this time, the next one is killed earlier
        ended = kill_at(programs, kind, source, desk, rank, seconds)
        if ended:
            break
        seconds *= 0.6
        (desk / "out.bam").unlink(missing_ok=True)
    assert ended, "it always ended before it could be killed"
    left = sorted(p.name for p in desk.iterdir())
    # Once the file has its name, ranks only have to leave MPI.
    assert left == [] or (left == ["out.bam"] and (desk / "out.bam").read_bytes() == whole), left


def test_launcher_of_another_mpi_sorts_many_times(programs, desk):
    source = write(desk / "in.bam", *bamgen.c_ties())
    run = subprocess.run([programs[KINDS[0]], "sort", "-o", desk / "out.bam", source], capture_output=True, text=True,
                         env=clean_env(**ENV, SLURM_STEP_NUM_TASKS="4"))
    assert run.returncode == 1
    assert "the launcher started 4 tasks" in run.stderr
    assert not (desk / "out.bam").exists()


def test_mpirun_of_the_other_mpi_sorts_many_times(programs, desk, kind):
    if len(KINDS) < 2:
        pytest.skip("one MPI only")
    source = write(desk / "in.bam", *bamgen.c_ties())
    other = KINDS[1 - KINDS.index(kind)]
    status, err = sort_mpi(programs[other], kind, 2, ["-o", desk / "out.bam", source])
    assert status != 0
    assert err.count("the launcher started 2 tasks") == 1
    assert not (desk / "out.bam").exists()


@pytest.mark.skipif(not LONG, reason="MPI_LONG=1")
@pytest.mark.parametrize("file", sorted(REAL_DIR.glob("*.bam")), ids=lambda p: p.name)
@pytest.mark.parametrize("args", [[], ["-n"], ["-N"], ["-t", "NM"], ["--template-coordinate"], ["-m", "4M"], ["-M"],
                                  ["-M", "-K", "25"]], ids=" ".join)
def test_some_file_and_order_differs(programs, desk, file, args):
    same(programs, desk, file, (2, 4, 7), args, refused="--template-coordinate" in args)   # without MC tags
