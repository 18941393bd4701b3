# SPDX-License-Identifier: MIT
"""`samtools coverage` and --coverage FILE against samtools 1.24: real files, seeded ones of all kinds with random
settings, and odd ones; in one range and cut into ranges at random places (build/stats_ranges), and by the program."""

import json
import os
import random
import re
import subprocess

import pytest

import bamgen
from conftest import FASTA_REFS, REAL_DIR, SANITIZED, THREADS, bam_files, clean_env, oracle_call, run, script
from test_own_files import refused, seen
from test_stats import RANGES

REAL = bam_files(REAL_DIR, "shared/real") if REAL_DIR.exists() else []
NAMES = "#rname\tstartpos\tendpos\tnumreads\tcovbases\tcoverage\tmeandepth\tmeanbaseq\tmeanmapq"


def theirs(folder, *words):
    """The output of samtools 1.24; None: it fails."""
    out = folder / "theirs.txt"
    status, _ = oracle_call("coverage", ["-o", str(out), *map(str, words)])
    return out.read_text() if status == 0 else None


def ours(*words, **kw):
    p = run(["coverage", *words], **kw)
    assert p.returncode == 0 or (p.returncode == 1 and not p.stdout and p.stderr), p.stderr
    return p.stdout.decode() if p.returncode == 0 else None


def in_ranges(seed, *words):
    if not RANGES.exists():
        pytest.skip("make build/stats_ranges")
    p = subprocess.run([RANGES, str(seed), "coverage", *map(str, words)], capture_output=True, text=True, env=clean_env())
    assert p.returncode in (0, 1), p.stderr
    return p.stdout if p.returncode == 0 else None


def write(path, records, refs=(("a", 1000), ("b", 500)), text=None):
    path.write_bytes(bamgen.bgzf(bamgen.header(bamgen.sq_text(refs) if text is None else text, refs) + b"".join(records)))
    return path


def compare(folder, *words, seeds=(0, 1, 2, 3)):
    expected = theirs(folder, *words)
    for seed in seeds:
        assert in_ranges(seed, *words) == expected, (seed, words)
    assert ours("-@", len(seeds) % 3, *words) == expected, words
    return expected


# ------------------------------------------------------------- random files and settings


def cigar_of(r):
    """Not one D or N alone: what samtools does with that depends on the read's name."""
    ops = [(r.randint(1, 3), "H")] * (r.random() < .1) + [(r.randint(1, 3), "S")] * (r.random() < .2)
    inner = [(r.randint(1, 9), r.choice("MMMMM=XIDNP")) for _ in range(r.randint(1, 5))]
    inner += [(1, "M")] * (len(inner) == 1 and inner[0][1] in "DN")
    return ops + inner + [(r.randint(1, 3), "S")] * (r.random() < .2)


def random_record(r, i, tid, pos):
    cigar = cigar_of(r) if r.random() < .97 else []
    n = sum(k for k, op in cigar if op in "MIS=X") if r.random() < .9 else 0
    qual = b"\xff" * n if r.random() < .1 else bytes(r.randrange(61) for _ in range(n))
    return bamgen.record("q%d" % i, r.choice((0, 0, 0, 16, 99, 147, 4, 256, 512, 1024, 2048, 3, 1, 2)), tid, pos,
                         r.choice((0, 1, 20, 60, 255)), cigar, seq="A" * n, qual=qual)


def random_file(r):
    """(references, records in coordinate order, mostly)"""
    refs = [("r%d" % i, r.choice((5, 20, 60, 300, 1000003))) for i in range(r.randint(1, 4))]
    recs = []
    for tid in range(len(refs)):
        places = sorted(r.randrange(r.choice((3, 30, 60, 300))) for _ in range(r.choice((0, 5, 30, 100))))
        recs += [random_record(r, len(recs) + i, tid, pos) for i, pos in enumerate(places)]
    recs += [bamgen.record("none", 4, -1, -1)] * r.choice((0, 3))
    if len(recs) > 2 and r.random() < .1:
        i = r.randrange(len(recs) - 1)
        recs[i:i + 2] = recs[i + 1], recs[i]
        recs = [x for x in recs if not x[18] & 4]
    return refs, recs


