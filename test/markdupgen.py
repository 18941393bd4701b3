# SPDX-License-Identifier: MIT
"""Seeded input for markdup: SAM by coordinate with few places and many kinds of records, so that many of them compete.
Each reference is a separate case. Names have tiles and coordinates, or a UMI; some are equal."""

import random
import re

REFERENCES = ["r%d" % i for i in range(12)]
HEADER = "@HD\tVN:1.6\tSO:coordinate\n" + "".join("@SQ\tSN:%s\tLN:1000000\n" % r for r in REFERENCES) \
    + "@RG\tID:g1\n@RG\tID:g2\n"
CIGARS = ["10M", "2S8M", "2H8M", "8M2S", "8M2H", "3H2S5M", "10M900N10M", "300S10M", "301S10M", "320H10M", "10M2D5M",
          "4M2I4M", "10M50S", "5M3P5M", "10M5S3H"]
TILES = [["a:1:1101", "a:1:1102"], ["a:1:9", "a:1:8", "a:1:10", "a:1:11"], ["a:1:99", "a:1:100", "a:1:101", "a:1:1000"]]
OLD = ["do:Z:old", "dt:Z:SQ", "dt:Z:LB", "dc:i:3", "dc:i:70000", "do:Z:older\tdo:Z:x"]


def query_length(cigar):
    return sum(int(n) for n, op in re.findall(r"(\d+)([A-Z=])", cigar) if op in "MIS=X")


class Reference:
    def __init__(self, r, ref, umi):
        self.r, self.ref, self.umi, self.tiles, self.names = r, ref, umi, r.choice(TILES), []

    def name(self, i, again):
        r = self.r
        if self.names and r.random() < again:
            return r.choice(self.names)
        if self.umi:
            name = "%d:1:F:1:1101:%d:%d:%s" % (i, r.randrange(300), r.randrange(300), r.choice(["AC", "AG", "AC_x"]))
        else:
            name = "%s:%d:%d#%d" % (r.choice(self.tiles), r.randrange(300), r.randrange(300), i)
        self.names.append(name)
        return name

    def record(self, i):
        r = self.r
        pos = r.choice([1000, 1002, 1005, 1010, 1300, 1301, 1302, 1310])
        if r.random() < .2:
            pos = 1000 + r.randrange(2000)
        cigar, kind, mate, mate_pos, tags = r.choice(CIGARS) if r.random() < .5 else "10M", r.random(), "*", 0, []
        flag, other = r.choice([0, 16]) | 512 * (r.random() < .05) | 1024 * (r.random() < .03), kind >= .85
        if .2 <= kind < .85:
            flag |= 1 | r.choice([64, 128]) | r.choice([0, 32]) | 8 * (r.random() < .08)
            mate_pos = r.choice([1000, 1002, 1010, 1100, 1101])
            mate = "=" if r.random() < .85 else "*" if r.random() < .3 else r.choice(REFERENCES)
            mate_cigar = r.choice(CIGARS + ["*", "xx5M", "H"]) if r.random() < .3 else "10M"
            tags = ["MC:Z:" + mate_cigar, "ms:i:%d" % r.choice([100, 200, 300, 300, 400, 70000])]
        elif other:
            flag |= r.choice([256, 2048, 4, 516, 13, 5]) | (r.random() < .2)
        tags += ["RG:Z:" + r.choice(["g1", "g2", "zz"])] * (r.random() < .3)
        tags += ["BX:" + r.choice(["Z:AC", "Z:AG", "Z:", "i:7"])] * (r.random() < .2)
        tags += [r.choice(["SA:Z:c", "XA:Z:d"])] * (r.random() < .2) + [r.choice(OLD)] * (r.random() < .15)
        n = query_length(cigar)
        quality = chr(33 + 40) * n if r.random() < .8 else r.choice(["*", chr(33 + r.choice([10, 14, 15, 20, 30])) * n])
        return pos, "\t".join(map(str, (self.name(i, .5 if other else .03), flag, REFERENCES[self.ref], pos, 60,
                                        "*" if flag & 4 else cigar, mate, mate_pos, 0, "A" * n, quality, *tags))) + "\n"


def sam(seed, n=250, umi=False):
    """n records for each reference, and two without one."""
    r, lines = random.Random(seed), [HEADER]
    for ref in range(len(REFERENCES)):
        reference = Reference(r, ref, umi)
        records = [reference.record(i) for i in range(n)]
        lines += [line for _, line in sorted(records, key=lambda record: record[0])]
    return "".join(lines) + "u\t4\t*\t0\t0\t*\t*\t0\t0\tAC\tII\n" * 2
