# SPDX-License-Identifier: MIT
"""samtools-omp-mpi: inputs that cannot be cut, such as a pipe and CRAM. One rank reads them, and all ranks write the
same as one process.

Skipped without mpicc and mpirun.
"""

import contextlib
import functools
import gzip
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

import pytest

import bamgen
from conftest import BINARY, HANG, clean_env, feeding
from test_mpi import ENV, KINDS, desk, kind, launch, programs, pytestmark, same, sort_mpi  # noqa: F401
from test_mpi_input import tied, to_sam

FORMS = ["bam", "raw", "sam", "sam.gz", "sam.bgz", "cram"]


def form_of(desk, form, data):
    """Writes the input once more in another form of file."""
    source, path = desk / "given.bam", desk / ("in." + form)
    if form == "bam":
        path.write_bytes(data)
    elif form == "raw":
        path.write_bytes(gzip.decompress(data))
    elif form == "sam":
        to_sam(desk, data, path.name)
    elif form == "sam.gz":
        path.write_bytes(gzip.compress(to_sam(desk, data).read_bytes()))
        (desk / "in.sam").unlink()
    elif form == "sam.bgz":
        path.write_bytes(bamgen.bgzf(to_sam(desk, data).read_bytes()))
        (desk / "in.sam").unlink()
    else:
        import pysam
        source.write_bytes(data)
        with pysam.AlignmentFile(str(source), check_sq=False) as given, \
                pysam.AlignmentFile(str(path), "wc", header=given.header, format_options=[b"no_ref=1"]) as cram:
            for record in given.fetch(until_eof=True):
                cram.write(record)
        source.unlink()
    return path


@functools.cache
def spoils_stdin(kind):
    """Returns whether its mpirun damages the standard input that it passes on: MPICH's if the program does not read at
    once; OpenMPI 5's passes pieces on twice (5.0.7; openpmix/prrte #2220)."""
    version = subprocess.run(["mpirun." + kind, "--version"], capture_output=True, text=True, env=clean_env(**ENV)).stdout
    return kind == "mpich" or not re.search(r"\) [1-4]\.", version)


def from_pipe(program, desk, source, args, kind, n):
    """mpirun's status and messages, for n ranks that read `source` from standard input, or from a fifo."""
    fifo = spoils_stdin(kind)
    if fifo:
        subprocess.run(["mkfifo", desk / "fifo"], check=True)
    with feeding(["dd", "status=none", "if=%s" % source, *["of=%s" % (desk / "fifo")] * fifo], stdout=subprocess.PIPE) as feed:
        job = launch(program, kind, n, [*args, desk / "fifo" if fifo else "-"], stdin=feed.stdout)
        _, err = job.communicate(timeout=HANG)
    if fifo:
        (desk / "fifo").unlink()
    return job.returncode, err


def mpirun_crashed(status, err):
    """Returns whether mpirun crashed, and not a rank: OpenMPI 4.1.4 did so once, while it passed standard input on."""
    return status == -signal.SIGSEGV and b"mpirun.openmpi(" in err


def through_pipe(programs, desk, source, args=(), kind=KINDS[0] if KINDS else None, n=3):
    """Checks that n ranks write the same from a pipe as one process from the file."""
    one, many = desk / "one.bam", desk / "many.bam"
    subprocess.run([BINARY, "sort", "--no-PG", *args, "-o", one, source], check=True, capture_output=True,
                   env=clean_env())
    args = ["--no-PG", *args, "-T", desk / "tmp", "-o", many]
    status, err = from_pipe(programs[kind], desk, source, args, kind, n)
    if mpirun_crashed(status, err):
        status, err = from_pipe(programs[kind], desk, source, args, kind, n)
    assert status == 0, err
    assert many.read_bytes() == one.read_bytes()
    assert not list(desk.glob("tmp*"))


@pytest.mark.parametrize("form", FORMS[1:2] + FORMS[3:])
def test_file_that_cannot_be_cut_differs(programs, desk, form):
    source = form_of(desk, form, bamgen.l_htslib(*bamgen.realistic(1500)))
    same(programs, desk, source, (1, 3), ["-n"])
    same(programs, desk, source, (4,), index="csi")


