# SPDX-License-Identifier: MIT
"""Valid and broken lines of SAM: samtools 1.24 decides which are accepted and what they become, for any htslib that
the program is linked with. The texts of errors and warnings are tested, too."""

import gzip
import random
import re

import pysam
import pytest

from conftest import SHORT, oracle_bytes, read_bam, run_sort, same_lines, same_records, sorted_bytes
from test_safety import refused

HEADER = "@HD\tVN:1.6\n@SQ\tSN:a\tLN:1000\tAN:ALT1,alt2\n@SQ\tSN:b\tLN:500000000\n"
NUMBERS = ("", "-", "+", "+5", "-5", "00012", "1x", " 1", "1 ", "0x1F", "--3", "255", "256", "600", "65535", "65536", "99999", "127",
           "128", "-128", "-129", "32767", "32768", "-32768", "-32769", "2147483647", "2147483648", "2147483649", "-2147483648",
           "-2147483649", "4294967295", "4294967296", "4611686018427387903", "4611686018427387904", "-4611686018427387904",
           "-4611686018427387905", "9223372036854775808", "18446744073709551616", "00000000000000000000000000001")
FLAGS = ("0", "00", "017", "08", "0x10", "0X1f", "0xg", "0x", "0x1FFFF", "0200000", "0177777", "PAIRED", "r", "p,u", "4x", "+4", "0b1")
REALS = ("nan", "NAN", "-nan", "inf", "-inf", "+inf", "infinity", "nan(1)", "infx", "0x10", "0x1p3", "0x", "-0x2", "1e", "1e+", "1e5",
         "1E-5", "1e400", "1e-400", ".", "-.", "+.", "+", ".5", "5.", "-.5e1", "1.2.3", " 1", "1,2", "+-1", "1e22", "1e23",
         "123456789012345", "1234567890123456", "9007199254740993", "3.4028236e38", "1e-45", "7e-46", "1d5", "-0")
CIGARS = ("*", "*5M", "5", "5M3", "M", "5m", "0M", "268435455N5M", "268435456N5M", "5M ", "+5M", "-5M", "", "05M", "5MM",
          "99999999999999999999M", "5==", "5Z", "5", "1M1I1D1N1S1H1P1=1X1B")
TAGS = ("", "X", "XX", "XX:", "XX:i", "XX:i:", "XX:Z:", "XX:H:", "XX:H:1", "XX:H:zz", "XX:A:", "XX:A:ab", "XX:A: ", "XX:a:q", "XX:c:5",
        "XX:i:x", "XX:I:-5", "XX:s:5", "XX;i;5", "X :i:5", " X:i:5", "XX:B:", "XX:B:c", "XX:B:c,", "XX:B:c,,", "XX:B:x,1", "XX:B:c1",
        "XX:B:c,1 2", "XX:B:c,1x", "XX:B:d,1", "XX:B:A,1", "XX:B:f,1,nan,inf", "XX:B:f,", "XX:B:,1", "XX:d:1.5", "XX:d:x", "XX:q:1",
        "XX:Z:a\x01b", "XX:i:5\x01YY", "XX:Z", "XX:i:1:2", "XX:B:C,-1", "XX:B:C,+1", "XX:B:C,-0", "XX:B:c,255", "XX:B:c,-1,255",
        "XX:B:S,-1,70000", "XX:B:I,-1,2147483648", "CG:B:I,16", "CG:B:I,16,32", "CG:Z:x", "XX:i:1\tXX:i:2")


