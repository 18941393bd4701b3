# SPDX-License-Identifier: MIT
"""Seeded inputs for the orders by name, tag, template and minimiser: full of ties, and
with records late in the file that its beginning gives no hint of.

Each function returns (header, [record, ...]) as those of bamgen.CORPUS do.
"""

import struct

import pysam

import bamgen
from bamgen import bases, header, record, rng

# Every value of the bits that decide between records of one name, and some that do not.
NAME_FLAGS = [p | m | s | x for p, m in ((0, 0), (1, 0x40), (1, 0x80), (1, 0xc0), (1, 0))
              for s in (0, 0x100, 0x800, 0x900) for x in (0, 0x10, 0x400)]


def by_name(names, n, seed, **kw):
    """n records with names drawn from a list, all flag kinds."""
    r = rng(seed)
    return header(), [record(r.choice(names), r.choice(NAME_FLAGS), r.randint(0, 2), r.randint(0, 99), **kw)
                      for _ in range(n)]


# ---------------------------------------------------------------- names

TRAPS = ["a9", "a09", "a009", "a10", "a010", "a1", "a01", "a", "a0", "a00", "a000", "a0b", "a00b", "a9b", "a09b",
         "a09c", "a9a10", "a09a9", "a9a09", "a09a10", "0", "00", "1", "01", "10", "9", "09", "0a", "00a", "b", "A",
         "A9", "a-1", "a-01", "a:1", "a:01:2", "a:1:02", "a:1:2", "a99999999999999999999",
         "a099999999999999999999", "a99999999999999999998", "a100000000000000000000", "a18446744073709551616",
         "a18446744073709551615", "a4294967296", "a4294967295", "a9.", "a9/", "a9:", "a9 ", "~", "!", "a0~", "a~0"]


def n_traps():
    """Natural order: leading zeros, numbers beyond 64 bits, digits against other bytes."""
    return by_name(TRAPS, 3000, "name traps")


def n_hex():
    """8 hex digits, "1e5" and "1e05" among them: digit runs of any length."""
    r = rng("hex")
    names = ["%0*x" % (r.choice((4, 8, 8, 8)), r.getrandbits(r.choice((4, 16, 32)))) for _ in range(900)]
    return by_name(names + ["1e5", "1e05", "1e5f", "01e5"], 3000, "hex names")


def n_bytes():
    """One to five bytes of any value but NUL, and the empty name."""
    r = rng("byte names")
    names = [bytes(r.choice(b"a0\x01\x7f\x80\xff~9") for _ in range(r.randint(1, 5))) for _ in range(500)]
    return by_name([*names, b"", b"*"], 3000, "bytes")


def n_long():
    """Up to 254 bytes that differ at the end only, or where one of them ends."""
    names = ["x" * k + tail for k in (200, 248, 249) for tail in ("", "1", "01", "10", "y", "2")]
    return by_name(names + ["9" * k for k in (253, 254)] + ["0" * 254, "0" * 253 + "1"], 2000, "long names")


def illumina(r):
    return "A00132:53:HFHJKDSXX:%d:%d:%d:%d" % (r.randint(1, 4), 1101 + r.randrange(78),
                                               r.randint(1000, 33000), r.randint(1000, 37000))


def n_illumina():
    """The reads are from one run. Each name comes some three times."""
    r = rng("illumina")
    return by_name([illumina(r) for _ in range(1000)], 3000, "illumina names")


def n_srr():
    """SRR names with numbers of growing length: "9" before "10" by value only."""
    return by_name(["SRR062634.%d" % i for i in range(1, 1300)] + ["SRR062634.%d/1" % i for i in range(90)], 3000,
                   "srr names")


