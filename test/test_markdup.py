# SPDX-License-Identifier: MIT
"""`samtools markdup` against samtools 1.24: records, tags and their order, statistics, header lines, exit status."""

import collections
import json
import os
import pathlib
import random
import re
import subprocess

import pysam
import pytest

import markdupgen
from conftest import (BINARY, DATA_BAMS, HANG, MORE_THREADS, PRECIOUS, REAL_BAMS, oracle_call, oracle_process, read_bam,
                      run, same_header,
                      same_lines, sees_fault, sorted_bytes)

# So little memory that waiting records go to temporary files.
SMALL = {"SAMTOOLS_OMP_ARENA": "262144"}
LITTLE = {"SAMTOOLS_OMP_ARENA": "100000"}
# If chains are followed, all of a reference is in one window: samtools may use freed memory if sets of one chain end at
# different places.
WIDE = ["-l", "100000"]
ALL = ["-t", "-d", "50", "--duplicate-count"]
OPTIONS = {
    "plain": [], "names": ["-t", "--duplicate-count", *WIDE], "optical": [*ALL, *WIDE],
    "at_once": [*ALL, "--no-multi-dup"], "counts": ["--duplicate-count", "-l", "5"],
    "sequence": ["-m", "s", "--include-fails"], "groups": ["--use-read-groups", "-d", "100", "--json", *WIDE],
    "barcode_tag": ["--barcode-tag", "BX", "-l", "1000"], "barcode_form": ["--barcode-name", "-l", "0"],
    "barcode_regex": ["--barcode-rgx", "1:([0-9]+)", "-t", "--include-fails", *WIDE],
    "coords": ["-d", "60", "--read-coords", "^(.*):([0-9]+):([0-9]+)", "--coords-order", "tyx", *WIDE],
    "removed": ["-r", "-l", "20"], "cleared": ["-c", *ALL, *WIDE], "cleared_removed": ["-c", "-r", "--use-read-groups"],
    "others": ["-S"], "others_all": ["-S", *ALL, *WIDE, "--use-read-groups"],
    "others_at_once": ["-S", "-c", *ALL, "--no-multi-dup"],
    "others_removed": ["-S", "-r", "--json", "-l", "50"],
    "umi": ["-S", "-t", "--barcode-name", "--move-umi-to-tag"],
    "umi_separator": ["-S", "--barcode-rgx", "(A[CG]_x|A[CG])$", "--move-umi-to-tag", "--umi-separator", "_", "-c"],
}


def ours(args, **kw):
    return run(["markdup", *args], **kw)


def marked(args, path, **kw):
    """Our output as SAM."""
    p = ours(["--no-PG", "-O", "sam", *args, path, "-"], **kw)
    assert p.returncode == 0, p.stderr
    return p.stdout


def theirs(args, path):
    """SAM of samtools 1.24."""
    out = pathlib.Path("%s.theirs" % path)
    status, err = oracle_call("markdup", ["--no-PG", "-O", "sam", *args, path, out])
    assert status == 0, err
    return out.read_bytes()


def without_command(text):
    return [line for line in text.splitlines() if "COMMAND" not in line]


def as_samtools(args, path, scratch, *more):
    """Compares all records and the statistics. more: options of ours. Returns the SAM."""
    wanted = theirs([*args, "-f", scratch / "theirs.txt"], path)
    found = marked([*args, *more, "-f", scratch / "ours.txt"], path)
    same_lines(found.decode("latin-1"), wanted.decode("latin-1"), "%s %s" % (path, args))
    assert without_command((scratch / "ours.txt").read_text()) == without_command((scratch / "theirs.txt").read_text())
    return found


@pytest.fixture
def piles(tmp_path):
    """piles(seed) -> path of a SAM file."""

    def make(seed, **kw):
        path = tmp_path / "piles.sam"
        path.write_text(markdupgen.sam(seed, **kw))
        return path

    return make


# ------------------------------------------------------------------ records


@pytest.mark.parametrize("options", OPTIONS)
def test_records_are_marked_unlike_samtools(options, piles, tmp_path):
    r = random.Random(options)
    path = piles(options, umi="umi" in options or options == "barcode_form")
    found = as_samtools(OPTIONS[options], path, tmp_path, "-@", str(r.choice(MORE_THREADS)))
    lost = sum(int(line.split(b"\t")[1]) >> 10 & 1 for line in found.splitlines() if not line.startswith(b"@"))
    assert (lost == 0) == ("-r" in OPTIONS[options])


