# SPDX-License-Identifier: MIT
"""CRAM returns the records that were written to it, with every htslib: old ones crash, hang or change bases if reads
are beyond their reference, have no SEQ, or have no reference at all."""

import hashlib
import os
import re
import shutil

import pysam
import pytest

import bamgen
from conftest import FASTA_REFS, htslib_version, oracle_sort, run, run_sort, sorted_bytes
from test_safety import refused

os.environ["REF_PATH"] = "/nonexistent"  # no reference from the network, here and in the oracle



def plain(r, n=300):
    return [bamgen.record("q%d" % i, 0, r.randrange(3), r.randrange(900), seq=bamgen.bases(r, 50), cigar=[(50, "M")])
            for i in range(n)]


def mapped(r, tid, first):
    return [bamgen.record("m%d" % i, 0, tid, first + i, seq=bamgen.bases(r, 50), cigar=[(50, "M")]) for i in range(40)]


def unmapped(r, tid, first, seq=True):
    return [bamgen.record("u%d" % i, 4, tid, first + i if tid >= 0 else -1, 0, seq=bamgen.bases(r, 50) if seq else "")
            for i in range(40)]


READS = {
    "plain": plain,
    "some_without_place": lambda r: plain(r) + unmapped(r, -1, 0),
    "without_place_or_seq": lambda r: unmapped(r, -1, 0, False),
    "some_without_place_or_seq": lambda r: plain(r) + unmapped(r, -1, 0, False),
    "placed_without_seq": lambda r: plain(r) + unmapped(r, 0, 100, False),
    "over_the_end": lambda r: plain(r) + mapped(r, 2, 955),
    "beyond": lambda r: mapped(r, 2, 1500),
    "some_beyond": lambda r: plain(r) + mapped(r, 2, 1500),
    "far_beyond": lambda r: plain(r) + mapped(r, 2, 150_000_000),
    "placed_beyond": lambda r: unmapped(r, 2, 1500),
    "some_placed_beyond": lambda r: plain(r) + unmapped(r, 2, 1500),
}
WAYS = {"alone": (False, []), "fasta": (True, []), "no_ref": (True, ["no_ref=1"]), "embed_ref": (True, ["embed_ref=1"]),
        "consensus": (False, ["embed_ref=2"]), "3.0": (True, ["version=3.0"])}


def write_bam(path, records, text=""):
    path.write_bytes(bamgen.bgzf(bamgen.header("@HD\tVN:1.6\n" + bamgen.sq_text(FASTA_REFS) + text, FASTA_REFS) + b"".join(records)))
    return path


def lines(path, fasta=None):
    """The records as SAM, with sorted tags and without those that CRAM derives from the reference."""
    with pysam.AlignmentFile(path, reference_filename=fasta and str(fasta), check_sq=False) as file:
        rows = [r.to_string().split("\t") for r in file]
    return [row[:11] + sorted(t for t in row[11:] if t[:2] not in ("MD", "NM")) for row in rows]


