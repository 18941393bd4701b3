# SPDX-License-Identifier: MIT
"""The parts that the tests share: the program under test, the oracle (samtools 1.24, which pysam 0.24.1 has in it), and
a BAM reader of our own that trusts neither.

SAMTOOLS_OMP=path   the program to test; default: samtools in the repository root
TEST_TIMEOUT=sec    after which a run counts as hanging; default: 120
TEST_SAMPLE=n       n sets of parameters of every test
TEST_REST=n         the sets that TEST_SAMPLE=n leaves out
TEST_TURN="n word"  one in n of these, drawn by the word: another commit, another draw
TEST_WITHOUT=names  files that are left out: "spill limits" is test_spill.py and test_limits.py
TEST_SHORT=1        few damages in tests of many: for builds with which all would take too long
TEST_RELEASE=no     without tests of pages, packages and scripts, which are marked "release"; only: just these
TEST_LONG=no        without tests that take long: those marked "slow", and those that build by clang or for MPI
"""

import atexit
import collections
import contextlib
import functools
import hashlib
import itertools
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib

import pytest

import bamgen

REPO = pathlib.Path(__file__).resolve().parent.parent
BINARY = os.path.abspath(os.environ.get("SAMTOOLS_OMP") or REPO / "samtools")
# Sources of the program: the top-level folders except those of tests and build outputs.
SOURCES = sorted(p for p in [*REPO.glob("*.c"), *REPO.glob("*/*.c")]
                 if not p.parent.name.startswith(("test", "bench", "build")))
REAL_DIR = REPO.parent / "shared" / "real"
THREADS = (1, 2, 3, 8)
MORE_THREADS = (0, 1, 3, 8)  # for merge, fixmate and others, whose first thread comes on top if it has a CPU
HANG = int(os.environ.get("TEST_TIMEOUT", 120))  # seconds; only against hangs
SANITIZED = os.path.exists(BINARY) and b"__asan_init" in pathlib.Path(BINARY).read_bytes()
# Tests set this when htslib itself leaks: after it fails to read, write or index.
HTSLIB_LEAKS = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes some seconds")
    config.addinivalue_line("markers", "release: of pages, packages and scripts, not of the program (make check-release)")
    if not os.access(BINARY, os.X_OK):
        raise pytest.UsageError("no program to test at %s: run make, or set SAMTOOLS_OMP" % BINARY)