class Lines:
    """A generator of lines: each field sometimes has an odd value."""

    def __init__(self, seed, one_in):
        self.r, self.one_in = random.Random(seed), one_in

    def odd(self):
        return self.r.randrange(self.one_in) == 0

    def number(self):
        return self.r.choice(NUMBERS) if self.r.random() < .7 else str(self.r.randint(-1 << self.r.randint(1, 33), 1 << self.r.randint(1, 33)))

    def field(self, odd, usual):
        return (odd() if callable(odd) else self.r.choice(odd)) if self.odd() else self.r.choice(usual)

    def real(self):
        form = self.r.randrange(4)
        if form == 0:
            return self.r.choice(REALS)
        if form == 1:
            return "".join(self.r.choice("01234567890123456789.e+-") for _ in range(self.r.randint(1, 20)))
        return "%.*g" % (self.r.randint(1, 17), self.r.uniform(-1, 1) * 10 ** self.r.randint(-40, 40))

    def tag(self):
        if self.odd():
            return self.r.choice(TAGS)
        kind = self.r.choice("iiffdZAHBBb")
        values = {"i": self.number, "f": self.real, "d": self.real, "A": lambda: chr(self.r.randint(33, 126)),
                  "Z": lambda: "".join(chr(self.r.randint(32, 126)) for _ in range(self.r.randint(0, 70))),
                  "H": lambda: "".join(self.r.choice("0123456789ABCDEFabcdef") for _ in range(self.r.randint(0, 9))),
                  "B": lambda: ",".join([self.r.choice("cCsSiI"), *(self.number() for _ in range(self.r.randint(0, 3)))]),
                  "b": lambda: ",".join(["f", *(self.real() for _ in range(self.r.randint(0, 3)))])}
        return "%s%s:%s:%s" % (self.r.choice("XYNMC"), self.r.choice("XYZMG0"), kind.upper() if kind == "b" else kind, values[kind]())

    def cigar(self):
        ops = [(self.r.randrange(40 if self.r.random() < .2 else 6), self.r.choice("MIDNSHP=XB")) for _ in range(self.r.randint(1, 20))]
        return "".join("%d%s" % op for op in ops), sum(n for n, op in ops if op in "MIS=X")

    def bases(self, n):
        return "".join(chr(self.r.randint(33, 126)) if self.odd() else self.r.choice("ACGTNacgtnU=R") for _ in range(n))

    def line(self, name):
        cigar, n = self.cigar()
        if self.odd():
            cigar = self.r.choice(CIGARS)
        n = self.r.randrange(9) if self.odd() else n
        seq = "*" if self.odd() else self.bases(n)
        n = 0 if seq == "*" else len(seq)
        n = self.r.randrange(9) if self.odd() else n
        qual = self.field(("*", "**", "I\x1f", " " * n, "\x7f" * n), ["".join(chr(self.r.randint(33, 126)) for _ in range(n))])
        fields = [self.field(("", "n" * 254, "n" * 255, "a b"), [name]), self.field(lambda: self.r.choice((self.r.choice(FLAGS), self.number())),
                  ("0", "4", "16", "99", "147")), self.field(("*", "=", "chrU", "", "ALT1", "a ", "alt2", "A"), "ab"),
                  self.field(self.number, ("1", "7", "16384", "400000000")), self.field(self.number, ("0", "60")), cigar,
                  self.field(("chrU", "", "ALT1", "=="), "ab=*"), self.field(self.number, ("0", "5")), self.field(self.number, ("0", "-9")),
                  seq, qual, *(self.tag() for _ in range(self.r.randrange(5)))]
        if self.odd():
            fields = fields[:self.r.randint(1, 11)]
        return "\t".join(fields)


def crosses(line):
    """samtools reads the number of an empty last element from the next field; here that is refused."""
    return re.search(r"B:f[^\t]*[, ]\t", line)


def taken(line, header):
    try:
        pysam.AlignedSegment.fromstring(line, header)
    except ValueError:
        return False
    return True


@pytest.fixture(scope="module")
def lines():
    """The lines that samtools accepts, and those that it refuses."""
    before = pysam.set_verbosity(0)
    header = pysam.AlignmentHeader.from_text(HEADER)
    made = [
        g.line("r%05d" % i) for g, n in ((Lines(1, 12), 3000), (Lines(2, 60), 3000), (Lines(3, 400), 1000)) for i in range(n)]
    made = [line for line in made if not crosses(line)]
    good = [line for line in made if taken(line, header)]
    chosen = set(good)
    pysam.set_verbosity(before)
    return good, [line for line in made if line not in chosen]


def members(data, n=3):
    """Plain gzip, in n members that end anywhere, and in empty ones."""
    step = len(data) // n + 1
    return gzip.compress(b"") + b"".join(gzip.compress(data[i:i + step], 1) for i in range(0, len(data), step)) + gzip.compress(b"")


