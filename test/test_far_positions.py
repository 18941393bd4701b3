# SPDX-License-Identifier: MIT
"""Positions beyond 2^31-1, which only SAM can hold: sorted like samtools 1.24 in every order; refused, with a
message, if the output is BAM or CRAM."""

import gzip
import os
import re
import struct

import pysam
import pytest

import bamgen
from conftest import (
    HTSLIB_LEAKS, THREADS, oracle_bytes, oracle_call, oracle_sort, read_bam, run, run_sort, same_bam, sorted_bytes)

ORDERS = {
    "coordinate": [], "n": ["-n"], "N": ["-N"], "tag": ["-t", "NM"], "text_tag": ["-t", "BX"],
    "tag_n": ["-n", "-t", "NM"], "template": ["--template-coordinate"], "M": ["-M"], "M_K25": ["-M", "-K", "25"],
    "M_R": ["-M", "-R"]}
REFS = [("c", 1000), ("two31", (1 << 31) + 5000), ("edge", (1 << 31) - 1), ("two33", 1 << 33), ("two40", 1 << 40)]
LENGTHS = dict(REFS)
SQ = b"".join(b"@SQ\tSN:%s\tLN:%d\n" % (n.encode(), length) for n, length in REFS)
RG = b"@RG\tID:g1\tLB:b\n@RG\tID:g2\tLB:a\n"
EDGES = [1, 2, 700] + [(1 << k) + d for k in (31, 32, 33) for d in (-2, -1, 0, 1, 2)] + [1 << 36, 10 ** 12]


def places(length):
    return [p for p in EDGES if p <= length]


def line(name, flag, ref, pos, cigar, mate, next_pos, tlen, seq, tags):
    return "\t".join(map(str, (name, flag, ref, pos, 9, cigar, mate, next_pos, tlen, seq, "*", *tags))) + "\n"


def random_line(r, i):
    """Few places, so that many reads tie; mates near, far, and on other references."""
    name = "r%d" % r.randrange(150)
    seq = bamgen.bases(r, 40)
    tags = ["NM:i:%d" % r.randrange(3)] * (r.random() < .8) + ["RG:Z:g%d" % r.randint(1, 2)] * (r.random() < .6) \
        + ["BX:Z:" + r.choice("AB")] * (r.random() < .5) + ["XB:B:I,0,0,6,%d" % i] * (r.random() < .2)
    if r.random() < .1:
        pos = r.choice((0, 5, 1 << 33)) if r.random() < .3 else 0
        return line(name, r.choice((4, 77, 141)), "*", pos, "*", "*", 0, 0, seq, ["MC:Z:*", *tags])
    ref, mate = r.choice(REFS)[0], r.choice(REFS)[0]
    if r.random() < .6:
        mate = ref
    pos, next_pos = r.choice(places(LENGTHS[ref])), r.choice(places(LENGTHS[mate]))
    cigar = r.choice(("40M", "5S35M", "30M10S", "20M2D20M", "3H40M", "10M99999N30M", "2H3S35M2S", "20M268435455N20M"))
    flag = r.choice((0, 1, 65, 129)) | r.choice((0, 16)) | r.choice((0, 32))
    tlen = r.choice((0, next_pos - pos, pos - next_pos, 7, -(1 << 31), (1 << 31) - 1, 1 << 31, -(1 << 31) - 1))
    return line(name, flag, ref, pos, cigar, "=" if mate == ref else mate, next_pos, tlen, seq,
                ["MC:Z:" + r.choice(("40M", "5S35M", "30M10S")), *tags])


def far_text(n=900, seed="far", refs=SQ):
    r = bamgen.rng(seed)
    return b"@HD\tVN:1.6\n" + refs + RG + "".join(random_line(r, i) for i in range(n)).encode()


@pytest.fixture(scope="module")
def far(tmp_path_factory):
    path = tmp_path_factory.mktemp("far") / "far.sam"
    path.write_bytes(far_text())
    return path


