# SPDX-License-Identifier: MIT
"""--write-index: the index written with the file answers like one made afterwards."""

import gzip
import itertools
import os
import re

import pysam
import pytest

import bamgen
from conftest import DATA_BAMS, REAL_BAMS, htslib_version, in_turn, needs_htslib, run_sort, oracle_sort

REFS = [("c1", 2000), ("c2", 30000)]
MOST = 300  # records read in one place

KINDS = {  # output name, options, index name
    "csi": ("out.bam", ["--write-index"], "out.bam.csi"),
    "bai": ("out.bam", ["--write-index=bai"], "out.bam.bai"),
    "named": ("out.bam##idx##other.bai", ["--write-index"], "other.bai"),
    "crai": ("out.cram", ["--write-index", "--output-fmt-option", "no_ref=1"], "out.cram.crai"),
    "sam.gz": ("out.sam.gz", ["--write-index"], "out.sam.gz.csi"),
}


def regions(path, n):
    """Random places: short, long, full references, and near reads."""
    r, busy, out = bamgen.rng("regions"), [], []
    with pysam.AlignmentFile(str(path), check_sq=False, ignore_truncation=True) as f:
        refs = list(zip(f.references, f.lengths))
        for i, x in enumerate(f):
            if x.reference_id >= 0 and i % 7 == 0:
                busy.append((x.reference_name, x.reference_start, x.reference_end or x.reference_start + 1))
    for _ in range(n):
        if busy and r.random() < .7:
            name, begin, end = r.choice(busy)
            begin = max(0, r.choice((begin, begin - 1, end, end - 1, begin - 16384, begin // 16384 * 16384)))
        else:
            name, length = r.choice(refs)
            begin = r.randint(0, length - 1)
        out.append((name, begin, min((1 << 31) - 1, begin + r.choice((1, 1, 2, 100, 16384, 1 << 20, 1 << 28)))))
    return out + [(name, None, None) for name, _ in refs[:50]]


def answers(path, index, places):
    """Returns, for each place, the number of records and a digest of them; and the output of idxstats. Indexes of
    htslib before 1.15, including samtools', may not find unmapped reads that have a place. Then only the other records
    count."""
    out, all_are_found = [], htslib_version() >= (1, 15)
    if str(path).endswith(".sam.gz"):  # pysam has no fetch() for them
        for name, begin, end in places[:150]:
            spot = name if begin is None else "%s:%d-%d" % (name, begin + 1, end)
            text = pysam.samtools.view("-F", "0" if all_are_found else "4", "-X", str(path), str(index), spot)
            out.append((name, text.count("\n"), hash(text)))
        return out
    with pysam.AlignmentFile(str(path), index_filename=str(index)) as f:
        for place in places:
            found = (x for x in f.fetch(*place) if all_are_found or not x.is_unmapped)
            names = [(x.query_name, x.flag, x.reference_start) for x in itertools.islice(found, MOST)]
            out.append((place[0], len(names), hash(tuple(names))))
        if f.is_bam:
            out.append(("idxstats", 0, [tuple(s) for s in f.get_index_statistics()], f.nocoordinate))
    return out


def made_afterwards(path, index):
    """samtools index makes it elsewhere."""
    other = str(path) + ".later"
    kind = {".bai": ["-b"], ".csi": ["-c"]}.get(os.path.splitext(index)[1], [])
    pysam.samtools.index(*kind, "-o", other, str(path), catch_stdout=False)
    return other


def same_index(folder, path, args, out, index, n, sort=()):
    """Sorts; queries both indexes; returns the number of records they gave."""
    p = run_sort([*sort, *args, "-l", "1", "-o", out, path], cwd=folder)
    assert p.returncode == 0, p.stderr
    data = folder / out.split("##")[0]
    later = made_afterwards(data, index)
    places = regions(path, n)
    if same_bytes(folder / index, later):  # then the answers must be the same
        places = places[-60:]
    ours = answers(data, folder / index, places)
    assert ours == answers(data, later, places)
    return sum(x[1] for x in ours)


def same_bytes(a, b):
    def plain(path):
        with open(path, "rb") as f:
            data = f.read()
        return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    return plain(a) == plain(b)


def spread_input():
    """3,000 reads over three references up to their ends, with long skips among them."""
    r = bamgen.rng("index")
    out = []
    for i in range(3000):
        tid = r.choice((0, 0, 1, 2, -1))
        if tid < 0:
            out.append(bamgen.record("u%d" % i, 4, -1, -1, seq="ACGT"))
            continue
        cigar = r.choice(([(8, "M")], [(4, "M"), (r.randint(1, 10**6), "N"), (4, "M")]) if tid < 2 else ([(8, "M")],))
        span = sum(n for n, op in cigar if op in "MN")
        flag = r.choice((0, 16, 4, 0x904))
        out.append(bamgen.record("x%d" % i, flag, tid, r.choice((r.randint(0, bamgen.REFS[tid][1] - span),
                                                                 r.randint(0, 40000) % (16569 - 8))),
                                 cigar=cigar if not flag & 4 else [], seq="ACGTACGT"))
    return bamgen.header(), out


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_index_answers_otherwise_than_one_made_afterwards(made, tmp_path, kind, n):
    out, args, index = KINDS[kind]
    path = made("index", content=spread_input)
    assert same_index(tmp_path, path, [*args, "-@", n], out, index, 1000) > 1000


@pytest.mark.parametrize("kind", ["csi", "bai"])
@pytest.mark.parametrize("name", ["ties", "mixed", "all_unmapped", "placed_unmapped", "many_refs", "one_record",
                                  "cg_long", "header_only", "sorted", "block_edges"])
def test_index_of_any_content_answers_otherwise(made, tmp_path, name, kind):
    out, args, index = KINDS[kind]
    same_index(tmp_path, made(name), [*args, "-@", 2], out, index, 100)


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("kind", ["csi", "bai"])
def test_records_longer_than_blocks_are_not_found(made, tmp_path, kind, n):
    out, args, index = KINDS[kind]
    assert same_index(tmp_path, made("long_records"), [*args, "-@", n], out, index, 100) > 100


@pytest.mark.parametrize("path,kind", in_turn(DATA_BAMS + REAL_BAMS, ["csi", "bai", "crai"], 2))
def test_index_of_real_input_answers_otherwise(tmp_path, path, kind):
    out, args, index = KINDS[kind]
    with pysam.AlignmentFile(str(path), check_sq=False, ignore_truncation=True) as f:
        if not f.nreferences:
            pytest.skip("no references in it")
        if kind == "crai" and os.path.getsize(path) > 1 << 20:
            pytest.skip("CRAM takes long")
    for n in (1, 3):
        folder = tmp_path / str(n)
        folder.mkdir()
        same_index(folder, path, [*args, "-@", n], out, index, 1000 if n == 3 else 200)


@pytest.mark.parametrize("kind", ["csi", "bai"])
def test_index_bytes_depend_on_threads(made, tmp_path, kind):
    out, args, index = KINDS[kind]
    found = set()
    for n in (1, 2, 3, 8):
        p = run_sort([*args, "--no-PG", "-@", n, "-o", out, made("index", content=spread_input)], cwd=tmp_path)
        assert p.returncode == 0, p.stderr
        found.add(((tmp_path / index).read_bytes(), (tmp_path / "out.bam").read_bytes()))
    assert len(found) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_index_changes_the_data(made, tmp_path, kind):
    out, args, index = KINDS[kind]
    path = made("index", content=spread_input)
    for extra in (args, args[1:]):
        folder = tmp_path / str(len(extra))
        folder.mkdir()
        p = run_sort([*extra, "--no-PG", "-o", out.split("##")[0] if extra is not args else out, path], cwd=folder)
        assert p.returncode == 0, p.stderr
    name = out.split("##")[0]
    with_index, without = [(tmp_path / str(len(a)) / name).read_bytes() for a in (args, args[1:])]
    if kind == "sam.gz":                         # in htslib's blocks with an index, otherwise in our own
        with_index, without = gzip.decompress(with_index), gzip.decompress(without)
    assert with_index == without
    assert sorted(os.listdir(tmp_path / str(len(args)))) == sorted((name, index))


@pytest.mark.parametrize("args,out,index", [
    (["--write-index"], "x.bam##idx##y.csi", "y.csi"), (["--write-index"], "x.bam##idx##sub/y.bai", "sub/y.bai"),
    (["--write-index"], "x.bam##idx##y", "y"), (["--write-index=bai"], "x.bam##idx##y", "y"),
    (["--write-index=csi"], "x.bam", "x.bam.csi"), (["--write-index"], "x", "x.csi"),
    (["--write-index", "-O", "bam"], "x.sam", "x.sam.csi"), (["--write-index", "-O", "sam.gz"], "x.bam", "x.bam.csi"),
    (["--write-index", "-O", "sam.gz"], "x##idx##y.bai", "y.bai"), (["--write-index", "-M"], "x.bam", "x.bam.csi"), (["--write-index", "-u"], "x.bam", "x.bam.csi"),
    (["--write-index", "-O", "sam,level=1"], "x.sam", "x.sam.csi")], ids=lambda v: " ".join(v) if isinstance(v, list) else v)
def test_index_goes_by_another_name_than_asked(made, tmp_path, args, out, index):
    (tmp_path / "sub").mkdir()
    p = run_sort([*args, "-@", 2, "-o", out, made("mixed")], cwd=tmp_path)
    assert p.returncode == 0, p.stderr
    data = out.split("##")[0]
    assert sorted(str(x.relative_to(tmp_path)) for x in tmp_path.rglob("*") if x.is_file()) == sorted((data, index))
    head = (tmp_path / index).read_bytes()[:4]
    assert (head == b"BAI\1") == (index.endswith("bai") or "=bai" in str(args))
    found = pysam.samtools.view("-c", "-X", str(tmp_path / data), str(tmp_path / index), "chr1")
    assert int(found) > 500


def test_older_index_is_left_beside_new_data(made, tmp_path):
    """The old one is replaced, in place, and is not older than the data."""
    (tmp_path / "out.bam.csi").write_bytes(b"old")
    p = run_sort(["--write-index", "-o", "out.bam", made("mixed")], cwd=tmp_path)
    assert p.returncode == 0, p.stderr
    assert (tmp_path / "out.bam.csi").read_bytes()[:2] == b"\x1f\x8b"
    with pysam.AlignmentFile(str(tmp_path / "out.bam")) as f:
        assert sum(1 for _ in f.fetch("chr1")) > 500


# ---------------------------------------------------------------- long references


def long_refs(length):
    refs = [("a", length), ("b", 1000)]
    def content():
        r = bamgen.rng("long refs")
        return bamgen.header(refs=refs), [bamgen.record("l%d" % i, 0, 0, r.choice((5, 1 << 20, length - 100 - i)))
                                          for i in range(500)]
    return content


@pytest.mark.parametrize("length", [(1 << 29) - 1, 1 << 29, (1 << 29) + 1, (1 << 31) - 1])
def test_reference_too_long_for_bai_loses_reads(made, tmp_path, length):
    path = made("long_%d" % length, content=long_refs(length))
    p = run_sort(["--write-index=%s" % ("bai" if length <= 1 << 29 else "csi"), "-@", 2, "-o", "out.bam", path], cwd=tmp_path)
    assert p.returncode == 0, p.stderr
    index, = [x for x in os.listdir(tmp_path) if x != "out.bam"]
    assert (tmp_path / index).read_bytes()[:3] == (b"BAI" if length <= 1 << 29 else b"\x1f\x8b\x08"), p.stderr
    with pysam.AlignmentFile(str(tmp_path / "out.bam"), index_filename=str(tmp_path / index)) as f:
        got = [x.query_name for x in f.fetch("a", length - 1000, length)]
        f.reset()
        assert got == [x.query_name for x in f.fetch(until_eof=True) if x.reference_start >= length - 1000]
        assert len(got) > 100


@pytest.mark.parametrize("args", [["--write-index=bai", "-o", "out.bam"], ["--write-index", "-o", "out.bam##idx##out.bam.bai"],
                                  ["--write-index", "-O", "sam.gz", "-o", "out##idx##odd.bai"]], ids=" ".join)
@pytest.mark.parametrize("source", ["file", "pipe"])
def test_csi_gets_the_name_of_bai(made, tmp_path, args, source):
    """The program refuses before it sorts; samtools notices only after the sort that BAI cannot hold the reads. The
    program reads only the header from a pipe."""
    length = 2**29 + 4000                                # samtools succeeds if no read is there
    path = made("long_%d" % length, content=long_refs(length))
    p = run_sort([*args, path] if source == "file" else args, cwd=tmp_path, stdin=None if source == "file" else path.read_bytes())
    assert p.returncode == 1 and p.stderr.count("\n") == 1 and not os.listdir(tmp_path)
    assert "reference a is longer than 2^29" in p.stderr and "Nothing was read" in p.stderr
    assert oracle_sort(["--write-index", "-o", "%s/o.bam##idx##%s/o.bam.bai" % (tmp_path, tmp_path), str(path)])[0] == 1


@pytest.mark.parametrize("length", [1 << 29, (1 << 31) - 1])
def test_long_reference_makes_csi_too_shallow(made, tmp_path, length):
    path = made("long_%d" % length, content=long_refs(length))
    assert same_index(tmp_path, path, ["--write-index", "-@", 2], "out.bam", "out.bam.csi", 300) > 300


@pytest.mark.parametrize("kind, content", [("csi", spread_input), ("bai", spread_input), ("csi", long_refs(1 << 29))],
                         ids=["csi", "bai", "csi-long"])
def test_index_has_other_bytes_than_that_of_samtools(made, tmp_path, kind, content):
    """Places at the end of a block are those at the start of the next one, and CSI has as many levels."""
    needs_htslib(1, 16)
    out, args, index = KINDS[kind]
    name = "index" if content == spread_input else "long_%d" % (1 << 29)
    p = run_sort([*args, "-l", "1", "-o", out, made(name, content=content)], cwd=tmp_path)
    assert p.returncode == 0, p.stderr
    assert same_bytes(tmp_path / index, made_afterwards(tmp_path / out, index))


# ---------------------------------------------------------------- not possible


@pytest.mark.parametrize("order", [["-n"], ["-N"], ["-t", "NM"], ["--template-coordinate"], ["--picard"]], ids=" ".join)
def test_index_of_an_order_without_positions_is_written(made, tmp_path, order):
    p = run_sort([*order, "--write-index", "-o", "out.bam", made("ties")], cwd=tmp_path)
    assert p.returncode == 0
    if order != ["--picard"]:
        _, err = oracle_sort([*order, "--write-index", "-o", tmp_path / "theirs", made("ties")])
        assert "Ignoring --write-index" in err
        (tmp_path / "theirs").unlink()
    assert "samtools sort: warning: Ignoring --write-index as it only works for position sorted files." in p.stderr
    assert os.listdir(tmp_path) == ["out.bam"]


@pytest.mark.parametrize("args", [["-o", "out.sam"], ["-O", "sam", "-o", "out.bam"], ["-o", "out.fastq"], ["-O", "sam"], [],
                                  ["-o", "-"]], ids=lambda v: " ".join(v) or "stdout")
def test_index_that_cannot_be_is_refused_only_after_reading(tmp_path, args):
    """Input that never ends must not matter."""
    r, w = os.pipe()
    try:
        p = run_sort(["--write-index", *args], stdin=r, cwd=tmp_path)
    finally:
        os.close(r)
        os.close(w)
    assert p.returncode == 1 and re.search("index", p.stderr), p.stderr
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("words", ["--write-index -o out.bam", "--write-index=bai -o out.bam", "-l 0 --write-index -o out.bam",
                                   "--write-index -o out.sam.gz"])
@pytest.mark.parametrize("tid, pos, cigar", [(0, 5, "200000000N" * 3), (1, 700000000, "4M"), (1, 3000, "40M%s4M" % ("200000000N" * 3))])
def test_record_beyond_the_index_is_not_named(tmp_path, words, tid, pos, cigar):
    """Nor do errors in it: another format of the index does not help. The record is among many, in a later block."""
    head = bamgen.header("@HD\tVN:1.6\n" + bamgen.sq_text(REFS), REFS)
    name, parts = "far.%d" % pos, [(int(n), op) for n, op in re.findall(r"(\d+)(\D)", cigar)]
    size = sum(n for n, op in parts if op == "M")
    recs = [bamgen.record("r%d" % i, tid=i // 1500, pos=i % 1500, seq="ACGT" * 30) for i in range(3000)]
    recs.insert(77, bamgen.record(name, tid=tid, pos=pos, seq="A" * size, cigar=parts, bin=0))
    (tmp_path / "in.bam").write_bytes(bamgen.bam(head, recs))
    p = run_sort([*words.split(), "-@", 2, "in.bam"], cwd=tmp_path)
    end = pos + sum(n for n, op in parts)
    assert p.returncode == 1 and os.listdir(tmp_path) == ["in.bam"]
    last = p.stderr.splitlines()[-1]
    assert "record %s reaches to base %d of %s, which has %d" % (name, end, *REFS[tid]) in last, p.stderr
    assert "Try CSI" not in p.stderr and last.startswith("samtools sort: out.")


@pytest.mark.parametrize("value", ["foo", "BAI ", "crai"])
def test_unknown_index_format_is_accepted(made, tmp_path, value):
    p = run_sort(["--write-index=" + value, "-o", "out.bam", made("ties")], cwd=tmp_path)
    assert p.returncode == 1 and os.listdir(tmp_path) == []


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("old", [False, True], ids=["new", "replacing"])
def test_failed_sort_leaves_or_changes_an_index(made, tmp_path, kind, old):
    out, args, index = KINDS[kind]
    name = out.split("##")[0]
    (tmp_path / "in.bam").write_bytes(made("mixed").read_bytes()[:-9000])
    if old:
        (tmp_path / name).write_bytes(b"old data")
        (tmp_path / index).write_bytes(b"old index")
    before = {x.name: x.read_bytes() for x in tmp_path.iterdir()}
    p = run_sort([*args, "-@", 2, "-o", out, "in.bam"], cwd=tmp_path)
    assert p.returncode == 1, p.stderr
    assert {x.name: x.read_bytes() for x in tmp_path.iterdir()} == before


def test_index_that_cannot_be_written_costs_the_output(made, tmp_path):
    (tmp_path / "out.bam").write_bytes(b"old data")
    p = run_sort(["--write-index", "-o", "out.bam##idx##missing/x.csi", made("ties")], cwd=tmp_path)
    assert p.returncode == 1 and "missing/x.csi" in p.stderr
    assert os.listdir(tmp_path) == ["out.bam"] and (tmp_path / "out.bam").read_bytes() == b"old data"