def ways(path, data):
    """The ways to our parser: arguments and standard input. The text is plain, in gzip, or filtered."""
    packed = path.with_suffix(".gz")
    path.write_bytes(data)
    packed.write_bytes(members(data))
    everything = ["--input-fmt-option", "filter=mapq >= 0"]
    return [([path], None), (["-@", "4", "-"], data), ([packed], None), (["-@", "3", "-"], members(data, 9)),
            ([*everything, path], None), (["-@", "2", *everything, packed], None)]


def far(line):
    return any(abs(int(x)) > 1 << 31 for x in (line.split("\t")[i] for i in (3, 7, 8)) if re.fullmatch("[-+]?[0-9]+", x))


def test_lines_become_other_records(lines, tmp_path):
    good = [line for line in lines[0] if not far(line)]
    assert len(good) > 2500
    path = tmp_path / "in.sam"
    tried = ways(path, (HEADER + "\n".join(good) + "\n").encode("latin-1"))
    want = read_bam(oracle_bytes(path, "-O", "bam"))
    for args, stdin in tried:
        same_records(read_bam(sorted_bytes(["-O", "bam", *args], stdin=stdin)), want)


def test_far_lines_become_other_lines(lines, tmp_path):
    good = [line for line in lines[0] if far(line)]
    assert len(good) > 30
    path = tmp_path / "in.sam"
    tried = ways(path, (HEADER + "\n".join(good) + "\n").encode("latin-1"))
    want = oracle_bytes(path, "--no-PG", "-O", "sam")
    for args, stdin in tried:
        same_lines(sorted_bytes(["--no-PG", "-O", "sam", *args], stdin=stdin), want, "far lines")


@pytest.mark.slow
def test_broken_lines_are_taken(lines, tmp_path):
    """Each fault a few times: the rest of a file has no effect on a line."""
    told, path = {}, tmp_path / "in.sam"
    tried = 0
    for line in lines[1]:
        if tried == (100 if SHORT else 250):
            break
        args, stdin = ways(path, (HEADER + line + "\n").encode("latin-1"))[tried % 6]
        err = refused(tmp_path, ["-O", "sam", *args], r"record 1 \(line 4\) (is|has|names) .*Nothing was written\. The line (begins|is empty)",
                      stdin=stdin)
        why = re.search(r"\(line 4\) (.*?)\. Nothing", err).group(1)
        told[why] = told.get(why, 0) + 1
        tried += 1
    assert tried >= 100
    assert len(told) >= (9 if SHORT else 11), told


@pytest.mark.parametrize("expression", ["flag & 16", 'mapq > 20 && [RG] == "g"', 'library == "l2"', 'rname =~ "^b" && mapq > 9', "qlen % 2 == 1",
                                        "pos > 2147483647", "mapq < 0"])
def test_filter_lets_other_lines_pass(lines, tmp_path, expression):
    text = HEADER + "@RG\tID:g\tLB:l1\n@RG\tID:h\tLB:l2\n"
    dice = random.Random(7)
    good = ["\t".join((*line.split("\t")[:11], *dice.choice(((), ("RG:Z:g",), ("RG:Z:h",))), *line.split("\t")[11:])) for line in lines[0]]
    path = tmp_path / "in.sam"
    tried = ways(path, (text + "\n".join(good) + "\n").encode("latin-1"))
    args = ["--no-PG", "-O", "sam", "--input-fmt-option", "filter=" + expression]
    want = oracle_bytes(path, *args)
    assert expression == "mapq < 0" or 5 < want.count(b"\n") - 6 < len(good)
    for files, stdin in tried[:4]:
        same_lines(sorted_bytes([*args, "-@", "3", *files], stdin=stdin), want, expression)


def test_line_that_the_filter_drops_counts_no_more(tmp_path):
    """Numbers are those of the input; a far line may be removed before BAM is written."""
    far_line, bad = LINE.replace("\t5\t", "\t3000000000\t"), LINE.replace("\t60\t", "\t600\t")
    args = ["--input-fmt-option", "filter=pos < 1000", "-O", "bam", "-"]
    data = HEADER + LINE + far_line + LINE
    same_records(read_bam(sorted_bytes(args, stdin=data.encode())), read_bam(sorted_bytes(["-"], stdin=(HEADER + 2 * LINE).encode())))
    refused(tmp_path, args, r"record 4 \(line 7\) has a MAPQ", stdin=(data + bad).encode())
    args[1] = "filter=pos > 1000"
    refused(tmp_path, args, r"record 2 \(line 5\) has a position or TLEN beyond", stdin=data.encode())
    args[1] = "filter=pos >"
    refused(tmp_path, args, r"record 1 \(line 4\) cannot be filtered: htslib cannot evaluate", stdin=data.encode())