def n_mixed():
    """Names of several machines in one file."""
    r = rng("mixed names")
    names = [illumina(r) for _ in range(300)] + ["m84011_220902_175841_s1/%d/ccs" % r.getrandbits(27)
                                                 for _ in range(200)]
    names += ["SRR%d.%d" % (r.randint(1, 3), r.randrange(500)) for _ in range(200)] + TRAPS
    names += ["%08x-%04x-4%03x-%012x" % (r.getrandbits(32), r.getrandbits(16), r.getrandbits(12), r.getrandbits(48))
              for _ in range(200)]
    return by_name(names, 3000, "mixed names 2")


def n_late():
    """2,000 names of one shape, which a program might expect for all; then any others."""
    r = rng("late names")
    first = [illumina(r) for _ in range(900)]
    head, out = by_name(first, 2000, "late names 1")
    late = [x[:k] for x in first[:20] for k in (1, 5, 9, len(x) - 1)] + [x + y for x in first[:9] for y in "0:9a"]
    late += ["A00132:53:HFHJKDSXX:%s:%s:%s:%s" % (a, b, c, d) for a in (0, 5, 99, "01") for b in (1, 99999, "01101")
             for c in ("1000", "x", "123456789012") for d in (1, "")]
    return head, out + by_name(late + TRAPS + first, 2000, "late names 2")[1]


# ---------------------------------------------------------------- tags

INTEGERS = (("c", "b", -128, 127), ("C", "B", 0, 255), ("s", "h", -32768, 32767), ("S", "H", 0, 65535),
            ("i", "i", -2**31, 2**31 - 1), ("I", "I", 0, 2**32 - 1))
STRINGS = (b"", b"A", b"AC", b"ACGT", b"ACGTACGTACGT", b"ACGTACGTACGTA", b"ACGTACGTACGTACGT-1", b"a", b"~", b"0", b"10",
           b"9", b"\xc3\xa9", b"ACGT\x80", b"12/A")


def any_integer(r):
    code, form, low, high = r.choice(INTEGERS)
    value = r.choice((low, high, 0, 1, 7, max(low, -3), r.randint(low, high)))
    return code.encode() + struct.pack("<" + form, value)


def any_real(r):
    value = r.choice((0.0, -0.0, 1.0, 7.0, 1.5, -3.0, -3.25, 2.0**31, 2.0**32, 1e30, -1e30, 1e-40, 0.1,
                      float("inf"), float("-inf")))
    return r.choice((b"f" + struct.pack("<f", value), b"d" + struct.pack("<d", value)))


def any_value(r):
    kind = r.randrange(6)
    if kind == 0:
        return b"A" + bytes([r.choice(b"aZ~!\x80\xff")])
    if kind == 1:
        return b"B" + r.choice((b"C\2\0\0\0" + bytes([r.randrange(3), 1]), b"f\0\0\0\0"))
    if kind == 2:
        return any_real(r)
    if kind == 3:
        return r.choice((b"Z", b"H")) + r.choice(STRINGS) + b"\0"
    return any_integer(r)


def tagged(r, n, make, missing=0.1):
    """n records on few names and places with tag XT = make(r), with others around it."""
    out = []
    for _ in range(n):
        tags = b"NMC\1" if r.random() < .3 else b""
        if r.random() >= missing:
            tags += b"XT" + make(r)
        out.append(record(r.choice(("q1", "q01", "q2", "q10", "p")), r.choice((0, 16, 0x41, 0x81, 0x900, 0x910)),
                          r.randint(-1, 2), r.randint(-1, 3), seq="", bin=4680,
                          tags=tags + (b"YZZyz\0" if r.random() < .3 else b"")))
    return out


def t_all():
    return header(), tagged(rng("tags of all types"), 3000, any_value)


def t_integers():
    """All six integer types, with the same values in several."""
    return header(), tagged(rng("integer tags"), 3000, any_integer)


def t_numbers():
    """Integers among reals: equal values must tie, 2^31 and infinity included."""
    return header(), tagged(rng("number tags"), 3000, lambda r: any_real(r) if r.random() < .5 else any_integer(r))


def t_strings():
    return header(), tagged(rng("string tags"), 3000, lambda r: b"Z" + r.choice(STRINGS) + b"\0")


