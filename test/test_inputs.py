# SPDX-License-Identifier: MIT
"""Several inputs in one sort (--add-input)."""

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
    assert sorted(x for x in lines if x[:3] in ("@RG", "@PG")) == [
        "@PG\tID:p\tPN:p", "@PG\tID:q\tPN:q", "@RG\tID:x\tSM:s", "@RG\tID:y\tSM:s"]
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
