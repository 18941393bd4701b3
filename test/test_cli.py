# SPDX-License-Identifier: MIT
"""The command line: options of `sort`, usage, --version, and running other commands with the next samtools."""

import os
import pathlib
import pty
import re
import shutil
import subprocess

import pytest

import bamgen
import test_safety
from conftest import (BINARY, HANG, HTSLIB_LEAKS, SANITIZED, clean_env, oracle, oracle_sort, read_bam, run_sort, same_bam,
                      script, sorted_bytes)

# ---------------------------------------------------------------- options of sort


def refused(args, tmp_path, words="", usage=None, **kw):
    """usage: whether the message ends with a hint where the help is."""
    told = test_safety.refused(tmp_path, args, words, **kw)
    last = told.splitlines()[-1]
    assert last.startswith("samtools sort: ") and "Usage:" not in told, told
    assert usage is None or last.endswith(". See samtools sort --help") == usage, told
    return told


def test_output_named_dash_becomes_a_file(made, tmp_path):
    p = run_sort(["--no-PG", "-o", "-", made("ties")], cwd=tmp_path)
    assert p.returncode == 0, p.stderr
    assert p.stdout[:4] == b"\x1f\x8b\x08\x04" and os.listdir(tmp_path) == []


def test_normal_run_chatters(made):
    """A normal run prints at most the line that samtools prints; at --verbosity 1 it prints nothing."""
    p = run_sort(["-@", "2", made("mixed")])
    assert re.fullmatch(r"(\[bam_sort_core\] merging from .*\n)?", p.stderr)
    for level in ("0", "1"):
        assert run_sort(["-@", "2", "--verbosity", level, made("mixed")]).stderr == ""


@pytest.mark.parametrize("name", ["missing.bam", "", "."])
def test_input_that_cannot_be_read_is_not_named(tmp_path, name):
    err = refused(["-o", "out.bam", name], tmp_path, "", usage=False)
    assert len(err.splitlines()) <= 2 and (name == "" or name in err)


def test_input_name_that_looks_like_an_option_cannot_be_given(made, tmp_path):
    (tmp_path / "-n").write_bytes(made("ties").read_bytes())
    p = run_sort(["--no-PG", "--", "-n"], cwd=tmp_path)
    assert p.returncode == 0, p.stderr
    same_bam(read_bam(p.stdout), oracle(made("ties"), "--no-PG"))


# ---------------------------------------------------------------- orders, formats, memory


@pytest.mark.parametrize("tag", ["", "N", "1A", "N:", "*", "  ", "X ", "\u00e9", "--", "-n"])
@pytest.mark.parametrize("order", [[], ["-n"]], ids=["", "-n"])
def test_what_is_no_tag_is_refused_or_sorts_otherwise_than_in_samtools(made, tag, order):
    path = made("mixed")
    p = run_sort(["-t", tag, *order, path])
    assert p.returncode == 0 and re.fullmatch("samtools sort: warning: -t '%s' is not a valid tag .*\n" % re.escape(tag), p.stderr), p.stderr
    same_bam(read_bam(p.stdout), oracle(path, "-t", tag, *order), read_bam(path).lines())


def silent_stdin(args, tmp_path, **kw):
    """The end of the sort while its standard input is open and silent."""
    r, w = os.pipe()
    try:
        return run_sort(args, stdin=r, cwd=tmp_path, **kw)
    finally:
        os.close(r)
        os.close(w)


@pytest.mark.parametrize("args,words", [
    (["-I", "missing.fa"], "missing.fa"), (["-M", "-I", "."], "-I|[Dd]irectory"),
    (["--reference", "missing.fa", "-O", "cram"], "missing.fa")],
    ids=lambda v: " ".join(v) if isinstance(v, list) else "")