def t_cells():
    """Barcodes as 10x makes them: 16 bases and "-1"."""
    r = rng("cells")
    cells = [b"Z" + bases(r, 16).encode() + b"-1\0" for _ in range(40)]
    return header(), tagged(r, 3000, lambda r: r.choice(cells))


def t_none():
    """No record has the tag: only the second criterion decides."""
    return header(), tagged(rng("no tags"), 1500, None, missing=1)


def t_late_numbers():
    """Small integers first, then reals, huge and negative ones, then other types."""
    r = rng("late numbers")
    out = tagged(r, 3000, lambda r: b"C" + bytes([r.randrange(6)]), missing=0)
    out += tagged(r, 1000, lambda r: any_real(r) if r.random() < .5 else any_integer(r))
    return header(), out + tagged(r, 500, any_value)


def t_late_strings():
    """Barcodes of four letters and one length first, then any string."""
    r = rng("late strings")
    out = tagged(r, 3000, lambda r: b"Z" + bases(r, 6).encode() + b"-1\0", missing=0)
    late = [*STRINGS, b"AAAAAA", b"AAAAAA-", b"AAAAAA-1", b"AAAAAA-10", b"AAAAAA-2", b"AAAAAN-1", b"TTTTTT-1x"]
    return header(), out + tagged(r, 1000, lambda r: b"Z" + r.choice(late) + b"\0") + tagged(r, 300, any_value)


# ---------------------------------------------------------------- templates

GROUPS = ("@RG\tID:g1\tLB:libB\tSM:s\n@RG\tID:g2\tLB:libA\tSM:s\n@RG\tID:g3\tSM:s\n@RG\tID:g4\tLB:libA\tSM:t\n"
          "@RG\tID:g5\tLB:\tSM:t\n")
CIGARS = ["8M", "2S6M", "6M2S", "1S6M1S", "3H8M", "3H1S7M", "4M1D4M", "2M9N6M", "3M1I4M", "6M2S5H", "8=", "4M4S"]
MI = [b"12/A", b"12/B", b"12", b"7", b"", b"/", b"/A", b"1/", b"12/AB", b"12/", b"100", b"1/2/A", b"a", b"12A"]


def parse_cigar(text):
    out, n = [], ""
    for c in text:
        n = n + c if c.isdigit() else out.append((int(n), c)) or ""
    return out


def groups_of(r):
    tags = b""
    if r.random() < .7:
        tags += b"RGZ" + r.choice((b"g1", b"g2", b"g3", b"g4", b"g5", b"gx", b"")) + b"\0"
    if r.random() < .3:
        tags += b"CBZ" + r.choice((b"AC-1", b"AC", b"GT-1", b"")) + b"\0"
    if r.random() < .4:
        tags += b"MIZ" + r.choice(MI) + b"\0"
    return tags


def ends(r, name, spread):
    """Both ends of one template in name order, as an aligner gives them to fixmate."""
    out, tags = [], groups_of(r)
    unmapped = r.choice((0, 0, 0, 0, 1, 2, 3))
    for mate in (1, 2):
        flag = 1 | 0x40 << mate - 1 | r.choice((0, 16))
        if unmapped & mate:
            out.append(record(name, flag & ~16 | 4, -1, -1, seq="ACGTACGT", tags=tags))
            continue
        tid, pos = r.choice((0, 0, 0, 1, 2)), r.randint(0, spread)
        out.append(record(name, flag, tid, pos, cigar=parse_cigar(r.choice(CIGARS)), seq="ACGTACGT", tags=tags))
        if r.random() < .2:
            out.append(record(name, flag | 0x800, r.randint(0, 2), r.randint(0, spread), cigar=[(8, "M")],
                              seq="ACGTACGT", tags=tags))
        if r.random() < .1:
            out.append(record(name, flag | 0x100, tid, r.randint(0, spread), cigar=[(8, "M")], seq="", tags=tags))
    return out


