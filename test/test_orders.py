# SPDX-License-Identifier: MIT
"""Orders by name, tag, template and minimiser: record by record as by samtools 1.24, with the same bytes for any
number of threads."""

import os

import pysam
import pytest

import bamgen
import ordergen
from conftest import (DATA_BAMS, REAL_BAMS, SANITIZED, THREADS, in_turn, oracle, oracle_sort, read_bam, run_sort, same_bam,
                      same_records, sorted_bytes)

FAST = ("--no-PG", "-l", "1")


@pytest.fixture(scope="session")
def order_input(made, tmp_path_factory):
    """order_input(kind, name) -> path of one of ordergen's inputs."""
    folder = tmp_path_factory.mktemp("fixmated")
    fixed = {}

    def make(kind, name, layout="htslib"):
        if kind != "fixmated":
            return made("%s-%s" % (kind, name), layout, getattr(ordergen, kind)[name])   # others have such names, too
        if name not in fixed:
            (folder / str(name)).mkdir()
            fixed[name] = ordergen.fixmated(name)(folder / str(name))
        return fixed[name]

    return make


def orders_as_samtools(path, order, scratch=None):
    """Records as the oracle's; bytes the same for every number of threads."""
    outs = [sorted_bytes([*FAST, *order, "-@", n, path]) for n in THREADS]
    same_bam(read_bam(outs[0]), oracle(path, "--no-PG", *order, scratch=scratch))
    for n, out in zip(THREADS, outs):
        assert out == outs[0], "other bytes with -@ %d" % n


# ---------------------------------------------------------------- names


@pytest.mark.parametrize("order", ["-n", "-N"])
@pytest.mark.parametrize("name", ordergen.NAMES)
def test_names_sort_unlike_samtools(order_input, name, order):
    orders_as_samtools(order_input("NAMES", name), [order])


@pytest.mark.parametrize("order", ["-n", "-N"])
@pytest.mark.parametrize("name", ["ties", "all_flags", "one_key", "names", "no_refs", "header_only", "one_record",
                                  "long_records", "cg_long", "cg_short", "name_oddities", "stray_bytes"])
def test_any_content_sorts_by_name_unlike_samtools(made, name, order):
    orders_as_samtools(made(name), [order])


def test_natural_order_takes_numbers_for_text():
    """The rule itself is tested without the oracle: by value, zeros skipped, ties by the text after them."""
    names = ["a10", "a9b", "a09", "a9", "b1", "a1", "a010", "a9a"]
    data = bamgen.bgzf(bamgen.header() + b"".join(bamgen.record(x) for x in names))
    out = read_bam(sorted_bytes([*FAST, "-n"], stdin=data)).records()
    got = [x[36:36 + x[12] - 1].decode() for x in out]
    assert got == ["a1", "a09", "a9", "a9a", "a9b", "a10", "a010", "b1"]


@pytest.mark.parametrize("layout", ["prime_blocks", "random_blocks", "one_byte"])
def test_small_blocks_at_the_start_mislead_the_order(order_input, layout):
    """The beginning of the file shows little of the rest there."""
    for kind, name, order in (("NAMES", "late", "-n"), ("NAMES", "mixed", "-N"), ("TAGS", "late_strings", "-tXT")):
        if layout == "one_byte":
            head, recs = getattr(ordergen, kind)[name]()
            data = bamgen.bam(head, recs[1980:2020], layout)
            whole = bamgen.bam(head, recs[1980:2020])
            assert sorted_bytes([*FAST, order, "-@", 2], stdin=data) == sorted_bytes([*FAST, order], stdin=whole)
        else:
            path = order_input(kind, name, layout)
            assert sorted_bytes([*FAST, order, "-@", 2, path]) == sorted_bytes([*FAST, order, order_input(kind, name)])


# ---------------------------------------------------------------- picard


def picard_key(rec):
    """Name as text; paired first; first, neither, second of pair; forward; not secondary;
    not supplementary; without HI, then by HI: name_key.c's reading of htsjdk."""
    flag = int.from_bytes(rec[18:20], "little")
    pair = {0: 1, 0x40: 0, 0x80: 2, 0xc0: 1}[flag & 0xc0] if flag & 1 else 3
    hi = tag_integer(rec, b"HI")
    return (rec[36:].split(b"\0")[0], pair, flag & 16, flag & 0x100, flag & 0x800, hi is not None, hi or 0)


