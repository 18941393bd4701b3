# SPDX-License-Identifier: MIT
"""SAM of kinds of data that build/gen_bam does not make, from a seed, in no order:

    python3 bench/kinds.py                        # names the kinds
    python3 bench/kinds.py KIND SEED [-s MB] [-o FILE]

Lengths, numbers of places, coverage and names vary with the seed. Mates have each other's CIGAR, so that every order is
possible. bench/sizes.py uses all kinds, and explains the ranges of seeds."""

import argparse
import random
import sys

LENGTH = 10_000_000    # of the reference that all headers name
LEVELS = (4, 8, 40)    # of qualities


class Maker:
    """The settings that one file is drawn from."""

    def __init__(self, kind, seed, megabytes):
        self.r = random.Random(f"{kind} {seed}")
        self.megabytes = megabytes
        self.run, self.cell = self.r.randint(100, 999), self.r.randint(100, 999)

    def draw_genome(self, bases, at=.3):
        """at: half of the share of A and T."""
        a, c = int(256 * at), int(256 * (.5 - at))
        letters = b"A" * a + b"C" * c + b"G" * c + b"T" * (256 - a - 2 * c)
        self.genome = self.r.randbytes(bases).translate(letters).decode()

    def draw_covered(self, length, at=.3):
        """A genome that reads of this length cover 8 to 200 times."""
        reads = self.megabytes * 1e6 / (2 * length + 150)
        self.draw_genome(max(3000, int(reads * length / self.r.choice((8, 20, 60, 200)))), at)

    def bases(self, n):
        return "".join(self.r.choices("ACGT", k=n))

    def illumina(self, end=""):
        r = self.r
        return (f"A00{self.run}:{self.cell}:HXXDS:{r.randint(1, 4)}:{r.randint(1101, 2678)}:{r.randint(1000, 32000)}:"
                f"{r.randint(1000, 37000)}{end}")

    def archive(self, end=""):
        return f"SRR{self.run}{self.cell}.{self.r.randint(1, 9_000_000)}{end}"

    def early(self, end=""):
        r = self.r
        return (f"IL{self.run % 50}_{self.cell}:{r.randint(1, 8)}:{r.randint(1, 120)}:{r.randint(0, 20000)}:"
                f"{r.randint(0, 20000)}#{self.run % 96}{end}")

    def uuid(self):
        h = "%032x" % self.r.getrandbits(128)
        return "-".join((h[:8], h[8:12], h[12:16], h[16:20], h[20:]))


# ---- qualities ----

def in_runs(m, n, letters, weights, stay):
    """stay: the mean run of the first letter, and of the others."""
    out, r = [], m.r
    length = 0
    while length < n:
        q = r.choices(letters, weights)[0]
        k = max(1, int(r.expovariate(1 / stay[q != letters[0]])))
        out.append(q * k)
        length += k
    return "".join(out)[:n]


def small_steps(m, n):
    out, q = [], m.r.randint(32, 40)
    for i, step in enumerate(m.r.choices((-2, -1, 0, 1, 2), (1, 2, 3, 2, 1), k=n)):
        q = min(40, max(2, q + step - (i > n * .7 and m.r.random() < .2)))
        out.append(chr(33 + q))
    return "".join(out)


def fifty_levels(m, n):
    out, q = [], 20.
    for _ in range(n):
        q = min(50, max(1, q + m.r.gauss(0, 6) - (q - 20) * .25))
        out.append(chr(33 + int(q)))
    return "".join(out)


def qualities(m, n, levels):
    if levels == 4:
        return in_runs(m, n, "F:,#", (85, 8, 6, 1), (18, 1.3))
    if levels == 8:
        return in_runs(m, n, "IFA<70)#", (50, 20, 10, 7, 5, 4, 3, 1), (8.5, 8.5))
    if levels == 93:
        return in_runs(m, n, "~nZP:5/)", (70, 5, 5, 5, 4, 4, 4, 3), (40, 2))
    return small_steps(m, n) if levels == 40 else fifty_levels(m, n)


# ---- reads ----

class Read:
    """Bases as they were read, and their tags."""

    def __init__(self, m, bases, levels, errors, umi=""):
        self.bases, self.md, self.mismatches = misread(m, bases, errors)
        self.qual, self.length, self.umi = qualities(m, len(bases), levels), len(bases), umi


def misread(m, bases, errors):
    """(bases, MD, number of differences)"""
    if m.r.random() > errors * len(bases):
        return bases, str(len(bases)), 0
    read, md, last, n = list(bases), "", 0, 0
    for _ in range(max(1, int(errors * len(bases)))):
        read[m.r.randrange(len(bases))] = m.r.choice("ACGT")
    for i, (x, y) in enumerate(zip(read, bases)):
        if x != y:
            md, last, n = md + f"{i - last}{y}", i + 1, n + 1
    return "".join(read), md + str(len(bases) - last), n


