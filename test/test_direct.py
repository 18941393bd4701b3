# SPDX-License-Identifier: MIT
"""Outputs that cannot be replaced by another file, and so are overwritten: mount points, and files in folders where
none may be made. The tests also try terminals, which only get text."""

import os
import pty
import re
import subprocess

import pytest

import bamgen
from conftest import BINARY, HANG, PRECIOUS, clean_env, launch, limit_on, read_bam, run_sort, same_bam, sorted_bytes
from test_safety import DEFAULT_SIGNALS, NOBODY, feed, in_name_space, running


@pytest.fixture(params=["mounted", "mounted, old Linux", "closed folder"])
def place(request, tmp_path, public_dir):
    """A folder with out.bam, other files that are PRECIOUS, and the way to run the sort there: as a list of words
    and keywords for subprocess. The sort can make files in tmp_path, but cannot replace out.bam and the like."""
    folder = public_dir + "/folder"
    os.mkdir(folder, 0o755)
    os.chmod(tmp_path, 0o777)
    names = ["out.bam", "out.bam.csi", "a b.bam", "sum", "report.json"]
    for name in names:
        with open(folder + "/" + name, "wb") as f:
            f.write(PRECIOUS)
        os.chmod(folder + "/" + name, 0o666)
    env = clean_env()
    if request.param == "closed folder":
        if os.geteuid() != 0:
            os.chmod(folder, 0o555)
        argv, how = [public_dir + "/program", "sort"], dict(before=NOBODY)
        for above in tmp_path.parents:           # pytest's are closed to others
            if not os.stat(above).st_mode & 0o001:
                os.chmod(above, 0o755)
        said = [subprocess.run(**launch([x, "--version"], env, before), capture_output=True).stdout
                for x, before in ((argv[0], NOBODY), (BINARY, None))]
        if said[0] != said[1]:
            pytest.skip("another user cannot load the htslib that the program is linked with")
    else:
        mounts = " && ".join("mount --bind '%s/%s' '%s/%s'" % (folder, n, folder, n) for n in names)
        faults = []
        if request.param != "mounted":           # statx() does not report mounts
            shim = request.getfixturevalue("fault_shim")
            faults = ["%s=%s" % x for x in shim.items()] + "FAULT_CALL=statx FAULT_AT=1 FAULT_EVERY=1 FAULT_ERROR=38".split()
        argv, how = [*in_name_space(mounts), "env", *faults, BINARY, "sort"], {}
    return folder, argv, dict(how, env=env, cwd=tmp_path)


def go(place, args, data=None, **kw):
    folder, argv, how = place
    how = {"before": None, **how, **kw}
    stdin = {"input": data} if data is not None else {"stdin": subprocess.DEVNULL}
    return subprocess.run(**launch([*argv, *args], how.pop("env"), how.pop("before")), capture_output=True, timeout=HANG,
                          **stdin, **how)


def content(place, name="out.bam"):
    with open(place[0] + "/" + name, "rb") as f:
        return f.read()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("name", ["out.bam", "a b.bam"])
def test_output_that_cannot_be_replaced_is_refused(place, made, threads, name):
    path = made("mixed")
    inode = os.stat(place[0] + "/" + name).st_ino
    p = go(place, ["--no-PG", "-@", threads, "-o", place[0] + "/" + name], path.read_bytes())
    assert p.returncode == 0 and p.stderr == b"", p.stderr
    assert content(place, name) == sorted_bytes(["--no-PG", path])
    assert os.stat(place[0] + "/" + name).st_ino == inode
    assert len(os.listdir(place[0])) == 5


