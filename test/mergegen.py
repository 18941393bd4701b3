# SPDX-License-Identifier: MIT
"""Seeded inputs for merge: a file, sorted by the oracle, is split into many files with different headers and formats.

A Part is one input: header lines, references, records as the bytes they have in BAM. split() makes several from one;
the functions of CHANGES change their headers (and the records that refer to them); write() writes them to files."""

import re
import struct

import bamgen
from conftest import oracle_bytes, oracle_call, read_bam

ORDERS = {"coordinate": (), "name": ("-n",), "ascii": ("-N",), "CB": ("-t", "CB"), "NM": ("-t", "NM"),
          "RG": ("-t", "RG"), "name_by_tag": ("-n", "-t", "NM"), "template": ("--template-coordinate",)}
KINDS = ("bam", "u.bam", "sam", "sam.gz", "cram")
WAYS = ("group", "region", "robin", "random", "twice")


class Part:
    """lines: of the header, without line ends; refs: (name, length); records: bytes."""

    def __init__(self, lines, refs, records):
        self.lines, self.refs, self.records = list(lines), list(refs), list(records)

    def header(self):
        return bamgen.header("".join(line + "\n" for line in self.lines), self.refs)

    def of(self, kind):
        return [line for line in self.lines if line.startswith("@" + kind)]

    def replace(self, kind, lines):
        """Replaces the lines of this kind. The new lines stand where the first old one was, or at the end if there was
        none."""
        at = next((i for i, line in enumerate(self.lines) if line.startswith("@" + kind)), len(self.lines))
        before = self.lines[:at]
        self.lines = before + list(lines) + [x for x in self.lines[at:] if not x.startswith("@" + kind)]

    def copy(self, records):
        return Part(self.lines, self.refs, records)


def refs_of(bam):
    out, at, data = [], 4, bam.refs
    while at < len(data):
        n, = struct.unpack_from("<I", data, at)
        out.append((data[at + 4:at + 3 + n].decode(), struct.unpack_from("<I", data, at + 4 + n)[0]))
        at += 8 + n
    return out


def part_of(bam):
    return Part([x for x in bam.lines() if x], refs_of(bam), bam.records())


def sorted_part(path, order):
    """The result of the oracle's sort of a BAM, SAM or CRAM file, without a line of its own."""
    return part_of(read_bam(oracle_bytes(path, "--no-PG", "-l", "1", "-O", "bam", *order, scratch=path)))


# ------------------------------------------------------------------ records


VALUE = {b"A": 1, b"c": 1, b"C": 1, b"s": 2, b"S": 2, b"i": 4, b"I": 4, b"f": 4, b"d": 8}


def cut_tags(rec):
    """The bytes before the tags, and each of the tags."""
    n_cigar, _, l_seq = struct.unpack_from("<HHi", rec, 16)
    at = 36 + rec[12] + 4 * n_cigar + (l_seq + 1) // 2 + l_seq
    front, tags = rec[:at], []
    while at < len(rec):
        kind = rec[at + 2:at + 3]
        if kind in b"ZH":
            end = rec.index(b"\0", at + 3) + 1
        elif kind == b"B":
            end = at + 8 + VALUE[rec[at + 3:at + 4]] * struct.unpack_from("<I", rec, at + 4)[0]
        else:
            end = at + 3 + VALUE[kind]
        tags.append(rec[at:end])
        at = end
    return front, tags


def with_tags(front, tags):
    body = front[4:] + b"".join(tags)
    return struct.pack("<I", len(body)) + body


def with_refs(rec, ids):
    """ids: from a reference's number to its new one."""
    tid, = struct.unpack_from("<i", rec, 4)
    mate, = struct.unpack_from("<i", rec, 24)
    return rec[:4] + struct.pack("<i", ids.get(tid, -1)) + rec[8:24] + struct.pack("<i", ids.get(mate, -1)) + rec[28:]


def group_of(rec):
    found = re.search(rb"RGZ([^\0]*)\0", rec[36 + rec[12]:])
    return found.group(1) if found else b""


# -------------------------------------------------------------------- parts