@pytest.mark.parametrize("order", [[], ["-n"]], ids=["coordinate", "name"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("reads", READS)
def test_cram_gives_other_records_back(tmp_path, fasta, reads, way, order):
    path = write_bam(tmp_path / "in.bam", READS[reads](bamgen.rng("cram out " + reads)))
    with_fasta, options = WAYS[way]
    args = ["--no-PG", "-@", 2, *order]
    (tmp_path / "sorted.bam").write_bytes(sorted_bytes([*args, path]))
    p = run_sort([*args, *(["--reference", fasta] if with_fasta else []), "-O", ",".join(["cram", *options]),
                  "-o", "out.cram", "in.bam"], cwd=tmp_path)
    assert p.returncode == 0, p.stderr
    assert lines(tmp_path / "out.cram", fasta if with_fasta else None) == lines(tmp_path / "sorted.bam")


def test_user_is_not_told_that_the_reference_is_left_out(tmp_path, fasta):
    def told(reads, *args):
        path = write_bam(tmp_path / "in.bam", READS[reads](bamgen.rng("told")))
        return run_sort(["-O", "cram", "-o", tmp_path / "out.cram", *args, path]).stderr
    beyond, missing, instead = "begins after the end of its reference", "are not available", "no_ref=1 is used instead"
    assert beyond in told("some_beyond", "--reference", fasta)
    assert beyond not in told("some_beyond", "--output-fmt-option", "no_ref=1")
    assert "warning" not in told("over_the_end", "--reference", fasta)
    old = htslib_version() < (1, 24)
    assert (missing in told("plain")) == old
    assert (instead in told("plain", "--output-fmt-option", "embed_ref=2")) == old


def test_reference_that_the_fasta_lacks_is_made_of_reads(tmp_path, fasta):
    few = tmp_path / "few.fa"
    few.write_text("".join(open(fasta).readlines()[:4]))
    pysam.faidx(str(few))
    path = write_bam(tmp_path / "in.bam", READS["over_the_end"](bamgen.rng("lacks")))
    for order in [], ["-n"]:
        (tmp_path / "sorted.bam").write_bytes(sorted_bytes(["--no-PG", *order, path]))
        p = run_sort([*order, "--reference", few, "-O", "cram", "-o", tmp_path / "out.cram", path])
        assert p.returncode == 0, p.stderr
        assert lines(tmp_path / "out.cram", few) == lines(tmp_path / "sorted.bam")


@pytest.mark.parametrize("variable", ["REF_PATH", "REF_CACHE"])
def test_reference_of_the_cache_is_not_used(tmp_path, fasta, sums, variable):
    """The reference is found by its checksum, and the file cannot be read without it."""
    with pysam.FastaFile(str(fasta)) as file:
        for name, _ in FASTA_REFS:
            (tmp_path / "cache" / sums[name][:2]).mkdir(parents=True, exist_ok=True)
            (tmp_path / "cache" / sums[name][:2] / sums[name][2:]).write_text(file.fetch(name))
    with_sums(tmp_path / "in.bam", plain(bamgen.rng("cache")), sums)
    p = run_sort(["-O", "cram", "-o", tmp_path / "out.cram", tmp_path / "in.bam"],
                 env={"REF_PATH": "", variable: "%s/cache/%%2s/%%s" % tmp_path})
    assert p.returncode == 0 and "warning" not in p.stderr, p.stderr
    with pysam.AlignmentFile(tmp_path / "out.cram") as file, pytest.raises(OSError):
        list(file)
    (tmp_path / "sorted.bam").write_bytes(sorted_bytes([tmp_path / "in.bam"]))
    assert lines(tmp_path / "out.cram", fasta) == lines(tmp_path / "sorted.bam")


def test_read_group_that_the_header_lacks_is_dropped(tmp_path):
    recs = [bamgen.record("q%d" % i, 0, 0, i, seq="ACGT", cigar=[(4, "M")], tags=b"RGZ%s\0" % group)
            for i, group in enumerate([b"known", b"other"])]
    args = ["--no-PG", "-O", "cram,no_ref=1", "-o", "out.cram", "in.bam"]
    write_bam(tmp_path / "in.bam", recs, "@RG\tID:known\n")
    if htslib_version() < (1, 16):
        refused(tmp_path, args, "record q1 is in a read group that the header lacks")
        write_bam(tmp_path / "in.bam", recs[:1], "@RG\tID:known\n")
    p = run_sort(args, cwd=tmp_path)
    assert p.returncode == 0, p.stderr
    assert lines(tmp_path / "out.cram") == lines(tmp_path / "in.bam")


def cram_2(folder, order, seq, flags, reference, options):
    """Sorts mapped reads with qualities, and for each of flags one with this SEQ and one without."""
    r = bamgen.rng("cram 2")
    full = [bamgen.record("q%d" % i, 0, 0, i, seq=bamgen.bases(r, 9), qual=bytes(range(9))) for i in range(40)]
    bare = [bamgen.record("bare%d" % f, f, 0, 9, 0, seq=seq, cigar=[] if f & 4 else [(4, "M")]) for f in flags]
    write_bam(folder / "in.bam", bare + full)
    (folder / "sorted.bam").write_bytes(sorted_bytes(["--no-PG", *order, folder / "in.bam"]))
    return ["--no-PG", *order, *(["--reference", reference] if reference else []), "-o", "out.cram", "in.bam",
            "-O", "cram,version=2.1" + "".join("," + o for o in options)]


@pytest.mark.parametrize("seq", ["", "ACGT"], ids=["no SEQ", "no qualities"])
@pytest.mark.parametrize("order", [[], ["-n"]], ids=["coordinate", "name"])
@pytest.mark.parametrize("way", sorted(set(WAYS) - {"3.0"}))
def test_cram_2_gives_reads_what_they_lack(tmp_path, fasta, way, order, seq):
    reference = fasta if WAYS[way][0] else None
    keeps = seq and way in ("fasta", "embed_ref")
    if not keeps:
        refused(tmp_path, cram_2(tmp_path, order, seq, [0, 4], reference, WAYS[way][1]),
                "record bare0 has no %s" % ("qualities" if seq else "SEQ"))
    p = run_sort(cram_2(tmp_path, order, seq, [0, 4] if keeps else [4], reference, WAYS[way][1]), cwd=tmp_path)
    assert p.returncode == 0, p.stderr
    assert lines(tmp_path / "out.cram", reference) == lines(tmp_path / "sorted.bam")


@pytest.mark.parametrize("options, wanted", [("", b"\3\1"), (",version=3.0", b"\3\0"), (",version=2.1", b"\2\1"),
                                             (",version=3.1", b"\3\1")])
def test_version_of_cram_is_not_that_of_samtools(tmp_path, options, wanted):
    """3.1, unless the user requests another version, or htslib only has it as a draft."""
    path = write_bam(tmp_path / "in.bam", [bamgen.record("q%d" % i, 0, 0, i, seq="ACGT", qual=b"IIII") for i in range(20)])
    out = sorted_bytes(["-O", "cram,no_ref=1" + options, path])
    if htslib_version() < (1, 18) and not options:
        wanted = b"\3\0"
    assert (out[:4], out[4:6]) == (b"CRAM", wanted)
    assert bool(re.search("CRAM .* 3.0", run(["--version"]).stdout.decode())) == (htslib_version() < (1, 18))


# ------------------------------------------------------------ sequences that are not those of the header


def md5_of(seq):
    return hashlib.md5(seq.upper().encode()).hexdigest()


@pytest.fixture(scope="module")
def sums(fasta):
    with pysam.FastaFile(str(fasta)) as file:
        return {name: md5_of(file.fetch(name)) for name, _ in FASTA_REFS}


@pytest.fixture
def other(tmp_path, fasta):
    """The FASTA with some other bases in b, and all of it in lower case."""
    with pysam.FastaFile(str(fasta)) as file:
        seqs = {name: file.fetch(name) for name, _ in FASTA_REFS}
    seqs["b"] = seqs["b"][:300] + bamgen.bases(bamgen.rng("other"), 900) + seqs["b"][1200:]
    path = tmp_path / "other.fa"
    path.write_text("".join(">%s\n%s\n" % (name, seq.lower()) for name, seq in seqs.items()))
    pysam.faidx(str(path))
    return path, md5_of(seqs["b"])


def with_sums(path, records, sums):
    text = "@HD\tVN:1.6\n" + "".join("@SQ\tSN:%s\tLN:%d\tM5:%s\n" % (name, n, sums[name]) for name, n in FASTA_REFS)
    path.write_bytes(bamgen.bgzf(bamgen.header(text, FASTA_REFS) + b"".join(records)))
    return path


def like_the_reference(fasta, tids, n=600):
    """Reads in no order, so that slices get several references."""
    r = bamgen.rng("like")
    with pysam.FastaFile(str(fasta)) as file:
        seqs = [file.fetch(name) for name, _ in FASTA_REFS]
    places = [(r.choice(tids), r.randrange(200, 900)) for _ in range(n)]
    return [bamgen.record("q%03d" % i, 0, tid, pos, seq=seqs[tid][pos:pos + 60], cigar=[(60, "M")])
            for i, (tid, pos) in enumerate(places)]


def as_cram(bam, path, fasta, *options):
    with pysam.AlignmentFile(bam) as file, pysam.AlignmentFile(
            path, "wc", template=file, reference_filename=str(fasta), format_options=[o.encode() for o in options]) as out:
        for record in file:
            out.write(record)
    return path


@pytest.mark.parametrize("order", [[], ["-n"]], ids=["coordinate", "name"])
def test_cram_is_written_by_another_reference(tmp_path, fasta, sums, other, order):
    path, sum = other
    with_sums(tmp_path / "in.bam", like_the_reference(fasta, (0, 1, 2)), sums)
    args = ["-@", 2, *order, "-O", "cram", "-o", "out.cram", "in.bam"]
    refused(tmp_path, ["--reference", path, *args], "reference b of .*other.fa is not the one of the header: the MD5 of its "
            "sequence is %s, and the header has M5:%s" % (sum, sums["b"]), lines=60)
    assert run_sort(["--reference", fasta, *args], cwd=tmp_path).returncode == 0
    for option in "no_ref=1", "ignore_md5=1":
        assert run_sort(["--reference", path, "--output-fmt-option", option, *args], cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("way", ["file", "pipe", "in turn"])
@pytest.mark.parametrize("shape", ["mixed", "single"])
def test_cram_is_read_by_another_reference(tmp_path, fasta, sums, other, shape, way):
    """In slices with several references htslib compares nothing."""
    path, sum = other
    bam = with_sums(tmp_path / "in.bam", like_the_reference(fasta, (0, 1, 2) if shape == "mixed" else (1,)), sums)
    cram = as_cram(bam, tmp_path / "in.cram", fasta, "seqs_per_slice=100", "multi_seq_per_slice=%d" % (shape == "mixed"))
    kw = {"stdin": cram.read_bytes()} if way == "pipe" else {}
    args = ["-@", 1 if way == "in turn" else 3, "-o", "out.bam", *([] if kw else ["in.cram"])]
    for told in ["--reference", path], ["--input-fmt-option", "reference=%s" % path, "--reference", fasta]:
        refused(tmp_path, [*told, *args], "reference b of .*other.fa is not the one of the header: the MD5 of its "
                "sequence is %s, and the header has M5:%s" % (sum, sums["b"]), lines=60, **kw)
    for told in ["--reference", fasta], ["--input-fmt-option", "reference=%s" % fasta, "--reference", path]:
        p = run_sort(["--no-PG", *told, *args], cwd=tmp_path, **kw)
        assert p.returncode == 0, p.stderr
        assert sorted(lines(tmp_path / "out.bam")) == sorted(lines(bam))


@pytest.mark.parametrize("way", ["no_ref=1", "embed_ref=1", "unused"])
def test_reference_that_is_not_used_is_compared(tmp_path, fasta, sums, other, way):
    tids = (0, 2) if way == "unused" else (0, 1, 2)
    bam = with_sums(tmp_path / "in.bam", sorted(like_the_reference(fasta, tids), key=lambda r: r[4:12]), sums)
    options = ["multi_seq_per_slice=1"] if way == "unused" else [way, "multi_seq_per_slice=1"] if way == "no_ref=1" else [way]
    as_cram(bam, tmp_path / "in.cram", fasta, "seqs_per_slice=100", *options)
    p = run_sort(["--reference", other[0], "-@", 2, "-o", "out.bam", "in.cram"], cwd=tmp_path)
    assert p.returncode == 0, p.stderr
    assert sorted(lines(tmp_path / "out.bam")) == sorted(lines(bam))
    if way == "unused":
        assert run_sort(["--reference", other[0], "-O", "cram", "-o", "out.cram", "in.bam"], cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("threads", [1, 3])
def test_reference_that_is_missing_is_told_as_damage(tmp_path, fasta, sums, threads):
    with_sums(tmp_path / "in.bam", like_the_reference(fasta, (0, 1, 2)), sums)
    copy = tmp_path / "copy.fa"
    shutil.copy(fasta, copy)
    as_cram(tmp_path / "in.bam", tmp_path / "in.cram", copy, "seqs_per_slice=100")
    copy.unlink()
    refused(tmp_path, ["-@", threads, "-o", "out.bam", "in.cram"], "record 1 cannot be read: its reference "
            "may be missing, as a was not found; .*--reference", lines=40)


def test_position_without_reference_is_written(tmp_path):
    """CRAM of later htslib has none."""
    (tmp_path / "in.sam").write_text("@HD\tVN:1.6\n@SQ\tSN:c1\tLN:1000\na\t4\t*\t100\t0\t*\t*\t0\t0\tACGT\tIIII\n")
    args = ["--no-PG", "-O", "cram,no_ref=1", "in.sam"]
    assert run_sort(["-o", "out.cram", *args], cwd=tmp_path).returncode == 0
    lines = run_sort(["--no-PG", "-O", "sam", "out.cram"], cwd=tmp_path).stdout
    assert b"\na\t4\t*\t0\t0\t" in lines
    status, err = oracle_sort(["-o", tmp_path / "theirs.cram", *args[:-1], tmp_path / "in.sam"])
    assert status == 0, err
    assert run_sort(["--no-PG", "-O", "sam", "theirs.cram"], cwd=tmp_path).stdout == lines