@pytest.mark.parametrize("form", FORMS)
def test_pipe_differs(programs, desk, form):
    through_pipe(programs, desk, form_of(desk, form, bamgen.l_htslib(*bamgen.realistic(1500))))


@pytest.mark.parametrize("args", [["-n"], ["-N"], ["-t", "NM"]], ids=" ".join)
def test_keys_of_a_pipe_have_one_code_each_rank(programs, desk, kind, args):
    through_pipe(programs, desk, form_of(desk, "bam", bamgen.l_htslib(*bamgen.realistic(1500))), args, kind, 4)


@pytest.mark.parametrize("n_records", [0, 1, 2])
def test_few_records_of_a_pipe_are_lost(programs, desk, n_records):
    source = desk / "in.sam"
    source.write_bytes(tied(0, n_records))
    through_pipe(programs, desk, source, ["-n"], n=4)


def test_pipe_that_spills_differs(programs, desk):
    head, records = bamgen.incompressible(9000)
    source = desk / "in.bam"
    source.write_bytes(bamgen.bgzf(head + b"".join(records), level=0))
    through_pipe(programs, desk, source, ["-m", "3M", "-l", "0"], n=2)


@pytest.mark.parametrize("names", [("a.sam", "b.raw", "c.sam", "d.cram", "c.sam"), ("b.raw", "d.cram", "a.sam")],
                         ids=["behind", "first"])
@pytest.mark.parametrize("piped", [False, True], ids=["files", "pipe"])
def test_ties_with_inputs_that_are_cut_change_places(programs, desk, kind, names, piped):
    """All records have one of two keys, so their order is that of the inputs."""
    (desk / "a.sam").write_bytes(tied(0, 40, b"a"))
    (desk / "c.sam").write_bytes(tied(40, 3000, b"c"))
    for name in ("b.raw", "d.cram"):
        (desk / "t.sam").write_bytes(tied(4000, 900, name[:1].encode()))
        made = subprocess.run([BINARY, "sort", "--no-PG", "-n", "-l", "1", "-o", desk / "t.bam", desk / "t.sam"],
                              capture_output=True, env=clean_env())
        assert made.returncode == 0, made.stderr
        form_of(desk, name[2:], (desk / "t.bam").read_bytes()).rename(desk / name)
    more = [a for name in names[1:] for a in ("--add-input", desk / name)]
    if piped:
        through_pipe(programs, desk, desk / names[0], more, kind)
    else:
        same(programs, desk, desk / names[0], (2, 5), more, kind)


def test_rank_that_reads_all_of_an_input_lacks_groups_of_the_others(programs, desk, kind):
    """The order of groups is that of all @RG lines, which all ranks must know."""
    (desk / "a.sam").write_bytes(tied(0, 900, b"z"))
    (desk / "b.sam.gz").write_bytes(gzip.compress(tied(900, 1100, b"a")))
    same(programs, desk, desk / "a.sam", (2, 3), ["-t", "RG", "--add-input", desk / "b.sam.gz"], kind)


def test_what_comes_before_a_pipe_comes_after_it(programs, desk):
    """The pipe is the second input: rank 0 has to read the first one, too."""
    one, many = desk / "one.bam", desk / "many.bam"
    for name, first in (("a.sam", 0), ("b.sam", 3000), ("c.sam", 6000)):
        (desk / name).write_bytes(tied(first, 2000))
    more = ["--add-input", desk / "b.sam", "--add-input", desk / "c.sam", desk / "a.sam"]
    subprocess.run([BINARY, "sort", "--no-PG", "-o", one, *more], check=True, capture_output=True, env=clean_env())
    subprocess.run(["mkfifo", desk / "fifo"], check=True)
    more[1] = desk / "fifo"
    with feeding(["dd", "status=none", "if=b.sam", "of=fifo"], cwd=desk):
        status, err = sort_mpi(programs[KINDS[0]], KINDS[0], 3, ["--no-PG", "-o", many, *more])
    assert status == 0, err
    assert many.read_bytes() == one.read_bytes()


