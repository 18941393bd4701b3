# SPDX-License-Identifier: MIT
"""`samtools sormadup` against fixmate -m, sort and markdup of samtools 1.24, one after another: records, tags and
their order, header lines except the command lines, statistics, exit status."""

import gzip
import json
import os
import random
import re

import pytest

import bamgen
import fixmategen
from conftest import PRECIOUS, REAL_BAMS, THREADS, oracle_call, read_bam, run, same_lines, sees_fault

# An arena that spills and memory that does not hold two of them.
SMALL = {"SAMTOOLS_OMP_ARENA": "300000"}


def ours(args, **kw):
    return run(["sormadup", *args], **kw)


def chain(path, fixmate=(), markdup=(), out_options=("-O", "sam", "--no-PG")):
    """The bytes that the three commands make, or None if one fails."""
    steps = [(["fixmate", "-m", "-u", "--no-PG", *fixmate], ["F"]), (["sort", "-u", "--no-PG", "-o"], None),
             (["markdup", *out_options, *markdup], ["F"])]
    names = ["%s.%s" % (path, step) for step in ("fixed", "sorted", "marked")]
    for (words, _), source, to in zip(steps, [path, *names], names):
        files = [to, source] if words[0] == "sort" else [source, to]
        if oracle_call(words[0], [*words[1:], *files])[0] != 0:
            return None
    with open(names[-1], "rb") as file:
        return file.read()


def as_chain(path, fixmate="", markdup="", settings=({},), what=""):
    wanted = chain(path, fixmate.split(), markdup.split())
    for how in settings:
        env = how.get("env", {})
        p = ours(["--no-PG", "-O", "sam", "--fixmate-args", fixmate, "--markdup-args", markdup,
                  *how.get("args", []), "-" if how.get("pipe") else path],
                 env=env, stdin=open(path, "rb") if how.get("pipe") else None)
        if wanted is None:
            assert p.returncode == 1 and p.stdout == b"", what
            continue
        assert p.returncode == 0, p.stderr
        same_lines(p.stdout.decode("latin-1"), wanted.decode("latin-1"), "%s %s" % (what, how))
    return wanted


PAIRS = ["@HD\tVN:1.6\tSO:unsorted\tGO:query\n",
         "@SQ\tSN:c1\tLN:100000\n@SQ\tSN:c2\tLN:90000\n@RG\tID:g1\n@RG\tID:g2\n"]


def pairs(seed, n):
    """Templates in few places, so that many are duplicates; some alone, unmapped, on two references, supplementary."""
    r = random.Random(seed)
    lines = list(PAIRS)

    def line(name, flag, ref, pos):
        cigar = "*" if flag & 4 else r.choice(["30M", "30M", "30M", "2S28M", "25M5S", "10M200N20M"])
        quality = "".join(chr(33 + r.choice([2, 15, 20, 30, 40])) for _ in range(30))
        fields = (name, flag, ref, pos, r.choice([0, 20, 60]), cigar, "*", 0, 0, "ACGTA" * 6, quality,
                  "RG:Z:" + r.choice(["g1", "g2"]))
        lines.append("\t".join(map(str, fields)) + "\n")

    for i in range(n):
        name, ref = "q%d:1:%d" % (i, r.randrange(9)), r.choice(["c1", "c1", "c2"])
        pos = 100 * r.randrange(1, 90) + r.choice([0, 0, 0, 1, 2])
        kind, forward = r.random(), r.random() < .5
        if kind < .1:
            line(name, r.choice([0, 16, 4, 512]), ref, pos)
            continue
        strands = [0, 16] if forward else [16, 0]
        line(name, 65 | strands[0], ref, pos)
        if kind < .15:
            line(name, 2113 | strands[1], r.choice(["c1", "c2"]), pos + 700)
        if kind < .2:
            continue
        other = "c2" if kind < .3 else ref
        line(name, 129 | strands[1] | (4 if kind > .93 else 0), other, pos + r.choice([50, 150, 150, 151]))
    return "".join(lines)


@pytest.fixture
def grouped(tmp_path):
    """grouped(seed, n) -> path of a SAM file with records grouped by name."""

    def make(seed, n=2000):
        path = tmp_path / "grouped.sam"
        path.write_text(pairs(seed, n))
        return path

    return make


