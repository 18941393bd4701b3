# SPDX-License-Identifier: MIT
"""Versions as pipelines extract them, and help: with another samtools on PATH, and without one."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from conftest import BINARY, HANG, REPO, clean_env, htslib_version, run_sort, script

VERSION = "1.24"

# The output of another samtools: an older version, which must not be mistaken for ours.
OTHER = """[ "$*" = --version ] && { echo 'samtools 1.9'; echo 'Using htslib 1.9'; exit; }
[ "$1" = help ] && [ $# = 1 ] || { echo "handed on: $*"; exit 7; }
cat <<'END'

Program: samtools (Tools for alignments in the SAM format)
Version: 1.9 (using htslib 1.9)

Usage:   samtools <command> [options]

Commands:
  -- Indexing
     dict           create a sequence dictionary file

  -- Misc
     help [cmd]     display this help message or help for [cmd]
     version        detailed version information

END
"""


def place(tmp_path, other):
    """An environment with our program as `samtools`, and OTHER after it on request, in a folder of that name."""
    first, behind = tmp_path / "first", tmp_path / (other if isinstance(other, str) else "behind")
    for d in (first, behind):
        d.mkdir()
    (first / "samtools").symlink_to(os.path.realpath(BINARY))
    if other:
        script(behind / "samtools", OTHER)
    tools = tmp_path / "tools"                   # all system programs except its samtools
    tools.mkdir()
    for name in ("sh", "bash", "sed", "grep", "head", "awk", "cut", "tr", "echo", "cat", "perl", "expr"):
        if shutil.which(name):
            (tools / name).symlink_to(shutil.which(name))
    return clean_env(PATH="%s:%s:%s" % (first, behind, tools))


@pytest.fixture(params=["alone", "other", "samtools 1.9"])
def env(request, tmp_path):
    return place(tmp_path, request.param if " " in request.param else request.param == "other")


def shell(line, env):
    p = subprocess.run(["bash", "-c", line], env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=HANG)
    return p.stdout.decode()


# These lines are from public pipelines: nf-core, its older modules, BugSeq, iCn3D, Bismark's users, Galaxy, EricScript,
# bwa-meth ...
PLAIN = [
    "echo $(samtools --version 2>&1) | sed 's/^.*samtools //; s/Using.*$//'",
    "samtools --version | head -n1 | sed 's/^samtools //'",
    "samtools --version | head -1 | sed 's/samtools //'",
    "samtools --version|head -n 1 |sed 's/.*samtools //'",
    "samtools --version | head -n 1 | grep samtools | sed 's/samtools //'",
    "samtools --version | head -n 1 | sed -e 's/.* //g'",
    "samtools --version | sed -n 1p | cut -d' ' -f2",
    "samtools --version | head -n 1 | cut -d' ' -f2",
    "samtools --version | awk 'NR==1{print $2}'",
    "samtools --version | awk 'NR==1 {print $NF; exit}'",
    "samtools version | awk '(NR==1) {print $NF;}'",
    "samtools version | sed '1!d;s/.* //'",
    "samtools help version | sed '1!d;s/.* //'",
    "samtools --version | grep samtools | cut -d' ' -f2",
    "samtools --version 2>&1 | grep samtools | cut -d- -f1 | cut -d' ' -f2",
    "samtools --version | grep -oE 'samtools [0-9]+\\.[0-9]+' | awk '{print $2}'",
    "samtools --version | perl -ne 'print $1 if /^samtools (\\S+)/'",
    "samtools --version-only | cut -d '+' -f1",
    "samtools --version-only | sed 's/+htslib.*//'",
    "samtools 2>&1 | grep Version | cut -d ' ' -f 2",
    "samtools 2>&1 | grep '^Version' | awk '{print $2;}'",
    "samtools 2>&1 | grep -i ^Version | sed 's/Version: //; s/ .*//'",
    "samtools 2>&1 | grep -i version | head -1 | awk '{print $2}'",
    "samtools 3>&1 1>&2 2>&3 | grep 'Version:' | cut -d' ' -f2 | tr -d ' '",
    "samtools 2>&1 >/dev/null | sed -n 's/^Version: \\([^ ]*\\).*/\\1/p'",
    "samtools --help | grep Version | cut -d' ' -f2",
    "samtools help 2>&1 | grep Version: | cut -d' ' -f2",
    "python3 -c 'import subprocess; print(subprocess.check_output([\"samtools\", \"--version\"]).decode().split(\"\\n\")[0].split()[1])'",
    "python3 -c 'import re, subprocess; print(re.search(r\"samtools ([\\d.]+)\","
    " subprocess.check_output([\"samtools\", \"--version\"]).decode()).group(1))'",
]


@pytest.mark.parametrize("line", PLAIN)
def test_pipelines_cut_out_something_else_than_the_version(env, line):
    program = line.split("|")[1].split()[0] if "|" in line else "sh"
    if line.startswith("python3"):
        line = sys.executable + line[len("python3"):]
    elif not shutil.which(program):
        pytest.skip("no " + program)
    assert shell(line, env).strip() == VERSION


def test_pipelines_cannot_compare_the_version(env):
    """Digits and dots only: bash reads 24+omp0 as a sum, R's numeric_version() stops at it."""
    line = 'v=$(samtools --version | head -1 | cut -d" " -f2); [ ${v%%.*} -ge 1 ] && [ $(echo $v | cut -d. -f2) -ge 10 ] && echo yes'
    assert shell(line, env) == "yes\n"


def test_forms_of_the_version_contradict_each_other(env):
    texts = {word: shell("samtools %s 2>&1" % word, env) for word in ("--version", "version", "--version-only", "", "--help", "help")}
    assert texts["--version"] == texts["version"] and texts["--help"] == texts["help"] == texts[""]
    htslib = "%d.%d" % htslib_version()
    assert re.fullmatch(r"%s\+htslib-%s\S*\n" % (re.escape(VERSION), re.escape(htslib)), texts["--version-only"])
    assert texts["--version"].startswith("samtools %s\nUsing htslib %s" % (VERSION, htslib))
    assert re.findall(r"(?m)^Version: (\S+) \(using htslib %s" % re.escape(htslib), texts["help"]) == [VERSION]
    assert "samtools sormadup" in texts["help"]         # the list of another samtools lacks it
    ours = re.search(r"^Samtools-omp (\S+) ", texts["--version"], re.M).group(1)
    assert "samtools-omp %s." % ours in texts["help"]


def test_sorted_files_do_not_say_which_program_sorted_them(env, made):
    ours = re.search(r"^Samtools-omp (\S+) ", shell("samtools --version", env), re.M).group(1)
    header = run_sort(["-O", "sam", made("ties")]).stdout.decode()
    assert re.search(r"(?m)^@PG\t.*\tVN:%s\+omp%s\t" % (re.escape(VERSION), re.escape(ours)), header), header


def others(env):
    """The text of --version about other commands. The word in lower case is in the first line only."""
    lines = shell("samtools --version", env).splitlines()
    assert "samtools" not in "\n".join(lines[1:])
    line, = (line for line in lines if line.startswith("Other commands: "))
    return line[len("Other commands: "):]


def test_version_of_other_commands_is_not_told(tmp_path):
    env = place(tmp_path, True)
    assert others(env) == "%s/behind 1.9" % tmp_path
    st = script(tmp_path / "st", "echo 'samtools 1.3'\n")
    assert others(dict(env, SAMTOOLS_UPSTREAM=str(st))) == "%s 1.3" % st
    script(tmp_path / "behind" / "samtools", "exit 1\n")
    assert others(env) == "%s/behind (version unknown)" % tmp_path
    (tmp_path / "behind" / "samtools").unlink()
    assert others(env) == "none, --help says what to do"


def test_folder_with_the_word_is_told_or_loses_the_version(tmp_path):
    assert others(place(tmp_path, "samtools 1.9")) == "1.9, --help names their program"


@pytest.mark.parametrize("text", ["exec samtools \"$@\"", "cat", "kill -9 $$", "echo samtools", "echo hello"],
                         ids=["loop", "cat", "killed", "word", "other"])
def test_version_hangs_or_fails_behind_an_odd_samtools(tmp_path, text):
    env = place(tmp_path, True)
    script(tmp_path / "behind" / "samtools", text + "\n")
    assert others(env) == "%s/behind %s" % (tmp_path, VERSION if text.startswith("exec") else "(version unknown)")


def test_other_version_is_on_path_without_a_warning(tmp_path):
    env = place(tmp_path, True)
    status, out, err = words(env, "--env")
    assert (status, err.count("\n")) == (0, 1)
    assert "view, index and all others are run by %s/behind/samtools, version 1.9\n" % tmp_path in err
    assert words(env, "--env=csh")[2] == err
    script(tmp_path / "behind" / "samtools", "echo samtools %s\n" % VERSION)
    assert words(env, "--env") == (0, out, "")
    (tmp_path / "behind" / "samtools").unlink()
    assert words(env, "--env") == (0, out, "")


def test_program_of_a_build_cannot_be_put_on_path(tmp_path):
    """Its own folder has it as `samtools`; the link in the tree's root does not count."""
    build = tmp_path / "tree" / "build"
    build.mkdir(parents=True)
    shutil.copy(os.path.realpath(BINARY), build / "samtools")
    (build.parent / "samtools").symlink_to("build/samtools")
    p = subprocess.run(["sh", "-c", 'eval "$(./samtools --env)"; command -v samtools; samtools --version-only'], cwd=build.parent,
                       env=clean_env(PATH="/usr/bin:/bin"), capture_output=True, text=True, timeout=HANG)
    assert p.stdout.startswith("%s/samtools\n%s+" % (os.path.realpath(build), VERSION))


@pytest.mark.skipif(not shutil.which("git") or not (REPO / ".git").exists(), reason="no checkout of git")
def test_commit_is_not_told(tmp_path):
    """make writes it to a file of the build; only a released version has none."""
    make = next(filter(shutil.which, ("gmake", "make")), None)
    if not make:
        pytest.skip("no make here")
    env = {k: v for k, v in clean_env().items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    clone = tmp_path / "clone"
    for name in "Makefile", "base/version.h":
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(REPO / name, clone / name)

    def git(*args):
        subprocess.run(["git", "-c", "user.name=x", "-c", "user.email=x@x.invalid", *args], cwd=clone, env=env, check=True, capture_output=True)

    def noted():
        p = subprocess.run([make, "build/commit.h"], cwd=clone, env=env, capture_output=True, text=True, timeout=HANG)
        assert p.returncode == 0, p.stderr
        return re.fullmatch(r'#define SAMTOOLS_OMP_COMMIT "(.*)"\n', (clone / "build/commit.h").read_text()).group(1)

    assert noted() == ""
    git("init", "-q")
    (clone / ".gitignore").write_text("build\n")
    git("add", "-A")
    git("commit", "-qm", "one")
    first = noted()
    assert re.fullmatch(r"\.[0-9a-f]{8}", first)
    written = os.stat(clone / "build/commit.h").st_mtime_ns
    assert noted() == first and os.stat(clone / "build/commit.h").st_mtime_ns == written
    (clone / "Makefile").write_text((clone / "Makefile").read_text() + "\n")
    assert noted() == first + "-dirty"
    (clone / ".git").rename(clone / "git")
    assert noted() == ""
    (clone / "git").rename(clone / ".git")
    version = clone / "base/version.h"
    version.write_text(re.sub(r'OMP_VERSION ".*"', 'OMP_VERSION "7.0.0"', version.read_text()))
    assert noted() == ""


# ---------------------------------------------------------------- help


def words(env, *argv):
    """Status, standard output, standard error."""
    p = subprocess.run(["samtools", *argv], env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=HANG)
    return p.returncode, p.stdout.decode(), p.stderr.decode()


@pytest.mark.parametrize("argv,status,stream", [([], 1, 2), (["--help"], 0, 1), (["help"], 0, 1)], ids=str)
def test_commands_are_listed_on_another_stream_than_by_samtools(env, argv, status, stream):
    told = words(env, *argv)
    assert told[0] == status and told[3 - stream] == ""
    assert re.search(r"(?m)^Usage: +samtools <command> \[options\]$", told[stream])
    assert "`samtools sort --help`" in told[stream] and re.search(r"(?m)^Commands\b", told[stream])


@pytest.mark.parametrize("argv", [["help", "sort"], ["--help", "sort"], ["sort", "--help"], ["sort", "-h"]], ids=" ".join)
def test_help_for_sort_needs_another_samtools(env, argv):
    status, out, err = words(env, *argv)
    assert (status, err) == (0, "") and out.startswith("Usage: samtools sort")


@pytest.mark.parametrize("argv", [["version"], ["--version"], ["--version-only"], ["help"], ["--help"]], ids=" ".join)
def test_version_or_help_fails_alone(tmp_path, argv):
    status, out, err = words(place(tmp_path, False), *argv)
    assert (status, err) == (0, "") and VERSION in out


def test_help_alone_does_not_say_what_to_do(tmp_path):
    out = words(place(tmp_path, False), "help")[1]
    for word in ("sort ", "version", "There is none on PATH", "Install one", "SAMTOOLS_UPSTREAM"):
        assert word in out


def test_help_hides_the_commands_of_the_samtools_behind(tmp_path):
    env = place(tmp_path, True)
    out = words(env, "help")[1]
    assert "dict           create a sequence dictionary file" in out
    assert "run by %s, version 1.9" % (tmp_path / "behind" / "samtools") in out
    assert words(env, "help", "view")[:2] == (7, "handed on: help view\n")


def test_help_blames_path_for_a_wrong_upstream_variable(tmp_path):
    env = dict(place(tmp_path, True), SAMTOOLS_UPSTREAM="/nonexistent/samtools")
    status, out, _ = words(env, "help")
    assert status == 0 and "/nonexistent/samtools cannot be run" in out and "dict" not in out


@pytest.mark.parametrize("text", ["exit 0", "echo nothing of use", "exec samtools \"$@\"", "kill -9 $$"],
                         ids=["silent", "other", "loop", "killed"])
def test_help_hangs_or_fails_behind_an_odd_samtools(tmp_path, text):
    env = place(tmp_path, True)
    script(tmp_path / "behind" / "samtools", text + "\n")
    status, out, _ = words(env, "help")
    assert status == 0 and "%s" % (tmp_path / "behind" / "samtools") in out and "sort  " in out


def test_help_that_cannot_be_written_is_a_success(env):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    for argv in (["help"], ["--version"], ["--version-only"], ["help", "sort"]):
        with open("/dev/full", "wb") as full:
            assert subprocess.run(["samtools", *argv], env=env, stdout=full, timeout=HANG).returncode == 1, argv