def complete_mates(path, out):
    """fixmate leaves supplementary and secondary lines unchanged: they get the mate of the primary."""
    with pysam.AlignmentFile(path) as f, pysam.AlignmentFile(out, "wb", template=f) as o:
        primary = {}
        for x in f:
            if x.flag & 0x900:
                p = primary[x.query_name, x.is_read1]
                x.next_reference_id, x.next_reference_start = p.next_reference_id, p.next_reference_start
                x.flag |= p.flag & 0x28
                if p.has_tag("MC"):
                    x.set_tag("MC", p.get_tag("MC"))
            else:
                primary[x.query_name, x.is_read1] = x
            o.write(x)


def fixmated(spread):
    """Pairs through `samtools fixmate`, which fills in the mates' fields and MC; shuffled."""
    def make(folder):
        r = rng("fixmated %d" % spread)
        recs = [x for i in range(1500) for x in ends(r, "t%d" % i, spread)]
        recs += [record("single%d" % i, r.choice((0, 16, 4)), 0, r.randint(0, spread), tags=groups_of(r))
                 for i in range(300)]
        named, fixed, full = (folder / x for x in ("named.bam", "fixed.bam", "full.bam"))
        text = "@HD\tVN:1.6\tSO:queryname\n" + bamgen.sq_text() + GROUPS
        named.write_bytes(bamgen.bam(header(text), recs))
        pysam.samtools.fixmate("-m", "--no-PG", str(named), str(fixed), catch_stdout=False)
        complete_mates(fixed, full)
        return full
    return make


def p_odd():
    """Flags and MC that contradict each other, unmapped ends with places, odd tags."""
    r = rng("odd templates")
    mates = [*CIGARS, "*", "", "5H2S3M4S", "M", "3M2S2H", "7S2S1M", "3S", "2H", "10M5I", "4M2S1X"]
    out = []
    for _ in range(3000):
        flag = r.choice((0x40, 0x80))
        for bit, chance in ((1, .8), (2, .3), (4, .2), (8, .2), (16, .5), (32, .5), (0x100, .1), (0x800, .1)):
            flag |= bit if r.random() < chance else 0
        tid, mtid = r.choice((0, 0, 0, 1, -1)), r.choice((0, 0, 1, -1))
        # "Mapped" to no reference: samtools' comparison overflows there and becomes circular.
        flag |= (4 if tid < 0 else 0) | (8 if mtid < 0 else 0)
        tags = groups_of(r)
        if flag & 9 == 1 or r.random() < .5:
            tags += b"MCZ" + r.choice(mates).encode() + b"\0"
        out.append(record(r.choice(("a", "b", "ab")), flag, tid, r.randint(-1, 4),
                          cigar=parse_cigar(r.choice(CIGARS)) if r.random() < .9 else [], mtid=mtid,
                          mpos=r.randint(0, 4), seq="", tags=tags))
    return header("@HD\tVN:1.6\n" + bamgen.sq_text() + GROUPS), out


def p_far():
    """Ends at the last positions, on the last of many references, after an ordinary beginning."""
    r = rng("far templates")
    refs = [("c%d" % i, (1 << 31) - 1) for i in range(300)]
    out = []
    for i in range(3000):
        tame = i < 1500
        tid, mtid = (0, 0) if tame else (r.choice((0, 1, 299)), r.choice((0, 1, 299)))
        spots = (5, 6, 7) if tame else (0, 6, (1 << 29) + 1, (1 << 31) - 12)
        flag = 1 | r.choice((0x40, 0x80)) | r.choice((0, 16)) | r.choice((0, 32))
        out.append(record("t%d" % (i % 400), flag, tid, r.choice(spots), mtid=mtid, mpos=r.choice(spots), seq="ACGTACGT",
                          cigar=parse_cigar(r.choice(CIGARS)), bin=0,
                          tags=b"MCZ" + r.choice(CIGARS).encode() + b"\0"))
    return header(refs=refs), out


# ---------------------------------------------------------------- minimisers

