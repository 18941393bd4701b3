# SPDX-License-Identifier: MIT
"""Several inputs in one sort (--add-input)."""

import re

import pytest

import bamgen
from conftest import read_bam, run_sort, sorted_bytes

ORDERS = [(), ("-n",), ("-N",), ("-t", "NM")]


@pytest.fixture(scope="module")
def parts(tmp_path_factory):
    """Three files and one that holds the records of all, in that order."""
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
    # SAM does not keep every field of these records; their names it does.
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
    """@PG and @RG lines of a sort of these files, and what was said."""
    first, *more = inputs
    p = run_sort(["--no-PG", *(w for x in more for w in ("--add-input", x)), first], **kw)
    assert p.returncode == 0, p.stderr
    return [x for x in read_bam(p.stdout).lines() if x[:3] in ("@PG", "@RG")], p.stderr


def test_program_of_another_input_vanishes(tmp_path):
    """Its chain, and the read groups that name it, go with it."""
    a = write_sam(tmp_path / "a.sam", "@SQ\tSN:c\tLN:9", "@RG\tID:x\tPG:p", "@PG\tID:p\tCL:1", "@PG\tID:q\tPP:p")
    b = write_sam(tmp_path / "b.sam", "@SQ\tSN:c\tLN:9", "@RG\tID:x\tPG:p", "@RG\tID:y\tPG:p", "@RG\tID:z\tSM:s",
                  "@PG\tID:r\tPP:q\tVN:3", "@PG\tID:q\tPP:p", "@PG\tID:p\tCL:2", "@PG\tID:s")
    lines, err = programs(a, b)
    p, = [re.search("ID:(p-[0-9A-F]{8})\t", x).group(1) for x in lines if x.endswith("CL:2")]
    q, = [re.search("ID:(q-[0-9A-F]{8})\t", x).group(1) for x in lines if x.startswith("@PG\tID:q-")]
    assert sorted(lines) == sorted([
        "@RG\tID:x\tPG:p", "@PG\tID:p\tCL:1", "@PG\tID:q\tPP:p", "@PG\tID:%s\tCL:2" % p, "@PG\tID:%s\tPP:%s" % (q, p),
        "@PG\tID:r\tPP:%s\tVN:3" % q, "@PG\tID:s", "@RG\tID:y\tPG:" + p, "@RG\tID:z\tSM:s"])
    assert "b.sam: 2 of its @PG lines" in err and "warning" in err
    # The same lines once more add nothing, and every sort gives the same names.
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
    assert len(lines) == 1 + n and "1 of its @PG" in err


def limit_files(soft, hard):
    return "resource.setrlimit(resource.RLIMIT_NOFILE, (%d, %d))" % (soft, hard)


def test_many_inputs_meet_the_limit_on_open_files(tmp_path):
    path = write_sam(tmp_path / "a.sam", "@SQ\tSN:c\tLN:9", "r\t0\tc\t1\t1\t1M\t*\t0\t0\tA\tI")
    args = ["-m", "600M", "-O", "sam", *["--add-input", path] * 199, path]
    p = run_sort(args, before=limit_files(64, 1000))
    assert p.returncode == 0 and p.stdout.count(b"\nr\t") == 200, p.stderr
    p = run_sort(args, before=limit_files(64, 100))
    assert p.returncode == 1 and "200 inputs are too many: only 100 files" in p.stderr and "ulimit -n" in p.stderr
    p = run_sort([path], before=limit_files(30, 30))
    assert p.returncode == 0, p.stderr
