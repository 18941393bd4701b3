# SPDX-License-Identifier: MIT
"""Inputs and settings that end a sort, or would end it late: the messages, and their time."""

import base64
import bz2
import lzma
import os
import struct
import subprocess
import zlib

import pytest

from conftest import BINARY, HANG, clean_env, run_sort

SAM = (b"@HD\tVN:1.6\n@SQ\tSN:a\tLN:1000\n"
       + b"".join(b"r%d\t0\ta\t%d\t60\t4M\t*\t0\t0\tACGT\tIIII\n" % (i, 900 - i) for i in range(500)))


def razf(data):
    """gzip with its own kind of blocks, as samtools 0.1 wrote them: their list is after the data."""
    z = zlib.compressobj(6, zlib.DEFLATED, -15)
    deflated = z.compress(data) + z.flush()
    return (b"\x1f\x8b\x08\x04\0\0\0\0\0\3" + struct.pack("<H", 7) + b"RAZF\1\x80\0" + deflated
            + struct.pack("<II", zlib.crc32(data), len(data)) + bytes(16))


PACKED = {"xz": lzma.compress(SAM), "bzip2": bz2.compress(SAM), "RAZF": razf(SAM), "zstd": b"\x28\xb5\x2f\xfd\x04\x00" + SAM,
          "lz4": b"\x04\x22\x4d\x18\x64\x40\xa7" + SAM, "lzip": b"LZIP\1\x0c" + SAM, "compress": b"\x1f\x9d\x90" + SAM,
          "zip": b"PK\3\4\x14\0" + SAM, "7-Zip": b"7z\xbc\xaf\x27\x1c\0\4" + SAM}


@pytest.mark.parametrize("how", ["file", "pipe", "check", "plan", "add", "filter", "data:"])
@pytest.mark.parametrize("kind", [*PACKED, "cut xz", "xz of BAM"])
def test_compressed_text_ends_the_program_in_htslib(tmp_path, kind, how):
    """hts_getline() calls abort() if text is compressed by anything but gzip."""
    name, path, plain = kind.split()[-1] if kind != "xz of BAM" else "xz", tmp_path / "in.sam", tmp_path / "plain.sam"
    data = {"cut xz": PACKED["xz"][:40], "xz of BAM": lzma.compress(b"BAM\1" + bytes(64))}.get(kind) or PACKED[kind]
    path.write_bytes(data)
    plain.write_bytes(SAM)
    out = tmp_path / "out.bam"
    args = {"file": ["-o", out, path], "pipe": ["-o", out, "-"], "check": ["--check", path], "plan": ["--plan", "-o", out, path],
            "add": ["--add-input", path, "-o", out, plain], "filter": ["--input-fmt-option", "filter=mapq>1", "-o", out, path],
            "data:": ["-o", out, "data:;base64," + base64.b64encode(data[:60]).decode()]}[how]
    p = run_sort(args, stdin=data if how == "pipe" else None)
    assert p.returncode == 1, (p.returncode, p.stderr)
    assert "is compressed by %s. Only gzip and BGZF are read" % name in p.stderr and p.stderr.count("\n") == 1
    assert sorted(os.listdir(tmp_path)) == ["in.sam", "plain.sam"]


@pytest.mark.parametrize("data,shown", [
    (b"[M::bwa_idx_load_from_disk] read 0 ALT contigs\nr1\t", 'it begins with "[M::bwa_idx_load_from_disk] read 0 ALT c"'),
    (b"\x89PNG\r\n\x1a\n and so on", 'it begins with "\\x89PNG\\x0d"'),
    (zlib.compress(b"hello\tworld\nand so on\n", wbits=31), 'it begins with "hello\\x09world"'),
    (b"##fileformat=VCFv4.2\n#CHROM\tPOS\n", 'it begins with "##fileformat=VCFv4.2"')], ids=["log", "png", "gzip", "vcf"])
