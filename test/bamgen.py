# SPDX-License-Identifier: MIT
"""Seeded generator of BAM test inputs, legal and illegal, with its own BGZF writer.

Three layers, each usable alone:

    record(...)                 one alignment as the bytes it has in a BAM stream
    header(text, refs)          the BAM header as bytes
    bgzf(stream, cuts=...)      a byte stream -> BGZF blocks cut exactly where asked

CORPUS maps a name to a function returning (header, [record, ...]); LAYOUTS maps a
name to a function (header, records) -> file bytes, so that any content can be laid
out in any way.
"""

import functools
import random
import struct
import zlib

EOF_BLOCK = bytes.fromhex("1f8b08040000000000ff0600424302001b0003000000000000000000")
BLOCK = 0xFF00  # the most that htslib puts into a block

# ---------------------------------------------------------------- BGZF


def block(data, level=6, before=b"", after=b""):
    """One BGZF block. before/after: raw gzip extra subfields around the BC one."""
    if level == 0:
        # Stored by hand: zlib would split 65,536 bytes over several stored parts.
        parts = [data[i:i + 65535] for i in range(0, len(data), 65535)] or [b""]
        deflated = b"".join(
            struct.pack("<BHH", i == len(parts) - 1, len(p), 0xFFFF ^ len(p)) + p
            for i, p in enumerate(parts))
    else:
        z = zlib.compressobj(level, zlib.DEFLATED, -15)
        deflated = z.compress(data) + z.flush()
    xlen = len(before) + 6 + len(after)
    size = 12 + xlen + len(deflated) + 8
    if size > 65536 or len(data) > 65536:
        raise ValueError("does not fit a BGZF block: %d -> %d" % (len(data), size))
    return (struct.pack("<4BI2BH", 31, 139, 8, 4, 0, 0, 255, xlen) + before
            + struct.pack("<2BHH", 66, 67, 2, size - 1) + after + deflated
            + struct.pack("<II", zlib.crc32(data), len(data)))


def bgzf(stream, cuts=None, size=BLOCK, level=6, eof=True, **kw):
    """The stream in blocks ending at each offset of cuts (default: every size bytes).

    A repeated cut gives an empty block.
    """
    if cuts is None:
        cuts = range(size, len(stream), size)
    out, start = [], 0
    for end in list(cuts) + [len(stream)]:
        out.append(block(stream[start:end], level, **kw))
        start = end
    if eof:
        out.append(EOF_BLOCK)
    return b"".join(out)


# ---------------------------------------------------------------- records

CIGAR_OPS = "MIDNSHP=X"
DIGITS = str.maketrans("=ACMGRSVTWYHKDBN", "0123456789abcdef")
QUERY_OPS = "MIS=X"
REF_OPS = "MDN=X"


def reg2bin(beg, end):
    end -= 1
    for shift, first in ((14, 4681), (17, 585), (20, 73), (23, 9), (26, 1)):
        if beg >> shift == end >> shift:
            return first + (beg >> shift)
    return 0


def cigar_bytes(cigar):
    return struct.pack("<%dI" % len(cigar),
                       *[n << 4 | CIGAR_OPS.index(op) for n, op in cigar])


def pack_seq(seq):
    return bytes.fromhex(seq.translate(DIGITS) + "0" * (len(seq) % 2))


def record(name="r", flag=0, tid=0, pos=0, mapq=60, cigar=None, mtid=-1, mpos=-1,
           tlen=0, seq="ACGT", qual=None, tags=b"", bin=None):
    """A legal record; cigar: list of (length, op), None = all M when mapped."""
    if cigar is None:
        cigar = [] if flag & 4 or tid < 0 or not seq else [(len(seq), "M")]
    if qual is None:
        qual = b"\xff" * len(seq)
    if isinstance(name, str):
        name = name.encode()
    if bin is None:
        span = sum(n for n, op in cigar if op in REF_OPS)
        if flag & 4 or span == 0:
            span = 1
        bin = reg2bin(pos, pos + span)
    return raw_record(tid, pos, len(name) + 1, mapq, bin, len(cigar), flag, len(seq),
                      mtid, mpos, tlen,
                      name + b"\0" + cigar_bytes(cigar) + pack_seq(seq) + qual + tags)


