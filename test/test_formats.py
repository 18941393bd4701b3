# SPDX-License-Identifier: MIT
"""Every format in and out: SAM, BAM and CRAM in their compressions, FASTQ, FASTA; as by samtools 1.24, from files
and from a pipe, by extension and by -O."""

import gzip
import os
import re
import struct

import pysam
import pytest

import bamgen
import ordergen
from conftest import (HTSLIB_LEAKS, blocks, htslib_version, needs_htslib, oracle_bytes, oracle_call, oracle_sort,
                      read_bam, run, run_sort, same_bam, sorted_bytes)
from test_safety import refused

os.environ["REF_PATH"] = "/nonexistent"  # no reference from the network, here and in the oracle

GENOME = [("chr1", 6000), ("chr2", 3000), ("chrM", 500)]


@pytest.fixture(scope="session")
def desk(tmp_path_factory):
    return tmp_path_factory.mktemp("formats")


@pytest.fixture(scope="session")
def reference(desk):
    r = bamgen.rng("formats genome")
    with open(desk / "ref.fa", "w") as f:
        for name, n in GENOME:
            s = bamgen.bases(r, n)
            f.write(">%s\n" % name + "".join(s[k:k + 60] + "\n" for k in range(0, n, 60)))
    pysam.samtools.faidx(str(desk / "ref.fa"))
    return desk / "ref.fa"


def reads(fasta):
    """300 reads of that genome with errors, indels, clips, pairs, tags; ties in each order."""
    r = bamgen.rng("formats reads")
    seqs = [fasta.fetch(name) for name, _ in GENOME]
    out = []
    for i in range(300):
        name = "r%0*d" % (r.randint(1, 3), r.randint(0, 120))
        tags = b"".join((b"NMC" + bytes([r.randrange(4)]) if r.random() < .8 else b"",
                         b"RGZg1\0" if r.random() < .5 else b"",
                         b"XFf\0\0\xc0\x3f" if r.random() < .2 else b"",
                         b"XBBs\2\0\0\0\1\0\xff\xff" if r.random() < .2 else b"", b"XAA!" if r.random() < .1 else b""))
        qual = bytes(r.randint(2, 41) for _ in range(40)) if r.random() < .9 else None
        if r.random() < .15:
            out.append(bamgen.record(name, r.choice((4, 77, 141)), -1, -1, 0, seq=bamgen.bases(r, 40), qual=qual, tags=tags))
            continue
        tid = r.choice((0, 0, 1, 2))
        pos = r.choice((7, 100, 101, r.randint(0, 400)))
        cigar = r.choice(("40M", "5S35M", "30M10S", "20M2D20M", "20M3I17M", "3H40M", "10M100N30M" if tid < 2 else "40M"))
        seq, at = "", pos
        for n, op in ordergen.parse_cigar(cigar):
            seq += seqs[tid][at:at + n] if op == "M" else bamgen.bases(r, n) if op in "IS" else ""
            at += n if op in "MDN" else 0
        seq = "".join(r.choice("ACGTN") if r.random() < .02 else c for c in seq)
        out.append(bamgen.record(name, r.choice((0, 16, 99, 147, 83, 163, 1024 + 16, 256, 2048)), tid, pos,
                                 r.randint(0, 60), ordergen.parse_cigar(cigar), mtid=tid, mpos=r.randint(0, 400),
                                 tlen=r.randint(-300, 300), seq=seq, qual=qual, tags=tags))
    return bamgen.header("@HD\tVN:1.6\tSO:unsorted\n" + bamgen.sq_text(GENOME) + "@RG\tID:g1\tSM:s\n", GENOME), out


def view(path, *args):
    """samtools view, in this process: the text on its standard output."""
    text = pysam.samtools.view("--no-PG", *map(str, args), str(path))
    return text if isinstance(text, bytes) else text.encode()


def convert(bam, kind, to, reference=None):
    """A BAM file as another format, by samtools."""
    raw = gzip.decompress(bam.read_bytes())
    if kind == "raw":
        to.write_bytes(raw)
    elif kind == "gzip_bam":
        to.write_bytes(gzip.compress(raw))
    elif kind.startswith("cram"):
        how = ["-T", reference] if kind == "cram_ref" else ["--output-fmt-option", "no_ref=1"]
        pysam.samtools.view("--no-PG", "-C", *map(str, how), "-o", str(to), str(bam), catch_stdout=False)
    else:
        pysam.samtools.view("--no-PG", "-h", "-o", str(to), "-O", "sam", str(bam), catch_stdout=False)
        text = to.read_bytes()
        to.write_bytes({"sam": text, "sam.gz": bamgen.bgzf(text, size=5000), "gzip_sam": gzip.compress(text)}[kind])
    return to


KINDS = ["bam", "raw", "gzip_bam", "sam", "sam.gz", "gzip_sam", "cram_ref", "cram_noref"]


@pytest.fixture(scope="session")
def inputs(desk, reference):
    bam = desk / "in.bam"
    with pysam.FastaFile(str(reference)) as fasta:
        bam.write_bytes(bamgen.bam(*reads(fasta)))
    made = {"bam": bam}

    def get(kind):
        if kind not in made:
            made[kind] = convert(bam, kind, desk / ("in_" + kind), reference)
        return made[kind]

    return get


