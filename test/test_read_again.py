# SPDX-License-Identifier: MIT
"""Output written with exit status 0 can be read by `samtools view`: records with broken tags, through every command
and into every format. If samtools 1.24 refuses them, or writes a file that it cannot read, ours refuses them."""

import os
import struct

import pytest

import bamgen
from conftest import PRECIOUS, oracle_call, run

# Tags at the end of a record.
BROKEN = {
    "cut": b"XXi\1\2", "cut in front of the value": b"NMC", "cut double": b"XXd\1\2\3\4\5",
    "unknown type": b"XX?abcdef", "unknown type, then a tag": b"XX?abcNMC\1", "type NUL": b"XX\0abcdef",
    "array too long": b"XXBC\x09\0\0\0\1\2\3", "array of 2^32": b"XXBI\xff\xff\xff\xff\1\2\3\4", "array cut": b"XXBC\1\0",
    "array of letters": b"XXBA\2\0\0\0ab", "array of doubles": b"XXBd\1\0\0\0" + b"\1" * 8, "array of texts": b"XXBZ\2\0\0\0ab",
    "text without NUL": b"XXZabc", "hex without NUL": b"XXH1AB", "hex of odd length": b"XXH1AB\0", "double": b"XXd" + struct.pack("<d", 1.5),
    "end of line in a text": b"XXZa\nb\0", "tab in a text": b"XXZa\tb\0", "tab as a character": b"XXA\t", "other control characters": b"XXZ\1\2\0",
    "name that is no name": b"\1\2C\3",
    "one stray byte": b"XXC\1X", "two stray bytes": b"XXC\1XY", "three stray bytes": b"XXC\1XYC", "three, which are a tag": b"XXC\1XYZ",
    "one NUL": b"XXC\1\0", "three NULs": b"XXC\1\0\0\0", "eight NULs": b"XXC\1" + b"\0" * 8,
    "nothing but a stray byte": b"X", "nothing but two": b"XY", "stray byte behind NM": b"XXC\1NMC\1X",
    "tags twice": b"XXC\1XXC\2NMC\1NMC\2", "MC twice": b"MCZ8M\0MCZ7M\0MQC\1MQC\2",
}
NAMES = {"tab in the name": b"b\tc", "end of line in the name": b"b\nc", "name of a header line": b"@b", "name with other bytes": b"b\1\xff"}
COMMANDS = ["sort", "collate", "merge -f", "fixmate", "fixmate -z off -m", "markdup", "markdup -r", "sormadup"]
FORMATS = ["bam", "sam", "cram"]


def cases(command):
    """Kind, name of the record, its tags: all for sort, some for others."""
    every = [*((what, b"b", tags) for what, tags in BROKEN.items()), *((what, name, b"XXC\1") for what, name in NAMES.items())]
    return every if command == "sort" else every[COMMANDS.index(command) % 3::3]


def file_of(name, tags, mapped):
    good, less = b"\x28" * 8, b"\x1e" * 8
    if mapped:
        recs = [bamgen.record("a", 0, 0, 5, seq="ACGTACGT", qual=good, tags=b"XYC\1"),
                bamgen.record(name, 0, 0, 5, seq="ACGTACGT", qual=less, tags=tags)]
    else:
        recs = [bamgen.record(name, 4, -1, -1, seq="ACGTACGT", qual=less, tags=tags),
                bamgen.record("c", 4, -1, -1, seq="ACGTACGT", qual=good, tags=b"XYC\1")]
    return bamgen.bam(bamgen.header(), recs)


def words(command, form, source, out):
    """Without a reference, 1.24 adds its own MD and NM to CRAM."""
    args = [*command.split()[1:], "--no-PG", "--output-fmt", form, *(["--output-fmt-option", "no_ref=1"] if form == "cram" else [])]
    files = [source, out] if command.split()[0] in ("fixmate", "markdup") else ["-o", out, source]
    return [command.split()[0], *args, *files]


def theirs(command, form, source, out):
    """Exit status, or 1 if it crashes; sormadup is three commands."""
    if command != "sormadup":
        name, *args = words(command, form, source, out)
        try:
            return oracle_call(name, args)[0]
        except AssertionError:
            return 1
    steps = [(words("fixmate -m", "bam", source, "fixed.bam")), words("sort", "bam", "fixed.bam", "sorted.bam"),
             words("markdup", form, "sorted.bam", out)]
    return max(oracle_call(name, args)[0] for name, *args in steps)