def test_new_tags_stand_behind_the_cigar(tmp_path):
    """The records have more than 65,535 operations; CG is the last tag."""
    line = "%s\t0\tc\t5\t60\t" + "1M1I" * 33000 + "\t*\t0\t0\t" + "AC" * 33000 + "\t*\tXX:i:1\n"
    (tmp_path / "in.sam").write_text("@SQ\tSN:c\tLN:90000\n" + line % "a" + line % "b")
    args = ["--no-PG", "-t", "--duplicate-count", tmp_path / "in.sam"]
    assert oracle_call("markdup", [*args, tmp_path / "theirs.bam"])[0] == 0
    assert run(["markdup", *args, tmp_path / "ours.bam"]).returncode == 0
    mine, theirs = (read_bam(tmp_path / ("%s.bam" % name)).records() for name in ("ours", "theirs"))
    assert [rec.index(b"CGBI") for rec in mine] == [rec.index(b"CGBI") for rec in theirs] and mine == theirs
    assert b"doZa\0" in mine[1]


def any_options(r):
    """Chosen such that samtools' own memory errors cannot occur."""
    args = [*ALL[:r.choice([0, 1])], *r.choice([[], ["-d", "70"]])]
    args += ["--no-multi-dup"] if args and r.random() < .5 else WIDE if args else ["-l", str(r.choice([0, 7, 100, 300]))]
    for option in ("-r", "-S", "-c", "--include-fails", "--use-read-groups", "--duplicate-count", "--json"):
        args += [option] * (r.random() < .3)
    return args + r.choice([[], ["-m", "s"], ["--barcode-tag", "BX"], ["--barcode-rgx", "1:([0-9]+)"]])


@pytest.mark.parametrize("part", range(4))
def test_options_together_mark_others(part, piles, tmp_path):
    for seed in range(part, part + 4 * int(os.environ.get("MARKDUP_INPUTS", 2)), 4):
        r = random.Random("any %d" % seed)
        as_samtools(any_options(r), piles("any %d" % seed), tmp_path, "-@", str(r.choice(MORE_THREADS)))


REAL = [p for p in [*DATA_BAMS, *REAL_BAMS] if re.search(r"small|chr22\.s|rna|group-umi", str(p))]


@pytest.mark.parametrize("path", REAL, ids=lambda path: os.path.basename(str(path)))
def test_real_files_are_marked_unlike_samtools(path, tmp_path):
    by_name, fixed, by_place = (tmp_path / name for name in ("name.bam", "fixed.bam", "place.bam"))
    for args in (["sort", "-n", "-u", "-o", by_name, path], ["fixmate", "-m", "-u", by_name, fixed],
                 ["sort", "-u", "-o", by_place, fixed]):
        assert run(args).returncode == 0
    as_samtools(["-t", "-d", "100", "--duplicate-count"], by_place, tmp_path, "-@", "2")
    as_samtools(["-S", "-r"], by_place, tmp_path, "-@", "3")


def test_umi_stays_in_the_names_of_some(piles):
    """samtools 1.24 moves it only in records that are still in its queue at the end; with -S in all."""
    path, args = piles("moved", umi=True), ["--barcode-name", "--move-umi-to-tag"]
    moved = [line.split(b"\t") for line in marked(args, path).splitlines() if not line.startswith(b"@")]
    kept = [line.split(b"\t") for line in marked(args[:1], path).splitlines() if not line.startswith(b"@")]
    for new, old in zip(moved, kept):
        name, _, umi = old[0].rpartition(b":") if old[0] != b"u" else (b"u", b"", b"")
        assert [new[0], *new[1:]] == [name, *old[1:], *[b"RX:Z:" + umi] * bool(umi)]
    assert len(moved) == len(kept) > 3000


@pytest.mark.parametrize("options", ["plain", "others_all"])
def test_threads_memory_or_pipes_change_the_bytes(options, piles, tmp_path):
    args, path = ["--no-PG", *OPTIONS[options]], piles("threads", n=600)
    bam = tmp_path / "in.bam"
    assert oracle_call("view", ["--no-PG", "-b", "-o", bam, path])[0] == 0
    runs = [ours([*args, "-@", n, bam, "-"]) for n in MORE_THREADS]
    runs.append(ours([*args, "-@", 3, "-", "-"], stdin=bam.read_bytes()))
    runs.append(ours([*args, "-@", 2, "--total-memory", "100M", path, "-"]))
    assert {p.returncode for p in runs} == {0}, runs[-1].stderr
    assert len({p.stdout for p in runs}) == 1


