# SPDX-License-Identifier: MIT
"""Data that do not fit into memory: the same bytes as if they did, within the promised memory, and with no files on
the disk that are visible or must be removed."""

import contextlib
import ctypes
import itertools
import os
import pathlib
import random
import re
import signal
import stat
import struct
import subprocess

import pytest

import bamgen
import ordergen
from conftest import (BINARY, DATA_BAMS, HANG, PRECIOUS, REAL_BAMS, SANITIZED, clean_env, limit_on, oracle, read_bam, run_sort,
                      same_bam, sorted_bytes)
from test_formats import view
from test_safety import SIGNALS, feed, in_name_space, leave_reading, limited, snapshot, sort_in_public, start, stuck, until

SMALLEST = 262144  # bytes of an arena; smaller ones are impossible
MANY = {"SAMTOOLS_OMP_ARENA": str(SMALLEST)}
FAST = ("--no-PG", "-l", "1")


def arena(size):
    return {"SAMTOOLS_OMP_ARENA": str(size)}


def spilled(args, env=MANY, **kw):
    """A sort that has to succeed: its standard output and the number of runs read from disk."""
    p = run_sort(args, env=env, **kw)
    assert p.returncode == 0, p.stderr
    return p.stdout, runs_in(p.stderr)


def runs_in(stderr):
    told = re.findall(r"^\[bam_sort_core\] merging from (\d+) files and \d+ in-memory blocks\.\.\.$", stderr, re.M)
    assert len(told) <= 1, stderr
    return int(told[0]) if told else 0


# ---------------------------------------------------------------- inputs


@pytest.fixture(scope="session")
def reads(gen_bam):
    """9 MB of pairs: with the smallest arena more runs than the last merge takes."""
    return gen_bam("--size", "9M", "--level", 1)


def jumble_input():
    """11,000 records with ties in every order: names that differ in zeros, equal tags of other types, equal
    templates, equal minimisers."""
    r = bamgen.rng("jumble")
    names = [*ordergen.TRAPS, *(ordergen.illumina(r) for _ in range(60))]
    seqs = [ordergen.genome_read(r, 80) for _ in range(50)]
    out = []
    for i in range(11000):
        tags = ordergen.groups_of(r)
        if r.random() < .8:
            tags += b"XT" + ordergen.any_value(r)
        if r.random() < .2:
            tags += b"HIC" + bytes([r.randrange(3)])
        name = r.choice(names)
        if i % 3 == 0:
            seq = r.choice(seqs)
            out.append(bamgen.record(name, r.choice((4, 4, 77, 141)), -1, -1, 0, cigar=[], tags=tags, bin=4680,
                                     seq=seq if r.random() < .5 else seq.translate(ordergen.COMPLEMENT)[::-1]))
            continue
        flag = 1 | r.choice((0x40, 0x80)) | r.choice((0, 16)) | r.choice((0, 0, 8, 32, 0x100, 0x800))
        tags += b"MCZ" + r.choice(ordergen.CIGARS).encode() + b"\0"
        out.append(bamgen.record(name, flag, r.randrange(3), r.randint(0, 9), mtid=r.randrange(3),
                                 mpos=r.randint(0, 4), cigar=ordergen.parse_cigar(r.choice(ordergen.CIGARS)),
                                 seq="ACGTACGT", tags=tags + b"NMC" + bytes([r.randrange(3)])))
    return bamgen.header("@HD\tVN:1.6\n" + bamgen.sq_text() + ordergen.GROUPS), out


@pytest.fixture(scope="session")
def jumble(made):
    return made("jumble", "straddle", jumble_input)


@pytest.fixture(scope="session")
def fasta(tmp_path_factory):
    path = tmp_path_factory.mktemp("fasta") / "genome.fa"
    path.write_text(">g\n%s\n" % ordergen.genome())
    return path


def like(recs):
    """A BAM file of these records, as bytes."""
    return bamgen.bgzf(bamgen.header() + b"".join(recs), level=1)


@pytest.fixture(scope="session")
def hard(made):
    """9 MB that do not deflate."""
    return made("hard", content=lambda: bamgen.incompressible(6000))


@pytest.fixture
def desk(tmp_path):
    """A folder with an older out.bam that must survive, and an empty folder for temporary data."""
    (tmp_path / "out.bam").write_bytes(PRECIOUS)
    (tmp_path / "temp").mkdir()
    return tmp_path


# ---------------------------------------------------------------- the same bytes

ORDERS = {"coordinate": [], "n": ["-n"], "N": ["-N"], "tag": ["-t", "XT"], "tag_n": ["-t", "XT", "-n"],
          "picard": ["--picard"], "tag_picard": ["-t", "XT", "--picard"], "M": ["-M"], "I": ["-I", "fasta"],
          "MH": ["-M", "-H", "-K", "9"], "template": ["--template-coordinate"]}
# Arenas for one run, several runs, more runs than one merge takes.
ARENAS = {"one": 900000, "several": 500000, "many": SMALLEST}


def options(order, fasta):
    return [*FAST, *(fasta if x == "fasta" else x for x in ORDERS[order])]


@pytest.fixture(scope="session")
def in_memory(jumble, fasta):
    """in_memory(order) -> the bytes, made once; the same as those of samtools, if samtools has the order."""
    known = {}

    def get(order):
        if order not in known:
            args = options(order, fasta)
            p = run_sort([*args, jumble])
            assert p.returncode == 0 and runs_in(p.stderr) == 0, p.stderr
            if "--picard" not in args:
                same_bam(read_bam(p.stdout), oracle(jumble, "--no-PG", *args[3:]))
            known[order] = p.stdout
        return known[order]

    return get


@pytest.mark.parametrize("size", ARENAS)
@pytest.mark.parametrize("order", ORDERS)
def test_spilled_data_come_out_in_another_order(jumble, fasta, in_memory, order, size):
    """The data come from a file, whose size is known; from a pipe, whose size is not; and with --size-hint."""
    args, data, seen = options(order, fasta), jumble.read_bytes(), []
    for n, way in ((1, [jumble]), (1, []), (2, []), (3, [jumble]), (8, [jumble]), (8, ["--size-hint", "2M"])):
        out, runs = spilled([*args, "-@", n, *way], arena(ARENAS[size]), **({} if jumble in way else {"stdin": data}))
        assert out == in_memory(order), "other bytes with -@ %d %s" % (n, way[:1])
        seen.append(runs)
    assert max(seen) >= {"one": 1, "several": 2, "many": 3}[size], seen
    assert size != "one" or min(seen) <= 1, seen


@pytest.mark.parametrize("order", [[], ["-n"], ["--template-coordinate"]], ids=" ".join)
def test_merging_of_too_many_runs_loses_or_turns_records(reads, order):
    expected = sorted_bytes([*FAST, *order, reads])
    for n in (1, 2, 8):
        assert spilled([*FAST, *order, "-@", n, reads])[0] == expected, n
    assert spilled([*FAST, *order, "-@", 2], stdin=reads.read_bytes())[0] == expected


@pytest.mark.parametrize("order", [[], ["-n"]], ids=lambda v: "".join(v) or "coordinate")
@pytest.mark.parametrize("path", DATA_BAMS + REAL_BAMS)
def test_real_input_comes_out_otherwise_when_spilled(path, order):
    args = ["--no-PG", "-u", *order]
    p = run_sort([*args, "-@", 2, path])
    assert p.returncode == 0, p.stderr
    for n, way in ((2, [path]), (3, [])):
        out, runs = spilled([*args, "-@", n, *way], arena(1 << 20), **({} if way else {"stdin": path.read_bytes()}))
        assert out == p.stdout, n
        assert runs > 0 or len(out) < 4 << 20