def viewed(path):
    """The lines, or None: samtools cannot read it."""
    status, _ = oracle_call("view", ["-h", "--no-PG", "-o", "viewed.sam", path])
    with open("viewed.sam", encoding="latin-1", newline="\n") as lines:
        return lines.read() if status == 0 else None


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("command", COMMANDS)
def test_file_that_nobody_can_read_is_written(command, form, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ours, other, both = "ours." + form, "theirs." + form, 0
    for what, name, tags in cases(command):
        for mapped in True, False:
            case = "%s, %s" % (what, "mapped" if mapped else "unmapped")
            with open("in.bam", "wb") as file:
                file.write(file_of(name, tags, mapped))
            with open(ours, "wb") as file:
                file.write(PRECIOUS)
            wanted = viewed(other) if theirs(command, form, "in.bam", other) == 0 else None
            before = sorted(os.listdir())
            p = run(words(command, form, "in.bam", ours))
            if wanted is None:
                told = [line for line in p.stderr.splitlines() if "warning: " not in line]
                assert p.returncode == 1 and len(told) == 1, (case, p.stderr)
                assert open(ours, "rb").read() == PRECIOUS and sorted(os.listdir()) == before, case
            else:
                assert p.returncode == 0, (case, p.stderr)
                found = viewed(ours)
                if command == "collate":         # in any order
                    found, wanted = sorted(found.splitlines()), sorted(wanted.splitlines())
                assert found == wanted or (form == "cram" and name == b"b\nc"), case    # 1.24 writes b
                both += 1
    assert both > 5


STRAY = ["one stray byte", "three stray bytes", "one NUL", "three NULs", "text without NUL"]


@pytest.mark.parametrize("option", ["-t", "--duplicate-count"])
def test_mark_behind_stray_bytes_is_lost(option, tmp_path, monkeypatch):
    """samtools writes it there, and a reader takes it as another tag or none. In CRAM a NUL ends the tags, and the
    mark is lost in both."""
    monkeypatch.chdir(tmp_path)
    for what in STRAY:
        for form in FORMATS:
            with open("in.bam", "wb") as file:
                file.write(file_of(b"b", BROKEN[what], True))
            p = run(words("markdup " + option, form, "in.bam", "ours." + form))
            if form != "cram" or "NUL" not in what or "text" in what or (option == "-t" and "three" in what):
                assert p.returncode == 1 and "in.bam: record 2 (b): its tags cannot be read" in p.stderr, (what, form, p.stderr)
            else:
                assert p.returncode == 0, (what, form, p.stderr)
                assert theirs("markdup " + option, form, "in.bam", "theirs." + form) == 0
                assert viewed("ours." + form) == viewed("theirs." + form), (what, form)


@pytest.mark.parametrize("n", [3, 70000])
def test_broken_tag_hides_where_blocks_meet(n, tmp_path):
    """The tag is in a record that two blocks share (with copied blocks), or in one longer than a block."""
    long_tag = b"ZZZ" + b"x" * n + b"\0"
    recs = [bamgen.record("r%05d" % i, 0, 0, i, seq="ACGT", tags=long_tag) for i in range(60)]
    (tmp_path / "good.bam").write_bytes(bamgen.bam(bamgen.header(), recs, "straddle"))
    recs[40] = bamgen.record("broken", 0, 0, 40, seq="ACGT", tags=long_tag + b"XXi\1\2")
    (tmp_path / "bad.bam").write_bytes(bamgen.bam(bamgen.header(), recs, "straddle"))
    for args in (["merge", "-f"], ["merge", "-f", "--copy-blocks"], ["sort"], ["sort", "-u"]):
        files = ["good.bam", "bad.bam"] if args[0] == "merge" else ["bad.bam"]
        p = run([*args, "-o", "out.bam", *files], cwd=tmp_path)
        assert p.returncode == 1 and "out.bam: record broken has a broken tag" in p.stderr, (args, p.stderr)
        assert not (tmp_path / "out.bam").exists()
        assert run([*args, "-o", "fine.bam", "good.bam"], cwd=tmp_path).returncode == 0
