# SPDX-License-Identifier: MIT
"""The core of markdup by itself (build/dup_dump): flags, do, dt, dc and statistics as samtools 1.24 finds them."""

import os
import pathlib
import random
import re
import subprocess

import pysam
import pytest

from conftest import BINARY, DATA_BAMS, HANG, REAL_BAMS

DUMP = pathlib.Path(os.path.realpath(BINARY)).parent / "dup_dump"
pytestmark = pytest.mark.skipif(not DUMP.exists(), reason="no dup_dump: make check-programs")
REFERENCES = "cde"
HEADER = "@HD\tVN:1.6\tSO:coordinate\n" + "".join("@SQ\tSN:%s\tLN:1000000\n" % r for r in REFERENCES) \
    + "@RG\tID:g1\n@RG\tID:g2\n"
CIGARS = ["10M", "2S8M", "2H8M", "8M2S", "8M2H", "3H2S5M", "10M900N10M", "300S10M", "301S10M", "320H10M", "10M2D5M",
          "4M2I4M", "10M50S", "5M3P5M", "10M5S3H"]
TILES = [["a:1:1101", "a:1:1102"], ["a:1:9", "a:1:8", "a:1:10", "a:1:11"], ["a:1:99", "a:1:100", "a:1:101", "a:1:1000"]]
# Where chains are followed, all of a reference is in one window: samtools may use memory that it gave back where sets
# of one chain end at different places.
WIDE = ["-l", "100000"]
OPTIONS = {
    "plain": [], "names": ["-t", "--duplicate-count", *WIDE], "optical": ["-t", "-d", "50", "--duplicate-count", *WIDE],
    "at_once": ["-t", "-d", "50", "--no-multi-dup", "--duplicate-count"], "counts": ["--duplicate-count", "-l", "5"],
    "sequence": ["-m", "s", "--include-fails"], "groups": ["--use-read-groups", "-d", "100", "--json", *WIDE],
    "barcode_tag": ["--barcode-tag", "BX", "-l", "1000"], "barcode_form": ["--barcode-name", "-l", "0"],
    "barcode_regex": ["--barcode-rgx", "1:([0-9]+)", "-t", "--include-fails", *WIDE],
    "coords": ["-d", "60", "--read-coords", "^(.*):([0-9]+):([0-9]+)", "--coords-order", "tyx", *WIDE],
}


def query_length(cigar):
    return sum(int(n) for n, op in re.findall(r"(\d+)([A-Z=])", cigar) if op in "MIS=X")


def random_record(r, i, tiles):
    """Few places and many kinds, so that much meets."""
    ref, pos = r.choice([0, 0, 0, 1, 2]), r.choice([1000, 1002, 1005, 1010, 1300, 1301, 1302, 1310])
    if r.random() < .2:
        pos = 1000 + r.randrange(2000)
    cigar, kind, mate, mate_pos, tags = r.choice(CIGARS) if r.random() < .5 else "10M", r.random(), "*", 0, []
    flag = r.choice([0, 16]) | 512 * (r.random() < .05)
    if .2 <= kind < .9:
        flag |= 1 | r.choice([64, 128]) | r.choice([0, 32]) | 8 * (r.random() < .08) | 1024 * (r.random() < .04)
        mate_pos = r.choice([1000, 1002, 1010, 1100, 1101])
        mate = "=" if r.random() < .85 else "*" if r.random() < .3 else r.choice(REFERENCES)
        mate_cigar = r.choice(CIGARS + ["*", "xx5M", "H"]) if r.random() < .3 else "10M"
        tags = ["MC:Z:" + mate_cigar, "ms:i:%d" % r.choice([100, 200, 300, 300, 400, 70000])]
    elif kind >= .9:
        flag |= r.choice([256, 2048, 4, 516, 13, 5]) | (r.random() < .2)
    tags += ["RG:Z:" + r.choice(["g1", "g2", "zz"])] * (r.random() < .3)
    tags += ["BX:" + r.choice(["Z:AC", "Z:AG", "Z:", "i:7"])] * (r.random() < .2)
    name = "%s:%d:%d#%d" % (r.choice(tiles), r.randrange(300), r.randrange(300), i)
    n = query_length(cigar)
    quality = chr(33 + 40) * n if r.random() < .8 else r.choice(["*", chr(33 + r.choice([10, 14, 15, 20, 30])) * n])
    return ref, pos, "\t".join(map(str, (name, flag, REFERENCES[ref], pos, 60, "*" if flag & 4 else cigar, mate,
                                         mate_pos, 0, "A" * n, quality, *tags))) + "\n"


def random_file(path, seed):
    r = random.Random(seed)
    tiles = r.choice(TILES)
    records = sorted((random_record(r, i, tiles) for i in range(600)), key=lambda record: record[:2])
    path.write_text(HEADER + "".join(record[2] for record in records) + "u\t4\t*\t0\t0\t*\t*\t0\t0\tAC\tII\n" * 2)
    return path


def as_samtools(path, options, scratch):
    """Compares FLAG, do, dt and dc of each record, then the statistics but for the command line."""
    pysam.samtools.markdup("--no-PG", "-u", "-f", str(scratch / "stats"), *options, str(path), str(scratch / "out.bam"),
                           catch_stdout=False)
    with pysam.AlignmentFile(str(scratch / "out.bam"), check_sq=False) as out:
        wanted = [" ".join([str(b.flag), *(str(b.get_tag(t)) if b.has_tag(t) else "-" for t in ("do", "dt", "dc"))])
                  for b in out.fetch(until_eof=True)]
    found = subprocess.run([DUMP, *options, str(path)], stdout=subprocess.PIPE, check=True,
                           timeout=HANG).stdout.decode().splitlines()
    for record, (want, got) in enumerate(zip(wanted, found)):
        assert got == want, "record %d" % record
    stats = (scratch / "stats").read_text().splitlines()
    assert [s for s in found[len(wanted):] if "COMMAND" not in s] == [s for s in stats if "COMMAND" not in s]
    return wanted


@pytest.mark.parametrize("options", OPTIONS)
def test_records_are_marked_unlike_samtools(options, tmp_path):
    lost = 0
    for seed in range(4):
        wanted = as_samtools(random_file(tmp_path / "in.sam", "%s %d" % (options, seed)), OPTIONS[options], tmp_path)
        lost += sum(int(w.split()[0]) >> 10 & 1 for w in wanted)
    assert lost > 50


REAL = [p for p in [*DATA_BAMS, *REAL_BAMS] if re.search(r"small|chr22\.s|rna|group-umi", str(p))]


@pytest.mark.parametrize("path", REAL, ids=lambda path: os.path.basename(str(path)))
def test_real_files_are_marked_unlike_samtools(path, tmp_path):
    by_name, fixed, by_place = (str(tmp_path / name) for name in ("name.bam", "fixed.bam", "place.bam"))
    pysam.samtools.sort("-n", "-l", "0", "-o", by_name, str(path), catch_stdout=False)
    pysam.samtools.fixmate("-m", "-u", by_name, fixed, catch_stdout=False)
    pysam.samtools.sort("-l", "0", "-o", by_place, fixed, catch_stdout=False)
    as_samtools(by_place, ["-t", "-d", "100", "--duplicate-count"], tmp_path)