@pytest.mark.parametrize("name", ["ties", "one_key", "header_only", "one_record", "no_refs", "all_unmapped", "cg_long",
                                  "cg_short", "stray_bytes", "block_edges", "far_positions", "many_refs"])
@pytest.mark.parametrize("order", [[], ["-n"], ["-M"]], ids=lambda v: "".join(v) or "coordinate")
def test_any_content_comes_out_otherwise_with_small_arenas(made, name, order):
    expected = sorted_bytes([*FAST, *order, made(name)])
    for n in (1, 3):
        assert spilled([*FAST, *order, "-@", n, made(name)])[0] == expected


def test_older_of_two_arenas_is_merged_while_it_is_sorted(made):
    """Nothing leaves memory: the second arena gets so little that sorting the first may take longer."""
    args = [*FAST, "-M", "-@", 3, made("no_refs")]
    expected = sorted_bytes(args)
    for _ in range(20):
        assert spilled(args) == (expected, 0)


@pytest.mark.parametrize("layout", ["prime_blocks", "random_blocks", "cut_in_size", "full_64k", "empty_blocks"])
def test_records_cut_by_blocks_are_lost_between_arenas(made, in_memory, layout):
    path = made("jumble", layout, jumble_input)
    for n in (1, 2):
        out, runs = spilled([*FAST, "-@", n, path])
        assert out == in_memory("coordinate") and runs > 1


# ---------------------------------------------------------------- formats, index, several inputs


@pytest.fixture(scope="module")
def genome_reads(gen_bam, tmp_path_factory):
    """3 MB of reads with their genome: (BAM, SAM, FASTA)."""
    fa = tmp_path_factory.mktemp("reference") / "ref.fa"
    args = ("--records", 9000, "--seed", 7, "--refs", 3)
    bam = gen_bam(*args, "--fasta", fa)
    return bam, gen_bam(*args, "-O", "sam"), fa


@pytest.mark.parametrize("order", [[], ["-n"], ["-t", "NM"]], ids=lambda v: "".join(v) or "coordinate")
@pytest.mark.parametrize("fmt", ["bam", "sam", "sam.gz", "fastq"])
def test_other_formats_come_out_otherwise_when_spilled(genome_reads, fmt, order):
    for path in genome_reads[:2]:
        args = [*FAST, *order, "-O", fmt]
        expected = sorted_bytes([*args, path])
        for n, way in ((1, [path]), (2, []), (3, [path]), (8, [])):
            out, runs = spilled([*args, "-@", n, *way], arena(400000), **({} if way else {"stdin": path.read_bytes()}))
            assert out == expected and runs > 1


def test_spilled_cram_holds_other_records(genome_reads, tmp_path):
    bam, _, fa = genome_reads
    args = ["--no-PG", "--reference", fa, "-O", "cram"]
    texts = []
    for n, env in ((1, {}), (1, MANY), (3, MANY)):
        out, runs = spilled([*args, "-@", n, bam], env)
        assert out[:4] == b"CRAM" and (runs > 1 or not env)
        (tmp_path / "x.cram").write_bytes(out)
        texts.append(view(tmp_path / "x.cram", "-h", "-T", fa))
    assert texts.count(texts[0]) == 3 and texts[0].count(b"\n") > 9000
    back = ["--no-PG", "-O", "sam", "-n", "--reference", fa, tmp_path / "x.cram"]
    assert spilled([*back, "-@", 2])[0] == sorted_bytes(back)


@pytest.mark.parametrize("out,args", [("out.bam", ["--write-index"]), ("out.bam", ["--write-index=bai"]),
                                      ("out.sam.gz", ["--write-index"])], ids=lambda v: v[0] if isinstance(v, list) else v)
def test_index_of_spilled_data_is_another(genome_reads, tmp_path, out, args):
    found = []
    for name, n, env in (("a", 1, {}), ("b", 1, MANY), ("c", 2, MANY), ("d", 8, MANY)):
        (tmp_path / name).mkdir()
        p = run_sort([*FAST, *args, "-@", n, "-o", out, genome_reads[0]], cwd=tmp_path / name, env=env)
        assert p.returncode == 0 and (runs_in(p.stderr) > 1 or not env), p.stderr
        found.append({x.name: x.read_bytes() for x in (tmp_path / name).iterdir()})
        assert len(found[-1]) == 2
    assert found.count(found[0]) == len(found)


@pytest.mark.parametrize("order", [[], ["-n"], ["-t", "XT"], ["-M"]], ids=lambda v: "".join(v) or "coordinate")
def test_added_inputs_lose_records_or_turn_ties_when_spilled(tmp_path, jumble, order):
    head, recs = jumble_input()
    cuts = [0, 40, 4500, 4501, 10900, len(recs)]
    paths = []
    for i, (a, b) in enumerate(zip(cuts, cuts[1:])):
        paths.append(tmp_path / ("%d.bam" % i))
        paths[-1].write_bytes(bamgen.bam(head, recs[a:b], ("htslib", "straddle")[i % 2]))
    added = [w for x in paths[1:] for w in ("--add-input", x)]
    expected = sorted_bytes([*FAST, *order, jumble])
    for n in (1, 2, 8):
        out, runs = spilled([*FAST, *order, "-@", n, *added, paths[0]])
        assert out == expected and runs > 1


@pytest.mark.parametrize("placed", ["none", "first", "last", "one_early"])
def test_header_of_minimiser_order_forgets_placed_reads_that_left_memory(tmp_path, placed):
    """@HD depends on whether any read has a reference."""
    r = bamgen.rng("SS")
    seqs = [ordergen.genome_read(r, 150) for _ in range(40)]
    loose = [ordergen.unplaced(r, i, r.choice(seqs)[r.randrange(40):]) for i in range(4000)]
    fixed = [bamgen.record("p%d" % i, 16, 1, i) for i in range(1 if placed == "one_early" else 50)]
    recs = {"none": loose, "first": fixed + loose, "last": loose + fixed,
            "one_early": loose[:100] + fixed + loose[100:]}[placed]
    path = tmp_path / "in.bam"
    path.write_bytes(bamgen.bam(bamgen.header(), recs))
    theirs = oracle(path, "--no-PG", "-M")
    for n, size in itertools.product((1, 3), (SMALLEST, 400000)):
        out, runs = spilled([*FAST, "-M", "-@", n, path], arena(size))
        assert runs > 0
        same_bam(read_bam(out), theirs)


# ---------------------------------------------------------------- records of any size


def sizes_input(small):
    """Records of 3 MB, 300 kB and a few bytes, ties among them."""
    _, huge = bamgen.long_reads(4, 3000000)
    _, large = bamgen.long_reads(9, 300000)
    recs = [bamgen.record("s%d" % (i % 90), 0, 0, i % 4, seq="ACGT" * (i % 9)) for i in range(small)]
    out = huge + large + recs
    bamgen.rng("sizes").shuffle(out)
    return bamgen.header(), out


@pytest.mark.parametrize("small", [0, 200, 9000])
@pytest.mark.parametrize("order", [[], ["-n"], ["-N"]], ids=lambda v: "".join(v) or "coordinate")
def test_record_larger_than_an_arena_is_refused_or_lost(made, small, order):
    path = made("sizes%d" % small, content=lambda: sizes_input(small))
    expected = sorted_bytes([*FAST, *order, path])
    same_bam(read_bam(expected), oracle(path, "--no-PG", *order))
    for n, size in ((1, SMALLEST), (2, 1 << 20), (8, SMALLEST)):
        assert spilled([*FAST, *order, "-@", n, path], arena(size))[0] == expected
    out, runs = spilled([*FAST, *order, "-@", 2], stdin=path.read_bytes())
    assert out == expected and runs > 0


