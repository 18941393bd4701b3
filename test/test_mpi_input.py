# SPDX-License-Identifier: MIT
"""samtools-omp-mpi: for any form of the input, the ranks must write the same as one process.

Skipped without mpicc and mpirun.
"""

import gzip
import random
import resource
import struct
import subprocess

import pytest

import bamgen
from conftest import BINARY, REAL_DIR, clean_env
from test_mpi import KINDS, desk, kind, programs, pytestmark, same, sort_mpi, write  # noqa: F401
from test_open_names import opened


def to_sam(desk, data, name="in.sam"):
    """The file's text, as the ordinary program writes it, in the order of the input."""
    import pysam
    source = desk / "given.bam"
    source.write_bytes(data)
    path = desk / name
    with pysam.AlignmentFile(str(source), check_sq=False) as given, \
            pysam.AlignmentFile(str(path), "wh", header=given.header) as text:
        for record in given.fetch(until_eof=True):
            text.write(record)
    source.unlink()
    return path


@pytest.mark.parametrize("args", [[], ["-n"], ["-N"], ["-t", "NM"], ["-t", "RG", "-n"]], ids=" ".join)
def test_sam_parts_lose_a_line_or_the_order(programs, desk, kind, args):
    source = to_sam(desk, bamgen.l_htslib(*bamgen.realistic(1500)))
    same(programs, desk, source, (2, 3, 7) if not args else (3,), args, kind, index=None if args else "csi")


@pytest.mark.parametrize("text", [
    b"@HD\tVN:1.6\n@SQ\tSN:c\tLN:1000\n",
    b"@SQ\tSN:c\tLN:1000",
    b"@SQ\tSN:c\tLN:1000\nr\t0\tc\t9\t1\t1M\t*\t0\t0\tA\tI",
    b"@SQ\tSN:c\tLN:1000\r\nr\t0\tc\t9\t1\t1M\t*\t0\t0\tA\tI\r\nq\t0\tc\t7\t1\t1M\t*\t0\t0\tA\tI\r\n",
    b"r\t4\t*\t0\t0\t*\t*\t0\t0\tA\tI\nq\t4\t*\t0\t0\t*\t*\t0\t0\tC\tI\n",
    b"@SQ\tSN:c\tLN:1000\n" + b"".join(b"r%d\t0\tc\t9\t1\t1M\t*\t0\t0\tA\tI\n" % i for i in range(50)),
    b"@SQ\tSN:c\tLN:1000\n" + b"r\t0\tc\t9\t1\t*\t*\t0\t0\t" + b"A" * 300000 + b"\t*\nq\t0\tc\t7\t1\t1M\t*\t0\t0\tA\tI\n",
], ids=["header_only", "no_newline", "one", "cr", "no_header", "ties", "long_line"])
def test_small_sam_is_cut_within_a_line(programs, desk, text):
    source = desk / "in.sam"
    source.write_bytes(text)
    same(programs, desk, source, (1, 4))


def test_long_header_of_sam_is_not_whole(programs, desk):
    source = desk / "in.sam"
    source.write_bytes(b"".join(b"@SQ\tSN:chr%d\tLN:1000\n" % i for i in range(9000))
                       + b"".join(b"r\t0\tchr%d\t9\t1\t1M\t*\t0\t0\tA\tI\n" % (i * 977 % 9000) for i in range(2000)))
    same(programs, desk, source, (3,))


def test_bam_whose_first_block_is_empty_is_refused(programs, desk, kind):
    """htslib does not detect its format, but one process sorts it."""
    source = desk / "in.bam"
    source.write_bytes(bamgen.EOF_BLOCK + bamgen.l_htslib(*bamgen.realistic(300)))
    same(programs, desk, source, (2,), [], kind)


def test_ranks_that_spill_sam_lose_the_order(programs, desk):
    """A base takes 1.5 bytes in BAM without qualities: about 160 MB of records from 105 MB of text."""
    source, r = desk / "in.sam", random.Random(4)
    bases = "".join(r.choices("ACGT", k=8000))
    with open(source, "w") as text:
        text.write("@SQ\tSN:c\tLN:100000\n")
        for i in range(26000):
            at = r.randrange(4000)
            text.write("r%d\t0\tc\t%d\t1\t*\t*\t0\t0\t%s\t*\n" % (i, r.randrange(1, 9000), bases[at:at + 4000]))
    told = same(programs, desk, source, (2,), ["-m", "2M", "-l", "0"])
    assert "merging from" in told


