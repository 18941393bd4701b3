# SPDX-License-Identifier: MIT
"""Concatenated BAM files: the header of the second one is not a record."""

import os

import pytest

import bamgen
from conftest import oracle_call, run

REFS = [("c1", 5000), ("c2", 900)]
COMMANDS = ["sort -o o.bam IN", "sort -n -@ 3 -o o.bam IN", "sort --check IN", "sort -o o.bam --add-input IN good.bam",
            "merge -o o.bam IN good.bam", "merge -@ 3 -n -o o.bam good.bam IN", "collate -@ 2 -o o.bam IN", "fixmate IN o.bam",
            "fixmate -@ 3 IN o.bam", "markdup -@ 2 IN o.bam", "sormadup -o o.bam IN"]


def two(n, text, refs, form):
    """A BAM of n records and another one, as cat joins them."""
    head = bamgen.header("@HD\tVN:1.6\n" + bamgen.sq_text(REFS), REFS)
    first = head + b"".join(bamgen.record("r%d" % i, pos=i, seq="ACGT" * 25, tags=b"MCZ4M\0") for i in range(n))
    second = bamgen.header(text, refs) + bamgen.record("x")
    if form == "raw":
        return first, first + second
    return bamgen.bgzf(first), bamgen.bgzf(first, eof=form == "eof") + bamgen.bgzf(second)


@pytest.mark.parametrize("command", COMMANDS)
def test_second_header_is_called_a_broken_record(tmp_path, command):
    for n, text, refs, form in ((3, "@HD\tVN:1.6\n" + bamgen.sq_text(REFS), REFS, "eof"), (2000, "@CO\tx\n", REFS, "no eof"),
                                (900, None, REFS, "raw"), (0, None, REFS, "eof"), (1, "", [], "eof")):
        good, both = two(n, text, refs, form)
        (tmp_path / "good.bam").write_bytes(good)
        (tmp_path / "in.bam").write_bytes(both)
        p = run([x.replace("IN", "in.bam") for x in command.split()], cwd=tmp_path)
        assert p.returncode == 1 and p.stdout == b"", (n, form, p.stderr)
        assert "in.bam: after %d records (at byte " % n in p.stderr and "samtools cat" in p.stderr, (n, form, p.stderr)
        assert sorted(os.listdir(tmp_path)) == ["good.bam", "in.bam"]


def test_what_samtools_refuses_is_taken(tmp_path):
    (tmp_path / "in.bam").write_bytes(two(30, None, REFS, "eof")[1])
    assert oracle_call("sort", ["-o", tmp_path / "o.bam", tmp_path / "in.bam"])[0] == 1