def test_missing_reference_is_told_only_after_reading(made, tmp_path, args, words):
    refused([*args, "-o", "out.bam", made("ties")], tmp_path, words, env=HTSLIB_LEAKS)
    p = silent_stdin([*args, "-o", "out.bam"], tmp_path, env=HTSLIB_LEAKS)
    assert p.returncode == 1 and re.search(words, p.stderr), p.stderr
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("what", ["empty", "text", "cut"])
def test_minimiser_reference_that_is_no_fasta_crashes(made, tmp_path, what):
    """samtools gives an error, or an index without sequences. So must we."""
    (tmp_path / "x.fa").write_bytes({"empty": b"", "text": b"hello\nworld\n", "cut": b">a"}[what])
    args = ["--no-PG", "-I", tmp_path / "x.fa", "-o", tmp_path / "theirs.bam", made("all_unmapped")]
    status, _ = oracle_sort(args)
    p = run_sort(["--no-PG", "-I", tmp_path / "x.fa", made("all_unmapped")])
    assert p.returncode in (status, 1), p.stderr
    if p.returncode == 0:
        same_bam(read_bam(p.stdout), read_bam(tmp_path / "theirs.bam"))


@pytest.mark.slow
@pytest.mark.skipif(SANITIZED, reason="sanitizers need memory of their own")
def test_total_memory_is_taken_per_thread(made, tmp_path):
    """60 MB and their keys do not fit into 80 MB, for any -m and -@; they do fit into 8 x 16 + 64 MB."""
    path = tmp_path / "in.bam"
    path.write_bytes(bamgen.bgzf(bamgen.header() + bamgen.tiny(1000000), level=0))
    for args in (["--total-memory", "80M"], ["-m", "1G", "--total-memory", "80M"], ["--total-memory", "80M", "-m", "1G"],
                 ["-m", "2M"]):
        assert "merging from" in run_sort(["-@", "8", "-u", *args, path], cwd=tmp_path).stderr, args
    assert "merging from" not in run_sort(["-@", "8", "-u", "-m", "16M", path]).stderr
    assert "merging from" not in run_sort(["-@", "8", "-u", "-m", "1M", "--total-memory", "192M", path]).stderr


@pytest.mark.parametrize("value", ["0", "1", "1048576", "0x100000", "5K", "768M", "1.5G", "300g", "2GB", "+5M", "1T"])
def test_size_hint_is_refused_or_changes_output(made, value):
    path = made("ties")
    plain = sorted_bytes(["--no-PG", path])
    assert sorted_bytes(["--no-PG", "--size-hint", value, path]) == plain
    assert sorted_bytes(["--no-PG", "--size-hint=" + value], stdin=path.read_bytes()) == plain


def test_option_after_double_dash_is_taken_for_one(made, tmp_path):
    refused(["-o", "out.bam", "--", made("ties"), "-n"], tmp_path, "Use -T PREFIX / -o FILE", usage=True)


@pytest.mark.parametrize("short,long", [
    (["-n", "-t", "NM"], ["-nt", "NM"]), (["-M", "-K", "7", "-R"], ["-MRK7"]), (["-t", "NM"], ["-tNM"]),
    (["--template-coordinate"], ["--template"]), (["--output-fmt", "sam"], ["-Osam"]),
    (["--reference", "/dev/null"], ["--reference=/dev/null"])], ids=lambda v: " ".join(v))
def test_other_spelling_of_options_means_something_else(made, short, long):
    path = made("all_unmapped")
    assert sorted_bytes(["--no-PG", *long, path]) == sorted_bytes(["--no-PG", *short, path])


# ---------------------------------------------------------------- usage


def test_sort_on_a_terminal_hangs_instead_of_showing_usage():
    try:
        main, terminal = pty.openpty()
    except OSError as e:
        pytest.skip("no terminals here: %s" % e)  # a container without /dev/pts
    try:
        p = subprocess.run([BINARY, "sort"], stdin=terminal, stdout=subprocess.PIPE,
                           stderr=subprocess.PIPE, env=clean_env(), timeout=HANG)
    finally:
        os.close(main)
        os.close(terminal)
    assert (p.returncode, p.stderr) == (0, b"")
    assert p.stdout.startswith(b"Usage: samtools sort")


def test_closed_standard_input_hangs_or_crashes(tmp_path):
    p = subprocess.run(["sh", "-c", 'exec "$0" sort -o out.bam <&-', BINARY], cwd=tmp_path,
                       capture_output=True, env=clean_env(), timeout=HANG)
    assert p.returncode == 1 and p.stderr
    assert os.listdir(tmp_path) == []