SETTINGS = [{"args": ["-@", n]} for n in THREADS] + [{"args": ["-@", 2], "pipe": True}] + [
    {"args": ["-@", n, "--total-memory", "300M"], "env": SMALL} for n in (1, 3)]


def test_threads_memory_or_pipes_change_the_records(grouped):
    wanted = as_chain(grouped(1, 4000), settings=SETTINGS)
    flags = [int(line.split(b"\t")[1]) for line in wanted.splitlines() if not line.startswith(b"@")]
    assert 500 < sum(flag >> 10 & 1 for flag in flags) < len(flags) - 500


@pytest.mark.parametrize("fixmate,markdup", [("-p -c", "-l 100 -m s"), ("-r", "-r"), ("-z off", "--use-read-groups"),
                                             ("", "-t -d 100 --duplicate-count -c"), ("", "-S -t"),
                                             ("", "--barcode-rgx '^q[0-9]*:1:([0-9])' --include-fails")])
def test_options_of_steps_mark_others(grouped, fixmate, markdup):
    path = grouped("%s %s" % (fixmate, markdup))
    as_chain(path, fixmate, markdup.replace("'", ""), SETTINGS[2:3])
    quoted = [ours(["--no-PG", "-O", "sam", "--fixmate-args", fixmate, "--markdup-args", m, path]).stdout
              for m in (markdup, markdup.replace("'", '"'))]
    assert quoted[0] == quoted[1] == ours(["--no-PG", "-O", "sam", "--fixmate-args= " + fixmate + " ", "--markdup-args",
                                           markdup.replace("'", ""), path]).stdout


@pytest.mark.parametrize("part", range(3))
def test_templates_of_all_kinds_become_others(part, tmp_path):
    """If markdup of samtools fails, so do we."""
    for seed in range(part, part + 3 * int(os.environ.get("SORMADUP_INPUTS", 1)), 3):
        path = tmp_path / "kinds.sam"
        path.write_text(fixmategen.sam(300, seed, again=0))
        r = random.Random(seed)
        fixmate, markdup = r.choice(["", "-p", "-c", "-r"]), r.choice(["", "-r", "-l 20", "-m s"])
        as_chain(path, fixmate, markdup, [r.choice(SETTINGS)], seed)


def test_base_modifications_are_cut_otherwise(tmp_path):
    path = tmp_path / "mods.sam"
    path.write_text(fixmategen.mods_sam(300, "sormadup"))
    as_chain(path, "-M", settings=SETTINGS[2:3])


@pytest.mark.parametrize("path", [p for p in REAL_BAMS if re.search(r"chr9|chr22\.s|rna|supplementary|test2", str(p))],
                         ids=lambda p: os.path.basename(str(p)))
def test_real_files_become_others(path, tmp_path):
    by_name = tmp_path / "name.bam"
    assert oracle_call("sort", ["-n", "-l", "1", "-o", by_name, path])[0] == 0
    as_chain(by_name, settings=[{"args": ["-@", 2]}])


def test_header_or_statistics_are_others(grouped, tmp_path):
    path = grouped(3)
    assert chain(path, markdup=["-f", tmp_path / "theirs.txt", "-O", "bam"], out_options=()) is not None
    p = ours(["-o", "out.bam", "--write-index", "--verify", "--checksum", "sum", "--report", "--markdup-args",
              "-f ours.txt", path.name], cwd=tmp_path)
    assert p.returncode == 0, p.stderr
    mine, theirs = (read_bam(tmp_path / name) for name in ("out.bam", "grouped.sam.marked"))
    lines = [line for line in mine.lines() if line.startswith("@PG")]
    assert [re.sub(r"\tVN:[^\t]*", "", line) for line in lines] == [
        "@PG\tID:samtools\tPN:samtools\tCL:samtools fixmate -m grouped.sam -",
        "@PG\tID:samtools.1\tPN:samtools\tPP:samtools\tCL:samtools sort -",
        "@PG\tID:samtools.2\tPN:samtools\tPP:samtools.1\tCL:samtools markdup -f ours.txt - out.bam"]
    assert [x for x in mine.lines() if x not in lines] == [x for x in theirs.lines() if not x.startswith("@PG")]
    found, wanted = ((tmp_path / name).read_text().split("\n", 1) for name in ("ours.txt", "theirs.txt"))
    assert found[0] == "COMMAND: samtools markdup -f ours.txt - out.bam" and found[1] == wanted[1]
    assert (tmp_path / "out.bam.csi").exists()
    assert (tmp_path / "sum").read_text().startswith("records=%d " % len(mine.records()))
    assert p.stderr.startswith("samtools sormadup: grouped.sam -> out.bam\n")