@pytest.mark.parametrize("form", ["sam", "sam.gz", "cram,no_ref"])
def test_output_in_another_format_that_cannot_be_replaced_keeps_old_bytes(place, made, form):
    """The old content is longer than the new one."""
    with open(place[0] + "/out.bam", "wb") as f:
        f.write(b"x" * (1 << 20))
    p = go(place, ["--no-PG", "-O", form, "-o", place[0] + "/out.bam"], made("ties").read_bytes())
    assert p.returncode == 0, p.stderr
    name = slice(6, 26) if form.startswith("cram") else slice(0)   # CRAM holds its own
    ours, expected = bytearray(content(place)), bytearray(sorted_bytes(["--no-PG", "-O", form, made("ties")]))
    del ours[name], expected[name]
    assert ours == expected


def test_files_beside_the_output_that_cannot_be_replaced_are_refused(place, made, tmp_path):
    path, folder = made("mixed"), place[0]
    p = go(place, ["--no-PG", "--write-index", "--checksum", folder + "/sum", "--report=" + folder + "/report.json",
                   "-o", folder + "/out.bam"], path.read_bytes())
    assert p.returncode == 0, p.stderr
    assert run_sort(["--no-PG", "--write-index", "--checksum", "sum", "-o", "out.bam", path], cwd=tmp_path).returncode == 0
    for name in ("out.bam", "out.bam.csi", "sum"):
        assert content(place, name) == (tmp_path / name).read_bytes(), name
    assert content(place, "report.json").startswith(b"{") and content(place, "report.json").rstrip().endswith(b"}")


@pytest.mark.parametrize("form", ["bam", "sam", "sam.gz", "cram,no_ref"])
def test_old_output_that_cannot_be_replaced_is_gone_before_the_input_was_read(place, made, form):
    data, (folder, argv, how) = made("mixed").read_bytes(), place
    how = {"before": DEFAULT_SIGNALS, **how}
    with running([*argv, "-O", form, "-o", folder + "/out.bam"], stdin=subprocess.PIPE, **how) as p:
        feed(p, data[:-1000])
        assert content(place) == PRECIOUS
        p.stdin.close()                          # the input is cut
        assert p.wait(HANG) == 1
    assert content(place) == PRECIOUS


@pytest.mark.parametrize("args", [["-O", "cram", "--reference", "missing.fa"], ["-o", "no/where.bam"], ["-M", "-I", "missing.fa"],
                                  ["--checksum", "no/where"]], ids=" ".join)
def test_old_output_that_cannot_be_replaced_is_lost_by_another_mistake(place, made, args):
    p = go(place, ["-o", place[0] + "/out.bam", *args], made("ties").read_bytes())
    assert p.returncode == 1 and content(place) == PRECIOUS, p.stderr


@pytest.mark.parametrize("args", [[], ["--write-index"], ["-O", "sam"], ["-O", "cram,no_ref"]], ids=" ".join)
def test_part_of_an_output_stays_under_the_final_name(place, made, args):
    """A limit on file sizes stands for a full disk."""
    before = limit_on("FSIZE", 50000) + "\n" + place[2].get("before", "")
    p = go(place, ["-u", *args, "-o", place[0] + "/out.bam"], made("realistic", content=lambda: bamgen.realistic(20000)).read_bytes(),
           before=before)
    assert p.returncode == 1 and b"File too large" in p.stderr, p.stderr
    assert content(place) == b""


def test_sort_in_place_reads_what_it_writes_over(place, made):
    """The first error would lose the only copy."""
    with open(place[0] + "/out.bam", "wb") as f:
        f.write(made("ties").read_bytes())
    p = go(place, ["-o", place[0] + "/out.bam", place[0] + "/out.bam"])
    assert p.returncode == 1 and b"cannot be both input and output" in p.stderr and b"Nothing was read" in p.stderr
    assert content(place) == made("ties").read_bytes()


def test_temporary_files_have_no_place_beside_an_output_that_cannot_be_replaced(place, made):
    """If the folder is closed they go to the current one."""
    path = made("mixed")
    place[2]["env"]["SAMTOOLS_OMP_ARENA"] = "262144"
    p = go(place, ["--no-PG", "-o", place[0] + "/out.bam"], path.read_bytes())
    assert p.returncode == 0 and re.match(rb"\[bam_sort_core\] merging from [1-9]", p.stderr), p.stderr
    same_bam(read_bam(content(place)), read_bam(sorted_bytes(["--no-PG", path])))