SETTINGS = [(.3, ("-q", "--min-MQ", "--min-mq"), (1, 20, 21, 255, 256)), (.4, ("-Q", "--min-BQ", "--min-bq"), (1, 20, 21, 40, 61, 255, 256)),
            (.3, ("-l", "--min-read-len"), (1, 5, 15, 30)), (.3, ("--rf", "--incl-flags"), (1, 3, "REVERSE", "0x2")),
            (.3, ("--ff", "--excl-flags"), (0, 4, 16, "DUP", "PAIRED,QCFAIL")), (.5, ("-d", "--depth"), (1, 2, 3, 5, 8, 20, 0)),
            (.1, ("-H", "--no-header"), ())]


@pytest.mark.parametrize("seed", range(60))
def test_seeded_files_are_covered_otherwise(tmp_path, seed):
    for i in range(6):
        r = random.Random(seed * 6 + i)
        refs, recs = random_file(r)
        path = write(tmp_path / "in.bam", recs, refs)
        words = [w for share, names, values in SETTINGS if r.random() < share
                 for w in [r.choice(names), *(str(r.choice(values)) for _ in values[:1])]]
        compare(tmp_path, *words, path)


@pytest.mark.parametrize("path", REAL)
def test_real_file_is_covered_otherwise(tmp_path, path):
    for words in [], ["-Q", "20", "-d", "5"]:
        compare(tmp_path, *words, path)


# ---------------------------------------------------------------------- odd files


def test_odd_references_are_printed_otherwise(tmp_path):
    """References that reads span come first. One of length 0 has shares that are no numbers."""
    path = tmp_path / "in.bam"
    read = [bamgen.record("r", 0, 2, 10)]
    assert compare(tmp_path, write(path, read, (("a", 9), ("b", 9), ("c", 50)))).split("\n")[1].startswith("c\t1\t50\t1\t4\t8\t")
    for refs in (("z", 0), ("c", 50), ("d", 60)), (("a", 9), ("z", 0), ("c", 50)):       # the program refuses them
        text = in_ranges(0, write(path, read, refs, ""))
        assert text == theirs(tmp_path, path) and "-nan" in text
    assert compare(tmp_path, write(path, [], ())) == "" and compare(tmp_path, write(path, [])).startswith(NAMES + "\na\t1\t1000\t0\t")
    for pos in -1, 997, 999, 1000, 5000:
        compare(tmp_path, write(path, [bamgen.record("r", 0, 0, pos)]))


