# SPDX-License-Identifier: MIT
"""BAM read with --input-fmt-option filter=EXPRESSION: the passing records must be those of samtools 1.24."""

import gzip
import os
import pathlib
import random
import re
import struct
import subprocess

import pytest

import bamgen
from conftest import BINARY, REAL_DIR, SANITIZED, THREADS, clean_env, htslib_version, oracle_bytes, read_bam, run_sort, same_lines, sorted_bytes

HEAD = ("@HD\tVN:1.6\n@SQ\tSN:chr1\tLN:1000000\n@SQ\tSN:chr2\tLN:500000\n@RG\tID:g\tLB:lib1\n@RG\tID:h\tLB:lib2\n"
        "@PG\tID:p\tCL:1\n")
# Each way in which an expression can use a record, and expressions that make no sense.
EXPRESSIONS = [
    "1", "0", "flag & 16", "flag.paired && !flag.proper_pair", "flag.unmap || flag.munmap", "flag.reverse ^ flag.mreverse", "flag.read1",
    "flag.read2 == 0", "flag.secondary | flag.supplementary", "flag.qcfail", "flag.dup", "mapq >= 30", "mapq % 7 == 3", "pos < 40000",
    "pos == 0", "pnext > pos", "mpos < 9", 'rname == "chr2"', 'rname =~ "^chr[1]$"', 'rname !~ "1"', 'mrname == rname', 'rnext == "*"',
    'rnext != "chr1"', "refid == 1", "mrefid == -1", "tlen > 0", "tlen * tlen > 10000", "-tlen > 50", "length(seq) > 60", "qlen == rlen",
    "rlen > 80", "ncigar > 1", 'cigar =~ "[ID]"', 'cigar == "*"', "sclen > 3", "hclen > 0", "endpos > 50000", "endpos - pos > 90",
    'qname =~ "r[0-9]*7$"', 'qname < "r5"', 'seq =~ "ACG.T"', 'seq == "*"', "min(qual) > 2", "avg(qual) > 20", "max(qual) < 40",
    'library == "lib2"', 'library != "lib1"', "library", "[NM]", "[NM] > 3", "[NM]/qlen > 0.02", "[XF] < 0.5",
    '[XZ] =~ "a.c"', "exists([NM])", "[XA] == \"q\"", '[RG] == "g"', "default([NM], 99) > 50",
    "sqrt(mapq) > 5", "log(mapq + 1) > 3", "exp(mapq) < 1e9", "pow(2, mapq) > 1000", "mapq == nan", "!flag.read1 && (mapq > 9 || [NM] == 0)",
    "(mapq & 3) == 1", "flag >= 0x100",
]