def same_lines(ours, theirs):
    a, b = ours.split(b"\n"), theirs.split(b"\n")
    for i, (x, y) in enumerate(zip(a, b)):
        assert x == y, "line %d" % (i + 1)
    assert len(a) == len(b)


def sorts_alike(path, order, sam=None):
    """Checks that `path` is sorted as samtools sorts it, or as samtools sorts `sam`, which has the same records."""
    args = ["--no-PG", *ORDERS[order], "-O", "sam"]
    theirs = oracle_bytes(sam or path, *args, scratch=path.parent / "theirs")
    for n in (1, 3):
        same_lines(sorted_bytes([*args, "-@", n, path]), theirs)


@pytest.mark.parametrize("order", ORDERS)
def test_far_positions_sort_unlike_samtools(far, tmp_path, order):
    args = ["--no-PG", *ORDERS[order], "-O", "sam"]
    theirs = oracle_bytes(far, *args, scratch=tmp_path / "theirs")
    assert len(re.findall(rb"\t42949672\d\d\t", theirs)) > 100
    for n in THREADS:
        same_lines(sorted_bytes([*args, "-@", n, far]), theirs)
    out = tmp_path / "out.sam"
    assert run_sort([*args, "-@", 2, "-o", out], stdin=far.read_bytes()).returncode == 0
    same_lines(out.read_bytes(), theirs)
    packed = sorted_bytes([*args[:-1], "sam.gz", "-@", 2, far])
    same_lines(gzip.decompress(packed), theirs)


def test_far_positions_confuse_picard_order(far):
    """The order uses only names and flags; the oracle lacks it."""
    def near(text):
        return b"\n".join(x if x[:1] == b"@" else b"\t".join((*c[:2], b"c", b"1", *c[4:6], b"=", b"1", b"0", *c[9:]))
                          for x in text.rstrip(b"\n").split(b"\n") for c in [x.split(b"\t")]) + b"\n"
    args = ["--no-PG", "--picard", "-O", "sam", "-@", 2]
    ours = sorted_bytes([*args, far])
    same_lines(near(ours), sorted_bytes([*args, "-"], stdin=near(far.read_bytes())))
    assert sorted(ours.split(b"\n")[1:]) == sorted(far.read_bytes().split(b"\n")[1:])


@pytest.mark.parametrize("order", ["coordinate", "M", "template"])
def test_sam_gz_input_with_far_positions_sorts_otherwise(far, tmp_path, order):
    path = tmp_path / "in.sam.gz"
    with pysam.BGZFile(str(path), "wb") as f:
        f.write(far.read_bytes())
    sorts_alike(path, order, far)


def test_index_of_minimisers_and_far_positions_do_not_mix(far, tmp_path):
    fasta = tmp_path / "ref.fa"
    fasta.write_text(">x\n" + bamgen.bases(bamgen.rng("far fasta"), 3000) + "\n")
    args = ["--no-PG", "-M", "-I", fasta, "-O", "sam"]
    theirs = oracle_bytes(far, *args, scratch=tmp_path / "theirs")
    same_lines(sorted_bytes([*args, "-@", 2, far]), theirs)


@pytest.mark.parametrize("order", ORDERS)
def test_far_positions_without_far_references_are_refused(tmp_path, order):
    """samtools does not check positions; all these are after the end of their reference."""
    refs = b"".join(b"@SQ\tSN:%s\tLN:1000\n" % n.encode() for n, _ in REFS)
    path = tmp_path / "in.sam"
    path.write_bytes(far_text(400, "no far refs", refs))
    sorts_alike(path, order)


@pytest.mark.parametrize("order", ["coordinate", "tag", "text_tag", "M"])
def test_many_far_reads_of_one_key_are_taken_for_ties(tmp_path, order):
    """There are more than are sorted by insertion, and they follow a short reference, so that their keys are equal."""
    r = bamgen.rng("far ties")
    path = tmp_path / "in.sam"
    path.write_text("@SQ\tSN:c\tLN:1000\n" + "".join(
        line("r%d" % i, r.choice((0, 16)), "c", r.choice(EDGES), "4M", "*", 0, 0, "ACGT", ["NM:i:1", "BX:Z:A"])
        for i in range(600)))
    sorts_alike(path, order)