@pytest.mark.parametrize("order", [[], ["-n"]], ids=lambda v: "".join(v) or "coordinate")
def test_records_of_60_bytes_overrun_an_arena(tmp_path, order):
    data = bamgen.bgzf(bamgen.header() + bamgen.tiny(60000), level=0)
    expected = sorted_bytes([*FAST, *order], stdin=data)
    for n in (1, 2, 8):
        out, runs = spilled([*FAST, *order, "-@", n], stdin=data)
        assert out == expected and runs > 2


def test_long_record_after_small_ones_is_called_broken(tmp_path):
    """The data come from a pipe, where the sort waits until the second arena is nearly full: the record fits into
    neither."""
    head, recs = bamgen.long_reads(1, 300000)
    for k in range(2000, 9500, 1000):
        data = bamgen.bgzf(head + bamgen.tiny(k) + recs[0] + bamgen.tiny(500), level=0)
        expected = sorted_bytes([*FAST], stdin=data)
        for n in (1, 2):
            assert spilled([*FAST, "-@", n], arena(400000), stdin=data)[0] == expected


# ---------------------------------------------------------------- how many runs


def in_a_row(n, backwards=False):
    recs = [bamgen.record("r%06d" % i, 0, 0, 10 * i, seq="ACGTACGTAC" * 9) for i in range(n)]
    return recs[::-1] if backwards else recs


ROWS = 8000  # 1.8 MB


@pytest.mark.parametrize("order", [[], ["-n"], ["-N"]], ids=lambda v: "".join(v) or "coordinate")
@pytest.mark.parametrize("n", [1, 2, 8])
def test_sorted_input_makes_many_runs(order, n):
    data = like(in_a_row(ROWS))
    out, runs = spilled([*FAST, *order, "-@", n], stdin=data)
    assert runs == 1
    assert read_bam(out).body == b"".join(in_a_row(ROWS))


def test_equal_records_make_many_runs():
    """Ties continue where the run before ends; and stay in input order."""
    recs = [bamgen.record("r%d" % (i * 7919 % 10007), 0, 0, 5, seq="ACGT" * 30) for i in range(ROWS)]
    out, runs = spilled([*FAST, "-@", 2], stdin=like(recs))
    assert runs == 1 and read_bam(out).body == b"".join(recs)


def test_nearly_sorted_input_makes_many_runs():
    """Three stretches that continue from one arena to the next."""
    recs = in_a_row(ROWS)
    third = ROWS // 3
    recs = recs[2 * third:] + recs[:third] + recs[third:2 * third]
    for n in (1, 2):
        out, runs = spilled([*FAST, "-@", n], stdin=like(recs))
        assert 1 < runs <= 3
        assert read_bam(out).body == b"".join(in_a_row(ROWS))


def test_reversed_input_makes_one_run_or_comes_out_wrong():
    data = like(in_a_row(ROWS, backwards=True))
    for n, size, least in ((1, SMALLEST, 4), (2, 400000, 4), (8, 400000, 4)):
        out, runs = spilled([*FAST, "-@", n], arena(size), stdin=data)
        assert runs >= least
        assert read_bam(out).body == b"".join(in_a_row(ROWS))


def test_line_about_runs_is_missing_or_cannot_be_silenced(jumble):
    p = run_sort(["-@", 2, jumble], env=MANY)
    assert re.fullmatch(r"\[bam_sort_core\] merging from [1-9]\d* files and \d+ in-memory blocks\.\.\.\n", p.stderr)
    for level in ("0", "1"):
        p = run_sort(["-@", 2, "--verbosity", level, jumble], env=MANY)
        assert (p.returncode, p.stderr) == (0, "")


def test_sort_by_pipe_hangs_at_the_smallest_arena(hard):
    """A quarter of an arena, at which it must hurry, is less than a block needs."""
    p = run_sort(["-u", "-@", 1], env=MANY, stdin=hard.read_bytes(),
                 before=limit_on("CPU", 1))
    assert p.returncode == 0, p.stderr


# ---------------------------------------------------------------- --size-hint


def test_size_hint_changes_the_output_or_is_trusted(jumble, in_memory):
    """The hint is far too small, far too large, or missing; for more than any disk has there is only a warning."""
    for hint in ("0", "1", "1K", "1.5M", "2M", "30G", "900000T"):
        for env in ({}, MANY):
            p = run_sort([*FAST, "--size-hint", hint, "-@", 2], env=env, stdin=jumble.read_bytes())
            assert p.returncode == 0, p.stderr
            assert p.stdout == in_memory("coordinate"), hint
            warned = "samtools sort: warning:" in p.stderr
            assert warned == (hint == "900000T" and env == MANY), p.stderr
            assert not warned or "-T" in p.stderr


# ---------------------------------------------------------------- nothing visible


def temp_files(process):
    """Descriptors of unnamed files with content: [(fd, directory)]. The program parses a header in a memfd."""
    out, fds = [], "/proc/%d/fd" % process.pid
    with contextlib.suppress(OSError):
        for fd in os.listdir(fds):
            with contextlib.suppress(OSError):
                name = os.readlink("%s/%s" % (fds, fd))
                st = os.stat("%s/%s" % (fds, fd))
                unnamed = name.endswith(" (deleted)") and not name.startswith("/memfd:")
                if unnamed and stat.S_ISREG(st.st_mode) and st.st_size > 0:
                    out.append((int(fd), os.path.dirname(name)))
    return out


@contextlib.contextmanager
def reading(data, args, env=MANY, **kw):
    """A sort with runs on disk that waits for more of its standard input."""
    with start(args, env=env, stdin=subprocess.PIPE, **kw) as p:
        feed(p, data)
        until(lambda: temp_files(p), p)
        try:
            yield p
        finally:
            p.kill()
            with contextlib.suppress(OSError):
                p.stdin.close()


@contextlib.contextmanager
def merging(path, args, env=MANY, **kw):
    """A sort that merges runs from disk into a pipe that is not read."""
    with start(["-u", *args, path], env=env, stdout=subprocess.PIPE, **kw) as p:
        until(stuck(p), p)
        assert temp_files(p)
        yield p
        p.kill()


@contextlib.contextmanager
def writing(path, args, folder, env=MANY, **kw):
    """A sort that slowly merges runs from disk into a file in the folder."""
    with start(["-l", "9", *args, "-o", folder / "out.bam", path], env=env, **kw) as p:
        until(lambda: any(d == str(folder) for _, d in temp_files(p)), p)
        yield p
        p.kill()


def feed_and_end(process, data=b""):
    """The rest of its standard input; its output and messages."""
    out, err = process.communicate(data, timeout=HANG)
    return process.returncode, out, err.decode()


def has_unnamed_files(folder):
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o600))
    except OSError:
        pytest.skip("no unnamed files on this file system")


@contextlib.contextmanager
def watched(folder):
    """Names of all files that are made in or moved to the folder, even for a moment."""
    libc, made = ctypes.CDLL(None, use_errno=True), []
    fd = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
    if fd < 0 or libc.inotify_add_watch(fd, os.fsencode(folder), 0x100 | 0x80) < 0:  # IN_CREATE, IN_MOVED_TO
        pytest.skip("no inotify here")
    yield made
    with contextlib.suppress(BlockingIOError):
        while data := os.read(fd, 1 << 16):
            at = 0
            while at < len(data):
                n, = struct.unpack_from("<I", data, at + 12)
                made.append(data[at + 16:at + 16 + n].rstrip(b"\0").decode())
                at += 16 + n
    os.close(fd)


