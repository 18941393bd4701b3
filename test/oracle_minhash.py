#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""minhash.c against samtools' own -M, byte for byte over every record.

    test/oracle_minhash.py [more.bam ...]

Run by hand, with a Python that has pysam: seeded reads that try each rule once
alone, over a grid of -K -w -R -H -I, and the BAM files named. Prints one line for
each content; exit status 1 at the first difference.
"""

import gzip
import itertools
import os
import random
import struct
import subprocess
import sys
import tempfile

import pysam

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
import bamgen  # noqa: E402

ALL = "=ACMGRSVTWYHKDBN"
COMPLEMENT = str.maketrans("ACGT", "TGCA")


def read(r, i, seq, **kw):
    """Unplaced, of either strand flag, with everything that must be kept or unset at random."""
    qual = r.choice((None, bytes(r.randrange(42) for _ in seq)))
    kw = {"flag": r.choice((4, 4, 20, 77, 93, 141, 157)), "tid": -1, "pos": r.choice((-1, -1, 0, 5000)),
          "mapq": r.randrange(61), "cigar": [], "mtid": r.choice((-1, -1, 0, 1)),
          "mpos": r.choice((-1, 7)), "tlen": r.choice((0, 0, -300)), "seq": seq, "qual": qual,
          "tags": r.choice((b"", b"RGZgrp\0BQZxyz\0")), **kw}
    return bamgen.record("r%d" % i, **kw)


def genome(name, n=6000):
    r = bamgen.rng("minhash genome " + name)
    g = bamgen.bases(r, n)
    at = n // 3                                   # places met twice, and poly-A
    return g[:at] + g[:at // 4] + "A" * 150 + g[at:] + g[at:at + at // 4] + "N" * 40 + "TTTTGGGGCCCC" * 9


def sample(r, g, n):
    at = r.randrange(max(1, len(g) - n))
    s = g[at:at + n]
    return s.translate(COMPLEMENT)[::-1] if r.random() < 0.5 else s


def spoil(r, seq, rate, letters):
    return "".join(r.choice(letters) if r.random() < rate else c for c in seq)


# ---- contents: name -> seeded generator of records ----

def overlapping(r):
    g = genome("one")
    return [read(r, i, spoil(r, sample(r, g, r.choice((150, 151, 100, 37))), 0.004, "ACGT"))
            for i in range(3000)]


def overlapping_ambiguous(r):
    g = genome("one")
    return [read(r, i, spoil(r, sample(r, g, r.randrange(20, 160)), 0.02, ALL)) for i in range(2000)]


def foreign(r):
    return [read(r, i, bamgen.bases(r, r.randrange(0, 200))) for i in range(2000)]


def short(r):
    return [read(r, i, "".join(r.choices("ACGTN", k=r.randrange(0, 40)))) for i in range(2000)]


def every_base(r):
    return [read(r, i, "".join(r.choices(ALL, k=r.randrange(0, 60)))) for i in range(2000)]


def low_complexity(r):
    out = []
    for i in range(2000):
        unit = bamgen.bases(r, r.choice((1, 1, 2, 3, 7, 25)))
        seq = (unit * 200)[:r.randrange(1, 150)] + bamgen.bases(r, r.choice((0, 0, 3, 30)))
        out.append(read(r, i, seq))
    return out


def palindromes(r):
    out = []
    for i in range(1000):
        half = bamgen.bases(r, r.choice((10, 11, 15, 40)))
        out.append(read(r, i, half + r.choice(("", "A")) + half.translate(COMPLEMENT)[::-1]))
    return out


def ties(r):
    seqs = [bamgen.bases(r, n) for n in (30, 100, 101)] + ["", "AC"]
    return [read(r, i, r.choice(seqs), flag=r.choice((4, 20))) for i in range(2000)]


def same_hash(r):
    """One k-mer that wins, everywhere in the read: the offset decides; then the strand."""
    core = "".join("ACGT"[(0xdead7878beef7878 >> 2 * d) & 3] for d in reversed(range(31)))
    out = []
    for i in range(2000):
        seq = bamgen.bases(r, r.randrange(60)) + core + bamgen.bases(r, r.randrange(60))
        if r.random() < 0.3:
            seq += core
        out.append(read(r, i, seq if r.random() < 0.5 else seq.translate(COMPLEMENT)[::-1]))
    return out


def long_reads(r):
    """Minimisers around and behind base 65,535."""
    core = "".join("ACGT"[(0xdead7878beef7878 >> 2 * d) & 3] for d in reversed(range(31)))
    filler = bamgen.bases(r, 70000)
    out = []
    for i in range(40):
        lead = r.choice((65400, 65504, 65505, 65533, 65534, 65535, 65536, 65537, 66000))
        seq = filler[:lead] + core + filler[:r.randrange(3000)]
        out.append(read(r, i, seq if i % 2 else seq.translate(COMPLEMENT)[::-1], qual=bytes(len(seq))))
    return out


def with_placed(r):
    g = genome("one")
    out = []
    for i in range(3000):
        tid = r.choice((-1, -1, 0, 1, 2))
        if tid < 0:
            seq = sample(r, g, 80)
            out.append(read(r, i, seq, cigar=r.choice(([], [], [(80, "M")])) if len(seq) == 80 else []))
        else:
            out.append(bamgen.record("p%d" % i, r.choice((0, 16, 4)), tid, r.randrange(-1, 40), cigar=[]))
    return out


CONTENTS = [overlapping, overlapping_ambiguous, foreign, short, every_base, low_complexity,
            palindromes, ties, same_hash, long_reads, with_placed]


# ---- FASTA files ----

def fasta(path, sequences):
    with open(path, "w") as f:
        for i, s in enumerate(sequences):
            f.write(">seq%d some text\n" % i)
            width = 60 + i
            f.writelines(s[k:k + width] + "\n" for k in range(0, len(s), width))
    return path


def fastas(tmp):
    r = bamgen.rng("minhash fasta")
    g = genome("one")
    pieces = [g[:2000], g[:50], "", g[2000:2100], g[2100:].lower(), genome("two", 700)]
    return [fasta(os.path.join(tmp, "one.fa"), [g]),
            fasta(os.path.join(tmp, "pieces.fa"), pieces),
            fasta(os.path.join(tmp, "ambiguous.fa"), [spoil(r, g, 0.01, ALL[1:])]),
            fasta(os.path.join(tmp, "tiny.fa"), ["ACGTTGCA"])]


# ---- the two sides ----

def records(path):
    """The BAM stream behind the header."""
    with gzip.open(path) as f:
        data = f.read()
    at = 8 + struct.unpack_from("<i", data, 4)[0]
    n_ref, = struct.unpack_from("<i", data, at)
    at += 4
    for _ in range(n_ref):
        at += 8 + struct.unpack_from("<i", data, at)[0]
    return data[at:]


def first_difference(ours, theirs):
    """The first record that differs, in words; for the eye only."""
    at = n = 0
    while at < min(len(ours), len(theirs)):
        size = 4 + struct.unpack_from("<I", theirs, at)[0]
        if ours[at:at + size] != theirs[at:at + size]:
            return "record %d:\n  ours   %r\n  theirs %r" % (n, ours[at:at + size], theirs[at:at + size])
        at, n = at + size, n + 1
    return "lengths: ours %d, theirs %d bytes" % (len(ours), len(theirs))


def build(tmp):
    tool = os.path.join(tmp, "minhash_dump")
    root = os.path.dirname(HERE)
    subprocess.run([os.environ.get("CC", "cc"), "-O2", "-std=c11", "-D_GNU_SOURCE", "-I" + root, "-o", tool,
                    HERE + "/minhash_dump.c", root + "/minhash.c", root + "/bam_record.c", "-lhts"], check=True)
    return tool


def oracle(*arguments):
    """pysam.sort() in a process of its own: the index of an earlier -I would stay in this one."""
    pid = os.fork()
    if pid == 0:
        try:
            pysam.sort(*arguments)
            os._exit(0)
        finally:
            os._exit(1)
    if os.waitpid(pid, 0)[1] != 0:
        raise RuntimeError("pysam.sort %s" % " ".join(arguments))


def same(tool, tmp, bam, options):
    ours, theirs = os.path.join(tmp, "ours.bam"), os.path.join(tmp, "theirs.bam")
    subprocess.run([tool, *options, bam, ours], check=True, stderr=subprocess.DEVNULL)
    oracle("-M", "-l", "1", *options, "-o", theirs, bam)
    ours, theirs = records(ours), records(theirs)
    if ours != theirs:
        print("%s %s: %s" % (os.path.basename(bam), " ".join(options), first_difference(ours, theirs)))
    return ours == theirs


def grid(refs):
    strands_runs = [[], ["-R"], ["-H"], ["-R", "-H"]]
    for more, k in itertools.product(strands_runs, (1, 2, 4, 7, 15, 20, 22, 23, 30, 31)):
        yield ["-K", str(k), *more]
    yield ["-K", "0"]
    yield ["-K", "-3"]
    yield ["-K", "99"]
    for ref, more in itertools.product(refs, strands_runs):
        for k, w in ((20, 100), (20, 10), (15, 50), (31, 1000), (9, 30), (4, 300), (20, 20), (20, 21), (1, 1),
                     (12, 0), (12, -7), (11, 100000)):
            yield ["-K", str(k), "-w", str(w), "-I", ref, *more]


def real_grid():
    for k, more in itertools.product((11, 20, 27), ([], ["-R"], ["-H"])):
        yield ["-K", str(k), *more]


def main():
    with tempfile.TemporaryDirectory() as tmp:
        tool, refs = build(tmp), fastas(tmp)
        jobs = []
        for content in CONTENTS:
            bam = os.path.join(tmp, content.__name__ + ".bam")
            out = content(random.Random("minhash " + content.__name__))
            with open(bam, "wb") as f:
                f.write(bamgen.bgzf(bamgen.header() + b"".join(out), level=1))
            jobs.append((bam, grid(refs)))
        for bam in sys.argv[1:]:
            own = [["-K", str(k), "-I", refs[0], *more] for k in (8, 20) for more in ([], ["-H"])]
            jobs.append((bam, itertools.chain(real_grid(), own)))
        for bam, options in jobs:
            n = 0
            for o in options:
                if not same(tool, tmp, bam, o):
                    return 1
                n += 1
            print("%-40s %4d combinations equal" % (os.path.basename(bam), n), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
