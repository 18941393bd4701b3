# SPDX-License-Identifier: MIT
"""--flagstat FILE and --idxstats FILE of the commands that write records: the results must be those of samtools 1.24
for the output."""

import contextlib
import json
import os
import random
import re
import shlex
import subprocess

import pysam
import pytest

import bamgen
from conftest import BINARY, FASTA_REFS, SANITIZED, clean_env, run
from test_copy_blocks import files, records_of
from test_flagstat import all_flags, theirs
from test_own_files import refused, seen
from test_spill import MANY

OPTIONS = ["--flagstat", "f.txt", "--idxstats", "i.txt"]
FORMATS = ["out.bam", "out.sam", "out.sam.gz", "out.cram"]


def mates(n, seed=1):
    """(header, records): templates with their tags, in the order of their names."""
    r = random.Random(seed)
    recs = []
    for i in range(n):
        tid, pos, other = r.randrange(3), r.randrange(900), r.randrange(900)
        seq, fails = bamgen.bases(r, 50), 512 * (r.random() < .1)
        if r.random() < .1:
            recs += [bamgen.record("q%05d" % i, f | fails, seq=seq, tid=-1, pos=-1, bin=4680) for f in (77, 141)]
            continue
        for flag, at, to in (0x41, pos, other), (0x81, other, pos):
            recs.append(bamgen.record("q%05d" % i, flag | fails, tid, at, seq=seq, cigar=[(50, "M")], mtid=tid, mpos=to,
                                      tags=b"MCZ50M\0msi\x64\0\0\0"))
    return bamgen.header(bamgen.sq_text(FASTA_REFS), FASTA_REFS), recs


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("counted")
    head, recs = mates(3000)
    (folder / "named.bam").write_bytes(bamgen.bgzf(head + b"".join(recs)))
    for name in "one.bam", "two.bam":
        assert run(["sort", "--no-PG", "-o", folder / name, folder / "named.bam"]).returncode == 0
    return folder


@contextlib.contextmanager
def pysam_in(folder):
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def words_of(command, inputs, out):
    """A command line without options, and whether its output is sorted."""
    return {"sort": [inputs / "named.bam", "-o", out], "merge": ["-f", "-o", out, inputs / "one.bam", inputs / "two.bam"],
            "markdup": [inputs / "one.bam", out], "sormadup": [inputs / "named.bam", "-o", out],
            "collate": ["-o", out, inputs / "one.bam"], "fixmate": [inputs / "named.bam", out]}[command]


def as_told(folder, out):
    """Compares the files with samtools' results for the output."""
    assert (folder / "f.txt").read_text() == theirs("flagstat", folder / out)
    said = theirs("idxstats", folder / out)
    assert said in ((folder / "i.txt").read_text(), None)
    return said


@pytest.mark.parametrize("out", FORMATS)
@pytest.mark.parametrize("command", ["sort", "merge", "markdup", "sormadup", "collate", "fixmate"])
def test_counts_are_not_those_of_the_output(inputs, tmp_path, command, out):
    threads = 1 + (FORMATS.index(out) + len(command)) % 8
    more = ["--output-fmt-option", "no_ref=1"] if out == "out.cram" else ["-l", "1"] * (command in ("sort", "merge"))
    p = run([command, "-@", threads, *more, *OPTIONS, *words_of(command, inputs, out)], cwd=tmp_path)
    assert p.returncode == 0, p.stderr
    said = as_told(tmp_path, out)
    assert said or command in ("collate", "fixmate")
    assert sorted(x.name for x in tmp_path.iterdir()) == sorted(["f.txt", "i.txt", out])


@pytest.mark.parametrize("threads", [1, 2, 3, 8])
@pytest.mark.parametrize("more", [["--write-index"], ["--write-index=bai", "--verify"], ["-n"], ["-M", "-l", "0"], ["-t", "NM"],
                                  ["--checksum=samtools:sum"]], ids=" ".join)