def text_of(data, fmt, folder, reference=None):
    """The lines of an output in any format."""
    if fmt == "bam":
        bam = read_bam(data)
        return bam.lines(), bam.refs + bam.body
    if fmt == "sam.gz":
        data = b"".join(b.data for b in blocks(data))
    elif fmt == "cram":
        assert data[:4] == b"CRAM"
        path = folder / "decode.cram"
        path.write_bytes(data)
        data = view(path, "-h", *(["-T", reference] if reference else []))
    assert fmt in ("fastq", "fasta") or data[:4] not in (b"\x1f\x8b\x08\x04", b"BAM\1", b"CRAM")
    lines = data.decode("latin-1").splitlines()
    n = 0 if fmt in ("fastq", "fasta") else sum(1 for x in lines if x[:1] == "@" and x[3:4] == "\t")
    return lines[:n], lines[n:]


def same_output(ours, theirs, fmt, folder, reference=None):
    a, b = text_of(ours, fmt, folder, reference), text_of(theirs, fmt, folder, reference)
    assert a[0] == b[0]
    if a[1] != b[1]:
        if fmt == "bam":
            same_bam(read_bam(ours), read_bam(theirs))
        for i, (x, y) in enumerate(zip(a[1], b[1])):
            assert x == y, "line %d behind the header" % (i + 1)
        assert len(a[1]) == len(b[1])


OUTS = ["bam", "sam", "sam.gz", "cram", "fastq", "fasta"]
ORDERS = {"coordinate": [], "n": ["-n"], "NM": ["-t", "NM"]}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("fmt", OUTS)
@pytest.mark.parametrize("kind", KINDS)
def test_format_pair_sorts_unlike_samtools(inputs, reference, tmp_path, kind, fmt, order):
    args = ["--no-PG", "--reference", reference, "-O", fmt, *ORDERS[order]]
    path = inputs(kind)
    theirs = oracle_bytes(path, *args, scratch=tmp_path / "theirs")
    assert len(text_of(theirs, fmt, tmp_path, reference)[1]) > 299
    outs = [sorted_bytes([*args, "-@", n, path]) for n in (1, 3)]
    outs.append(sorted_bytes([*args, "-@", 2], stdin=path.read_bytes()))
    same_output(outs[0], theirs, fmt, tmp_path, reference)
    if fmt == "cram":
        for out in outs[1:]:
            same_output(out, theirs, fmt, tmp_path, reference)
    else:
        assert outs.count(outs[0]) == 3, "other bytes with other threads or from a pipe"


@pytest.mark.parametrize("order", [["-N"], ["-M"], ["--template-coordinate"], ["-t", "NM", "-n"]], ids=" ".join)
@pytest.mark.parametrize("kind", ["sam", "cram_noref"])
def test_other_order_of_another_format_sorts_unlike_samtools(inputs, tmp_path, kind, order):
    path = inputs(kind)
    args = ["--no-PG", *order, "-O", "sam"]
    status, err = oracle_sort([*args, "-o", tmp_path / "theirs", path])
    p = run_sort([*args, "-@", 2, path])
    assert p.returncode == status, p.stderr
    if status == 0:
        assert p.stdout == (tmp_path / "theirs").read_bytes()
    else:
        assert "fixmate" in p.stderr and not p.stdout


@pytest.mark.parametrize("fmt", ["sam", "cram"])
def test_program_line_is_lost_in_another_format(inputs, reference, tmp_path, fmt):
    def pg(lines):
        return [re.sub(r"\t(VN|CL):[^\t]*", "", x) for x in lines if x.startswith("@PG")]
    args = ["--reference", reference, "-O", fmt]
    ours = text_of(sorted_bytes([*args, inputs("sam")]), fmt, tmp_path)[0]
    theirs = text_of(oracle_bytes(inputs("sam"), *args, scratch=tmp_path / "x"), fmt, tmp_path)[0]
    assert pg(ours) == pg(theirs) and len(pg(ours)) == 1


@pytest.mark.parametrize("name", ["ties", "mixed", "all_flags", "tags", "seq_shapes", "no_refs", "header_only",
                                  "far_positions", "placed_unmapped", "many_refs", "cg_short"])
@pytest.mark.parametrize("fmt", ["sam", "bam"])
def test_any_content_through_sam_sorts_unlike_samtools(made, tmp_path, name, fmt):
    """The input is BAM, and then SAM made from it."""
    bam, sam = made(name), tmp_path / "in.sam"
    theirs = oracle_bytes(bam, "--no-PG", "-n", "-O", fmt, scratch=tmp_path / "x")
    same_output(sorted_bytes(["--no-PG", "-n", "-O", fmt, "-@", 2, bam]), theirs, fmt, tmp_path)
    sam.write_bytes(oracle_bytes(bam, "--no-PG", "-n", "-O", "sam", scratch=tmp_path / "x"))
    status, err = oracle_sort(["--no-PG", "-O", fmt, "-o", tmp_path / "theirs", sam])
    assert status == (name == "seq_shapes"), err  # its CIGAR and SEQ differ, which only BAM can hold
    for n in (1, 3):
        p = run_sort(["--no-PG", "-O", fmt, "-@", n, sam])
        assert p.returncode == status, p.stderr
        if status == 0:
            same_output(p.stdout, (tmp_path / "theirs").read_bytes(), fmt, tmp_path)


