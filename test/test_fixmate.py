# SPDX-License-Identifier: MIT
"""`samtools fixmate` against samtools 1.24: records, tags and their order, header lines, exit status. BIN is not
compared: samtools does not update that of an unmapped read whose place it changes."""

import os
import pathlib
import random
import re

import pytest

import bamgen
import fixmategen
from conftest import (PRECIOUS, REAL_DIR, SANITIZED, MORE_THREADS, bam_files, needs_htslib, oracle_call, read_bam,
                      run, same_header, same_lines, sees_fault)

REAL = bam_files(REAL_DIR, "shared/real") if REAL_DIR.exists() else []
MODIFIED = ["HG002-SRF.m84011_220902_175841_s1.GRCh38.bam", "ecoli_reg.sorted.bam"]
# The number of random inputs of each of these tests.
MANY = int(os.environ.get("FIXMATE_INPUTS", 3))


def ours(args, **kw):
    return run(["fixmate", *args], **kw)


def fixed(path, *args, **kw):
    p = ours(["--no-PG", *args, path, "-"], **kw)
    assert p.returncode == 0, p.stderr
    return p.stdout


def oracle(path, *args):
    """The file that samtools 1.24 makes, as bytes."""
    out = pathlib.Path("%s.theirs" % path)
    status, err = oracle_call("fixmate", ["--no-PG", *args, path, out])
    assert status == 0, err
    data = out.read_bytes()
    out.unlink()
    return data


@pytest.fixture
def templates(tmp_path):
    """templates(n, seed) -> path of a SAM file."""

    def make(n, seed, name="templates.sam"):
        path = tmp_path / name
        path.write_text(fixmategen.sam(n, seed))
        return path

    return make


def as_sam(data):
    return data.decode("latin-1")


# ------------------------------------------------------------------ records


@pytest.mark.parametrize("part", range(2))
def test_base_modifications_are_cut_otherwise(tmp_path, part):
    for seed in range(part, part + 2 * MANY, 2):
        r, path = random.Random(seed), tmp_path / "mods.sam"
        path.write_text(fixmategen.mods_sam(400, seed))
        args = ["-M", *fixmategen.options(r)]
        mine = fixed(path, "-O", "sam", "-@", r.choice(MORE_THREADS), "--total-memory", r.choice(["64M", "200M"]), *args)
        same_lines(as_sam(mine), as_sam(oracle(path, "-O", "sam", *args)), "seed %d, %s" % (seed, args))


MM, ML = "MM:Z:C+m,0,1,0,0;", "ML:B:C,10,20,30,40"
CUT = ["MM:Z:C+m,1,0,0;", "ML:B:C,20,30,40", "MN:i:8"]


@pytest.mark.parametrize("flags,tags,wanted", [
    ((0, 2048), ["MN:i:10", MM, ML, "zz:f:1.5"], [*CUT[:2], "zz:f:1.5", CUT[2]]),
    ((65, 2113, 129), [MM, ML, "MN:i:10"], [*CUT[:2], "MQ:i:60", "MC:Z:10M", CUT[2]]),
    ((0, 2064), [MM, ML], ["MM:Z:C+m,0,1,0;", "ML:B:C,10,20,30", CUT[2]]),
    ((0, 2048), [MM.replace("m", "mh?"), ML + ",1,2,3,4"], ["MM:Z:C+mh?,1,0,0;", "ML:B:C,30,40,1,2,3,4", CUT[2]]),
    ((0, 2048), ["MM:Z:C+h?;C+m?;", "ML:B:C", "zz:f:1.5"], ["MM:Z:C+h?;C+m?;", "ML:B:C", "zz:f:1.5", CUT[2]]),
    ((0, 2048), [MM, ML.replace("C", "S"), "zz:f:1.5"], [CUT[0], "zz:f:1.5", CUT[2]]),
    ((0, 2048), [MM, ML + ",1", "zz:f:1.5"], ["zz:f:1.5"]),
    ((0, 2048), [MM, ML, "XA:A:x", MM], ["XA:A:x"]),
    ((0, 2048), [], []),
], ids=["MN first", "pair", "reverse", "list of two", "no numbers", "ML of another type", "ML too long", "MM twice", "none"])
def test_what_samtools_damages_is_not_mended(tmp_path, flags, tags, wanted):
    """samtools writes tags that cannot be read, or fails."""
    seq, path = "ACCGTCCACT", tmp_path / "in.sam"
    line = "t\t%d\tc1\t9\t60\t%s\t*\t0\t0\t%s\t*%s\n"
    path.write_text(fixmategen.HEADER + "".join(
        line % (flag, "2H8M", fixmategen.reverse(seq)[2:] if flag & 16 else seq[2:], "".join("\t" + t for t in tags))
        if flag & 2048 else line % (flag, "10M", seq, "") for flag in flags))
    made = fixed(path, "-M", "-O", "sam").decode().splitlines()[-len(flags):]
    assert [m.split("\t")[11:] for m in made if int(m.split("\t")[1]) & 2048] == [wanted]