@pytest.mark.parametrize("name", ["test2.bam"])
def test_real_sam_differs(programs, desk, name):
    if not (REAL_DIR / name).exists():
        pytest.skip("no %s here" % name)
    same(programs, desk, to_sam(desk, (REAL_DIR / name).read_bytes()), (4,), index="csi")


@pytest.mark.parametrize("where", [0.1, 0.9])
def test_broken_line_is_told_by_each_rank_or_leaves_something(programs, desk, where):
    source = to_sam(desk, bamgen.l_htslib(*bamgen.realistic(1500)), "in.sam")
    lines = source.read_bytes().split(b"\n")
    n_header = sum(line.startswith(b"@") for line in lines)
    bad = n_header + int((len(lines) - n_header) * where)
    at = len(b"\n".join(lines[:bad])) + 1
    lines[bad] = b"no record"
    source.write_bytes(b"\n".join(lines))
    status, err = sort_mpi(programs[KINDS[0]], KINDS[0], 3, ["-T", desk / "tmp", "-o", desk / "out.bam", source])
    assert status == 1
    told = [line for line in err.splitlines() if ": rank" in line]
    assert len(told) == 1, err
    number, offset = int(told[0].split(" line ")[1].split()[0]), int(told[0].split("file offset ")[1].split()[0])
    data = source.read_bytes()
    assert data[offset - 1:offset] == b"\n"
    assert data[offset:].split(b"\n")[number - 1] == b"no record"
    assert offset <= at
    assert sorted(p.name for p in desk.iterdir()) == ["in.sam"]


def test_empty_or_other_text_is_taken_for_sam(programs, desk):
    for text, why in ((b"", "empty"), (b"hello\n", "does not hold alignments")):
        source = desk / "in.sam"
        source.write_bytes(text)
        status, err = sort_mpi(programs[KINDS[0]], KINDS[0], 2, ["-o", desk / "out.bam", source])
        assert status == 1
        assert why in err
        assert not (desk / "out.bam").exists()