FAR = "%s\t%d\tc1\t%d\t60\t4M\t=\t%d\t0\tACGT\tIIII\n"
ONE = "%s\t%d\tc1\t%d\t60\t4M\t*\t0\t0\tACGT\tIIII\n"


@pytest.mark.parametrize("n_between, apart", [(900, 1), (120000, 0)], ids=["found", "far"])
def test_records_apart_pass(n_between, apart, tmp_path):
    (tmp_path / "in.sam").write_text(PAIRS[1] + "".join(ONE % ("q%d" % i, 65, 5 + apart * i) for i in range(n_between))
                                     + ONE % ("q8", 129, 950))
    (tmp_path / "out.bam").write_bytes(PRECIOUS)
    for n in "1", "3":
        p = ours(["-@", n, "-o", "out.bam", "in.sam"], cwd=tmp_path)
        assert p.returncode == 1 and len(p.stderr.splitlines()) == 1, p.stderr
        assert p.stderr.startswith("samtools sormadup: in.sam") and "use --collate" in p.stderr
        assert sorted(os.listdir(tmp_path)) == ["in.sam", "out.bam"]
        assert (tmp_path / "out.bam").read_bytes() == PRECIOUS


def test_records_behind_2_31_are_out_of_order(tmp_path):
    """samtools cannot make BAM of them for the next step. A foreign record must get the keys of their order, too."""
    r, lines = random.Random(31), ["@HD\tVN:1.6\n@SQ\tSN:c1\tLN:4000000000\n"]
    for i in range(1500):                        # more than the order learns from
        at = r.randrange(1, 3999999000)
        lines += [FAR % ("q%d" % i, flag, pos, other) for flag, pos, other in
                  ((99, at, at + 150), (147, at + 150, at))]
    (tmp_path / "in.sam").write_text("".join(lines))
    p = ours(["-@", "2", "-O", "sam", tmp_path / "in.sam"])
    assert p.returncode == 0, p.stderr
    places = [int(line.split(b"\t")[3]) for line in p.stdout.splitlines() if not line.startswith(b"@")]
    assert places == sorted(places) and len(places) == 3000


def piped(path, collate=(), fixmate=(), markdup=()):
    """The result of our own four commands, as SAM."""
    data = run(["collate", "-O", "-u", "--no-PG", *collate, path]).stdout
    for words in (["fixmate", "-m", "-u", "--no-PG", *fixmate, "-", "-"], ["sort", "-u", "--no-PG", "-"],
                  ["markdup", "-O", "sam", "--no-PG", *markdup, "-", "-"]):
        p = run(words, stdin=data)
        assert p.returncode == 0, p.stderr
        data = p.stdout
    return data


def marks(text):
    """The duplicate reads, by name."""
    fields = [line.split("\t") for line in text.splitlines() if not line.startswith("@")]
    return sorted((f[0], int(f[1]) & 0xdc0, f[2], f[3], f[1]) for f in fields)


@pytest.fixture
def in_order(grouped, tmp_path):
    """in_order(seed, n) -> path of a BAM file sorted by coordinate."""

    def make(seed, n=2000):
        path = tmp_path / "in.bam"
        assert oracle_call("sort", ["-o", path, grouped(seed, n)])[0] == 0
        return path

    return make


@pytest.mark.parametrize("fixmate,markdup", [("", ""), ("-r", "-r -t")])
def test_sorted_input_becomes_another_than_collated_input(in_order, tmp_path, fixmate, markdup):
    path = in_order(5, 4000)
    wanted = piped(path, fixmate=fixmate.split(), markdup=markdup.split()).decode()
    for how in SETTINGS:
        p = ours(["--no-PG", "-O", "sam", "--fixmate-args", fixmate, "--markdup-args", markdup, "--verify",
                  *how.get("args", []), "-" if how.get("pipe") else path],
                 env=how.get("env", {}), stdin=open(path, "rb") if how.get("pipe") else None)
        assert p.returncode == 0, p.stderr
        same_lines(p.stdout.decode(), wanted, how)
    by_name = tmp_path / "name.bam"
    assert oracle_call("collate", ["-o", by_name, path])[0] == 0
    assert marks(wanted) == marks(chain(by_name, fixmate.split(), markdup.split()).decode())