def test_length_that_is_no_number_is_taken(tmp_path):
    path, out = tmp_path / "in.sam", tmp_path / "out.bam"
    path.write_text(fixmategen.HEADER + "t\t0\tc1\t9\t60\t1M\t*\t0\t0\tA\tI\tMM:Z:\tMN:Z:1\n")
    p = ours(["-M", path, out])
    assert p.returncode == 1 and "record 1 (t) or" in p.stderr and "MN is not a number" in p.stderr and not out.exists()
    assert oracle_call("fixmate", ["-M", path, out])[0] != 0 and ours([path, out]).returncode == 0


@pytest.mark.parametrize("part", range(6))
def test_records_are_others(templates, part):
    for seed in range(part, part + 6 * MANY, 6):
        r = random.Random(seed)
        path, args = templates(400, seed), fixmategen.options(r)
        mine = fixed(path, "-O", "sam", "-@", r.choice(MORE_THREADS), "--total-memory", r.choice(["64M", "200M"]), *args)
        same_lines(as_sam(mine), as_sam(oracle(path, "-O", "sam", *args)), "seed %d, %s" % (seed, args))


@pytest.mark.parametrize("option", ["-r", "-p", "-c", "-m", "-u"])
def test_option_does_something_else(templates, option):
    path = templates(300, option)
    mine = fixed(path, option)
    assert [r[:14] + r[16:] for r in read_bam(mine).records()] == \
        [r[:14] + r[16:] for r in read_bam(oracle(path, option)).records()]


@pytest.mark.parametrize("words", ["all", "off", "on", "none,pos", "cigarx", "pos,unmap,cigar", "*,cigarx"])
def test_sanitizing_does_something_else(templates, words):
    path = templates(300, words)
    mine = fixed(path, "-O", "sam", "--sanitize", words)
    same_lines(as_sam(mine), as_sam(oracle(path, "-O", "sam", "-z", words)), words)


def test_read_without_a_base_on_its_reference_is_unmapped(tmp_path):
    """The reads begin after the end of their reference."""
    lines = ["q%d%s\t65\tc3\t%d\t60\t%s\t*\t0\t0\tACGT\tIIII\n" % (pos, cigar, pos, cigar)
             for pos in (60, 61, 62, 99) for cigar in ("4I", "2S2I", "3H4S", "4P4I", "2I2S5P", "4M", "2I2M", "0M4I", "0D4S")]
    path = tmp_path / "behind.sam"
    path.write_text(fixmategen.HEADER + "".join(lines))
    for words in "cigar", "cigar,mqual,cigdup", "unmap,cigar":
        args = ["-p", "-O", "sam", "-z", words]
        same_lines(as_sam(fixed(path, *args)), as_sam(oracle(path, *args)), words)


def overhanging(seed, n=1500):
    """Reads near the end of c3, with operations of any kind and length, some of length 0."""
    r, lines = random.Random(seed), []
    for i in range(n):
        cigar = [(r.choice([0, 1, 2, 3, 5, 8]), r.choice("MIDNSHP=XMMH")) for _ in range(r.randrange(1, 7))]
        n_bases = sum(n for n, op in cigar if op in "MIS=X")
        seq = "A" * n_bases if n_bases and r.random() < 0.7 else "*"
        lines.append("q%d\t%d\t%s\t%d\t60\t%s\t*\t0\t0\t%s\t*\tNM:i:1\tXX:Z:k\n" % (
            i, r.choice([0, 16, 65, 4]), r.choice(["c3"] * 8 + ["*"]), r.choice([52, 55, 57, 59, 60, 61, 62, 1]),
            "".join("%d%s" % op for op in cigar), seq))
    return fixmategen.HEADER + "".join(lines)