def raw_record(tid=0, pos=0, l_name=2, mapq=0, bin=4681, n_cigar=0, flag=0, l_seq=0,
               mtid=-1, mpos=-1, tlen=0, body=b"r\0", block_size=None):
    """Any record, even an illegal one: every field has the caller's value."""
    if block_size is None:
        block_size = 32 + len(body)
    return struct.pack("<iiiBBHHHiiii", block_size, tid, pos, l_name, mapq,
                       bin & 0xFFFF, n_cigar, flag, l_seq, mtid, mpos, tlen) + body


def cg_record(name, pos, cigar, before=b"", after=b"", flag=0, subtype=b"I", tid=0):
    """A CIGAR carried by the CG tag, with the kSmN place-holder."""
    qlen = sum(n for n, op in cigar if op in QUERY_OPS)
    rlen = sum(n for n, op in cigar if op in REF_OPS)
    cg = b"CGB" + subtype + struct.pack("<I", len(cigar)) + cigar_bytes(cigar)
    return record(name, flag, tid, pos, cigar=[(qlen, "S"), (rlen, "N")], seq="A" * qlen,
                  tags=before + cg + after, bin=reg2bin(pos, pos + max(rlen, 1)))


# ---------------------------------------------------------------- header

REFS = [("chr1", 248956422), ("chr2", 242193529), ("chrM", 16569)]


def sq_text(refs=REFS):
    return "".join("@SQ\tSN:%s\tLN:%d\n" % r for r in refs)


def header(text=None, refs=REFS, l_text=None):
    """The BAM header; text None: @HD and @SQ made from refs."""
    if text is None:
        text = "@HD\tVN:1.6\tSO:unsorted\n" + sq_text(refs)
    if isinstance(text, str):
        text = text.encode()
    out = [b"BAM\1", struct.pack("<I", len(text) if l_text is None else l_text), text,
           struct.pack("<I", len(refs))]
    for name, length in refs:
        name = name.encode() + b"\0"
        out.append(struct.pack("<I", len(name)) + name + struct.pack("<I", length))
    return b"".join(out)


# ---------------------------------------------------------------- contents


def rng(name):
    return random.Random("samtools-omp " + name)