@pytest.mark.skipif(SANITIZED, reason="sanitizers want to be loaded first")
def test_start_by_the_loader_fails(made, tmp_path):
    """ld.so ./samtools sort, as in bundles that include their own libraries."""
    loader = re.search(rb"/lib[^\0]*/ld[^\0/]*\.so[^\0/]*\0", pathlib.Path(BINARY).read_bytes()[:4096])
    if not loader:
        pytest.skip("another kind of loader")
    p = subprocess.run([loader.group()[:-1], BINARY, "sort", "-o", "out.bam", made("ties")], cwd=tmp_path,
                       capture_output=True, env=clean_env(), timeout=HANG)
    assert p.returncode == 0, p.stderr
    assert os.listdir(tmp_path) == ["out.bam"]


# ---------------------------------------------------------------- other commands


FAKE = """printf 'fake %s pid %s\\n' "$0" "$$"
for a; do printf '[%s]\\n' "$a"; done
cat
exit 7
"""


def handed_on(argv, path, program=BINARY, **env):
    """Runs program with PATH = path (a list of folders, then the system's)."""
    dirs = [str(d) for d in path] + ["/usr/bin", "/bin"]
    return subprocess.run([str(program), *argv], input=b"stdin\n", capture_output=True, timeout=HANG,
                          env=clean_env(PATH=":".join(dirs), **env))


def test_other_command_is_not_handed_on_unchanged(tmp_path):
    fake = script(tmp_path / "up" / "samtools", FAKE)
    argv = ["view", "a b", "", "c\td", "-o", "*", "--", "e\nf", "sort", "--help"]
    p = handed_on(argv, [tmp_path / "up"])
    assert p.returncode == 7, p.stderr
    shown = p.stdout.decode()
    assert shown.startswith("fake %s " % fake)
    assert shown.split("\n", 1)[1] == "".join("[%s]\n" % a for a in argv) + "stdin\n"
    assert p.stderr == b""