def records(seed, n):
    """Records with all fields and tags in different states, names of all lengths, some reads longer than a block, and
    a CIGAR too long for its field."""
    r, lines = random.Random(seed), []
    for i in range(n):
        size = r.choice((0, 1, 30, 75, 75, 76, 76, 151, 90000 if i % 97 == 0 else 75))
        seq, qual = "".join(r.choices("ACGTN", k=size)) or "*", "".join(chr(r.choice((35, 60, 70)) + r.randrange(9)) for _ in range(size)) or "*"
        a = r.randrange(size + 1) // 3
        cigar = "*" if size < 30 else r.choice(["%dM" % size, "%dS%dM" % (a or 1, size - (a or 1)), "5H%dM2D%dM" % (a + 1, size - a - 1),
                                               "%dM3I%dM9N7M" % (10, size - 20), "*"])
        if i % 1111 == 5:
            size = 2 * 40000
            seq, qual, cigar = "AC" * 40000, "*", "1M1I" * 40000
        ref, mate = r.choice(("chr1", "chr1", "chr2", "*")), r.choice(("=", "chr1", "chr2", "*"))
        pos = 0 if ref == "*" and r.random() < .9 else r.choice((0, r.randrange(1, 100000)))
        tags = [t for t in ("NM:i:%d" % r.randrange(9), "XF:f:%.3f" % r.random(), "XZ:Z:%sabc" % ("x" * r.randrange(9)), "XB:B:s,1,-2",
                            "XA:A:%s" % r.choice("pq"), "RG:Z:%s" % r.choice("gh"), "RG:i:4", "PG:Z:p") if r.random() < .5]
        lines.append("\t".join(map(str, ("r%d" % r.randrange(n) + "x" * r.choice((0, 0, 0, 200)), r.getrandbits(12), ref, pos, r.randrange(61), cigar,
                                         mate if ref != "*" or mate != "=" else "*", r.randrange(90000), r.randrange(-300, 300), seq,
                                         qual if r.random() < .9 else "*", *tags))))
    return HEAD + "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """Files of equal records: BGZF by htslib, small blocks, gzip, and without compression."""
    folder = tmp_path_factory.mktemp("filter")
    (folder / "in.sam").write_text(records(3, 3000))
    (folder / "in.bam").write_bytes(oracle_bytes(folder / "in.sam", "-n", "--no-PG", "-l", "1"))
    plain = gzip.decompress((folder / "in.bam").read_bytes())
    (folder / "blocks.bam").write_bytes(bamgen.bgzf(plain, size=997))
    (folder / "gzip.bam").write_bytes(gzip.compress(plain, 1))
    (folder / "plain.bam").write_bytes(plain)
    return folder


def filtered(expression, *more):
    return ["--no-PG", "-O", "sam", "--input-fmt-option", "filter=" + expression, *more]


@pytest.mark.slow
def test_other_records_pass(made):
    kept, n = 0, 3000
    for i, expression in enumerate(EXPRESSIONS):
        want = oracle_bytes(made / "in.bam", *filtered(expression))
        file = made / ("in.bam", "blocks.bam", "gzip.bam", "plain.bam")[i % 4]
        p = run_sort([*filtered(expression), "-@", THREADS[i % 3], file])
        if p.returncode and htslib_version() < (1, 24) and "cannot be filtered: htslib" in p.stderr:
            continue    # it does not support all of these words
        same_lines(p.stdout, want, expression)
        kept += 9 < want.count(b"\n") - 6 < n
    assert kept > 30


@pytest.mark.parametrize("order", [(), ("-n",), ("-t", "NM")], ids="".join)
@pytest.mark.parametrize("source", ["in.bam", "blocks.bam", "gzip.bam", "plain.bam", "pipe"])
def test_other_records_pass_spilled_or_by_a_pipe(made, tmp_path, source, order, threads):
    args = filtered('mapq > 9 && qlen != 75', *order)
    want = oracle_bytes(made / "in.bam", *args)
    args += ["--verify", "-@", threads, "-T", tmp_path / "t"]
    stdin = (made / "in.bam").read_bytes() if source == "pipe" else None
    for env in ({}, {"SAMTOOLS_OMP_ARENA": "262144"}):
        p = run_sort([*args, "-" if stdin else made / source], stdin=stdin, env=env)
        assert p.returncode == 0 and "warning" not in p.stderr, p.stderr
        same_lines(p.stdout, want, source)
    assert run_sort([*args, "--total-memory", "64M", made / "in.bam"]).stdout == want


def test_threads_mix_up_the_libraries_of_their_records(tmp_path):
    """htslib copies a library's name to one place for all threads. Long names make it likely that two threads meet."""
    n, head = 60000, HEAD.replace("lib1", "1" * 1000).replace("lib2", "2" * 1000)
    lines = ["r%05d\t4\t*\t0\t0\t*\t*\t0\t0\tA\tI\tRG:Z:%s" % (i, "gh"[i % 2]) for i in range(n)]
    (tmp_path / "in.sam").write_text(head + "\n".join(lines) + "\n")
    assert run_sort(["--no-PG", "-n", "-o", tmp_path / "in.bam", tmp_path / "in.sam"]).returncode == 0
    for name in "in.sam", "in.bam":
        passed = sorted_bytes([*filtered('library == "%s"' % ("2" * 1000), "-n"), "-@", "4", tmp_path / name]).decode().splitlines()
        assert [line for line in passed if line[0] != "@"] == lines[1::2]


@pytest.mark.parametrize("name", ["cigar-64k.bam", "NA12878_S1.chr20.10_10p1mb.bam", "dorado-draft.bam", "libs-and-groups.bam"])
def test_other_real_records_pass(name):
    if not (REAL_DIR / name).exists():
        pytest.skip("no real files here")
    for expression in ("mapq > 20", 'cigar =~ "S$"', "ncigar > 2", 'library =~ "2"', "[MM] || [NM] > 1", "avg(qual) > 30"):
        want = oracle_bytes(REAL_DIR / name, *filtered(expression))
        same_lines(sorted_bytes([*filtered(expression), "-@", "2", REAL_DIR / name]), want, expression)


def test_check_looks_at_what_does_not_pass(made, tmp_path):
    out = tmp_path / "out.bam"
    args = ["--input-fmt-option", "filter=mapq < 30"]
    assert run_sort(["--no-PG", "-o", out, "--checksum", tmp_path / "sum", *args, made / "in.bam"]).returncode == 0
    p = run_sort(["--check", "--checksum=-", *args, out])
    assert p.returncode == 0 and p.stdout == (tmp_path / "sum").read_bytes() and 0 < len(read_bam(out.read_bytes()).records()) < 3000
    p = run_sort(["--check", *args, made / "in.bam"])
    assert p.returncode == 1 and "in.bam" in p.stderr, p.stderr


def test_programs_of_an_added_input_that_is_filtered_keep_their_names(made, tmp_path):
    other = tmp_path / "other.sam"
    other.write_text((made / "in.sam").read_text().replace("\tCL:1", "\tCL:2"))
    (tmp_path / "other.bam").write_bytes(oracle_bytes(other, "-n", "--no-PG"))
    args = filtered("mapq > 30")
    ours = sorted_bytes([*args, "-@", 3, "--add-input", tmp_path / "other.bam", made / "in.bam"]).decode().splitlines()
    new = next(m.group(1) for m in (re.match("@PG\tID:(p-.*?)\tCL:2", x) for x in ours) if m)
    lines = [x for x in sorted_bytes([*args, made / "in.bam"]).decode().splitlines() if x[0] != "@"]
    tagged = sum("\tPG:Z:p" in x for x in lines)
    assert tagged > 100 and sum("\tPG:Z:" + new in x for x in ours) == tagged == sum(x.endswith("\tPG:Z:p") for x in ours)
    assert sorted(x.replace(new, "p") for x in ours if x[0] != "@") == sorted(lines + lines)