@pytest.mark.parametrize("order", ["coordinate", "tag", "template", "M"])
def test_greatest_numbers_overflow(tmp_path, order):
    """htslib reads numbers below 2^62."""
    greatest = 4 * 10 ** 18
    at = (greatest, greatest - 1, greatest, 1, 0, (1 << 62) - 1)
    lines = [line("r%d" % i, 16 * (i % 2) | 1, "x", p, "4M", "=", q, t, "ACGT", ["MC:Z:4M", "NM:i:1"])
             for i, (p, q, t) in enumerate((p, q, t) for p in at for q in at[2:] for t in (greatest, -greatest))]
    path = tmp_path / "in.sam"
    path.write_bytes(b"@HD\tVN:1.6\n@SQ\tSN:x\tLN:%d\n" % greatest + "".join(lines).encode())
    args = ["--no-PG", *ORDERS[order], "-O", "sam"]
    same_lines(sorted_bytes([*args, path]), oracle_bytes(path, *args))


@pytest.mark.slow
def test_far_positions_after_sorted_sublists_come_out_otherwise(tmp_path):
    """More records than a sublist has are sorted before the first of them occurs."""
    r = bamgen.rng("late far")
    early = "".join("a%d\t%d\ttwo33\t%d\t0\t1M\t*\t0\t0\t*\t*\n" % (
        i, r.choice((0, 16)), r.choice((1, 2147483647, 2147483648))) for i in range(1000)) * 1100
    late = "".join(line("r%d" % i, r.choice((0, 16)), "two33", r.choice(places(1 << 33)), "1M", "*", 0, 0, "*", [])
                   for i in range(3000))
    path = tmp_path / "in.sam"
    path.write_bytes(b"@HD\tVN:1.6\n" + SQ + (early + late).encode())
    args = ["--no-PG", "-O", "sam"]
    theirs = oracle_bytes(path, *args)
    for n in (1, 3):
        assert sorted_bytes([*args, "-m", "600M", "-@", n, path]) == theirs


def test_long_cigar_at_a_far_position_is_lost(tmp_path):
    """A CIGAR with more operations than BAM counts is stored in the CG tag."""
    n = 40000
    lines = [line("r%d" % i, 0, "two33", p, "1M1I" * n, "=", p, p, "AC" * n, ["NM:i:3", "XX:Z:x"])
             for i, p in enumerate((1 << 32, 5, (1 << 32) - 1, 1 << 31))]
    path = tmp_path / "in.sam"
    path.write_bytes(b"@HD\tVN:1.6\n" + SQ + "".join(lines).encode())
    args = ["--no-PG", "-O", "sam"]
    same_lines(sorted_bytes([*args, "-@", 2, path]), oracle_bytes(path, *args))


def test_bam_and_far_sam_together_sort_otherwise(tmp_path):
    """The references look alike, so they are short: the far reads are after their ends."""
    refs = b"@SQ\tSN:c\tLN:1000\n@SQ\tSN:edge\tLN:%d\n" % ((1 << 31) - 1)
    head = b"@HD\tVN:1.6\n" + refs
    r = bamgen.rng("far and near")

    def lines(name, top):
        return "".join(line("%s%d" % (name, i), r.choice((0, 16)), "edge", r.choice([p for p in EDGES if p <= top]), "4M",
                            "*", 0, 0, "ACGT", []) for i in range(300)).encode()
    near, beyond = lines("n", 1 << 31), lines("f", 1 << 60)
    (tmp_path / "near.sam").write_bytes(head + near)
    (tmp_path / "far.sam").write_bytes(head + beyond)
    (tmp_path / "all.sam").write_bytes(head + near + beyond)
    bam = tmp_path / "near.bam"
    assert run_sort(["-n", "--no-PG", "-o", bam, tmp_path / "near.sam"]).returncode == 0
    for order in ([], ["-n"]):
        args = ["--no-PG", *order, "-O", "sam"]
        theirs = oracle_bytes(tmp_path / "all.sam", *args)
        ours = sorted_bytes([*args, "--add-input", tmp_path / "far.sam", tmp_path / "near.sam"])
        same_lines(ours, theirs)
        mixed = sorted_bytes([*args, "--add-input", tmp_path / "far.sam", bam])
        assert sorted(mixed.split(b"\n")) == sorted(theirs.split(b"\n"))
        if not order:
            places_of = [[x.split(b"\t")[3] for x in t.split(b"\n") if x[:1] in b"nf" and x] for t in (mixed, theirs)]
            assert places_of[0] == places_of[1]


