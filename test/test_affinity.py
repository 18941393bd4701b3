# SPDX-License-Identifier: MIT
"""The CPUs on which threads may run. The OpenMP specification defines the places of the team's threads (OMP_PLACES,
OMP_PROC_BIND); all others may use all places; another command gets the mask that we were started with.

A sort is stopped by a pipe with one end held open; then /proc shows the mask of each of its threads. The expected masks
are computed from the specification and the machine, not from the runtime's output.

A build by clang, with LLVM's runtime, is made in build-clang if clang can do it, but not with TEST_LONG=no. That
runtime is also tried in place of GCC's, as conda installs it.
"""

import collections
import ctypes.util
import fcntl
import functools
import json
import os
import pathlib
import shutil
import struct
import subprocess
import time

import pytest

import bamgen
from conftest import BINARY, HANG, REPO, SOURCES, SANITIZED, WITHOUT_LONG, clean_env, launch, only_cpus, script
from test_safety import feed, unread, until

pytestmark = pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="/proc tells no masks here")

START = frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else frozenset()
CPUS = sorted(START)


# ------------------------------------------------------------ what the machine has


def cpu_list(text):
    """"0,2-3" -> {0, 2, 3}"""
    ends = [part.split("-") for part in text.split(",") if part.strip()]
    return frozenset(cpu for e in ends for cpu in range(int(e[0]), int(e[-1]) + 1))


def core_of(cpu):
    """The CPUs of its core, of which SMT makes several."""
    path = pathlib.Path("/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list" % cpu)
    return cpu_list(path.read_text()) if path.exists() else frozenset([cpu])


def cores_of(mask):
    return list(dict.fromkeys(core_of(cpu) & mask for cpu in sorted(mask)))


def threads_of(mask):
    return [frozenset([cpu]) for cpu in sorted(mask)]


# ------------------------------------------------------------ settings


class Wish(collections.namedtuple("Wish", "env places policy mask ordered", defaults=("true", None, True))):
    """places: lists of places, one of which the runtime must use (abstract names leave it a choice); None: no thread is
    bound. mask: of the process, if not that of the tests. ordered: the specification defines the first place."""

    def launch(self, argv, program, **env):
        """Returns arguments for subprocess: the program, started as by taskset."""
        return launch(argv, clean_env(**program.env, **self.env, **env), only_cpus(self.mask or START))


def wishes():
    """The wishes by name, without those that need more CPUs than the machine has."""
    cores, threads = [cores_of(START)], [threads_of(START)]
    any_places = cores + threads
    first = [frozenset([cpu]) for cpu in CPUS[:4]]
    braces = ",".join("{%d}" % cpu for place in first for cpu in place)
    names = " ".join("%d" % cpu for place in first for cpu in place)
    found = {
        "nothing": Wish({}, None),
        "cores": Wish({"OMP_PLACES": "cores"}, cores, ordered=False),
        "threads": Wish({"OMP_PLACES": "threads"}, threads, ordered=False),
        "listed": Wish({"OMP_PLACES": braces}, [first]),
        "one place": Wish({"OMP_PLACES": "{%d}" % CPUS[0]}, [first[:1]]),
        "true": Wish({"OMP_PROC_BIND": "true"}, any_places, ordered=False),
        "close": Wish({"OMP_PROC_BIND": "close"}, any_places, "close", ordered=False),
        "spread": Wish({"OMP_PROC_BIND": "spread"}, any_places, "spread", ordered=False),
        "cores spread": Wish({"OMP_PLACES": "cores", "OMP_PROC_BIND": "spread"}, cores, "spread", ordered=False),
        "listed close": Wish({"OMP_PLACES": braces, "OMP_PROC_BIND": "close"}, [first], "close"),
        "listed spread": Wish({"OMP_PLACES": braces, "OMP_PROC_BIND": "spread"}, [first], "spread"),
        "listed master": Wish({"OMP_PLACES": braces, "OMP_PROC_BIND": "master"}, [first], "master"),
        "two levels": Wish({"OMP_PLACES": braces, "OMP_PROC_BIND": "spread,close"}, [first], "spread"),
        "false": Wish({"OMP_PLACES": "cores", "OMP_PROC_BIND": "false"}, None),
        "gomp": Wish({"GOMP_CPU_AFFINITY": names}, [first], "close"),
        "kmp": Wish({"KMP_AFFINITY": "compact,granularity=fine"}, threads, ordered=False),
        "taskset": Wish({}, None, mask=frozenset(CPUS[-1:])),
        "taskset cores": Wish({"OMP_PLACES": "cores"}, [[frozenset(CPUS[-1:])]], mask=frozenset(CPUS[-1:])),
    }
    if len(CPUS) > 1:
        pair = frozenset(CPUS[:2])
        found["a wide place"] = Wish({"OMP_PLACES": "{%d,%d}" % tuple(CPUS[:2])}, [[pair]])
        found["not the first"] = Wish({"OMP_PLACES": "{%d}" % CPUS[1]}, [[frozenset(CPUS[1:2])]])
    if CPUS == list(range(CPUS[0], CPUS[-1] + 1)):
        found["gomp range"] = Wish({"GOMP_CPU_AFFINITY": "%d-%d" % (CPUS[0], CPUS[-1])}, threads, "close")
    return found