NO_TEXT = {"cut": b"NMi\1", "text_not_closed": b"XXZabc", "type_unknown": b"XX?\1\2", "array_cut": b"XXBi\xff\xff\xff\x7f",
           "array_of_doubles": b"XXBd\1\0\0\0" + bytes(8), "array_of_characters": b"XXBA\0\0\0\0", "after_others": b"NMC\1XXZa",
           "first_of_two": b"QQ?\1NMC\1", "zeros": bytes(5)}
TEXT_AFTER_ALL = {"two_bytes": b"NM", "three_bytes": b"NMC\1XXi", "no_text_yet": b"NMC\1XXZ", "none": b""}


@pytest.mark.parametrize("kind", [*NO_TEXT, *TEXT_AFTER_ALL])
def test_broken_tags_hang_sam_output(tmp_path, kind):
    """With several threads, htslib 1.16 sometimes blocks itself at such tags."""
    tags = {**NO_TEXT, **TEXT_AFTER_ALL}[kind]
    path = tmp_path / "in.bam"
    path.write_bytes(bamgen.bam(bamgen.header(), [bamgen.record("r%04d" % i, 0, 0, i, tags=tags) for i in range(9000)]))
    args = ["--no-PG", "-O", "sam"]
    status, err = oracle_sort([*args, "-o", tmp_path / "theirs", path])
    assert status == (kind in NO_TEXT), err
    for n in (1, 3, 8):
        if status:
            told = refused(tmp_path, [*args, "-@", n, "-o", "out.sam", path], r"record r\d{4} has a tag")
            assert told.count("\n") == 1, told
        else:
            assert sorted_bytes([*args, "-@", n, path]) == (tmp_path / "theirs").read_bytes()


@pytest.mark.parametrize("kind", [*NO_TEXT, *TEXT_AFTER_ALL, "double"])
def test_broken_tags_crash_cram_output(tmp_path, kind):
    """With several threads, htslib 1.16 sometimes crashes at such tags."""
    tags = {**NO_TEXT, **TEXT_AFTER_ALL, "double": b"XXd" + bytes(8)}[kind]
    path = tmp_path / "in.bam"
    path.write_bytes(bamgen.bam(bamgen.header(), [bamgen.record("r%04d" % i, 0, 0, i, tags=tags) for i in range(9000)]))
    args = ["--no-PG", "-O", "cram,no_ref=1,seqs_per_slice=100"]
    status, err = oracle_sort([*args, "-o", tmp_path / "theirs", path])
    assert status == (kind not in ("zeros", "none")), err
    for n in (1, 4):
        if status:
            told = refused(tmp_path, [*args, "-@", n, "-o", "out.cram", path], r"record r\d{4} has a tag")
            assert told.count("\n") == 1, told
        else:
            same_output(sorted_bytes([*args, "-@", n, path]), (tmp_path / "theirs").read_bytes(), "cram", tmp_path)



# ---------------------------------------------------------------- choice of the format


NAMES = ["x.bam", "x.sam", "x.sam.gz", "x.cram", "x.fastq", "x.fq", "x.fasta", "x.fa", "x.fastq.gz", "x.fa.gz", "x.SAM",
         "x.CRAM", "x.BAM", "x.sam.bgz", "x.gz", "x.txt", "x", "a.sam/x", "sam", ".sam", "x.sam.bam", "x.ubam", "x.csi"]
FORMATS = ["sam", "SAM", "Sam", "bam", "BAM", "cram", "CRAM", "sam.gz", "SAM.GZ", "fastq", "FASTQ", "fasta", "fastq.gz",
           "fasta.gz", "sam,level=5", "SAM,level=1", "sam,level=0", "bam,level=0", "cram,no_ref=1", "cram,version=2.1",
           "sam.gz,level=0", "fq", "fa"]


def kind_of(data):
    """Format and framing by the first bytes; level 0 detected by the rest."""
    if data[:2] != b"\x1f\x8b":
        return {b"CRAM": "cram", b"BAM\1": "raw"}.get(data[:4], {b"@": "sam" if data[3:4] == b"\t" else "fastq",
                                                                b">": "fasta"}.get(data[:1], "?"))
    stored = data[18] & 6 == 0
    plain = b"".join(b.data for b in blocks(data)) if data[3] & 4 else gzip.decompress(data)
    return kind_of(plain) + (" bgzf" if data[3] & 4 else " gzip") + (" stored" if stored else "")


@pytest.mark.parametrize("name", NAMES)
def test_extension_means_another_format(inputs, reference, tmp_path, name):
    if name in ("x.fq", "x.fa"):
        needs_htslib(1, 15)  # older ones do not see an extension of two letters
    for folder in ("ours", "theirs"):
        (tmp_path / folder / name).parent.mkdir(parents=True)
    status, err = oracle_sort(["--reference", reference, "-o", tmp_path / "theirs" / name, inputs("bam")])
    p = run_sort(["--reference", reference, "-o", tmp_path / "ours" / name, inputs("bam")])
    assert p.returncode == status, p.stderr + err
    if status == 0:
        kinds = [kind_of((tmp_path / folder / name).read_bytes()) for folder in ("ours", "theirs")]
        assert kinds[0] == kinds[1] and "?" not in kinds[0]