def test_counts_depend_on_threads_and_order(tmp_path, threads, more):
    head, recs = all_flags(5000, threads)
    (tmp_path / "in.bam").write_bytes(bamgen.bgzf(head + b"".join(recs)))
    p = run(["sort", "-@", threads, *OPTIONS, *more, "-o", "out.bam", "in.bam"], cwd=tmp_path)
    assert p.returncode == 0, p.stderr
    said = as_told(tmp_path, "out.bam")
    assert said or "-n" in more or "-t" in more or "-M" in more


@pytest.mark.parametrize("name", ["mixed", "long_records", "header_only", "no_refs", "cg_long", "one_record"])
@pytest.mark.parametrize("env", [{}, MANY], ids=["in_memory", "spilled"])
def test_long_or_odd_record_is_not_counted(made, tmp_path, name, env):
    for more in ["--write-index"], ["--verify"], ["-M"]:
        p = run(["sort", "-@", "2", *OPTIONS, *more, "-o", "out.bam", made(name)], cwd=tmp_path, env=env)
        assert p.returncode == 0, p.stderr
        as_told(tmp_path, "out.bam")
        for left in tmp_path.iterdir():
            left.unlink()


def test_copied_blocks_are_not_counted(tmp_path):
    """Some of the copied blocks begin or end inside a record, which is in two blocks of the output, too."""
    recs = records_of("counted", 2000)
    one, two = (x.path for x in files(tmp_path, [recs[:900], recs[900:]], "straddle"))
    for command in ["merge", "-f", "-o", "out.bam", one, two], ["sort", "-o", "out.bam", "--add-input", two, one]:
        p = run([command[0], "-@", "2", "--copy-blocks", "--report=r.json", *OPTIONS, *command[1:]], cwd=tmp_path)
        assert p.returncode == 0, p.stderr
        assert json.loads((tmp_path / "r.json").read_text())["copied_blocks"] > 5
        assert as_told(tmp_path, "out.bam")


def test_standard_output_takes_one_of_them(inputs, tmp_path):
    for words in ["--flagstat", "-", "-o", "out.bam"], ["--flagstat", "f.txt", "-u"]:
        p = run(["sort", *words, inputs / "one.bam"], cwd=tmp_path)
        assert p.returncode == 0, p.stderr
        (tmp_path / "out.bam").exists() or (tmp_path / "out.bam").write_bytes(p.stdout)
        text = p.stdout.decode() if words[1] == "-" else (tmp_path / "f.txt").read_text()
        assert text == theirs("flagstat", tmp_path / "out.bam")
    refused(tmp_path, "standard output cannot be both output and flagstat", "sort", "--flagstat", "-", inputs / "one.bam")
    refused(tmp_path, "cannot be both", "sort", "--flagstat", "x", "--idxstats", "x", "-o", "o.bam", inputs / "one.bam")


