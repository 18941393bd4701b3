# SPDX-License-Identifier: MIT
"""Records whose names lack the closing NUL. samtools 1.24 adds it, so the record grows by one byte."""

import struct

import pytest

import bamgen
from conftest import oracle_call, read_bam, run, same_bam

LENGTHS = (1, 2, 3, 4, 5, 7, 8, 30, 31, 253, 254)


def opened(record):
    """The record without the NUL of its name."""
    size, n = struct.unpack_from("<I", record)[0], record[12]
    return struct.pack("<I", size - 1) + record[4:12] + bytes([n - 1]) + record[13:36 + n - 1] + record[36 + n:]


def pairs(coordinate):
    """Templates of two mates, in which none, one or both names are open; some names begin like the one before."""
    out = []
    for i in range(400):
        name = ("%03d" % i + "x" * 254)[:LENGTHS[i % len(LENGTHS)]] if i % 3 else "n" * (1 + i % 250)
        for half, place in ((99, 100 + i), (147, 300 + i)):
            tags = b"MCZ4M\0msS" + struct.pack("<H", 60)
            r = bamgen.record(name, half, 0, place, 60, [(4, "M")], 0, 400 + 2 * i - place, 204 if half == 99 else -204, "ACGT",
                              bytes([30] * 4), tags)
            out.append((place, opened(r) if (i * 7 + half) % 5 < 2 else r))
    return [r for _, r in (sorted(out, key=lambda x: x[0]) if coordinate else out)]


COMMANDS = {"fixmate": (False, "fixmate -m --no-PG {x} {a} {o}"), "markdup": (True, "markdup --no-PG {x} {a} {o}"),
            "merge": (True, "merge --no-PG {x} -o {o} {a} {a}"),
            "filter": (True, "sort --no-PG --input-fmt-option filter=1 {x} -o {o} {a}")}


@pytest.mark.parametrize("layout", ["whole", "small", "tiny"])
@pytest.mark.parametrize("command", COMMANDS)
def test_name_without_nul_is_refused(tmp_path, command, layout):
    by_place, words = COMMANDS[command]
    recs = pairs(by_place)
    stream = bamgen.header() + b"".join(recs)
    path = tmp_path / "in.bam"
    path.write_bytes(bamgen.bgzf(stream, size={"whole": bamgen.BLOCK, "small": 997, "tiny": 61}[layout]))
    name, *args = words.format(a=path, o=tmp_path / "theirs.bam", x="").split()
    assert oracle_call(name, args)[0] == 0
    expected = read_bam(tmp_path / "theirs.bam")
    for threads in 1, 3:
        ours = tmp_path / ("ours%d.bam" % threads)
        p = run(words.format(a=path, o=ours, x="-@ %d" % threads).split())
        assert p.returncode == 0, p.stderr
        same_bam(read_bam(ours), expected)


def test_template_goes_on_with_a_name_that_only_begins_like_its_own(tmp_path):
    """Over many chunks: each name is that of the template before and one letter more, without a NUL."""
    recs = []
    for i in range(9000):
        for half, place in ((99, 100), (147, 300)):
            recs.append(opened(bamgen.record("n" * (1 + i % 200), half, 0, place, 60, [(4, "M")], 0, 400 - place,
                                             204 if half == 99 else -204, "ACGT", bytes([30] * 4), b"")))
    path = tmp_path / "in.bam"
    path.write_bytes(bamgen.bgzf(bamgen.header() + b"".join(recs)))
    assert oracle_call("fixmate", ["-m", "--no-PG", path, tmp_path / "theirs.bam"])[0] == 0
    p = run(["fixmate", "-m", "--no-PG", "-@", 2, "--total-memory", "64M", path, tmp_path / "ours.bam"])
    assert p.returncode == 0, p.stderr
    same_bam(read_bam(tmp_path / "ours.bam"), read_bam(tmp_path / "theirs.bam"))


@pytest.mark.parametrize("command", COMMANDS)
def test_name_of_255_bytes_has_no_room_for_a_nul(tmp_path, command):
    by_place, words = COMMANDS[command]
    body = b"q" * 255 + b"\x12\x48" + b"IIII"
    path, out = tmp_path / "in.bam", tmp_path / "out.bam"
    path.write_bytes(bamgen.bam(bamgen.header(), [bamgen.raw_record(-1, -1, 255, 0, 4680, 0, 4, 4, -1, -1, 0, body)]))
    name, *args = words.format(a=path, o=out, x="").split()
    assert oracle_call(name, args)[0] == 1
    out.unlink(missing_ok=True)
    p = run(words.format(a=path, o=out, x="").split())
    assert p.returncode == 1 and "record 1 " in p.stderr and "does not end in NUL" in p.stderr and not out.exists()


def test_sort_does_not_say_what_adds_the_nul(tmp_path):
    path, out = tmp_path / "in.bam", tmp_path / "out.bam"
    path.write_bytes(bamgen.bam(bamgen.header(), pairs(True)))
    for words in ["sort", "-o", out, path], ["collate", "-o", out, path]:
        p = run(words)
        assert p.returncode == 1 and "samtools view -b adds it" in p.stderr and not out.exists(), p.stderr