def split(part, n, way, r):
    """n parts, each in the order of part. robin: in turn; twice: most records are in two of them."""
    parts, total = [[] for _ in range(n)], max(len(part.records), 1)
    cuts = sorted(r.randrange(total + 1) for _ in range(n - 1))
    weights = [r.choice((0, 1, 1, 5, 20)) for _ in range(n - 1)] + [1]     # some parts have only a header
    lane = 0
    for i, rec in enumerate(part.records):
        if way == "group":
            lane = hash_of(group_of(rec)) % n
        elif way == "region":
            while lane < n - 1 and i >= cuts[lane]:
                lane += 1
        elif way == "robin":
            lane = i % n
        else:
            lane = r.choices(range(n), weights)[0]
        parts[lane].append(rec)
        if way == "twice" and r.random() < .7:
            other = r.randrange(n)
            if other != lane:
                parts[other].append(rec)
    return [part.copy(x) for x in parts]


def hash_of(data):
    return sum(c * (i + 1) for i, c in enumerate(data))


def same_groups(parts, r):
    """All have the same read groups and programs, so all clash. The groups also name programs without a line."""
    for i, p in enumerate(parts):
        p.replace("RG", ["@RG\tID:x\tSM:s\tLB:l\tPG:p2", "@RG\tID:y\tSM:s%d" % (i % 2), "@RG\tID:g%d\tPG:none" % i])
        p.replace("PG", ["@PG\tID:p1\tPN:aligner\tCL:%d" % (i // 2), "@PG\tID:p2\tPP:p1"])
        tag_records(p, r, [b"x", b"y", b"g%d" % i, b"no"], [b"p1", b"p2", b"zz"])


def chains(parts, r):
    """Programs in several chains, also from the last to the first; each file has some that no other has."""
    for i, p in enumerate(parts):
        names = ["a", "b", "c%d" % (i % 3), "samtools", "samtools.1"]
        lines = ["@PG\tID:" + names[0]]
        lines += ["@PG\tID:%s\tPP:%s\tCL:x %d" % (name, before, i) for before, name in zip(names, names[1:])]
        lines += ["@PG\tPP:far\tID:near", "@PG\tID:far\tDS:PP of near", "@PG\tID:alone\tPP:nowhere"]
        if r.random() < .5:
            lines.reverse()
        p.replace("PG", lines[:r.randint(0, len(lines))])
        tag_records(p, r, [b""], [name.encode() for name in names] + [b"far"])


def tag_records(part, r, groups, programs):
    """RG and PG among the other tags: first, in the middle, last, or not at all."""
    for k, rec in enumerate(part.records):
        front, tags = cut_tags(rec)
        tags = [t for t in tags if t[:2] not in (b"RG", b"PG")]
        for name, values in (b"RG", groups), (b"PG", programs):
            if r.random() < .7:
                tags.insert(r.randint(0, len(tags)), name + b"Z" + r.choice(values) + b"\0")
        part.records[k] = with_tags(front, tags)


def comments(parts, r):
    for i, p in enumerate(parts):
        p.replace("CO", ["@CO\tof all"] * r.randint(0, 2) + ["@CO\tof %d\twith\ttabs" % (i % 3)])


def no_hd(parts, r):
    """The first ones have no @HD, perhaps none has; others have several kinds."""
    bare = r.randint(0, len(parts))
    for i, p in enumerate(parts):
        order = r.choice(("", "\tSO:coordinate", "\tGO:query", "\tSO:queryname\tSS:queryname:natural",
                          "\tXX:y\tSO:unsorted\tGO:none"))
        p.replace("HD", [] if i < bare else ["@HD\tVN:1.%d%s" % (3 + i % 4, order)])


def keep_refs(part, order):
    """order: numbers of the references that stay, in their new order. Records on other references are removed; mates
    there become unplaced."""
    names = [part.refs[i][0] for i in order]
    lines = {re.search("\tSN:([^\t]*)", x).group(1): x for x in part.of("SQ")}
    part.replace("SQ", [lines[name] for name in names if name in lines])
    part.refs = [part.refs[i] for i in order]
    ids = {old: new for new, old in enumerate(order)}
    part.records = [with_refs(rec, ids) for rec in part.records if struct.unpack_from("<i", rec, 4)[0] in ids
                    or struct.unpack_from("<i", rec, 4)[0] < 0]


def fewer_refs(parts, r):
    """Some of the references, in the same order. The first part also lacks some, so the order of all may differ."""
    for p in parts:
        keep_refs(p, [i for i in range(len(p.refs)) if r.random() < .8])


def first_has_all(parts, r):
    """Does the same as fewer_refs, but keeps the order."""
    fewer_refs(parts[1:], r)


def other_refs(parts, r):
    """References in another order. Each part keeps its order of records."""
    for p in parts:
        if r.random() < .6:
            order = list(range(len(p.refs)))
            r.shuffle(order)
            keep_refs(p, order)


def alternative_names(parts, r):
    """The first gives its references other names and lists the usual ones."""
    first = parts[0]
    first.replace("SQ", [re.sub("\tSN:([^\t]*)", r"\tSN:alt_\1\tAN:\1,x\1", x) for x in first.of("SQ")])
    first.refs = [("alt_" + name, size) for name, size in first.refs]
    for i, p in enumerate(parts[1:]):
        p.replace("SQ", [x + "\tM5:%d" % (i % 2) for x in p.of("SQ")])


CHANGES = {f.__name__: f for f in (same_groups, chains, comments, no_hd, fewer_refs, first_has_all, other_refs,
                                   alternative_names)}


# -------------------------------------------------------------------- files


def write(parts, folder, kinds=("bam",), name="in"):
    """Paths of files in these formats, in turn. A CRAM file has no reference, so that all versions read it the same
    way."""
    paths = []
    for i, part in enumerate(parts):
        kind = kinds[i % len(kinds)]
        path = folder / ("%s%03d.%s" % (name, i, kind))
        stream = part.header() + b"".join(part.records)
        if kind in ("bam", "u.bam"):
            path.write_bytes(bamgen.bgzf(stream, level=1 if kind == "bam" else 0))
        else:
            plain = folder / "plain.bam"
            plain.write_bytes(bamgen.bgzf(stream, level=0))
            form = {"sam": "sam", "sam.gz": "sam.gz", "cram": "cram,no_ref=1"}[kind]
            status, err = oracle_call("view", ["--no-PG", "--verbosity", "1", "-h", "-O", form, "-o", path, plain])
            assert status == 0, err
            plain.unlink()
        paths.append(path)
    return paths


# ----------------------------------------------------------------- contents


def pool(seed, n=3000):
    """Records on few places and names, with tags that orders use: most keys are in several inputs."""
    r = bamgen.rng("merge pool %s" % seed)
    out = []
    for i in range(n):
        tid = r.choice((0, 0, 1, 2, -1))
        tags = [b"XIZ%d\0" % i]
        if r.random() < .7:
            tags.append(b"CBZ" + r.choice((b"AC-1", b"AC", b"GT-1", b"GT-2", b"C")) + b"\0")
        if r.random() < .7:
            tags.append(b"NM" + r.choice((b"C\1", b"s\1\0", b"C\2", b"i" + b"\xff" * 4, b"f\0\0\x80\x3f",
                                         b"I\2\0\0\0")))
        if r.random() < .6:
            tags.append(b"RGZ" + r.choice((b"x", b"y", b"z", b"no")) + b"\0")
        if r.random() < .3:
            tags.append(b"PGZ" + r.choice((b"p1", b"p2", b"no")) + b"\0")
        r.shuffle(tags)
        seq = bamgen.bases(r, r.choice((4, 4, 10, 150)))
        flag = r.choice((0, 16, 4, 65, 129, 321, 2177)) | 4 * (tid < 0)
        name, pos = r.choice(("q%d", "q0%d", "Q%d")) % r.randrange(60), -1 if tid < 0 else r.randrange(40)
        out.append(bamgen.record(name, flag, tid, pos, seq=seq, tags=b"".join(tags), mtid=r.choice((-1, 0, 2)),
                                 mpos=r.randrange(9), bin=4680 if tid < 0 else None))
    lines = ["@HD\tVN:1.6\tSO:coordinate", *bamgen.sq_text().splitlines(), "@RG\tID:x\tSM:s\tLB:l1",
             "@RG\tID:y\tSM:s\tLB:l2", "@RG\tID:z\tSM:t", "@PG\tID:p1\tPN:aligner", "@PG\tID:p2\tPP:p1",
             "@CO\tof the pool"]
    return Part(lines, bamgen.REFS, out)