def test_shuffled_input_is_not_collated(grouped, tmp_path):
    """No header states it: the option does."""
    lines = grouped(6).read_text().splitlines(True)
    header, records = [x for x in lines if x[0] == "@"], [x for x in lines if x[0] != "@"]
    random.Random(6).shuffle(records)
    (tmp_path / "in.sam").write_text("".join(header + records))
    assert ours(["in.sam"], cwd=tmp_path).returncode == 1
    p = ours(["--collate", "-o", "out.bam", "--report", "--progress", "in.sam"], cwd=tmp_path)
    assert p.returncode == 0, p.stderr
    mine = read_bam(tmp_path / "out.bam").lines()
    assert [re.sub(r"\tVN:[^\t]*", "", x) for x in mine if x.startswith("@PG")] == [
        "@PG\tID:samtools\tPN:samtools\tCL:samtools collate -O -u in.sam",
        "@PG\tID:samtools.1\tPN:samtools\tPP:samtools\tCL:samtools fixmate -m - -",
        "@PG\tID:samtools.2\tPN:samtools\tPP:samtools.1\tCL:samtools sort -",
        "@PG\tID:samtools.3\tPN:samtools\tPP:samtools.2\tCL:samtools markdup - out.bam"]
    text = ours(["--collate", "--no-PG", "-O", "sam", "in.sam"], cwd=tmp_path).stdout
    assert text == piped(tmp_path / "in.sam")
    assert [x for x in mine if x and not x.startswith("@PG")] == [x for x in text.decode().splitlines() if x[0] == "@"]
    assert len(re.findall(r"^samtools sormadup: done: 100 %, 0.00 M records", p.stderr, re.M)) == 1


def parts(tmp_path, header, records, ends):
    """Files that hold the records up to each of these, SAM and BAM in turn."""
    paths = []
    for i, (begin, end) in enumerate(zip([0, *ends], ends)):
        paths.append(tmp_path / ("part%d.sam" % i))
        paths[i].write_text("".join(header + records[begin:end]))
        if i % 2:
            assert oracle_call("view", ["-b", "--no-PG", "-o", paths[i].with_suffix(".bam"), paths[i]])[0] == 0
            paths[i] = paths[i].with_suffix(".bam")
    return paths


def joined(paths):
    """The words that name the first one last."""
    return [w for path in paths[1:] for w in ("--add-input", path)] + [paths[0]]


def test_parts_become_another_than_the_whole(grouped, tmp_path):
    """Templates are in two files, and one, larger than a chunk, in four. The third file has no record."""
    lines = grouped(8).read_text().splitlines(True)
    header, records = [x for x in lines if x[0] == "@"], [x for x in lines if x[0] != "@"]
    middle, first = len(records) // 2, records.index(next(x for x in records if "\t65\t" in x))
    long = [x.replace("q0", "long") for x in ([ONE % ("long", 65, 7), ONE % ("long", 129, 70)]
                                              + [ONE % ("long", 2113, 8 + i) for i in range(9000)])]
    records[middle:middle] = long
    ends = [first + 1, middle + 3, middle + 3, middle + 4000, middle + 8999, len(records)]
    whole = tmp_path / "whole.sam"
    whole.write_text("".join(header + records))
    wanted = chain(whole)
    paths = parts(tmp_path, header, records, ends)
    for how in SETTINGS:
        p = ours(["--no-PG", "-O", "sam", *how.get("args", []), *joined(["-", *paths[1:]] if how.get("pipe") else paths)],
                 env=how.get("env", {}), stdin=open(paths[0], "rb") if how.get("pipe") else None)
        assert p.returncode == 0, p.stderr
        same_lines(p.stdout.decode(), wanted.decode(), how)
    told = ours(["--plan=json", *joined(paths[1:2] * 2)]).stdout
    assert json.loads(told)["records"] == 2 * json.loads(ours(["--plan=json", paths[1]]).stdout)["records"]