def test_gzip_among_the_blocks_is_lost_between_ranks(programs, desk, kind):
    head, recs = bamgen.realistic(6000)
    plain = head + b"".join(recs)
    half = len(plain) // 2
    source = desk / "in.bam"
    for parts in ((plain[:half], plain[half:], b""), (plain[:half // 2], plain[half // 2:half], plain[half:])):
        source.write_bytes(bamgen.bgzf(parts[0], eof=False) + gzip.compress(parts[1]) + bamgen.bgzf(parts[2]))
        same(programs, desk, source, (2, 5), [], kind)


def tied(first, n, group=b"a"):
    head = b"@SQ\tSN:c\tLN:1000\n@RG\tID:%s\tSM:s\n" % group
    return head + b"".join(b"r%d\t0\tc\t%d\t1\t1M\t*\t0\t0\tA\tI\tRG:Z:%s\n" % (first + i, 9 + i % 2, group) for i in range(n))


@pytest.mark.parametrize("args", [[], ["-n"], ["-t", "RG"]], ids=" ".join)
def test_ties_of_several_inputs_change_places(programs, desk, kind, args):
    """BAM among SAM, one input without records, and one much larger than the others: ranks get parts of one or of
    many."""
    (desk / "a.sam").write_bytes(tied(0, 40, b"a"))
    (desk / "e.sam").write_bytes(tied(0, 0, b"e"))
    (desk / "c.sam").write_bytes(tied(40, 3000, b"c"))
    (desk / "d.sam").write_bytes(tied(3040, 7, b"d"))
    subprocess.run([BINARY, "sort", "--no-PG", "-o", desk / "b.bam", desk / "c.sam"], check=True,
                   capture_output=True, env=clean_env())
    more = [a for name in ("e.sam", "b.bam", "c.sam", "a.sam", "d.sam") for a in ("--add-input", desk / name)]
    same(programs, desk, desk / "a.sam", (1, 2, 7) if not args else (3,), [*args, *more], kind, None if args else "csi")


def test_inputs_that_do_not_fit_together_are_sorted(programs, desk):
    (desk / "a.sam").write_bytes(tied(0, 40))
    (desk / "b.sam").write_bytes(tied(0, 40).replace(b"LN:1000", b"LN:2000"))
    status, err = sort_mpi(programs[KINDS[0]], KINDS[0], 2,
                           ["-o", desk / "out.bam", "--add-input", desk / "b.sam", desk / "a.sam"])
    assert status == 1
    assert len([line for line in err.splitlines() if "b.sam" in line]) == 1, err
    assert sorted(p.name for p in desk.iterdir()) == ["a.sam", "b.sam"]


def test_renamed_program_is_told_twice(programs, desk):
    for name, version in (("a.sam", b"1"), ("b.sam", b"2")):
        (desk / name).write_bytes(b"@PG\tID:p\tVN:%s\n" % version + tied(0, 40))
    err = same(programs, desk, desk / "a.sam", (2,), ["--add-input", desk / "b.sam"])
    assert err.count("@PG lines are renamed") == 1, err


def of_fakes(complete, n=240):
    """Records with tags whose bytes look like records: `complete` small ones, then the beginning of a large one."""
    small = bamgen.record("f", tid=0, pos=3)
    large = (1 << 20).to_bytes(4, "little") + small[4:]
    fakes = (small * complete + large) * 200
    tag = b"XXBC" + len(fakes).to_bytes(4, "little") + fakes
    return [bamgen.record("r%d" % i, tid=0, pos=i * 77 % 900, tags=tag) for i in range(n)]


def test_part_begins_at_what_looks_like_a_record(programs, desk, kind):
    source = desk / "in.bam"
    source.write_bytes(bamgen.bgzf(bamgen.header() + b"".join(of_fakes(1)), level=1))
    same(programs, desk, source, (2, 5), kind=kind)


def test_part_that_begins_within_a_record_is_written(programs, desk):
    """Three in a row are accepted as records. Then a part ends within one."""
    source = desk / "in.bam"
    source.write_bytes(bamgen.bgzf(bamgen.header() + b"".join(of_fakes(3)), level=1))
    status, err = sort_mpi(programs[KINDS[0]], KINDS[0], 3, ["-o", desk / "out.bam", source])
    assert status == 1 and "in.bam: this process's part ends inside record" in err and "with one process" in err, err
    assert [p.name for p in desk.iterdir()] == ["in.bam"]


def test_false_records_cost_a_rank_minutes(programs, desk):
    """The second rank begins in a tag that is made of blocks with a chain of records each. All chains break, and the
    bytes that the rank reads always end between two of them, so that it reads more and more."""
    block, blocks, gap = 65280, 300, 17408
    chain = bamgen.record(name="", flag=4, tid=-1, pos=-1, seq="") * ((block - gap) // 37 - 1)
    false = (bytes(gap) + chain).ljust(block, b"\xff") * blocks
    some = b"".join(bamgen.record(name="r%d" % i, pos=i) for i in range(200))
    seconds = {}
    for name, data in (("twin", bytes(len(false))), ("false", false)):
        large = bamgen.record(name="large", tags=b"XXBC" + struct.pack("<I", len(data)) + data)
        begin = bamgen.header() + some + large[:-len(data)]
        cuts = range(len(begin), len(begin) + len(data) + 1, block)
        source = desk / (name + ".bam")
        source.write_bytes(bamgen.bgzf(begin + data + some, cuts, level=1))
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        status, err = sort_mpi(programs[KINDS[0]], KINDS[0], 2, ["--no-PG", "-o", desk / "out.bam", source])
        assert status == 0, err
        seconds[name] = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
    same(programs, desk, source, (2,))
    assert seconds["false"] < 3 * seconds["twin"] + 1, seconds


@pytest.mark.parametrize("which", ["first", "one in a thousand", "each"])
def test_rank_lacks_the_nul_of_a_name(programs, desk, which):
    """The name is in a part's first bytes, in its blocks, or in the tail that it shares with the next one."""
    every = {"first": 10 ** 9, "one in a thousand": 1000, "each": 1}[which]
    head, closed = bamgen.realistic(20000)
    recs = [opened(c) if i % every == 0 and c[12] < 255 else c for i, c in enumerate(closed)]
    source = write(desk / "in.bam", head, recs, bamgen.l_straddle)
    err = same(programs, desk, source, (3, 4), ["-n"])
    assert "EOF" not in err
