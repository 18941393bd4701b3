# SPDX-License-Identifier: MIT
"""Every order of sort_key.c against samtools, record by record.

    python3 test/oracle_orders.py ORDER_DUMP [SEED | FILE.bam ...]

ORDER_DUMP is the built test/order_dump.c:

    cc -O2 -std=c11 -D_GNU_SOURCE -I. -o order_dump test/order_dump.c sort_key.c name_*.c \\
        tag_key.c template_key.c text_code.c bam_record.c -lhts -lm

The environment's ORDERS="n template" leaves only these to the files given. Inputs
are made to tie and to hit the
corners of each order; files given on the command line are added to them.
pysam.sort() is the judge: after it, order_dump prints the records as they lie.
"""

import os
import random
import struct
import subprocess
import sys
import tempfile

import pysam

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import bamgen  # noqa: E402

ORDERS = {
    "coordinate": [], "n": ["-n"], "N": ["-N"], "template": ["--template-coordinate"],
}
TAGS = ["NM", "RG", "CB", "MI", "XT", "XF"]
for _tag in TAGS:
    ORDERS[_tag] = ["-t", _tag]
    ORDERS[_tag + ",n"] = ["-t", _tag, "-n"]
    ORDERS[_tag + ",N"] = ["-t", _tag, "-N"]


# ---------------------------------------------------------------- inputs


def odd_name(r):
    kind = r.randrange(6)
    if kind == 0:
        return "".join(r.choice("aA0019:") for _ in range(r.randint(1, 6)))
    if kind == 1:
        return "r%0*d" % (r.randint(1, 4), r.randrange(120))
    if kind == 2:
        return "A00:%d:HX:%d:%d:%d" % (r.choice((1, 2, 45)), r.randint(1, 4), r.randint(1, 30),
                                       r.choice((1, 5, 10, 99, 100, 12345678901234567890)))
    if kind == 3:
        return "%08x-%04x" % (r.getrandbits(32), r.getrandbits(8))
    if kind == 4:
        return bytes(r.choice(b"a0\x80\xff~!") for _ in range(r.randint(1, 5)))
    return "x%d_%s" % (r.randrange(9), "0" * r.randrange(3) + str(r.randrange(12)))


def illumina_name(r, k):
    return "%s:1:%d:%d:%d" % (r.choice(("A1:43:HCLX", "A1:7:HFJW", "A02:7:HFJW")) if k else "A1:43:HX",
                              r.randint(1101, 1103), r.randrange(3000), r.randrange(3000))


def tag_bytes(r, tag):
    kind = r.randrange(9)
    tag = tag.encode()
    if kind == 0:
        return b""
    if kind == 1:
        return tag + b"A" + bytes([r.choice(b"aZ~!")])
    if kind == 2:
        return tag + b"BC" + struct.pack("<I", 2) + bytes([r.randrange(3), 1])
    if kind == 3:
        return tag + b"f" + struct.pack("<f", r.choice((0.0, -0.0, 1.5, -3.25, 1e30, 7, float("inf"))))
    if kind == 4:
        return tag + r.choice((b"Z", b"H")) + r.choice((b"", b"A", b"AC", b"ACGT", b"12/A", b"12/B", b"12", b"\xc3")) + b"\0"
    code, form, low, high = r.choice((("c", "b", -128, 127), ("C", "B", 0, 255), ("s", "h", -32768, 32767),
                                      ("S", "H", 0, 65535), ("i", "i", -2**31, 2**31 - 1), ("I", "I", 0, 2**32 - 1)))
    value = r.choice((low, high, 0, 1, 7, max(low, -3), r.randint(low, high)))
    return tag + code.encode() + struct.pack("<" + form, value)


def names_input(r, n, name):
    flags = [0, 0x40, 0x80, 0xc0, 0x100, 0x800, 0x900, 0x140, 0x840, 0x940, 0x180, 0x880, 0x10, 0x90]
    return bamgen.header(), [bamgen.record(name(r), r.choice(flags) | 1, r.randint(0, 2), r.randint(0, 99))
                             for _ in range(n)]


def tags_input(r, n):
    return bamgen.header(), [
        bamgen.record(r.choice(("q1", "q01", "q2", "p")), r.choice((0, 16, 0x40, 0x80, 0x900)), r.randint(-1, 2),
                      r.randint(-1, 3), tags=b"".join(tag_bytes(r, t) for t in TAGS)) for _ in range(n)]


def barcode_input(r, n):
    cells = [bamgen.bases(r, 16).encode() + b"-1" for _ in range(20)]
    return bamgen.header(), [
        bamgen.record("b%d" % i, r.choice((0, 16)), r.randint(0, 2), r.randint(0, 10**6),
                      tags=(b"CBZ" + r.choice(cells) + b"\0" if r.random() < .9 else b"")
                      + b"NMC" + bytes([r.randrange(4)])) for i in range(n)]


TEMPLATE_TEXT = (
    "@HD\tVN:1.6\n" + bamgen.sq_text()
    + "@RG\tID:g1\tLB:libB\tSM:s\n@RG\tID:g2\tLB:libA\tSM:s\n@RG\tID:g3\tSM:s\n@RG\tID:g4\tLB:libA\tSM:t\n")

CIGARS = ["4M", "2S2M", "2M2S", "1S2M1S", "3H4M", "3H1S3M", "2M1D2M", "2M9N2M", "1M1I2M", "2M1S5H", "4S", "1P4M", "4="]
MATE_CIGARS = CIGARS + ["*", "", "5H2S3M4S", "M", "3M2S2H", "7S2S1M", "3S", "2H", "10M5I", "4M2S1X"]