@pytest.mark.parametrize("n", [1, 3])
def test_fault_is_told_of_another_record(tmp_path, n):
    """Numbers are those of the input, with any records filtered out before."""
    recs, out = bamgen.c_ties()[1][:50], tmp_path / "out.bam"
    head = bamgen.header(bamgen.sq_text(bamgen.REFS))
    sizes = [len(x) for x in recs]
    damages = [("record 8 .*broken: block_size", recs[:7] + [struct.pack("<I", size) + recs[7][4:]] + recs[8:]) for size in (0, 7, 32, 1 << 31)]
    damages.append(("record 8 .*broken: refID", recs[:7] + [recs[7][:4] + struct.pack("<i", 99) + recs[7][8:]] + recs[8:]))
    for at in (1, 3, 4, 20, 36, sizes[-1] - 1):
        damages.append(("file ends inside record 50, which begins at byte %d " % (len(head) + sum(sizes[:49])), recs[:49] + [recs[49][:at]]))
    for expression in ("1", "0", "mapq > 1000"):
        for word, damaged in damages:
            for data in (bamgen.bgzf(head + b"".join(damaged)), bamgen.bgzf(head + b"".join(damaged), size=61), head + b"".join(damaged)):
                (tmp_path / "in.bam").write_bytes(data)
                p = run_sort(["-@", n, "-o", out, "--input-fmt-option", "filter=" + expression, tmp_path / "in.bam"])
                assert p.returncode == 1 and not out.exists() and p.stderr.count("\n") == 1, p.stderr
                assert re.search("in.bam: .*" + word, p.stderr) and "Nothing was written" in p.stderr, (word, p.stderr)


@pytest.mark.skipif(SANITIZED, reason="sanitizers need memory of their own")
@pytest.mark.parametrize("before", [1, 3, 4, 10, 35, 36, 40])
def test_broken_record_between_two_chunks_takes_the_rest_of_the_file(tmp_path, before):
    """The environment states 512 MB; the bytes of the first chunk, which is four blocks here, are counted."""
    timed = pathlib.Path(os.path.realpath(BINARY)).parent / "timed"
    if not timed.exists():
        pytest.skip("no timed: make tools")
    block, rec = 60000, bamgen.c_ties()[1][0]
    first = bamgen.record("first", 4, -1, -1, seq="A" * ((4 * block - before - 200) * 2 // 3))
    fill = 4 * block - before - len(first)
    first = struct.pack("<I", len(first) - 4 + fill) + first[4:] + b"XXZ" + b"x" * (fill - 4) + b"\0"
    broken = struct.pack("<Ii", 1 << 29, 99) + rec[8:36]
    data = first + broken + bytes(1000 * block)
    (tmp_path / "in.bam").write_bytes(bamgen.bgzf(bamgen.header(bamgen.sq_text(bamgen.REFS)), eof=False)
                                      + bamgen.bgzf(data, size=block))
    p = subprocess.run([timed, tmp_path / "timed", BINARY, "sort", "-@", "1", "-m", "8M", "-o", tmp_path / "out.bam",
                        "--input-fmt-option", "filter=1", tmp_path / "in.bam"], env=clean_env(), capture_output=True, text=True)
    assert p.returncode == 1 and "in.bam: record 2 " in p.stderr and "refID" in p.stderr, p.stderr
    assert int(re.search(r"rss_kb=(\d+)", (tmp_path / "timed").read_text()).group(1)) < 50 << 10


def test_missing_eof_block_passes_or_is_told_twice(tmp_path, made):
    (tmp_path / "in.bam").write_bytes((made / "in.bam").read_bytes()[:-28])
    for args in (["-o", tmp_path / "out.bam"], ["--check", "-n"]):
        p = run_sort([*args, "--input-fmt-option", "filter=mapq > 30", tmp_path / "in.bam"])
        assert p.returncode == 0 and p.stderr.count("EOF marker is absent") == 1, p.stderr


@pytest.mark.parametrize("expression", ["pos >", "[XB]"])
def test_expression_that_cannot_be_evaluated_passes(tmp_path, made, expression):
    """htslib cannot read an array, so some records before the first with such a tag are read."""
    reads = [x for x in sorted_bytes(["-n", "-O", "sam", made / "in.bam"]).split(b"\n") if x[:1] != b"@"]
    first = 1 if expression == "pos >" else 1 + next(i for i, x in enumerate(reads) if b"\tXB:B" in x)
    for n in (1, 3):
        p = run_sort(["-@", n, "-o", tmp_path / "out.bam", "--input-fmt-option", "filter=" + expression, made / "in.bam"])
        assert p.returncode == 1 and not (tmp_path / "out.bam").exists(), p.stderr
        assert "in.bam: record %d cannot be filtered: htslib cannot evaluate" % first in p.stderr, p.stderr