def tag_integer(rec, tag):
    """Returns the value of an integer tag, or None. The record has no sequence, and HI is its only tag: the last
    bytes."""
    at = rec.find(tag, 36 + rec[12])
    if at < 0:
        return None
    code, size = chr(rec[at + 2]), len(rec) - at - 3
    return int.from_bytes(rec[at + 3:at + 3 + size], "little", signed=code in "csi")


def picard_input():
    r = bamgen.rng("picard")
    names = [*ordergen.TRAPS, b"a\x80", b"a\xff", b"\x01"]
    out = []
    for i in range(6000):
        hi = r.choice((b"", b"", b"HIC\0", b"HIC\1", b"HIc\xff", b"HIS\0\1", b"HIi\0\0\1\0", b"HIC\2"))
        out.append(bamgen.record(names[i % 5] if i % 2 else r.choice(names),
                                 r.choice(ordergen.NAME_FLAGS), seq="", tags=hi))
    return bamgen.header(), out


def test_picard_order_is_not_its_rule(made):
    path = made("picard", content=picard_input)
    outs = [sorted_bytes([*FAST, "--picard", "-@", n, path]) for n in THREADS]
    assert outs.count(outs[0]) == len(outs)
    bam = read_bam(outs[0])
    expected = sorted(picard_input()[1], key=picard_key)
    assert [picard_key(x) for x in bam.records()] == [picard_key(x) for x in expected]
    assert bam.records() == expected
    assert bam.lines()[0] == "@HD\tVN:1.6\tSO:queryname\tSS:queryname:lexicographical"


def test_tag_then_picard_order_is_not_its_rule(made):
    """With -t HI --picard, the tag comes first, then Picard's order."""
    path = made("picard", content=picard_input)
    def key(rec):
        hi = tag_integer(rec, b"HI")
        return (hi is not None, hi or 0) + picard_key(rec)
    out = read_bam(sorted_bytes([*FAST, "--picard", "-t", "HI", "-@", 2, path]))
    assert out.records() == sorted(picard_input()[1], key=key)


# ---------------------------------------------------------------- tags


@pytest.mark.parametrize("second", [[], ["-n"], ["-N"]], ids=["coordinate", "n", "N"])
@pytest.mark.parametrize("name", ordergen.TAGS)
def test_tags_sort_unlike_samtools(order_input, name, second):
    orders_as_samtools(order_input("TAGS", name), ["-t", "XT", *second])


@pytest.mark.parametrize("tag", ["NM", "YZ", "zz"])
def test_another_tag_sorts_unlike_samtools(order_input, tag):
    orders_as_samtools(order_input("TAGS", "all"), ["-t", tag])


@pytest.mark.parametrize("tag", ["XA", "XJ", "XL", "Yc", "Yz", "CG"])
@pytest.mark.parametrize("name", ["tags", "cg_short", "stray_bytes", "seq_shapes", "header_only"])
def test_tag_among_many_is_not_found(made, name, tag):
    orders_as_samtools(made(name), ["-t", tag])


def test_order_of_nan_changes_with_input_order(made):
    """samtools leaves NaN undefined; here it must still be one total order."""
    def nan_input():
        r = bamgen.rng("nan")
        values = [b"f\0\0\xc0\x7f", b"f\0\0\xc0\xff", b"f\0\0\x80\x3f", b"C\7", b"f\0\0\x80\xff", b"f\0\0\x80\x7f"]
        return bamgen.header(), [bamgen.record("v%d" % i, 0, 0, i % 7, tags=b"XT" + r.choice(values))
                                 for i in range(2000)]
    def values(data):
        return [x[-4:] if x[-5:-4] == b"f" else x[-1:] for x in read_bam(data).records()]
    head, recs = nan_input()
    path = made("nan", content=nan_input)
    outs = [sorted_bytes([*FAST, "-t", "XT", "-@", n, path]) for n in THREADS]
    assert outs.count(outs[0]) == len(outs)
    other = sorted_bytes([*FAST, "-t", "XT"], stdin=bamgen.bgzf(head + b"".join(recs[::-1])))
    def is_nan(v):
        return len(v) == 4 and v[3] & 0x7f == 0x7f and v[2] == 0xc0
    places = [[is_nan(v) for v in values(data)] for data in (outs[0], other)]
    assert places[0] == places[1] and sum(places[0]) > 300
    plain = [x for x, nan in zip(values(outs[0]), places[0]) if not nan]
    assert plain == [x for x, nan in zip(values(other), places[1]) if not nan]