def parse_cigar(text):
    out, n = [], ""
    for c in text:
        if c.isdigit():
            n += c
        else:
            out.append((int(n), c))
            n = ""
    return out


def template_record(r, odd):
    flag = 0
    for bit, chance in ((1, .8), (2, .3), (4, .2), (8, .2), (16, .5), (32, .5), (0x100, .1), (0x800, .1)):
        if r.random() < chance:
            flag |= bit
    flag |= r.choice((0x40, 0x80))
    tid = r.choice((0, 0, 0, 1, -1 if odd else 1))
    mtid = r.choice((tid, tid, 0, 1, -1 if odd else 1))
    # "Mapped" to no reference: samtools' comparison overflows there and goes in circles.
    flag |= (4 if tid < 0 else 0) | (8 if mtid < 0 else 0)
    tags = b""
    if not odd or flag & 9 == 1 or r.random() < .5:
        tags += b"MC" + r.choice((b"Z", b"Z", b"Z", b"H" if odd else b"Z")) + r.choice(MATE_CIGARS if odd else CIGARS).encode() + b"\0"
    if r.random() < .7:
        tags += b"RG" + r.choice((b"Z", b"Z", b"H" if odd else b"Z")) + r.choice((b"g1", b"g2", b"g3", b"g4", b"gx", b"")) + b"\0"
    if r.random() < .3:
        tags += b"CBZ" + r.choice((b"AC-1", b"AC", b"GT-1", b"")) + b"\0"
    if r.random() < .4:
        tags += b"MIZ" + r.choice(MI if odd else MI[:4]) + b"\0"
    return bamgen.record(r.choice(("a", "b", "ab")), flag, tid, r.randint(-1 if odd else 0, 4),
                         cigar=parse_cigar(r.choice(CIGARS)) if r.random() < .9 else [], mtid=mtid, mpos=r.randint(0, 4),
                         seq="", tags=tags)


MI = [b"12/A", b"12/B", b"12", b"7", b"", b"/", b"/A", b"1/", b"12/AB", b"12/", b"100", b"1/2/A", b"a", b"12A", b"9"]


def template_input(r, n, odd):
    return bamgen.header(TEMPLATE_TEXT), [template_record(r, odd) for _ in range(n)]


def make_inputs(seed):
    r = random.Random(seed)
    return {
        "names": names_input(r, 4000, odd_name),
        "one run": names_input(r, 3000, lambda r: illumina_name(r, 0)),
        "three runs": names_input(r, 3000, lambda r: illumina_name(r, 1)),
        "tags": tags_input(r, 3000),
        "barcodes": barcode_input(r, 3000),
        "templates": template_input(r, 3000, False),
        "odd templates": template_input(r, 3000, True),
    }


ONLY = {"names": ("coordinate", "n", "N"), "one run": ("n", "N"), "three runs": ("n", "N"),
        "tags": [o for o in ORDERS if o != "template"], "barcodes": [o for o in ORDERS if o[:2] in ("CB", "NM")],
        "templates": ("template", "RG"), "odd templates": ("template",)}


# ---------------------------------------------------------------- comparison


def dump(program, order, path, *sample):
    run = subprocess.run([program, order, path, *sample], capture_output=True)
    return run.stdout.splitlines(), run.stderr.decode("latin1").strip(), run.returncode


def oracle(order, path, out):
    """Sorts in a child: samtools keeps -N in a global, so it would stick to later calls."""
    child = os.fork()
    if child == 0:
        try:
            pysam.sort("--no-PG", "-o", out, *ORDERS[order], path, catch_stdout=False)
            os._exit(0)
        except pysam.SamtoolsError:
            os._exit(1)
    return os.waitpid(child, 0)[1] == 0


def compare(program, path, order, tmp, label):
    out = os.path.join(tmp, "oracle.bam")
    want = dump(program, "none", out)[0] if oracle(order, path, out) else None
    good = True
    for sample in ("10000", "50", "0"):
        have, stats, status = dump(program, order, path, sample)
        if want is None:
            ok = status != 0
            stats = "samtools refuses; ours: " + stats
        else:
            ok = status == 0 and have == want
        print("%-4s %-32s %-10s %6s  %s" % ("ok" if ok else "BAD", label, order, sample, stats))
        if not ok:
            good = False
            if want is not None and status == 0:
                at = next(i for i in range(len(want)) if i >= len(have) or want[i] != have[i])
                print("     record %d: samtools %r, ours %r" % (at, want[at:at + 3], have[at:at + 3]))
            break
    return good


def main():
    program, rest = sys.argv[1], sys.argv[2:]
    seed = next((a for a in rest if a.isdigit()), "1")
    good = True
    with tempfile.TemporaryDirectory() as tmp:
        for label, (head, records) in make_inputs(seed).items():
            path = os.path.join(tmp, "in.bam")
            with open(path, "wb") as f:
                f.write(bamgen.bam(head, records))
            for order in ONLY[label]:
                good &= compare(program, path, order, tmp, label)
        for path in [a for a in rest if not a.isdigit()]:
            for order in os.environ.get("ORDERS", " ".join(ORDERS)).split():
                good &= compare(program, path, order, tmp, os.path.basename(path)[:32])
    print("all equal" if good else "there are differences")
    return not good


if __name__ == "__main__":
    sys.exit(main())