def sampled(name, sets, n, word):
    """n of a test's sets of parameters, spread over all of them; the choice depends on the test and on the word."""
    first = zlib.crc32((word + name).encode())
    n = min(n, len(sets))
    return {(first + i * len(sets) // n) % len(sets) for i in range(n)}


SHORT = bool(os.environ.get("TEST_SHORT"))
WITHOUT_LONG = os.environ.get("TEST_LONG") == "no"
collect_ignore = ["test_%s.py" % name for name in os.environ.get("TEST_WITHOUT", "").split()]
collect_ignore_glob = ["test_mpi*.py"] * WITHOUT_LONG


def of_the_sample(items):
    """The sets that TEST_SAMPLE, TEST_REST and TEST_TURN leave."""
    n, rest = int(os.environ.get("TEST_SAMPLE") or 0), int(os.environ.get("TEST_REST") or 0)
    one_in, word = (os.environ.get("TEST_TURN") or "1 ").split(" ")
    tests = {}
    for item in items:
        tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for name, sets in tests.items():
        chosen = sampled(name, sets, n or rest or len(sets), word if n else "")
        yield from [item for i, item in enumerate(sets) if (i in chosen) == (not rest)
                    and zlib.crc32((word + item.nodeid).encode()) % int(one_in) == 0]


def pytest_collection_modifyitems(config, items):
    release = os.environ.get("TEST_RELEASE")
    kept = [item for item in items if not release or bool(item.get_closest_marker("release")) == (release == "only")]
    kept = [item for item in of_the_sample(kept) if not (WITHOUT_LONG and item.get_closest_marker("slow"))]
    config.hook.pytest_deselected(items=list(set(items) - set(kept)))
    items[:] = kept


# ---------------------------------------------------------------- the program


def clean_env(**extra):
    """The environment without variables that would change our behaviour."""
    env = {k: v for k, v in os.environ.items()
           if not k.startswith(("OMP_", "GOMP_", "KMP_", "SAMTOOLS_"))}
    env.update(extra)
    return env


# execvpe() imports warnings, and the user that the process becomes may not read the files of this Python.
LAUNCHER = """import json, os, resource, signal, sys, warnings
for s in signal.SIGPIPE, signal.SIGXFSZ:
    signal.signal(s, signal.SIG_DFL)
%s
os.execvpe(sys.argv[2], sys.argv[2:], json.loads(sys.argv[1]))
"""


def launch(argv, env, before=None):
    """Returns args and env for subprocess. before: Python statements which the process runs before it becomes the
    program. They replace preexec_fn, which forks: a forked process with threads may hang."""
    argv = list(map(str, argv))
    if before is None:
        return {"args": argv, "env": env}
    return {"args": [sys.executable, "-ISc", LAUNCHER % before, json.dumps(env), *argv]}


def limit_on(resource, value):
    """Returns a statement for launch() that sets a limit, hard and soft."""
    return "resource.setrlimit(resource.RLIMIT_%s, (%d, %d))" % (resource, value, value)


def only_cpus(cpus):
    """Returns a statement for launch() that has the effect of taskset."""
    return "os.sched_setaffinity(0, %r)" % set(cpus)


def run(argv, stdin=None, env=None, before=None, timeout=HANG, **kw):
    """Runs the program with argv; stdin: bytes, a file, or None for no input; before: see launch()."""
    feed = {"input": stdin} if isinstance(stdin, bytes) else {"stdin": stdin or subprocess.DEVNULL}
    p = subprocess.run(**launch([BINARY, *argv], clean_env(**(env or {})), before), stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, timeout=timeout, **feed, **kw)
    p.stderr = p.stderr.decode(errors="replace")
    return p


@functools.cache
def htslib_version():
    """The htslib version that the program is linked with: (1, 16)."""
    found = re.search(rb"Using htslib (\d+)\.(\d+)", run(["--version"]).stdout)
    return tuple(map(int, found.groups()))


def needs_htslib(*version):
    """Skips if the program's htslib is older and decides differently from samtools 1.24's."""
    if htslib_version() < version:
        pytest.skip("needs htslib %d.%d" % version)


@contextlib.contextmanager
def feeding(argv, **kw):
    """A process that writes into a pipe, for as long as the block runs. Without the end, it would wait for ever if the
    program fails before it opens the pipe."""
    with subprocess.Popen(argv, **kw) as p:
        try:
            yield p
        finally:
            p.kill()


def run_sort(args, **kw):
    return run(["sort", *args], **kw)


def sorted_bytes(args, **kw):
    """Standard output of a sort that has to succeed."""
    p = run_sort(args, **kw)
    assert p.returncode == 0, p.stderr
    return p.stdout


# ---------------------------------------------------------------- reading BAM

Block = collections.namedtuple("Block", "offset size data deflated")


def blocks(data):
    """The BGZF blocks of data, each checked: frame, BC subfield, CRC, size."""
    out, at = [], 0
    while at < len(data):
        magic, xlen = data[at:at + 4], struct.unpack_from("<H", data, at + 10)[0]
        assert magic == b"\x1f\x8b\x08\x04", "no gzip member with extra field at %d" % at
        extra, size = data[at + 12:at + 12 + xlen], None
        while extra:
            n = struct.unpack_from("<H", extra, 2)[0]
            if extra[:2] == b"BC" and n == 2:
                size = struct.unpack_from("<H", extra, 4)[0] + 1
            extra = extra[4 + n:]
        assert size, "no BC subfield at %d" % at
        assert at + size <= len(data), "cut block at %d" % at
        z = zlib.decompressobj(-15)
        deflated = data[at + 12 + xlen:at + size - 8]
        plain = z.decompress(deflated)
        crc, isize = struct.unpack_from("<II", data, at + size - 8)
        assert z.eof and not z.unused_data, "deflate data end elsewhere at %d" % at
        assert (crc, isize) == (zlib.crc32(plain), len(plain)), "CRC or size at %d" % at
        out.append(Block(at, size, plain, deflated))
        at += size
    return out


class Bam:
    """header text, reference dictionary (raw), and the records as one byte string."""

    def __init__(self, stream):
        assert stream[:4] == b"BAM\1"
        l_text, = struct.unpack_from("<I", stream, 4)
        self.text = stream[8:8 + l_text]
        at = start = 8 + l_text
        n_ref, = struct.unpack_from("<I", stream, at)
        at += 4
        for _ in range(n_ref):
            at += 8 + struct.unpack_from("<I", stream, at)[0]
        self.refs = stream[start:at]
        self.header_size = at
        self.body = stream[at:]

    def lines(self):
        return self.text.rstrip(b"\0").decode("latin-1").split("\n")

    def records(self):
        return split_records(self.body)


def split_records(body):
    out, at = [], 0
    while at < len(body):
        end = at + 4 + struct.unpack_from("<I", body, at)[0]
        assert end <= len(body), "record cut at %d" % at
        out.append(body[at:end])
        at = end
    return out


def read_bam(data):
    if isinstance(data, (str, os.PathLike)):
        data = pathlib.Path(data).read_bytes()
    return Bam(b"".join(b.data for b in blocks(data)))


def describe(rec):
    tid, pos, l_name, _, _, n_cigar, flag = struct.unpack_from("<iiBBHHH", rec, 4)
    return "%r tid=%d pos=%d flag=%d n_cigar=%d, %d bytes" % (
        rec[36:36 + l_name - 1], tid, pos, flag, n_cigar, len(rec))


def same_records(ours, expected):
    """Raw bytes of every record, in order."""
    if ours.body == expected.body:
        return
    a, b = ours.records(), expected.records()
    for i, (x, y) in enumerate(zip(a, b)):
        if x != y:
            pytest.fail("record %d of %d differs:\n ours     %s\n expected %s\n%s" % (
                i + 1, len(b), describe(x), describe(y),
                "(same set of records, other order)" if sorted(a) == sorted(b) else
                "(other records)"))
    pytest.fail("%d records came out, expected %d" % (len(a), len(b)))


def same_lines(ours, expected, what):
    """Compares texts line by line. An assert of them would look for all differences, which takes an hour for
    megabytes."""
    for i, (x, y) in enumerate(itertools.zip_longest(ours.splitlines(), expected.splitlines())):
        if x != y:
            pytest.fail("line %d of %s differs:\n ours     %.300s\n expected %.300s" % (i + 1, what, x, y))


def masked_lines(bam, input_lines):
    """Header lines; VN and CL hidden on the @PG lines that the sort itself added."""
    known = collections.Counter(input_lines)
    out = []
    for line in bam.lines():
        if line.startswith("@PG") and not known[line]:
            line = re.sub(r"\t(VN|CL):[^\t]*", r"\t\1:*", line)
        known[line] -= 1
        out.append(line)
    return out


def same_header(ours, expected, input_lines=()):
    assert masked_lines(ours, input_lines) == masked_lines(expected, input_lines)
    assert ours.refs == expected.refs, "reference dictionary differs"


def same_bam(ours, expected, input_lines=()):
    same_header(ours, expected, input_lines)
    same_records(ours, expected)


# ---------------------------------------------------------------- the oracle

ORACLE_SERVER = """
import json, os, signal, sys
from pysam.libcutils import _pysam_dispatch

def answer(command, args, stdin, folder, environment, seconds):
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    signal.alarm(seconds)
    os.dup2(os.open(stdin, os.O_RDONLY), 0)
    os.dup2(2, 1)
    status, err, _ = _pysam_dispatch("samtools", command, tuple(args), catch_stdout=False)
    told.write((err or "").encode("utf-8", "replace"))
    told.flush()
    return status & 0xFF

for line in sys.stdin:
    told, pid = open(sys.argv[1], "wb"), os.fork()
    if pid == 0:
        status = 99
        try:
            status = answer(**json.loads(line))
        except Exception as why:
            told.write(repr(why).encode())
            told.flush()
        finally:
            os._exit(status)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


class Oracle:
    """samtools in a separate process, which forks for each call: it keeps -N, the index of -I and other options in
    globals, so that one call would change the next. This process has threads: a child that it forks may hang."""

    def __init__(self):
        handle, self.told = tempfile.mkstemp()
        os.close(handle)
        self.server = subprocess.Popen([sys.executable, "-c", ORACLE_SERVER, self.told], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, encoding="ascii")
        atexit.register(self.end)

    def end(self):
        self.server.stdin.close()
        self.server.wait()
        os.unlink(self.told)

    def call(self, command, args, stdin):
        """Exit status and messages."""
        job = {"command": command, "args": [os.fsdecode(a) if isinstance(a, bytes) else str(a) for a in args],
               "stdin": str(stdin or os.devnull), "folder": os.getcwd(), "environment": dict(os.environ), "seconds": HANG}
        self.server.stdin.write(json.dumps(job) + "\n")
        self.server.stdin.flush()
        return int(self.server.stdout.readline()), pathlib.Path(self.told).read_text(errors="replace")


@functools.cache
def the_oracle():
    return Oracle()


def oracle_call(command, args, stdin=None):
    """A command of samtools 1.24: (exit status, stderr).

    One thread: with more, sort loses records whose position is below -1. With more it also sometimes waits forever for
    its own threads (bgzf_check_EOF), or crashes: then it is called again.
    """
    for _ in range(3):
        status, err = the_oracle().call(command, args, stdin)
        if status >= 0:
            break
    assert status in (0, 1), "the oracle crashed or hung: %d %s" % (status, err)
    return status, err


def oracle_sort(args, stdin=None):
    return oracle_call("sort", args, stdin)


def oracle_bytes(path, *args, scratch=None, stdin=None):
    """The file that samtools 1.24 makes from this input; path None: from stdin."""
    out = "%s.oracle%d" % (scratch or path, os.getpid())
    try:
        status, err = oracle_sort([*args, "-o", out, *([path] if path else [])], stdin)
        assert status == 0, err
        return pathlib.Path(out).read_bytes()
    finally:
        if os.path.exists(out):
            os.unlink(out)


_known = {}
KEEP = 1 << 22  # larger results are not cached


def oracle(path, *args, scratch=None):
    """samtools 1.24's output for this input, decoded; cached by content."""
    key = hashlib.sha256(pathlib.Path(path).read_bytes()).digest(), args
    if key in _known:
        return _known[key]
    bam = read_bam(oracle_bytes(path, *args, "-l", "1", "-O", "bam", scratch=scratch))
    if len(bam.body) <= KEEP:
        _known[key] = bam
    return bam


ORACLE_MAIN = """
import os, sys
from pysam.libcutils import _pysam_dispatch
rc, err, out = _pysam_dispatch("samtools", sys.argv[1], tuple(sys.argv[2:]), catch_stdout=False)
sys.stderr.write(err or "")
sys.stderr.flush()
os._exit(rc)
"""


def oracle_process(args, command="sort", **kw):
    """The oracle as a separate program: for exit status and stderr."""
    p = subprocess.run([sys.executable, "-c", ORACLE_MAIN, command, *map(str, args)], timeout=HANG,
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       **kw)
    p.stderr = p.stderr.decode(errors="replace")
    return p


ORACLE_BATCH = """
import sys
from pysam.libcutils import _pysam_dispatch
for path in sys.argv[1:]:
    rc, _, _ = _pysam_dispatch("samtools", "sort", ("--no-PG", "-l", "1", "-o", path + ".theirs",
                                                   path), catch_stdout=False)
    print(rc)
"""


def oracle_batch(paths):
    """Exit status of the oracle for each file; its outputs get ".theirs" appended."""
    p = subprocess.run([sys.executable, "-c", ORACLE_BATCH, *map(str, paths)], timeout=HANG,
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    status = [int(x) for x in p.stdout.split()]
    assert len(status) == len(paths), "the oracle crashed"
    return status


# ---------------------------------------------------------------- inputs


SHIM = pathlib.Path(os.path.realpath(BINARY)).parent / "fault_shim.so"


def remove_names_of_killed(folder="/dev/shm"):
    """Removes what LLVM's OpenMP runtime leaves in shared memory when a program is killed: a name with its process
    number. If the kill came early, the name has no memory, and the next program with this number ends by SIGBUS. The
    programs that tests run as other users leave such names, too; without root's rights, theirs stay."""
    for path in pathlib.Path(folder).glob("__KMP_REGISTERED_LIB_*_*"):
        if os.path.isdir("/proc/self") and not os.path.isdir("/proc/" + path.name.split("_")[-2]):
            with contextlib.suppress(OSError):
                path.unlink()


@pytest.fixture(autouse=True)
def names_of_killed():
    remove_names_of_killed()
    yield
    remove_names_of_killed()


@pytest.fixture(scope="session")
def fault_shim():
    """The environment of a program whose calls may fail: see fault_shim.c."""
    if not SHIM.exists() or b"FAULT_CALL" not in SHIM.read_bytes():
        pytest.skip("no fault_shim.so: make check-programs")
    options = "fast_unwind_on_malloc=0:exitcode=99:verify_asan_link_order=0:allocator_may_return_null=1:" + os.environ.get("ASAN_OPTIONS", "")
    return {"LD_PRELOAD": str(SHIM), "ASAN_OPTIONS": options}


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """made(name, layout) -> path of a generated BAM, made once."""
    folder = tmp_path_factory.mktemp("made")
    contents = {}

    def make(name, layout="htslib", content=None):
        path = folder / ("%s.%s.bam" % (name, layout))
        if not path.exists():
            if name not in contents:
                contents[name] = (content or bamgen.CORPUS[name])()
            path.write_bytes(bamgen.bam(*contents[name], layout))
        return path

    return make


@pytest.fixture(scope="session")
def gen_bam(tmp_path_factory):
    """gen_bam(args...) -> path of the generator's output for them, made once."""
    tools = [pathlib.Path(os.path.realpath(BINARY)).parent / "gen_bam", REPO / "build" / "gen_bam"]
    program = next((t for t in tools if os.access(t, os.X_OK)), None)
    if not program:
        pytest.skip("no gen_bam: make tools")
    folder, made = tmp_path_factory.mktemp("generated"), {}

    def make(*args):
        if args not in made:
            made[args] = folder / ("%d" % len(made))
            subprocess.run([program, *map(str, args), "-o", made[args]], check=True, stderr=subprocess.DEVNULL,
                           timeout=HANG, env=clean_env())
        return made[args]

    return make


@pytest.fixture(scope="session")
def sound():
    """Some 200 small blocks, and where they start."""
    data = bamgen.bam(*bamgen.CORPUS["mixed"](), "prime_blocks")
    return data, blocks(data)


@pytest.fixture(scope="session")
def long_write(tmp_path_factory):
    """30 MB that hardly deflate: seconds at level 9."""
    head, recs = bamgen.incompressible(20000)
    path = tmp_path_factory.mktemp("signal") / "big.bam"
    path.write_bytes(bamgen.bgzf(head + b"".join(recs), level=0))
    return path


PRECIOUS = b"the user's older file\n"


@pytest.fixture
def desk(tmp_path):
    """A folder with an older out.bam that must survive."""
    (tmp_path / "out.bam").write_bytes(PRECIOUS)
    return tmp_path


FAULTY = pathlib.Path(BINARY).resolve().parent / "faulty_samtools"


def sees_fault(desk, fault, command, args, env={}):
    """The fault happens (faulty_samtools.c), and the command ends with status 1 and one error (and warnings, when
    others need memory); returns its messages. out.bam is the older one, and no other file is left."""
    if not FAULTY.exists():
        pytest.skip("no faulty_samtools: make check-programs")
    before, told = sorted(desk.iterdir()), desk / "told"
    env = clean_env(**HTSLIB_LEAKS, **env, SAMTOOLS_FAULT=fault, SAMTOOLS_FAULT_TOLD=str(told))
    p = subprocess.run([FAULTY, command, *args], cwd=desk, env=env, timeout=HANG, stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert told.exists(), p.stderr
    assert p.returncode == 1 and len(re.findall(b"^samtools %s: (?!warning)" % command.encode(), p.stderr, re.M)) == 1, p.stderr
    assert (desk / "out.bam").read_bytes() == PRECIOUS
    assert sorted(desk.iterdir()) == sorted([*before, told])
    return p.stderr


@pytest.fixture
def public_dir():
    """A folder other users can enter, with a copy of the program."""
    with tempfile.TemporaryDirectory() as d:
        os.chmod(d, 0o755)
        shutil.copy(os.path.realpath(BINARY), d + "/program")
        yield d


@pytest.fixture(scope="session")
def realistic_bam(made):
    return made("realistic", content=lambda: bamgen.realistic(20000))


def script(path, text):
    """Makes an executable shell script of this text."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)
    return path


def bam_files(folder, what):
    files = sorted(folder.glob("*.bam")) if folder.is_dir() else []
    if not files:
        return [pytest.param(None, id="none", marks=pytest.mark.skip(reason="no %s here" % what))]
    return [pytest.param(f, id=f.name[:-4]) for f in files]


REAL_BAMS = bam_files(REAL_DIR, "../shared/real")
SIZE_BAMS = bam_files(REAL_DIR.parent / "size", "../shared/size")
DATA_BAMS = bam_files(REPO / "test" / "data", "test/data/*.bam")


@functools.lru_cache(None)
def cpus():
    """The CPUs that the program finds: those of the affinity mask, or fewer if a control group has a quota."""
    with tempfile.TemporaryDirectory() as folder:
        p = run(["sort", "-@", "auto", "--report=r.json", "-o", "o.bam"], b"@HD\tVN:1.6\n", cwd=folder)
        assert p.returncode == 0, p.stderr
        return json.loads(pathlib.Path(folder, "r.json").read_text())["threads"]


def in_all(number):
    """The threads of -@ number in a command that counts additional threads: the first one is added if it has a CPU."""
    return number + (number < cpus())


def in_turn(files, others, n):
    """Returns values for parametrize: each file with n of the others, each of these with as many files."""
    return [pytest.param(*f.values, other, id="%s-%s" % (f.id, other), marks=f.marks)
            for i, f in enumerate(files) for other in sorted(list(others)[(i * n + k) % len(others)] for k in range(n))]


FASTA_REFS = [("a", 3000), ("b", 2000), ("c", 1000)]


@pytest.fixture(scope="module")
def fasta(tmp_path_factory):
    """The references of FASTA_REFS, indexed."""
    import pysam
    path, r = tmp_path_factory.mktemp("fasta") / "ref.fa", bamgen.rng("fasta")
    path.write_text("".join(">%s\n%s\n" % (name, bamgen.bases(r, n)) for name, n in FASTA_REFS))
    pysam.faidx(str(path))
    return path


@pytest.fixture(params=THREADS, ids=lambda n: "t%d" % n)
def threads(request):
    return request.param