def fits(line):
    """Returns whether CIGAR and SEQ of the line of SAM have as many bases."""
    flag, cigar, seq = (line.split("\t")[i] for i in (1, 5, 9))
    bases = sum(int(n) for n, op in re.findall("([0-9]+)([MIS=X])", cigar))
    return int(flag) & 4 or seq == "*" or bases == len(seq)


@pytest.mark.parametrize("words", ["all", "on", "cigar", "cigar,cigdup", "cigar,unmap", "pos,cigar", "all,cigarx"])
def test_overhang_is_clipped_otherwise(tmp_path, words):
    """samtools counts deletions beyond the end as clipped bases, so its CIGAR may not fit SEQ, and its BAM cannot be
    read. Ours fits."""
    path = tmp_path / "overhang.sam"
    path.write_text(overhanging(words))
    mine, theirs = (as_sam(data).splitlines() for data in (fixed(path, "-O", "sam", "-z", words),
                                                           oracle(path, "-O", "sam", "-z", words)))
    assert len(mine) == len(theirs)
    n_headers, n_same = fixmategen.HEADER.count("\n"), 0
    for x, y in list(zip(mine, theirs))[n_headers:]:
        assert x == y if fits(y) else fits(x), (x, y)
        n_same += fits(y)
    assert n_same > 1000


@pytest.mark.parametrize("cigar,options,wanted", [
    ("8M2H2H", [], "4M4S4H"), ("8M2H2H", ["-z", "cigar"], "4M4S2H2H"), ("8M2H0H", [], "4M4S2H"),
    ("0M8M", ["-z", "cigar"], "0M4M4S"), ("0M8M", [], "4M4S"),
])
def test_hard_clips_behind_the_end_are_lost(tmp_path, cigar, options, wanted):
    path = tmp_path / "overhang.sam"
    path.write_text(fixmategen.HEADER + "q\t0\tc3\t57\t60\t%s\t*\t0\t0\tAAAAAAAA\tIIIIIIII\n" % cigar)
    lines = as_sam(fixed(path, "-O", "sam", *options))
    same_lines(lines, as_sam(oracle(path, "-O", "sam", *options)), cigar)
    assert lines.splitlines()[-1].split("\t")[5] == wanted


@pytest.mark.parametrize("words", ["on", "cigar", "mqual,cigar", "cigar,unmap", "cigar,cigdup", "all", "off"])
@pytest.mark.parametrize("tid,pos", [(-1, 5), (-1, -1), (-1, 0), (0, -1)])
def test_mapped_read_without_place_is_left(tmp_path, words, tid, pos):
    """Such reads come from BAM: those of SAM are unmapped when they are read. Their mates follow."""
    def pairs(mate):
        return [bamgen.record(name, flag, *place, cigar=cigar, seq=seq, tags=b"NMC\1XXC\2")
                for name, cigar, seq in (("a", [(8, "M")], "A" * 8), ("b", [], ""), ("c", [(3, "I"), (5, "S")], "A" * 8),
                                         ("d", [(1, "I"), (8, "M")], "A" * 9), ("e", [(9, "M"), (1, "H")], ""))
                for flag, place in ((65, (tid, pos)), (129, mate))]
    path = tmp_path / "in.bam"
    path.write_bytes(bamgen.bam(bamgen.header(), pairs((0, 9)) + pairs((tid, pos))))
    mine, theirs = (as_sam(data).splitlines() for data in (fixed(path, "-m", "-O", "sam", "-z", words),
                                                           oracle(path, "-m", "-O", "sam", "-z", words)))
    assert len(mine) == len(theirs) > 20
    for x, y in zip(mine, theirs):
        assert x == y or (x[0] != "@" and not fits(y) and fits(x)), (x, y)