def test_filter_is_ignored(programs, desk):
    source = form_of(desk, "bam", bamgen.l_htslib(*bamgen.realistic(1500)))
    same(programs, desk, source, (3,), ["--input-fmt-option", "filter=flag & 16"])
    import pysam
    flags = [record.flag for record in pysam.AlignmentFile(str(desk / "one.bam"), check_sq=False)]
    assert flags and all(flag & 16 for flag in flags)


@pytest.mark.parametrize("form", ["cram", "sam.gz", "raw"])
@pytest.mark.parametrize("piped", [False, True], ids=["file", "pipe"])
def test_cut_input_is_sorted_or_told_by_each_rank(programs, desk, form, piped):
    source = form_of(desk, form, bamgen.l_htslib(*bamgen.realistic(9000)))
    data = source.read_bytes()
    source.write_bytes(data[:len(data) - 41])
    args = ["-T", desk / "tmp", "-o", desk / "out.bam"]
    if piped:
        status, err = from_pipe(programs[KINDS[0]], desk, source, args, KINDS[0], 3)
    else:
        job = launch(programs[KINDS[0]], KINDS[0], 3, [*args, source])
        _, err = job.communicate(timeout=HANG)
        status = job.returncode
    shown = source.name if not piped else "fifo" if spoils_stdin(KINDS[0]) else "standard input"
    assert status == 1
    told = [line for line in err.decode().splitlines() if ": rank " in line]
    assert len(told) == 1 and shown in told[0], err
    assert [p.name for p in desk.iterdir()] == [source.name]


def test_decoding_cram_takes_memory_of_the_second_sort(programs, desk, gen_bam):
    """The limit is -m 16M and 64 MiB, including the memory of MPI."""
    import pysam
    source = desk / "in.cram"
    pysam.view("-C", "--output-fmt-option", "no_ref=1", "-o", str(source), str(gen_bam("--size", "120M", "--level", "1")),
               catch_stdout=False)
    status, err = sort_mpi(programs[KINDS[0]], KINDS[0], 1, ["-m", "16M", "-l", "0", "--report=%s" % (desk / "r.json"),
                                                            "-T", desk / "tmp", "-o", desk / "out.bam", source])
    assert status == 0, err
    rank, = json.loads((desk / "r.json").read_text())["ranks"]
    assert rank["temporary_bytes"] > 0
    assert rank["peak_rss"] <= (16 + 64) << 20, rank


def files_in(folder, program):
    """The names of the files in the folder that each process of the program has open."""
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "exe").resolve() == program.resolve():
                paths = [os.readlink(fd) for fd in (process / "fd").iterdir()]
                yield {os.path.basename(path) for path in paths if os.path.dirname(path) == str(folder)}


@pytest.mark.skipif(not os.path.exists("/proc/self/exe"), reason="no /proc here")
@pytest.mark.parametrize("form", ["bam", "cram"])
def test_second_sort_begins_with_the_inputs_closed(programs, desk, gen_bam, form):
    """The reader's memory is for the second sort, which is seen by its files: runs and output, besides the first runs."""
    import pysam
    source = pathlib.Path(gen_bam("--size", "40M", "--level", "1"))
    if form == "cram":
        pysam.view("-C", "--output-fmt-option", "no_ref=1", "-o", str(desk / "in"), str(source), catch_stdout=False)
    else:
        shutil.copy(source, desk / "in")
    job = launch(programs[KINDS[0]], KINDS[0], 2, ["-m", "8M", "-T", desk / "tmp", "-o", desk / "out.bam", desk / "in"])
    seen, end = [], time.monotonic() + HANG
    try:
        while job.poll() is None and time.monotonic() < end:
            seen += [files for files in files_in(desk, programs[KINDS[0]]) if len(files - {"in"}) > 1]
            time.sleep(.01)
    finally:
        job.kill()
    assert job.wait() == 0, job.stderr.read()
    assert seen and not any("in" in files for files in seen)


def test_input_that_is_not_there_is_waited_for(programs, desk):
    status, err = sort_mpi(programs[KINDS[0]], KINDS[0], 2, ["-o", desk / "out.bam", desk / "none.cram"])
    assert status == 1
    assert err.count("none.cram") == 1
    assert not list(desk.iterdir())
