# SPDX-License-Identifier: MIT
"""The command line of merge: accepted if samtools 1.24 accepts it, refused if it refuses, and the same output. After
the table come the cases that we decide differently; doc/migration.md describes them for users."""

import gzip
import json
import os
import re
import shlex
import subprocess
import sys

import pysam
import pytest

import bamgen
from conftest import HANG, PRECIOUS, clean_env, in_all, run

HEAD = "@HD\tVN:1.6\tSO:coordinate\n@SQ\tSN:c1\tLN:1000\n@RG\tID:x\tSM:s\n@PG\tID:p\n"
NUMBERS = ["", " ", "0", "1", "-1", "x", "3x", "2.5", "0x4", " 4", "4 ", "+4", "1e3", "9", "10", "99999999999"]
FAR = ["4294967297", "9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809"]
INPUTS = ["a.sam", "b.sam"]
TO = ["-o", "out.bam", *INPUTS]


def reads(name, *positions):
    return "".join("%s%d\t0\tc1\t%d\t9\t1M\t*\t0\t0\tA\tI\tRG:Z:x\tXX:i:%d\n" % (name, 9 - i, pos, i)
                   for i, pos in enumerate(positions))


def furnish(folder):
    """a and b clash in @RG and @PG, and tie at 20; names and positions disagree."""
    folder.mkdir(exist_ok=True)
    (folder / "a.sam").write_text(HEAD + reads("a", 10, 20, 30))
    (folder / "b.sam").write_text(HEAD + reads("b", 20, 25))
    (folder / "c.sam").write_text(HEAD + reads("c", 1))
    (folder / "list").write_text("a.sam\r\n\nb.sam")
    (folder / "none").write_text("\n")
    (folder / "old.bam").write_bytes(PRECIOUS)
    (folder / "link.bam").symlink_to("old.bam")
    (folder / "dangling.bam").symlink_to("new.bam")
    (folder / "folder").mkdir()
    return folder


@pytest.fixture
def here(tmp_path):
    return furnish(tmp_path / "here")


def ours(args, **kw):
    return run(["merge", *args], **kw)


def text_of(path):
    """Lines; VN and CL of our own @PG are ignored."""
    with pysam.AlignmentFile(str(path), check_sq=False) as f:
        lines = str(f.header).splitlines() + [r.to_string() for r in f.fetch(until_eof=True)]
    return [re.sub(r"\t(VN|CL):[^\t]*", r"\t\1:*", x) if x.startswith("@PG\tID:samtools") else x for x in lines]


def merged(args, here, **kw):
    """Records of standard output: names."""
    p = ours(["--no-PG", "-O", "sam", "-o", "-", *args], cwd=here, **kw)
    assert p.returncode == 0, p.stderr
    return [x.split("\t")[0] for x in p.stdout.decode().splitlines() if x[0] != "@"]


def files(folder):
    return sorted(p.name for p in folder.iterdir())


def refused(args, here, words, **kw):
    before = {p: p.read_bytes() for p in here.iterdir() if p.is_file()}
    p = ours(args, cwd=here, **kw)
    assert p.returncode == 1 and words in p.stderr and p.stdout == b"", p.stderr
    assert p.stderr.startswith("samtools merge: ") and p.stderr.count("\n") == 1, p.stderr
    assert {p: p.read_bytes() for p in here.iterdir() if p.is_file()} == before


# -------------------------------------------------------------- compared with samtools

ORACLE = """
import json, os, sys
from pysam.libcutils import _pysam_dispatch
for folder, line in json.load(sys.stdin):
    os.chdir(folder)
    print(_pysam_dispatch("samtools", "merge", tuple(line), catch_stdout=False)[0], flush=True)
"""


def lines(text, *more):
    return [shlex.split(x) + list(more) for x in text.split("|")]


def abbreviations():
    for option in ("threads 2", "template-coordinate", "write-index", "no-PG", "verbosity 3", "output-fmt bam",
                   "output-fmt-option level=1", "reference a.sam"):
        name, *value = option.split()
        yield from ([["--" + name[:n], *value, "-s1", *TO] for n in range(1, len(name) + 1)])