@pytest.mark.parametrize("n", [1, 3])
def test_temporary_data_are_visible_for_a_moment(desk, in_memory, jumble, n):
    """The temporary folder never has any file; the folder of the output has none until the output is complete."""
    has_unnamed_files(desk)
    data = jumble.read_bytes()
    before = snapshot(desk)
    with watched(desk / "temp") as in_temp, watched(desk) as beside:
        with start([*FAST, "-@", n, "-T", desk / "temp", "-o", desk / "out.bam"], env=MANY, stdin=subprocess.PIPE) as p:
            for at in range(0, len(data), 100000):  # a slow pipe
                feed(p, data[at:at + 100000])
                assert snapshot(desk) == before
            until(lambda: temp_files(p), p)   # read by now, not sorted
            status, _, err = feed_and_end(p)
            assert status == 0 and runs_in(err) > 1, err
    assert in_temp == []
    assert set(beside) <= {"out.bam", *(x for x in beside if x.startswith(("out.bam.", ".out.bam")))} and len(beside) <= 2
    assert (desk / "out.bam").read_bytes() == in_memory("coordinate")
    assert sorted(os.listdir(desk)) == ["out.bam", "temp"] and os.listdir(desk / "temp") == []


@pytest.mark.parametrize("n,place", [(1, ["-T", "temp/x"]), (2, [])], ids=["T", "beside"])
@pytest.mark.parametrize("phase", ["reading", "merging", "writing"])
@pytest.mark.parametrize("sig", [signal.SIGKILL, *SIGNALS], ids=lambda s: s.name)
def test_signal_leaves_temporary_data_or_another_status(desk, jumble, hard, sig, phase, place, n):
    has_unnamed_files(desk)
    args = ["-@", n, *place]
    before = snapshot(desk)
    with contextlib.ExitStack() as stack:
        if phase == "reading":
            p = stack.enter_context(reading(jumble.read_bytes()[:-9], [*args, "-o", "out.bam"], cwd=desk))
        elif phase == "merging":
            p = stack.enter_context(merging(jumble, args, cwd=desk))
        else:
            p = stack.enter_context(writing(hard, args, desk, cwd=desk, env=arena(1 << 20)))
        p.send_signal(sig)
        assert p.wait(HANG) == -sig
    assert snapshot(desk) == before


@pytest.mark.parametrize("ignored", [False, True], ids=["default", "ignored"])
def test_reader_that_goes_away_leaves_temporary_data_or_hangs(desk, hard, threads, ignored):
    before = snapshot(desk)
    leave_reading(["-u", "-@", threads, "-T", "temp", hard], ignored, env=arena(1 << 20), cwd=desk)
    assert snapshot(desk) == before


def test_broken_input_leaves_temporary_data(desk, jumble, threads):
    """Found when runs are already on disk."""
    data = jumble.read_bytes()
    (desk / "in.bam").write_bytes(data[:-300])
    before = snapshot(desk)
    p = run_sort(["-@", threads, "-T", "temp/x", "-o", "out.bam", "in.bam"], env=MANY, cwd=desk)
    assert p.returncode == 1 and "in.bam" in p.stderr and len(p.stderr.splitlines()) == 1, p.stderr
    assert snapshot(desk) == before


# ---------------------------------------------------------------- without unnamed files


@pytest.fixture
def named_files(fault_shim):
    """The environment of a program that cannot make unnamed files, as on NFS or FAT."""
    return fault_shim | {"FAULT_NAMED": "1"}


def test_file_system_without_unnamed_files_is_refused_or_littered(desk, jumble, in_memory, named_files, threads):
    for place in ("temp", "temp/x", "new"):
        with watched(desk / "temp") as made:
            p = run_sort([*FAST, "-@", threads, "-T", place, jumble], env=MANY | named_files, cwd=desk)
        assert p.returncode == 0 and p.stdout == in_memory("coordinate") and runs_in(p.stderr) > 1, p.stderr
        assert len(made) == (place != "new"), made
        assert os.listdir(desk / "temp") == [] and sorted(os.listdir(desk)) == ["out.bam", "temp"]


@pytest.mark.parametrize("sig", [signal.SIGKILL, *SIGNALS], ids=lambda s: s.name)
@pytest.mark.parametrize("phase", ["reading", "merging"])
def test_signal_leaves_a_named_temporary_file(desk, jumble, named_files, phase, sig):
    """Its name was removed long before; that of the output is removed, except at SIGKILL."""
    before = snapshot(desk)
    with contextlib.ExitStack() as stack:
        if phase == "reading":
            p = stack.enter_context(reading(jumble.read_bytes()[:-9], ["-@", 2, "-T", "temp/x"], MANY | named_files,
                                            cwd=desk, stdout=subprocess.PIPE))
        else:
            p = stack.enter_context(merging(jumble, ["-@", 2, "-T", "temp/x"], MANY | named_files, cwd=desk))
        assert snapshot(desk) == before
        p.send_signal(sig)
        assert p.wait(HANG) == -sig
    assert snapshot(desk) == before


def test_signal_leaves_a_named_output_beside_spilled_data(desk, jumble, named_files):
    for sig in SIGNALS:
        before = snapshot(desk)
        with reading(jumble.read_bytes()[:-9], ["-@", 2, "-o", "out.bam"], MANY | named_files, cwd=desk) as p:
            p.send_signal(sig)
            assert p.wait(HANG) == -sig
        assert snapshot(desk) == before


# ---------------------------------------------------------------- places

PLACES = {  # options, environment: folder
    "folder": (["-T", "temp"], {}, "temp"),
    "folder_slash": (["-T", "temp/"], {}, "temp"),
    "name_in_folder": (["-T", "temp/name"], {}, "temp"),
    "name": (["-T", "name"], {}, "."),
    "dot_name": (["-T", "./name"], {}, "."),
    "dot": (["-T", "."], {}, "."),
    "link_to_folder": (["-T", "link"], {}, "temp"),
    "beside_the_output": (["-o", "sub/out.bam"], {}, "sub"),
    "current_folder": ([], {}, "."),
    "dash": (["-o", "-"], {}, "."),
    "device": (["-o", "/dev/null"], {}, "."),
    "standard_output_by_name": (["-o", "/dev/stdout"], {}, "."),
    "tmpdir": (["--tmpdir-env"], {"TMPDIR": "temp"}, "temp"),
    "tmpdir_and_output": (["--tmpdir-env", "-o", "sub/out.bam"], {"TMPDIR": "temp"}, "temp"),
    "tmpdir_not_asked_for": ([], {"TMPDIR": "temp"}, "."),
    "T_before_tmpdir": (["--tmpdir-env", "-T", "sub/x"], {"TMPDIR": "temp"}, "sub"),
    "setting": ([], {"SAMTOOLS_OMP_TMPDIR": "temp"}, "temp"),
    "setting_and_output": (["-o", "sub/out.bam"], {"SAMTOOLS_OMP_TMPDIR": "temp/", "TMPDIR": "sub"}, "temp"),
    "T_before_setting": (["-T", "sub/x"], {"SAMTOOLS_OMP_TMPDIR": "temp"}, "sub"),
    "tmpdir_before_setting": (["--tmpdir-env"], {"SAMTOOLS_OMP_TMPDIR": "temp", "TMPDIR": "sub"}, "sub"),
    "empty_setting": ([], {"SAMTOOLS_OMP_TMPDIR": ""}, "."),
    "T_needs_no_tmpdir": (["--tmpdir-env", "-T", "sub/x"], {"TMPDIR": ""}, "sub"),
}


@pytest.mark.parametrize("case", PLACES)
def test_temporary_data_go_elsewhere(desk, jumble, case):
    has_unnamed_files(desk)
    args, env, folder = PLACES[case]
    (desk / "sub").mkdir()
    (desk / "link").symlink_to("temp")
    with reading(jumble.read_bytes()[:-9], args, MANY | env, cwd=desk, stdout=subprocess.DEVNULL) as p:
        assert {d for _, d in temp_files(p)} == {os.path.realpath(desk / folder)}