@pytest.mark.skipif(os.geteuid() != 0, reason="needs two users")
def test_unwritable_output_in_a_closed_folder_is_told_unclearly(public_dir):
    os.mkdir(public_dir + "/closed", 0o755)
    with open(public_dir + "/closed/out.bam", "wb") as f:
        f.write(PRECIOUS)
    with running([public_dir + "/program", "sort", "-o", public_dir + "/closed/out.bam", "-"], stdin=subprocess.PIPE,
                 before=NOBODY) as p:               # not fed
        assert p.wait(HANG) == 1
        assert re.search(rb"cannot write .*Permission denied.*Nothing was read", p.stderr.read())


# ---------------------------------------------------------------- terminals


@pytest.fixture
def terminal():
    try:
        main, end = pty.openpty()
    except OSError as e:
        pytest.skip("no terminals here: %s" % e)  # a container without /dev/pts
    yield main, end
    os.close(main)
    os.close(end)


def silent(args, terminal, **kw):
    """The end of the sort while its input is silent; its standard output is the terminal."""
    with subprocess.Popen([BINARY, "sort", *args], stdin=subprocess.PIPE, stdout=terminal[1], stderr=subprocess.PIPE,
                          env=clean_env(), **kw) as p:
        assert p.wait(HANG) == 1
        return p.stderr.read().decode()


@pytest.mark.parametrize("args", [[], ["-u"], ["-O", "cram"], ["-O", "sam.gz"], ["-O", "fastq.gz"], ["-o", "-"],
                                  ["-o", "/dev/stdout"], ["-O", "sam,level=1"]], ids=" ".join)
def test_binary_output_is_written_to_a_terminal(terminal, tmp_path, args):
    told = silent(args, terminal, cwd=tmp_path)
    assert re.fullmatch(r"samtools sort: (standard output|/dev/stdout) is a terminal.*-o FILE.*Nothing was read\.\n", told), told
    os.set_blocking(terminal[0], False)
    with pytest.raises(BlockingIOError):         # nothing came
        os.read(terminal[0], 1)
    assert not list(tmp_path.iterdir())


def test_binary_output_is_written_to_a_terminal_by_its_name(terminal, made):
    name = os.ttyname(terminal[1])
    p = run_sort(["-o", name, made("ties")])
    assert p.returncode == 1 and p.stderr.startswith("samtools sort: %s is a terminal" % name), p.stderr


def test_binary_output_is_written_to_dev_tty(terminal, made):
    """The terminal of a process, for any streams."""
    own_terminal = "os.close(os.open(%r, os.O_RDWR))" % os.ttyname(terminal[1])
    p = subprocess.run(**launch([BINARY, "sort", "-o", "/dev/tty", made("ties")], clean_env(), own_terminal), timeout=HANG,
                       stdin=subprocess.DEVNULL, capture_output=True, start_new_session=True)
    assert p.returncode == 1 and p.stderr.startswith(b"samtools sort: /dev/tty is a terminal"), p.stderr


@pytest.mark.parametrize("args", [["-O", "sam"], ["-O", "fastq"], ["--check"]], ids=" ".join)
def test_text_is_refused_on_a_terminal(terminal, tmp_path, args):
    (tmp_path / "in.sam").write_text("@SQ\tSN:r\tLN:99\na\t0\tr\t2\t30\t1M\t*\t0\t0\tA\tI\n")
    p = subprocess.run([BINARY, "sort", *args, "in.sam"], stdin=subprocess.DEVNULL, stdout=terminal[1], stderr=subprocess.PIPE,
                       env=clean_env(), timeout=HANG, cwd=tmp_path)
    assert p.returncode == 0 and p.stderr == b""
    if "--check" not in args:
        assert os.read(terminal[0], 1) in b"@"