TABLE = {
    "level": [["-l", v, "-s1", *TO] for v in NUMBERS] + lines("-u | -1 | -1u | -ul9 | -l9 -1", "-s1", *TO),
    "seed": [["-s", v, *TO] for v in NUMBERS + FAR] + [["-s1", "-s5", *TO]],
    "threads": [["-@", v, "-s1", *TO] for v in NUMBERS if v],
    "order": lines("-n | -N | -nN | -N -n | -t XX | -n -t XX | -t RG | -t X | -t '' | -t XX -t YY"
                   "| -n --template-coordinate | --template-coordinate -n | -n --template-coordinate -t XX"
                   "| --template-coordinate -n -t XX", "-s1", "--no-PG", *TO),
    "header": lines("-c | -p | -cp | -r | -rcp | -h c.sam | -hc.sam -r | -h missing | -h | -h c.sam -h b.sam | --no-PG",
                    "-s1", *TO),
    "names": lines("out.bam a.sam b.sam | out.bam a.sam -p | out.bam | -o out.bam | a.sam | -o out.bam '' | -c"
                   "| a.sam b.sam | --customized-index out.bam a.sam b.sam"
                   "| out.bam missing.bam | old.bam a.sam | ./old.bam a.sam | link.bam a.sam | dangling.bam a.sam"
                   "| -f old.bam a.sam | old.bam a.sam -f | folder a.sam | -f folder a.sam | old.bam##idx##x.bai a.sam"
                   "| -o old.bam a.sam | nowhere/out.bam a.sam | -- out.bam a.sam | out.bam a.sam a.sam", "-s1"),
    "list": lines("-b list out.bam | out.bam c.sam -b list | -b list -b list out.bam c.sam | -b:a.sam,b.sam out.bam"
                  "| -b list | -b none out.bam | -b none out.bam a.sam | -o out.bam -b list c.sam", "-s1"),
    "format": lines("out.sam a.sam | out.sam.gz a.sam | -O sam out.bam a.sam | -O bogus out.bam a.sam | out a.sam b.sam"
                    "| -O bam,level=1 out.sam a.sam b.sam | --output-fmt-option level=0 out.bam a.sam"
                    "| --input-fmt-option filter=pos<25 out.bam a.sam b.sam | --input-fmt-option bogus out.bam a.sam",
                    "-s1"),
    "index": lines("out.bam a.sam | out.bam##idx##x.bai a.sam b.sam | out.sam.gz a.sam | out.bam##idx##x.csi a.sam",
                   "-s1", "--write-index"),
    "abbreviations": list(abbreviations()),
}


@pytest.mark.parametrize("group", TABLE)
def test_line_is_taken_refused_or_meant_otherwise(tmp_path, group):
    cases = [(furnish(tmp_path / ("theirs%d" % i)), furnish(tmp_path / ("ours%d" % i)), line)
             for i, line in enumerate(TABLE[group])]
    feed = json.dumps([(str(folder), line) for folder, _, line in cases]).encode()
    oracle = subprocess.run([sys.executable, "-c", ORACLE], input=feed, capture_output=True, timeout=HANG,
                            env=clean_env())
    statuses = [int(x) for x in oracle.stdout.split()]
    assert len(statuses) == len(cases), "the oracle crashed: %s" % oracle.stderr
    wrong, before = [], files(furnish(tmp_path / "before"))
    for status, (theirs, mine, line) in zip(statuses, cases):
        p = ours(line, cwd=mine)
        if p.returncode != status:
            wrong.append((line, status, p.stderr))
        elif status == 0:
            assert files(mine) == files(theirs), line
            for name in files(mine):
                if "out" in name and not name.endswith((".csi", ".bai")):
                    assert text_of(mine / name) == text_of(theirs / name), line
        else:
            assert p.stderr.splitlines()[-1].startswith("samtools merge: "), p.stderr
            assert files(mine) == before and (mine / "old.bam").read_bytes() == PRECIOUS, line
    assert not wrong


# ------------------------------------------------------------------- the output


def test_older_file_is_lost(here):
    for name in ("old.bam", "./old.bam", "link.bam"):
        refused([name, "a.sam"], here, "File '%s' exists. Please apply '-f' to overwrite. Abort." % name)
    refused(["-f", "old.bam", "a.sam", "missing.bam"], here, "missing.bam")
    assert (here / "old.bam").read_bytes() == PRECIOUS


def test_input_is_lost_that_is_the_output(here):
    """samtools would read its own output."""
    p = ours(["-f", "--no-PG", "-cp", "a.sam", "a.sam", "b.sam"], cwd=here)
    assert p.returncode == 0, p.stderr
    assert [x.split("\t")[0] for x in text_of(here / "a.sam")[4:]] == ["a9", "a8", "b9", "b8", "a7"]


