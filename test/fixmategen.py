# SPDX-License-Identifier: MIT
"""Seeded templates for fixmate, as lines of SAM: every combination of flags, orphans, three primaries, alignments that
extend beyond their reference, tags that exist already, of other types and twice, no qualities, no sequence."""

import random
import re

REFS = [("c1", 1000), ("c2", 500), ("c3", 60)]
HEADER = "@HD\tVN:1.6\tSO:unsorted\tGO:query\n" + "".join("@SQ\tSN:%s\tLN:%d\n" % ref for ref in REFS) + "@CO\tx\n"
PRIMARY_FLAGS = [0, 1, 65, 129, 67, 131, 193, 73, 137, 99, 147, 83, 163, 97, 145, 113, 177, 77, 141, 5, 4, 69, 133, 117,
                 181, 1024 + 99, 512 + 147, 101, 153, 16, 20, 89]
TAGS = ["MQ:i:3", "MQ:i:70000", "MQ:Z:x", "MC:Z:5M", "MC:i:5", "MC:Z:*", "ms:i:7", "ms:Z:old", "ct:Z:1F5M", "ct:i:1",
        "NM:i:1", "MD:Z:10", "SM:i:3", "AS:i:9", "XX:Z:some text", "B0:B:i,1,2,3", "RG:Z:g", "CG:Z:none", "zz:f:1.5",
        "AA:A:c"]
WORDS = ["all", "*", "none", "off", "on", "pos", "mqual", "unmap", "cigar", "cigdup", "cigarx", "aux"]


def cigar_of(r, room):
    """Returns a CIGAR as text, and the number of its bases. If it extends beyond the reference it has no D, N, P:
    samtools counts those as bases that it clips, and then CIGAR and SEQ differ in length."""
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


def sam(n, seed, again=0.05):
    """n templates. again: the share of names that may occur again later."""
    r = random.Random(seed)
    names = ["t%d" % (r.randrange(n) if r.random() < again else i) for i in range(n)]
    return HEADER + "".join(template(r, name) for name in names)


def options(r):
    """Options of the command line, at random."""
    args = [x for x in ("-r", "-p", "-c", "-m") if r.random() < 0.4]
    if r.random() < 0.5:
        args += ["-z", ",".join(r.choice(WORDS) for _ in range(r.randint(1, 4)))]
    return args


# ------------------------------------------------------ base modifications

COMPLEMENT = str.maketrans("ACGTN", "TGCAN")


def reverse(seq):
    return seq.translate(COMPLEMENT)[::-1]


