# SPDX-License-Identifier: MIT
"""Seeded templates for fixmate, as lines of SAM: every combination of flags, orphans, three primaries, alignments that
hang over their reference, tags that are there already, of other types and twice, no qualities, no sequence."""

import random

REFS = [("c1", 1000), ("c2", 500), ("c3", 60)]
HEADER = "@HD\tVN:1.6\tSO:unsorted\tGO:query\n" + "".join("@SQ\tSN:%s\tLN:%d\n" % ref for ref in REFS) + "@CO\tx\n"
PRIMARY_FLAGS = [0, 1, 65, 129, 67, 131, 193, 73, 137, 99, 147, 83, 163, 97, 145, 113, 177, 77, 141, 5, 4, 69, 133, 117,
                 181, 1024 + 99, 512 + 147, 101, 153, 16, 20, 89]
TAGS = ["MQ:i:3", "MQ:i:70000", "MQ:Z:x", "MC:Z:5M", "MC:i:5", "MC:Z:*", "ms:i:7", "ms:Z:old", "ct:Z:1F5M", "ct:i:1",
        "NM:i:1", "MD:Z:10", "SM:i:3", "AS:i:9", "XX:Z:some text", "B0:B:i,1,2,3", "RG:Z:g", "CG:Z:none", "zz:f:1.5",
        "AA:A:c"]
WORDS = ["all", "*", "none", "off", "on", "pos", "mqual", "unmap", "cigar", "cigdup", "cigarx", "aux"]


def cigar_of(r, room):
    """As text, and how many bases it has. Where it hangs over the room on the reference it has no D, N, P: samtools
    counts those as bases that it clips, and then CIGAR and SEQ differ in length."""
    if r.random() < 0.4:
        n = r.choice([5, 10, 10, 10, 30, 100])
        return "%dM" % n, n
    ops = [(r.choice([1, 2, 3, 5, 8, 20]), r.choice("MMMMID=XNP")) for _ in range(r.randint(1, 7))]
    if r.random() < 0.5:
        ops.insert(0, (r.randint(1, 4), "S"))
    if r.random() < 0.5:
        ops.append((r.randint(1, 4), "S"))
    if r.random() < 0.3:
        ops.insert(0, (r.randint(1, 4), "H"))
    if r.random() < 0.3:
        ops.append((r.randint(1, 4), "H"))
    if sum(n for n, op in ops if op in "MDN=X") > room:
        ops = [(n, "M" if op in "DNP" else op) for n, op in ops]
    return "".join("%d%s" % op for op in ops), sum(n for n, op in ops if op in "MIS=X")


def place_of(r):
    if r.random() < 0.06:
        return "*", r.choice([0, 0, 5])
    name, length = r.choice(REFS)
    kind = r.random()
    if kind < 0.25:
        return name, length - r.randint(-3, 30)
    if kind < 0.3:
        return name, 0
    return name, r.choice([10, 11, 15, 20, 30, r.randint(1, length)])


def line(r, name, flag):
    ref, pos = place_of(r)
    cigar, n = cigar_of(r, dict(REFS).get(ref, 0) - pos + 1)
    if flag & 4 or ref == "*" or r.random() < 0.03:
        cigar, n = ("*", r.choice([0, 5, 10])) if r.random() < 0.7 else (cigar, n)
    seq, qual = "".join(r.choice("ACGTN") for _ in range(n)) or "*", "*"
    if cigar != "*" and r.random() < 0.08:
        seq = "*"
    if seq != "*" and r.random() < 0.9:
        qual = "".join(chr(33 + r.choice([2, 14, 15, 16, 40])) for _ in seq)
        qual = "I" + qual[1:] if qual == "*" else qual
    mate = r.choice([("*", 0), ("=", 5), ("c2", 7), ("c1", 900)])
    if mate[0] == "=" and ref == "*":
        mate = ("*", 0)
    tags = r.sample(TAGS, r.choice([0, 0, 1, 2, 5]))
    if r.random() < 0.1:
        tags += r.sample(TAGS, 2)
    return "\t".join(map(str, [name, flag, ref, pos, r.choice([0, 30, 60, 255]), cigar, *mate, r.choice([0, 5, -5]),
                               seq, qual, *tags])) + "\n"


def template(r, name):
    """1 to 8 records of one name."""
    flags = [r.choice(PRIMARY_FLAGS) for _ in range(r.choice([0, 1, 1, 2, 2, 2, 2, 2, 3, 4]))]
    flags += [r.choice(PRIMARY_FLAGS) | r.choice([256, 2048, 2048, 2304]) for _ in range(r.choice([0, 0, 0, 1, 2, 4]))]
    if r.random() < 0.05:
        flags = [r.randrange(4096) for _ in range(r.randint(1, 6))]
    if not flags:
        flags = [99, 147]
    r.shuffle(flags)
    return "".join(line(r, name, flag) for flag in flags)


def sam(n, seed):
    """n templates. Some names come again later."""
    r = random.Random(seed)
    names = ["t%d" % (r.randrange(n) if r.random() < 0.05 else i) for i in range(n)]
    return HEADER + "".join(template(r, name) for name in names)


def options(r):
    """Of the command line, at random."""
    args = [x for x in ("-r", "-p", "-c", "-m") if r.random() < 0.4]
    if r.random() < 0.5:
        args += ["-z", ",".join(r.choice(WORDS) for _ in range(r.randint(1, 4)))]
    return args