@pytest.mark.parametrize("setting", [False, True], ids=["T", "setting"])
def test_several_places_are_not_all_used(desk, hard, setting):
    has_unnamed_files(desk)
    names = ["temp", "b", "c"]
    for x in names[1:]:
        (desk / x).mkdir()
    args = [w for x in names for w in ("-T", x + "/p")] if not setting else []
    env = {"SAMTOOLS_OMP_TMPDIR": ":".join(names)} if setting else {}
    expected = sorted_bytes(["-u", "--no-PG", hard])
    with reading(hard.read_bytes()[:-9], ["-u", "--no-PG", "-@", 2, *args], arena(1 << 20) | env, cwd=desk,
                 stdout=subprocess.PIPE) as p:
        places = sorted(os.path.realpath(desk / x) for x in names)
        until(lambda: sorted(d for _, d in temp_files(p)) == places, p)
        status, out, err = feed_and_end(p, hard.read_bytes()[-9:])
        assert status == 0 and out == expected, err


@pytest.mark.parametrize("value", [None, ""], ids=["unset", "empty"])
def test_tmpdir_that_is_not_set_is_taken_for_some_place(desk, jumble, value):
    env = clean_env(**MANY)
    env.pop("TMPDIR", None)
    if value is not None:
        env["TMPDIR"] = value
    before = snapshot(desk)
    p = subprocess.run([BINARY, "sort", "--tmpdir-env", "-o", "out.bam", jumble], capture_output=True, cwd=desk,
                       env=env, timeout=HANG)
    assert p.returncode == 1 and b"TMPDIR" in p.stderr, p.stderr
    assert snapshot(desk) == before


# ---------------------------------------------------------------- places that fail


def told(args, folder, words, warned=None, **kw):
    """The sort fails with these words in one line, writes nothing and changes nothing. warned: the text of a
    possible line before it."""
    before = snapshot(folder)
    p = run_sort(args, cwd=folder, **kw)
    assert p.returncode == 1, p.stderr
    *before_it, last = p.stderr.splitlines()
    assert re.search(words, last) and (not before_it or warned and len(before_it) == 1 and warned in before_it[0]), p.stderr
    assert not p.stdout and snapshot(folder) == before
    return p.stderr


@pytest.mark.parametrize("out", [["-o", "out.bam"], []], ids=["file", "stdout"])
@pytest.mark.parametrize("place", ["missing/x", "missing/", "out.bam/x", "missing/dir/x"])
def test_missing_temporary_folder_is_told_late_or_unclearly(desk, jumble, place, out):
    for way in ([jumble], []):
        for n in (1, 3):
            folder = place.rpartition("/")[0]
            err = told(["-@", n, "-T", place, *out, *way], desk, "cannot create a temporary file in %s" % folder,
                       "warning: cannot create a temporary file in %s" % folder, env=MANY, **({} if way else {"stdin": jumble.read_bytes()}))
            assert "-T" in err


def test_missing_temporary_folder_stops_data_that_fit(desk, jumble, in_memory):
    """samtools does not check it before it needs it, either."""
    assert sorted_bytes([*FAST, "-T", "missing/x", jumble], cwd=desk) == in_memory("coordinate")
    assert sorted_bytes([*FAST, "-m", "2M", "-@", 3, "-T", "out.bam/x", jumble], cwd=desk) == in_memory("coordinate")


def test_folder_that_may_not_be_written_is_told_unclearly(public_dir, jumble):
    """The sort runs as another user, if root runs the tests."""
    for name, mode in (("closed", 0o555), ("open", 0o777)):
        os.mkdir("%s/%s" % (public_dir, name))
        os.chmod("%s/%s" % (public_dir, name), mode)
    for place in ("closed", "closed/x"):
        p = sort_in_public(public_dir, ["-T", place, "-o", "open/out.bam"], cwd=public_dir, input=jumble.read_bytes(), env=MANY)
        assert p.returncode == 1 and b"temporary file in closed: Permission denied" in p.stderr, p.stderr
        assert os.listdir(public_dir + "/open") == os.listdir(public_dir + "/closed") == []


FULL = r"no space is left for temporary data in %s\b.*: (\d+) bytes .* (\d+) are free(?: \(.*\))?, (\d+) are in use"


@pytest.mark.parametrize("out", [["-o", "out.bam"], []], ids=["file", "stdout"])
def test_full_disk_is_told_without_place_and_numbers(desk, hard, threads, out):
    """A file that may not grow: a full disk that needs no disk. The output goes to a pipe or is never begun."""
    err = told(["-u", "-@", threads, "-T", "temp/x", *out], desk, FULL % "temp", env=arena(1 << 20),
               stdin=hard.read_bytes(), before=limited(3 << 20))
    needed, _, used = map(int, re.search(FULL % "temp", err).groups())
    assert 1000 < needed <= used and 3 << 20 < used < 12 << 20
    assert "-T" in err and "ulimit -f may forbid" in err


def test_second_place_is_not_used_when_the_first_is_full(desk, hard, threads):
    """Files that may not grow beyond half of the data, two of them."""
    (desk / "more").mkdir()
    size = 6 << 20
    args = ["-u", "--no-PG", "-@", threads]
    def run(*places):
        return run_sort([*args, *(w for x in places for w in ("-T", x))], env=arena(2 << 20), cwd=desk,
                        stdin=hard.read_bytes(), before=limited(size))
    assert run("temp").returncode == 1
    p = run("temp", "more")
    assert p.returncode == 0 and p.stdout == sorted_bytes([*args, hard]), p.stderr
    size = 1 << 20
    p = run("temp", "more")
    assert p.returncode == 1 and re.search(FULL % "(temp|more)", p.stderr), p.stderr
    assert "other -T directories" in p.stderr and not p.stdout


@pytest.fixture
def small_disks(desk):
    """small_disks({folder: size}, args) runs a sort with small file systems in these folders."""
    def run(disks, args, **kw):
        argv = in_name_space(" && ".join("mount -t tmpfs -o size=%s none %s" % (size, folder) for folder, size in disks.items()), cwd=desk)
        return subprocess.run([*argv, BINARY, "sort", *map(str, args)], cwd=desk, capture_output=True,
                              env=clean_env(**arena(1 << 20)), timeout=HANG, **kw)

    return run


def test_small_disk_that_is_full_is_told_late_or_leaves_output(desk, hard, small_disks, threads):
    before = snapshot(desk)
    p = small_disks({"temp": "2m"}, ["-u", "-@", threads, "-T", "temp/x", "-o", "out.bam"], input=hard.read_bytes())
    assert p.returncode == 1 and re.search(FULL % "temp", p.stderr.decode()), p.stderr
    assert snapshot(desk) == before and len(p.stderr.splitlines()) == 1 and b"ulimit" not in p.stderr


@pytest.mark.parametrize("order", [("temp", "more"), ("more", "temp")], ids=" ".join)
def test_full_small_disk_stops_the_sort_though_another_has_room(desk, hard, small_disks, threads, order):
    (desk / "more").mkdir()
    args = ["-u", "--no-PG", "-@", threads, *(w for x in order for w in ("-T", x))]
    p = small_disks({"temp": "3m", "more": "11m"}, args, input=hard.read_bytes())
    assert p.returncode == 0 and p.stdout == sorted_bytes(["-u", "--no-PG", hard]), p.stderr
    assert runs_in(p.stderr.decode()) > 1


# ---------------------------------------------------------------- other sorts in the same place