def test_index_has_another_name_or_format(here):
    for line, name, magic in ((["out.bam"], "out.bam.csi", b"CSI\1"), (["o.bam##idx##x.bai"], "x.bai", b"BAI\1"),
                              (["p.cram", "--output-fmt-option", "no_ref=1"], "p.cram.crai", b"0\t"),
                              (["q.sam.gz"], "q.sam.gz.csi", b"CSI\1")):
        p = ours(["--write-index", *line, *INPUTS], cwd=here)
        assert p.returncode == 0, p.stderr
        data = (here / name).read_bytes()
        assert (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).startswith(magic)
    with pysam.AlignmentFile(str(here / "out.bam"), index_filename=str(here / "out.bam.csi")) as f:
        assert [r.query_name for r in f.fetch("c1", 19, 25)] == ["a8", "b9", "b8"]


@pytest.mark.parametrize("order", ["-n", "-N", "-tXX", "--template-coordinate"])
def test_index_of_another_order_fails_after_hours(here, order):
    refused(["--write-index", order, *TO], here, "--write-index needs coordinate order")


def test_index_that_cannot_be_is_noticed_late(here):
    refused(["--write-index", "out.sam", "a.sam"], here, "--write-index needs BAM")
    refused(["--write-index", "-", "a.sam"], here, "--write-index needs an output file")
    refused(["--write-index=tbi", "out.bam", "a.sam"], here, "bai or csi")


def test_output_is_an_input_or_a_url(here):
    refused(["--checksum=a.sam", "out.bam", "a.sam"], here, "cannot be both input and checksum")
    refused(["--report=out.bam", "out.bam", "a.sam"], here, "cannot be both output and report")
    refused(["http://localhost/x.bam", "a.sam"], here, "URLs are for input")


# -------------------------------------------------------------------- the inputs


def test_list_comes_after_the_operands(here):
    (here / "list.gz").write_bytes(gzip.compress(b"b.sam\na.sam\n"))
    assert merged(["c.sam", "a.sam", "-b", "list.gz"], here) == ["c9", "a9", "a9", "b9", "a8", "a8", "b8", "a7", "a7"]
    for place in ("-", "/dev/stdin"):
        assert merged(["-b", place], here, stdin=b"b.sam\na.sam\n") == ["a9", "b9", "a8", "b8", "a7"]


@pytest.mark.parametrize("name", ["missing", "folder"])
def test_list_that_cannot_be_read_is_left_out(here, name):
    """samtools merges the rest, and fails at the end."""
    refused(["-f", "old.bam", "a.sam", "-b", name], here, 'Invalid file list "%s"' % name)


@pytest.mark.parametrize("args", [["-", "-"], ["-", "-b", "-"], ["-", "-h", "-"], ["-b:-,a.sam", "-"]], ids=" ".join)
def test_standard_input_is_read_twice(here, args):
    refused(["-o", "out.bam", *args], here, "standard input can be read only once", stdin=b"-\n")


def test_standard_input_is_not_read(here):
    assert merged(["b.sam", "-"], here, stdin=(here / "a.sam").read_bytes()) == ["a9", "b9", "a8", "b8", "a7"]


# ------------------------------------------------------------- seed, memory, help


def test_two_runs_give_two_results(here):
    data = [ours(["-", *INPUTS, "--no-PG", *seed], cwd=here).stdout for seed in ([], [], ["-s", "1"], ["-s", "2"])]
    assert data[0] == data[1] == data[2] != data[3]


def test_memory_is_another(here):
    for more, env, mib in (([], {}, 64 + (2 + 1) * 4), (["-@", "3"], {}, 64 + (2 + in_all(3)) * 4),
                           (["--total-memory", "1G"], {}, 1024), ([], {"SAMTOOLS_OMP_TOTAL_MEMORY": "200M"}, 200)):
        p = ours(["-f", "--report=r.json", *more, *TO], cwd=here, env=env)
        assert p.returncode == 0, p.stderr
        assert json.loads((here / "r.json").read_text())["memory_bytes"] == mib << 20


def test_memory_that_nobody_limits_is_too_little(here):
    """Many inputs, threads, and references are given."""
    (here / "refs.sam").write_text("@HD\tVN:1.6\n" + "".join("@SQ\tSN:contig%d\tLN:9\n" % i for i in range(100000)))
    p = ours(["-@", "16", "-cp", *TO, *["a.sam"] * 60, "-h", "refs.sam"], cwd=here)
    assert p.returncode == 0, p.stderr


def test_report_checksum_or_progress_are_ignored(here):
    p = ours(["--verify", "--report", "--checksum", "sum", "--progress", *TO], cwd=here)
    assert p.returncode == 0, p.stderr
    assert (here / "sum").read_bytes().split()[0] == b"records=5"
    assert "samtools merge: a.sam" in p.stderr and "samtools merge: done: 100 %" in p.stderr
    assert re.search(r" waits +waited, s +input\n( +[0-9,]+ +\d +\d+ +[0-9.]+  [ab]\.sam\n){2}\n", p.stderr), p.stderr


