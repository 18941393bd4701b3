# SPDX-License-Identifier: MIT
"""Standard streams that are closed, or are the same file as another one."""

import os
import subprocess
import tempfile

import pytest

from conftest import BINARY, HANG, clean_env, oracle, read_bam, run_sort, same_bam
from test_safety import snapshot


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 2>&-", "0<&- 1>&- 2>&-"])
def test_messages_for_a_closed_stream_go_into_the_output(made, tmp_path, closed):
    """The next file opened gets its number."""
    (tmp_path / "in.bam").write_bytes(made("mixed").read_bytes()[:-28])   # a warning is due
    args = ["--no-PG", "--progress", "--report", "--verify", "-@", "2"]
    for out in ("out.bam", "out.sam"):
        p = subprocess.run(["sh", "-c", 'exec "$0" "$@" ' + closed, BINARY, "sort", *args, "-o", out, "in.bam"],
                           cwd=tmp_path, capture_output=True, env=clean_env(), timeout=HANG)
        assert p.returncode == 0, p.stderr
        assert (tmp_path / out).read_bytes() == (run_sort([*args, "-O", out[4:], "in.bam"], cwd=tmp_path).stdout)


def test_output_that_is_open_for_reading_is_told_only_after_reading(made, tmp_path):
    with open(made("ties"), "rb") as reading:
        p = subprocess.run([BINARY, "sort", "-"], stdin=subprocess.DEVNULL, stdout=reading, stderr=subprocess.PIPE,
                           cwd=tmp_path, env=clean_env(), timeout=HANG)
    assert p.returncode == 1 and b"Nothing was read" in p.stderr, p.stderr


@pytest.mark.parametrize("name, named", [("/dev/stdout", False), ("/dev/stdout", True), ("/dev/fd/%d", False)])
def test_output_is_not_in_the_open_file_that_was_meant(made, tmp_path, name, named):
    """The program that opened it continues reading there; a file without a name cannot be replaced at all."""
    with (open(tmp_path / "x", "w+b") if named else tempfile.TemporaryFile(dir=tmp_path)) as f:
        out = name.replace("%d", str(f.fileno()))
        p = subprocess.run([BINARY, "sort", "--no-PG", "-O", "bam", "-o", out, made("ties")], pass_fds=[f.fileno()],
                           stdout=f if name == "/dev/stdout" else None, stderr=subprocess.PIPE, env=clean_env(), timeout=HANG)
        assert p.returncode == 0, p.stderr
        f.seek(0)
        same_bam(read_bam(f.read()), oracle(made("ties"), "--no-PG"))
    assert os.listdir(tmp_path) == ["x"] * named


@pytest.mark.parametrize("inputs", [["pipe", "pipe"], ["-", "/dev/stdin"], ["in.bam", "pipe", "./pipe"]], ids=" ".join)
def test_pipe_that_is_given_twice_is_waited_for(made, tmp_path, inputs):
    (tmp_path / "in.bam").write_bytes(made("ties").read_bytes())
    os.mkfifo(tmp_path / "pipe")
    more = ["--add-input=" + x for x in inputs[1:]]
    p = subprocess.run([BINARY, "sort", *more, inputs[0]], cwd=tmp_path, input=b"", capture_output=True, env=clean_env(),
                       timeout=HANG)
    assert p.returncode == 1 and b"is a pipe and cannot be read twice. Nothing was read" in p.stderr, p.stderr


@pytest.mark.parametrize("line", [
    "--checksum=in.bam -o o.bam < in.bam", "--trace=in.bam -o o.bam - < in.bam", "--check --checksum=in.bam < in.bam",
    "--checksum=out.bam in.bam >> out.bam", "--report=./out.bam in.bam >> out.bam", "in.bam >> in.bam", "- < in.bam >> in.bam",
    "-o /dev/stdout -O bam in.bam 1<> in.bam", "--add-input=in.bam more.bam >> in.bam", "--report=link -o new.bam in.bam",
    "--write-index -o new.bam##idx##link in.bam", "--checksum=/dev/stdout in.bam", "--report=/dev/stderr in.bam 2>&1",
])
def test_file_is_written_over_another_by_redirection_or_link(made, tmp_path, line):
    for name in ("in.bam", "more.bam", "out.bam"):
        (tmp_path / name).write_bytes(made("ties").read_bytes())
    (tmp_path / "link").symlink_to("new.bam")
    before = snapshot(tmp_path)
    p = subprocess.run(["sh", "-c", '"$0" sort ' + line, BINARY], cwd=tmp_path, capture_output=True, env=clean_env(),
                       timeout=HANG)
    assert p.returncode == 1 and b"cannot be both" in p.stderr + p.stdout, p.stderr
    assert snapshot(tmp_path) == before