@pytest.mark.parametrize("far", [False, True])
def test_cigar_that_looks_like_another_is_a_fault_of_memory(tmp_path, far):
    """1S1S becomes 2S, which refers to the CIGAR in CG. If that does not fit SEQ, no program could read the record
    (and samtools writes it)."""
    cg = b"CGBI\1\0\0\0" + (b"\x80\0\0\0" if far else b"\x20\0\0\0")
    path = tmp_path / "in.bam"
    path.write_bytes(bamgen.bam(bamgen.header(), [bamgen.record("q", 0, 0, 5, cigar=[(1, "S"), (1, "S")], seq="AC", tags=cg)]))
    (tmp_path / "out.bam").write_bytes(fixed(path))
    (tmp_path / "theirs.bam").write_bytes(oracle(path))
    lines = {name: oracle_call("view", ["-o", tmp_path / "view", tmp_path / name])[0] == 0 and (tmp_path / "view").read_text()
             for name in ("out.bam", "theirs.bam")}
    assert (lines["theirs.bam"] is False) == far
    assert "\t1S1S\t" in lines["out.bam"] if far else lines["out.bam"] == lines["theirs.bam"]


@pytest.mark.parametrize("tags,fine", [(b"XXC\1XY", True), (b"NMC\1XY", True), (b"X", True), (b"XXC\1XYC", False), (b"NMi\1", False),
                                       (b"XX?abc", False), (b"NMC\1NMC\2XXC\3NMC\4", True)])
def test_tags_of_unmapped_reads_are_dropped_otherwise(tmp_path, tags, fine):
    path = tmp_path / "in.bam"
    path.write_bytes(bamgen.bam(bamgen.header(), [bamgen.record("q", 4, -1, -1, seq="AC", tags=tags)]))
    assert (oracle_call("fixmate", ["--no-PG", path, tmp_path / "theirs.bam"])[0] == 0) == fine
    p = ours(["--no-PG", path, tmp_path / "out.bam"])
    if fine:
        assert p.returncode == 0 and read_bam(tmp_path / "out.bam").body == read_bam(tmp_path / "theirs.bam").body
    else:
        assert p.returncode == 1, p.stderr
        assert "record 1 (q) or a later one with the same name has tags that cannot be read" in p.stderr
        assert not (tmp_path / "out.bam").exists()


@pytest.mark.parametrize("grouped", [True, False])
@pytest.mark.parametrize("n", [2, 3000])
def test_input_that_is_not_grouped_goes_unnoticed(tmp_path, grouped, n):
    """samtools prints nothing. One warning, for any number of them; reads without mates do not count."""
    lines = ["r%d\t%d\tc1\t%d\t60\t4M\t*\t0\t0\tACGT\tIIII\n" % (i, flag, i % 400 + 1) for flag in (65, 129) for i in range(n)]
    if grouped:
        lines.sort(key=lambda line: line.split("\t")[0])
    lines += ["x%d\t65\tc1\t5\t60\t4M\t*\t0\t0\tACGT\tIIII\n" % i for i in range(n)]
    path = tmp_path / "in.sam"
    path.write_text("@HD\tVN:1.6\n@SQ\tSN:c1\tLN:500\n" + "".join(lines))
    p = ours([path, tmp_path / "out.bam"])
    assert p.returncode == 0 and p.stderr.count("some mates are not adjacent") == (not grouped) == p.stderr.count("\n")


def test_ct_has_a_sign_for_no_cigar(tmp_path):
    """A mapped read without a CIGAR: SAM has none, because it becomes unmapped there."""
    path = tmp_path / "in.bam"
    path.write_bytes(bamgen.bam(bamgen.header(), [bamgen.record(name, flag, 0, 99 + flag, cigar=cigar, seq="ACGT")
                                                  for name, other in (("a", []), ("b", None))
                                                  for flag, cigar in ((65, []), (145, other))]))
    lines = as_sam(fixed(path, "-c", "-O", "sam"))
    same_lines(lines, as_sam(oracle(path, "-c", "-O", "sam")), "ct")
    assert len(re.findall("\tct:Z:1F[0-9]+T2R(?:4M)?$", lines, re.M)) == 2


def test_last_sanitize_loses(templates):
    path = templates(100, 1)
    assert fixed(path, "-z", "all", "-z", "off") == fixed(path, "-z", "off") != fixed(path)


