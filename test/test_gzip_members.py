# SPDX-License-Identifier: MIT
"""BGZF that contains plain gzip, and blocks with more flags than BGZF's own: gzip, htslib and `bgzip -d` read them."""

import gzip
import random
import re
import struct
import subprocess
import zlib

import pytest

import bamgen
from conftest import BINARY, HANG, clean_env, read_bam, run, run_sort, same_bam, sorted_bytes

EOF_BLOCK = bamgen.EOF_BLOCK
HEAD, RECS = bamgen.realistic(4000)
PLAIN = HEAD + b"".join(RECS)


def blocks(data):
    """BGZF without its EOF block."""
    return bamgen.bgzf(data, eof=False)


def block(data, flags=4, fields=b""):
    """One block with more flags, whose fields are before the data."""
    z = zlib.compressobj(6, zlib.DEFLATED, -15)
    deflated = fields + z.compress(data) + z.flush()
    return (b"\x1f\x8b\x08" + bytes([flags]) + b"\0\0\0\0\0\xff\6\0BC\2\0" + struct.pack("<H", 18 + len(deflated) + 7) + deflated
            + struct.pack("<II", zlib.crc32(data), len(data)))


def mixed(kind, data):
    third = len(data) // 3
    a, b, c = data[:third], data[third:2 * third], data[2 * third:]
    return {"tail": lambda: blocks(a + b) + gzip.compress(c),
            "after EOF": lambda: blocks(a + b) + EOF_BLOCK + gzip.compress(c),
            "middle": lambda: blocks(a) + gzip.compress(b) + blocks(c) + EOF_BLOCK,
            "several": lambda: blocks(a) + b"".join(gzip.compress(b[i:i + 20011]) for i in range(0, len(b), 20011)) + gzip.compress(c),
            "empty": lambda: blocks(a) + gzip.compress(b"") * 3 + blocks(b + c) + gzip.compress(b""),
            "header": lambda: blocks(data[:9]) + gzip.compress(data[9:]),
            "stored": lambda: blocks(a) + gzip.compress(b + c, 0),
            }[kind]()


KINDS = ["tail", "after EOF", "middle", "several", "empty", "header", "stored"]


@pytest.fixture(scope="module")
def wanted():
    return sorted_bytes(["--no-PG", "-l", "1"], stdin=bamgen.bgzf(PLAIN))


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("kind", KINDS)
def test_gzip_behind_blocks_ends_the_reading(tmp_path, wanted, kind, n):
    path = tmp_path / "in.bam"
    path.write_bytes(mixed(kind, PLAIN))
    for args, stdin in ((path, None), ("-", path.read_bytes())):
        p = run_sort(["--no-PG", "-l", "1", "-@", n, args], stdin=stdin)
        assert p.returncode == 0 and p.stdout == wanted and "EOF" not in p.stderr, p.stderr
    p = run_sort(["--no-PG", "-l", "1", "-@", n, path], env={"SAMTOOLS_OMP_ARENA": "262144"})
    assert p.stdout == wanted, p.stderr
    p = run(["bgzip", "-dc", "-@", n, path])
    assert p.returncode == 0 and p.stdout == PLAIN


def test_samtools_reads_less_there(tmp_path):
    from conftest import oracle
    path = tmp_path / "in.bam"
    path.write_bytes(mixed("tail", PLAIN))
    same_bam(read_bam(sorted_bytes(["--no-PG", path])), oracle(path, "--no-PG"))


def test_check_and_text_do_not_read_on(tmp_path, wanted):
    (tmp_path / "sorted.bam").write_bytes(wanted)
    plain = subprocess.run([BINARY, "bgzip", "-dc", tmp_path / "sorted.bam"], stdout=subprocess.PIPE, env=clean_env(), check=True,
                           timeout=HANG).stdout
    path = tmp_path / "in.bam"
    path.write_bytes(mixed("middle", plain))
    p = run_sort(["--check", path])
    assert p.returncode == 0, p.stderr
    text = sorted_bytes(["--no-PG", "-O", "sam", "-n"], stdin=wanted)
    path.write_bytes(mixed("middle", text))
    assert sorted_bytes(["--no-PG", "-O", "sam", path]) == sorted_bytes(["--no-PG", "-O", "sam"], stdin=text)
    assert sorted_bytes(["--no-PG", "-O", "sam", "-@", 3], stdin=path.read_bytes()) == sorted_bytes(["--no-PG", "-O", "sam"], stdin=text)


@pytest.mark.parametrize("cut,why", [(-9, "the file ends inside"), (-30000, "the file ends inside")])
@pytest.mark.parametrize("n", [1, 3])
def test_gzip_that_is_cut_passes_for_whole(tmp_path, cut, why, n):
    data = mixed("tail", PLAIN)
    p = run_sort(["-@", n, "-o", tmp_path / "out.bam"], stdin=data[:cut])
    assert p.returncode == 1 and why in p.stderr and not (tmp_path / "out.bam").exists(), p.stderr