# ---------------------------------------------------------------- index, check


@pytest.mark.parametrize("n", [1, 3])
def test_index_does_not_find_far_reads(far, tmp_path, n):
    """htslib's index ends at 2^35, for references of any length."""
    path = tmp_path / "in.sam"
    path.write_bytes(re.sub(rb"[^\n]*\ttwo40\t(68719476736|1000000000000)\t[^\n]*\n", b"", far.read_bytes()))
    args = ["--no-PG", "--write-index"]
    p = run_sort([*args, "-@", n, "-o", "out.sam.gz", path], cwd=tmp_path)
    assert p.returncode == 0, p.stderr
    status, err = oracle_sort([*args, "-o", tmp_path / "theirs.sam.gz", path])
    assert status == 0, err

    def found(data):
        return [pysam.samtools.view(str(data), "%s:%d-%d" % (ref, p, p)) for ref, length in REFS for p in places(length)
                if p < 1 << 35]
    ours = found(tmp_path / "out.sam.gz")
    assert ours == found(tmp_path / "theirs.sam.gz")
    assert sum(x.count("\n") for x in ours) > 500


def test_read_beyond_the_index_leaves_files(far, tmp_path):
    p = run_sort(["--write-index", "-@", 2, "-o", "out.sam.gz", far], cwd=tmp_path, env=HTSLIB_LEAKS)
    assert p.returncode == 1 and "cannot be indexed" in p.stderr, p.stderr
    assert os.listdir(tmp_path) == []
    (tmp_path / "dir").mkdir()
    status, err = oracle_sort(["--write-index", "-o", tmp_path / "dir" / "theirs.sam.gz", far])
    assert status == 1, err


@pytest.mark.parametrize("order", ["coordinate", "tag", "template", "n"])
def test_check_misjudges_far_positions(far, tmp_path, order):
    out = tmp_path / "out.sam"
    assert run_sort([*ORDERS[order], "-o", out, far]).returncode == 0
    p = run_sort([*ORDERS[order], "--check", out])
    assert p.returncode == 0, p.stderr
    head, body = out.read_bytes().split(b"\nr", 1)
    lines = (b"r" + body).rstrip(b"\n").split(b"\n")
    first = next(i for i, x in enumerate(lines) if b"\ttwo33\t8589934591\t" in x)
    (tmp_path / "bad.sam").write_bytes(head + b"\n" + b"\n".join(lines[first:] + lines[:first]) + b"\n")
    p = run_sort([*ORDERS[order], "--check", tmp_path / "bad.sam"])
    assert p.returncode == 1 and "belongs before" in p.stderr, p.stderr


def test_check_takes_far_reads_in_the_wrong_order_for_sorted(tmp_path):
    lines = [line("r%d" % i, 0, "two33", p, "4M", "*", 0, 0, "ACGT", []) for i, p in enumerate((1 << 32, (1 << 32) - 1))]
    path = tmp_path / "in.sam"
    path.write_bytes(b"@HD\tVN:1.6\n" + SQ + "".join(lines).encode())
    assert run_sort(["--check", path]).returncode == 1


# ---------------------------------------------------------------- BAM and CRAM