# ---------------------------------------------------------------- templates


@pytest.mark.parametrize("name", ordergen.TEMPLATES)
def test_odd_templates_sort_unlike_samtools(order_input, name):
    orders_as_samtools(order_input("TEMPLATES", name), ["--template-coordinate"])


@pytest.mark.parametrize("order", [["--template-coordinate"], ["-t", "CG"]], ids=" ".join)
def test_long_cigar_is_taken_for_its_placeholder_or_for_a_tag(made, order):
    """More operations than BAM's field counts: the CIGAR stays in the CG tag."""
    def content():
        ops = [(1, "MI"[k & 1]) for k in range(66000)]
        clips = [], [(3, "S")], [(9, "H"), (2, "S")]
        recs = [bamgen.cg_record("long%d" % i, 70000, [*clips[i % 3], *ops, *clips[i % 3][::-1]], flag=16 * (i // 3))
                for i in range(6)]
        return bamgen.header(), recs + [bamgen.record("r%d" % pos, 0, 0, pos) for pos in range(69990, 70010)]
    orders_as_samtools(made("long_clips", content=content), order)


@pytest.mark.parametrize("spread", [6, 300, 100000])
@pytest.mark.parametrize("order", [["--template-coordinate"], ["-t", "MI"], ["-t", "RG", "-n"], ["-n"]], ids=" ".join)
def test_fixmated_pairs_sort_unlike_samtools(order_input, spread, order, tmp_path):
    orders_as_samtools(order_input("fixmated", spread), order, tmp_path / "o")


MISSING = {
    "no_mc": [b"", "MC"],
    "mc_not_text": [b"MCi\1\0\0\0", "MC"],
    "mi_not_text": [b"MCZ4M\0MIi\1\0\0\0", "MI"],
    "cb_not_text": [b"MCZ4M\0CBi\1\0\0\0", "CB"],
}


@pytest.mark.parametrize("where", [0, 700, 1400], ids=["first", "middle", "last"])
@pytest.mark.parametrize("name", MISSING)
def test_template_order_without_what_it_needs_passes(tmp_path, name, where, threads):
    tags, word = MISSING[name]
    recs = [bamgen.record("p%d" % i, 0x43, 0, i, mtid=0, mpos=9, tags=b"MCZ4M\0") for i in range(1400)]
    recs.insert(where, bamgen.record("bad", 0x43, 0, 5, mtid=0, mpos=9, tags=tags))
    path = tmp_path / "in.bam"
    path.write_bytes(bamgen.bam(bamgen.header(), recs, "prime_blocks"))
    status, err = oracle_sort(["--template-coordinate", "-o", tmp_path / "theirs.bam", path])
    assert status == 1, "samtools takes it"
    before = sorted(os.listdir(tmp_path))
    p = run_sort(["--template-coordinate", "-@", threads, "-o", tmp_path / "out.bam", path])
    assert p.returncode == 1 and word in p.stderr, p.stderr
    assert name != "no_mc" or "fixmate" in p.stderr, p.stderr
    assert len(p.stderr.splitlines()) <= 2, p.stderr
    assert sorted(os.listdir(tmp_path)) == before and not p.stdout


@pytest.mark.parametrize("flag", [0, 0x40, 9, 13], ids=hex)
def test_template_order_demands_mc_where_none_is_needed(tmp_path, flag):
    """Unpaired, or with an unmapped mate."""
    path = tmp_path / "in.bam"
    path.write_bytes(bamgen.bam(bamgen.header(), [
        bamgen.record("p%d" % (i % 9), flag, 0, i % 5, cigar=[(4, "M")]) for i in range(100)]))
    orders_as_samtools(path, ["--template-coordinate"])


# ---------------------------------------------------------------- minimisers


@pytest.fixture(scope="session")
def fastas(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fasta")
    g = ordergen.genome()
    pieces = {"one": [g], "pieces": [g[:2000], g[:50], "", g[2000:2100], g[2100:].lower()], "tiny": ["ACGTTGCA"]}
    for name, sequences in pieces.items():
        with open(folder / (name + ".fa"), "w") as f:
            for i, s in enumerate(sequences):
                f.write(">seq%d text\n" % i)
                f.writelines(s[k:k + 60 + i] + "\n" for k in range(0, len(s), 60 + i))
    return lambda name: folder / (name + ".fa")


MINHASH_OPTIONS = [["-M"], ["-M", "-R"], ["-M", "-H"], ["-M", "-R", "-H"], ["-M", "-K", "1"], ["-M", "-K", "7"],
                   ["-M", "-K", "31"], ["-M", "-K", "0"], ["-M", "-K", "99"], ["-M", "-K", "-3"], ["-M", "-w", "5"]]


@pytest.mark.parametrize("options", MINHASH_OPTIONS, ids=" ".join)
@pytest.mark.parametrize("name", ordergen.MINHASH)
def test_minimisers_sort_unlike_samtools(order_input, name, options):
    orders_as_samtools(order_input("MINHASH", name), options)


INDEX_OPTIONS = [[], ["-R"], ["-H"], ["-K", "9", "-w", "30"], ["-K", "31", "-w", "1000"], ["-w", "0"], ["-w", "-7"]]


@pytest.mark.parametrize("options", INDEX_OPTIONS, ids=lambda v: " ".join(v) or "default")
@pytest.mark.parametrize("fasta", ["one", "pieces", "tiny"])
@pytest.mark.parametrize("name", ["overlapping", "placed"])
def test_minimiser_index_sorts_unlike_samtools(order_input, fastas, name, fasta, options):
    orders_as_samtools(order_input("MINHASH", name), ["-I", fastas(fasta), *options])


def test_minimiser_index_is_built_in_silence_or_chatters(order_input, fastas):
    """The only line that samtools prints, too."""
    p = run_sort(["-I", fastas("one"), order_input("MINHASH", "short")])
    assert p.returncode == 0 and len(p.stderr.splitlines()) <= 2, p.stderr


@pytest.mark.parametrize("options", [["-R"], ["-H"], ["-K", "9"], ["-w", "5"], ["-R", "-H", "-K", "3", "-w", "1"]],
                         ids=" ".join)
def test_minimiser_option_alone_changes_the_order(order_input, options):
    path = order_input("MINHASH", "placed")
    assert sorted_bytes([*FAST, *options, path]) == sorted_bytes([*FAST, path])


# ---------------------------------------------------------------- the stated order

HD_IN = {"none": "", "old": "@HD\tVN:1.3\tSO:queryname\tGO:query\tSS:queryname:natural\tXX:kept\n"}
CHOICES = [
    [], ["-n"], ["-N"], ["-t", "XT"], ["-t", "XT", "-n"], ["-t", "XT", "-N"], ["-M"], ["--template-coordinate"],
    ["-N", "-n"], ["-n", "-N"], ["-n", "-t", "XT"], ["-N", "-n", "-t", "XT"], ["-t", "XT", "-N", "-n"],
    ["-M", "-n"], ["-n", "-M"], ["-M", "-t", "XT"], ["-t", "XT", "-M"], ["-N", "-M"], ["-M", "-N"],
    ["--template-coordinate", "-n"], ["-n", "--template-coordinate"], ["-N", "--template-coordinate"],
    ["--template-coordinate", "-t", "XT"], ["-t", "XT", "--template-coordinate"], ["-M", "--template-coordinate"],
    ["--template-coordinate", "-M"], ["-N", "-M", "-n"], ["-n", "-M", "-t", "XT"], ["-t", "NM", "-t", "XT"],
    ["-t", "XTRA"], ["-tXT"], ["-nN"], ["-N", "--template-coordinate", "-n"]]


def choice_input(hd, placed):
    r = bamgen.rng("choices")
    recs = [bamgen.record("r%d" % r.randint(0, 30), r.choice((0, 16)), 0, r.randint(0, 5),
                          tags=b"XTC" + bytes([r.randrange(4)])) for i in range(200 * placed)]
    recs += [bamgen.record("R%d" % r.randint(0, 30), 4, -1, -1, seq=bamgen.bases(r, 40)) for i in range(200)]
    text = HD_IN[hd] + bamgen.sq_text() + "@PG\tID:bwa\tPN:bwa\n"
    return bamgen.header(text), recs


@pytest.mark.parametrize("hd", HD_IN)
@pytest.mark.parametrize("order", CHOICES, ids=lambda v: " ".join(v) or "default")
def test_several_order_options_mean_another_order_or_header(made, order, hd):
    """Compares @HD, @PG and records, even if no read is placed: -M notes that in @HD."""
    for placed in (1, 0):
        def content():
            return choice_input(hd, placed)
        path = made("choices_%s_%d" % (hd, placed), content=content)
        lines = (HD_IN[hd] + bamgen.sq_text() + "@PG\tID:bwa\tPN:bwa\n").split("\n")
        ours, theirs = read_bam(sorted_bytes([*order, "-@", 2, path])), oracle(path, *order)
        assert sum(x.startswith("@PG\tID:samtools") for x in ours.lines()) == 1
        same_bam(ours, theirs, lines)


# ---------------------------------------------------------------- several sublists

SUBLIST = 1 << 20  # records per sort task


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    """2^20 + 5,000 records on 500 names and few places: two sublists, ties across them."""
    r = bamgen.rng("crowd")
    kinds = [bamgen.record("a%s%d" % (r.choice(("", "0", ":")), r.randint(0, 400)), r.choice((0, 16, 0x40, 0x900)), 0,
                           r.randint(0, 9), seq="", cigar=[(5, "M")], tags=b"XNi....")
             for _ in range(3000)]
    recs = [x[:-4] + i.to_bytes(4, "little") for i, x in enumerate(r.choices(kinds, k=SUBLIST + 5000))]
    path = tmp_path_factory.mktemp("crowd") / "crowd.bam"
    path.write_bytes(bamgen.bgzf(bamgen.header() + b"".join(recs), level=0))
    return path


@pytest.mark.slow
@pytest.mark.skipif(SANITIZED, reason="takes minutes under the sanitizers")
@pytest.mark.parametrize("order", [["-n"], ["--template-coordinate"]], ids=" ".join)
def test_ties_across_sublists_lose_input_order(crowd, order):
    outs = [sorted_bytes(["--no-PG", "-u", *order, "-@", n, crowd]) for n in (1, 3)]
    assert outs[0] == outs[1]
    same_bam(read_bam(outs[0]), oracle(crowd, "--no-PG", *order))


@pytest.mark.slow
@pytest.mark.skipif(SANITIZED, reason="takes minutes under the sanitizers")
@pytest.mark.parametrize("order", [["-N"], ["-t", "XN"], ["-t", "YN", "-n"], ["-M"], ["--picard"]], ids=" ".join)
def test_sublists_merge_otherwise_with_other_threads(crowd, order):
    outs = [sorted_bytes(["--no-PG", "-u", *order, "-@", n, crowd]) for n in (1, 2, 8)]
    assert outs.count(outs[0]) == len(outs)
    got = read_bam(outs[0])
    assert len(got.records()) == SUBLIST + 5000
    if order == ["-t", "XN"]:
        same_records(got, read_bam(crowd))


# ---------------------------------------------------------------- real files

REAL_ORDERS = ["-n", "-N", "-t NM", "-t RG -n", "-M", "--template-coordinate", "-M -K 25"]


@pytest.mark.parametrize("path,order", in_turn(DATA_BAMS + REAL_BAMS, REAL_ORDERS, 3))
def test_real_input_sorts_unlike_samtools(tmp_path, path, order):
    theirs, order = tmp_path / "theirs.bam", order.split()
    status, err = oracle_sort(["--no-PG", "-u", *order, "-o", theirs, path])
    first = None
    for n in THREADS:
        p = run_sort(["--no-PG", "-u", *order, "-@", n, path])
        assert p.returncode == status, p.stderr
        if status:
            assert "fixmate" in err and "fixmate" in p.stderr and not p.stdout
            continue
        if first is None:
            first = p.stdout
            same_bam(read_bam(first), read_bam(theirs))
        assert p.stdout == first, "other bytes with -@ %d" % n


def with_mates_known(path, folder):
    """Name sort and fixmate; then without the lines to which fixmate gave no MC."""
    named, fixed, kept = (str(folder / x) for x in ("named.bam", "fixed.bam", "kept.bam"))
    assert oracle_sort(["-n", "-l", "1", "-o", named, path])[0] == 0
    pysam.samtools.fixmate("-m", named, fixed, catch_stdout=False)
    n = 0
    with pysam.AlignmentFile(fixed, check_sq=False) as f, pysam.AlignmentFile(kept, "wb", template=f) as out:
        for x in f:
            if not x.is_paired or x.mate_is_unmapped or x.has_tag("MC"):
                out.write(x)
                n += x.has_tag("MC")
    return kept, n


@pytest.mark.parametrize("path", DATA_BAMS + REAL_BAMS)
def test_real_pairs_sort_by_template_unlike_samtools(tmp_path, path):
    fixed, mates = with_mates_known(path, tmp_path)
    if not mates:
        pytest.skip("no pairs in it")
    orders_as_samtools(fixed, ["--template-coordinate"], tmp_path / "o")
