# SPDX-License-Identifier: MIT
"""The messages of the demo on machines with another samtools, without one, and with a wrong one. The other one is a
script: the demo must not rely on anything that it has not checked."""

import os
import pathlib
import re
import shutil
import subprocess

import pytest

from conftest import BINARY, HANG, REPO, clean_env, script

pytestmark = pytest.mark.release

BUILD = pathlib.Path(BINARY).resolve().parent
TOOLS = ("gen_bam", "check_sorted", "timed")
NEEDED = "sh awk cat cksum cut dirname grep head id mkdir nproc paste rm sed sort tail tr wc apt-get".split()
RULE = "=" * 69


def samtools(path, sort='exec %s "$@"' % BINARY):
    """Another samtools that sorts in this way."""
    return script(path, """case $1 in
--version) echo "samtools 9.8.7"; echo "Using htslib 9.8" ;;
sort) %s ;;
*) echo "$@ was handed on" ;;
esac
""" % sort)


@pytest.fixture
def demo(tmp_path):
    """demo(FOLDER...): the messages of the demo if PATH is these folders and some without samtools."""
    build = tmp_path / "build"
    build.mkdir()
    for tool in TOOLS:
        if not (BUILD / tool).exists():
            pytest.skip("no %s: make tools" % tool)
        (build / tool).symlink_to(BUILD / tool)
    (build / "samtools").symlink_to(BINARY)
    (tmp_path / "system").mkdir()
    for name in NEEDED:
        if found := shutil.which(name):
            (tmp_path / "system" / name).symlink_to(found)

    def run(*folders, status=0, rounds="1", **env):
        path = ":".join(map(str, [*folders, tmp_path / "system"]))
        p = subprocess.run(["sh", str(REPO / "bench" / "demo.sh"), str(build), str(tmp_path / "demo")], text=True,
                           env=clean_env(PATH=path, DEMO_SIZE="2M", DEMO_ROUNDS=rounds, **env), capture_output=True,
                           timeout=HANG)
        assert p.returncode == status, p.stdout + p.stderr
        return p.stdout + p.stderr
    return run


def block(said):
    """The result."""
    assert said.count(RULE) == 2, said
    lines = said.split(RULE)[1].strip("\n").splitlines()
    assert len(lines) <= 8 and all(len(line) < 100 for line in lines), lines
    assert said.index(RULE) < said.index("== Details")
    return lines


def next_commands(said, tmp_path, *folders):
    """The commands of the last lines, run unchanged."""
    lines = [line.split("#")[0].strip() for line in said.split("== Next\n")[1].splitlines()]
    path = ":".join(map(str, [*folders, tmp_path / "system"]))
    for line in lines:
        if re.search("make install|--env|bootstrap.sh check", line):      # test_install.py
            continue
        p = subprocess.run(line.split(), cwd=REPO, env=clean_env(PATH=path), capture_output=True, text=True, timeout=HANG)
        assert p.returncode == 0, (line, p.stderr)
    return lines


def test_result_is_not_the_first_thing_or_compares_with_nothing(demo, tmp_path):
    samtools(tmp_path / "bin" / "samtools")
    said = demo(tmp_path / "bin", rounds="3")
    lines = block(said)
    assert re.fullmatch(r"  \d+\.\d x faster than samtools 9\.8\.7: the same records in the same order", lines[0])
    assert re.match(r"  samtools-omp [\d.]+ +\d+\.\d\d +\d+\.\d\d +\d+ +\d+\.\d$", lines[3])
    assert re.match(r"  samtools 9\.8\.7 +\d+\.\d\d +\d+\.\d\d +\d+ +\d+\.\d$", lines[4])
    assert len(re.findall(r"in\.bam \(\d+\.\d+ to \d+\.\d+ s\)", said)) == 2
    assert said.count(" yes (") == 4
    assert (tmp_path / "demo" / "report.html").read_text().startswith("<!doctype html>")
    assert str(tmp_path / "demo" / "report.html") in said
    assert any("view -c" in line for line in next_commands(said, tmp_path, tmp_path / "bin"))
    assert not list((tmp_path / "demo").glob("other.bam"))


