# SPDX-License-Identifier: MIT
"""The output as a file: BGZF structure, record placement, compression levels."""

import gzip

import pysam
import pytest

import bamgen
from conftest import (DATA_BAMS, REAL_BAMS, Bam, blocks, oracle, read_bam, run_sort, same_records,
                      sorted_bytes)

FILL = 0xFF00  # the most bytes of data in a block: even stored it fits into 64 KiB
SHAPES = ["mixed", "ties", "long_records", "block_edges", "cg_long", "header_only",
          "header_only_no_refs", "one_record", "many_refs"]


def decode(data):
    found = blocks(data)
    return found, Bam(b"".join(b.data for b in found))


def edges(found):
    """Offsets in the uncompressed stream at which a block ends."""
    out, at = [0], 0
    for b in found:
        at += len(b.data)
        out.append(at)
    return out


# ---------------------------------------------------------------- structure


@pytest.mark.parametrize("name", SHAPES)
def test_record_straddles_blocks_without_need(made, name, threads):
    """A record longer than a block also starts one, and the header ends its block."""
    found, bam = decode(sorted_bytes(["-l", "1", "-@", threads, made(name)]))
    ends = edges(found)
    assert bam.header_size in ends, "the header does not end its block"
    at, i = bam.header_size, 0
    for n, rec in enumerate(bam.records(), 1):
        while ends[i + 1] <= at:
            i += 1
        if len(rec) > FILL:
            assert ends[i] == at, "long record %d does not begin a block" % n
        else:
            assert at + len(rec) <= ends[i + 1], "record %d straddles" % n
        at += len(rec)


@pytest.mark.parametrize("name", SHAPES)
def test_block_is_too_large_or_empty_or_eof_is_missing(made, name, threads):
    data = sorted_bytes(["-l", "1", "-@", threads, made(name)])
    found = blocks(data)
    assert data.endswith(bamgen.EOF_BLOCK)
    assert max(len(b.data) for b in found) <= FILL
    assert [len(b.data) for b in found].index(0) == len(found) - 1, "an empty block before the end"


