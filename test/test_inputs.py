# SPDX-License-Identifier: MIT
"""Several inputs in one sort (--add-input)."""

import os
import random
import re

import pytest

import bamgen
from conftest import read_bam, run_sort, sorted_bytes

ORDERS = [(), ("-n",), ("-N",), ("-t", "NM")]


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """Three files, and one with the records of all, in that order."""
    folder = tmp_path_factory.mktemp("parts")
    head, recs = bamgen.c_ties()
    cut = [recs[:len(recs) // 3], recs[len(recs) // 3:-5], recs[-5:]]
    paths = []
    for i, (some, layout) in enumerate(zip(cut, ("htslib", "straddle", "htslib"))):
        paths.append(folder / ("part%d.bam" % i))
        paths[-1].write_bytes(bamgen.bam(head, some, layout))
    whole = folder / "whole.bam"
    whole.write_bytes(bamgen.bam(head, recs, "htslib"))
    return paths, whole


@pytest.mark.parametrize("order", ORDERS, ids=lambda o: "".join(o) or "coordinate")
def test_records_of_added_inputs_are_lost_or_ties_turned(parts, order, threads):
    (first, *more), whole = parts
    added = [word for path in more for word in ("--add-input", path)]
    together = sorted_bytes(["--no-PG", "-@", threads, *order, *added, first])
    assert together == sorted_bytes(["--no-PG", *order, whole])


def test_added_sam_is_not_joined(parts, tmp_path):
    (first, second, third), whole = parts
    sam = tmp_path / "second.sam"
    sam.write_bytes(sorted_bytes(["--no-PG", "-O", "sam", second]))
    ours = read_bam(sorted_bytes(["--no-PG", "--add-input", sam, "--add-input", third, first]))
    same = read_bam(sorted_bytes(["--no-PG", whole]))
    # SAM does not keep every field of these records, but it keeps their names.
    names = [sorted(r[36:36 + r[12]] for r in b.records()) for b in (ours, same)]
    assert names[0] == names[1]


def write_sam(path, *lines):
    path.write_text("".join(line + "\n" for line in lines))
    return path


def test_read_groups_and_comments_of_added_inputs_are_missing(tmp_path):
    a = write_sam(tmp_path / "a.sam", "@SQ\tSN:c\tLN:9", "@RG\tID:x\tSM:s", "@PG\tID:p\tPN:p", "@CO\tone")
    b = write_sam(tmp_path / "b.sam", "@SQ\tSN:c\tLN:9", "@RG\tID:x\tSM:s", "@RG\tID:y\tSM:s",
                  "@PG\tID:p\tPN:other", "@PG\tID:q\tPN:q", "@CO\ttwo", "@CO\tone", "@CO\ton")
    lines = read_bam(sorted_bytes(["--no-PG", "--add-input", b, a])).lines()
    assert sorted(re.sub("ID:p-[0-9A-F]{8}", "ID:p-X", x) for x in lines if x[:3] in ("@RG", "@PG")) == [
        "@PG\tID:p\tPN:p", "@PG\tID:p-X\tPN:other", "@PG\tID:q\tPN:q", "@RG\tID:x\tSM:s", "@RG\tID:y\tSM:s"]
    assert [x for x in lines if x[:3] == "@CO"] == ["@CO\tone", "@CO\ttwo", "@CO\ton"]
    assert lines.count("@SQ\tSN:c\tLN:9") == 1


@pytest.mark.parametrize("other, word", [
    (["@SQ\tSN:c\tLN:10"], "@SQ"), (["@SQ\tSN:d\tLN:9"], "@SQ"),
    (["@SQ\tSN:c\tLN:9", "@SQ\tSN:d\tLN:9"], "@SQ"),
    (["@SQ\tSN:c\tLN:9", "@RG\tID:x\tSM:other"], "@RG")])
def test_contradicting_headers_are_joined(tmp_path, other, word):
    a = write_sam(tmp_path / "a.sam", "@SQ\tSN:c\tLN:9", "@RG\tID:x\tSM:s")
    b = write_sam(tmp_path / "b.sam", *other)
    p = run_sort(["-o", tmp_path / "out.bam", "--add-input", b, a])
    assert p.returncode == 1
    assert "b.sam" in p.stderr and word in p.stderr
    assert not (tmp_path / "out.bam").exists()


@pytest.mark.parametrize("kind", ["sam", "bam"])
def test_added_input_of_another_genome_is_taken_without_a_word(tmp_path, kind):
    """The other genome has the same lengths, so that it can be sorted with the first; only M5 shows the difference."""
    paths = []
    for name, m5 in ("a", "ab"), ("b", "AB"), ("c", "cd"), ("d", None):
        text = "@SQ\tSN:c\tLN:9%s\n@SQ\tSN:d\tLN:8\n" % ("\tM5:" + m5 if m5 else "")
        paths.append(tmp_path / ("%s.%s" % (name, kind)))
        paths[-1].write_bytes(text.encode() if kind == "sam" else
                              bamgen.bam(bamgen.header(text, [("c", 9), ("d", 8)]), []))
    for other in paths[1:]:
        p = run_sort(["-o", tmp_path / "out.bam", "--add-input", other, paths[0]])
        assert p.returncode == 0
        assert ("%s: reference c has M5:cd, and M5:ab in the first input" % other in p.stderr) == (other == paths[2]), p.stderr
        assert p.stderr.count("M5") == 2 * (other == paths[2])


def test_bad_record_of_an_added_input_is_told_of_the_first(tmp_path):
    head, recs = bamgen.c_ties()
    good, bad = tmp_path / "good.bam", tmp_path / "bad.bam"
    good.write_bytes(bamgen.bam(head, recs, "htslib"))
    cut = recs[:3] + [recs[3][:4] + b"\xff\xff\xff\x7f" + recs[3][8:]]
    bad.write_bytes(bamgen.bam(head, cut, "htslib"))
    p = run_sort(["-o", tmp_path / "out.bam", "--add-input", bad, good])
    assert p.returncode == 1
    assert "bad.bam: record 4 " in p.stderr
    assert sorted(x.name for x in tmp_path.iterdir()) == ["bad.bam", "good.bam"]


def programs(*inputs, **kw):
    """@PG and @RG lines of a sort of these files, and its messages."""
    first, *more = inputs
    p = run_sort(["--no-PG", *(w for x in more for w in ("--add-input", x)), first], **kw)
    assert p.returncode == 0, p.stderr
    return [x for x in read_bam(p.stdout).lines() if x[:3] in ("@PG", "@RG")], p.stderr


def test_program_of_another_input_vanishes(tmp_path):
    """Its chain, and the read groups that name it, follow."""
    a = write_sam(tmp_path / "a.sam", "@SQ\tSN:c\tLN:9", "@RG\tID:x\tPG:p", "@PG\tID:p\tCL:1", "@PG\tID:q\tPP:p")
    b = write_sam(tmp_path / "b.sam", "@SQ\tSN:c\tLN:9", "@RG\tID:x\tPG:p", "@RG\tID:y\tPG:p", "@RG\tID:z\tSM:s",
                  "@PG\tID:r\tPP:q\tVN:3", "@PG\tID:q\tPP:p", "@PG\tID:p\tCL:2", "@PG\tID:s")
    lines, err = programs(a, b)
    p, = [re.search("ID:(p-[0-9A-F]{8})\t", x).group(1) for x in lines if x.endswith("CL:2")]
    q, = [re.search("ID:(q-[0-9A-F]{8})\t", x).group(1) for x in lines if x.startswith("@PG\tID:q-")]
    assert sorted(lines) == sorted([
        "@RG\tID:x\tPG:p", "@PG\tID:p\tCL:1", "@PG\tID:q\tPP:p", "@PG\tID:%s\tCL:2" % p, "@PG\tID:%s\tPP:%s" % (q, p),
        "@PG\tID:r\tPP:%s\tVN:3" % q, "@PG\tID:s", "@RG\tID:y\tPG:" + p, "@RG\tID:z\tSM:s"])
    assert err == ""
    # Repeated lines add nothing, and every sort gives the same names.
    assert programs(a, b, b)[0] == lines
    assert programs(a, b)[0] == lines


def test_programs_in_a_circle_are_followed_for_ever(tmp_path):
    a = write_sam(tmp_path / "a.sam", "@SQ\tSN:c\tLN:9", "@PG\tID:p\tCL:1")
    b = write_sam(tmp_path / "b.sam", "@SQ\tSN:c\tLN:9", "@PG\tID:p\tPP:q", "@PG\tID:q\tPP:p", "@PG\tID:t\tPP:t")
    lines, _ = programs(a, b)
    assert len(lines) == 4 and "@PG\tID:t\tPP:t" in lines


def test_long_chain_of_programs_takes_the_stack(tmp_path):
    n = 3000
    a = write_sam(tmp_path / "a.sam", "@SQ\tSN:c\tLN:9", "@PG\tID:p%d\tCL:1" % (n - 1))
    b = write_sam(tmp_path / "b.sam", "@SQ\tSN:c\tLN:9",
                  *("@PG\tID:p%d\tPP:p%d" % (i, i + 1) for i in range(n - 1)), "@PG\tID:p%d\tCL:2" % (n - 1))
    lines, err = programs(a, b)
    assert len(lines) == 1 + n and err == ""


def with_new_ids(line, ids):
    """Does the same as samtools merge: the tag with a new ID moves to the end. Only the first PG tag is used."""
    fields = line.split("\t")
    at = next((i for i, f in enumerate(fields[11:], 11) if f.startswith("PG:")), None)
    if at is not None and fields[at].startswith("PG:Z:") and fields[at][5:] in ids:
        fields.append("PG:Z:" + ids[fields.pop(at)[5:]])
    return "\t".join(fields)


TAGGED_HEAD = ["@HD\tVN:1.6\tSO:unsorted", "@SQ\tSN:c\tLN:1000000"]


@pytest.fixture(scope="module")
def tagged(tmp_path_factory):
    """Three inputs: the second has two programs whose lines differ from the first's, one with a long ID; the third
    has those of the first. Records with PG tags in all places, of other types, and with IDs without a line."""
    folder, r, inputs = tmp_path_factory.mktemp("tagged"), random.Random(7), []
    wide = "w" * 150
    for i, call in enumerate((1, 2, 1)):
        head = TAGGED_HEAD + ["@PG\tID:%s\tCL:%d" % (x, call if x != "same" else 0) for x in ("p", wide, "same")]
        lines = []
        for n in range(3000):
            tags = ["NM:i:%d" % r.randrange(300), "XA:Z:%s" % ("x" * r.randrange(90)), "XB:B:C,1,2"]
            pg = r.choice(("PG:Z:p", "PG:Z:p", "PG:Z:" + wide, "PG:Z:same", "PG:Z:no", "PG:i:7", "PG:A:p", "PG:Z:pp", ""))
            tags[(at := r.randrange(4)):at] = [pg] if pg else []
            size = r.choice((30, 30, 90, 5000 if n % 50 == 0 else 30))
            bases = bamgen.bases(r, size)
            lines.append("\t".join(["r%d" % r.randrange(9000), "0", "c", str(r.randrange(1, 3000)), "9", "%dM" % size, "*",
                                    "0", "0", bases, "I" * size, *tags]))
        if i == 1:
            lines.append("long\t4\t*\t0\t0\t*\t*\t0\t0\t%s\t*\tPG:Z:p\tNM:i:1" % ("ACGT" * 100000))
        inputs.append((write_sam(folder / ("in%d.sam" % i), *head, *lines), lines))
    for i, (path, _) in enumerate(inputs):
        for kind in ("bam", "cram"):
            write = [] if kind == "bam" else ["--output-fmt-option", "no_ref=1"]
            assert run_sort(["--no-PG", "-O", kind, *write, "-o", folder / ("in%d.%s" % (i, kind)),
                             path]).returncode == 0
        (folder / ("in%d.u.bam" % i)).write_bytes(sorted_bytes(["--no-PG", "-u", path]))
    return folder, wide


def records_of(path):
    """BAM and CRAM are sorted by coordinate, so a sort does not change them."""
    text = open(path).read() if path.endswith(".sam") else sorted_bytes(["--no-PG", "-O", "sam", path]).decode()
    return [x for x in text.splitlines() if not x.startswith("@")]


@pytest.mark.parametrize("order", [(), ("-n",), ("-t", "PG"), ("-t", "NM")], ids="".join)
@pytest.mark.parametrize("kind", ["sam", "bam", "u.bam", "cram"])
@pytest.mark.parametrize("memory", ["all", "spilled"])
def test_pg_tags_of_an_added_input_name_programs_of_the_first(tagged, tmp_path, kind, order, memory, threads):
    folder, wide = tagged
    first, second, third = ["%s/in%d.%s" % (folder, i, kind) for i in range(3)]
    env = dict(os.environ, SAMTOOLS_OMP_ARENA="262144") if memory == "spilled" else None
    args = ["--no-PG", "-O", "sam", "-@", threads, "-T", tmp_path / "t", *order]
    p = run_sort([*args, "--verify", "--add-input", second, "--add-input", third, first], env=env)
    assert p.returncode == 0 and "PG" not in p.stderr, p.stderr
    ours = p.stdout.decode().splitlines()
    ids = {m.group(1): m.group(1) + m.group(2)
           for m in (re.match("@PG\tID:(p|w+)(-[0-9A-F]{8})\tCL:2$", x) for x in ours) if m}
    assert sorted(ids) == ["p", wide]
    joined = write_sam(tmp_path / "joined.sam", *TAGGED_HEAD, *records_of(first),
                       *(with_new_ids(x, ids) for x in records_of(second)), *records_of(third))
    model = sorted_bytes(["--no-PG", "-O", "sam", *order, joined]).decode().splitlines()
    assert [x for x in ours if x[0] != "@"] == [x for x in model if x[0] != "@"]


def test_cut_or_broken_input_with_renamed_programs_is_read(tagged, tmp_path):
    folder, _ = tagged
    stream = bytearray((folder / "in1.u.bam").read_bytes())
    whole = (folder / "in1.bam").read_bytes()
    cut = tmp_path / "cut.bam"
    for data, word in ((whole[:-28], "EOF"), (whole[:len(whole) // 2], "cut.bam"), (stream[:len(stream) // 2], "cut.bam")):
        cut.write_bytes(data)
        p = run_sort(["-o", tmp_path / "out.bam", "--add-input", cut, folder / "in0.bam"])
        assert word in p.stderr and p.returncode == (word != "EOF")
    recs, good, bad = bamgen.c_ties()[1], tmp_path / "good.bam", tmp_path / "bad.bam"
    head = [bamgen.header(bamgen.sq_text(bamgen.REFS) + "@PG\tID:p\tCL:%d\n" % call) for call in (1, 2)]
    good.write_bytes(bamgen.bam(head[0], recs, "htslib"))
    bad.write_bytes(bamgen.bam(head[1], recs[:3] + [recs[3][:4] + b"\xff\xff\xff\x7f" + recs[3][8:]], "htslib"))
    p = run_sort(["-o", tmp_path / "out.bam", "--add-input", bad, good])
    assert p.returncode == 1 and "bad.bam: record 4 " in p.stderr


def limit_files(soft, hard):
    return "resource.setrlimit(resource.RLIMIT_NOFILE, (%d, %d))" % (soft, hard)


def test_many_inputs_meet_the_limit_on_open_files(tmp_path):
    path = write_sam(tmp_path / "a.sam", "@SQ\tSN:c\tLN:9", "r\t0\tc\t1\t1\t1M\t*\t0\t0\tA\tI")
    args = ["-m", "600M", "-O", "sam", *["--add-input", path] * 199, path]
    p = run_sort(args, before=limit_files(64, 1000))
    assert p.returncode == 0 and p.stdout.count(b"\nr\t") == 200, p.stderr
    p = run_sort(args, before=limit_files(30, 30))
    assert p.returncode == 0 and p.stdout.count(b"\nr\t") == 200, p.stderr
    cram = tmp_path / "a.cram"
    assert run_sort(["--output-fmt-option", "no_ref", "-o", cram, path]).returncode == 0
    p = run_sort(["-m", "600M", "-O", "sam", *["--add-input", cram] * 199, cram], before=limit_files(64, 100))
    assert p.returncode == 1 and "Too many open files" in p.stderr and "ulimit -n" in p.stderr
    p = run_sort([path], before=limit_files(30, 30))
    assert p.returncode == 0, p.stderr
