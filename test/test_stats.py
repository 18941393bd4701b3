# SPDX-License-Identifier: MIT
"""The output of `stats`, compared with samtools 1.24: real files, seeded ones of all kinds, and odd ones; in one
range and cut into ranges at random places (build/stats_ranges), and by the program with several threads."""

import os
import pathlib
import random
import re
import subprocess
import sys

import pytest

import bamgen
import statsgen
from conftest import BINARY, HANG, REAL_DIR, THREADS, clean_env, run

RANGES = pathlib.Path(os.path.realpath(BINARY)).parent / "stats_ranges"
ORACLE = """
import os, sys
from pysam.libcutils import _pysam_dispatch
status, err, out = _pysam_dispatch("samtools", "stats", tuple(sys.argv[1:]), catch_stdout=True)
sys.stdout.buffer.write(out if isinstance(out, bytes) else (out or "").encode())
sys.stdout.flush()
sys.stderr.write(err or "")
sys.stderr.flush()
os._exit(status & 255)
"""


def oracle(args):
    """Exit status and lines of samtools 1.24, except the first line, which names versions."""
    p = subprocess.run([sys.executable, "-c", ORACLE, *map(str, args)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.DEVNULL, timeout=HANG)
    return p.returncode, p.stdout.split(b"\n")[1:]


def in_ranges(seed, args):
    if not RANGES.exists():
        pytest.skip("make build/stats_ranges")
    p = subprocess.run([RANGES, str(seed), "stats", *map(str, args)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                       stderr=subprocess.PIPE, timeout=HANG, env=clean_env())
    return p.returncode, p.stdout.split(b"\n")[1:]


def same(ours, theirs, what):
    status, lines = ours
    expected_status, expected = theirs
    assert (status == 0) == (expected_status == 0), what
    if expected_status:
        assert lines in ([], [b""]), "%s: something was printed" % (what,)
        return
    for i, (a, b) in enumerate(zip(lines, expected)):
        assert a == b, "%s: line %d" % (what, i + 2)
    assert len(lines) == len(expected), what


def compare(args, seeds=(0, 1, 2)):
    theirs = oracle(args)
    for seed in seeds:
        same(in_ranges(seed, args), theirs, (seed, *args))
    return theirs


def by_program(args, theirs, threads):
    p = run(["stats", *args[:-1], "-@", str(threads), args[-1]])
    lines = p.stdout.split(b"\n")[1:]
    same((p.returncode, [b"" if x.startswith(b"# The command line") else x for x in lines]),
         (theirs[0], [b"" if x.startswith(b"# The command line") else x for x in theirs[1]]), (threads, *args))


@pytest.fixture(params=range(24))
def seeded(request, tmp_path):
    """A path and the options of a case with this seed."""
    bam, options, regions, fasta = statsgen.case(request.param, with_fasta=request.param % 3 == 0)
    (tmp_path / "in.bam").write_bytes(bam)
    r = random.Random(request.param)
    if request.param % 3 == 0:
        (tmp_path / "ref.fa").write_text(fasta)
        subprocess.run([sys.executable, "-c", "import pysam, sys; pysam.faidx(sys.argv[1])", tmp_path / "ref.fa"], check=True)
        options += ["-r", str(tmp_path / "ref.fa")] + r.choice(([], ["--ref-stats"]))
    if r.random() < 0.4:
        (tmp_path / "regions").write_text(regions)
        options += ["-t", str(tmp_path / "regions"), "-g", r.choice("012")]
    return [*options, str(tmp_path / "in.bam")]


def test_seeded_files_count_as_samtools_counts_them(seeded):
    compare(seeded, (0, 1, 2, 3))


@pytest.mark.parametrize("threads", THREADS)
def test_threads_change_nothing(seeded, threads):
    by_program(seeded, oracle(seeded), threads)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(p.name for p in REAL_DIR.glob("*.bam") if p.name != "cigar-64k.bam"))
def test_real_files(name):
    compare([REAL_DIR / name], (0, 5))


@pytest.mark.parametrize("options", (["-p"], ["-q", "20", "-m", "0.9", "-x"], ["-c", "4,2,1"],
                                     ["-c", "1,40,5", "-i", "0", "--GC-depth", "500"]), ids="".join)
@pytest.mark.parametrize("name", ("NA12878.chr22.s.bam", "test.rna.paired_end.sorted.chr6.bam", "chr9.sample.bam"))
def test_options_on_real_files(name, options):
    compare([*options, REAL_DIR / name])


def write(path, records, refs=statsgen.REFS, text=None):
    path.write_bytes(bamgen.bgzf(bamgen.header(text or "@HD\tVN:1.6\n" + bamgen.sq_text(refs), refs) + b"".join(records)))
    return str(path)


def test_reads_that_grow_make_the_ring_lose_depths(tmp_path):
    """Each read that is longer than all before makes samtools' ring grow, and damages its content."""
    r = random.Random(11)
    lengths = [100] * 300 + [299, 300, 301, 310, 320, 600, 100, 700, 1500] * 20 + [100] * 50
    records = [bamgen.record("g%d" % i, 0, 3, 100 + i * 7, seq=bamgen.bases(r, n), qual=bytes([30]) * n)
               for i, n in enumerate(lengths)]
    compare([write(tmp_path / "in.bam", records)], range(8))


def test_far_blocks_come_round_in_the_ring(tmp_path):
    """A block after an intron that is longer than the ring is counted at another place."""
    r = random.Random(12)
    records = [bamgen.record("n%d" % i, 0, 3, i * 11, cigar=[(20, "M"), (r.choice((1400, 1480, 1500, 3000, 7777)), "N"), (30, "M")],
                             seq=bamgen.bases(r, 50)) for i in range(1500)]
    compare([write(tmp_path / "in.bam", records)], range(6))


def test_far_blocks_are_kept_over_gaps(tmp_path):
    """After a gap of the ring's length samtools keeps one cell, and an old block may be in it."""
    for seed in range(4):
        r = random.Random(400 + seed)
        records, pos, tid = [], 0, 0
        for i in range(1500):
            pos += r.choice((0, 1, 2, 3, 1498, 1499, 1500, 1501, 4000))
            if pos > statsgen.REFS[tid][1] - 10000:
                tid, pos = (tid + 1) % 4 if tid != 1 else 3, r.choice((0, 1, 500))
            far = r.choice((1440, 1460, 1479, 1480, 1481, 1499, 3000))
            cigar = [(20, "M"), (far, "N"), (30, "M")] if r.random() < .5 else [(50, "M")]
            records.append(bamgen.record("q%d" % i, 0, tid, pos, cigar=cigar, seq=bamgen.bases(r, 50)))
        compare([write(tmp_path / "in.bam", records)], range(6))


# (seed of the file, kind, seed of its ranges): chosen so that each guard of joining and pairing ranges is needed for at
# least one of them
TURNS = [(0, "none", 1), (0, "far", 3), (3, "none", 2), (4, "grow", 3), (12, "none", 2), (14, "none", 3), (14, "far", 5), (44, "far", 5)]


def turning(seed, kind):
    """Records that soon continue on another reference, and blocks that come round. none: also records without a
    reference; grow: also reads that make the ring grow."""
    r = random.Random("turns %s %d" % (kind, seed))
    gaps = r.choice(((0, 0, 0, 1), (0, 0, 0, 1500, 3000, 1499), (0, 0, 1, 2, 20), (0, 1, 2, 700, 1400, 1530, 1548), (0,)))
    far = r.choice(((1455, 1460, 1470, 1479), (1455, 1460, 1470, 1479, 0), (1480, 1499, 3000, 1460), (0,)))
    turn, records, tid, pos = r.choice((.05, .3, .5)), [], 0, 0
    for i in range(r.choice((60, 300))):
        pos += r.choice(gaps)
        if r.random() < turn or pos > statsgen.REFS[tid][1] - 100:
            tid, pos = r.choice([t for t in ((0, 1, 3, -1) if kind == "none" else (0, 1, 3)) if t != tid]), r.choice((0, 1, 20))
        n = r.choice((299, 300, 301, 310, 400)) if kind == "grow" and r.random() < .03 else 50
        apart = r.choice(far)
        cigar = [(20, "M"), (apart, "N"), (n - 20, "M")] if apart and r.random() < .6 else [(n, "M")]
        records.append(bamgen.record("t%d" % i, 0, tid, pos, cigar=cigar, seq=bamgen.bases(r, n)))
    return records


@pytest.mark.parametrize("seed, kind, cuts", TURNS, ids=str)
def test_ranges_that_turn_are_joined_too_simply(tmp_path, seed, kind, cuts):
    compare([write(tmp_path / "in.bam", turning(seed, kind))], (0, cuts))


def test_first_record_of_a_range_is_out_of_order(tmp_path):
    """Each range is in order, but the second begins before the end of the first, whose length is drawn by the seed."""
    seed = 7
    first = (seed * 6364136223846793005 + 1442695040888963407) % 2**64 // 2**33 % 200
    records = [bamgen.record("o%d" % i, 0, 0, 3000 if i < first else 20, seq="A" * 100) for i in range(first + 10)]
    path = write(tmp_path / "in.bam", records)
    compare([path], (0, seed))
    assert any(line.startswith(b"SN\tis sorted:\t0") for line in in_ranges(seed, [path])[1])


def test_gaps_of_all_sizes(tmp_path):
    """Steps by less than the ring, by as much, by more, and to other references and back."""
    r = random.Random(13)
    records, pos, tid = [], 0, 0
    for i in range(3000):
        pos += r.choice((0, 0, 1, 3, 50, 1400, 1499, 1500, 1501, 4000))
        if pos > statsgen.REFS[tid][1] - 200:
            tid, pos = r.choice((0, 3)), r.choice((0, 1, 500))
        records.append(bamgen.record("q%d" % i, 0, tid, pos, seq=bamgen.bases(r, 100)))
    compare([write(tmp_path / "in.bam", records)], range(6))


def test_overlaps_are_forgotten_when_many_names_wait(tmp_path):
    """samtools clears its table of names after 10,000 records: later mates are counted twice."""
    r = random.Random(14)
    refs, records = [("big", 2000000)], []
    for i in range(24000):
        records.append(bamgen.record("w%d" % i, 99, 0, i, cigar=[(50, "M")], mtid=0, mpos=i + 20, tlen=r.choice((70, 99, 60)),
                                     seq="ACGTA" * 10))
        if i > 12000:
            records.append(bamgen.record("w%d" % r.choice((i - 12000, i - 60, i - 20)), 147, 0, i, cigar=[(50, "M")], mtid=0, mpos=max(0, i - 20),
                                         tlen=-70, seq="ACGTA" * 10))
    compare(["-p", write(tmp_path / "in.bam", records, refs)], (0, 1))


def test_names_are_forgotten_before_as_many_records_have_come(tmp_path):
    """More names wait than samtools keeps, all at one place. Those that it has not cleared meet their mates, and a third
    read of the name is then the first of another pair."""
    records = [(1000, "w%d" % i, 99) for i in range(10100)]
    for i in range(60):
        records += [(2000 + 4 * i, "w%d" % (10099 - i), 147), (2002 + 4 * i, "w%d" % (10099 - i), 99)]
    compare(["-p", write(tmp_path / "in.bam", [bamgen.record(name, flag, 0, pos, cigar=[(50, "M")], mtid=0, mpos=pos, tlen=70, seq="ACGTA" * 10)
                                               for pos, name, flag in records], [("big", 2000000)])], (0, 1))


@pytest.mark.parametrize("seed", range(8))
def test_place_before_the_first_one_is_a_place_like_others(tmp_path, seed):
    """Mapped reads at position -1: samtools takes each for a bin of GC depth of its own, and -p takes it for the end of
    a record. SAM cannot hold them."""
    r, records = random.Random(500 + seed), []
    for i in range(60):
        cigar = r.choice(([(10, "M")], [(5, "N"), (10, "M")], [(4, "M"), (3, "D"), (6, "M")]))
        records.append((r.choice((-1, -1, -1, 0, 2, 30)), "q%d" % r.randrange(5), r.choice((0, 73, 65, 65, 129, 129)), cigar))
    path = write(tmp_path / "in.bam", [bamgen.record(name, flag, 0, pos, cigar=cigar, mtid=0, mpos=5, tlen=r.choice((0, 9, 9, 40)), seq="ACGTACGTGC")
                                       for pos, name, flag, cigar in sorted(records, key=lambda record: record[0])])
    for args in ["--GC-depth", "20"], ["-p"]:
        compare([*args, path])


def test_regions_that_are_joined_lose_their_open_end(tmp_path, monkeypatch):
    """A region without an end has the name of the reference alone."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "in.bam", [bamgen.record("a%d" % i, 0, 0, 5 + i) for i in range(30)], [("big", 2000), ("next", 2000)])
    subprocess.run([sys.executable, "-c", "import pysam; pysam.index('in.bam')"], check=True)
    for regions in ["big:1-20", "big"], ["big", "big:1-20"], ["big:5-20", "big:10"], ["big:1-20", "next", "big:30-40"]:
        args = ["--ref-stats", "in.bam", *regions]
        by_program(args, oracle(args), 2)


def test_more_records_than_a_narrow_counter_holds(tmp_path):
    """65,535 reads fill the counters of a cycle."""
    records = [bamgen.record("c", 16 * (i % 3 == 0), 0, 10, seq="ACGTACG", qual=b"\x1e" * 7) for i in range(140000)]
    compare([write(tmp_path / "in.bam", records)], (0, 1))


@pytest.mark.parametrize("words, status", ((["-c", "1,2"], 1), (["-f", "NONE"], 1), (["-g", "-1"], 1), (["-g", "3"], 1),
                                           (["-t", "nothing"], 1), (["-r", "nothing"], 1), (["-F", "-4"], 1), (["-X"], 1)),
                         ids=lambda w: str(w))
def test_what_is_refused_prints_nothing(tmp_path, monkeypatch, words, status):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "in.bam", [bamgen.record("a")])
    assert oracle([*words, "in.bam"])[0] == status
    p = run(["stats", *words, "in.bam"])
    assert (p.returncode, p.stdout) == (status, b"") and p.stderr


def test_a_record_without_cigar_is_an_error(tmp_path):
    path = write(tmp_path / "in.bam", [bamgen.record("a"), bamgen.record("b", cigar=[], pos=5)])
    assert oracle([path])[0] == 1
    p = run(["stats", path])
    assert p.returncode == 1 and p.stdout == b"" and "CIGAR" in p.stderr


@pytest.mark.parametrize("places", ((6050, 6025), (6036, 6025), (9000, 6025), (6025, 6050, 6026), (30, 5), (19500, 6025)), ids=str)
def test_regions_and_records_out_of_order(tmp_path, places):
    """A record that meets a region makes samtools forget the regions before; one between regions does not."""
    (tmp_path / "regions").write_text("chr1\t10\t20\nchr1\t6036\t6036\nchr1\t8355\t8655\nchr1\t9001\t9002\n")
    path = write(tmp_path / "in.bam", [bamgen.record("a%d" % i, 0, 0, p, seq="ACGTACGT" * 2) for i, p in enumerate(places)])
    compare(["-t", tmp_path / "regions", path])


@pytest.fixture(params=range(12))
def split(request, tmp_path, monkeypatch):
    """A file with a tag XV in each record, in a folder; options; the files that samtools makes."""
    seed, r = request.param, random.Random("split %d" % request.param)
    n, few = r.choice((40, 600)), r.choice((1, 2, 7, 40))
    kind = {"length": r.choice(statsgen.LENGTHS), "dense": r.choice((0, 50)), "pairs": True, "fasta": False, "barcodes": 0, "qualities": (2, 30)}
    records = statsgen.pairs_of(r, n, kind) if seed % 2 else [statsgen.record(r, i, kind) for i in range(n)]
    if seed % 4 != 2:
        records.sort(key=statsgen.place)
    records = [statsgen.tagged(rec, b"XV", b"v%d" % r.randrange(few) if r.random() < 0.9 else b"") for rec in records]
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "in.bam", records, text="@HD\tVN:1.6\n" + bamgen.sq_text(statsgen.REFS) + statsgen.GROUPS)
    (tmp_path / "regions").write_text("chr1\t1\t6000\nchr3\t200\t40000\n")
    options = ["-S", r.choice(("XV", "XVmore"))]
    for words, share in ((["-p"], .6), (["-t", "regions"], .3), (["-I", "s1"], .3), (["-P", "other"], .3), (["-F", "1024"], .3), (["--ref-stats"], .2)):
        options += words if r.random() < share else []
    theirs = oracle([*options, "in.bam"])
    files = {p.name: p.read_bytes().split(b"\n")[1:] for p in tmp_path.glob("*.bamstat")}
    for name in files:
        (tmp_path / name).unlink()
    return tmp_path, options, theirs, files


@pytest.mark.parametrize("threads", (1, 3))
def test_values_of_a_tag_have_files(split, threads):
    folder, options, theirs, files = split
    by_program([*options, "in.bam"], theirs, threads)
    assert sorted(p.name for p in folder.glob("*.bamstat")) == sorted(files)
    for name, lines in files.items():
        ours = (folder / name).read_bytes().split(b"\n")[1:]
        same((0, [x for x in ours if not x.startswith(b"# The command")]), (0, [x for x in lines if not x.startswith(b"# The command")]), name)


def test_values_share_the_table_of_overlaps(tmp_path, monkeypatch):
    """If one value removes names from the table, the counts of the values that added them stay. That shows in the
    moment when these values clear the table."""
    r, records = random.Random(15), []
    for tid, n, share in (0, 12500, 0.9), (1, 12500, 0.5):
        for i in range(n):
            value = b"a" if r.random() < share else b"b"
            rec = bamgen.record("w%d_%d" % (tid, i % 9000 if r.random() < 0.7 else max(0, i - r.choice((30, 60)))), r.choice((99, 147)), tid, i,
                                cigar=[(50, "M")], mtid=tid, mpos=i + 20, tlen=r.choice((70, 99, 60)), seq="ACGTA" * 10)
            records.append(statsgen.tagged(rec, b"XV", value))
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "in.bam", records, [("big", 2000000), ("next", 2000000)])
    theirs = oracle(["-S", "XV", "-p", "in.bam"])
    files = {v: (tmp_path / ("in.bam_%s.bamstat" % v)).read_bytes().split(b"\n")[3:] for v in "ab"}
    by_program(["-S", "XV", "-p", "in.bam"], theirs, 2)
    for v, lines in files.items():
        same((0, (tmp_path / ("in.bam_%s.bamstat" % v)).read_bytes().split(b"\n")[3:]), (0, lines), v)


@pytest.mark.parametrize("words, records, told", (
    (["-S", "XV"], [b"", b"XVZa\0", b""], "record 1: there is no tag XV"),
    (["-S", "XV"], [b"XVZa\0"] * 300 + [b"XVi\1\0\0\0"], "record 301: .*not text"),
    (["-S", "X"], [b"XVZa\0"], "two letters"),
    (["-S", "XV"], [b"XVZa\0", b"XVZb\0", b"XVZa\0"] * 200 + [None], "record 601: .*no CIGAR"),
    (["-S", "XV", "-P", "none/x"], [b"XVZa\0"], "none/x_a.bamstat"),
    (["-S", "XV"], [b"XVZa\0", b"XVZb/c\0"], "in.bam_b/c.bamstat")), ids=str)
def test_what_cannot_be_split_leaves_nothing(tmp_path, words, records, told):
    write(tmp_path / "in.bam", [bamgen.record("a", 0, 0, 5 + i, tags=b"XVZb\0" if tags is None else tags, cigar=[] if tags is None else None)
                                  for i, tags in enumerate(records)])
    p = run(["stats", "-@", "1", *words, "in.bam"], cwd=tmp_path)
    assert p.returncode == 1 and p.stdout == b"" and re.search(told, p.stderr), p.stderr
    assert [x.name for x in tmp_path.iterdir()] == ["in.bam"]


@pytest.mark.parametrize("fault", ("FAULT_SIGNAL=15", "FAULT_ERROR=28"))
@pytest.mark.parametrize("call, at", [("linkat", 1), ("linkat", 2), ("rename", 1), ("rename", 2), ("rename", 3)])
def test_only_some_files_of_values_appear(tmp_path, fault_shim, call, at, fault):
    """A signal, or a full disk, while the files of the values get their names."""
    write(tmp_path / "in.bam", [bamgen.record("a", 0, 0, 5 + i, tags=b"XVZ%d\0" % (i % 3)) for i in range(30)])
    p = run(["stats", "-@", "2", "-S", "XV", "in.bam"], cwd=tmp_path,
            env={**fault_shim, "FAULT_CALL": call, "FAULT_AT": str(at), **dict([fault.split("=")])})
    files = sorted(x.name for x in tmp_path.iterdir() if x.name != "in.bam")
    assert p.returncode == (1 if "ERROR" in fault else -15), p.stderr
    assert files in ([], ["in.bam_%d.bamstat" % v for v in range(3)]) and not (files and "ERROR" in fault)


def test_errors_of_the_reference_end_with_the_order(tmp_path):
    """A name that is missing in the FASTA file is an error only while the records are in order."""
    (tmp_path / "one.fa").write_text(">chr1\n" + "ACGT" * 5000 + "\n")
    subprocess.run([sys.executable, "-c", "import pysam, sys; pysam.faidx(sys.argv[1])", tmp_path / "one.fa"], check=True)
    for name, places in (("sorted", ((0, 5), (0, 9), (1, 3))), ("unsorted", ((0, 9), (0, 5), (1, 3)))):
        path = write(tmp_path / (name + ".bam"), [bamgen.record("a%d" % i, 0, t, p) for i, (t, p) in enumerate(places * 30)])
        compare(["-r", tmp_path / "one.fa", path], range(6))