@pytest.mark.parametrize("path", REAL, ids=lambda p: p.name)
def test_real_records_are_others(path, tmp_path):
    """Many names in chunks; BAM."""
    grouped = tmp_path / "grouped.bam"
    p = run(["sort", "-n", "-l", "1", "-o", grouped, path])
    assert p.returncode == 0, p.stderr
    args = ["-mc", *["-M"] * (path.name in MODIFIED)]
    theirs = oracle(grouped, *args, "-u")
    (tmp_path / "theirs.bam").write_bytes(theirs)
    if oracle_call("view", ["-o", os.devnull, tmp_path / "theirs.bam"])[0] != 0:    # tags after stray bytes
        p = run(["fixmate", *args, grouped, tmp_path / "out.bam"])
        assert p.returncode == 1 and "no program could read the file" in p.stderr, p.stderr
        return
    mine, expected = read_bam(fixed(grouped, *args, "-@", 2, "--total-memory", "64M")), read_bam(theirs)
    same_header(mine, expected, expected.lines())
    a, b = mine.records(), expected.records()
    assert len(a) == len(b)
    for i, (x, y) in enumerate(zip(a, b)):
        assert x[:14] + x[16:] == y[:14] + y[16:], i


def test_threads_memory_or_pipes_change_the_bytes(templates):
    path = templates(4000, 3)
    bam = path.with_suffix(".bam")
    bam.write_bytes(fixed(path, "-z", "off"))
    seen = {fixed(bam, "-m", "-@", n, "--total-memory", memory) for n in MORE_THREADS for memory in ("64M", "300M")}
    seen.add(fixed("-", "-m", stdin=bam.read_bytes()))
    assert len(seen) == 1


LONG = [("%d secondary records", 60000, 321), ("%d supplementary records", 20000, 2113),
        ("%d primary records", 20000, 65)]


@pytest.mark.parametrize("what,n,flag", LONG, ids=lambda x: str(x).split()[-1])
def test_template_ends_with_the_chunk(tmp_path, what, n, flag):
    """The template spans many chunks, and its later records decide how the first ones are fixed."""
    head = "".join("@SQ\tSN:%s\tLN:%d\n" % ref for ref in fixmategen.REFS)
    one = "%s\t%d\tc1\t100\t60\t50M\t*\t0\t0\t" + "ACGTA" * 10 + "\t" + "IIIII" * 10 + "\n"
    path = tmp_path / "long.sam"
    path.write_text(head + one % ("a", 65) + one % ("a", 145) + one % ("b", flag) * n + one % ("b", 145)
                    + one % ("c", 65) + one % ("c", 145))
    mine = fixed(path, "-m", "-O", "sam", "-@", 3, "--total-memory", "64M")
    same_lines(as_sam(mine), as_sam(oracle(path, "-m", "-O", "sam")), what % n)


def test_records_longer_than_chunks_are_mixed_up(tmp_path):
    """The records of some names begin in one chunk and end in a later one."""
    r = random.Random(7)
    recs = []
    for i in range(60):
        n = r.choice([5, 100000, 190000, 350000])
        seq, aux = "A" * 10, b"ZZZ" + b"x" * n + b"\0"
        for flag in r.choice([(65, 145), (65,), (65, 129, 2177)]):
            name = "n%d" % i + "y" * r.randint(0, 200)
            recs.append(bamgen.record(name, flag, 0, r.randrange(500), seq=seq, tags=aux))
    path = tmp_path / "long.bam"
    path.write_bytes(bamgen.bam(bamgen.header(), recs))
    want = as_sam(oracle(path, "-O", "sam"))
    for n in (1, 3):
        same_lines(as_sam(fixed(path, "-O", "sam", "-@", n, "--total-memory", "64M")), want, "-@ %d" % n)