def test_damaged_gzip_passes(tmp_path):
    """A broken record may be found before the member's checksum: then the message gives the place of the record."""
    data = mixed("tail", PLAIN)
    begin = len(blocks(PLAIN[:2 * (len(PLAIN) // 3)]))
    dice = random.Random(4)
    for at in [len(data) - 1, len(data) - 6, begin + 1000, *(dice.randrange(begin + 10, len(data)) for _ in range(10))]:
        bad = bytearray(data)
        bad[at] ^= 1 << dice.randrange(8)
        p = run_sort(["-o", tmp_path / "out.bam"], stdin=bytes(bad))
        assert p.returncode == 1 and re.search(r"block at file offset %d\b" % begin, p.stderr), (at, p.stderr)
        assert not (tmp_path / "out.bam").exists()
    p = run_sort(["-o", tmp_path / "out.bam"], stdin=data + b"not gzip any more")
    assert p.returncode == 1 and "file offset %d" % len(data) in p.stderr, p.stderr


QUALITIES = bytes(random.Random(1).choices(range(33, 74), k=20007))
TEXT = (b"@SQ\tSN:c\tLN:99999\n" + b"".join(b"r%d\t0\tc\t%d\t9\t8M\t*\t0\t0\tACGTACGT\t%s\n" % (
    i, i * 7919 % 99991 + 1, QUALITIES[i:i + 8]) for i in range(20000)))


def packed(data, size, level=6):
    """Members of `size` bytes each."""
    return b"".join(gzip.compress(data[i:i + size], level) for i in range(0, len(data), size))


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("kind", ["text", "bam"])
def test_members_of_plain_gzip_are_lost(tmp_path, kind, n):
    """Members of any size, and stored; a few end inside the header."""
    data = TEXT if kind == "text" else PLAIN
    want = sorted_bytes(["--no-PG", "-l", "1"], stdin=data)
    path = tmp_path / "in.gz"
    for whole in (packed(data, len(data)), packed(data, 65536), packed(data, 70001, 0), packed(data[:40], 9) + packed(data[40:], 1 << 20),
                  gzip.compress(data) + EOF_BLOCK, gzip.compress(data[:9999]) + bamgen.bgzf(data[9999:])):
        path.write_bytes(whole)
        for args, stdin in ((path, None), ("-", whole)):
            p = run_sort(["--no-PG", "-l", "1", "-@", n, args], stdin=stdin)
            assert p.returncode == 0 and p.stdout == want and not p.stderr, p.stderr
    p = run_sort(["--no-PG", "-l", "1", "-@", n, path], env={"SAMTOOLS_OMP_ARENA": "262144"})
    assert p.stdout == want, p.stderr


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("kind", ["text", "bam"])
def test_plain_gzip_that_is_cut_or_damaged_passes(tmp_path, kind, n):
    plain = TEXT if kind == "text" else PLAIN
    first = gzip.compress(plain[:200000])
    data, second = first + gzip.compress(plain[200000:]), len(first)
    place = "file offset|record [0-9]+ "  # the checksum comes last, so a record may be refused before it
    path, out, dice = tmp_path / "in.gz", tmp_path / "out.bam", random.Random(n)

    def refuse(bad, words):
        for args, name, stdin in ((path, str(path), None), ("-", "standard input", bad)):
            path.write_bytes(bad)
            p = run_sort(["-@", n, "-o", out, args], stdin=stdin)
            assert p.returncode == 1 and not out.exists() and not p.stdout, p.stderr
            assert name + ": " in p.stderr and re.search(place, p.stderr) and re.search(words, p.stderr) and p.stderr.count("\n") == 1, p.stderr

    for cut in (-1, -8, -9, -30000, second + 1, second + 300, second - 1):
        refuse(data[:cut], "the file ends inside")
    for at in (second - 1, second - 6, second + 3000, len(data) - 1, *(dice.randrange(second + 12, len(data)) for _ in range(6))):
        bad = bytearray(data)
        bad[at] ^= 1 << dice.randrange(8)
        refuse(bytes(bad), place)
    refuse(data + b"not gzip any more", "file offset %d: " % len(data))


FLAGS = {"text": (4 | 1, b""), "reserved": (4 | 0xe0, b""), "name": (4 | 8, b"in.bam\0"), "comment": (4 | 16, b"by hand\0"),
         "crc": (4 | 2, b"\1\2"), "all": (0xff, b"a\0b\0\1\2"), "empty name": (4 | 8, b"\0")}


@pytest.mark.parametrize("kind", FLAGS)
def test_other_flags_make_a_block_something_else(tmp_path, wanted, kind):
    flags, fields = FLAGS[kind]
    data = b"".join(block(PLAIN[i:i + 30000], flags, fields) for i in range(0, len(PLAIN), 30000)) + EOF_BLOCK
    path = tmp_path / "in.bam"
    path.write_bytes(data)
    assert sorted_bytes(["--no-PG", "-l", "1", path]) == wanted
    assert sorted_bytes(["--no-PG", "-l", "1", "-@", 3], stdin=data) == wanted
    p = run(["bgzip", "-dc", path])
    assert p.returncode == 0 and p.stdout == PLAIN


def test_name_that_does_not_end_is_read_beyond_the_block():
    for flags in (4 | 8, 4 | 16, 4 | 2):
        bad = bytearray(block(b"", flags, b"x" * 9))
        bad = bad[:18] + b"x" * (len(bad) - 18)
        p = run_sort(["-o", "/dev/null"], stdin=bamgen.bgzf(HEAD) + bytes(bad) + EOF_BLOCK)
        assert p.returncode == 1 and "block" in p.stderr, p.stderr