def test_parts_in_any_order_are_not_collated(grouped, tmp_path):
    """They are collated if one header states that its file is in order, and if the option is given. Otherwise mates in
    two files are noticed."""
    lines = grouped(9).read_text().splitlines(True)
    header, records = [x for x in lines if x[0] == "@"], [x for x in lines if x[0] != "@"]
    random.Random(9).shuffle(records)
    ends = [len(records) // 3, len(records) // 2, len(records)]
    whole = tmp_path / "whole.sam"
    whole.write_text("".join(header + records))
    wanted = piped(whole).decode()
    paths = parts(tmp_path, header, records, ends)
    for args in ["--collate", "-@3"], ["--collate", "--total-memory=300M"]:
        p = ours(["--no-PG", "-O", "sam", "--verify", *args, *joined(paths)], env=SMALL if len(args[1]) > 4 else {})
        assert p.returncode == 0, p.stderr
        same_lines(p.stdout.decode(), wanted, args)
    p = ours(joined(paths))
    assert p.returncode == 1 and "use --collate" in p.stderr
    paths[2].write_text(paths[2].read_text().replace("unsorted", "coordinate"))
    p = ours(["-o", "out.bam", *joined([path.name for path in paths])], cwd=tmp_path)
    assert p.returncode == 0, p.stderr
    same_lines(ours(["--no-PG", "-O", "sam", *joined(paths)]).stdout.decode(), wanted, "by the header")
    assert [re.sub(r".*\tCL:", "", x) for x in read_bam(tmp_path / "out.bam").lines() if x.startswith("@PG")] == [
        "samtools cat part0.sam part1.bam part2.sam", "samtools collate -O -u -", "samtools fixmate -m - -",
        "samtools sort -", "samtools markdup - out.bam"]


def test_tags_of_renamed_programs_are_those_of_others(grouped, tmp_path):
    """Records of the second file are changed before they are fixed, and the template at the boundary is one."""
    lines = grouped(10, 300).read_text().splitlines(True)
    header, records = [x for x in lines if x[0] == "@"], [x[:-1] + "\tPG:Z:bwa\n" for x in lines if x[0] != "@"]
    at = 1 + records.index(next(x for x in records if "\t65\t" in x))
    paths = [tmp_path / name for name in ("a.sam", "b.sam")]
    for i, path in enumerate(paths):
        path.write_text("".join([*header, "@PG\tID:bwa\tCL:%d\n" % i, *(records[at:] if i else records[:at])]))
    text = run(["sort", "--no-PG", "-O", "sam", *joined(paths)]).stdout.decode().splitlines(True)
    names = [re.match(r"@PG\tID:([^\t]*)", x)[1] for x in text if x.startswith("@PG")]
    assert names[0] == "bwa" != names[1]
    whole = tmp_path / "whole.sam"
    whole.write_text("".join([*header, *(x for x in text if x.startswith("@PG")), *records[:at]])
                     + "".join(records[at:]).replace("PG:Z:bwa", "PG:Z:" + names[1]))
    p = ours(["--no-PG", "-O", "sam", *joined(paths)])
    assert p.returncode == 0, p.stderr
    same_lines(p.stdout.decode(), chain(whole).decode(), "renamed")


def test_cut_part_is_a_boundary(grouped, desk):
    """Its last record ends in no other file; a record after a boundary has its number in its own file."""
    path = grouped(11, 50)
    assert oracle_call("view", ["-b", "-o", desk / "a.bam", path])[0] == 0
    raw = gzip.decompress((desk / "a.bam").read_bytes())[:-5]
    (desk / "cut.bam").write_bytes(bamgen.bgzf(raw))
    (desk / "cut_raw.bam").write_bytes(raw)
    one = "%s\t%d\tc1\t9\t60\t1M\t*\t0\t0\tA\tI\tMM:Z:\tMN:Z:1\n"
    for name, tail in ("boundary.sam", ""), ("bad.sam", one[:-8] % ("q", 129) + "\n" + one % ("t", 0)):
        (desk / name).write_text(PAIRS[1] + (tail or ONE % ("q", 65, 9)))
    for paths, words in (["cut.bam", "boundary.sam"], "cut.bam"), (["cut_raw.bam", "boundary.sam"], "cut_raw.bam"), \
            (["boundary.sam", "bad.sam"], r"bad\.sam: record 2 \(t\)"):
        p = ours(["--fixmate-args", "-M", "-o", "out.bam", *joined(paths)], cwd=desk)
        assert p.returncode == 1 and re.search("^samtools sormadup: " + words, p.stderr, re.M), p.stderr
        assert (desk / "out.bam").read_bytes() == PRECIOUS


@pytest.mark.parametrize("env", [{}, SMALL])
def test_cut_sorted_input_leaves_an_output(in_order, desk, env):
    data = in_order(7).read_bytes()
    (desk / "cut.bam").write_bytes(data[:len(data) // 2])
    for args in [["cut.bam"], ["-T", desk / "lacks" / "x", in_order(7)]][:1 + bool(env)]:
        p = ours(["-@", "3", "--total-memory", "300M", "-o", "out.bam", *args], cwd=desk, env=env)
        assert p.returncode == 1 and len(re.findall("^samtools sormadup: (?!warning)", p.stderr, re.M)) == 1, p.stderr
        assert (desk / "out.bam").read_bytes() == PRECIOUS


def test_collated_record_has_its_number_in_the_file(tmp_path):
    """It is another file then, so the message must name it."""
    (tmp_path / "in.sam").write_text(PAIRS[0].replace("unsorted", "coordinate") + PAIRS[1] + "".join(
        "t%d\t0\tc1\t%d\t60\t1M\t*\t0\t0\tA\tI\tMM:Z:%s\n" % (i, 9 + i, "\tMN:Z:1" * (i == 7)) for i in range(9)))
    p = ours(["--fixmate-args", "-M", "-o", "out.bam", "in.sam"], cwd=tmp_path)
    assert p.returncode == 1 and re.search(r"in\.sam: record \d as collated \(t7\) or a later one", p.stderr), p.stderr


@pytest.mark.parametrize("fault", ["fixed:drop", "lent:flip", "arena:flip", "arena:drop", "arena:both", "merged:flip",
                                   "collate:arena:flip", "collate:arena:drop", "collate:collated:drop"])
def test_fault_passes(fault, desk, grouped):
    """Faults of memory or of our code: in a template, before the sort, after it."""
    collate = ["--collate"] if fault.startswith("collate:") else []
    sees_fault(desk, fault.replace("collate:", ""), "sormadup", [*collate, "-o", "out.bam", grouped(1, 300)])


@pytest.mark.parametrize("args", [["-n", "IN"], ["-t", "NM", "IN"], ["IN", "IN"], ["--fixmate-args", "-Q", "IN"],
                                  ["--fixmate-args", "-@ 3", "IN"], ["--markdup-args", "x.bam", "IN"],
                                  ["--markdup-args", "-O sam", "IN"], ["--markdup-args", "-T x", "IN"],
                                  ["--markdup-args", "--barcode-rgx 'x", "IN"],
                                  ["--markdup-args", "--write-index", "IN"], ["--fixmate-args", "-r " * 70, "IN"]],
                         ids=lambda args: " ".join(args)[:40])
def test_mistake_is_taken(grouped, args):
    path = grouped(1, 5)
    p = ours([path if a == "IN" else a for a in args])
    assert p.returncode == 1 and p.stdout == b""
    assert re.match(r"samtools (sormadup|fixmate|markdup): ", p.stderr), p.stderr
    word = re.search(r"-args -+([@OTw][a-z-]*)", " ".join(args))    # the message names it, not the options after it
    assert not word or re.match(r"samtools \w+: -+%s is not an option" % word[1], p.stderr), p.stderr


@pytest.mark.parametrize("option", ["--markdup-args", "--fixmate-args"])
def test_words_of_a_step_are_lost(option, tmp_path):
    path = tmp_path / "in.sam"
    path.write_text("@SQ\tSN:c\tLN:1000\nn\t0\tc\t9\t60\t4M\t*\t0\t0\tACGT\tIIII\n")
    for words, warned in ((["-r", "-c"], True), (["-r", "-r"], False), (["-r"], False)):
        p = run(["sormadup", *(x for word in words for x in (option, word)), "-o", tmp_path / "out.bam", path])
        assert p.returncode == 0, p.stderr
        assert ("%s was given twice: only the last one is used, '-c'" % option in p.stderr) == warned, p.stderr
