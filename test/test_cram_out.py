# SPDX-License-Identifier: MIT
"""CRAM gives back what was put into it, whatever htslib is linked: old ones crash, hang or change bases where reads lie
beyond their reference, have no SEQ, or have no reference at all."""

import os
import re

import pysam
import pytest

import bamgen
from conftest import htslib_version, run, run_sort, sorted_bytes
from test_safety import refused

os.environ["REF_PATH"] = "/nonexistent"  # no reference from the network, here and in the oracle

REFS = [("a", 3000), ("b", 2000), ("c", 1000)]


@pytest.fixture(scope="module")
def fasta(tmp_path_factory):
    path, r = tmp_path_factory.mktemp("fasta") / "ref.fa", bamgen.rng("cram out")
    path.write_text("".join(">%s\n%s\n" % (name, bamgen.bases(r, n)) for name, n in REFS))
    pysam.faidx(str(path))
    return path


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
    path.write_bytes(bamgen.bgzf(bamgen.header("@HD\tVN:1.6\n" + bamgen.sq_text(REFS) + text, REFS) + b"".join(records)))
    return path


def lines(path, fasta=None):
    """The records as SAM, with sorted tags and without those that CRAM makes of the reference."""
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
    beyond, missing, instead = "begins behind the end of its reference", "are not to be had", "no_ref=1 stands for it"
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


def test_reference_of_the_cache_is_not_used(tmp_path, fasta):
    """By its checksum, as REF_PATH says; the file then needs the reference to be read."""
    text = "@HD\tVN:1.6\n"
    with pysam.FastaFile(str(fasta)) as file:
        for name, n in REFS:
            sum = os.popen("printf %%s %s | md5sum" % file.fetch(name)).read().split()[0]
            (tmp_path / "cache" / sum[:2]).mkdir(parents=True, exist_ok=True)
            (tmp_path / "cache" / sum[:2] / sum[2:]).write_text(file.fetch(name))
            text += "@SQ\tSN:%s\tLN:%d\tM5:%s\n" % (name, n, sum)
    recs = [r for r in plain(bamgen.rng("cache"))]
    (tmp_path / "in.bam").write_bytes(bamgen.bgzf(bamgen.header(text, REFS) + b"".join(recs)))
    p = run_sort(["-O", "cram", "-o", tmp_path / "out.cram", tmp_path / "in.bam"],
                 env={"REF_PATH": "%s/cache/%%2s/%%s" % tmp_path})
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


@pytest.mark.parametrize("options, wanted", [("", b"\3\1"), (",version=3.0", b"\3\0"), (",version=2.1", b"\2\1"),
                                             (",version=3.1", b"\3\1")])
def test_version_of_cram_is_not_that_of_samtools(tmp_path, options, wanted):
    """3.1 unless the user has another, or htslib has it as a draft only."""
    path = write_bam(tmp_path / "in.bam", plain(bamgen.rng("version"), 20))
    out = sorted_bytes(["-O", "cram,no_ref=1" + options, path])
    if htslib_version() < (1, 18) and not options:
        wanted = b"\3\0"
    assert (out[:4], out[4:6]) == (b"CRAM", wanted)
    assert bool(re.search("CRAM .* 3.0", run(["--version"]).stdout.decode())) == (htslib_version() < (1, 18))