@pytest.mark.parametrize("line,why", [("@SQ\tSN:x\tLN:9\tLN:10", "two lengths"), ("@SQ\tSN:x\tLN:0", "not a number above 0"),
                                      ("@CO", None), ("@XY\tab:c", "does not begin with @HD")])
def test_header_in_gzip_or_filtered_is_htslibs(tmp_path, line, why):
    for args, stdin in ways(tmp_path / "in.sam", (HEADER + line + "\n" + LINE).encode()):
        if why:
            refused(tmp_path, [*args, "-O", "sam"], "header cannot be read: line 4 .*" + why, stdin=stdin)
        else:
            assert b"@CO\t\n" in sorted_bytes([*args, "-O", "sam"], stdin=stdin)


# ---------------------------------------------------------------- messages

LINE = "r\t0\ta\t5\t60\t2M\t*\t0\t0\tAC\tII\n"


@pytest.mark.parametrize("log", ("[M::mem_process_seqs] Processed 66226 reads in 24.1 CPU sec\n", "[M::worker_pipeline::1.2*1.0] mapped 5 sequences\n",
                                 "Looking to launch executable, simd = .avx2\n", LINE[:9] + "[W::sam_parse1] mapped\tquery\n"),
                         ids=("bwa", "minimap2", "words", "within a line"))
def test_log_in_the_pipe_is_called_a_broken_file(tmp_path, log):
    text = HEADER + 5 * LINE + log + LINE
    err = refused(tmp_path, ["-"], "Is it from a log", stdin=text.encode())
    assert "standard input: record 6 (line 9)" in err
    assert log.split("\t")[0].rstrip()[:60] in err.replace("\\t", "\t")
    assert "2>&1" in err


def test_line_from_a_pipe_cannot_be_looked_up(tmp_path):
    bad = "a-name-to-look-for\t0\ta\t5\t600\t2M\t*\t0\t0\tAC\tII\n"
    err = refused(tmp_path, ["-"], "has a MAPQ that is not a number from 0 to 255", stdin=(HEADER + LINE + bad).encode())
    assert 'The line begins "a-name-to-look-for\\t0\\ta\\t5\\t600\\t2M' in err
    assert "log" not in err
    err = refused(tmp_path, ["-"], "fewer than the 11 fields", stdin=(HEADER + LINE + LINE[:11] + "2M\tx\x1b" + 100 * "x").encode())
    assert '\\x1b' in err and '\x1b' not in err and '..."' in err


def test_cigar_beyond_bam_has_no_line(tmp_path):
    long = "long\t0\tb\t5\t60\t" + 70000 * "9000D" + "\t*\t0\t0\t*\t*\n"
    refused(tmp_path, ["-O", "bam", "-"], r"record 2 \(line 5\) has a CIGAR that BAM cannot hold.*begins \"long", stdin=(HEADER + LINE + long).encode())


def test_changed_lines_are_not_told():
    odd = "x\t0\tchrU\t5\t60\t2M\t*\t0\t0\tAC\tII\n"
    p = run_sort(["-O", "sam", "-"], stdin=(HEADER + LINE + 3 * odd + LINE.replace("\t5\t", "\t0\t")).encode())
    assert p.returncode == 0
    warnings = [w for w in p.stderr.splitlines() if "warning" in w]
    assert len(warnings) == 3, p.stderr
    assert re.search(r'record 2 \(line 5\) names a reference that is not in the header; it became unmapped\. The line begins "x', warnings[0])
    assert "record 5 (line 8) is mapped to position 0" in warnings[1]
    assert "3 such records in all" in warnings[2]
    assert not run_sort(["--verbosity", "1", "-O", "sam", "-"], stdin=(HEADER + odd).encode()).stderr