@pytest.mark.parametrize("options", [["-S"], ["-t", "--duplicate-count", *WIDE], ["-r", *WIDE], ["-d", "50", *WIDE]], ids=" ".join)
def test_records_that_wait_in_files_are_others(options, piles):
    args, path, little = ["--no-PG", *options], piles("waiting", n=600), {"SAMTOOLS_OMP_ARENA": "10000"}
    runs = [ours([*args, "-@", 2, path, "-"])] + [ours([*args, "-@", n, path, "-"], env=little) for n in (1, 3)]
    assert {p.returncode for p in runs} == {0}, runs[-1].stderr
    assert len({p.stdout for p in runs}) == 1
    p = ours([*args, "-T", "/nowhere/x", path, "-"], env=little)
    assert p.returncode == 1 and "temporary file" in p.stderr


@pytest.mark.parametrize("options", ["-t", "-t -d 60 --duplicate-count", "-d 60 -S"])
def test_losses_that_leave_memory_become_others(options, tmp_path):
    """There are so many records at one place that clusters are stored, too, including clusters of tiles. The records at
    6 end like those at 5. So one of them can lose as a pair and still win against all singles at 6: it must not
    leave."""
    r, lines = random.Random(options), []
    for i in range(12000):
        pos = 5 if i < 8000 else 6
        lines.append("a:1:%d:%d:%d_%d\t%d\tc\t%d\t60\t%dM\t=\t%d\t0\t%s\t%s\tMC:Z:9M\tms:i:%d\n" % (
            r.choice([8, 9, 10, 11, 101]), r.randrange(9000), r.randrange(300), r.randrange(10 ** 6), r.choice([65, 65, 65, 0]),
            pos, 14 - pos, r.choice([4, 4, 5]), "ACGTACGTA"[:14 - pos], "I" * (13 - pos) + chr(48 + r.randrange(26)), r.randrange(99)))
    (tmp_path / "in.sam").write_text("@HD\tVN:1.6\tSO:coordinate\n@SQ\tSN:c\tLN:90000\n" + "".join(lines))
    args = ["--no-PG", "-s", *options.split(), tmp_path / "in.sam", "-"]
    runs = [ours(["-@", n, *args], env=env) for n, env in ((2, {}), (1, LITTLE), (3, LITTLE))]
    assert {p.returncode for p in runs} == {0}, runs[-1].stderr
    assert len({(p.stdout, str(without_command(p.stderr))) for p in runs}) == 1


# ------------------------------------------------------- header, statistics


@pytest.mark.parametrize("head", ["", "@HD\tVN:1.6\tSO:unsorted\n", "@HD\tVN:1.6\tSO:coordinate\tSS:coordinate:x\n@PG\tID:a\n"])
def test_header_has_other_lines(head, tmp_path):
    path = tmp_path / "in.sam"
    path.write_text(head + "@SQ\tSN:c\tLN:1000\n@CO\tx\na\t0\tc\t5\t60\t4M\t*\t0\t0\tACGT\tIIII\n")
    assert ours([path, tmp_path / "ours.bam"]).returncode == 0
    assert oracle_call("markdup", [path, tmp_path / "theirs.bam"])[0] == 0
    same_header(read_bam(tmp_path / "ours.bam"), read_bam(tmp_path / "theirs.bam"), path.read_text().splitlines())


def test_statistics_go_elsewhere(piles, tmp_path):
    path = piles("statistics", n=20)
    wanted = theirs(["-f", tmp_path / "t.txt"], path) and (tmp_path / "t.txt").read_text()
    missing = tmp_path / "nowhere"
    for args in ["-s"], ["-s", "-f", missing / "s.txt"]:
        p = ours(["--no-PG", *args, path, tmp_path / "out.bam"])
        assert p.returncode == 0 and (missing.name in p.stderr) == (len(args) > 1)
        assert without_command(wanted)[:12] == [line for line in p.stderr.splitlines() if re.match("[A-Z ]+:", line)
                                                and "COMMAND" not in line][:12]
    p = ours(["-f", "s.txt", path.name, "out.bam"], cwd=tmp_path)
    assert p.returncode == 0 and not p.stdout
    assert (tmp_path / "s.txt").read_text().startswith("COMMAND: ")
    assert " markdup -f s.txt %s out.bam\nREAD: " % path.name in (tmp_path / "s.txt").read_text()