EVERY_BASE = "=ACMGRSVTWYHKDBN"
COMPLEMENT = str.maketrans("ACGT", "TGCA")


def unplaced(r, i, seq, **kw):
    """Makes a read with either strand flag, and random values in all fields that must be kept or unset."""
    kw = {"flag": r.choice((4, 4, 20, 77, 93, 141, 157)), "tid": -1, "pos": r.choice((-1, -1, 0, 5000)),
          "mapq": r.randrange(61), "cigar": [], "mtid": r.choice((-1, -1, 0, 1)), "mpos": r.choice((-1, 7)),
          "tlen": r.choice((0, 0, -300)), "qual": r.choice((None, bytes(r.randrange(42) for _ in seq))),
          "tags": r.choice((b"", b"RGZgrp\0BQZxyz\0")), "bin": 4680, **kw}
    return record("r%d" % i, seq=seq, **kw)


def genome():
    r = rng("minhash genome")
    g = bases(r, 6000)
    return g[:2000] + g[:500] + "A" * 150 + g[2000:] + g[2000:2500] + "N" * 40 + "TTTTGGGGCCCC" * 9


def genome_read(r, n):
    g = genome()
    at = r.randrange(len(g) - n)
    s = g[at:at + n]
    s = s.translate(COMPLEMENT)[::-1] if r.random() < .5 else s
    return "".join(r.choice("ACGTN") if r.random() < .004 else c for c in s)


def m_overlapping():
    r = rng("overlapping")
    return header(), [unplaced(r, i, genome_read(r, r.choice((150, 151, 100, 37)))) for i in range(1000)]


def m_short():
    """No bases to 40, also fewer than a k-mer; every letter that exists."""
    r = rng("short")
    return header(), [unplaced(r, i, "".join(r.choices(r.choice(("ACGT", "ACGTN", EVERY_BASE)), k=r.randrange(40))))
                      for i in range(1500)]


def m_ties():
    """Makes a few reads and their reverse complements again and again: input order decides, then strand."""
    r = rng("minhash ties")
    seqs = [bases(r, n) for n in (30, 100, 101)] + ["", "AC", "A" * 50, "ACGT" * 20]
    return header(), [unplaced(r, i, (s := r.choice(seqs)) if i % 2 == 0 else s.translate(COMPLEMENT)[::-1], qual=None)
                      for i in range(1500)]


def m_repeats():
    """Low complexity and palindromes."""
    r = rng("repeats")
    out = []
    for i in range(1000):
        half = bases(r, r.choice((10, 11, 15, 40)))
        unit = bases(r, r.choice((1, 1, 2, 3, 7, 25)))
        out.append(unplaced(r, i, half + r.choice(("", "A")) + half.translate(COMPLEMENT)[::-1] if i % 2
                            else (unit * 200)[:r.randrange(1, 150)] + bases(r, r.choice((0, 3, 30)))))
    return header(), out


def m_placed():
    """Placed, half placed and unplaced reads; unplaced ones with a CIGAR."""
    r = rng("with placed")
    out = []
    for i in range(2000):
        tid = r.choice((-1, -1, 0, 1, 2))
        if tid < 0:
            out.append(unplaced(r, i, genome_read(r, 80), cigar=r.choice(([], [], [(80, "M")]))))
        else:
            out.append(record("p%d" % i, r.choice((0, 16, 4)), tid, r.randrange(-1, 40), cigar=[], bin=4680))
    return header(), out


NAMES = {f.__name__[2:]: f for f in (n_traps, n_hex, n_bytes, n_long, n_illumina, n_srr, n_mixed, n_late)}
TAGS = {f.__name__[2:]: f for f in (t_all, t_integers, t_numbers, t_strings, t_cells, t_none, t_late_numbers,
                                    t_late_strings)}
TEMPLATES = {f.__name__[2:]: f for f in (p_odd, p_far)}
MINHASH = {f.__name__[2:]: f for f in (m_overlapping, m_short, m_ties, m_repeats, m_placed)}