def planned(args, here, **kw):
    """The forecast of --plan, by the name of the fact; it makes no file."""
    before = files(here)
    text, told = (ours(["--plan" + form, *args], cwd=here, **kw) for form in ("", "=json"))
    assert (text.returncode, text.stderr, told.returncode) == (0, "", 0) and files(here) == before
    lines = text.stdout.decode().splitlines()
    return dict(re.fullmatch(r"(#SBATCH --[a-z-]+|[a-z@0-9 -]+)[=:] ?(.*)", x).groups() for x in lines), json.loads(told.stdout)


def test_plan_makes_a_file_or_forgets_an_input(here):
    facts, told = planned(["-n", "-@", "2", "-h", "c.sam", *TO], here)
    assert facts["inputs"].startswith("2 (BAM 0, SAM 2, others 0), ") and facts["order"] == "by name" and facts["references"] == "1"
    assert "not all inputs are BAM" in facts["records"] and facts["memory"].startswith("at most ") and "#SBATCH --mem" in facts
    assert [told[x] for x in ("inputs", "sam_inputs", "references", "order", "threads", "records")] == [2, 2, 1, "name", in_all(2), None]
    assert 10 << 20 < told["memory_bytes"] <= (64 + 4 * 4) << 20
    facts, told = planned(["-o", "-", "-", "a.sam"], here, stdin=b"precious")
    assert "nothing was read" in facts["records"] and facts["inputs"] == "2" and told["memory_bytes"] > 10 << 20
    for plan in ["--plan"], []:
        refused([*plan, "--total-memory", "24M", "-@", "8", *TO], here, "is enough. Nothing was written")
    refused(["--plan=xml", *TO], here, "--plan can be json")


def test_plan_is_far_from_what_the_merge_takes(here):
    """There are more files than are sampled, one of which is larger."""
    refs = [("c1", 1000), ("c2", 1000)]
    for name, n in ("s.bam", 3000), ("t.bam", 9000):
        (here / name).write_bytes(bamgen.bgzf(bamgen.header("@HD\tVN:1.6\n" + bamgen.sq_text(refs), refs) + bamgen.tiny(n), level=1))
    inputs = ["t.bam", *["s.bam"] * 20]
    facts, told = planned(["-o", "out.bam", *inputs], here)
    assert facts["inputs"].startswith("21 (BAM 21, SAM 0, others 0), ") and told["inputs"] == told["bam_inputs"] == 21
    assert told["input_bytes"] == sum((here / x).stat().st_size for x in inputs)
    assert told["records"] == pytest.approx(69000, rel=0.01)
    assert {"output", "output place", "#SBATCH --mem"} <= set(facts)
    assert told["output_bytes"] > 0 and told["memory_bytes"] <= (64 + 4 * 22) << 20


def test_input_is_not_in_the_report(here):
    """Inputs also come from a pipe, and the output may replace an input, which is larger then."""
    sizes = [(here / x).stat().st_size for x in ("a.sam", "b.sam")]
    for args in ["--report=r.html", "-o", "out.sam"], ["--report=r.json", "-o", "b.sam"]:
        p = ours(["-f", *args, "a.sam", "b.sam", "-"], cwd=here, stdin=(here / "c.sam").read_bytes())
        assert p.returncode == 0, p.stderr
    page, told = (here / "r.html").read_text(), json.loads((here / "r.json").read_text())
    assert "<p>samtools merge</p><h1>" in page and "<h2>Inputs</h2>" in page and "<td>standard input</td>" in page
    assert [x["name"] for x in told["inputs"]] == ["a.sam", "b.sam", "standard input"]
    assert [x["bytes"] for x in told["inputs"]][:2] == sizes
    assert sum(x["records"] for x in told["inputs"]) == told["records"] > 0
    assert all(x["waits"] >= 0 and x["waited_s"] >= 0 for x in told["inputs"])


@pytest.mark.parametrize("words", [["merge"], ["merge", "--help"], ["help", "merge"]])
def test_help_is_missing(words):
    p = run(words)
    assert p.returncode == 0 and p.stdout.startswith(b"Usage: samtools merge ") and p.stderr == ""


# ------------------------------------------------------------- nothing is passed on


@pytest.mark.parametrize("args", lines("-r -t XX | -t RG | -r -t RG | -r --template-coordinate | -r"), ids=" ".join)
def test_other_samtools_is_asked(here, args):
    p = ours([*args, *TO], cwd=here, env={"SAMTOOLS_UPSTREAM": os.devnull, "PATH": "/nonexistent"})
    assert p.returncode == 0, p.stderr