def test_sorts_with_one_prefix_mix_their_data(desk, jumble, reads, in_memory):
    expected = [in_memory("coordinate"), in_memory("n"), sorted_bytes([*FAST, reads])]
    args = [[jumble], ["-n", jumble], [reads]]
    with contextlib.ExitStack() as stack:
        ps = [stack.enter_context(start([*FAST, "-@", 2, "-T", "temp/same", "-o", "%d.bam" % i, *args[i % 3]],
                                        env=MANY, cwd=desk)) for i in range(6)]
        assert [p.wait(HANG) for p in ps] == [0] * 6
    for i in range(6):
        assert (desk / ("%d.bam" % i)).read_bytes() == expected[i % 3]
    assert os.listdir(desk / "temp") == []


@pytest.mark.parametrize("shim", [False, True], ids=["unnamed", "named"])
@pytest.mark.parametrize("kind", ["file", "folder", "link", "dangling", "link_to_folder", "pipe"])
def test_what_a_crashed_samtools_left_is_used_or_overwritten(desk, jumble, in_memory, request, kind, shim):
    """The names that samtools would give its files are in use."""
    env = MANY | (request.getfixturevalue("named_files") if shim else {})
    (desk / "elsewhere").mkdir()
    for name in ("x", "x.0000.bam", "x.0001.bam", "x.tmp", "x.XXXXXX", "samtools-sort.XXXXXX"):
        path = desk / "temp" / name
        if kind == "file":
            path.write_bytes(PRECIOUS)
        elif kind == "folder":
            path.mkdir()
        elif kind == "pipe":
            os.mkfifo(path)
        else:
            path.symlink_to({"link": desk / "out.bam", "dangling": "nowhere", "link_to_folder": desk / "elsewhere"}[kind])
    before = snapshot(desk)
    for n in (1, 2):
        out, runs = spilled([*FAST, "-@", n, "-T", "temp/x", jumble], env, cwd=desk)
        assert out == in_memory("coordinate") and runs > 1
        assert snapshot(desk) == before


# ---------------------------------------------------------------- limits


@pytest.mark.parametrize("order", [[], ["-n"]], ids=lambda v: "".join(v) or "coordinate")
def test_few_file_descriptors_fail_many_runs(reads, order):
    expected = sorted_bytes([*FAST, *order, reads])
    for n in (2, 8):
        out, runs = spilled([*FAST, *order, "-@", n, reads],
                            before=limit_on("NOFILE", 24))
        assert out == expected and runs > 2


@pytest.mark.skipif(SANITIZED, reason="sanitizers need address space without limit")
@pytest.mark.parametrize("limit", [64, 128, 256, 512, 1024])
@pytest.mark.parametrize("n", [1, 2, 8])
def test_limit_on_address_space_crashes_or_spoils_the_output(desk, reads, limit, n):
    """ulimit -v sets MiB. The sort works, or reports the reason in one line."""
    before = snapshot(desk)
    p = run_sort([*FAST, "-@", n, "-m", "1G", "-o", "new.bam", reads], cwd=desk, env=arena(1 << 20),
                 before=limit_on("AS", limit << 20))
    if p.returncode:
        assert p.returncode == 1 and limit < 1024 and p.stderr, p.stderr
        assert re.search("memory|Resource temporarily unavailable|cannot", p.stderr), p.stderr
        assert snapshot(desk) == before
    else:
        assert runs_in(p.stderr) > 1
        assert (desk / "new.bam").read_bytes() == sorted_bytes([*FAST, reads])


# ---------------------------------------------------------------- damaged temporary data


def flip(f, size, at):
    f.seek(at)
    byte = f.read(1)
    f.seek(at)
    f.write(bytes([byte[0] ^ 0x20]))


def data_at(f, at):
    """The last byte up to there that is not zero. The gaps between slices, which begin at 4 KiB blocks, are zero."""
    f.seek(0)
    return len(f.read(at + 1).rstrip(b"\0")) - 1