def test_order_of_other_records_is_checked(tmp_path):
    """Records that are filtered or without a reference may stand anywhere."""
    path = tmp_path / "in.bam"
    reads = [bamgen.record("r%d" % i, 0, i // 6, 40 + 10 * (i % 6)) for i in range(12)]
    for flag, tid, words in (1024, 0, []), (4, 0, []), (0, -1, []), (0, 0, ["-q", "61"]), (0, 0, ["-l", "5"]):
        assert compare(tmp_path, *words, write(path, [*reads[:9], bamgen.record("x", flag, tid, 3), *reads[9:]])), flag
    for at in range(1, 12):
        for tid, pos in (0, 5), (1, 5):
            recs = [*reads[:at], bamgen.record("x", 0, tid, pos, cigar=[(4, "S")]), *reads[at:]]
            expected = compare(tmp_path, write(path, recs))
            assert (expected is None) == ((tid, at) != (1, 6))
            if expected is None:
                assert re.search(r"record \d+: it is out of coordinate order", run(["coverage", path]).stderr)


def test_first_read_of_a_range_is_out_of_order(tmp_path):
    reads = [bamgen.record("r%d" % i, 0, 0, 2 * i) for i in range(300)]
    assert in_ranges(0, write(tmp_path / "in.bam", reads))
    for at in range(200, 270):
        path = write(tmp_path / "in.bam", [*reads[:at], reads[0], *reads[at:]])
        assert [in_ranges(seed, path) for seed in range(5)] == 5 * [None]


@pytest.mark.parametrize("depth", [0, 1, 7, 40, 1000])
def test_reads_beyond_the_limit_are_covered_otherwise(tmp_path, depth):
    """Ranges at one place, and reads that only the limit of all ranges before leaves out."""
    r = random.Random(depth)
    recs, pos = [], 0
    for i in range(4000):
        pos += r.choice((0, 0, 0, 0, 1, 60)) if i % 1000 < 500 else 0
        if i % 1000 == 0:
            pos = 0
        n = r.choice((3, 40, 90))
        cigar = r.choice(([(n, "M")], [(n, "S")], [(n - 2, "M"), (50, "N"), (2, "M")]))
        recs.append(bamgen.record("r%d" % i, 0, i // 1000, pos, 30, cigar, seq="A" * n, qual=bytes(r.choices(range(50), k=n))))
    refs = [("s%d" % i, 30000) for i in range(4)]
    compare(tmp_path, "-d", str(depth), "-Q", str(r.choice((0, 40))), write(tmp_path / "in.bam", recs, refs), seeds=range(6))


def test_reads_of_one_place_are_kept_otherwise(tmp_path):
    """Reads that span nothing are kept only if they are the first ones of their place."""
    r = random.Random(3)
    for depth in range(2, 12):
        recs = [bamgen.record("r%d" % i, 0, i // 300, 7 * (i // 100), 30, [r.choice(((4, "M"), (4, "S"), (4, "I")))]) for i in range(900)]
        compare(tmp_path, "-d", str(depth), write(tmp_path / "in.bam", recs, [("s%d" % i, 30000) for i in range(3)]), seeds=range(8))


def test_long_cigar_is_covered_otherwise(tmp_path):
    """Reads whose bases of low quality leave many blocks, over other such reads; and a CIGAR in the tag CG."""
    r = random.Random(8)
    recs = [bamgen.cg_record("long", 3, [(1, "M"), (1, "D")] * 40000)]
    for i in range(60):
        recs.append(bamgen.record("q%d" % i, 0, 0, 5 + 400 * i, cigar=[(3000, "M"), (1000, "N"), (3000, "M")], seq="A" * 6000,
                                  qual=bytes(r.choices((2, 30), k=6000))))
    for words in [], ["-Q", "10"]:
        compare(tmp_path, *words, write(tmp_path / "in.bam", recs, [("a", 100000)]))


@pytest.mark.parametrize("name", ["in.sam", "in.sam.gz", "in.cram", "-"])
def test_format_of_the_input_decides_the_coverage(tmp_path, name):
    r = random.Random(5)
    recs = [bamgen.record("q%d" % i, r.choice((0, 16, 1024)), 0, 3 * i // 2, seq=bamgen.bases(r, 50), qual=bytes(r.choices(range(40), k=50)))
            for i in range(600)]
    path = write(tmp_path / "in.bam", recs, FASTA_REFS)
    expected = theirs(tmp_path, "-Q", "9", path)
    if name == "-":
        with open(path, "rb") as f:
            assert ours("-Q", "9", "-@", "2", "-", stdin=f) == expected
        return
    more = ["--output-fmt-option", "no_ref=1"] if name == "in.cram" else []
    assert run(["sort", *more, "-o", tmp_path / name, path]).returncode == 0
    assert ours("-Q", "9", "-@", "2", tmp_path / name) == theirs(tmp_path, "-Q", "9", tmp_path / name) == expected


def test_position_beyond_31_bits_is_counted_at_another_place(tmp_path):
    for pos, cigar in (1 << 32, "4M"), ((1 << 31) - 9, "2M%dN2M" % (1 << 27)), ((1 << 31) - 1, "4M"):
        (tmp_path / "in.sam").write_text("@SQ\tSN:far\tLN:%d\nr\t0\tfar\t%d\t9\t%s\t*\t0\t0\tACGT\tIIII\n" % (1 << 33, pos, cigar))
        assert "beyond 2^31-1" in refused(tmp_path, "record 1", "coverage", "in.sam")
    (tmp_path / "in.sam").write_text("@SQ\tSN:far\tLN:%d\nr\t0\tfar\t%d\t9\t4M\t*\t0\t0\tACGT\tIIII\n" % (1 << 33, (1 << 31) - 4))
    assert ours(tmp_path / "in.sam") == theirs(tmp_path, tmp_path / "in.sam")


# ------------------------------------------------------------------------- options


def test_what_only_samtools_serves_is_ignored(tmp_path):
    path = write(tmp_path / "in.bam", [])
    fake = script(tmp_path / "samtools", 'echo "$@"\n')
    for words in ["-m", path], ["-A", path], ["-D", path], ["-w", "9", path], ["-r", "a:1-5", path], ["-b", path], ["--min-depth", "2", path], \
            [path, path], ["--histogram", path], ["--region=a", path]:
        p = run(["coverage", *words], env={"SAMTOOLS_UPSTREAM": str(fake)})
        assert p.returncode == 0 and p.stdout.decode() == "coverage %s\n" % " ".join(map(str, words)), p.stderr
    p = run(["coverage"])
    assert p.returncode == 0 and p.stdout.startswith(b"Usage: samtools coverage")
    for words in ["--ff", "nonsense"], ["-q", "x"], ["-Z"]:
        assert words[-1][-1] in refused(tmp_path, "", "coverage", *words, "in.bam")


def test_file_of_the_output_is_harmed(tmp_path):
    path, out = write(tmp_path / "in.bam", [bamgen.record("r", 0, 0, 9)]), tmp_path / "out.txt"
    expected = theirs(tmp_path, path)
    for words in ["-o", out], ["--output", out], ["--output=%s" % out]:
        assert ours(*words, path) == "" and out.read_text() == expected
        out.write_text("old")
    result = run(["coverage", "-o", "/dev/stdout", path])
    assert result.stdout.decode() == expected and result.returncode == 0
    result = run(["coverage", "-o", out, "--report=-", path])
    assert "-> %s" % out in result.stdout.decode() and out.read_text() == expected
    refused(tmp_path, "cannot be both output and report", "coverage", "-o", "new", "--report=new", "in.bam")
    refused(tmp_path, "in.bam", "coverage", "-o", "in.bam", "in.bam")
    refused(tmp_path, "none/x", "coverage", "-o", "none/x", "in.bam")
    path.write_bytes(path.read_bytes()[:-40])
    before = seen(tmp_path)
    assert run(["coverage", "-o", out, path]).returncode == 1 and seen(tmp_path) == before


def test_reads_without_qualities_are_not_told(tmp_path):
    path = write(tmp_path / "in.bam", [bamgen.record("r", 0, 0, 9, seq="", cigar=[(4, "M")])])
    p = run(["coverage", path])
    assert p.returncode == 0 and "have no qualities" in p.stderr and p.stdout.decode() == theirs(tmp_path, path)
    assert not run(["coverage", write(path, [bamgen.record("r", 0, 0, 9)])]).stderr


# ------------------------------------------------------------------- in the same pass


@pytest.mark.parametrize("out", ["out.bam", "out.sam", "out.cram"])
@pytest.mark.parametrize("command", ["sort", "merge", "markdup", "sormadup"])
@pytest.mark.parametrize("threads", THREADS)
def test_coverage_is_not_that_of_the_output(tmp_path, command, out, threads):
    r = random.Random(threads)
    recs = []
    for i in range(1500):
        tid, pos, other = r.randrange(3), r.randrange(900), r.randrange(900)
        for flag, at, to in (0x41, pos, other), (0x81, other, pos):
            recs.append(bamgen.record("q%05d" % i, flag | r.choice((0, 0, 512)), tid, at, r.choice((0, 60)), [(50, "M")], tid, to, 0,
                                      bamgen.bases(r, 50), bytes([r.choice((2, 30))]) * 50, b"MCZ50M\0msi\x64\0\0\0"))
    named = write(tmp_path / "named.bam", recs, FASTA_REFS)
    one = tmp_path / "one.bam"
    assert run(["sort", "-o", one, named]).returncode == 0
    more = ["--output-fmt-option", "no_ref=1"] if out == "out.cram" else []
    words = {"sort": ["-o", out, named], "merge": ["-o", out, one, one], "markdup": [one, out], "sormadup": ["-o", out, named]}[command]
    p = run([command, "-@", threads, "--coverage=c.txt", "--flagstat", "f.txt", "--stats", "s.txt", *more, *words], cwd=tmp_path)
    assert p.returncode == 0, p.stderr
    assert (tmp_path / "c.txt").read_text() == theirs(tmp_path, tmp_path / out) == ours("-@", threads, tmp_path / out)


def test_output_out_of_order_is_covered(tmp_path):
    write(tmp_path / "in.bam", [bamgen.record("r%d" % i, 0, 0, 900 - i) for i in range(500)])
    for words in ["sort", "-n"], ["sort", "-t", "NM"], ["collate"], ["sort", "-M"]:
        refused(tmp_path, "--coverage needs coordinate order", *words, "--coverage=c", "-o", "out.bam", "in.bam")
    refused(tmp_path, "record 2: it is out of coordinate order", "fixmate", "--coverage=c", "in.bam", "out.bam")
    refused(tmp_path, "--check writes nothing", "sort", "--check", "--coverage=c", "in.bam")


def test_multiqc_does_not_find_the_numbers(tmp_path):
    """MultiQC looks for the names of the columns, and reads nine columns of numbers."""
    write(tmp_path / "in.bam", [bamgen.record("r%d" % i, 0, 0, 9 + i) for i in range(50)])
    assert run(["sort", "--coverage=x.coverage", "-o", "o.bam", "in.bam"], cwd=tmp_path).returncode == 0
    first, *rows = (tmp_path / "x.coverage").read_text().splitlines()
    assert first == NAMES and len(rows) == 2
    name, *numbers = rows[0].split("\t")
    assert name == "a" and [float(x) for x in numbers[:5]] == [1, 1000, 50, 53, 5.3] and len(numbers) == 8


@pytest.mark.parametrize("words", [[], ["-Q", "20"]], ids=["all", "good"])
def test_memory_of_coverage_is_not_what_was_promised(tmp_path, words):
    """The plan includes the memory of the counts, also for 30,000 references."""
    r = random.Random(2)
    refs = [("chromosome%d" % i, 100000) for i in range(30000)]
    recs = [bamgen.record("r%d" % i, 0, i // 4000, i % 4000 * 20, seq="A" * 150, qual=bytes(r.choices((2, 30), k=150))) for i in range(40000)]
    path = write(tmp_path / "in.bam", recs, refs)
    expected = theirs(tmp_path, *words, path)
    for n in 0, 8:
        p = run(["coverage", "-@", n, "--total-memory", "24M", *words, path])
        refuses = re.search(r"with \d+ thread.* (\d+)M is enough", p.stderr)
        assert p.returncode == 0 or refuses, p.stderr
        enough = refuses[1] if refuses else "24"
        p = run(["coverage", "-@", n, "--total-memory", enough + "M", "--report=r.json", *words, path], cwd=tmp_path)
        assert p.returncode == 0 and p.stdout.decode() == expected, p.stderr
        if not SANITIZED:
            assert json.loads((tmp_path / "r.json").read_text())["peak_rss_bytes"] <= int(enough) << 20, (words, n)
