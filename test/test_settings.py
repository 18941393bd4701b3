# SPDX-License-Identifier: MIT
"""SAMTOOLS_OMP_*: settings in the environment for everything that the command line leaves open. test_spill.py tests
the places of temporary files."""

import json
import os
import re

import pytest

from conftest import REPO, run_sort, sorted_bytes
from test_safety import refused, snapshot

MIB = 1 << 20
MEMORY, TMPDIR, REPORT = "SAMTOOLS_OMP_TOTAL_MEMORY", "SAMTOOLS_OMP_TMPDIR", "SAMTOOLS_OMP_REPORT"
BESIDE = 64    # MiB that the process may take in addition to the memory of -m
NAME = re.compile(r"\d{8}T\d{6}Z-(.+)-\d+\.(json|html)")


def reported(folder):
    """Its reports: output's name and format, sorted."""
    return sorted(NAME.fullmatch(n).groups() for n in os.listdir(folder))


def told(path):
    return json.loads(path.read_text())


# ---------------------------------------------------------------- memory


@pytest.mark.parametrize("args,value,expected", [
    ([], "32M", 32 * MIB), ([], "1.5G", 1536 * MIB), (["-@", "3"], "52M", 52 * MIB), ([], "", (768 + BESIDE) * MIB),
    (["-@", "2"], "", (1536 + BESIDE) * MIB), (["-m", "5M", "-@", "2"], "52M", (10 + BESIDE) * MIB),
    (["--total-memory", "37M"], "52M", 37 * MIB), (["-m", "5M"], "bad, but not asked", (5 + BESIDE) * MIB)])
def test_memory_setting_is_ignored_or_beats_an_option(made, tmp_path, args, value, expected):
    p = run_sort([*args, "--report=r.json", "-o", "o.bam", made("ties")], cwd=tmp_path, env={MEMORY: value})
    assert (p.returncode, p.stderr) == (0, "")
    assert told(tmp_path / "r.json")["memory_bytes"] == expected


def test_memory_setting_takes_no_share(made, tmp_path):
    for i, args in enumerate((["--total-memory", "50%"], [])):
        env = {} if args else {MEMORY: "50%"}
        run_sort([*args, "--report=%d.json" % i, "-o", "o.bam", made("ties")], cwd=tmp_path, env=env)
    assert told(tmp_path / "0.json")["memory_bytes"] == told(tmp_path / "1.json")["memory_bytes"] > 0


@pytest.mark.parametrize("name,value", [
    (MEMORY, "x"), (MEMORY, "0"), (MEMORY, "1000"), (MEMORY, "101%"), (MEMORY, "-5%"), (MEMORY, " "),
    (TMPDIR, "nowhere"), (TMPDIR, ".:nowhere"), (TMPDIR, "out.bam"), (TMPDIR, ":"), (TMPDIR, ".:"), (TMPDIR, "./x")])
def test_bad_setting_is_taken_or_not_named(desk, name, value):
    """The input does not exist either: it was not opened."""
    refused(desk, ["-o", "out.bam", "none.bam"], name, env={name: value})


@pytest.mark.parametrize("args", [["-T", "."], ["--tmpdir-env"]], ids=" ".join)
def test_bad_setting_beats_an_option_for_temporary_files(made, desk, args):
    p = run_sort([*args, "-o", "out.bam", made("ties")], cwd=desk, env={TMPDIR: "nowhere", "TMPDIR": "."})
    assert (p.returncode, p.stderr) == (0, "")


def test_output_depends_on_a_setting(made, tmp_path):
    plain = sorted_bytes(["--no-PG", made("mixed")])
    assert plain == sorted_bytes(["--no-PG", made("mixed")], env={MEMORY: "39M", TMPDIR: str(tmp_path), REPORT: str(tmp_path)})


# ---------------------------------------------------------------- reports


def test_sort_leaves_no_report_in_the_folder(made, tmp_path):
    folder = tmp_path / "reports"
    folder.mkdir()
    for args, out in ((["-o", "o.bam"], None), (["-o", "sub/%s x.bam" % ("long" * 50)], None), (["-O", "sam"], b"@HD")):
        (tmp_path / "sub").mkdir(exist_ok=True)
        p = run_sort([*args, made("ties")], cwd=tmp_path, env={REPORT: "reports"})
        assert (p.returncode, p.stderr) == (0, "")
        assert out is None or p.stdout.startswith(out)
    names = ["long" * 25, "o.bam", "stdout"]
    assert reported(folder) == [(n, kind) for n in names for kind in ("html", "json")]
    for path in folder.iterdir():
        if path.suffix == ".json":
            r = told(path)
            assert r["records"] > 0 and r["wall_s"] > 0 and r["input"] == str(made("ties"))
        else:
            assert path.read_text().rstrip().endswith("</html>")