@pytest.mark.parametrize("out", ["x.bam", "x.sam", "x.sam.gz"])
@pytest.mark.parametrize("fmt", FORMATS)
def test_format_option_means_another_format(inputs, reference, tmp_path, fmt, out):
    compressed = ""
    if fmt.endswith(("q.gz", "a.gz")):
        needs_htslib(1, 24)
        compressed = " bgzf" * (out != "x.sam.gz")  # samtools reads the format's name and leaves the text plain
    for args in (["-O", fmt], ["-l", "3", "--output-fmt", fmt]):
        (tmp_path / "theirs").mkdir(exist_ok=True)
        status, err = oracle_sort(["--reference", reference, *args, "-o", tmp_path / "theirs" / out, inputs("bam")])
        p = run_sort(["--reference", reference, *args, "-o", tmp_path / out, inputs("bam")])
        assert p.returncode == status, p.stderr + err
        if status == 0:
            assert kind_of((tmp_path / out).read_bytes()) == kind_of((tmp_path / "theirs" / out).read_bytes()) + compressed


LEVELS = [["-l", "9", "-O", "bam,level=0"], ["-O", "bam,level=0", "-l", "9"], ["-u", "-O", "bam,level=6"],
          ["-l", "0", "--output-fmt-option", "level=6"], ["-u"], ["-u", "-O", "sam"], ["-u", "-O", "sam.gz"],
          ["-l", "0", "-O", "sam.gz"], ["-l", "9", "-O", "sam"], ["-O", "sam", "--output-fmt-option", "level=4"],
          ["-O", "cram", "-l", "0"], ["-O", "cram,level=0", "-l", "9"], ["-O", "fastq", "-l", "6"]]


@pytest.mark.parametrize("args", LEVELS, ids=" ".join)
def test_level_of_format_and_option_l_are_mixed_up(inputs, reference, tmp_path, args):
    theirs = oracle_bytes(inputs("bam"), "--reference", reference, *args, scratch=tmp_path / "x")
    assert kind_of(sorted_bytes(["--reference", reference, *args, inputs("bam")])) == kind_of(theirs)


@pytest.mark.parametrize("out", ["x.sam", "x.sam.gz", "x.txt", "x.bam"])
@pytest.mark.parametrize("args", [["--output-fmt-option", "level=2"],
                                  ["--output-fmt-option", "level=-1", "--output-fmt", "sam"],
                                  ["--output-fmt-option", "level=2", "--output-fmt", "bam"]], ids=" ".join)
def test_level_compresses_sam_that_only_the_name_asks_for(inputs, tmp_path, args, out):
    for command in "sort", "collate":
        theirs, ours = tmp_path / "theirs" / out, tmp_path / out
        theirs.parent.mkdir(exist_ok=True)
        assert oracle_call(command, [*args, "-o", theirs, inputs("bam")])[0] == 0
        assert run([command, *args, "-o", ours, inputs("bam")]).returncode == 0
        assert kind_of(ours.read_bytes()) == kind_of(theirs.read_bytes()), command


@pytest.mark.parametrize("fmt", ["sam.gz", "cram"])
def test_level_of_another_format_is_ignored(inputs, fmt):
    how = ["--output-fmt-option", "no_ref=1"] * (fmt == "cram")
    sizes = [len(sorted_bytes(["--no-PG", "-O", fmt, *how, "-l", n, inputs("bam")])) for n in (0, 1, 9)]
    assert sizes[0] > sizes[1] >= sizes[2], sizes


CRAM_OUT = [["-O", "cram,no_ref=1"], ["-O", "cram", "--output-fmt-option", "no_ref=1"], ["-O", "cram,embed_ref=1"],
            ["-O", "cram,version=3.0"], ["-O", "cram", "--output-fmt-option", "seqs_per_slice=50"],
            ["-O", "cram,store_md=1,store_nm=1"]]


@pytest.mark.parametrize("args", CRAM_OUT, ids=" ".join)
def test_cram_option_changes_records_or_is_refused(inputs, reference, tmp_path, args):
    args = ["--no-PG", "--reference", reference, *args]
    theirs = oracle_bytes(inputs("bam"), *args, scratch=tmp_path / "x")
    for n in (1, 3):
        ours = sorted_bytes([*args, "-@", n, inputs("bam")])
        same_output(ours, theirs, "cram", tmp_path, None if "no_ref" in str(args) else reference)


def test_cram_without_reference_loses_records(inputs, tmp_path):
    """There is no --reference, and none in the header: the reads must come back in any case."""
    ours = sorted_bytes(["--no-PG", "-O", "cram", inputs("bam")], env=HTSLIB_LEAKS)
    theirs = oracle_bytes(inputs("bam"), "--no-PG", "-O", "cram", scratch=tmp_path / "x")
    ours, theirs = text_of(ours, "cram", tmp_path), text_of(theirs, "cram", tmp_path)
    assert ours[0] == theirs[0]
    tags_sorted = [["\t".join(f[:11] + sorted(f[11:])) for f in (line.split("\t") for line in text[1])] for text in (ours, theirs)]
    assert tags_sorted[0] == tags_sorted[1]


