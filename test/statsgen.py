# SPDX-License-Identifier: MIT
"""Random input for `stats`, legal and odd, and random options, by seed."""

import random

import bamgen

REFS = [("chr1", 20000), ("chr2", 3000), ("tiny", 120), ("chr3", 70000)]
GROUPS = "@RG\tID:g1\tSM:s1\n@RG\tID:g2\tSM:s2\n@RG\tID:g3\tSM:s1\n"


def fasta(r):
    """The reference as text of a FASTA file, and its sequences."""
    sequences = ["".join(r.choices("ACGTacgtNRY", weights=(20, 20, 20, 20, 4, 4, 4, 4, 3, 1, 1), k=n)) for _, n in REFS]
    lines = [">%s\n%s\n" % (name, "\n".join(s[i:i + 60] for i in range(0, len(s), 60)))
             for (name, _), s in zip(REFS, sequences)]
    return "".join(lines), sequences


def cigar_of(r, n, far):
    """Operations that take n bases of SEQ."""
    ops, left = [], n
    if r.random() < 0.05:
        ops.append((r.randint(1, 400), "H"))
    if r.random() < 0.15 and left > 2:
        k = r.randint(1, left // 2)
        ops.append((k, "S"))
        left -= k
    while left > 0:
        k = left if r.random() < 0.7 else r.randint(1, left)
        ops.append((k, r.choices("M=XI", weights=(12, 1, 1, 2))[0]))
        left -= k
        if left and r.random() < 0.6:
            ops.append((r.randint(1, 8), "D") if r.random() < 0.7 else (r.randint(1, far), "N"))
        elif left and r.random() < 0.05:
            ops.append((1, "P"))
    if r.random() < 0.04:
        ops.append((r.randint(1, 200), "H"))
    return ops


def tags_of(r, style):
    out = b""
    if r.random() < 0.8:
        out += b"NM" + r.choice((b"C\3", b"c\xff", b"i\x10\0\0\0", b"f\0\0\0\0", b"ZX\0", b"S\1\1"))
    if r.random() < 0.7:
        out += b"RGZ" + r.choice((b"g1", b"g2", b"g3", b"none")) + b"\0"
    if style and r.random() < 0.8:
        out += barcode(r, style, b"BC", b"QT") + (barcode(r, style, b"RX", b"QX") if r.random() < 0.5 else b"")
    if r.random() < 0.2:
        out += b"XAZabc\0"
    return out


def barcode(r, style, tag, quality):
    n = 8 if style == 1 else r.choice((8, 8, 7, 9, 0))
    text = bamgen.bases(r, n)
    if r.random() < 0.05:
        text = text[:2] + "N" + text[3:]
    if style > 1 and r.random() < 0.7:
        at = 4 if r.random() < 0.9 else r.randint(0, 8)
        text = text[:at] + r.choice("-+") + text[at:]
    if r.random() < 0.02:
        text = text[:1] + "*" + text[2:]
    out = tag + b"Z" + text.encode() + b"\0"
    if r.random() < 0.8:
        k = len(text) - (r.random() < 0.05 and len(text) > 0)
        out += quality + b"Z" + bamgen.draw(r, b"#(-5<FIK", k) + b"\0"
    return out


FLAGS = (0, 16, 4, 65, 129, 83, 99, 147, 163, 97, 145, 81, 161, 113, 177, 73, 133, 69, 137, 77, 141, 193, 1, 1024, 1123,
         512, 2048, 2064, 256, 272, 2147, 1171, 675)


def record(r, i, kind):
    far = r.choice((20, 900, 6000))
    n = kind["length"](r)
    flag = r.choice(FLAGS)
    tid = r.choices((0, 1, 2, 3), weights=(8, 4, 1, 6))[0] if r.random() < 0.97 else -1
    if tid < 0:
        flag |= 4
    size = REFS[tid][1]
    pos = r.randint(0, max(0, size - 1 if not kind["fasta"] else size - n - 1)) if tid >= 0 else -1
    if kind["dense"] and tid >= 0:
        pos = int(min(size - 1, abs(r.gauss(size * 0.3, kind["dense"])))) if not kind["fasta"] else pos
    cigar = [] if flag & 4 else cigar_of(r, n, far)
    if not flag & 4 and not cigar:
        cigar = [(r.randint(1, 50), "M")] if n == 0 else [(n, "M")]
    if kind["fasta"] and cigar:
        span = sum(k for k, op in cigar if op in "MD=XN")
        if pos + span > size and r.random() < 0.995:
            cigar = [(n, "S" if pos + n > size else "M")]
    seq = "".join(r.choices("ACGTN=RK", weights=(30, 30, 30, 30, 3, 1, 1, 1), k=n))
    step = kind["qualities"]
    qual = b"\xff" * n if r.random() < 0.05 else bytes(r.choices(step, k=n))
    if r.random() < 0.5 and n:
        qual = bytes([step[-1]]) * n
    name = "t%d" % (i // 2 if kind["pairs"] else r.randint(0, 400))
    return bamgen.record(name, flag, tid, pos, r.choice((0, 0, 60, 60, 37, 255)), cigar, r.choice((tid, tid, tid, -1, 1)),
                         max(-1, pos + r.randint(-300, 300)), r.choice((0, 1, -1, 150, -150, 300, -2000, 9000, -70000, 350)),
                         seq, qual, tags_of(r, kind["barcodes"]))


LENGTHS = (lambda r: 100, lambda r: r.choice((100, 101, 99, 36, 0)), lambda r: r.randint(0, 299),
           lambda r: r.choice((50, 60, 290, 310, 320, 700)), lambda r: r.randint(1, 2500) if r.random() < 0.1 else 250)


def pairs_of(r, n, kind):
    """Proper pairs that overlap, by position."""
    out = []
    for i in range(n):
        tid = r.choice((0, 1, 3))
        a = r.randint(0, REFS[tid][1] - 700)
        b = a + r.choice((0, 1, 20, 80, 99, 100, 101, 250, r.randint(0, 300)))
        for pos, mate, flag, tlen in ((a, b, 99, b - a + 100), (b, a, 147, a - b - 100)):
            length = r.choice((100, 100, 60))
            cigar = r.choice(([(length, "M")], [(30, "M"), (length - 30, "M")], [(20, "M"), (15, "D"), (length - 20, "M")],
                              [(10, "S"), (length - 10, "M")], [(length - 20, "M"), (200, "N"), (20, "M")]))
            if r.random() < 0.03:
                flag ^= 192
            qual = bytes(r.choices(kind["qualities"], k=length))
            out.append(bamgen.record("p%d" % i, flag | r.choice((0, 0, 0, 1024)), tid, pos, 60, cigar, tid, mate, tlen,
                                     bamgen.bases(r, length), qual, tags_of(r, 0)))
            if r.random() < 0.05:
                out.append(bamgen.record("p%d" % i, flag | 2048, tid, pos + 30, 60, [(50, "H"), (50, "M")], tid, mate, tlen,
                                         bamgen.bases(r, 50), b"\x1e" * 50))
    return out


def place(rec):
    tid, pos = int.from_bytes(rec[4:8], "little", signed=True), int.from_bytes(rec[8:12], "little", signed=True)
    return tid & 0xFFFFFFFF, pos


def tagged(rec, tag, value):
    """The record with one more tag."""
    more = tag + b"Z" + value + b"\0"
    return (len(rec) - 4 + len(more)).to_bytes(4, "little") + rec[4:] + more


def case(seed, pairs=None, with_fasta=False):
    """Bytes of a BAM file, its options (except -r and -t), the text of a file of regions, of a FASTA file."""
    r = random.Random("stats %d" % seed)
    kind = {"length": r.choice(LENGTHS), "dense": r.choice((0, 0, 50, 1000)), "pairs": r.random() < 0.5, "fasta": with_fasta,
            "barcodes": r.choice((0, 0, 1, 2)), "qualities": r.choice(((2, 12, 23, 37), tuple(range(2, 42)), (30,), (0, 93, 254)))}
    n = r.choice((0, 1, 2, 20, 300, 1500))
    pairs = r.random() < 0.3 if pairs is None else pairs
    records = pairs_of(r, n, kind) if pairs else [record(r, i, kind) for i in range(n)]
    order = r.choice(("sorted", "sorted", "sorted", "nearly", "none"))
    if order != "none":
        records.sort(key=place)
    if order == "nearly" and n > 2:
        k = r.randrange(len(records) - 1)
        records[k], records[k + 1] = records[k + 1], records[k]
    text = "@HD\tVN:1.6\n" + bamgen.sq_text(REFS) + GROUPS
    stream = bamgen.header(text, REFS) + b"".join(records)
    options = []
    for words, share in ((["-q", "20"], .2), (["-l", "100"], .1), (["-I", r.choice(("s1", "g2", "nobody"))], .15), (["-x"], .2),
                         (["-f", r.choice(("1", "PAIRED,READ1", "0x40"))], .15), (["-F", r.choice(("UNMAP", "1024", "16"))], .15),
                         (["-d"], .15), (["-c", r.choice(("1,10,2", "0,5,1", "3,2,1", "2,50,100", "5,5,1"))], .25),
                         (["-m", r.choice(("0.5", "0.9", "2"))], .2), (["-i", r.choice(("100", "0", "8191", "9000"))], .25),
                         (["--GC-depth", r.choice(("100", "1000", "50.7", "0"))], .4), (["-p"], .3 + .5 * pairs)):
        if r.random() < share:
            options += words
    regions = []
    for _ in range(r.choice((1, 3, 12))):
        t = r.randrange(len(REFS))
        a = r.randint(1, REFS[t][1])
        regions.append((t, a, min(REFS[t][1], a + r.choice((0, 10, 300, 5000)))))
    if r.random() < 0.9:
        regions.sort()
    lines = "".join("%s\t%d\t%d\n" % (REFS[t][0], a, b) for t, a, b in regions)
    return bamgen.bgzf(stream), options, "# regions\n" + lines, fasta(r)[0]