@pytest.mark.parametrize("name", ["in.sam", "out.bam"])
def test_statistics_overwrite_records(name, piles, tmp_path):
    os.rename(piles("overwritten", n=5), tmp_path / "in.sam")
    before = (tmp_path / "in.sam").read_bytes()
    p = ours(["-f", tmp_path / name, "in.sam", "out.bam"], cwd=tmp_path)
    assert p.returncode == 1 and "statistics" in p.stderr
    assert os.listdir(tmp_path) == ["in.sam"] and (tmp_path / "in.sam").read_bytes() == before


def test_input_without_records_fails(tmp_path):
    path = tmp_path / "in.sam"
    for text in ("@HD\tVN:1.6\n", markdupgen.HEADER, markdupgen.HEADER + "u\t4\t*\t0\t0\t*\t*\t0\t0\tAC\tII\n"):
        path.write_text(text)
        for options in ("plain", "others_all"):
            as_samtools(OPTIONS[options], path, tmp_path)


def test_index_of_marked_file_is_missing(piles, tmp_path):
    assert ours(["--write-index", "-r", piles("index"), tmp_path / "out.bam"]).returncode == 0
    with pysam.AlignmentFile(tmp_path / "out.bam") as file:
        names = collections.defaultdict(list)
        for r in file.fetch(until_eof=True):
            names[r.reference_name].append(r.query_name)
        assert [r.query_name for r in file.fetch("r3")] == names["r3"]


def test_warnings_are_endless(tmp_path):
    line = "n%d\t0\tc\t100\t60\t4M\t*\t0\t0\tACGT\tIIII\n"
    path = tmp_path / "in.sam"
    path.write_text("@HD\tSO:coordinate\n@SQ\tSN:c\tLN:1000\n" + "".join(line % i for i in range(30)))
    p = ours(["-d", "9", "--barcode-rgx", "(x)", path, tmp_path / "out.bam"])
    assert p.returncode == 0
    assert len(re.findall("warning: n[0-9]+:", p.stderr)) == 20
    assert len(re.findall("could be read", p.stderr)) == 2
    p = ours(["-d", "9", "--barcode-rgx", "(x)", "--verbosity", "1", path, tmp_path / "out.bam"])
    assert p.returncode == 0 and not p.stderr


HEADER_OF_ONE = "@HD\tVN:1.6\tSO:coordinate\n@SQ\tSN:c\tLN:1000\n"


@pytest.mark.parametrize("options", [["--barcode-rgx", "M:(.)", "--barcode-name"], ["--barcode-name", "--barcode-rgx", "M:(.)"],
                                     ["--barcode-name"], ["--barcode-rgx", "x", "--barcode-name", "--barcode-rgx", "M:(.)"]])
def test_last_form_of_a_barcode_counts(options, tmp_path):
    """The expression has priority, in any position."""
    path = tmp_path / "in.sam"
    path.write_text(HEADER_OF_ONE + "".join("M:1:F:1:1:1:1:%s\t0\tc\t10\t60\t4M\t*\t0\t0\tACGT\t%s\n" % x
                                            for x in (("AC", "IIII"), ("GC", "HHHH"))))
    found = as_samtools(options, path, tmp_path)
    assert (b":GC\t1024\t" in found) == ("--barcode-rgx" in options)


@pytest.mark.parametrize("n,warned", [(0, True), (1, True), (2, False), (4, False)])
def test_lack_of_barcode_tags_goes_unnoticed(n, warned, tmp_path):
    line = "n%d\t0\tc\t100\t60\t4M\t*\t0\t0\tACGT\tIIII%s\n"
    path = tmp_path / "in.sam"
    path.write_text(HEADER_OF_ONE + "".join(line % (i, "\tBX:Z:a" if i < n else "") for i in range(4)))
    p = ours(["--barcode-tag", "BX", path, tmp_path / "out.bam"])
    assert p.returncode == 0
    assert p.stderr.count("%d of 4 examined records have no tag BX" % (4 - n)) == warned == p.stderr.count("\n")
    assert not ours(["--barcode-tag", "BX", "--verbosity", "1", path, tmp_path / "out.bam"]).stderr
    assert not ours([path, tmp_path / "out.bam"]).stderr