@pytest.mark.parametrize("option", ["decode_md=0", "decode_md=1", "required_fields=0x1ff", "nthreads=2"])
def test_input_option_has_no_or_another_effect(inputs, reference, tmp_path, option):
    args = ["--no-PG", "--reference", reference, "--input-fmt-option", option, "-O", "sam"]
    theirs = oracle_bytes(inputs("cram_ref"), *args, scratch=tmp_path / "x")
    assert sorted_bytes([*args, inputs("cram_ref")]) == theirs


@pytest.mark.parametrize("kind", KINDS)
def test_filter_of_the_input_is_ignored(inputs, reference, tmp_path, kind):
    args = ["--no-PG", "--reference", reference, "--input-fmt-option", "filter=flag & 16", "-O", "sam"]
    theirs = oracle_bytes(inputs(kind), *args, scratch=tmp_path / "x")
    assert 10 < len(text_of(theirs, "sam", tmp_path)[1]) < 290
    for n in (1, 3):
        assert sorted_bytes([*args, "-@", n, inputs(kind)]) == theirs


@pytest.mark.parametrize("kind", ["bam", "sam", "cram_noref"])
def test_broken_filter_passes(inputs, tmp_path, kind):
    for broken in ("flag &", "("):
        refused(tmp_path, ["--input-fmt-option", "filter=" + broken, "-o", "out.bam", inputs(kind)])


def test_bam_input_with_an_input_option_is_refused(inputs):
    plain = sorted_bytes(["--no-PG", inputs("bam")])
    assert sorted_bytes(["--no-PG", "--input-fmt-option", "nthreads=2", inputs("bam")]) == plain


# ---------------------------------------------------------------- FASTQ and FASTA in

READS = {
    "fastq": b"".join(b"@q%d/%d extra\nACGTN%s\n+\nIIIII%s\n" % (i % 40, i % 2 + 1, b"A" * (i % 7), b"#" * (i % 7))
                      for i in range(200)),
    "fasta": b"".join(b">q%d\nACGT\nACGTN\n" % (i % 40) for i in range(200)),
}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize("kind", READS)
@pytest.mark.parametrize("order", [["-n"], ["-N"], ["-M"]], ids=" ".join)
def test_unaligned_reads_sort_unlike_samtools(tmp_path, kind, packed, order):
    data = bamgen.bgzf(READS[kind]) if packed else READS[kind]
    path = tmp_path / "in"
    path.write_bytes(data)
    args = ["--no-PG", *order, "-O", "sam"]
    theirs = oracle_bytes(path, *args)
    for n in (1, 3):
        assert sorted_bytes([*args, "-@", n, path]) == theirs
        assert sorted_bytes([*args, "-@", n], stdin=data) == theirs


# ---------------------------------------------------------------- damaged input


HEAD = b"@HD\tVN:1.6\n@SQ\tSN:c\tLN:1000\n"
GOOD = b"r%d\t0\tc\t%d\t9\t4M\t*\t0\t0\tACGT\tIIII\n"
BAD_LINES = {
    "too_few_fields": b"bad\t0\tc\t5\n",
    "position_no_number": b"bad\t0\tc\tx\t9\t4M\t*\t0\t0\tACGT\tIIII\n",
    "flag_no_number": b"bad\tq\tc\t5\t9\t4M\t*\t0\t0\tACGT\tIIII\n",
    "cigar_unknown": b"bad\t0\tc\t5\t9\t4Q\t*\t0\t0\tACGT\tIIII\n",
    "cigar_and_seq_differ": b"bad\t0\tc\t5\t9\t5M\t*\t0\t0\tACGT\tIIII\n",
    "seq_and_qual_differ": b"bad\t0\tc\t5\t9\t4M\t*\t0\t0\tACGT\tIII\n",
    "tag_type_unknown": b"bad\t0\tc\t5\t9\t4M\t*\t0\t0\tACGT\tIIII\tXX:q:1\n",
    "name_too_long": b"b" * 300 + b"\t0\tc\t5\t9\t4M\t*\t0\t0\tACGT\tIIII\n",
    "empty_line": b"\n",
}


@pytest.mark.parametrize("where", [0, 150, 300], ids=["first", "middle", "last"])
@pytest.mark.parametrize("kind", BAD_LINES)
def test_broken_sam_line_passes_or_is_not_named(tmp_path, kind, where):
    lines = [GOOD % (i, 900 - i) for i in range(300)]
    lines.insert(where, BAD_LINES[kind])
    path = tmp_path / "in.sam"
    path.write_bytes(HEAD + b"".join(lines))
    assert oracle_sort(["-o", tmp_path / "x", path])[0] == 1, "samtools takes it"
    for n in (1, 3):
        for way in ([path], ["-"]):
            err = refused(tmp_path, ["-@", n, "-o", "out.bam", *way], r"record \d+",
                          **({} if way == [path] else {"stdin": path.read_bytes()}))
            told = int(re.search(r"record (\d+)", err)[1])
            assert told == where + 1 and "(line %d)" % (told + HEAD.count(b"\n")) in err
            assert way == ["-"] or "in.sam" in err
            assert len(err.splitlines()) <= 4, err


