# SPDX-License-Identifier: MIT
"""--check: reads a file like the sort, and finds the first record that is out of order."""

import re

import pytest

import bamgen
from conftest import SANITIZED, limit_on, read_bam, run_sort, sorted_bytes

ORDERS = [[], ["-n"], ["-N"], ["--picard"], ["-t", "NM"], ["-t", "RG", "-n"], ["--template-coordinate"]]
THREADS = 1, 3
NAMES = [bamgen.record(name=f"q{i:05d}", pos=i, cigar=[(100, "M")], seq="ACGT" * 25) for i in range(2000)]
HEAD = bamgen.header()


def check(path, *args, **kw):
    p = run_sort(["--check", *args, path], **kw)
    assert p.stdout == b""
    if p.returncode == 0:
        return ""
    last = p.stderr.splitlines()[-1]             # before it, perhaps, a warning
    assert p.returncode == 1 and last.startswith("samtools sort: ")
    return last


def in_order(tmp_path, order):
    """A file in that order, and its records."""
    recs = bamgen.c_ties()[1]
    (tmp_path / "in.bam").write_bytes(bamgen.bam(bamgen.c_ties()[0], recs, "htslib"))
    out = tmp_path / "sorted.bam"
    out.write_bytes(sorted_bytes(["--no-PG", *order, tmp_path / "in.bam"]))
    return out, read_bam(out).records()


@pytest.mark.parametrize("order", ORDERS[:6], ids=lambda o: "".join(o) or "coordinate")
def test_sorted_file_fails_the_check(order, tmp_path):
    out, _ = in_order(tmp_path, order)
    for n in THREADS:
        assert not check(out, "-@", n, *order)
    with open(out, "rb") as pipe:
        assert not check("-", *order, stdin=pipe)