@pytest.mark.parametrize("name", ["mixed", "ties", "long_records", "block_edges"])
def test_blocks_are_left_half_empty(made, name):
    """The output has no more blocks than samtools makes from the same records."""
    found, bam = decode(sorted_bytes(["--no-PG", "-l", "1", "-@", 3, made(name)]))
    most, part = -(-bam.header_size // FILL) + 1, FILL
    for n in map(len, bam.records()):
        if n > FILL:
            most, part = most + -(-n // FILL), FILL
        elif part + n > FILL:
            most, part = most + 1, n
        else:
            part += n
    assert len(found) <= most


@pytest.mark.parametrize("name", SHAPES)
def test_gzip_or_htslib_cannot_read_output(made, tmp_path, name):
    out = tmp_path / "out.bam"
    data = sorted_bytes(["-@", 2, made(name)])
    out.write_bytes(data)
    stream = gzip.decompress(data)
    n = len(Bam(stream).records())
    with pysam.AlignmentFile(out, check_sq=False) as f:
        assert sum(1 for _ in f.fetch(until_eof=True)) == n
    pysam.samtools.quickcheck(*(["-u"] if name.endswith("no_refs") else []), str(out))


def test_output_bytes_change_from_run_to_run(made):
    """No time stamp, no uninitialised byte."""
    outs = {sorted_bytes(["-@", 3, made("mixed")]) for _ in range(5)}
    assert len(outs) == 1


def test_file_output_differs_from_standard_output(made, tmp_path):
    out = tmp_path / "out.bam"
    args = ["--no-PG", "-@", 2, made("mixed")]
    p = run_sort(["-o", out, *args])
    assert (p.returncode, p.stdout) == (0, b""), p.stderr
    assert out.read_bytes() == sorted_bytes(args) == sorted_bytes(["-o", "-", *args])


# ---------------------------------------------------------------- levels


@pytest.fixture(scope="module")
def by_level(realistic_bam):
    """level -> output, for every level and 'default'."""
    outs = {n: sorted_bytes(["--no-PG", "-@", 2, "-l", n, realistic_bam]) for n in range(10)}
    outs["default"] = sorted_bytes(["--no-PG", "-@", 2, realistic_bam])
    return outs


@pytest.mark.slow
@pytest.mark.parametrize("level", [*range(10), "default"])
def test_level_changes_records(realistic_bam, by_level, level):
    same_records(read_bam(by_level[level]), oracle(realistic_bam, "--no-PG"))


def test_level_is_ignored(by_level):
    """Level 1 may be smaller than 2 and 3: those are libdeflate's, which know nothing of fields."""
    sizes = [len(by_level[n]) for n in range(10)]
    assert sizes[0] > 2 * sizes[1], "level 0 or level 1 is not what it says"
    assert all(a >= b for a, b in zip(sizes[2:], sizes[3:])), "a higher level gives a larger file"
    assert sizes[1] > sizes[5] > sizes[9]


def test_level_6_is_not_the_default(by_level):
    assert by_level[4] == by_level[5] == by_level[6] == by_level["default"]


def test_level_0_compresses(by_level):
    for b in blocks(by_level[0]):
        if b.data:
            assert b.deflated[0] & 6 == 0, "block at %d is no stored block" % b.offset


def test_level_is_ignored_for_the_last_block_or_the_header(by_level):
    found = blocks(by_level[9])
    assert all(b.size < len(b.data) for b in found if len(b.data) > 100)


@pytest.mark.parametrize("args,same_as", [
    (["-u"], 0), (["-l", "10"], 9), (["-l", "100"], 9), (["-l", "-1"], "default"),
    (["-l", "-7"], "default"), (["-l", "+3"], 3), (["-l", " 3"], 3), (["-l9"], 9),
    (["-l", "9", "-u"], 0), (["-u", "-l", "1"], 1), (["-u", "-l", "-1"], "default"),
    (["-l", "1", "-l", "6"], 6), (["-ul1"], 1)],
    ids=lambda v: "".join(v) if isinstance(v, list) else "as-%s" % v)
def test_level_option_means_another_level(realistic_bam, by_level, args, same_as):
    assert sorted_bytes(["--no-PG", "-@", 2, *args, realistic_bam]) == by_level[same_as]


@pytest.mark.parametrize("args", [[], ["-l", 1]], ids=lambda v: "".join(map(str, v)) or "default")
@pytest.mark.parametrize("threads", [1, 2, 8])
def test_file_is_written_in_small_pieces(realistic_bam, tmp_path, fault_shim, args, threads):
    """Parallel file systems and network disks need 512 KiB and more."""
    out, report = tmp_path / "out.bam", tmp_path / "report"
    assert run_sort([*args, "-@", threads, "-o", out, realistic_bam], env={**fault_shim, "FAULT_REPORT": str(report)}).returncode == 0
    calls = dict(line.split() for line in report.read_text().splitlines())
    assert int(calls["pwritev"]) == -(-out.stat().st_size // (512 << 10)) > 1
    assert calls["writev"] == calls["pwrite"] == "0"


@pytest.mark.parametrize("level", ["x", "", "5x", "0x5", "1.5", "99999999999", "1 2"])
def test_bad_level_is_accepted(made, tmp_path, level):
    out = tmp_path / "out.bam"
    p = run_sort(["-l", level, "-o", out, made("ties")])
    assert p.returncode == 1
    assert "Invalid compression level" in p.stderr and "See samtools sort --help" in p.stderr
    assert not p.stdout and not out.exists()


# ---------------------------------------------------------------- size


def default_sizes(path, scratch):
    theirs = scratch / "theirs.bam"
    pysam.samtools.sort("--no-PG", "-o", str(theirs), str(path), catch_stdout=False)
    return len(sorted_bytes(["--no-PG", "-@", 2, path])), theirs.stat().st_size


def test_default_output_is_larger_than_samtools_own(realistic_bam, tmp_path):
    ours, theirs = default_sizes(realistic_bam, tmp_path)
    assert ours <= 1.02 * theirs


@pytest.mark.parametrize("path", DATA_BAMS + REAL_BAMS)
def test_default_output_of_real_input_is_larger_than_samtools_own(path, tmp_path):
    ours, theirs = default_sizes(path, tmp_path)
    assert ours <= 1.02 * theirs