@pytest.mark.parametrize("order", ["coordinate", "n", "M"])
@pytest.mark.parametrize("fmt", ["bam", "cram"])
def test_far_reference_in_bam_is_told_after_reading(tmp_path, fmt, order):
    """As in samtools, the header alone is enough to refuse the file: standard input stays open."""
    status, err = 0, ""
    path = tmp_path / "in.sam"
    path.write_bytes(b"@HD\tVN:1.6\n" + SQ)
    status, err = oracle_sort([*ORDERS[order], "-O", fmt, "-o", tmp_path / "theirs", path])
    assert status == 1 and "very large references" in err
    r, w = os.pipe()
    try:
        os.write(w, path.read_bytes() + b"r\t0\tc\t5\t9\t4M\t*\t0\t0\tACGT\tIIII\n" * 1000)
        p = run_sort([*ORDERS[order], "-O", fmt, "-o", tmp_path / "out"], stdin=r)
    finally:
        os.close(r)
        os.close(w)
    assert p.returncode == 1 and "two31" in p.stderr and "-O sam" in p.stderr, p.stderr
    assert p.stderr.count("\n") == 1
    assert os.listdir(tmp_path) == ["in.sam"]


@pytest.mark.parametrize("fields", ["c\t3000000000\t9\t4M\t*\t0\t0", "c\t5\t9\t4M\t=\t3000000000\t0",
                                    "c\t5\t9\t4M\t=\t5\t3000000000", "c\t5\t9\t4M\t=\t5\t-3000000000"])
@pytest.mark.parametrize("fmt", ["bam", "cram"])
def test_far_read_is_cut_in_bam(tmp_path, fmt, fields):
    path = tmp_path / "in.sam"
    path.write_text("@SQ\tSN:c\tLN:1000\nr0\t0\tc\t5\t9\t4M\t*\t0\t0\tACGT\tIIII\nr1\t0\t%s\tACGT\tIIII\n" % fields)
    for n in (1, 3):
        p = run_sort(["-O", fmt, "-@", n, "-o", tmp_path / "out", path])
        assert p.returncode == 1 and "record 2" in p.stderr and "-O sam" in p.stderr, p.stderr
        assert os.listdir(tmp_path) == ["in.sam"]


@pytest.mark.parametrize("fmt", ["bam", "cram"])
def test_far_read_that_passes_a_filter_is_cut_in_bam(tmp_path, fmt):
    path = tmp_path / "in.sam"
    path.write_text("@SQ\tSN:c\tLN:1000\nr0\t0\tc\t5\t9\t4M\t*\t0\t0\tACGT\tIIII\n"
                    "r1\t0\tc\t3000000000\t9\t4M\t*\t0\t0\tACGT\tIIII\n")
    p = run_sort(["-O", fmt, "--input-fmt-option", "filter=mapq > 0", "-o", tmp_path / "out", path])
    assert p.returncode == 1 and "record 2" in p.stderr and "-O sam" in p.stderr, p.stderr
    assert os.listdir(tmp_path) == ["in.sam"]


def test_tag_of_our_own_name_is_lost_in_bam(tmp_path):
    """No tool writes one, but it belongs to the user."""
    own = b"\0\0BI\6\0\0\0" + bytes(24)
    path = tmp_path / "in.bam"
    recs = [bamgen.record("r%d" % i, 0, 0, 50 - i, tags=own + b"NMC\1") for i in range(9)]
    path.write_bytes(bamgen.bam(bamgen.header(), recs, "htslib"))
    same_bam(read_bam(sorted_bytes(["--no-PG", path])), read_bam(oracle_bytes(path, "--no-PG")))