DAMAGE = {
    "first_byte": lambda f, size: flip(f, size, 0),
    "in_a_head": lambda f, size: flip(f, size, 17),
    "middle": lambda f, size: flip(f, size, data_at(f, size // 2)),
    "last_byte": lambda f, size: flip(f, size, size - 1),
    "zeros": lambda f, size: (f.seek(data_at(f, size // 3) & ~511), f.write(bytes(512))),
    "cut": lambda f, size: f.truncate(size // 2),
    "empty": lambda f, size: f.truncate(0),
    "noise": lambda f, size: f.write(random.Random(1).randbytes(size)),
}


def damaged(desk, data, damage, n, size):
    """The message of a sort whose temporary data are damaged while it waits for its pipe."""
    has_unnamed_files(desk)
    before = snapshot(desk)
    with reading(data[:-28], ["-u", "-@", n, "-T", "temp", "-o", "out.bam"], arena(size), cwd=desk) as p:
        p.send_signal(signal.SIGSTOP)  # so that no data are written after the cut
        found = temp_files(p)
        assert [d for _, d in found] == [os.path.realpath(desk / "temp")]
        with open("/proc/%d/fd/%d" % (p.pid, found[0][0]), "r+b", buffering=0) as f:
            damage(f, os.fstat(f.fileno()).st_size)
        p.send_signal(signal.SIGCONT)
        status, _, err = feed_and_end(p, data[-28:])
    assert status == 1 and len(err.splitlines()) <= 2, err
    assert snapshot(desk) == before
    return err


# Two threads merge in the background when there are many runs, and data that they have finished with may be damaged.
@pytest.mark.parametrize("n,size", [(1, 300000), (1, 1 << 21), (2, 1 << 21)], ids=["many", "few", "few_t2"])
@pytest.mark.parametrize("kind", DAMAGE)
def test_damaged_temporary_data_come_out(desk, hard, kind, n, size):
    err = damaged(desk, hard.read_bytes(), DAMAGE[kind], n, size)
    assert re.search(r"temporary data in temp are damaged at offset \d+", err), err


def test_damaged_size_of_temporary_data_is_told_as_lack_of_memory(desk, hard):
    err = damaged(desk, hard.read_bytes(), lambda f, size: flip(f, size, 15), 1, 1 << 21)
    assert re.search(r"temporary data in temp are damaged at offset 0\b", err), err


# ---------------------------------------------------------------- memory

MIB = 1 << 20
ALLOWANCE = 64 * MIB  # in addition to -m x -@


def hard_long_reads(n):
    """n records of 1 MB, joined, in no order, that hardly deflate."""
    _, recs = bamgen.long_reads(n, 1000002)
    r = bamgen.rng("hard long reads")
    r.shuffle(recs)
    levels = bytes(range(64)) * 4
    return b"".join(x[:48] + r.randbytes(len(x) - 48).translate(levels) for x in recs)


def long_lines(n):
    """n lines of SAM of 0.2 to 1.8 MB, in no order."""
    r = bamgen.rng("long lines")
    lines = []
    for i in range(n):
        bases = r.randrange(100, 900) * 1000
        lines.append(b"r%d\t0\tchr1\t%d\t9\t%dM\t*\t0\t0\t%s\t%s\n" % (
            i, r.randrange(1, 1000), bases, bytes(r.choices(b"ACGT", k=1000)) * (bases // 1000), b"I" * bases))
    return b"@SQ\tSN:chr1\tLN:100000000\n" + b"".join(lines)


@pytest.fixture(scope="session")
def heavy(gen_bam, tmp_path_factory):
    """heavy(kind, size) -> path of about size MB, made once, hardly compressed."""
    folder, made = tmp_path_factory.mktemp("heavy"), {}

    def make(kind, size):
        if kind in ("reads", "sam"):
            form = ["-O", "sam"] if kind == "sam" else ["--level", 1]
            return gen_bam("--size", "%dM" % size, "--qual", "full", *form)
        if (kind, size) not in made:
            made[kind, size] = folder / ("%s%d" % (kind, size))
            if kind == "lines":
                made[kind, size].write_bytes(long_lines(size))
                return made[kind, size]
            recs = bamgen.tiny(size * 1000000 // 60) if kind == "tiny" else hard_long_reads(size)
            made[kind, size].write_bytes(bamgen.bgzf(bamgen.header() + recs, level=0))
        return made[kind, size]

    return make


def peak(args, folder, **env):
    """Peak resident set by the kernel's account, in bytes; whether data left memory. A child of this process cannot be
    measured: the kernel includes the memory that it had before it became the program."""
    timed = pathlib.Path(os.path.realpath(BINARY)).parent / "timed"
    if not timed.exists():
        pytest.skip("no timed: make tools")
    with open(folder / "err", "w+") as err:
        p = subprocess.run([timed, folder / "timed", BINARY, "sort", "--no-PG", "-T", folder, *map(str, args)],
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err,
                           env=clean_env() | {k: str(v) for k, v in env.items()}, timeout=HANG)
        err.seek(0)
        told = err.read()
    assert p.returncode == 0, told
    return 1024 * int(re.search(r"rss_kb=(\d+)", (folder / "timed").read_text()).group(1)), runs_in(told) > 0


COORDINATE, NAME, TEMPLATE = (), ("-n",), ("--template-coordinate",)
# Input, its MB, -m in MiB, threads, order: larger than the memory allowed, except with 64 threads.
WEIGHTS = [("tiny", 72, m, n, COORDINATE) for m, n in ((1, 1), (1, 2), (1, 8), (1, 64), (8, 1), (8, 2))]
WEIGHTS += [("reads", 72, m, n, COORDINATE) for m, n in ((1, 2), (8, 1), (8, 2))]
WEIGHTS += [("long", 72, m, n, COORDINATE) for m, n in ((1, 1), (1, 8), (1, 64), (8, 2))]
WEIGHTS += [("tiny", 72, 8, 1, NAME), ("tiny", 72, 8, 1, TEMPLATE), ("reads", 72, 1, 8, NAME), ("long", 72, 8, 1, NAME)]
WEIGHTS += [(kind, 120, 64, 1, order) for kind, order in (
    ("tiny", COORDINATE), ("reads", NAME), ("long", TEMPLATE))]
WEIGHTS += [("lines", 120, m, n, COORDINATE) for m, n in ((1, 1), (1, 8), (1, 64), (8, 2))]
WEIGHTS += [("sam", 72, 1, 1, COORDINATE), ("sam", 72, 1, 8, COORDINATE), ("sam", 72, 1, 64, COORDINATE)]
WEIGHTS += [("sam", 72, 1, 2, NAME), ("sam", 72, 8, 2, ("-O", "sam")), ("reads", 72, 1, 2, ("-O", "sam"))]


def weights():
    for w in WEIGHTS:
        name = "%s-%dM-@%d%s" % (w[0], w[2], w[3], "".join("-" + x.strip("-") for x in w[4]))
        yield pytest.param(*w, id=name)


@pytest.mark.skipif(SANITIZED, reason="sanitizers need memory of their own")
@pytest.mark.parametrize("kind,size,m,n,order", weights())
def test_sort_takes_more_memory_than_promised(heavy, tmp_path, kind, size, m, n, order):
    used, went = peak(["-l", 1, "-m", "%dM" % m, "-@", n, *order, heavy(kind, size)], tmp_path)
    over = used - m * n * MIB
    print("%.1f MiB over the budget" % (over / MIB))
    assert went or n == 64
    assert over <= ALLOWANCE


@pytest.mark.skipif(SANITIZED, reason="sanitizers need memory of their own")
@pytest.mark.parametrize("kind,size,total,n,form", [
    ("reads", 72, 0, 1, "bam"), ("reads", 72, 0, 8, "bam"), ("tiny", 72, 0, 2, "bam"), ("tiny", 72, 50, 8, "bam"), ("sam", 72, 0, 8, "bam"),
    ("reads", 120, 160, 64, "bam"), ("reads", 72, 0, 8, "cram")])
def test_all_together_takes_more_than_total_memory(heavy, tmp_path, kind, size, total, n, form):
    """total: MiB; 0: the minimum that the program reports."""
    args = ["-l", 1, "-@", n, "-O", form, *(["--output-fmt-option", "no_ref=1"] if form == "cram" else []), heavy(kind, size)]
    if not total:
        p = run_sort(["--total-memory", "24M", "-o", tmp_path / "o", *args])
        assert p.returncode == 1 and not (tmp_path / "o").exists()
        total = int(re.search(r"with %d threads? and these inputs, (\d+)M is enough" % n, p.stderr).group(1))
        assert total < 30 + 2 * n + 20 * (kind == "sam") + 180 * (form == "cram")
    used, went = peak(["--total-memory", "%dM" % total, *args], tmp_path)
    print("%.1f MiB of %d" % (used / MIB, total))
    assert used <= total * MIB
    assert went or n == 64 or form == "cram"


@pytest.mark.skipif(SANITIZED, reason="sanitizers need memory of their own")
def test_what_is_enough_is_far_too_much(tmp_path):
    """Indexes and --verify use a fixed amount, with any memory."""
    path, enough = tmp_path / "in.bam", []
    path.write_bytes(bamgen.bam(bamgen.header(refs=[("c", 1 << 26)]), [bamgen.record()]))
    for more in ([], ["--verify", "--write-index"]):
        args = ["-@", 2, *more, "-o", tmp_path / "o.bam", path]
        p = run_sort(["--total-memory", "24M", *args])
        enough.append(int(re.search(r"and these inputs, (\d+)M is enough", p.stderr).group(1)))
        assert run_sort(["--total-memory", "%dM" % enough[-1], *args]).returncode == 0
    assert enough[0] <= enough[1] < enough[0] + 12


def giants(count=3):
    """Reads of 24 Mb, of 36 MB each in BAM, in reverse order; the second has no qualities."""
    r, n = bamgen.rng("giants"), 24000000
    nibbles, quals = bytes(1 << b % 4 << 4 | 1 << b // 4 % 4 for b in range(256)), bytes(b % 40 for b in range(256))
    for i in range(count):
        qual = b"\xff" * n if i == 1 else r.randbytes(n).translate(quals)
        body = b"giant\0" + bamgen.cigar_bytes([(n, "M")]) + r.randbytes(n // 2).translate(nibbles) + qual
        yield bamgen.raw_record(pos=9 - i, l_name=6, bin=bamgen.reg2bin(9 - i, 9 - i + n), n_cigar=1, l_seq=n, body=body)


@pytest.mark.slow
@pytest.mark.skipif(SANITIZED, reason="sanitizers need memory of their own")
@pytest.mark.parametrize("form,most", [("bam", 3), ("sam", 4.5)])
def test_record_larger_than_an_arena_is_in_memory_many_times(tmp_path, form, most):
    """most: times the size of a record. samtools 1.24 uses 4.5 times for BAM and 11 for SAM."""
    recs, path, out = list(giants()), tmp_path / "in.bam", tmp_path / "out.bam"
    path.write_bytes(bamgen.bgzf(bamgen.header() + b"".join(recs), level=0))
    if form == "sam":
        (tmp_path / "in.sam").write_bytes(view(path, "-h"))
    used, went = peak(["-l", 1, "-m", "8M", "-@", 2, "-o", out, tmp_path / ("in." + form)], tmp_path)
    print("%.1f MiB" % (used / MIB))
    assert went and used <= most * len(recs[0]) + 24 * MIB
    assert read_bam(out.read_bytes()).body == b"".join(recs[::-1])


@pytest.mark.slow
@pytest.mark.skipif(SANITIZED, reason="sanitizers need memory of their own")
def test_large_records_are_in_memory_to_be_compared(tmp_path):
    """They have one name, so each is compared with all others. One of them is in the arena, two are being written."""
    recs, path, out = list(giants(6)), tmp_path / "in.bam", tmp_path / "out.bam"
    path.write_bytes(bamgen.bgzf(bamgen.header() + b"".join(recs), level=0))
    used, went = peak(["-n", "-l", 1, "-m", "8M", "-@", 2, "-o", out, path], tmp_path)
    print("%.1f MiB" % (used / MIB))
    assert went and used <= 3.5 * len(recs[0]) + 24 * MIB
    assert read_bam(out.read_bytes()).body == b"".join(recs)


@pytest.mark.skipif(SANITIZED, reason="sanitizers need memory of their own")
@pytest.mark.parametrize("form", ["bam", "sam"])
def test_inputs_that_are_not_read_have_buffers(tmp_path, form):
    path = tmp_path / "in.bam"
    path.write_bytes(bamgen.bgzf(bamgen.header() + 6000 * bamgen.record(), level=1))
    if form == "sam":
        path = tmp_path / "in.sam"
        path.write_bytes(view(tmp_path / "in.bam", "-h"))
    args = ["-l", 1, "-m", "1M", "-@", 2, *["--add-input", path] * 599, path]
    used, went = peak(args, tmp_path)
    print("%.1f MiB" % (used / MIB))
    assert went and used <= 2 * MIB + ALLOWANCE
    p = run_sort(["--plan=json", *args])
    assert int(re.search(r'"memory_most_bytes": (\d+)', p.stdout.decode()).group(1)) <= 120 * MIB


@pytest.mark.slow
@pytest.mark.skipif(SANITIZED, reason="sanitizers need memory of their own")
def test_libraries_take_more_memory_than_promised(heavy, tmp_path):
    """libhts with URLs loads 30 more libraries than without. Here one uses 10 MiB when the program starts: the sort
    must use less. (At most a third of all memory is counted: -m must leave room for any libhts's libraries and
    these 10.) Runs differ by some MiB, mostly on busy cores: any three with the library fit beside any three
    without."""
    (tmp_path / "large.c").write_text("""
        #include <string.h>
        static char large[10 << 20];
        __attribute__((constructor)) static void touch(void) { memset(large, 1, sizeof large); }""")
    subprocess.run([*os.environ.get("CC", "cc").split(), "-shared", "-fPIC", "-o", tmp_path / "large.so", tmp_path / "large.c"], check=True)
    args = ["-l", 1, "-m", "16M", "-@", 2, heavy("long", 112)]
    runs = [(peak(args, tmp_path), peak(args, tmp_path, LD_PRELOAD=tmp_path / "large.so")) for _ in range(3)]
    less, most = min(without[0] for without, _ in runs), max(used for _, (used, _) in runs)
    print("%.1f MiB, with the library %.1f" % (less / MIB, most / MIB))
    assert all(went for _, (_, went) in runs)
    assert most - 32 * MIB <= ALLOWANCE
    assert most - less <= 6 * MIB


@pytest.mark.slow
@pytest.mark.skipif(SANITIZED, reason="sanitizers need memory of their own")
def test_minimisers_take_more_memory_than_promised(heavy, tmp_path):
    """The index of -I for 30 Mb uses 36 MB."""
    r = bamgen.rng("genome")
    (tmp_path / "genome.fa").write_bytes(b"".join(
        b">c%d\n%s\n" % (i, r.randbytes(300000).translate(b"ACGT" * 64)) for i in range(100)))
    used, went = peak(["-l", 1, "-m", "16M", "-M", "-I", tmp_path / "genome.fa", "-w", 50, heavy("tiny", 120)], tmp_path)
    print("%.1f MiB over the budget" % (used / MIB - 16))
    assert went and used <= 16 * MIB + ALLOWANCE


@pytest.mark.skipif(SANITIZED, reason="sanitizers need memory of their own")
def test_index_takes_more_memory_than_promised(tmp_path):
    """Reads all over a genome of human size."""
    refs = [("chr%d" % i, 1 << 28) for i in range(12)]
    recs = bytearray(bamgen.tiny(1200000))
    recs[4::60] = bytes(bamgen.rng("references").choices(range(len(refs)), k=1200000))
    (tmp_path / "in.bam").write_bytes(bamgen.bgzf(bamgen.header(refs=refs) + recs, level=0))
    used, went = peak(["-l", 1, "-m", "1M", "--write-index", "-o", tmp_path / "o.bam", tmp_path / "in.bam"], tmp_path)
    print("%.1f MiB over the budget" % (used / MIB - 1))
    assert went and used <= MIB + ALLOWANCE


@pytest.mark.skipif(SANITIZED, reason="sanitizers need memory of their own")
@pytest.mark.parametrize("form,most", [("sam", 110), ("bam", 95)])
def test_half_a_million_references_are_parsed_by_htslib(tmp_path, form, most):
    """samtools uses 145 MiB for them, and htslib's parsed form alone 100."""
    refs = [("contig_%d" % i, 1000 + i % 5000) for i in range(500000)]
    text, path = bamgen.sq_text(refs), tmp_path / "in"
    if form == "sam":
        path.write_text(text + "r\t0\tcontig_7\t1\t9\t1M\t*\t0\t0\tA\tI\n")
    else:
        path.write_bytes(bamgen.bgzf(bamgen.header(text, refs=refs) + bamgen.record(), level=1))
    used, _ = peak(["-l", 1, "-m", "1M", path], tmp_path)
    print("%.1f MiB" % (used / MIB))
    assert used <= most * MIB


@pytest.mark.skipif(SANITIZED, reason="sanitizers need memory of their own")
@pytest.mark.parametrize("form", ["sam", "bam"])
def test_header_that_is_refused_for_its_size_does_not_tell_what_would_do(tmp_path, form):
    refs = [("contig_%d" % i, 1000 + i % 5000) for i in range(300000)]
    text, path = bamgen.sq_text(refs), tmp_path / "in"
    path.write_bytes(text.encode() if form == "sam" else bamgen.bgzf(bamgen.header(text, refs=refs) + bamgen.record(), level=1))
    for total in (24, 45):                       # while it is read, and when memory is divided
        p = run_sort(["--total-memory", "%dM" % total, "-o", tmp_path / "o", path])
        found = re.search(r"use --total-memory (\d+)M|these inputs, (\d+)M is enough", p.stderr)
        assert p.returncode == 1 and found and not (tmp_path / "o").exists(), p.stderr
        enough = int(found[1] or found[2])
        used, _ = peak(["--total-memory", "%dM" % enough, path], tmp_path)
        assert total < enough < 400 and used <= enough * MIB


@pytest.mark.slow
@pytest.mark.skipif(SANITIZED, reason="sanitizers need memory of their own")
def test_half_a_million_references_take_more_memory_than_promised(tmp_path):
    """Those of a fragmented assembly."""
    refs = [("c%d" % i, 1 << 20) for i in range(500000)]
    (tmp_path / "in.bam").write_bytes(bamgen.bgzf(bamgen.header(refs=refs) + bamgen.tiny(2000000), level=0))
    used, went = peak(["-l", 1, "-m", "70M", "-@", 1, tmp_path / "in.bam"], tmp_path)
    print("%.1f MiB over the budget" % (used / MIB - 70))
    assert went and used <= 70 * MIB + ALLOWANCE