@pytest.mark.parametrize("order", ORDERS[:6], ids=lambda o: "".join(o) or "coordinate")
def test_record_out_of_order_passes_the_check(order, tmp_path):
    _, recs = in_order(tmp_path, order)
    for i in (len(recs) - 1, len(recs) // 2):
        moved = tmp_path / "moved.bam"
        moved.write_bytes(bamgen.bam(bamgen.c_ties()[0], [recs[i], *recs[:i], *recs[i + 1:]], "htslib"))
        for n in THREADS:
            assert "record 2 " in check(moved, "-@", n, *order)


def test_record_that_belongs_into_the_block_before_passes_the_check(tmp_path):
    """Every block is in order; the last one begins with the record that is out of order."""
    path = tmp_path / "in.bam"
    recs = NAMES[:100] + NAMES[150:200] + NAMES[100:150]
    raw = HEAD + b"".join(recs)
    path.write_bytes(bamgen.bgzf(raw, [len(HEAD), len(HEAD + b"".join(recs[:150]))]))
    for n in THREADS:
        assert "record 151 (q00100) belongs before record 150 (q00199)" in check(path, "-@", n)


def test_record_that_belongs_into_the_slice_before_passes_the_check(tmp_path):
    """Slices end where blocks do. One block in each file begins with the record that is out of order."""
    recs = [bamgen.record(name=f"q{i:05d}", pos=i, cigar=[(100, "M")], seq="ACGT" * 25) for i in range(5000)]
    in_block = bamgen.BLOCK // len(recs[0])
    for blocks in range(1, 12):
        n = blocks * in_block
        (tmp_path / "in.bam").write_bytes(bamgen.bam(HEAD, recs[400:400 + n] + recs[:300], "htslib"))
        assert f"record {n + 1} (q00000) belongs before record {n} " in check(tmp_path / "in.bam", "-@", 2)


def test_what_looks_like_records_inside_a_record_is_checked(tmp_path):
    """A block begins in a tag whose bytes are records that are out of order: the guess that they are the block's first
    ones is plausible, and wrong."""
    fakes = b"".join(NAMES[1000:1050]) + NAMES[3]
    tag = b"XXBC" + len(fakes).to_bytes(4, "little") + fakes
    long = bamgen.record(name="long", pos=5, cigar=[(100, "M")], seq="ACGT" * 25, tags=tag)
    begin = HEAD + b"".join(NAMES[:5]) + long
    path = tmp_path / "in.bam"
    for rest, why in ((NAMES[6:100], ""), (NAMES[6:100] + NAMES[2:3], "record 101 (q00002) belongs before record 100 ")):
        path.write_bytes(bamgen.bgzf(begin + b"".join(rest), [len(HEAD), len(begin) - len(fakes)]))
        for n in THREADS:
            p = run_sort(["--check", "--checksum", "-", "-@", n, path])
            assert why in p.stderr and p.returncode == (why != "")
            assert why or p.stdout.decode().startswith("records=100 ")
    path.write_bytes(bamgen.bgzf(begin + b"".join(NAMES[6:100])))
    sums = {run_sort(["--check", "--checksum", "samtools:-", path]).stdout}
    path.write_bytes(bamgen.bgzf(begin + b"".join(NAMES[6:100]), [len(HEAD), len(begin) - len(fakes)]))
    for n in THREADS:
        sums.add(run_sort(["--check", "--checksum", "samtools:-", "-@", n, path]).stdout)
    assert len(sums) == 1 and re.search(rb"^all +all +100 ", sums.pop(), re.M)


def test_order_of_records_that_are_normalised(tmp_path):
    """Their bins are wrong, so htslib would write other records. The checksum and the reported record are those of
    normalised records."""
    wrong = [bamgen.record(name=f"q{i:05d}", pos=i, cigar=[(100, "M")], seq="ACGT" * 25, bin=7) for i in range(2000)]
    sums, path = set(), tmp_path / "in.bam"
    for recs in (NAMES, wrong, NAMES[:1000] + wrong[1000:]):
        path.write_bytes(bamgen.bam(HEAD, recs, "htslib"))
        p = run_sort(["--check", "--checksum", "-", "-@", 2, path])
        assert p.returncode == 0
        sums.add(p.stdout)
    assert len(sums) == 1
    path.write_bytes(bamgen.bam(HEAD, NAMES[:1000] + wrong[1000:1500] + wrong[1400:], "htslib"))
    for n in THREADS:
        assert "record 1501 (q01400) belongs before record 1500 (q01499)" in check(path, "-@", n)
    cg = [bamgen.cg_record(f"c{i:05d}", 10, [(10 + i, "M")]) for i in range(300)]    # the tag goes, and its place in -t
    path.write_bytes(bamgen.bam(HEAD, cg[::-1], "htslib"))
    assert not check(path, "-t", "CG")


@pytest.mark.parametrize("layout", sorted(bamgen.SMALL_LAYOUTS))
def test_blocks_are_cut_where_the_check_does_not_expect_it(layout, tmp_path):
    """The stream is cut in every way. Records must end in the right places, and be counted right."""
    path = tmp_path / "in.bam"
    path.write_bytes(bamgen.bam(HEAD, NAMES[:600], layout))
    for n in THREADS:
        assert not check(path, "-@", n)
    path.write_bytes(bamgen.bam(HEAD, NAMES[:500] + NAMES[100:101], layout))
    assert "record 501 (q00100) belongs before record 500 (q00499)" in check(path, "-@", 2)


def test_records_of_many_blocks(tmp_path):
    _, recs = bamgen.c_long_records()
    path = tmp_path / "in.bam"
    path.write_bytes(bamgen.bam(bamgen.c_long_records()[0], recs, "htslib"))
    path.write_bytes(sorted_bytes([path]))
    assert not check(path) and not check(path, "-@", 3)


@pytest.mark.parametrize("form", ["sam", "cram,no_ref=1"])
def test_other_formats(form, tmp_path):
    path, out = tmp_path / "in.bam", tmp_path / "out"
    path.write_bytes(bamgen.bam(HEAD, NAMES[::-1], "htslib"))
    assert run_sort(["-n", "-O", form, "-o", out, path]).returncode == 0
    for n in THREADS:
        assert not check(out, "-n", "-@", n)
        assert not check(out, "-@", n)
    assert run_sort(["-N", "-O", form, "-o", out, "--add-input", path, path]).returncode == 0
    assert "record 3 (q00001) belongs before record 2" not in check(out, "-n")
    assert "record 2 " in check(path)


def test_damage_passes_the_check(tmp_path):
    data = bamgen.bam(HEAD, NAMES, "htslib")
    path = tmp_path / "in.bam"
    broken = bytearray(data)
    broken[len(data) // 2] ^= 16
    raw = HEAD + b"".join(NAMES)
    third, last = len(HEAD + NAMES[0] + NAMES[1]), len(raw) - len(NAMES[-1])
    wrong = [
        (bytes(broken), "block at file offset", None),
        (data[:-40], "file offset", None),
        (bamgen.bgzf(raw[:-1]), "ends inside record 2000,", last), (raw[:-1], "ends inside record 2000,", last),
        (bamgen.bgzf(raw[:last - 1]), "ends inside record 1999,", last - len(NAMES[-2])),
        (bamgen.bgzf(raw + b"\xff" * 100), "record 2001 (", len(raw)),
        (bamgen.bgzf(raw[:third] + b"\x10" + bytes(99)), "record 3 (", third),
        (bamgen.bgzf(raw[:third] + b"\x10" + bytes(99), [third - 9, third + 9]), "record 3 (", third),
        (bamgen.bgzf(raw[:third] + b"\x01\x00"), "ends inside record 3,", third),
    ]
    for bytes_, what, byte in wrong:
        path.write_bytes(bytes_)
        for n in THREADS:
            told = check(path, "-@", n)
            assert what in told, told
            if byte is not None:
                assert f"byte {byte} " in told, told
            if byte is not None and bytes_ != raw[:-1]:
                place = re.search(rf"byte {byte} of the uncompressed data, in or before the block at file offset (\d+)", told)
                assert place and bytes_[int(place.group(1)):].startswith(b"\x1f\x8b"), told


def test_place_of_a_record_that_the_block_of_the_header_holds(tmp_path):
    """The header ends in the second of three blocks, where a broken record follows it."""
    path = tmp_path / "in.bam"
    data = bamgen.bgzf(HEAD + NAMES[0] + b"\x10" + bytes(99), [40, len(HEAD + NAMES[0]) + 60])
    path.write_bytes(data)
    third = data.rindex(b"\x1f\x8b\x08\x04", 0, -28)
    assert f"record 2 (byte {len(HEAD + NAMES[0])} of" in check(path)
    assert f"in or before the block at file offset {third})" in check(path)


@pytest.mark.skipif(SANITIZED, reason="sanitizers need address space without limit")
def test_record_that_claims_two_gigabytes_takes_them(tmp_path):
    path = tmp_path / "in.bam"
    path.write_bytes(bamgen.bgzf(HEAD + NAMES[0] + (0x7fffffff).to_bytes(4, "little") + NAMES[1][4:]))
    assert re.search("record 2", check(path, before=limit_on("AS", 400 << 20)))


def test_tag_that_the_order_needs_is_missing(tmp_path):
    path = tmp_path / "in.bam"
    pair = [bamgen.record(name="a", flag=f, tid=0, pos=1, mtid=0, mpos=1, cigar=[(4, "M")], seq="ACGT") for f in (67, 131)]
    path.write_bytes(bamgen.bgzf(HEAD + b"".join(pair)))
    assert "record 1 (a): " in check(path, "--template-coordinate")


def test_add_input_is_ignored(tmp_path):
    path = tmp_path / "in.bam"
    path.write_bytes(bamgen.bgzf(HEAD + NAMES[0]))
    p = run_sort(["--check", "--add-input", path, path])
    assert p.returncode == 1 and "cannot be combined with --add-input" in p.stderr