def test_machine_without_samtools_is_told_of_commands_that_need_one(demo, tmp_path):
    said = demo()
    lines = block(said)
    assert re.fullmatch(r"  \d+ records sorted in [\d.]+ seconds, \d+ MB/s of uncompressed data: all there, in order", lines[0])
    assert re.fullmatch(r"  \(no samtools on PATH to compare with: .*install.*\)", lines[4])
    commands = next_commands(said, tmp_path)
    assert commands[0].startswith(str(tmp_path / "build" / "samtools") + " sort ")
    assert not re.search(r"samtools view|view -c|x faster", said)


def test_installed_copy_of_ours_is_compared_with_itself(demo, tmp_path):
    (tmp_path / "ours").mkdir()
    shutil.copy(BINARY, tmp_path / "ours" / "samtools")
    assert "no samtools on PATH" in demo(tmp_path / "ours")
    samtools(tmp_path / "theirs" / "samtools")
    said = demo(tmp_path / "ours", tmp_path / "theirs")
    assert "x faster than samtools 9.8.7" in said
    assert "handed on" not in said and "runs %s" % (tmp_path / "theirs" / "samtools") in said
    next_commands(said, tmp_path, tmp_path / "ours", tmp_path / "theirs")


def test_samtools_upstream_is_not_the_one_compared_with(demo, tmp_path):
    chosen = samtools(tmp_path / "elsewhere" / "chosen")
    assert "in turn with %s" % chosen in demo(SAMTOOLS_UPSTREAM=str(chosen))
    assert "is not another samtools that runs" in demo(SAMTOOLS_UPSTREAM=str(tmp_path / "none"), status=1)


@pytest.mark.parametrize("sort,said", [
    ('%s "$@" -n', r"other records: (\d+) of \1, unsorted"),
    ('%s "$@" --add-input test/data/NA12878.chr22.small.bam', r"other records: \d+ of \d+, sorted"),
    ('for output; do [ "$last" = -o ] && break; last=$output; done; %s "$@" -n && %s sort -o "$output.2" "$output" && '
     'cat "$output.2" >"$output"', "the same records, those of one position in another order"),
], ids=["order", "records", "ties"])
def test_output_that_differs_is_called_the_same(demo, tmp_path, sort, said):
    samtools(tmp_path / "bin" / "samtools", sort.replace("%s", BINARY))
    assert re.search("x faster than samtools 9.8.7: " + said, block(demo(tmp_path / "bin"))[0])


def test_samtools_that_fails_ends_the_demo(demo, tmp_path):
    samtools(tmp_path / "bin" / "samtools", "echo no such thing >&2; exit 1")
    said = demo(tmp_path / "bin")
    assert "samtools could not sort it: no such thing" in said and "x faster" not in said
    next_commands(said, tmp_path)


def test_busy_machine_is_not_told(demo, tmp_path):
    busy = "other programs on these CPUs"
    assert busy in (REPO / "report" / "report_advice.c").read_text()
    (tmp_path / "build" / "samtools").unlink()
    script(tmp_path / "build" / "samtools", """%s "$@" || exit
for a; do case $a in --report=*) echo "%s" >>"${a#*=}" ;; esac; done
""" % (BINARY, busy))
    samtools(tmp_path / "bin" / "samtools")
    assert busy in block(demo(tmp_path / "bin"))[-1]


def test_wrong_result_of_ours_is_shown_as_a_success(demo, tmp_path):
    (tmp_path / "build" / "samtools").unlink()
    script(tmp_path / "build" / "samtools", '[ "$1" = --version ] && exec %s --version; exec %s "$@" -n' % (BINARY, BINARY))
    said = demo(status=1)
    assert "NO: unsorted, not sorted" in said and "demo: the result is wrong" in said and RULE not in said


@pytest.mark.parametrize("shell", ["dash", "busybox sh", "bash --posix", "ksh", "zsh --emulate sh"])
def test_scripts_are_not_plain_sh(shell):
    program = shutil.which(shell.split()[0])
    if not program:
        pytest.skip("no %s here" % shell.split()[0])
    for name in ("bootstrap.sh", "bench/demo.sh"):
        subprocess.run([program, *shell.split()[1:], "-n", str(REPO / name)], check=True, timeout=HANG)
    p = subprocess.run([program, *shell.split()[1:], str(REPO / "bootstrap.sh"), "help"], capture_output=True, text=True,
                       timeout=HANG, env={**os.environ})
    assert p.returncode == 0 and "demo" in p.stdout
