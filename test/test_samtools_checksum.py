# SPDX-License-Identifier: MIT
"""--checksum samtools:FILE against `samtools checksum` of the output."""

import random
import struct

import pysam
import pytest

from conftest import needs_htslib, run_sort
from test_spill import MANY

ORDERS = [[], ["-n"], ["-M"], ["-t", "NM"]]
HEADER = "@HD\tVN:1.6\n@SQ\tSN:c\tLN:1000\n@RG\tID:Z\n@RG\tID:A\n"
TAGS = [b"RTi\5\0\0\0", b"RTI\0\1\1\0", b"RTs\x7f\xff", b"RTs\x80\xff", b"RTs\xff\0", b"RTi\0\x80\xff\xff", b"RTi\xff\x7f\xff\xff", b"RTi\0\1\0\0",
        b"RTi\xff\xff\0\0", b"RTi\0\0\1\0", b"RTc\5",
        b"RTf\0\0\0\0", b"RTAx", b"RTHAB\0", b"RTBc\2\0\0\0\1\2", b"TCZx\0RTZy\0BCZz\0", b"BCZx\0BCZy\0", b"FIS\x2c\1QTZII\0XXZBC\0"]
GROUPS = [b"", b"RGZA\0", b"RGZZ\0", b"RGZA\0RGZZ\0", b"RGZAB\0", b"RGZlonger than the column\0", b"RGZ-\0", b"RGZall\0"]


def record(rnd, long):
    n = rnd.choice([0, 1, 2, 3, 4, 150, 151, 4093, 4094, 4095, 4096, 4097, 4098] + ([140001, 140002] if long else []))
    flag = 4 | rnd.choice([0, 16]) | rnd.choice([0, 0x41, 0x81, 0xc1]) | rnd.choice([0, 0, 0x100, 0x800, 0x200, 0x400])
    qual = b"\xff" * n if rnd.random() < .2 else bytes(rnd.randrange(10, 94) for _ in range(n))   # "*" is none in SAM
    name = ("r%d" % rnd.randrange(10**6)).encode() + b"\0"
    r = struct.pack("<iiBBHHHiiii", -1, -1, len(name), 0, 4680, 0, flag, n, -1, -1, 0) + name
    r += rnd.randbytes(n // 2) + bytes([rnd.randrange(16) << 4]) * (n % 2) + qual
    r += rnd.choice(GROUPS) + rnd.choice(TAGS)
    return struct.pack("<i", len(r)) + r


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    rnd, path = random.Random(1), tmp_path_factory.mktemp("odd") / "odd.bam"
    with pysam.BGZFile(str(path), "wb") as f:
        f.write(b"BAM\1" + struct.pack("<i", len(HEADER)) + HEADER.encode() + struct.pack("<ii2si", 1, 2, b"c\0", 1000))
        for i in range(1500):
            f.write(record(rnd, i % 50 == 0))
    return path


def compare(folder, args, source, out="out.bam", **kw):
    p = run_sort(["--checksum", "samtools:sum", "-o", out, *args, source], cwd=folder, **kw)
    assert p.returncode == 0, p.stderr
    first, rest = pysam.samtools.checksum(str(folder / out)).split("\n", 1)
    assert (folder / "sum").read_text() == "# Checksum 1.0 for file: %s\n" % out + rest and first


@pytest.mark.parametrize("env", [{}, MANY], ids=["in_memory", "spilled"])
@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("order", ORDERS, ids="".join)
def test_table_differs_from_that_of_samtools(odd, tmp_path, order, threads, env):
    compare(tmp_path, ["-@", threads, "-l", "1", *order], odd, env=env)


@pytest.mark.parametrize("out", ["out.sam", "out.sam.gz", "out.cram"])
def test_table_depends_on_the_format(odd, tmp_path, out):
    if out.endswith("cram"):
        needs_htslib(1, 16)  # older ones lose read groups that the header lacks
    compare(tmp_path, ["-@", 3] + ["--output-fmt-option", "no_ref=1"] * out.endswith("cram"), odd, out)


@pytest.mark.parametrize("name", ["mixed", "long_records", "header_only", "seq_shapes", "cg_short", "one_record"])
@pytest.mark.parametrize("more", [[], ["--verify"]], ids="".join)
def test_table_misses_records(made, tmp_path, name, more):
    compare(tmp_path, ["-@", 2, *more], made(name))


def test_table_of_a_check_is_that_of_another_file(odd, tmp_path):
    p = run_sort(["-o", "out.bam", odd], cwd=tmp_path)
    p = run_sort(["--check", "--checksum=samtools:-", "out.bam"], cwd=tmp_path)
    assert p.returncode == 0
    assert p.stdout.decode().split("\n", 1)[1] == pysam.samtools.checksum(str(tmp_path / "out.bam")).split("\n", 1)[1]


def test_prefix_without_a_file_is_taken(odd, tmp_path):
    p = run_sort(["--checksum=samtools:", "-o", "out.bam", odd], cwd=tmp_path)
    assert p.returncode == 1 and "--checksum needs a file" in p.stderr and not list(tmp_path.iterdir())
