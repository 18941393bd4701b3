# SPDX-License-Identifier: MIT
"""README's table of numbers is made by one program; pages keep to 120 columns and name only things that exist."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from conftest import BINARY, HANG, REPO, clean_env, htslib_version  # noqa: F401

pytestmark = pytest.mark.release

README = REPO / "README.md"
PAGES = sorted(path for folder in (".", ".github", "doc", "doc/dev", "bench", "packaging") for path in (REPO / folder).glob("*.md"))


def test_number_of_the_readme_stands_beside_its_table():
    """The seconds are from one run of bench/readme_table.py, between its markers."""
    text = README.read_text()
    before, rest = text.split("<!-- numbers: bench/readme_table.py -->\n")
    table, after = rest.split("<!-- end of numbers -->\n")
    assert "faster |" in table and re.search(r"on \d{4}-\d\d-\d\d", table)
    assert not re.search(r"\b20\d\d-\d\d-\d\d\b", before + after), "another day"
    assert not re.search(r"samtools 1\.(?!24\b)\d", text), "another samtools"
    assert not re.search(r"\d\.\d+ s\b.*samtools", before + after), "seconds of another run"


def test_table_of_the_readme_cannot_be_made(tmp_path):
    samtools = next((path for path in ("/usr/bin/samtools", "/usr/local/bin/samtools") if os.path.exists(path)), None)
    if not samtools or not (REPO / "build" / "gen_bam").exists() or not (REPO / "samtools").exists():
        pytest.skip("no other samtools, or nothing is built in build/")
    readme, plot = tmp_path / "README.md", tmp_path / "speed.svg"
    shutil.copy(README, readme)
    subprocess.run([sys.executable, REPO / "bench" / "readme_table.py", "--size", "1M", "--runs", "1", "--dir", tmp_path / "work",
                    "--readme", readme, "--svg", plot], env=clean_env(SAMTOOLS_124=samtools), check=True, capture_output=True, timeout=10 * HANG)
    old, new = README.read_text(), readme.read_text()
    assert new.split("<!-- numbers")[0] == old.split("<!-- numbers")[0] and new.split("end of numbers")[1] == old.split("end of numbers")[1]
    version = subprocess.run([REPO / "samtools", "--version"], capture_output=True, text=True, timeout=HANG).stdout
    commit = re.search(r"omp \S+-dev\.(\S+)", version)
    assert not commit or "at commit %s. " % commit.group(1) in " ".join(new.split()), "the commit is not that of the program"
    rows = [line for line in new.split("<!-- numbers")[1].split("end of numbers")[0].splitlines() if line.startswith("|")]
    assert len(rows) == 2 + 11 and len({row.count("|") for row in rows}) == 1
    seconds = re.findall(r"(\d+\.\d\d) s</text>", plot.read_text())
    assert len(seconds) >= 2 * 2


def test_pages_are_longer_than_people_read():
    """Words of README, of the page on clusters, and of all pages and manuals; bytes of the page on design."""
    def words(*paths):
        return sum(len(path.read_text().split()) for path in paths)

    assert words(README) <= 1100 and words(REPO / "doc" / "hpc.md") <= 900
    assert words(*PAGES, *(REPO / "doc").glob("*.[15]"), REPO / "codec" / "README.md", REPO / "test" / "data" / "README.md") <= 28000
    assert (REPO / "doc" / "design.md").stat().st_size <= 12 * 1024


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(REPO)))
def test_link_of_a_page_leads_nowhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)", page.read_text()):
        assert re.match(r"https?:", target) or (page.parent / target).exists(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(REPO)))
def test_line_of_a_page_is_longer_than_120_columns(page):
    """Rows of tables may be longer, because they cannot be broken."""
    lines = page.read_text().splitlines()
    assert [n for n, line in enumerate(lines, 1) if len(line) > 120 and not line.lstrip().startswith("|")] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda path: str(path.relative_to(REPO)))
def test_command_of_a_page_names_what_is_not_there(page):
    """Targets of make, commands of bootstrap.sh, scripts and their options, in lines of code and between backquotes."""
    text = page.read_text()
    code = "\n".join([*re.findall(r"^    (.*)", text, re.M), *re.findall(r"`([^`\n]+)`", text)])
    rules = "\n".join((REPO / name).read_text() for name in ("Makefile", "bootstrap.sh"))
    for target in re.findall(r"(?<![\w/-])make (?:-C \S+ )?([a-z][a-z-]+)\b(?!/|=)", code):
        assert re.search(r"^[a-z -]*\b%s\b[a-z -]*:" % target, rules, re.M), target
    for command in re.findall(r"bootstrap\.sh ([a-z-]+)", code):
        assert re.search(r"^%s\|?.*\)" % command, rules, re.M), command
    for script, options in re.findall(r"(?:^|(?<=[ `]))((?:bench|test|packaging)/[\w/]+\.(?:py|sh))\b([^\n#|]*)", code):
        for option in re.findall(r" (--[a-z-]+)", options):
            assert '"%s"' % option in (REPO / script).read_text(), (script, option)


@pytest.mark.parametrize("command", ["sort", "collate", "merge", "fixmate", "markdup", "sormadup", "stats", "flagstat", "idxstats", "coverage", "bgzip"])
def test_help_names_an_option_that_the_manual_lacks(command):
    """Some help texts show options of other commands, too: those of the steps of sormadup, and of stats."""
    words = [command, "--help"] if command == "bgzip" else ["help", command]
    text = subprocess.run([BINARY, *words], capture_output=True, check=True, text=True, env=clean_env()).stdout
    page = {"flagstat": "samtools-omp-stats", "idxstats": "samtools-omp-stats", "coverage": "samtools-omp-stats", "bgzip": "bgzip-omp"}.get(command, "samtools-omp-" + command)
    manual = (REPO / "doc" / (page + ".1")).read_text().replace("\\-", "-")
    text = text.split("Steps\n")[1] if command == "sormadup" else text
    options = set(re.findall(r"--[a-zA-Z][a-zA-Z-]+|(?<=\s)-[a-zA-Z@1]\b|-@", text)) - {"--help", "-h"}
    options -= set("-r -p -c -M -z -s -f".split() if command == "sormadup" else ["-F"] if command == "sort" else [])
    assert len(options) > (20 if command not in ("flagstat", "idxstats") else 3)
    assert [option for option in sorted(options) if not re.search(re.escape(option) + r"(?![a-zA-Z-])", manual)] == []