def chain(r, read, several):
    """A chain of MM for the read as it was sequenced, and the number of its values in ML."""
    base = r.choice("ACCCGTUN")
    n = len(read) if base == "N" else read.count("T" if base == "U" else base)
    at = sorted(r.sample(range(n), r.choice([0, min(n, 1), n // 3, n // 2, n])))
    deltas = [b - a - 1 for a, b in zip([-1] + at, at)]
    if r.random() < 0.05:
        deltas.append(r.choice([0, n, n + 3, 2000000000]))
    code = r.choice(["m", "m", "h", "a", "17596"] + ["mh", "fcx"] * several)
    text = base + r.choice("++-") + code + r.choice(["", ".", "?"]) + "".join(",%d" % d for d in deltas)
    return text + ";", len(deltas) * (1 if code.isdigit() else len(code))


def broken(r, mm):
    i = r.randrange(len(mm) + 1)
    return r.choice([mm[:-1], mm + "C", mm.replace(",", ",,", 1), mm.replace("+", "*", 1), mm.replace(",", "?,", 1),
                     mm.replace(",", ",x", 1), mm.replace(";", ",;", 1), mm[:i] + r.choice(",;?.1C+m") + mm[i:], "",
                     mm.replace(",", ",99999999999,", 1), mm.replace(";", ",;"), mm.replace(",", ",-", 1)])


def mod_tags(r, read, sane):
    """MM and ML. sane: only those that samtools 1.24 can cut without harm to the record."""
    chains = [chain(r, read, not sane) for _ in range(r.choice([0, 1, 1, 1, 2, 3]))]
    while sane and chains and "," not in chains[-1][0]:
        chains.pop()
    mm, n = "".join(text for text, _ in chains), sum(n for _, n in chains)
    has_ml = r.random() < 0.8
    if not sane and r.random() < 0.15:
        n += r.choice([-1, 1, 5])
    if not sane and r.random() < 0.15:
        mm = broken(r, mm)
    ml = "B:C" + "".join(",%d" % r.randrange(256) for _ in range(n))
    if not sane and r.random() < 0.06:
        ml = r.choice(["B:c,1,2", "Z:x", "i:3", "B:S,5"])
    tags = [r.choice(["MM", "MM", "MM", "Mm"]) + ":" + (r.choice(["Z:" + mm] * 9 + ["i:5"]) if not sane else "Z:" + mm)]
    tags += [r.choice(["ML", "ML", "Ml"]) + ":" + ml] * has_ml
    if r.random() < 0.3:
        tags.reverse()
    return tags


def length_tag(r, own, whole, number):
    values = [own, whole, whole, 0, -1, own + 1, 300, 70000]
    return r.choice(["MN", "MN", "MN", "Mn"]) + ":" + r.choice(["i:%d" % r.choice(values)] * 9 + ["Z:x"] * (not number))


def mods_line(r, name, flag, read, tags):
    """tags: of the primary record; None: this is the primary one. Returns the line and its tags."""
    clips, op = [r.choice([0, 0, 3, len(read) // 3, len(read)]) for _ in range(2)], r.choice("SHH")
    if tags is None:
        clips, op = (clips, r.choice("SSH")) if r.random() < 0.3 else ([0, 0], "S")
    if sum(clips) > len(read) - (op == "S"):
        clips = [0, 0]
    seq = read[clips[0]:len(read) - clips[1]] if op == "H" else read
    cigar = "".join("%d%s" % (n, o) for n, o in [(clips[0], op), (len(read) - sum(clips), "M"), (clips[1], op)] if n)
    if r.random() < 0.04:
        seq = ""
    clipped = op == "H" and any(clips)
    if tags is None or not clipped or r.random() < 0.1:
        own = mod_tags(r, read, clipped and tags is not None) if r.random() < 0.93 else r.choice([[], ["ML:B:C,1,2"]])
    else:
        own = tags
    if flag & 16:
        seq = reverse(seq)
        cigar = "".join(x for x in reversed(cigar.replace("S", "S ").replace("M", "M ").replace("H", "H ").split()))
    all_tags = ["XA:Z:x"] + r.choice([[], ["NM:i:0"]]) + own + r.choice([[], ["zz:f:1.5"]])
    # samtools 1.24 damages a record that it cuts if a tag, MQ or MC too, comes after MN.
    if r.random() < (0.5 if not clipped or tags is None or not flag & 1 else 0):
        all_tags.append(length_tag(r, len(seq), len(read), tags is None))
    elif own and not clipped and r.random() < 0.3:
        all_tags.insert(r.randrange(1, len(all_tags)), length_tag(r, len(seq), len(read), tags is None))
    return "\t".join(map(str, [name, flag, "c1", r.randint(1, 900), 60, cigar or "*", "*", 0, 0, seq or "*",
                               "I" * len(seq) or "*", *all_tags])) + "\n", own


def is_cut_well(tags):
    """Returns whether samtools 1.24 cuts these without harm: numbers in the last chain, a value for each, nothing
    twice."""
    mm = [t[5:] for t in tags if t[:5] in ("MM:Z:", "Mm:Z:")]
    ml = [t[6:] for t in tags if t[:6] in ("ML:B:C", "Ml:B:C")]
    if len(mm) != 1 or len(tags) != 1 + len(ml):
        return False
    sound = re.fullmatch(r"([ACGTUN][+-]([a-z]|[0-9]+)[.?]?(,[0-9]{1,10})*;)*", mm[0])
    return sound and not re.search(r"(^|;)[^,;]+;$", mm[0]) and (not ml or ml[0].count(",") == mm[0].count(","))


def mods_template(r, name):
    """One or two reads, each with a primary record or more, and with others."""
    lines, halves = [], r.choice([[0], [0], [65, 129], [65], [129]])
    for half in halves:
        kinds, n = "ACGTCN" if r.random() < 0.3 else "ACGTC", r.choice([1, 5, 12, 30, 299])
        read = "".join(r.choice(kinds) for _ in range(n))
        tags = [None]
        for _ in range(r.choice([0, 1, 1, 1, 1, 2])):
            line, own = mods_line(r, name, half | r.choice([0, 16]), read, None)
            lines.append(line)
            tags = [own]
        sound = tags[0] if tags[0] is not None and is_cut_well(tags[0]) else mod_tags(r, read, True)
        for _ in range(r.choice([0, 1, 1, 2])):
            flag = half | r.choice([256, 2048, 2048, 2304]) | r.choice([0, 16])
            lines.append(mods_line(r, name, flag, read, sound)[0])
    r.shuffle(lines)
    return "".join(lines)


def mods_sam(n, seed):
    r = random.Random("mods %s" % seed)
    return HEADER + "".join(mods_template(r, "t%d" % i) for i in range(n))
