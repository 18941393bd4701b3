# SPDX-License-Identifier: MIT
"""Messages on standard error: they name the program, and the error comes last."""

import re

import pytest

from conftest import HTSLIB_LEAKS, SOURCES, run_sort

# Text that is not a message of the sort: of another command, samtools' own words, a line that is painted over.
EXEMPT = [
    ("upstream.c", "samtools: "), ("samtools.c", "samtools: "),     # for all commands but sort
    ("sorted.c", "[bam_sort_core] merging from "),   # samtools' only normal line, verbatim
    ("minhash.c", "Building index ... "), ("minhash.c", "done"), ("minhash.c", "failed"),
    ("progress.c", ""),                              # tested in unit_progress.c
    ("samtools_mpi.c", "usage: "),
    ("report_command.c", ""),                        # its usage; its messages are tested in test_report.py
]


def spoken():
    """Yields (file name, text) for each text that the program's sources write to standard error."""
    for path in SOURCES:
        text = path.read_text()
        for call in re.finditer(r"\bf(?:printf|puts)\((?:stderr,\s*([^;]*)|([^;]*),\s*stderr)\)", text):
            yield path.name, (call.group(1) or call.group(2)).strip()
        assert not re.search(r"\b(perror|hts_log\w*|warnx?|errx?)\(", text), "%s speaks in other ways" % path.name


def test_a_source_speaks_under_another_prefix():
    found = list(spoken())
    assert found
    for name, text in found:
        literal = re.match(r'"((?:[^"\\]|\\.)*)', text)
        fine = name == "message.c" or (literal and literal.group(1).startswith(("samtools sort: ", "bgzip: ")))
        exempt = any(name == file and (literal.group(1) if literal else "").startswith(words) for file, words in EXEMPT)
        assert fine or exempt, (name, text)


MISTAKES = [["--foo"], ["-Z"], ["-nZ"], ["-m"], ["--threads"], ["-m", "1k"], ["-m", "3x"], ["-m", "x"], ["-@", "x"], ["-l", "x"],
            ["-K", "x"], ["-O", "vcf"], ["-O", "bam,foo=1"], ["-O", "cram,no_ref=1,embed_ref"],
            ["-O", "cram,embed_ref=1", "--output-fmt-option", "no_ref"], ["--input-fmt-option", "foo"], ["--output-fmt-option", "foo"],
            ["--no-PG=1"], ["--output", "bam"], ["a.bam", "b.bam"], ["--write-index=x", "-o", "o.bam"], ["--write-index"],
            ["--write-index", "-O", "sam", "-o", "o"], ["--total-memory", "0"], ["--size-hint", "x"], ["--verbosity", "x"],
            ["--tmpdir-env"], ["--add-input", "-"], ["--check", "--add-input", "x"], ["--check", "--report"]]


@pytest.mark.parametrize("args", MISTAKES, ids=" ".join)
def test_a_mistake_is_buried_under_the_usage(tmp_path, args):
    p = run_sort(args, cwd=tmp_path, env={"TMPDIR": ""})
    lines = p.stderr.splitlines()
    assert p.returncode == 1 and p.stdout == b""
    assert re.fullmatch(r"samtools sort: .*\. See samtools sort --help", lines[-1]), p.stderr
    assert all(line.startswith("[E::") for line in lines[:-1]), p.stderr   # messages of htslib
    assert not list(tmp_path.iterdir())


FAILURES = [["missing.bam"], ["."], ["empty"], ["junk"], ["-o", "no/where.bam", "empty"], ["--reference", "missing.fa", "-O", "cram"],
            ["-M", "-I", "missing.fa", "ok.sam"], ["-M", "-I", "junk", "ok.sam"], ["-o", "ok.sam", "--checksum=ok.sam", "junk"],
            ["--check", "-n", "ok.sam"], ["--check", "junk"], ["--template-coordinate", "ok.sam"]]
SAM = "@SQ\tSN:r\tLN:99\nb\t1\tr\t5\t30\t1M\t=\t1\t0\tA\tI\na\t1\tr\t2\t30\t1M\t=\t1\t0\tA\tI\n"


@pytest.mark.parametrize("args", FAILURES, ids=" ".join)
def test_a_failure_does_not_say_who_failed(tmp_path, args):
    for name, text in (("empty", ""), ("junk", "what?\n"), ("ok.sam", SAM)):
        (tmp_path / name).write_text(text)
    p = run_sort(args, cwd=tmp_path, env=HTSLIB_LEAKS)
    assert p.returncode == 1
    lines = p.stderr.splitlines()
    assert re.fullmatch(r"samtools sort: (?!warning).*\.", lines[-1]), p.stderr
    assert all(re.match(r"samtools sort: |\[[EW]::|Building index \.\.\. ", line) for line in lines), p.stderr


def test_a_warning_is_not_known_for_one(tmp_path):
    (tmp_path / "ok.sam").write_text(SAM)
    for args in (["-n", "--write-index", "-o", "out.bam"], ["-t", "1"]):
        p = run_sort([*args, "ok.sam"], cwd=tmp_path)
        assert p.returncode == 0 and p.stderr.startswith("samtools sort: warning: "), p.stderr
        assert run_sort([*args, "--verbosity", "2", "ok.sam"], cwd=tmp_path).stderr == ""