def test_tag_of_our_own_name_orders_bam(tmp_path):
    """The records are at the last possible position, and their tag has a place beyond it, which no BAM record can
    hold."""
    path, out = tmp_path / "in.bam", tmp_path / "out.bam"
    recs = [bamgen.record("r%d" % i, 16 * (i % 2), 0, (1 << 31) - 1, bin=0,
                          tags=b"\0\0BI\6\0\0\0" + struct.pack("<qqq", 1 << 40 - i, -1, 0)) for i in range(9)]
    path.write_bytes(bamgen.bam(bamgen.header(), recs, "htslib"))
    assert run_sort(["--no-PG", "--verify", "-o", out, path]).returncode == 0
    same_bam(read_bam(out), read_bam(oracle_bytes(path, "--no-PG")))
    assert run_sort(["--check", out]).returncode == 0


# ------------------------------------------------------- a long reference in BAM, where no record can be far

LONG_TEXT = "@HD\tVN:1.6\t%s\n@SQ\tSN:c\tLN:1000\n@SQ\tSN:long\tLN:3000000000\n"


def long_bam(path, lists, order):
    """lists: the list of references has the long one, as an unsigned number."""
    text = (LONG_TEXT % order).encode()
    refs = [("c", 1000), ("long", 3000000000)][:1 + lists]
    head = b"BAM\1" + struct.pack("<i", len(text)) + text + struct.pack("<i", len(refs)) + b"".join(
        struct.pack("<i", len(n) + 1) + n.encode() + b"\0" + struct.pack("<I", length) for n, length in refs)
    recs = [bamgen.record("r", flag, 0, pos, 60, [(4, "M")], 0, 250 - pos, 54 if flag == 99 else -54, "ACGT", bytes([30] * 4),
                          b"MCZ4M\0msS\x78\0") for flag, pos in ((99, 100), (147, 150))]
    path.write_bytes(bamgen.bgzf(head + b"".join(recs)))
    return path


LONG_COMMANDS = ["sort --no-PG -O {f} -o {o} {a}", "collate --no-PG --output-fmt {f} -o {o} {a}", "markdup --no-PG -O {f} {a} {o}",
                 "merge --no-PG -O {f} -o {o} {a}", "merge --no-PG -O {f} -o {o} {b} {a}", "fixmate --no-PG -O {f} {g} {o}"]


@pytest.mark.parametrize("form", ["bam", "cram", "sam"])
@pytest.mark.parametrize("lists", [False, True], ids=["unlisted", "listed"])
def test_long_reference_that_no_record_of_bam_needs(tmp_path, lists, form):
    """samtools writes it, except in a sort, if the list of the input has it."""
    long_bam(tmp_path / "a", lists, "SO:coordinate")
    long_bam(tmp_path / "g", lists, "GO:query")
    (tmp_path / "b").write_bytes(bamgen.bgzf(bamgen.header(refs=[("c", 1000)])))
    for words in LONG_COMMANDS:
        got = []
        for who in "theirs", "ours":
            out = tmp_path / (who + "." + form)
            out.unlink(missing_ok=True)
            name, *args = words.format(f=form, o=out, **{x: tmp_path / x for x in "abg"}).split()
            status = oracle_call(name, args)[0] if who == "theirs" else run([name, *args]).returncode
            got.append((status, out.exists() and pysam.view("-h", "--no-PG", str(out))))
        assert got[0] == got[1] and got[0][0] == (lists and name == "sort" and form != "sam"), words
        if got[0][0] == 0 and form == "bam":
            same_bam(read_bam(tmp_path / "ours.bam"), read_bam(tmp_path / "theirs.bam"))


def test_sam_beside_bam_is_taken_for_bam(tmp_path):
    """A record of the second input may be far."""
    long_bam(tmp_path / "a.bam", False, "SO:coordinate")
    (tmp_path / "b.sam").write_text(LONG_TEXT % "SO:coordinate" + "f\t0\tlong\t2999999000\t9\t4M\t*\t0\t0\tACGT\tIIII\n")
    for inputs in ("a.bam", "b.sam"), ("b.sam", "a.bam"):
        p = run(["merge", "-o", tmp_path / "o.bam", *[tmp_path / x for x in inputs]])
        assert p.returncode == 1 and "longer than 2^31-1" in p.stderr and not (tmp_path / "o.bam").exists()