@pytest.mark.parametrize("piped", [False, True], ids=["file", "pipe"])
def test_what_the_file_is_instead_is_not_told(tmp_path, data, shown, piped):
    (tmp_path / "in").write_bytes(data)
    p = run_sort(["-o", tmp_path / "out.bam", "-" if piped else tmp_path / "in"], stdin=data if piped else None)
    assert p.returncode == 1 and shown in p.stderr, p.stderr


def test_bgzf_of_something_else_does_not_show_what(tmp_path):
    (tmp_path / "in.txt").write_bytes(b"##fileformat=VCFv4.2\n" * 9)
    subprocess.run([BINARY, "bgzip", "in.txt"], cwd=tmp_path, check=True, timeout=HANG, env=clean_env())
    p = run_sort(["-o", "out.bam", "in.txt.gz"], cwd=tmp_path)
    assert p.returncode == 1 and 'it begins with "##fileformat=VCFv4.2"' in p.stderr, p.stderr


# ---------------------------------------------------------------- places for temporary files


@pytest.mark.parametrize("args,env", [(["-T", "nowhere/x"], {}), (["-T", ".", "-T", "nowhere/x"], {}),
                                      (["--tmpdir-env"], {"TMPDIR": "nowhere"})], ids=["T", "second", "TMPDIR"])
def test_missing_place_is_told_when_memory_is_full(tmp_path, args, env):
    """The input is a pipe that may stay silent for an hour. The line comes before a byte was sent."""
    with subprocess.Popen([BINARY, "sort", *args, "-O", "sam", "-"], cwd=tmp_path, env=clean_env(**env), stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE) as p:
        line = p.stderr.readline().decode()
        out, err = p.communicate(SAM, timeout=HANG)
    assert "cannot create a temporary file in nowhere: No such file" in line and "warning" in line
    assert p.returncode == 0 and out.count(b"\nr") == 500 and not err, "samtools sorts what fits into memory"


def test_warning_of_places_that_are_not_needed(tmp_path):
    (tmp_path / "in.sam").write_bytes(SAM)
    for args, warned in ((["-T", "nowhere/x"], True), ([], False), (["-T", "."], False)):
        p = run_sort([*args, "-o", "out.bam", "in.sam"], cwd=tmp_path)
        assert p.returncode == 0 and ("cannot create a temporary file" in p.stderr) == warned, p.stderr


# ---------------------------------------------------------------- template order


PAIR = b"""@HD\tVN:1.6\n@SQ\tSN:a\tLN:1000
s\t99\ta\t11\t60\t4M4S\t=\t101\t94\tACGTACGT\tIIIIIIII\tMC:Z:4M
s\t%d\ta\t300\t60\t4M\t=\t101\t-200\tACGT\tIIII
s\t147\ta\t101\t60\t4M\t=\t11\t-94\tACGT\tIIII\tMC:Z:4M4S
"""


@pytest.mark.parametrize("flag,told", [(2147, ["supplementary", "fixmate sets it since version 1.24", "-F 0x800"]),
                                       (355, ["secondary", "fixmate sets none", "-F 0x100"]), (99, ["run samtools fixmate"])])
@pytest.mark.parametrize("check", [False, True], ids=["sort", "check"])
def test_advice_for_a_read_without_mc_goes_in_circles(tmp_path, flag, told, check):
    args = ["--template-coordinate", *(["--check"] if check else ["-o", tmp_path / "out.bam"]), "-"]
    p = run_sort(args, stdin=PAIR % flag)
    assert p.returncode == 1
    for word in ["record 2 (s): ", "no MC tag", *told]:
        assert word in p.stderr, p.stderr


# ---------------------------------------------------------------- options


def test_several_tags_look_like_several_keys(tmp_path):
    for args, warned in ((["-t", "AB", "-t", "CD"], True), (["-t", "AB", "-t", "AB"], False), (["-t", "AB"], False)):
        p = run_sort([*args, "-o", tmp_path / "out.bam", "-"], stdin=SAM)
        assert p.returncode == 0 and ("only the last one is used, -t CD" in p.stderr) == warned, p.stderr
