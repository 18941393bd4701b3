#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The first inputs of fuzzing: seeds.py FOLDER [FILE.bam]... makes FOLDER/TARGET/* from the test generator's
records, and from the first blocks of these files."""

import itertools
import pathlib
import struct
import sys
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import bamgen  # noqa: E402

FIRST = 20000  # bytes used of a file
BLOCK = 65280  # in a BGZF block: the encoder matches records by fields only if there are many
SEEDS = {}
TURNS = itertools.count()    # turns of the orders and sizes of a sort


def seed(target, data):
    SEEDS.setdefault(target, set()).add(bytes(data))


def split(body):
    out, at = [], 0
    while at + 4 <= len(body):
        end = at + 4 + struct.unpack_from("<I", body, at)[0]
        if end > len(body):
            break
        out.append(body[at:end])
        at = end
    return out


def packed(rec):
    """A record in the form of fuzz.h's fuzz_record(); None: it does not fit."""
    tid, pos, n_name, mapq, _, n_cigar, flag, n_seq, mtid, mpos, tlen = struct.unpack_from("<iiBBHHHiiii", rec, 4)
    at = 36
    name, at = rec[at:at + n_name - 1], at + n_name
    cigar, at = struct.unpack_from("<%dI" % n_cigar, rec, at), at + 4 * n_cigar
    seq, at = rec[at:at + (n_seq + 1) // 2 + n_seq], at + (n_seq + 1) // 2 + n_seq
    tags = rec[at:]
    if max(n_seq, n_cigar, len(tags), *(op >> 4 for op in cigar), 0) > 255:
        return None
    refs = (tid % 3 if tid >= 0 else 15) | (mtid % 3 if mtid >= 0 else 15) << 4
    return (struct.pack("<HBBiiiBBBB", flag, mapq, refs, pos, mpos, tlen, len(name), n_seq, n_cigar, len(tags)) + name
            + b"".join(bytes([op & 15, op >> 4]) for op in cigar) + seq + tags)


def of_records(recs):
    for i in range(0, len(recs), 40):
        seed("record", b"\3" + recs[i])
        stream = b"".join(recs[i:i + 12])[:3000]
        seed("walk", struct.pack("<BBHH", 3, 2, 100, 333) + stream)
        seed("deflate", bytes([i // 40 % 3]) + b"\0\2" + stream)
        small = [p for p in map(packed, recs[i:i + 8]) if p]
        for by in range(7):
            order = bytes([by | i // 40 % 4 << 4, 20 | i & 1])
            seed("keys", order + b"\4" + b"".join(small))
            seed("sublist_sort", order + bytes([60, *range(60)]) + b"".join(small[:6]))
        for turn in itertools.islice(TURNS, 2):    # no more, because the target runs the program three times for each
            seed("sort", bytes([turn % 10, 255 * (turn // 10 & 1)]) + b"".join(small))
        for wanted in range(0, 64, 9):
            seed("duplicates", bytes([wanted, 75, 100]) + b"".join(small + small[::-1]))
        for options in 0, 1, 6, 60:
            seed("counts", bytes([options, *([2, 3, 1, 5] * 4)]) + b"".join(small * 4))
        seed("slice", b"\1\0" + b"".join(small))
        seed("slice", b"\1\3" + b"".join(small) + b"\x20\0\1\x30\0\2\x40\0\xff")


def of_mods():
    """A read, and the part that an aligner left of it."""
    mm = [b"C+m,1,0,1;", b"C+mh?,0,1;A-a.;", b"N+17596,0,2;T+x;G-e,9;", b"U+b;C+h,2;"]
    for i, text in enumerate(mm):
        n = text.count(b",") << (i == 1)
        tags = b"XAZx\0MMZ" + text + b"\0MLBC" + struct.pack("<I", n) + b"\7" * n
        whole = bamgen.record("r", 0, 0, 5, seq="ACCGTCNACT", tags=tags)
        for flag, extra in (2048, b""), (2064, b"MNC\12"), (256, b"MNS\10\0"):
            cut = bamgen.record("r", flag, 0, 5, cigar=[(2, "H"), (8, "M")], seq="CGTCNACT", tags=tags + extra)
            for role in range(4):
                seed("base_mods", bytes([role]) + packed(whole) + packed(cut))


def of_stream(head, recs):
    stream = head + b"".join(recs[:10])
    for level in 0, 1, 9:
        seed("block", bamgen.block(b"".join(recs)[:2000], level))
        seed("scanner", bamgen.bgzf(stream[:5000], level=level, size=700))
        seed("file", b"\0" + bamgen.bgzf(stream[:5000], level=level, size=700))
    seed("scanner", stream[:3000])
    if len(head) < 6000:
        seed("header", b"\0" + head)
        seed("header", b"\5" + bamgen.bgzf(head, size=300))
        seed("file", b"\0" + stream[:5000])


def of_generator():
    for make in bamgen.CORPUS.values():
        head, recs = make()
        of_stream(head, recs[:60])
        of_records([r for r in recs[:160] if len(r) < 2000])
    seed("block", bamgen.bgzf(b""))
    for places in [], [(40, 100)], [(40, 65280), (41, 65280), (90000, 70000)]:
        seed("gzi", struct.pack("<IQ", 66000, len(places)) + b"".join(struct.pack("<QQ", *p) for p in places))


def of_file(path):
    data, stream = pathlib.Path(path).read_bytes()[:1 << 20], b""
    while len(data) > 18 and len(stream) < FIRST << 6:
        size = struct.unpack_from("<H", data, 16)[0] + 1
        stream += zlib.decompress(data[18:size - 8], -15) if len(data) >= size else b""
        data = data[size:]
    n_text, = struct.unpack_from("<I", stream, 4)
    n_ref, at = struct.unpack_from("<I", stream, 8 + n_text)[0], 12 + n_text
    for _ in range(n_ref):
        at += 8 + struct.unpack_from("<I", stream, at)[0]
    recs = split(stream[at:at + FIRST])
    of_stream(stream[:at], recs)
    of_records([r for r in recs if len(r) < 2000])
    block = b"".join(split(stream[at:at + BLOCK]))
    for level in range(3):
        seed("deflate", bytes([level]) + b"\0\xff" + block)


def itf8(v):
    return bytes([v]) if v < 128 else bytes([128 | v >> 8, v & 255]) if v < 1 << 14 else bytes([0xE0 | v >> 24]) + v.to_bytes(
        4, "big")[1:]


def cram_container(major, n, landmarks, inside):
    """Makes a container with n records; its header has a CRC in version 3."""
    head = struct.pack("<i", len(inside)) + b"".join(map(itf8, (1, 20000, 151, n, 300, 1 << 20, 3, len(landmarks), *landmarks)))
    return head + (struct.pack("<I", zlib.crc32(head)) if major > 2 else b"") + inside


def of_cram():
    for major in 1, 2, 3, 4:
        headers = b"".join(b + struct.pack("<I", zlib.crc32(b)) for b in (b"\0\1\0" + itf8(9) * 2 + bytes(9), b"\0\2\0\3\3abc"))
        block = b"\0\0\0" + itf8(9) * 2 + b"\4\0\0\0@CO\tx" + bytes(4 * (major > 2))
        parts = [cram_container(major, 0, [0], block), cram_container(major, 10000, [200], headers + bytes(300)),
                 cram_container(major, 7, [1, 130, 20000], bytes(50)), cram_container(major, 0, [], bytes(15))]
        for piece in 0, 30, 255:
            for keep in 1, 2, 4:
                seed("cram_count", bytes([piece]) + b"CRAM" + bytes([major, 0]) + bytes(20) + b"".join(parts[:keep]))


def of_cram_maps():
    maps = [b"RN\1SM\33\33\33\33\33AP\1TD\x08XTCMCZ\0\0", b"BF\1\3\1\0\0QS\4\2ab", b"\xe0MCZ\4\1x"]
    for keep in range(4):
        data = b"".join(itf8(len(m) + 1) + itf8(n) + m for m, n in zip(maps, (4, 2, 1))) if keep == 3 else b"\1\0" * keep
        seed("cram_maps", b"\0\1\0" + 2 * itf8(len(data)) + data)


JOINS = ["@HD VN:1.6 SO:coordinate|@SQ SN:a LN:9|@SQ SN:b LN:8 AN:c,d|@RG ID:x PG:p|@RG ID:y|@PG ID:p|@PG ID:q PP:p|@CO z",
         "@SQ SN:b LN:8|@SQ SN:a LN:7|@SQ SN:c LN:5|@RG ID:x PG:no|@PG ID:q|@PG ID:p PP:q|@PG ID:p-055424A4 PP:p|@CO z",
         "@HD VN:1.5|@SQ SN:a LN:9|@RG ID:a|@RG ID:b", "@CO"]


def of_joins():
    texts = [x.replace(" ", "\t").replace("|", "\n") + "\n" for x in JOINS]
    for bits in range(32):
        seed("header_join", bytes([bits, 1]) + "\0".join(texts[bits % 3:] + texts[:2]).encode())


LINES = ["\t".join(words.split()) for words in (
    "r1 99 a 7 60 3M1I2D1S = 9 -300 ACGTN IIIII NM:i:3 XF:f:-1.5e3 XZ:Z:text XA:A:x XH:H:1F XB:B:c,1,-2,300 XG:B:f,1.5,nan",
    "r2 0x4 * 0 255 * b 5000000000 1 = * CG:B:I,16,32 XI:i:-70000 XU:i:4294967295 XB:B:S,1 XC:B:C,255 Xd:d:0x1p3",
    "r3 016 c 3000000000 0 5S * 0 0 ACgtU ~~~~~ CG:B:I,16,36,16 XI:I:70000 XX:B:i XY:B:I,4294967295 XW:B:s,-1")]


def of_lines():
    for line in LINES:
        seed("sam_line", line.encode())


WORDS = """-@ 4 -m 1G -o out.bam in.bam|-n -l 5 -T tmp -T tmp2 -|-N -u|-t CB -n -O cram,version=3.0|-M -K 9 -R -H
--template-coordinate --write-index=bai -o a.bam##idx##a.bai|-I ref.fa -w 5|--total-memory 80% --no-PG --verbosity 1
--output-fmt-option level=3 --input-fmt-option nthreads=2|--picard --check --add-input b.bam --size-hint 3.5T|-m768M
--reference r.fa --tmpdir-env --threads=3 -l9|-nNMtXT -o x.sam.gz -- a|-m 1.5g -@99999 -K 99 -w 0"""


def of_words():
    for line in WORDS.replace("\n", "|").split("|"):
        seed("opts", "\0".join(line.split()).encode() + b"\0")


SAM = """@HD VN:1.6|@SQ SN:a LN:1000|@SQ SN:long LN:5000000000|@RG ID:g SM:s|@CO text
r1 0 a 7 60 4M1I3M = 37 39 ACGTNACG IIIIIIII NM:i:1 RG:Z:g|r2 16 long 4000000000 3 8M * 0 0 ACGTACGT *|@r3 4 * 0 0 * * 0 0 * *
r4 77 * 0 0 * * 0 0 AC II XA:A:x XB:B:c,-1,2 XF:B:f,1.5,2e9 XI:i:-70000 XF:f:.25 XH:H:1F|r5 99 a 1 255 3S2N5H = 5 -9 ACG !!~"""


def of_sam():
    lines = SAM.replace(" ", "\t").replace("\n", "|").split("|")
    for n in range(1, len(lines) + 1):
        seed("sam", b"\x20" + "\n".join(lines[:n]).encode())
        seed("sam", b"\3" + "\r\n".join(lines[-n:]).encode() + b"\r\n")


def of_report():
    """The reports that the program writes, and forms of values that it does not write."""
    head = b'{"version": "1", "wall_s": 2.5, "records": 5, "host": "\\u00e4", "stages": {"other": {"kind": "serial", "s": 1}}'
    seed("report", head + b"}\n")
    seed("report", head + b', "serial": {"s": 1e-3}, "verdict": {"bound_by": "cpu"}, "bound": false, "slots": [{"name": "a"}, null]}')
    seed("report", b'[-0.5E+2, "\\ud83d\\ude00\\n\\/", {}, [], true]')


def main():
    folder, *files = sys.argv[1:]
    of_generator()
    of_mods()
    of_words()
    of_sam()
    of_joins()
    of_lines()
    of_cram()
    of_cram_maps()
    of_report()
    for path in files:
        of_file(path)
    for target, seeds in SEEDS.items():
        (pathlib.Path(folder) / target).mkdir(parents=True, exist_ok=True)
        for data in seeds:
            (pathlib.Path(folder) / target / ("%08x" % zlib.crc32(data))).write_bytes(data)


if __name__ == "__main__":
    main()