def draw(r, values, n):
    """bytes(r.choices(values, k=n)) in a fiftieth of the time; values: bytes, 2, 4, 8 ... of them. choices() takes one
    by the highest bits of eight random bytes."""
    assert 256 % len(values) == 0
    return r.randbytes(8 * n)[3::8].translate(b"".join(bytes([v]) * (256 // len(values)) for v in values))


def bases(r, n):
    return draw(r, b"ACGT", n).decode()


def c_ties():
    """3,000 records on five keys; only the name shows their order in the input."""
    r = rng("ties")
    return header(), [record("t%05d" % i, r.choice((0, 16)), 0, r.choice((10, 11)),
                             seq="ACGT" * r.randint(0, 3)) for i in range(3000)]


def c_one_key():
    """All equal: the output must be the input."""
    return header(), [record("same%d" % i, 0, 1, 77) for i in range(2000)]


def c_mixed():
    """Random records over all references, mapped, unmapped and half placed."""
    r = rng("mixed")
    out = []
    for i in range(3000):
        tid = r.choice((0, 0, 1, 2, -1))
        flag = r.choice((0, 16, 83, 99, 147, 163, 4, 77, 141, 1024, 2064))
        pos = -1 if tid < 0 else r.randint(0, REFS[tid][1] - 1)
        n = r.randint(0, 200)
        out.append(record("m%d:%s" % (i, "x" * r.randint(0, 60)), flag, tid, pos,
                          r.randint(0, 255), seq=bases(r, n),
                          qual=bytes(r.randint(0, 41) for _ in range(n)),
                          mtid=r.choice((-1, 0, 1, 2)), mpos=r.randint(-1, 1 << 28),
                          tlen=r.randint(-1 << 31, (1 << 31) - 1),
                          tags=b"NMC\3RGZgrp\0" if i % 3 else b""))
    return header(), out


def c_all_flags():
    """Every flag value, on one position: only 0x10 may order them."""
    r = rng("flags")
    flags = list(range(65536))
    r.shuffle(flags)
    return header(), [record("f%d" % f, f, 0, 5, seq="") for f in flags[:6000] + [16, 0, 65535]]


def c_sorted():
    return header(), [record("s%d" % i, 0, i // 1000, i * 3) for i in range(3000)]


def c_reversed():
    return header(), [record("s%d" % i, 16 * (i & 1), i // 1000, i * 3 % 3000)
                      for i in range(2999, -1, -1)]


def c_all_unmapped():
    return header(), [record("u%d" % i, (77, 141)[i & 1], -1, -1, 0) for i in range(2001)]


def c_placed_unmapped():
    """Unmapped reads sitting at their mate's place, some without CIGAR, some with."""
    r = rng("placed")
    return header(), [record("p%d" % i, r.choice((4, 69, 73, 133, 20, 0)), r.randint(0, 2),
                             r.randint(0, 40), cigar=r.choice(([], [(4, "M")])))
                      for i in range(2000)]


def c_tid_none_pos_set():
    """No reference but a position: after all placed ones, still ordered by it."""
    r = rng("tidnone")
    return header(), [record("n%d" % i, r.choice((4, 20)), r.choice((-1, -1, 0)),
                             r.choice((-1, 0, 1, 7, 1 << 20, (1 << 31) - 2)),
                             cigar=[], bin=4680) for i in range(2000)]


def c_pos_none_tid_set():
    """A reference but no position: before position 0 of that reference."""
    r = rng("posnone")
    return header(), [record("q%d" % i, r.choice((0, 16, 4)), r.randint(-1, 2),
                             r.choice((-1, 0, 1)), cigar=[], bin=4680) for i in range(1500)]


def c_far_positions():
    """Up to 2^31 - 1, the last position there is; bins overflow 16 bits there."""
    r = rng("far")
    refs = [("long1", (1 << 31) - 1), ("long2", (1 << 31) - 1)]
    spots = [0, 1, (1 << 29) - 1, 1 << 29, (1 << 30) + 5, (1 << 31) - 3, (1 << 31) - 2,
             (1 << 31) - 1]
    return header(refs=refs), [record("e%d" % i, r.choice((0, 16)), r.randint(0, 1),
                                      r.choice(spots), seq=r.choice(("A", "", "ACG")))
                               for i in range(2000)]


def c_negative_positions():
    """Positions below -1, which samtools compares unsigned: after all others."""
    r = rng("negative")
    return header(), [record("v%d" % i, r.choice((0, 16, 4)), r.choice((0, 1, -1)),
                             r.choice((-(1 << 31), -5, -2, -1, 0, 3)), cigar=[], bin=4680)
                      for i in range(1500)]


def c_many_refs():
    """4,000 references; they are ordered as in the file, not by name."""
    r = rng("manyrefs")
    refs = [("ref%d" % (i * 7919 % 4000), 1000 + i) for i in range(4000)]
    return header(refs=refs), [record("k%d" % i, 0, r.randint(-1, 3999), r.randint(0, 900))
                               for i in range(3000)]


def c_no_refs():
    r = rng("norefs")
    return header("@HD\tVN:1.5\n@RG\tID:a\tSM:b\n", []), [
        record("n%d" % i, 4, -1, -1, 0, seq=bases(r, r.randint(1, 90))) for i in range(2000)]


def c_header_only():
    return header(), []


def c_header_only_no_refs():
    return header("", []), []


def c_one_record():
    return header(), [record("only", 0, 1, 1000)]


def c_two_records():
    return header(), [record("b", 0, 1, 1000), record("a", 0, 0, 2000)]


def c_names():
    """Name lengths 1 to 254 (every alignment of the fields after the name), odd bytes in them."""
    r = rng("names")
    out = []
    for n in list(range(1, 255)) * 2:
        name = bytes(r.choice(b"!#$%&'*+-./0123456789:;<=>?ABCXYZ_abcxyz|~") for _ in range(n))
        out.append(record(name, 0, 0, r.randint(0, 9), seq="ACGTA"[:n % 6]))
    out.append(record("*", 0, 0, 3))
    return header(), out


def c_seq_shapes():
    """No sequence, no quality, odd lengths, all 16 bases, every CIGAR operation."""
    every = "=ACMGRSVTWYHKDBN"
    out = [record("none", 0, 0, 9, cigar=[(7, "M")], seq=""),
           record("noqual", 0, 0, 8, seq="ACGTACG"),
           record("bases", 0, 0, 7, seq=every, qual=bytes(range(16))),
           record("odd", 0, 0, 6, seq=every[:15], qual=bytes(range(15))),
           record("ops", 0, 0, 5, seq="A" * 8, cigar=[
               (5, "H"), (1, "S"), (1, "M"), (1, "I"), (3, "D"), (9, "N"), (2, "P"),
               (2, "="), (1, "X"), (2, "S"), (1, "H")]),
           record("nocigar", 0, 0, 4, cigar=[]),
           record("unmapped_bad_cigar", 4, 0, 3, cigar=[(99, "M")], seq="AC"),
           record("insert_only", 0, 0, 2, cigar=[(4, "I")], seq="ACGT")]
    return header(), out


def c_tags():
    """Every tag type; B arrays of every subtype; a long Z."""
    t = [b"XAAq", b"XBc\x80", b"XCC\xff", b"XDs" + struct.pack("<h", -32768),
         b"XES" + struct.pack("<H", 65535), b"XFi" + struct.pack("<i", -1 << 31),
         b"XGI" + struct.pack("<I", (1 << 32) - 1), b"XHf" + struct.pack("<f", 1.5),
         b"XId" + struct.pack("<d", -2.5e300), b"XJZ" + b"long " * 4000 + b"\0",
         b"XKH0AFF\0", b"XLZ\0"]
    for sub, fmt in zip(b"cCsSiIf", "bBhHiIf"):
        t.append(b"Y" + bytes([sub]) + b"B" + bytes([sub]) + struct.pack("<I3" + fmt, 3, 1, 2, 3))
    t.append(b"YzBc" + struct.pack("<I", 0))
    r = rng("tags")
    out = []
    for i in range(400):
        r.shuffle(t)
        out.append(record("g%d" % i, 0, 0, r.randint(0, 50), tags=b"".join(t[:r.randint(0, 20)])))
    return header(), out


def c_wrong_bins():
    """Wrong bins: samtools computes them again if there is a CIGAR."""
    r = rng("bins")
    return header(), [record("b%d" % i, r.choice((0, 4, 16)), r.choice((0, 0, 1, -1)),
                             r.randint(0, 1 << 27), cigar=r.choice(([], [(4, "M")], [(4, "S")])),
                             bin=r.randint(0, 65535)) for i in range(1000)]


def c_cg_long():
    """The CIGARs have 65,534 to 70,000 operations. More than 65,535 need CG."""
    out = []
    for i, n in enumerate((70000, 65536, 65535, 65537, 65534)):
        cigar = [(1, "MI"[k & 1]) for k in range(n)]
        if n > 65535:
            out.append(cg_record("cg%d" % n, 100 - i, cigar, before=b"NMC\1"))
        else:
            out.append(record("cg%d" % n, 0, 0, 100 - i, cigar=cigar, seq="A" * n))
    return header(), out


def c_cg_short():
    """CG where none is needed: samtools puts the real CIGAR back and drops the tag."""
    cig = [(3, "S"), (10, "M"), (2, "D"), (5, "M")]
    out = []
    for i in range(50):
        out.append(cg_record("first%d" % i, 500 - i, cig, after=b"NMC\1XYZabc\0"))
        out.append(cg_record("mid%d" % i, 500 - i, cig, before=b"NMC\1", after=b"XYZabc\0"))
        out.append(cg_record("last%d" % i, 500 - i, cig, before=b"NMC\1XYZabc\0"))
        out.append(cg_record("signed%d" % i, 500 - i, cig, before=b"NMC\1", subtype=b"i"))
        out.append(cg_record("rev%d" % i, 500 - i, cig, flag=16))
        out.append(record("not%d" % i, 0, 0, 500 - i, tags=b"CGZnothing\0"))
    return header(), out


def c_cg_moved():
    """CG before other tags on a CIGAR that does need it: samtools writes it last."""
    cigar = [(1, "MI"[k & 1]) for k in range(66000)]
    return header(), [cg_record("a", 9, cigar, after=b"NMC\1XYZabc\0"),
                      cg_record("b", 8, cigar, before=b"NMC\1", after=b"XYZabc\0"),
                      cg_record("c", 8, cigar, subtype=b"i"),
                      record("d", 0, 0, 8)]


def c_long_records():
    """Longer than a block (64 KiB) and a few of several MB, among small ones."""
    r = rng("long")
    out = []
    for i in range(60):
        n = r.choice((4, 100, 43000, 43600, 43650, 44000, 66000, 120000))
        out.append(record("L%d" % i, 0, 0, r.randint(0, 20), seq="ACGT" * (n // 4),
                          qual=bytes([30 + i % 9]) * (n // 4 * 4)))
    for i, n in enumerate((2400000, 3600000)):
        out.insert(20 * i + 7, record("huge%d" % i, 0, 0, 10, seq="GATTACAT" * (n // 8),
                                      qual=r.randbytes(n // 8 * 8)))
    return header(), out


def c_block_edges():
    """Lengths around the block size, so that 'would not fit' is tried on both sides."""
    out = []
    for d in list(range(-6, 7)) + [-BLOCK // 2, 300, 256, 257]:
        body = BLOCK + d - 36 - 4  # name and NUL are 4 bytes
        tags = b"XZZ" + b"z" * (body - 4) + b"\0"
        for k in range(2):
            out.append(record("%03d" % (len(out)), 0, 0, 40 - len(out) // 2, seq="", tags=tags))
            out.append(record("s%02d" % (len(out)), 0, 0, 40 - len(out) // 2, seq=""))
    return header(), out


def c_name_oddities():
    """Names with NULs inside or at the end, and one that is nothing but NUL."""
    out = []
    for i in range(60):
        name = (b"a\0", b"\0", b"pad\0\0\0\0", b"a\0b\0c\0", b"\xff\x01\x7f \t\0")[i % 5]
        out.append(raw_record(0, 90 - i // 2, len(name), 9, 4681, 1, 0, 4,
                              body=name + cigar_bytes([(4, "M")]) + b"\x12\x48" + b"\x1e" * 4))
    return header(), out


def c_stray_bytes():
    """Up to three bytes after the tags: samtools copies them unread, and readers ignore them."""
    out = []
    for i, tags in enumerate((b"\1", b"NM", b"NMi", b"XXC\1X", b"XZZabc\0XY", b"\0\0\0", b"XBBC\0\0\0\0\0")):
        out.append(record("x%d" % i, 0, 0, 30 - i, tags=tags))
        out.append(record("y%d" % i, 4, 0, 30 - i, tags=tags, cigar=[(9, "M")]))
    return header(), out


def missing_name_nul():
    """Names whose last byte is not NUL: samtools adds it."""
    out = []
    for i in range(40):
        name = b"nonul"[:1 + i % 5]
        out.append(raw_record(0, 90 - i, len(name), 9, 4681, 1, 0, 4,
                              body=name + cigar_bytes([(4, "M")]) + b"\x12\x48" + b"\x1e" * 4))
    return header(), out


CORPUS = {f.__name__[2:]: f for f in (
    c_ties, c_one_key, c_mixed, c_all_flags, c_sorted, c_reversed, c_all_unmapped,
    c_placed_unmapped, c_tid_none_pos_set, c_pos_none_tid_set, c_far_positions,
    c_negative_positions, c_many_refs, c_no_refs, c_header_only, c_header_only_no_refs, c_one_record,
    c_two_records, c_names, c_seq_shapes, c_tags, c_wrong_bins, c_cg_long, c_cg_short,
    c_cg_moved, c_long_records, c_block_edges, c_name_oddities, c_stray_bytes)}


@functools.lru_cache(1)
def some_of_all():
    return [rec for name in ("seq_shapes", "tags", "names", "cg_short", "wrong_bins",
                             "placed_unmapped", "mixed") for rec in CORPUS[name]()[1][:60]]


def mutated(r):
    """A few records of all sorts, one of them with bytes changed at random."""
    recs = r.sample(some_of_all(), r.randint(2, 8))
    body = bytearray(b"".join(recs))
    k = r.randrange(len(recs))
    start = sum(map(len, recs[:k]))
    for _ in range(r.choice((1, 1, 1, 2, 3))):
        at = start + r.randrange(min(40, len(recs[k]))) if r.random() < 0.6 else r.randrange(len(body))
        body[at] = r.choice((0, 1, 255, body[at] ^ 1 << r.randrange(8), r.randrange(256)))
    return bgzf(header() + bytes(body), size=r.choice((BLOCK, 100, 37)), level=1)


def many_ties(n, seed="many"):
    """n tiny records in which a few hundred keys repeat; names count up."""
    r = rng(seed)
    heads = []
    for _ in range(512):
        tid, flag = r.choice((0, 1, 2, -1)), r.choice((0, 16))
        pos = -1 if tid < 0 else r.randint(0, 40)
        heads.append(struct.pack("<iiiBBHHHiiii", 32 + 8, tid, pos, 8, 7, reg2bin(pos, pos + 1),
                                 0, flag if tid >= 0 else 4, 0, -1, -1, 0))
    picks = r.choices(heads, k=n)
    return header(), b"".join([h + b"%07x\0" % i for i, h in enumerate(picks)])


def long_reads(n, size, seed="long reads"):
    """n records of about size bytes each on a few keys; they deflate well."""
    r = rng(seed)
    out = []
    for i in range(n):
        k = size * 2 // 3 + 2 * r.randint(0, 999)
        rec = record("lr%05d" % i, r.choice((0, 16)), 0, r.randint(0, 3), cigar=[(k, "M")],
                     seq="AC", bin=4681)
        out.append(raw_record(0, r.randint(0, 3), 8, 60, 4681, 1, r.choice((0, 16)), k,
                              body=rec[36:48] + b"\x12" * (k // 2) + bytes([20 + i % 20]) * k))
    return header(), out


def incompressible(n, seed="incompressible"):
    """n records of about 1.5 kB that hardly deflate: a long write phase."""
    r = rng(seed)
    return header(), [raw_record(0, r.randint(0, 1 << 20), 8, 60, 4680, 0, 4, 1000,
                                 body=b"%07d\0" % i + r.randbytes(1500)) for i in range(n)]


def tiny(n, seed="tiny"):
    """n records of 60 bytes, joined, hardly two alike: an arena of them is a fifth keys."""
    r = rng(seed)
    chunk = 1 << 16
    one = [struct.pack("<iiiBBHHHiiii", 56, 0, 0, 9, 60, 4681, 0, 4, 10, -1, -1, 0) + b"%08x\0" % (i * 40503 & 0xffffffff)
           + bytes(15) for i in range(chunk)]
    base = int.from_bytes(b"".join(one), "little")
    mask = int.from_bytes((bytes(8) + b"\xff\xff\xff\x0f" + bytes(24) + b"\x0f" * 8 + b"\0" + b"\xff" * 15) * chunk, "little")
    # XOR with random bytes: position, name (letters from ' ' to '?' or '`' to 'o'), bases, qualities.
    out, left = [], n
    while left > 0:
        part = base ^ (int.from_bytes(r.randbytes(60 * chunk), "little") & mask)
        out.append(part.to_bytes(60 * chunk, "little")[:60 * min(left, chunk)])
        left -= chunk
    return b"".join(out)


def qualities(r, n):
    """Four levels as a NovaSeq bins them: long runs of 37 with dips."""
    q, level = bytearray(), 37
    while len(q) < n:
        if level == 37:
            q += b"\x25" * (int(r.expovariate(1 / 25)) + 1)
            level = r.choice((25, 25, 11, 2))
        else:
            q.append(level)
            level = 37 if r.random() < 0.7 else r.choice((25, 11))
    return bytes(q[:n])


def realistic(n, seed="realistic"):
    """n reads of 150 bases, 30 times over a genome, as bwa mem would emit them."""
    r = rng(seed)
    genome = bases(r, n * 150 // 30)
    out = []
    for i in range(n):
        pos = r.randint(0, len(genome) - 151)
        seq = genome[pos:pos + 150]
        if r.random() < 0.3:
            k = r.randint(0, 149)
            seq = seq[:k] + r.choice("ACGT") + seq[k + 1:]
        tags = (b"NMC%cMDZ150\0MCZ150M\0ASC%cXSC%cRGZlane%d\0"
                % (i % 3, 150 - i % 5, r.randint(0, 120), i % 4))
        name = "A00132:53:HFHJKDSXX:%d:%d:%d:%d" % (i % 4 + 1, 1101 + i % 78, r.randint(1000, 33000),
                                                  r.randint(1000, 37000))
        out.append(record(name, r.choice((99, 147, 83, 163)), 0, pos, r.choice((60, 60, 60, 0, 27)),
                          seq=seq, qual=qualities(r, 150), tags=tags, mtid=0,
                          mpos=max(0, pos + r.randint(-400, 400)), tlen=r.randint(-500, 500)))
    return header(), out


# ---------------------------------------------------------------- layouts


def l_htslib(head, recs):
    """Lays blocks out as samtools does: the header ends its block, and records are not cut if they fit."""
    out = [bgzf(head, eof=False)]
    part = b""
    for rec in recs:
        if part and len(part) + len(rec) > BLOCK:
            out.append(block(part))
            part = b""
        part += rec
        while len(part) > BLOCK:
            out.append(block(part[:BLOCK]))
            part = part[BLOCK:]
    if part:
        out.append(block(part))
    return b"".join(out) + EOF_BLOCK


def l_straddle(head, recs):
    """One stream cut every 0xff00 bytes: the header ends mid-block too."""
    return bgzf(head + b"".join(recs))


def l_prime_blocks(head, recs):
    """4,093-byte blocks: every alignment of record against block occurs."""
    return bgzf(head + b"".join(recs), size=4093, level=1)


def l_random_blocks(head, recs):
    """Blocks of 0 to 300 bytes and sometimes 65,280."""
    r = rng("layout")
    stream = head + b"".join(recs)
    cuts, at = [], 0
    while True:
        at += r.choice((0, 1, 2, 3, 5, 36, 100, 300, 300, 300, BLOCK))
        if at >= len(stream):
            break
        cuts.append(at)
    return bgzf(stream, cuts, level=1)


def l_cut_in_size(head, recs):
    """Each record's size word is cut after 1, 2, 3, 4 or 0 bytes."""
    cuts, at = [], len(head)
    for i, rec in enumerate(recs):
        cuts.append(at + (1, 2, 3, 4, 0)[i % 5])
        at += len(rec)
    return bgzf(head + b"".join(recs), fit(cuts, at), level=1)


def l_cut_everywhere(head, recs):
    """Record i is cut at its byte i: every position within a record occurs."""
    cuts, at = [], len(head)
    for i, rec in enumerate(recs):
        cuts.append(at + i % len(rec))
        at += len(rec)
    return bgzf(head + b"".join(recs), fit(cuts, at), level=1)


def fit(cuts, end):
    """Add cuts so that no block passes 60,000 bytes."""
    out, last = [], 0
    for c in cuts + [end]:
        while c - last > 60000:
            last += 60000
            out.append(last)
        out.append(c)
        last = c
    return out[:-1]


def l_empty_blocks(head, recs):
    """Empty blocks (EOF markers) first, in the middle, in runs."""
    stream = head + b"".join(recs)
    out = [EOF_BLOCK]
    for i, at in enumerate(range(0, len(stream), 7001)):
        out.append(block(stream[at:at + 7001], 1))
        out.append(EOF_BLOCK * (i % 3) + block(b"", 0) * (i % 2))
    return b"".join(out) + EOF_BLOCK * 2


def l_stored(head, recs):
    return bgzf(head + b"".join(recs), level=0)


def l_stored_in_parts(head, recs):
    """Blocks whose deflate stream has several stored parts and a fixed one."""
    out, stream = [], head + b"".join(recs)
    for at in range(0, len(stream), 30000):
        data = stream[at:at + 30000]
        z = zlib.compressobj(0, zlib.DEFLATED, -15)
        d = z.compress(data[:11]) + z.flush(zlib.Z_FULL_FLUSH)
        d += z.compress(data[11:]) + z.flush(zlib.Z_SYNC_FLUSH) + z.flush()
        size = 18 + len(d) + 8
        out.append(struct.pack("<4BI2BH2BHH", 31, 139, 8, 4, 0, 0, 255, 6, 66, 67, 2, size - 1)
                   + d + struct.pack("<II", zlib.crc32(data), len(data)))
    return b"".join(out) + EOF_BLOCK


def l_full_64k(head, recs):
    """65,536-byte blocks, which old samtools and others write; smaller if the data would not deflate into a block."""
    stream = head + b"".join(recs)
    out, at = [], 0
    while at < len(stream):
        size = 65536
        while True:
            try:
                out.append(block(stream[at:at + size]))
                break
            except ValueError:
                size -= 256
        at += size
    return b"".join(out) + EOF_BLOCK


def l_no_eof(head, recs):
    return bgzf(head + b"".join(recs), eof=False)


def l_one_byte(head, recs):
    """A block for every byte."""
    stream = head + b"".join(recs)
    return bgzf(stream, range(1, len(stream)), level=1)


def l_header_alone_in_bytes(head, recs):
    """The header in 3-byte blocks, its last block shared with the records."""
    stream = head + b"".join(recs)
    return bgzf(stream, fit(list(range(3, len(head), 3)) + [len(head) + 7], len(stream)), level=1)


LAYOUTS = {f.__name__[2:]: f for f in (
    l_htslib, l_straddle, l_prime_blocks, l_random_blocks, l_cut_in_size, l_cut_everywhere,
    l_empty_blocks, l_stored, l_stored_in_parts, l_full_64k, l_no_eof,
    l_header_alone_in_bytes)}
SMALL_LAYOUTS = dict(LAYOUTS, one_byte=l_one_byte)


def bam(head, recs, layout="htslib"):
    return SMALL_LAYOUTS[layout](head, recs)