TYPES = ["dt:A:x", "dt:H:1A", "dt:i:3", "dt:B:c,1", "dt:Z:old"]


@pytest.mark.parametrize("options", [["-d", "100"], ["-d", "100", "--no-multi-dup"], ["-d", "100", "-S"], ["-d", "100", "-c"]])
@pytest.mark.parametrize("far", [False, True])
def test_mark_of_an_optical_duplicate_is_lost(options, far, tmp_path):
    """If dt has another type, samtools fails if the chain pass finds an optical duplicate; otherwise it leaves dt
    unchanged."""
    text = "R:1:2:3:4:%d:5\t%d\tc\t6\t60\t4M\t*\t0\t0\tACGT\t%s\t%s\n"
    for tag in TYPES:
        path = tmp_path / "in.sam"
        path.write_text(HEADER_OF_ONE + text % (1, 0, "IIII", tag + "\tSA:Z:x") + text % (9000 if far else 2, 0, "jjjj", "X0:i:1")
                        + text % (1, 2048, "IIII", tag))
        status, _ = oracle_call("markdup", [*options, path, tmp_path / "theirs.bam"])
        p = ours([*options, path, tmp_path / "out.bam"])
        assert p.returncode == status, (tag, p.stderr)
        if status:
            assert "record 1 (R:1:2:3:4:1:5): its dt tag is not a string; remove it first" in p.stderr
        else:
            as_samtools(options, path, tmp_path)


def test_json_has_loose_quotes(tmp_path):
    """Names of read groups have quotes, too. samtools writes invalid JSON."""
    path, stats, regex = tmp_path / "in.sam", tmp_path / "s.json", r'"(a)\.(b)(c)'
    path.write_text(HEADER_OF_ONE + '@RG\tID:a"b\\c\nn\t0\tc\t9\t60\t4M\t*\t0\t0\tACGT\tIIII\tRG:Z:a"b\\c\n')
    p = ours(["-f", stats, "--json", "--use-read-groups", "-d", "9", "--read-coords", regex, path, tmp_path / "out.bam"])
    assert p.returncode == 0, p.stderr
    found = json.loads(stats.read_text())
    assert "--read-coords %s " % regex in found["COMMAND"] and found["READ GROUPS"][-1]["READ GROUP"] == 'a"b\\c'
    p = ours(["--json", path, tmp_path / "out.bam"])             # neither -s nor -f
    assert p.returncode == 0 and json.loads(p.stderr[p.stderr.index("{"):])["READ"] == 1


def test_statistics_do_not_name_samtools(tmp_path):
    """MultiQC looks for samtools markdup."""
    path = tmp_path / "in.sam"
    path.write_text(HEADER_OF_ONE + "n\t0\tc\t9\t60\t4M\t*\t0\t0\tACGT\tIIII\n")
    (tmp_path / "samtools-omp").symlink_to(os.path.realpath(BINARY))
    for program in (tmp_path / "samtools-omp", BINARY):
        p = subprocess.run([program, "markdup", "-s", path, tmp_path / "out.bam"], capture_output=True, text=True, timeout=HANG)
        assert p.returncode == 0 and re.match(r"COMMAND: (\S*/)?samtools markdup -s ", p.stderr), p.stderr


# -------------------------------------------------------------------- errors