WISHES = wishes() if CPUS else {}


def counts_fit(team, places, wish, n):
    """Returns whether this many threads are placed as the specification requires: team counts them by mask."""
    counts = [team[place] for place in places]
    if sum(counts) != n:
        return False
    if wish.policy == "master":
        return counts[0] == n if wish.ordered else max(counts) == n
    if n >= len(places):
        low, high = (1, n) if wish.policy == "true" else (n // len(places), -(-n // len(places)))
        return all(low <= count <= high for count in counts)
    if wish.policy == "true":
        return True
    if wish.ordered and wish.policy == "close":
        return counts == [1] * n + [0] * (len(places) - n)
    if wish.ordered and len(places) % n == 0:
        return counts == ([1] + [0] * (len(places) // n - 1)) * n
    return max(counts) == 1


def fits(masks, first, wish, n, others):
    """masks: of all threads, including the first; n of them belong to the team. others: at least this many do not."""
    if len(masks) < n + others:
        return False
    if wish.places is None:
        return set(masks) == {wish.mask or START}
    return any(places_fit(masks, first, places, wish, n) for places in wish.places)


def places_fit(masks, first, places, wish, n):
    union = frozenset().union(*places)
    if len(places) == 1:
        return set(masks) == {union}
    if first not in places[:1 if wish.ordered else None]:
        return False
    return counts_fit(collections.Counter(mask for mask in masks if mask != union), places, wish, n)


# The program, compiled by clang.


@pytest.fixture(scope="session")
def clang_build():
    """The program, as clang makes it."""
    if pathlib.Path(BINARY).resolve().parent != REPO / "build" or SANITIZED:
        pytest.skip("the program under test is not build/samtools")
    if WITHOUT_LONG:
        pytest.skip("TEST_LONG=no: no build by clang")
    probe = subprocess.run(["clang", "-fopenmp", "-x", "c", "-o", os.devnull, "-"], stderr=subprocess.DEVNULL,
                           input=b"#include <omp.h>\nint main(void) { return omp_get_num_places(); }\n",
                           ) if shutil.which("clang") else None
    if not probe or probe.returncode:
        pytest.skip("no clang with OpenMP here")
    with open(REPO / "build" / "clang.lock", "w") as lock:      # another worker of pytest makes it, too
        fcntl.flock(lock, fcntl.LOCK_EX)
        subprocess.run(["make", "-s", "-j", str(len(CPUS)), "CC=clang", "BUILD=build-clang", "CFLAGS=-O2 -g1 $(SMALL)",
                        "build-clang/samtools"], cwd=REPO, check=True, stdout=subprocess.DEVNULL)
    return str(REPO / "build-clang" / "samtools")


def llvm_runtime():
    names = [ctypes.util.find_library(name) for name in ("omp", "omp5")]
    asked = subprocess.run(["clang", "-print-file-name=libomp.so"], stdout=subprocess.PIPE,
                           encoding="utf-8").stdout.strip() if shutil.which("clang") else None
    folders = ("/usr/lib64", "/usr/lib/%s-linux-gnu" % os.uname().machine, "/usr/lib")
    paths = [asked] + [os.path.join(folder, name) for name in names if name for folder in folders]
    return next((os.path.realpath(p) for p in paths if p and os.path.isabs(p) and os.path.exists(p)), None)


@pytest.fixture(scope="session")
def conda_like(tmp_path_factory):
    """A folder in which LLVM's runtime has the name of GCC's."""
    if SANITIZED or b"libgomp.so.1" not in pathlib.Path(BINARY).read_bytes():
        pytest.skip("the program is not linked with libgomp")
    library = llvm_runtime()
    if not library:
        pytest.skip("no libomp here")
    folder = tmp_path_factory.mktemp("conda")
    (folder / "libgomp.so.1").symlink_to(library)
    return str(folder)


def without_preinit(program, path):
    """A copy in which glibc finds nothing to call before the libraries, as musl does not look for it."""
    if SANITIZED:
        pytest.skip("sanitizers must be called early")
    data = bytearray(pathlib.Path(program).read_bytes())
    if data[:6] != b"\x7fELF\2\1":
        pytest.skip("not a 64-bit little-endian ELF file")
    table, = struct.unpack_from("<Q", data, 32)
    size, n = struct.unpack_from("<HH", data, 54)
    segments = [struct.unpack_from("<IIQQQQ", data, table + i * size) for i in range(n)]
    at, length = next((s[2], s[5]) for s in segments if s[0] == 2)          # PT_DYNAMIC
    found = 0
    for entry in range(at, at + length, 16):
        if struct.unpack_from("<Q", data, entry)[0] == 33:                  # DT_PREINIT_ARRAYSZ
            struct.pack_into("<Q", data, entry + 8, 0)
            found += 1
    assert found == 1, "the program has no functions to be called early"
    path.write_bytes(data)
    path.chmod(0o755)
    return str(path)


Program = collections.namedtuple("Program", "path env", defaults=({},))


PROGRAMS = ["as built", "libomp for libgomp", "by clang"]


@pytest.fixture(params=PROGRAMS)
def program(request):
    if request.param == "as built":
        return Program(BINARY)
    if request.param == "by clang":
        return Program(request.getfixturevalue("clang_build"))
    return Program(BINARY, {"LD_LIBRARY_PATH": request.getfixturevalue("conda_like")})


@pytest.fixture
def unhooked(program, tmp_path):
    return program._replace(path=without_preinit(program.path, tmp_path / "program"))


# ------------------------------------------------------------ a sort that is held


@pytest.fixture(scope="session")
def inputs(tmp_path_factory):
    """Some 4 MB that hardly deflate, in any format more than all pipes hold."""
    folder = tmp_path_factory.mktemp("affinity")
    r = bamgen.rng("affinity")
    qualities = bytes(i % 60 for i in range(256))
    records = [bamgen.raw_record(0, r.randint(0, 1 << 20), 8, 60, 4680, 0, 4, 1000, body=b"%07d\0" % i + r.randbytes(500)
                                 + r.randbytes(1000).translate(qualities)) for i in range(2500)]
    (folder / "in.bam").write_bytes(bamgen.bam(bamgen.header(), records))
    for name in ("cram", "sam"):
        subprocess.run([BINARY, "sort", "-O", name + ",no_ref=1" * (name == "cram"), "-o", folder / ("in." + name),
                        folder / "in.bam"], check=True, env=clean_env())
    return folder


# Arguments; the input, "<": by a pipe that is not closed; the number of threads that must exist besides the team. If
# the input is not held open, the output is not read.
HELD = {
    "file to pipe": (["-u"], "in.bam", 0),
    "pipe to file": (["-o", "{out}"], "<in.bam", 1),
    "SAM by a pipe": (["-o", "{out}"], "<in.sam", 1),
    "to SAM.gz": (["-O", "sam.gz"], "in.bam", 0),
    "to CRAM": (["-O", "cram,no_ref=1"], "in.bam", 3),
    "CRAM by a file": (["-u"], "in.cram", 0),
    "CRAM by htslib": (["-u", "--input-fmt-option", "decode_md=0"], "in.cram", 2),
    "CRAM by a pipe": (["-o", "{out}"], "<in.cram", 3),
    "BAM with a filter": (["-u", "--input-fmt-option", "filter=mapq>=0"], "in.bam", 0),
    "threads by option": (["-u", "--input-fmt-option", "decode_md=0", "--input-fmt-option", "nthreads=2", "-O",
                           "cram,no_ref=1", "--output-fmt-option", "nthreads=2"], "in.cram", 5),
    "file to file": (["-o", "{out}", "--report={fifo}"], "in.bam", 0),
}
ALONE = {"threads by option": 1}    # htslib does not accept its own threads and a pool for one file


class Held:
    """A sort that cannot end before release()."""

    def __init__(self, program, args, source, folder, wish, env, n):
        fifo, self.feed, held = folder / "report", None, source.name.startswith("<")
        self.fifo = self.fill(fifo) if any("{fifo}" in arg for arg in args) else None
        args = [arg.format(out=folder / "out", fifo=fifo) for arg in args]
        path = source.with_name(source.name.lstrip("<"))
        argv = [program.path, "sort", "-m", "128M", "-@", n, *args, "-" if held else path]
        self.process = subprocess.Popen(**wish.launch(argv, program, **env), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        stdin=subprocess.PIPE if held else subprocess.DEVNULL)
        self.to_come = path.read_bytes()
        if held:
            self.give(len(self.to_come) // 2)
        elif not self.fifo:
            self.await_output()

    @staticmethod
    def fill(path):
        """A named pipe that accepts no more bytes."""
        os.mkfifo(path)
        fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        try:
            while os.write(fd, bytes(4096)):
                pass
        except BlockingIOError:
            return fd

    def give(self, n):
        feed(self.process, self.to_come[:n])
        self.to_come = self.to_come[n:]

    def await_output(self):
        """Waits until more than a header has arrived."""
        until(lambda: unread(self.process.stdout) >= 32768, self.process)

    def threads(self):
        """{thread: (mask, whether it sleeps)}"""
        found = {}
        for folder in pathlib.Path("/proc/%d/task" % self.process.pid).iterdir():
            try:
                lines = dict(line.split(":\t", 1) for line in (folder / "status").read_text().splitlines() if ":\t" in line)
                found[int(folder.name)] = cpu_list(lines["Cpus_allowed_list"]), lines["State"][0] == "S"
            except (FileNotFoundError, ProcessLookupError):
                continue
        return found

    def settle(self, n, good):
        """The masks of all threads and of the first one, once they are as expected, or stay different. At least n
        threads must exist; new threads need a moment to bind themselves."""
        end, quiet = time.monotonic() + HANG, 0
        while True:
            assert self.process.poll() is None, self.process.stderr.read()
            now = self.threads()
            masks, first = [mask for mask, _ in now.values()], now[self.process.pid][0]
            quiet = quiet + 1 if len(now) >= n and all(sleeps for _, sleeps in now.values()) else 0
            if good(masks, first) or quiet == 50 or time.monotonic() > end:
                return masks, first
            time.sleep(0.01)

    def release(self):
        if self.fifo:
            os.set_blocking(self.fifo, True)
            while self.process.poll() is None:
                self.drain()
            os.close(self.fifo)
        _, told = self.process.communicate(self.to_come if self.process.stdin else None, timeout=HANG)
        assert self.process.returncode == 0, told.decode()

    def drain(self):
        if unread(self.fifo):
            os.read(self.fifo, 65536)
        else:
            time.sleep(0.002)

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        if kind:
            self.process.kill()
            self.process.wait()


@functools.cache
def by_llvm(path, folder):
    """Returns whether the program runs with LLVM's runtime."""
    p = subprocess.run(["ldd", path], env=clean_env(LD_LIBRARY_PATH=folder or ""), stdout=subprocess.PIPE, encoding="utf-8")
    files = [os.path.realpath(word) for word in p.stdout.split() if "omp" in os.path.basename(word)]
    return any("libomp" in file or "libiomp" in file for file in files)


def as_runtime_sees(wish, program):
    """LLVM's own variables have no effect in GCC's runtime."""
    theirs = "KMP_AFFINITY" in wish.env and not by_llvm(program.path, program.env.get("LD_LIBRARY_PATH"))
    return wish._replace(places=None) if theirs else wish


def check_masks(program, how, name, inputs, folder, n=None, **env):
    args, source, others = HELD[how]
    wish, n = as_runtime_sees(WISHES[name], program), n or ALONE.get(how, 2)
    with Held(program, args, inputs / source, folder, wish, env, n) as held:
        good = lambda masks, first: fits(masks, first, wish, n, others)
        masks, first = held.settle(n + others, good)
        assert good(masks, first), "%s: first thread on %s, all: %s" % (
            wish.env, sorted(first), sorted(map(sorted, masks)))
        held.release()


BUILT, SWAPPED, CLANG = PROGRAMS


def rows(*wanted):
    """Rows of parameters; the last is the name of a wish. Wishes that need more CPUs than this machine has are left
    out."""
    return [row for row in wanted if row[-1] in WISHES]


# Each way in which threads begin, with places of one CPU, so that a thread that stays on the first one's place is
# noticed. Each wish once, with threads of ours, of the runtime and of a pipe's reader. Other runtimes for the settings
# that they read differently.
CASES = rows(*[(BUILT, how, "listed") for how in HELD],
             *[(BUILT, "pipe to file", name) for name in WISHES if name not in ("listed", "cores", "gomp range")],
             *[(program, *row) for program in (SWAPPED, CLANG)
               for row in (("pipe to file", "kmp"), ("file to pipe", "cores spread"))])
NUMBERS = rows((BUILT, 1, "listed spread"), (BUILT, 3, "listed close"), (BUILT, len(CPUS) + 1, "true"), (CLANG, 3, "spread"))
WAITS = rows((BUILT, "OMP_WAIT_POLICY=passive", "cores spread"), (BUILT, "GOMP_SPINCOUNT=0", "taskset cores"),
             (CLANG, "KMP_BLOCKTIME=0", "listed close"))


@pytest.mark.parametrize("program,how,name", CASES, indirect=["program"])
def test_no_thread_shares_the_first_ones_place(program, how, name, inputs, tmp_path):
    check_masks(program, how, name, inputs, tmp_path)


@pytest.mark.parametrize("program,n,name", NUMBERS, indirect=["program"])
def test_more_and_fewer_threads_than_places(program, n, name, inputs, tmp_path):
    check_masks(program, "pipe to file", name, inputs, tmp_path, n)


@pytest.mark.parametrize("program,wait,name", WAITS, indirect=["program"])
def test_masks_do_not_depend_on_who_says_how_to_wait(program, wait, name, inputs, tmp_path):
    check_masks(program, "pipe to file", name, inputs, tmp_path, **dict([wait.split("=")]))


@pytest.mark.parametrize("program,name", rows((BUILT, "cores spread"), (BUILT, "taskset cores"), (CLANG, "listed")),
                         indirect=["program"])
def test_masks_where_nothing_is_called_before_the_libraries(unhooked, name, inputs, tmp_path):
    check_masks(unhooked, "pipe to file", name, inputs, tmp_path)


@pytest.mark.parametrize("program", ["as built"], indirect=True)
def test_no_second_pool_by_option(program, inputs):
    """With two pools for one file, htslib lost the header once in thousands of runs."""
    args, source, others = HELD["CRAM by htslib"]
    with Held(program, [*args, "--input-fmt-option", "nthreads=9"], inputs / source, inputs, WISHES["nothing"], {}, 2) as held:
        assert len(held.threads()) <= 2 + others
        held.release()


# ------------------------------------------------------------ other commands


def upstream_mask(program, wish, folder, **env):
    """The mask that the next samtools finds."""
    upstream = script(folder / "upstream", "exec sed -n 's/^Cpus_allowed_list:.//p' /proc/self/status\n")
    out = subprocess.run(**wish.launch([program.path, "view", "x.bam"], program, SAMTOOLS_UPSTREAM=str(upstream), **env),
                         stdout=subprocess.PIPE, check=True, encoding="ascii")
    return cpu_list(out.stdout)


@pytest.mark.parametrize("program,wait,name", rows(
    (BUILT, "", "one place"), (BUILT, "passive", "cores spread"), (BUILT, "", "taskset cores"), (BUILT, "passive", "taskset"),
    (SWAPPED, "", "cores"), (CLANG, "passive", "listed close")), indirect=["program"])
def test_other_commands_get_the_mask_we_were_started_with(program, wait, name, tmp_path):
    wait = {"OMP_WAIT_POLICY": wait} if wait else {}
    assert upstream_mask(program, WISHES[name], tmp_path, **wait) == (WISHES[name].mask or START)


@pytest.mark.parametrize("program,name", rows((BUILT, "listed"), (BUILT, "taskset"), (CLANG, "one place")), indirect=["program"])
def test_other_commands_get_all_places_where_the_mask_is_not_known(unhooked, name, tmp_path):
    wish = as_runtime_sees(WISHES[name], unhooked)
    unions = [frozenset().union(*places) for places in wish.places or [[wish.mask or START]]]
    assert upstream_mask(unhooked, wish, tmp_path) in unions


# ------------------------------------------------------------ starting once more


def test_settings_are_displayed_once(program, inputs, tmp_path):
    """The runtime shows them when it is loaded."""
    p = subprocess.run([program.path, "sort", "-o", tmp_path / "out.bam", inputs / "in.bam"], stderr=subprocess.PIPE,
                       env=clean_env(OMP_DISPLAY_ENV="true", **program.env), check=True, encoding="utf-8")
    assert p.stderr.count("DISPLAY ENVIRONMENT BEGIN") == 1
    assert "OMP_WAIT_POLICY" in p.stderr


ABSENT = max(START, default=0) + 1
# Values for which the runtimes end the program or crash, and our messages about them.
UNFIT = {
    "GOMP_CPU_AFFINITY=%d-%d" % (min(START, default=0), ABSENT + 61): "names CPUs that this job may not use. Continuing with CPU",
    "GOMP_CPU_AFFINITY=%d" % ABSENT: "names no CPU that this job may use; ignored",
    "GOMP_CPU_AFFINITY=0,,%d" % ABSENT: "names no CPU that this job may use; ignored",
    "OMP_NUM_THREADS=x": "is not a number of threads; ignored",
    "OMP_STACKSIZE=1000G": None,
    "OMP_STACKSIZE=16k": None,
    "GOMP_STACKSIZE=16k": None,
}


@pytest.mark.parametrize("setting", UNFIT)
def test_setting_of_the_runtime_ends_the_sort(program, setting, inputs, tmp_path):
    out, told = tmp_path / "out.bam", UNFIT[setting]
    p = subprocess.run([program.path, "sort", "-@", "4", "-o", out, inputs / "in.bam"], stderr=subprocess.PIPE, encoding="utf-8",
                       env=clean_env(**program.env, **dict([setting.split("=")])), timeout=HANG)
    assert p.returncode == 0 and out.stat().st_size > 0, p.stderr
    assert (p.stderr.startswith("samtools sort: warning: %s %s" % (setting, told)) and p.stderr.count("\n") == 1) if told else not p.stderr


def test_cpus_that_are_left_are_not_used(inputs, tmp_path):
    """Places of GOMP_CPU_AFFINITY, one of which does not exist."""
    wish = Wish({"GOMP_CPU_AFFINITY": "%d %d" % (CPUS[0], ABSENT)}, [[frozenset(CPUS[:1])]])
    with Held(Program(BINARY), ["-o", "{out}"], inputs / "<in.bam", tmp_path, wish, {}, 2) as held:
        good = lambda masks, first: fits(masks, first, wish, 2, 1)
        assert good(*held.settle(3, good))
        held.release()


UNREADY = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#define STAND_IN(type, name, parameters, ...) \\
    static type (*real_##name) parameters; \\
    type name parameters { if (!real_##name) abort(); return real_##name(__VA_ARGS__); }
STAND_IN(long, readlink, (const char *p, char *b, unsigned long n), p, b, n)
STAND_IN(int, execv, (const char *p, char *const *a), p, a)
STAND_IN(int, execve, (const char *p, char *const *a, char *const *e), p, a, e)
STAND_IN(int, setenv, (const char *n, const char *v, int o), n, v, o)
STAND_IN(int, sched_getaffinity, (int p, unsigned long n, void *m), p, n, m)
#define FIND(name) real_##name = (__typeof__(real_##name))dlsym(RTLD_NEXT, #name)
__attribute__((constructor)) static void find(void)
{
    FIND(readlink); FIND(execv); FIND(execve); FIND(setenv); FIND(sched_getaffinity);
}
"""


def test_preloaded_libraries_that_are_not_ready_before_their_constructors(inputs, tmp_path):
    compiler = shutil.which("cc") or pytest.skip("no compiler")
    if SANITIZED:
        pytest.skip("sanitizers want to be the first library")
    library = tmp_path / "unready.so"
    subprocess.run([compiler, "-w", "-shared", "-fPIC", "-x", "c", "-o", library, "-", "-ldl"], input=UNREADY.encode(), check=True)
    subprocess.run([BINARY, "sort", "-o", tmp_path / "out.bam", inputs / "in.bam"], check=True,
                   env=clean_env(LD_PRELOAD=str(library)))


# ------------------------------------------------------------ messages, and the sources


def report_of(program, wish, inputs, folder):
    report = folder / "report.json"
    argv = [program.path, "sort", "-@", "2", "--report=%s" % report, "-o", folder / "out.bam", inputs / "in.bam"]
    subprocess.run(**wish.launch(argv, program), check=True)
    return json.loads(report.read_text())


@pytest.mark.parametrize("program,name", rows((BUILT, "nothing"), (BUILT, "one place"), (BUILT, "taskset"), (CLANG, "cores")),
                         indirect=["program"])
def test_report_counts_the_cpus_of_all_places(program, name, inputs, tmp_path):
    wish = WISHES[name]
    told, limit = report_of(program, wish, inputs, tmp_path), report_of(program, WISHES["nothing"], inputs, tmp_path)["cpus"]
    expected = len(frozenset().union(*wish.places[0])) if wish.places else len(wish.mask or START)
    assert told["bound"] == (wish.places is not None)
    assert told["cpus"] == min(limit, expected)                # a control group may allow less
    assert limit <= len(START)


STARTS = ("pthread_create(", "hts_tpool_init(", "hts_set_threads(", "hts_opt_apply(", "bgzf_mt(")
# The probe's threads end at once. hts_file_set_up() calls the others.
WIDENED_ELSEWHERE = {("machine.c", "machine_threads"), ("hts_file.c", "start_threads"), ("hts_file.c", "apply_options")}


def functions(path):
    """(name, body) of each function of a source file in our style: both braces at the start of a line."""
    lines, name, body = path.read_text().splitlines(), None, None
    for before, line in zip([""] + lines, lines):
        if line == "{":
            name, body = before.partition("(")[0].split()[-1].lstrip("*"), []
        elif line == "}" and body is not None:
            yield name, "\n".join(body)
            body = None
        elif body is not None:
            body.append(line)


def test_whoever_starts_a_thread_thinks_of_its_mask():
    starting = {(path.name, name): "affinity_widen(" in body for path in [*SOURCES, *REPO.glob("base/*.h")]
                for name, body in functions(path) if any(call in body for call in STARTS)}
    assert starting, "no function starts a thread"
    assert {where for where, widens in starting.items() if not widens} == WIDENED_ELSEWHERE