def test_what_looks_like_records_inside_a_record_is_fixed(tmp_path):
    """A block begins inside a tag, in which small records of other names follow each other; a later one is similar."""
    one, junk = b"".join(bamgen.record(name) for name in ("f", "g")) * 20, b"\xff" * 20000
    tag = b"XXBC" + len(one + junk).to_bytes(4, "little") + one + junk
    begin = bamgen.header() + bamgen.record("a", 65) + bamgen.record("long", 65, tags=tag)
    some = b"".join(bamgen.record("long" if i == 0 else "r%d" % (i // 3), 65 + 80 * (i % 2)) for i in range(300))
    path = tmp_path / "1.bam"
    path.write_bytes(bamgen.bgzf(begin + some, [len(begin) - len(one + junk), len(begin) - len(junk)]))
    want = as_sam(oracle(path, "-O", "sam"))
    for n in (1, 3):
        same_lines(as_sam(fixed(path, "-O", "sam", "-@", n)), want, "-@ %d" % n)


def test_filter_does_not_come_first(templates):
    """Records of one name that a filter makes adjacent are one template."""
    path = templates(500, 5)
    args = ["-O", "sam", "--input-fmt-option", "filter=mapq<60"]
    same_lines(as_sam(fixed(path, *args, "-@", 2)), as_sam(oracle(path, *args)), "filtered")


# ------------------------------------------------------- formats and places


@pytest.mark.parametrize("suffix", ["sam", "bam", "sam.gz", "cram"])
def test_format_is_not_that_of_the_name(templates, tmp_path, suffix):
    if suffix == "cram":
        needs_htslib(1, 16)                      # records are in a read group that the header lacks
    path, out = templates(300, suffix), tmp_path / ("out." + suffix)
    want = as_sam(fixed(path, "-O", "sam", "-m"))
    p = ours(["--no-PG", "-m", "--output-fmt-option", "no_ref=1", path, out] if suffix == "cram"
             else ["--no-PG", "-m", path, out])
    assert p.returncode == 0, p.stderr
    begins = {"sam": b"@HD", "bam": b"\x1f\x8b", "sam.gz": b"\x1f\x8b", "cram": b"CRAM"}[suffix]
    assert out.read_bytes().startswith(begins)
    if suffix != "cram":                         # CRAM changes the order of tags
        back = tmp_path / "back.sam"
        status, err = oracle_call("view", ["-h", "--no-PG", "-o", back, out])
        assert status == 0, err
        same_lines(back.read_text(), want, suffix)
    again = ours(["--no-PG", "-O", "sam", "-z", "off", "-p", out, "-"])
    assert again.returncode == 0 and again.stdout.count(b"\n") == want.count("\n"), again.stderr


def test_pg_line_is_missing(templates):
    path = templates(10, 1)
    for args, n in (([], 1), (["--no-PG"], 0)):
        p = ours([*args, "-O", "sam", path, "-"])
        assert p.returncode == 0 and len(re.findall(rb"@PG\tID:samtools[^\n]*CL:[^\n]* fixmate ", p.stdout)) == n


def test_verify_report_and_checksum_are_ignored(templates, tmp_path):
    path = templates(400, 2)
    p = ours(["--verify", "--report", "--checksum", tmp_path / "sum", "--progress", path, tmp_path / "out.bam"])
    assert p.returncode == 0, p.stderr
    assert "samtools fixmate: %s -> " % path in p.stderr and "samtools fixmate: done: 100 %" in p.stderr
    n = len(read_bam(tmp_path / "out.bam").records())
    assert (tmp_path / "sum").read_text().split()[0] == "records=%d" % n


# --------------------------------------------------------------- mistakes


def test_sorted_input_is_taken(tmp_path):
    path, out = tmp_path / "in.sam", tmp_path / "out.bam"
    path.write_text("@HD\tVN:1.6\tSO:coordinate\n@SQ\tSN:c1\tLN:1000\n")
    p = ours([path, out])
    assert p.returncode == 1 and "it is sorted by coordinate, and must be grouped or sorted by name." in p.stderr
    assert not out.exists()


@pytest.mark.parametrize("args", [["IN"], ["-Q", "IN", "-"], ["-z", "nonsense", "IN", "-"], ["IN", "-", "-"],
                                  ["-@", "x", "IN", "-"], ["--sanitize"], ["-O", "nonsense", "IN", "-"]])
def test_mistake_is_taken(templates, args):
    path = templates(10, 1)
    p = ours([path if a == "IN" else a for a in args])
    assert p.returncode == 1 and p.stderr.startswith("samtools fixmate: ") and p.stdout == b""


@pytest.mark.parametrize("words", [["fixmate"], ["fixmate", "--help"], ["help", "fixmate"]])
def test_help_is_missing(words):
    p = run(words)
    assert p.returncode == 0 and p.stdout.startswith(b"Usage: samtools fixmate ") and p.stderr == ""


def test_damage_leaves_an_output(sound, desk):
    data, blocks = sound
    bad = bytearray(data)
    bad[blocks[len(blocks) // 2].offset + 40] ^= 255
    (desk / "bad.bam").write_bytes(bad)
    p = ours([desk / "bad.bam", desk / "out.bam"])
    assert p.returncode == 1 and "bad.bam" in p.stderr
    assert (desk / "out.bam").read_bytes() == PRECIOUS
    assert sorted(x.name for x in desk.iterdir()) == ["bad.bam", "out.bam"]


@pytest.mark.parametrize("number", [1, 2, 700, 1999, 2000])
def test_broken_record_is_not_told(tmp_path, number):
    """The error names the record by its number, in any chunk and template."""
    recs = [bamgen.record("n%d" % (i // 3), 65, 0, 5, seq="A" * 100, tags=b"ZZZ" + b"x" * 400 + b"\0")
            for i in range(2000)]
    recs[number - 1] = recs[number - 1][:4] + b"\x63\0\0\0" + recs[number - 1][8:]     # a reference that does not exist
    path, out = tmp_path / "bad.bam", tmp_path / "out.bam"
    path.write_bytes(bamgen.bam(bamgen.header(), recs))
    for n in (1, 3):
        p = ours(["-@", n, "--total-memory", "64M", path, out])
        assert p.returncode == 1 and "record %d " % number in p.stderr and "refID" in p.stderr, p.stderr
        assert not out.exists()


@pytest.mark.parametrize("lacking", [1, 30, 500, 560])
def test_cut_record_is_not_told(tmp_path, lacking):
    recs = [bamgen.record("n%d" % (i // 3), 65, 0, 5, seq="A" * 100, tags=b"ZZZ" + b"x" * 400 + b"\0")
            for i in range(900)]
    body = b"".join(recs)
    path, out = tmp_path / "bad.bam", tmp_path / "out.bam"
    path.write_bytes(bamgen.bam(bamgen.header(), [body[:-lacking]]))
    p = ours([path, out])
    assert p.returncode == 1 and "inside record 900" in p.stderr and not out.exists(), p.stderr


@pytest.mark.skipif(SANITIZED, reason="sanitizers need memory of their own")
def test_what_is_told_to_be_enough_is_refused_by_the_next_run(tmp_path):
    """The program starts with a varying number of pages, and a page can decide whether a part grows by a step."""
    path, told = tmp_path / "in.sam", set()
    path.write_text(fixmategen.sam(50, 1))
    args = ["-@", 8, path, tmp_path / "out.bam"]
    for _ in range(20):
        told.add(re.search(r"inputs, (\d+M) is enough", ours(["--total-memory", "24M", *args]).stderr).group(1))
    for memory in [*told] * 20:
        p = ours(["--total-memory", memory, *args])
        assert p.returncode == 0, p.stderr


def test_too_little_memory_is_taken(templates, tmp_path):
    p = ours(["--total-memory", "24M", "-@", 64, templates(10, 1), tmp_path / "out.bam"])
    assert p.returncode == 1 and "is too little" in p.stderr and not (tmp_path / "out.bam").exists()


FAULTS = ["fixed:flip:37", "fixed:flip:50", "fixed:flip:95", "fixed:flip:122", "fixed:drop", "fixed:double", "listed:drop",
          "slice:drop", "merged:flip", "merged:drop", "merged:both"]


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_passes(desk, fault):
    """Faults of memory or of our code: in a template, between tasks and sink, in the sink."""
    (desk / "in.sam").write_text(fixmategen.HEADER + "".join(
        "q%d\t%d\tc1\t%d\t60\t50M\t*\t0\t0\t%s\t%s\tXA:Z:wxyz\n" % (i, flag, 5 + i, "ACGTA" * 10, "I" * 50)
        for i in range(500) for flag in (65, 145)))
    sees_fault(desk, fault, "fixmate", [*(["-M"] if fault == "fixed:flip:122" else []), "in.sam", "out.bam"])