def test_failure_leaves_counts(inputs, tmp_path):
    whole = (inputs / "named.bam").read_bytes()
    (tmp_path / "cut.bam").write_bytes(whole[:len(whole) // 2])
    (tmp_path / "f.txt").write_text("old\n")
    before = seen(tmp_path)
    for command in ["sort", "-o", "out.bam", "cut.bam"], ["fixmate", "cut.bam", "out.bam"], ["collate", "-o", "out.bam", "cut.bam"]:
        p = run([command[0], *OPTIONS, *command[1:]], cwd=tmp_path)
        assert p.returncode == 1 and seen(tmp_path) == before, p.stderr
    for words in ["--flagstat", "none/f", "--idxstats", "i"], ["--flagstat", "f", "--idxstats", "none/i"]:
        p = run(["sort", *words, "-o", "out.bam", inputs / "one.bam"], cwd=tmp_path)
        assert p.returncode == 1 and "none/" in p.stderr and seen(tmp_path) == before


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
def test_disk_is_full_when_counts_are_written(inputs, tmp_path):
    for option in "--stats", "--flagstat", "--idxstats":
        p = run(["sort", option, "/dev/full", "-o", "out.bam", inputs / "one.bam"], cwd=tmp_path)
        assert p.returncode == 1 and "/dev/full" in p.stderr and "No space left" in p.stderr and not seen(tmp_path)
    (tmp_path / "x.bam").write_bytes(bamgen.bgzf(bamgen.header() + bamgen.record("r", 0, 0, 5, seq="ACGT", tags=b"RGZa\0")))
    before = seen(tmp_path)
    with open("/dev/full", "wb") as full:
        for words in ["x.bam"], ["-S", "RG", "x.bam"]:
            p = subprocess.run([BINARY, "stats", *words], cwd=tmp_path, stdout=full, stderr=subprocess.PIPE, env=clean_env())
            assert p.returncode == 1 and b"No space left" in p.stderr and seen(tmp_path) == before


def test_check_ignores_them(inputs, tmp_path):
    refused(tmp_path, "--check writes nothing", "sort", "--check", "--flagstat=f", inputs / "one.bam")


def test_fault_of_a_record_is_counted(tmp_path):
    """samtools stats refuses a mapped read without CIGAR."""
    recs = [bamgen.record("r%d" % i, 0, 0, 10 + i, seq="ACGT", cigar=[(4, "M")] if i != 700 else []) for i in range(900)]
    (tmp_path / "in.bam").write_bytes(bamgen.bgzf(bamgen.header() + b"".join(recs)))
    assert theirs("stats", tmp_path / "in.bam") is None
    for command in ["stats", "-@", "2", "in.bam"], ["sort", "-@", "2", "--stats", "s", "-o", "out.bam", "in.bam"]:
        assert "record 701" in refused(tmp_path, "has no CIGAR", *command)


STATS_ARGS = [None, "-p -F 0x400", "-c 1,50,7 -x", "-q 20 -i 300 -m 0.9", "-I 'no such group'", "-t in.regions"]


@pytest.mark.parametrize("out", FORMATS[:3])
@pytest.mark.parametrize("command", ["sort", "merge", "markdup", "sormadup"])
def test_stats_are_not_those_of_the_output(inputs, tmp_path, command, out):
    (tmp_path / "in.regions").write_text("%s 1 400\n%s 300 900\n" % (FASTA_REFS[0][0], FASTA_REFS[2][0]))
    for k, words in enumerate(STATS_ARGS):
        if (k + FORMATS.index(out) + len(command)) % 2 and words != STATS_ARGS[-1]:
            continue
        more = ["--stats-args", words] if words else []
        p = run([command, "-@", 1 + k, "--stats=s.txt", *more, *words_of(command, inputs, out)], cwd=tmp_path)
        assert p.returncode == 0, p.stderr
        with pysam_in(tmp_path):
            expected = theirs("stats", *shlex.split(words or ""), out)
        assert (tmp_path / "s.txt").read_text().split("\n", 1)[1] == expected.split("\n", 1)[1]
        (tmp_path / out).unlink()


def test_options_of_stats_that_a_pass_cannot_serve_are_ignored(inputs, tmp_path):
    (tmp_path / "in.regions").write_text("a 1 400\n")
    for words, told in [("-S R", "two letters"), ("-X", "no option -X"), ("out.bam", "are not options"), ("-Z", "no option -Z"), ("-@ 2", "no option -@"),
                        ("'-F 4", "quote is not closed"), ("-f nonsense", "nonsense"), ("-q", "requires an argument")]:
        refused(tmp_path, told, "sort", "--stats=s", "--stats-args", words, "-o", "o.bam", inputs / "one.bam")
    refused(tmp_path, "-t needs coordinate order", "sort", "-n", "--stats=s", "--stats-args", "-t in.regions", "-o", "o.bam", inputs / "one.bam")
    refused(tmp_path, "are not options", "sort", "--stats=s", "--stats-args", "more", "-o", "-q5", inputs / "one.bam")
    refused(tmp_path, "--stats-args needs --stats", "sort", "--stats-args", "-p", "-o", "o.bam", inputs / "one.bam")
    refused(tmp_path, "also names it elsewhere", "sort", "--stats=in.regions", "--stats-args", "-t in.regions", "-o", "o.bam",
            inputs / "one.bam")


def test_output_that_is_named_like_an_option(inputs, tmp_path):
    p = run(["sort", "-o", "-q5", "--stats=s.txt", inputs / "one.bam"], cwd=tmp_path)
    assert p.returncode == 0, p.stderr
    (tmp_path / "-q5").rename(tmp_path / "out.bam")
    with pysam_in(tmp_path):
        assert (tmp_path / "s.txt").read_text().split("\n", 3)[3] == theirs("stats", "out.bam").split("\n", 3)[3]


# ------------------------------------------------------------------- the command


@pytest.mark.parametrize("words", [["in.bam"], ["-@", "2", "in.bam", "a:100-400"], ["in.bam", "c:10", "b", "none"], ["-@", "8", "-p", "in.bam"],
                                   ["-X", "in.bam", "other.bai", "a"], ["-X", "in.bam", "nothing"], ["-t", "in.regions", "-@", "2", "in.bam"],
                                   ["-g", "3", "in.bam", "a:1-900"], ["in.sam"], ["-@", "2", "in.cram"], ["in.bam", "none"], ["-h"], ["-Z", "in.bam"],
                                   ["-t", "in.regions", "named.bam"]], ids=" ".join)
def test_stats_of_a_file_or_of_regions(inputs, tmp_path, words):
    (tmp_path / "in.regions").write_text("a 1 400\nc 300 900\n")
    for name in "in.bam", "in.sam", "in.cram":
        assert run(["sort", "--no-PG", "--output-fmt-option", "no_ref=1", "-o", tmp_path / name, inputs / "named.bam"]
                   if name == "in.cram" else ["sort", "--no-PG", "-o", tmp_path / name, inputs / "named.bam"]).returncode == 0
    (tmp_path / "named.bam").write_bytes((inputs / "named.bam").read_bytes())
    pysam.index(str(tmp_path / "in.bam"))
    pysam.index(str(tmp_path / "in.bam"), str(tmp_path / "other.bai"))
    with pysam_in(tmp_path):
        expected = theirs("stats", *words)
    p = run(["stats", *words], cwd=tmp_path)
    if expected is None:
        assert p.returncode == 1
    else:
        assert p.returncode == 0, p.stderr
        assert p.stdout.decode().split("\n", 1)[1] == expected.split("\n", 1)[1]


@pytest.mark.parametrize("regions", [["a"], ["a", "a"], ["a:500", "a:900-3000"], ["a:900-3000", "a:990"], ["a:1001"], ["a:1-1000"]],
                         ids=" ".join)
def test_reads_beyond_the_end_of_their_reference_are_cut(tmp_path, regions):
    """A region without an end has them, whole. But its bases are those of the reference."""
    recs = [bamgen.record("r%d" % i, 0, 0, pos, seq="ACGTACGTAC" * 5, cigar=[(50, "M")]) for i, pos in enumerate((10, 600, 980, 995, 1010))]
    (tmp_path / "in.bam").write_bytes(bamgen.bgzf(bamgen.header(bamgen.sq_text([("a", 1000)]), [("a", 1000)]) + b"".join(recs)))
    pysam.index(str(tmp_path / "in.bam"))
    for more in [], ["--ref-stats"]:
        with pysam_in(tmp_path):
            expected = theirs("stats", *more, "in.bam", *regions)
        p = run(["stats", *more, "in.bam", *regions], cwd=tmp_path)
        assert p.returncode == 0 and p.stdout.decode().split("\n", 1)[1] == expected.split("\n", 1)[1], p.stderr


def test_values_of_a_tag_are_not_those_of_the_output(inputs, tmp_path):
    """-S of stats during a sort: the files are named after the output, and none is left by a sort that fails."""
    recs = [bamgen.record("r%d" % i, 0, 0, 900 - i, seq="ACGT", tags=b"RGZg%d\0" % (i % 3)) for i in range(600)]
    (tmp_path / "in.bam").write_bytes(bamgen.bgzf(bamgen.header() + b"".join(recs)))
    names = ["out.bam_g%d.bamstat" % i for i in range(3)]
    refused(tmp_path, "none/x_g", "sort", "--stats=s", "--stats-args", "-S RG -P none/x", "-o", "out.bam", "in.bam")
    p = run(["sort", "-@", 2, "--stats=s", "--stats-args", "-S RG", "-o", "out.bam", "in.bam"], cwd=tmp_path)
    assert p.returncode == 0, p.stderr
    ours = [(tmp_path / name).read_text().split("\n", 1)[1] for name in names]
    with pysam_in(tmp_path):
        theirs("stats", "-S", "RG", "out.bam")
    assert ours == [(tmp_path / name).read_text().split("\n", 1)[1] for name in names]
    assert sorted(x.name for x in tmp_path.iterdir()) == sorted(["in.bam", "out.bam", "s", *names])


def test_report_has_the_main_numbers(inputs, tmp_path):
    """The numbers of stats, or of flagstat, in the report of a sort and of the command itself."""
    def numbers(*words):
        p = run([*words[:1], "--report=r.json", *words[1:]], cwd=tmp_path)
        assert p.returncode == 0, p.stderr
        text = (tmp_path / "r.json").read_text()
        r = json.loads(text)
        return p, r, [r["counted_" + key] for key in ("by", "reads", "mapped", "duplicates")]

    p, r, counted = numbers("stats", "-@", "1", inputs / "one.bam")
    said = dict(line.split("\t")[1:3] for line in p.stdout.decode().split("\n") if line.startswith("SN"))
    assert counted == ["stats", *(int(said[key]) for key in ("sequences:", "reads mapped:", "reads duplicated:"))]
    assert "%.1f" % r["mean_insert_size"] == said["insert size average:"] and r["records"] == 6000
    assert abs(r["error_rate"] - float(said["error rate:"])) < 1e-6
    assert numbers("sort", "--stats=s", "--flagstat=f", "-o", "o.bam", inputs / "named.bam")[2] == counted
    p, r, counted = numbers("flagstat", inputs / "one.bam")
    assert counted[:2] == ["flagstat", 6000] and r["error_rate"] is None
    p, r, _ = numbers("sort", "--idxstats=i", "--flagstat=f", "-o", "o.bam", inputs / "named.bam")
    assert r["counted_by"] == "flagstat" and r["counted_mapped"] == counted[2]
    for name, words in ("r.txt", "% duplicates, mean insert size"), ("r.html", "% duplicates, mean insert size"):
        assert run(["sort", "--report=" + name, "--stats=s", "-o", "o.bam", inputs / "named.bam"], cwd=tmp_path).returncode == 0
        assert words in (tmp_path / name).read_text()


@pytest.mark.parametrize("words", [["-p"], ["-S", "RG", "--GC-depth", "200"], ["-c", "1,60000,1"]], ids=" ".join)
def test_memory_of_stats_is_not_what_was_promised(tmp_path, words):
    """The plan includes the counters' memory: less than that is refused, and no more is used."""
    recs = [bamgen.record("r%d" % i, 99, i % 40, i // 40 * 30, seq="ACGTACGTAC" * 15, tlen=100, tags=b"RGZg%d\0" % (i % 20)) for i in range(40000)]
    refs = [("s%d" % i, 100000) for i in range(40)]
    recs.sort(key=lambda rec: (rec[4:8], int.from_bytes(rec[8:12], "little")))
    text = "@HD\tVN:1.6\n" + bamgen.sq_text(refs) + "".join("@RG\tID:g%d\n" % i for i in range(20))
    (tmp_path / "in.bam").write_bytes(bamgen.bgzf(bamgen.header(text, refs) + b"".join(recs)))
    expected = run(["stats", *words, "in.bam"], cwd=tmp_path).stdout.split(b"\n", 3)[3]
    for n in 0, 8:
        p = run(["stats", "-@", n, "--total-memory", "24M", *words, "in.bam"], cwd=tmp_path)
        refuses = re.search(r"with \d+ thread.* (\d+)M is enough", p.stderr)
        assert p.returncode == 0 or refuses, p.stderr
        enough = refuses[1] if refuses else "24"
        p = run(["stats", "-@", n, "--total-memory", enough + "M", "--report=r.json", *words, "in.bam"], cwd=tmp_path)
        assert p.returncode == 0 and p.stdout.split(b"\n", 3)[3] == expected, p.stderr
        if not SANITIZED:
            assert json.loads((tmp_path / "r.json").read_text())["peak_rss_bytes"] <= int(enough) << 20, (words, n)