def aligner_tags(m, read):
    return [f"MD:Z:{read.md}", "RG:Z:lib1", f"NM:i:{read.mismatches}", f"AS:i:{read.length - 5 * read.mismatches}",
            f"XS:i:{m.r.choice((0, 0, 19, 20, 21, 25))}"]


def umi_tags(m, read):
    return [f"MD:Z:{read.md}", "RG:Z:lib1", f"NM:i:{read.mismatches}", f"RX:Z:{read.umi}",
            f"QX:Z:{qualities(m, 8, 4)}", f"MI:Z:{m.r.randint(1, 9999)}", f"cD:i:{m.r.randint(1, 9)}",
            f"cE:f:{m.r.random() / 100:.4f}"]


def oq_tags(m, read):
    return [f"MD:Z:{read.md}", "PG:Z:MarkDuplicates", "RG:Z:lib1", f"NM:i:{read.mismatches}",
            f"OQ:Z:{qualities(m, read.length, 40)}", f"AS:i:{read.length - 5 * read.mismatches}", "XS:i:0"]


def methylation_tags(m, read):
    calls = m.r.choices(".zhxZ", (60, 5, 20, 10, 5), k=read.length)
    calls = "".join(call if base in "CT" else "." for call, base in zip(calls, read.bases))
    return [f"NM:i:{read.bases.count('T') // 2}", f"MD:Z:{read.md}", f"XM:Z:{calls}", "XR:Z:CT", "XG:Z:CT"]


def spliced_tags(m, read):
    return ["NH:i:1", "HI:i:1", f"nM:i:{read.mismatches}", f"AS:i:{2 * read.length - 4 - 2 * read.mismatches}",
            f"MD:Z:{read.md}", "RG:Z:lib1", f"XS:A:{m.r.choice('+-')}"]


def line(*fields):
    return "\t".join(str(f) for f in fields) + "\n"


def put_pair(m, name, at, mate_at, cigar, reads, tags):
    """The lines of a pair with one CIGAR. at, mate_at: counted from 0."""
    size = mate_at + reads[0].length - at
    for flag, here, there, insert, read in ((99, at, mate_at, size, reads[0]), (147, mate_at, at, -size, reads[1])):
        yield line(name, flag, "chr1", here + 1, 60, cigar, "=", there + 1, insert, read.bases, read.qual,
                   f"MC:Z:{cigar}", *tags(m, read))


def bisulfite(m, bases):
    return "".join("T" if base == "C" and m.r.random() < .97 else base for base in bases)


def pairs(m, length, levels, name, tags, places=0, insert=350, errors=.004, umi=0, copies=1, turn=lambda m, s: s):
    """places: reads begin at this many places only; 0: anywhere. umi: 1: there is one; 2: in the name, too. copies: the
    most of each fragment."""
    most = len(m.genome) - insert - 2 * length
    spots = [m.r.randrange(most) for _ in range(places)]
    while True:
        at = m.r.choice(spots) if spots else m.r.randrange(most)
        size = max(length + 5, insert if spots else int(m.r.gauss(insert, insert / 6)))
        code = m.bases(8) if umi else ""
        mate_at = at + size - length
        ends = [turn(m, m.genome[x:x + length]) for x in (at, mate_at)]
        if min(map(len, ends)) < length:
            continue
        for _ in range(m.r.randint(1, copies)):
            reads = [Read(m, bases, levels, errors, code) for bases in ends]
            yield from put_pair(m, name(":" + code if umi == 2 else ""), at, mate_at, f"{length}M", reads, tags)


def amplicons(m, levels, lengths=(75, 100, 151)):
    m.draw_genome(100_000)
    length = m.r.choice(lengths)
    return pairs(m, length, levels, m.illumina, aligner_tags, places=m.r.randint(5, 60),
                 insert=length + m.r.randint(20, 120), errors=.006)


def few_bases(m, levels):
    """Deep coverage, many A and T: small genomes."""
    length = m.r.choice((54, 76, 100))
    m.draw_covered(length, .4)
    return pairs(m, length, levels, m.illumina if levels == 4 else m.early, aligner_tags, insert=250)


def umis(m, levels):
    length = m.r.choice((75, 101, 151))
    m.draw_covered(length)
    return pairs(m, length, levels, m.illumina, umi_tags, insert=250, umi=m.r.choice((1, 2)),
                 copies=m.r.choice((2, 8)))


def methylation(m, levels, barcodes=False):
    length = m.r.choice((76, 101, 151))
    m.draw_covered(length)
    return pairs(m, length, levels, m.archive if levels == 40 else m.illumina, methylation_tags, insert=250,
                 umi=2 * barcodes, turn=bisulfite)