def test_report_of_the_folder_has_no_picture_of_threads(made, tmp_path):
    """The page shows times of threads, which are only kept on request."""
    (tmp_path / "r").mkdir()
    assert run_sort(["-o", "o.bam", made("mixed")], cwd=tmp_path, env={REPORT: "r"}).returncode == 0
    page, = (tmp_path / "r").glob("*.html")
    assert '<path fill="' in page.read_text()


AHEAD = 300
# Statements for launch(): reports of all coming seconds under the number that the process keeps when it becomes the
# program.
REPORTS_AHEAD = """
import time
now = time.time()
for second in range(%d):
    for kind in "json", "html":
        stem = time.strftime("r/%%Y%%m%%dT%%H%%M%%SZ-o.bam-", time.gmtime(now + second))
        with open("%%s%%d.%%s" %% (stem, os.getpid(), kind), "w") as f:
            f.write("old")
""" % AHEAD


def test_report_overwrites_what_is_there(made, tmp_path):
    (tmp_path / "r").mkdir()
    p = run_sort(["-o", "o.bam", made("ties")], cwd=tmp_path, env={REPORT: "r"}, before=REPORTS_AHEAD)
    assert (p.returncode, p.stderr) == (0, "")
    texts = [f.read_text() for f in (tmp_path / "r").iterdir()]
    assert texts.count("old") == 2 * AHEAD and len(texts) == 2 * AHEAD + 2
    assert len(list((tmp_path / "r").glob("*-2.json"))) == len(list((tmp_path / "r").glob("*-2.html"))) == 1


@pytest.mark.parametrize("args", [["--report=r.json"], ["--report"], ["--check"]], ids=" ".join)
def test_report_folder_beats_an_option(made, tmp_path, args):
    (tmp_path / "r").mkdir()
    path = tmp_path / "in.bam"
    path.write_bytes(sorted_bytes([made("ties")]))
    assert run_sort([*args, "-o", "o.bam", path], cwd=tmp_path, env={REPORT: "r"}).returncode == 0
    assert os.listdir(tmp_path / "r") == []


def test_failed_sort_leaves_a_report(made, tmp_path):
    (tmp_path / "r").mkdir()
    (tmp_path / "in.bam").write_bytes(made("mixed").read_bytes()[:-200])
    assert run_sort(["-o", "o.bam", "in.bam"], cwd=tmp_path, env={REPORT: "r"}).returncode == 1
    assert os.listdir(tmp_path / "r") == []


@pytest.mark.parametrize("folder", ["nowhere", "file", "/dev/null", "/proc"])
def test_sort_is_lost_for_a_report(made, tmp_path, folder):
    """There is one line for a folder that cannot be written, and none below --verbosity 3."""
    (tmp_path / "file").write_text("old")
    before = snapshot(tmp_path)
    for quiet in ([], ["--verbosity", "2"]):
        p = run_sort([*quiet, "-O", "sam", made("ties")], cwd=tmp_path, env={REPORT: folder})
        assert p.returncode == 0 and p.stdout.startswith(b"@HD")
        assert [line.startswith("samtools sort: warning: ") and folder in line for line in p.stderr.splitlines()] == [True] * (not quiet)
        assert snapshot(tmp_path) == before


# ---------------------------------------------------------------- the manual


@pytest.mark.release
def test_manual_lacks_a_variable():
    """All variables that our sources read."""
    asked = set()
    for path in [*REPO.glob("*.c"), *(p for p in REPO.glob("*/*.c") if p.parent.name not in ("test", "bench"))]:
        asked |= set(re.findall(r'"(SAMTOOLS_(?:OMP_[A-Z_]+|UPSTREAM))"', path.read_text()))
    asked -= {"SAMTOOLS_OMP_VERSION"}
    assert {MEMORY, TMPDIR, REPORT} < asked
    text = (REPO / "doc" / "samtools-omp.1").read_text()
    table = text[text.index(".SH ENVIRONMENT"):text.index(".SH VERSIONS")]
    assert asked <= set(re.findall(r"SAMTOOLS_[A-Z_]+", table))