ONE = "%s\t%d\tc\t%d\t60\t4M\t%s\t%d\t0\tACGT\tIIII%s\n"
SINGLE = ONE % ("a", 0, 5, "*", 0, "%s")
PAIR = ONE % ("%s", 99, 5, "=", 50, "%s")
HEAD = "@HD\tVN:1.6\tSO:%s\n@SQ\tSN:c\tLN:1000\n"
# Records, options, the text of the message, and the number of the record in it (0: it has none).
ERRORS = {
    "by_name": (HEAD % "queryname" + SINGLE % "", [], "it is sorted by name", 0),
    "unsorted": (HEAD % "coordinate" + SINGLE % "" + ONE % ("b", 0, 4, "*", 0, ""), [], "sorted", 2),
    "no_mc": (HEAD % "coordinate" + SINGLE % "" + PAIR % ("a", ""), [], "samtools markdup: error, no MC tag. Please run samtools "
              "fixmate on file first. in.sam: record 2 (a): markdup is unable to assign pair hash key", 2),
    "bad_mc": (HEAD % "coordinate" + PAIR % ("a", "\tMC:i:4"), [], "error, MC tag wrong type", 1),
    "no_ms": (HEAD % "coordinate" + PAIR % ("a", "\tMC:Z:4M") + PAIR % ("b", "\tMC:Z:4M"), [], "record 1 (a): a paired read has no ms", 1),
    "no_ms_anywhere": (HEAD % "coordinate" + "".join(ONE % (name, 99, i, "=", 50, "\tMC:Z:4M") for i in range(5, 45) for name in "ab"),
                       [], "fixmate -m", 1),
    "bad_do": (HEAD % "coordinate" + SINGLE % "" + SINGLE % "\tdo:i:1", ["-t"], "do tag", 2),
    "bad_coords": (HEAD % "coordinate" + SINGLE % "" + SINGLE % "", ["-d", "5", "--read-coords", "(x)(y)(z)"], "expression", 1),
}


@pytest.mark.parametrize("case", ERRORS)
def test_error_goes_unnoticed(case, tmp_path):
    text, args, word, record = ERRORS[case]
    (tmp_path / "in.sam").write_text(text)
    (tmp_path / "out.bam").write_bytes(PRECIOUS)
    for n in "1", "3":
        p = ours([*args, "-@", n, "in.sam", "out.bam"], cwd=tmp_path)
        told = [line for line in p.stderr.splitlines() if "warning: " not in line]
        assert p.returncode == 1 and len(told) == 1 and word in told[0], p.stderr
        assert not record or "record %d" % record in told[0], p.stderr
        assert sorted(os.listdir(tmp_path)) == ["in.sam", "out.bam"]
        assert (tmp_path / "out.bam").read_bytes() == PRECIOUS
    assert oracle_process([*args, "in.sam", "theirs.bam"], "markdup", cwd=tmp_path).returncode == 1


FAULTS = ["marked:flip:16", "marked:flip:37", "marked:flip:60", "marked:drop", "marked:double", "merged:flip",
          "merged:drop", "merged:both", "listed:drop", "slice:drop", "lent:flip", "run:flip", "run:drop", "run:double",
          "run:both", "slice:flip", "unpacked:flip", "losses:flip", "losses:flip:9:20"]


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_passes(fault, piles, desk):
    """Faults of memory or of our code: in a record that is written again, between tasks and sink, in temporary
    files."""
    losses = fault.startswith("losses")
    spills = losses or fault.startswith(("run", "slice:flip", "unpacked"))
    path = piles("faults", n=500 if spills else 50)
    if fault == "slice:drop":                    # for SAM, the parser's slices come first, and their reader notices
        sam, path = path, path.with_suffix(".bam")
        path.write_bytes(sorted_bytes(["--no-PG", sam]))
    args, env = ["-S"] if spills else ["-t"], SMALL if spills else {}
    if losses:
        args, env = ["-t", "-d", "50", *WIDE], {"SAMTOOLS_OMP_ARENA": "10000"}
    said = sees_fault(desk, fault, "markdup", [*args, path, "out.bam"], env)
    assert not losses or b"temporary data" in said
    assert fault not in ("run:drop", "run:double") or b"temporary data have lost records" in said


def test_umi_tag_of_another_type_is_overwritten(tmp_path):
    (tmp_path / "in.sam").write_text(HEAD % "coordinate" + SINGLE % "\tRX:i:1")
    p = ours(["--barcode-rgx", "(a)", "--move-umi-to-tag", "in.sam", "out.bam"], cwd=tmp_path)
    assert p.returncode == 1 and "RX tag" in p.stderr


def test_groups_that_are_none_are_an_error(piles, tmp_path):
    """It does what samtools does: it prints a message and continues without groups."""
    path = tmp_path / "in.sam"
    path.write_text(piles("no groups", n=20).read_text().replace("@RG\tID:g1\n@RG\tID:g2\n", ""))
    found = as_samtools(["--use-read-groups"], path, tmp_path)
    assert found == marked([], path)
    assert "read group" in ours(["--use-read-groups", path, tmp_path / "out.bam"]).stderr