ODD_LINES = {
    "reference_unknown": b"r\t0\tnowhere\t5\t9\t4M\t*\t0\t0\tACGT\tIIII\n",
    "mate_reference_unknown": b"r\t4\t*\t0\t0\t*\tnowhere\t7\t0\tA\tI\n",
    "tag_cut": b"r\t0\tc\t5\t9\t4M\t*\t0\t0\tACGT\tIIII\tXX\n",
    "position_negative": b"r\t0\tc\t-5\t9\t4M\t*\t0\t0\tACGT\tIIII\n",
    "position_0": b"r\t0\tc\t0\t9\t4M\t*\t0\t0\tACGT\tIIII\n",
    "position_behind_the_end": b"r\t0\tc\t2000\t9\t4M\t*\t0\t0\tACGT\tIIII\n",
    "position_without_reference": b"r\t0\t*\t5\t9\t4M\t*\t0\t0\tACGT\tIIII\n",
    "flag_hex": b"r\t0x10\tc\t5\t9\t4M\t*\t0\t0\tACGT\tIIII\n",
    "name_empty": b"\t0\tc\t5\t9\t4M\t*\t0\t0\tACGT\tIIII\n",
    "carriage_return": b"r\t0\tc\t5\t9\t4M\t*\t0\t0\tACGT\tIIII\r\n",
    "mate_on_same": b"r\t4\tc\t5\t9\t*\t=\t5\t0\t*\t*\n",
    "no_sequence": b"r\t0\tc\t5\t9\t4M\t*\t0\t0\t*\t*\n",
    "tag_number_no_number": b"r\t0\tc\t5\t9\t4M\t*\t0\t0\tACGT\tIIII\tNM:i:x\n",
    "lower_case": b"r\t0\tc\t5\t9\t4M\t*\t0\t0\tacgn\tIIII\n",
    "flag_too_large": b"r\t99999\tc\t5\t9\t4M\t*\t0\t0\tACGT\tIIII\n",
    "quality_too_large": b"r\t0\tc\t5\t999\t4M\t*\t0\t0\tACGT\tIIII\n",
    "uracil": b"r\t0\tc\t5\t9\t4M\t*\t0\t0\tACGU\tIIII\n",
}


@pytest.mark.parametrize("kind", ODD_LINES)
def test_odd_sam_line_is_judged_otherwise_than_by_samtools(tmp_path, kind):
    path = tmp_path / "in.sam"
    path.write_bytes(HEAD + b"".join(GOOD % (i, 900 - i) for i in range(20)) + ODD_LINES[kind] + GOOD % (7, 7))
    for fmt in ("bam", "sam"):
        status, err = oracle_sort(["--no-PG", "-O", fmt, "-o", tmp_path / "theirs", path])
        p = run_sort(["--no-PG", "-O", fmt, path])
        assert p.returncode == status, p.stderr + err
        if status == 0:
            same_output(p.stdout, (tmp_path / "theirs").read_bytes(), fmt, tmp_path)


@pytest.mark.parametrize("kind", ["sam.gz", "gzip_sam", "cram_ref", "cram_noref", "raw", "gzip_bam"])
def test_cut_input_passes(inputs, reference, tmp_path, kind):
    """A file that is cut inside a line, block, member or container is refused, if samtools reports it, too."""
    data = inputs(kind).read_bytes()
    path = tmp_path / "in"
    told = 0
    for share in (0.1, 0.3, 0.5, 0.8, 0.95, 0.99):
        path.write_bytes(data[:int(len(data) * share)])
        if kind.startswith("gzip"):  # htslib sometimes treats the end of a cut gzip file as its end
            if oracle_sort(["--reference", reference, "-o", tmp_path / "x", path])[0] == 0:
                continue
        told += 1
        (tmp_path / "x").unlink(missing_ok=True)
        for n in (1, 3):
            refused(tmp_path, ["--reference", reference, "-@", n, "-o", "out.bam", "in"])
    assert told > 2


@pytest.mark.parametrize("kind,eof", [("sam.gz", 28), ("cram_ref", 38), ("cram_noref", 38)])
def test_missing_end_marker_of_another_format_is_an_error_or_not_told(inputs, reference, tmp_path, kind, eof):
    path = tmp_path / "in"
    path.write_bytes(inputs(kind).read_bytes()[:-eof])
    args = ["--no-PG", "--reference", reference, "-O", "sam"]
    status, err = oracle_sort([*args, "-o", tmp_path / "theirs", path])
    p = run_sort([*args, path])
    assert p.returncode == status, p.stderr + err
    assert "EOF" in p.stderr or status, p.stderr
    if status == 0:
        assert p.stdout == (tmp_path / "theirs").read_bytes()