def original_qualities(m, levels):
    length = m.r.choice((76, 101, 151))
    m.draw_covered(length)
    return pairs(m, length, levels, m.illumina, oq_tags)


def short(m, levels):
    length = m.r.choice((36, 40, 50))
    m.draw_covered(length)
    return pairs(m, length, levels, m.r.choice((m.archive, m.illumina)), aligner_tags, insert=180)


def strangers(m, levels):
    """Hardly any coverage."""
    m.draw_genome(2_000_000)
    return pairs(m, m.r.choice((76, 101, 151)), levels, m.illumina, aligner_tags)


def rna(m, levels):
    """Pairs of genes that are read more often the earlier they come, half of them spliced."""
    m.draw_genome(400_000)
    length, genes = m.r.choice((76, 101, 151)), [m.r.randrange(380_000) for _ in range(80)]
    while True:
        at = genes[int(len(genes) * m.r.random() ** 3)] + int(abs(m.r.gauss(0, 600)))
        mate_at, cut, intron = at + m.r.randint(0, 200), m.r.randint(10, length - 10), 100 * m.r.randint(1, 60)
        spliced = m.r.random() < .5
        gap = intron if spliced else 0
        ends = [m.genome[x:x + cut] + m.genome[x + cut + gap:x + gap + length] for x in (at, mate_at)]
        cigar = f"{cut}M{intron}N{length - cut}M" if spliced else f"{length}M"
        yield from put_pair(m, m.illumina(), at, mate_at, cigar, [Read(m, e, levels, .003) for e in ends], spliced_tags)


def copies(m, levels):
    """Each read aligned to four places."""
    m.draw_genome(1_000_000)
    length = m.r.choice((76, 101))
    while True:
        name, at = m.illumina(), m.r.randrange(990_000)
        read = Read(m, m.genome[at:at + length], levels, .004)
        for k in range(4):
            yield line(name, 256 if k else 0, "chr1", m.r.randrange(990_000) + 1, 1, f"{length}M", "*", 0, 0,
                       read.bases, read.qual, "NH:i:4", f"HI:i:{k + 1}", *aligner_tags(m, read))