def test_other_command_runs_as_a_child_instead_of_by_exec(tmp_path):
    """A scheduler's signals must reach it: same process id."""
    script(tmp_path / "up" / "samtools", FAKE)
    with subprocess.Popen([BINARY, "index", "x"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          env=clean_env(PATH="%s:/usr/bin:/bin" % (tmp_path / "up"))) as p:
        assert p.communicate(timeout=HANG)[0].split(b"\n")[0].endswith(b" pid %d" % p.pid)
    assert p.returncode == 7


@pytest.mark.parametrize("how", ["symlink", "chain", "hardlink", "copy", "all"])
def test_own_binary_on_path_is_executed_for_ever(tmp_path, how):
    """It is found first on PATH under another name of this program, or started by that name."""
    real = os.path.realpath(BINARY)
    def symlink(to):
        to.symlink_to(real)
    def chain(to):
        (to.parent / "link").symlink_to(real)
        to.symlink_to("link")
    def hardlink(to):
        try:
            os.link(real, to)
        except OSError:  # another file system
            pytest.skip("no hard link from %s to here" % real)
    def copy(to):
        shutil.copy2(real, to)
    dirs = []
    for name in (["symlink", "chain", "copy"] if how == "all" else [how]):
        d = tmp_path / name
        d.mkdir()
        locals()[name](d / "samtools")
        dirs.append(d)
    fake = script(tmp_path / "up" / "samtools", FAKE)
    for path in (dirs, dirs * 2, dirs[::-1]):
        for program in [BINARY, *(d / "samtools" for d in dirs)]:
            p = handed_on(["view", "x"], [*path, tmp_path / "up"], program)
            assert p.returncode == 7, (program, p.stderr)
            assert p.stdout.decode().startswith("fake %s " % fake)


def test_only_own_binaries_on_path_loop(tmp_path):
    """If PATH has only a copy and a link of ours, there is an error and no endless exec."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    (tmp_path / "a" / "samtools").symlink_to(BINARY)
    shutil.copy2(os.path.realpath(BINARY), tmp_path / "b" / "samtools")
    for program in (BINARY, tmp_path / "a" / "samtools", tmp_path / "b" / "samtools"):
        p = subprocess.run([str(program), "view"], capture_output=True, timeout=HANG,
                           env=clean_env(PATH="%s:%s" % (tmp_path / "a", tmp_path / "b")))
        assert p.returncode == 1 and p.stderr


def test_own_binary_started_by_name_from_path_loops(tmp_path):
    (tmp_path / "first").mkdir()
    (tmp_path / "first" / "samtools").symlink_to(BINARY)
    script(tmp_path / "up" / "samtools", FAKE)
    p = subprocess.run(["env", "samtools", "depth", "x"], stdin=subprocess.DEVNULL,
                       capture_output=True, timeout=HANG, env=clean_env(
                           PATH="%s:%s:/usr/bin:/bin" % (tmp_path / "first", tmp_path / "up")))
    assert p.returncode == 7 and b"[depth]\n[x]\n" in p.stdout


def test_script_that_calls_samtools_by_name_loops(tmp_path):
    """The shims of version managers also look for the next program on PATH."""
    shim, up = script(tmp_path / "shim" / "samtools", FAKE), script(tmp_path / "up" / "samtools", FAKE)
    shim.write_text('#!/bin/sh\nexec %s "$@"\n' % BINARY)
    p = handed_on(["view", "x"], [shim.parent, up.parent])
    assert p.returncode == 7, p.stderr
    assert p.stdout.decode().startswith("fake %s " % up)


def test_something_that_is_no_program_stops_the_search(tmp_path):
    (tmp_path / "dir" / "samtools").mkdir(parents=True)
    script(tmp_path / "plain" / "samtools", FAKE).chmod(0o644)
    (tmp_path / "dangling").mkdir()
    (tmp_path / "dangling" / "samtools").symlink_to("/nonexistent/samtools")
    script(tmp_path / "up" / "samtools", FAKE)
    p = handed_on(["view"], [tmp_path / "missing", tmp_path / "dir", tmp_path / "plain",
                             tmp_path / "dangling", tmp_path / "up"])
    assert p.returncode == 7, p.stderr


def test_upstream_variable_is_ignored(tmp_path):
    script(tmp_path / "up" / "samtools", FAKE)
    chosen = script(tmp_path / "opt" / "samtools-1.20", FAKE)
    p = handed_on(["view", "x"], [tmp_path / "up"], SAMTOOLS_UPSTREAM=str(chosen))
    assert p.returncode == 7, p.stderr
    assert p.stdout.decode().startswith("fake %s " % chosen)


def test_upstream_variable_is_used_for_sort(tmp_path, made):
    chosen = script(tmp_path / "other", FAKE)
    p = run_sort(["--no-PG", made("ties")], env={"SAMTOOLS_UPSTREAM": str(chosen)})
    assert p.returncode == 0 and p.stdout[:2] == b"\x1f\x8b"


@pytest.mark.parametrize("value", ["missing", "self", "link"])
def test_useless_upstream_variable_loops_or_crashes(tmp_path, value):
    link = tmp_path / "link"
    link.symlink_to(BINARY)
    target = {"missing": tmp_path / "missing", "self": BINARY, "link": link}[value]
    p = subprocess.run([BINARY, "view"], capture_output=True, timeout=HANG, stdin=subprocess.DEVNULL,
                       env=clean_env(PATH=str(tmp_path), SAMTOOLS_UPSTREAM=str(target)))
    assert p.returncode == 1 and p.stderr


@pytest.mark.parametrize("path", ["", "/nonexistent", None], ids=["empty", "missing", "unset"])
def test_no_other_samtools_is_told_unclearly(tmp_path, path):
    env = clean_env()
    env.pop("PATH", None)
    if path is not None:
        env["PATH"] = path
    p = subprocess.run([BINARY, "view", "x.bam"], capture_output=True, timeout=HANG, env=env,
                       cwd=tmp_path)
    if path is None and p.returncode != 1:
        pytest.skip("the system's default path has a samtools")
    assert (p.returncode, p.stdout) == (1, b"")
    assert len(p.stderr.decode().splitlines()) == 1
    assert b"view" in p.stderr and b"SAMTOOLS_UPSTREAM" in p.stderr


def test_sort_is_handed_on(tmp_path, made):
    script(tmp_path / "up" / "samtools", FAKE)
    p = handed_on(["sort", str(made("ties"))], [tmp_path / "up"])
    assert p.returncode == 0 and p.stdout[:2] == b"\x1f\x8b"