def test_flipped_byte_in_cram_is_refused(inputs, reference, tmp_path):
    """A flipped byte at any place is refused: htslib compares the checksums of data, and we those of headers."""
    data = inputs("cram_ref").read_bytes()
    path = tmp_path / "in.cram"
    for at in range(len(data) // 12, len(data) - 60, len(data) // 24):
        path.write_bytes(data[:at] + bytes([data[at] ^ 0x20]) + data[at + 1:])
        refused(tmp_path, ["--reference", reference, "-@", 2, "-o", "out.bam", "in.cram"], lines=99, env=HTSLIB_LEAKS)


def test_cram_without_its_reference_passes(inputs, tmp_path):
    data = inputs("cram_ref").read_bytes()
    ref = re.search(rb"UR:(\S+)", view(inputs("cram_ref"), "-H"))
    path = tmp_path / "in.cram"
    path.write_bytes(data)
    hidden = None
    if ref and os.path.exists(ref[1]):  # htslib would find it through the header
        hidden = ref[1] + b".hidden"
        os.rename(ref[1], hidden)
    try:
        refused(tmp_path, ["-@", 2, "-o", "out.bam", "in.cram"], lines=99)    # most of them come from htslib
    finally:
        if hidden:
            os.rename(hidden, ref[1])


# ---------------------------------------------------------------- headers

HEADERLESS = {
    "unmapped": b"".join(b"r%d\t4\t*\t0\t0\t*\t*\t0\t0\tACGT\tIIII\n" % (99 - i) for i in range(50)),
    "mapped": b"".join(GOOD % (i, 99 - i) for i in range(50)),
    "hd_only": b"@HD\tVN:1.6\n" + b"".join(b"r%d\t4\t*\t0\t0\t*\t*\t0\t0\t*\t*\n" % (99 - i) for i in range(50)),
    "header_only": HEAD,
    "no_last_newline": HEAD + (GOOD % (1, 9) + GOOD % (2, 3))[:-1],
    "crlf": (HEAD + GOOD % (1, 9) + GOOD % (2, 3)).replace(b"\n", b"\r\n"),
    "co_between": HEAD + GOOD % (1, 9) + b"@CO\tlate\n" + GOOD % (2, 3),
    "name_with_at": HEAD + GOOD % (1, 9) + (GOOD % (2, 3)).replace(b"r2", b"@r2"),
}


@pytest.mark.parametrize("kind", HEADERLESS)
def test_odd_sam_file_is_judged_otherwise_than_by_samtools(tmp_path, kind):
    path = tmp_path / "in.sam"
    path.write_bytes(HEADERLESS[kind])
    for args in (["-n", "-O", "sam"], ["-O", "bam"]):
        status, err = oracle_sort(["--no-PG", *args, "-o", tmp_path / "theirs", path])
        for n in (1, 3):
            p = run_sort(["--no-PG", *args, "-@", n, path])
            if "no program could read the file" in p.stderr:
                assert (status, p.returncode) == (0, 1), p.stderr
                assert oracle_call("view", ["-o", os.devnull, tmp_path / "theirs"])[0] == 1
                continue
            assert p.returncode == status, p.stderr + err
            if status == 0:
                same_output(p.stdout, (tmp_path / "theirs").read_bytes(), args[-1], tmp_path)


@pytest.mark.parametrize("fmt", ["bam", "sam", "cram"])
def test_a_hundred_thousand_references_fail_in_another_format(tmp_path, fmt):
    path = tmp_path / "in.sam"
    path.write_bytes(b"@HD\tVN:1.6\n" + b"".join(b"@SQ\tSN:scaffold_%d\tLN:%d\n" % (i, i % 999 + 100) for i in range(100000))
                     + b"".join(b"r%d\t0\tscaffold_%d\t%d\t9\t4M\t*\t0\t0\tACGT\tIIII\n" % (i, i * 7919 % 100000, i % 50 + 1)
                                for i in range(500)))
    args = ["--no-PG", "-O", fmt] + ["--output-fmt-option", "no_ref=1"] * (fmt == "cram")
    theirs = oracle_bytes(path, *args)
    same_output(sorted_bytes([*args, "-@", 2, path]), theirs, fmt, tmp_path)


FAR = b"@HD\tVN:1.6\n@SQ\tSN:long\tLN:4000000000\n@SQ\tSN:c\tLN:1000\n" + b"".join(
    b"r%d\t%d\tlong\t%d\t9\t4M\t=\t%d\t0\tACGT\tIIII\n" % (i, i % 2 * 16, p, p + 5) for i, p in enumerate(
        (3999999000, 5, 2147483646, 2147483647, 2147483648, 2147483649, 3000000000, 4, 2147483648)))


@pytest.mark.parametrize("fmt", ["sam", "sam.gz"])
def test_position_beyond_2_gib_is_refused_as_sam(tmp_path, fmt):
    """SAM can hold it, and samtools sorts it."""
    path = tmp_path / "in.sam"
    path.write_bytes(FAR)
    theirs = oracle_bytes(path, "--no-PG", "-O", fmt)
    for n in (1, 3):
        same_output(sorted_bytes(["--no-PG", "-O", fmt, "-@", n, path]), theirs, fmt, tmp_path)


def test_template_length_beyond_2_gib_is_refused_as_sam(tmp_path):
    path = tmp_path / "in.sam"
    path.write_bytes(HEAD + b"r\t0\tc\t5\t9\t4M\t*\t0\t99999999999\tACGT\tIIII\n")
    assert sorted_bytes(["--no-PG", "-O", "sam", path]) == oracle_bytes(path, "--no-PG", "-O", "sam")


@pytest.mark.parametrize("fmt", ["sam", "bam", "cram"])
def test_position_beyond_2_gib_is_cut(tmp_path, fmt):
    """If the format cannot hold it, it must be refused, with a message."""
    path = tmp_path / "in.sam"
    path.write_bytes(FAR)
    for n in (1, 3):
        p = run_sort(["--no-PG", "-O", fmt, "-@", n, "-o", tmp_path / "out", path])
        if p.returncode == 0:
            assert fmt == "sam" and b"\t3999999000\t" in (tmp_path / "out").read_bytes()
            continue
        assert p.returncode == 1 and re.search("fit|too (long|large)", p.stderr), p.stderr
        assert os.listdir(tmp_path) == ["in.sam"]


def test_long_reference_that_no_read_reaches_is_refused_as_sam(tmp_path):
    path = tmp_path / "in.sam"
    path.write_bytes(b"@SQ\tSN:long\tLN:4000000000\n" + b"".join(
        b"r%d\t0\tlong\t%d\t9\t4M\t*\t0\t0\tACGT\tIIII\n" % (i, 90 - i) for i in range(50)))
    theirs = oracle_bytes(path, "--no-PG", "-O", "sam")
    assert sorted_bytes(["--no-PG", "-O", "sam", path]) == theirs


# ---------------------------------------------------------------- long records


def long_reads():
    """Longer than a block, and two of several MB, with values that SAM can also hold."""
    r = bamgen.rng("long in all formats")
    sizes = [r.choice((4, 100, 43000, 43600, 43650, 66000)) for _ in range(30)] + [2400000, 3600000]
    r.shuffle(sizes)
    return bamgen.header(), [bamgen.record("L%d" % i, 0, 0, r.randint(0, 20), seq="GATTACAT" * (n // 8),
                                           qual=bytes([30 + i % 9]) * (n // 8 * 8)) for i, n in enumerate(sizes)]


LONG = {"cg_long": bamgen.CORPUS["cg_long"], "long_in_all_formats": long_reads}


@pytest.mark.parametrize("fmt", ["bam", "sam", "cram"])
@pytest.mark.parametrize("kind", ["bam", "sam", "cram_noref"])
@pytest.mark.parametrize("name", LONG)
def test_long_cigar_or_record_is_lost_on_the_way(made, tmp_path, name, kind, fmt):
    if (name, kind) == ("cg_long", "cram_noref"):
        needs_htslib(1, 16)  # older ones cannot read such CRAM
    bam = made(name, content=LONG[name])
    path = bam if kind == "bam" else convert(bam, kind, tmp_path / "in")
    args = ["--no-PG", "-O", fmt, "--output-fmt-option", "no_ref=1"][:5 if fmt == "cram" else 3]
    theirs = oracle_bytes(path, *args, scratch=tmp_path / "x")
    for n in (1, 3):
        same_output(sorted_bytes([*args, "-@", n, path]), theirs, fmt, tmp_path)


def test_cigar_of_more_than_65535_operations_is_cut_in_bam(tmp_path):
    """The CIGAR goes from SAM, which has no limit, into the CG tag."""
    n = 70001
    cigar = b"1M1I" * (n // 2) + b"1M"
    path = tmp_path / "in.sam"
    path.write_bytes(b"@SQ\tSN:c\tLN:1000000\n" + b"".join(
        b"r%d\t0\tc\t%d\t9\t%s\t*\t0\t0\t%s\t*\n" % (i, 9 - i, cigar, b"A" * n) for i in range(3)))
    out = read_bam(sorted_bytes(["--no-PG", path])).records()
    assert [struct.unpack_from("<H", x, 16)[0] for x in out] == [2, 2, 2]
    assert all(b"CGBI" + struct.pack("<I", n) in x for x in out)


# ---------------------------------------------------------------- reference


def test_missing_reference_is_told_only_after_reading(inputs, tmp_path):
    for args in (["-O", "cram", "-o", "out.cram", inputs("bam")], ["-o", "out.bam", inputs("cram_ref")]):
        refused(tmp_path, ["--reference", "missing.fa", *args], "missing.fa", env=HTSLIB_LEAKS)


def test_index_of_reference_is_left_half_written(inputs, reference, tmp_path):
    """There is no .fai yet: it is made, or not needed; the sort works."""
    (tmp_path / "ref.fa").write_bytes(reference.read_bytes())
    out = sorted_bytes(["--no-PG", "--reference", tmp_path / "ref.fa", "-O", "sam", inputs("cram_ref")])
    assert out == sorted_bytes(["--no-PG", "--reference", reference, "-O", "sam", inputs("cram_ref")])
    assert set(os.listdir(tmp_path)) <= {"ref.fa", "ref.fa.fai"}


def test_end_of_line_in_a_tag_crashes(tmp_path, threads):
    """BAM may contain them. samtools writes invalid SAM; with several threads it crashes if it makes an index."""
    recs = [bamgen.record("r%d" % i, 0, 0, i, seq="ACGT", cigar=[(4, "M")], tags=b"XXZa\nb\0") for i in range(900)]
    (tmp_path / "in.bam").write_bytes(bamgen.bgzf(bamgen.header() + b"".join(recs)))
    for args in (["--write-index", "-o", "out.sam.gz"], ["-o", "out.sam"]):
        told = refused(tmp_path, ["--no-PG", "-@", threads, *args, "in.bam"], r"record r\d+ has a tag")
        assert told.count("\n") == 1, told