def single_cell(m, levels):
    """Genes, cells and molecules in tags, as in cellranger's output."""
    r = m.r
    m.draw_genome(r.choice((30_000, 300_000, 2_000_000)))
    length = r.choice((91, 98, 120)) if levels < 40 else 98
    cells = [m.bases(16) for _ in range(300)]
    genes = [(r.randrange(len(m.genome) - 5000), f"{r.randint(0, 99999999999):011d}", f"GENE{k}")
             for k in range(max(4, len(m.genome) // 6000))]
    while True:
        gene_at, gene, gene_name = r.choice(genes)
        at, cell, molecule = gene_at + int(abs(r.gauss(0, 700))), r.choice(cells), m.bases(12)
        cut, gap = r.randint(10, length - 10), 900 if r.random() < .25 else 0
        cigar = f"{cut}M{gap}N{length - cut}M" if gap else f"{length}M"
        read = Read(m, m.genome[at:at + cut] + m.genome[at + cut + gap:at + gap + length], levels, .003)
        yield line(m.illumina(), r.choice((0, 16, 0, 16, 256, 1024)), "chr1", at + 1, 255, cigar, "*", 0, 0, read.bases,
                   read.qual, "NH:i:1", "HI:i:1", f"AS:i:{length - 2 - 2 * read.mismatches}", f"nM:i:{read.mismatches}",
                   "RG:Z:lib1", f"RE:A:{r.choice('EEEN')}", f"TX:Z:ENST{gene},+{at - gene_at},{cigar}",
                   f"GX:Z:ENSG{gene}", f"GN:Z:{gene_name}", f"fx:Z:ENSG{gene}", f"CR:Z:{cell}",
                   f"CY:Z:{qualities(m, 16, levels)}", f"CB:Z:{cell}-1", f"UR:Z:{molecule}",
                   f"UY:Z:{qualities(m, 12, levels)}", f"UB:Z:{molecule}", f"xf:i:{r.choice((25, 17, 25))}")


# ---- long reads ----

def noisy(m, bases, errors, letters):
    """(bases, CIGAR): errors are substituted, inserted or deleted bases in equal parts; letters: for a match and for a
    substituted base."""
    read, ops = [], []
    for base in bases:
        kind = m.r.choice("XID") if 0 < len(read) and m.r.random() < errors else "="
        if kind != "D":
            read.append(base if kind == "=" else m.r.choice("ACGT"))
        letter = letters[kind == "X"] if kind in "X=" else kind
        if ops and ops[-1][1] == letter:
            ops[-1][0] += 1
        else:
            ops.append([1, letter])
        if kind == "I":                 # the base itself comes after it
            read.append(base)
            ops.append([1, letters[0]])
    if ops[-1][1] == "D":
        ops.pop()
    return "".join(read), "".join(f"{n}{letter}" for n, letter in ops)


def base_modifications(m, bases):
    n = bases.count("C") // 4
    likely = (str(m.r.choice((m.r.randint(0, 30), m.r.randint(220, 255), m.r.randint(0, 255)))) for _ in range(n))
    skipped = (str(m.r.randint(0, 7)) for _ in range(n))
    return [f"MM:Z:C+m?,{','.join(skipped)};", f"ML:B:C,{','.join(likely)}"] if n else []


def nanopore(m, levels, mods=True):
    m.draw_genome(400_000)
    r = m.r
    while True:
        length = int(min(20000, 300 + r.expovariate(1 / 3000)))
        at = r.randrange(len(m.genome) - length)
        bases, cigar = noisy(m, m.genome[at:at + length], .05, "MM")
        yield line(m.uuid(), r.choice((0, 16)), "chr1", at + 1, 60, cigar, "*", 0, 0, bases,
                   qualities(m, len(bases), levels), f"qs:f:{r.uniform(8, 25):.4f}", f"ns:i:{len(bases) * 10}",
                   f"ts:i:{r.randint(10, 900)}", f"mx:i:{r.randint(1, 4)}", f"ch:i:{r.randint(1, 3000)}",
                   f"st:Z:2023-0{r.randint(1, 9)}-1{r.randint(0, 9)}T1{r.randint(0, 9)}:24:31.000+00:00",
                   f"rn:i:{r.randint(1, 90000)}", f"fn:Z:FAX_{m.run}_{r.randint(0, 20)}.pod5", "RG:Z:lib1",
                   *(base_modifications(m, bases) if mods else []))


def hifi(m, letters, mods):
    m.draw_genome(300_000)
    r = m.r
    while True:
        length = int(min(25000, max(4000, r.gauss(12000, 3000))))
        at = r.randrange(len(m.genome) - length)
        bases, cigar = noisy(m, m.genome[at:at + length], .003, letters)
        name = f"m84{m.run}_230901_175841_s1/{r.randint(1, 200_000_000)}/ccs"
        yield line(name, r.choice((0, 16)), "chr1", at + 1, 60, cigar, "*", 0, 0, bases,
                   qualities(m, len(bases), 93), f"rq:f:{1 - r.random() / 1000:.6f}",
                   f"ec:f:{r.uniform(5, 30):.4f}", f"np:i:{r.randint(5, 30)}", "RG:Z:lib1",
                   *(base_modifications(m, bases) if mods else []))


# name: a function that makes its lines, endlessly, from a Maker
KINDS = {f"{name}, {levels} levels": (lambda m, make=make, levels=levels: make(m, levels))
         for name, make in {"amplicons": amplicons, "single cell": single_cell, "few bases": few_bases, "UMIs": umis,
                            "bisulfite": methylation, "OQ": original_qualities, "36 to 50 bases": short, "RNA": rna,
                            "low coverage": strangers, "four alignments": copies}.items()
         for levels in LEVELS}
KINDS |= {
    "amplicons of 250 bases, 4 levels": lambda m: amplicons(m, 4, (250,)),
    "bisulfite, barcodes in names": lambda m: methylation(m, 4, True),
    "Nanopore, 50 levels": lambda m: nanopore(m, 50, False),
    "Nanopore, 50 levels, MM/ML": lambda m: nanopore(m, 50),
    "HiFi": lambda m: hifi(m, "MM", False),
    "HiFi, MM/ML": lambda m: hifi(m, "MM", True),
    "HiFi, = and X": lambda m: hifi(m, "=X", False),
}


def write(kind, seed, megabytes, out):
    """Approximately as many bytes as BAM."""
    m = Maker(kind, seed, megabytes)
    out.write(f"@HD\tVN:1.6\tSO:unsorted\n@SQ\tSN:chr1\tLN:{LENGTH}\n@RG\tID:lib1\tSM:s\n")
    left = int(megabytes * 1e6)
    for text in KINDS[kind](m):
        out.write(text)
        left -= len(text)
        if left < 0:
            return


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("kind", nargs="?", choices=KINDS)
    parser.add_argument("seed", nargs="?", type=int, default=1)
    parser.add_argument("-s", "--size", type=float, default=8, help="megabytes (8)")
    parser.add_argument("-o", "--output", type=argparse.FileType("w"), default=sys.stdout)
    options = parser.parse_args()
    if options.kind:
        write(options.kind, options.seed, options.size, options.output)
    else:
        print("\n".join(KINDS))


if __name__ == "__main__":
    main()
