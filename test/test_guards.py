# SPDX-License-Identifier: MIT
"""The checks that make it safe to delete the input: a fault of memory, or of our code, between decoding and
encoding. Each ends the sort with status 1 and one message, and no file is left. faulty_samtools.c makes the
faults; the tests check that they are noticed, not by which function."""

import os
import pathlib
import re
import subprocess

import pytest

import bamgen
from conftest import BINARY, HANG, HTSLIB_LEAKS, PRECIOUS, SHORT, clean_env, launch, limit_on, run_sort, sorted_bytes
from test_safety import snapshot
from test_spill import arena, runs_in

FAULTY = pathlib.Path(os.path.realpath(BINARY)).parent / "faulty_samtools"
PLACES = {"memory": {}, "spilled": arena(262144)}
OUTPUTS = {"bam": [], "sam": ["-O", "sam"], "cram": ["-O", "cram", "--output-fmt-option", "no_ref=1"]}
TEAMS = (1, 2, 8)


@pytest.fixture(scope="module")
def reads(tmp_path_factory):
    """Some slices of records at different sorted places, shuffled."""
    r = bamgen.rng("guards")
    path = tmp_path_factory.mktemp("guards") / "in.bam"
    recs = [bamgen.record("r%06d" % i, pos=17 * i, seq=bamgen.bases(r, 60), tags=b"NMC%c" % (i % 7)) for i in range(3000)]
    r.shuffle(recs)
    path.write_bytes(bamgen.bam(bamgen.header(refs=[("c1", 1 << 20)]), recs))
    return path


@pytest.fixture
def desk(tmp_path):
    """A folder with older files that must survive, and a file that shows that a fault has happened."""
    if not FAULTY.exists():
        pytest.skip("no faulty_samtools: make check-programs")
    (tmp_path / "desk").mkdir()
    (tmp_path / "desk" / "out").write_bytes(PRECIOUS)
    return tmp_path / "desk"


def run_faulty(desk, args, fault, env):
    """The process, and whether the fault has happened."""
    told = desk.parent / "told"
    told.unlink(missing_ok=True)
    env = clean_env(**env, **HTSLIB_LEAKS, SAMTOOLS_FAULT=fault, SAMTOOLS_FAULT_TOLD=str(told))
    p = subprocess.run(**launch([FAULTY, "sort", "--no-PG", "-T", desk, *args], env, limit_on("CORE", 0)), cwd=desk, timeout=HANG,
                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    p.stderr = p.stderr.decode(errors="replace")
    return p, told.exists()


def noticed(desk, args, fault, env=PLACES["memory"]):
    """The fault happens, and ends with status 1 and one message. No file is made, changed or left."""
    before = snapshot(desk)
    p, happened = run_faulty(desk, ["-o", "out", *args], fault, env)
    assert happened, "%s did not happen: %s" % (fault, p.stderr)
    assert p.returncode == 1, (fault, p.returncode, p.stderr)
    assert len(re.findall("^samtools sort: .", p.stderr, re.M)) == 1, p.stderr
    assert snapshot(desk) == before
    return p.stderr


def forms(*names):
    return pytest.mark.parametrize("form", names)


faults = pytest.mark.parametrize
teams = pytest.mark.parametrize("n", TEAMS)
memories = pytest.mark.parametrize("where", PLACES)

# ---------------------------------------------------------------- the hooks themselves


@teams
@memories
@forms("bam", "sam")
def test_program_with_hooks_is_another_one(desk, reads, form, where, n):
    """Without a fault it works like the program."""
    args = ["-@", n, *OUTPUTS[form], reads]
    p, happened = run_faulty(desk, args, "nowhere:flip", PLACES[where])
    assert (p.returncode, happened) == (0, False), p.stderr
    assert p.stdout == sorted_bytes(["--no-PG", *args], env=PLACES[where])
    assert (runs_in(p.stderr) > 1) == (where == "spilled")


def test_hooks_are_in_the_program(desk):
    program, faulty = pathlib.Path(BINARY).read_bytes(), FAULTY.read_bytes()
    for trace in (b"SAMTOOLS_FAULT", b"__wrap_", b"__real_"):
        assert trace not in program, trace
    assert b"SAMTOOLS_FAULT" in faulty and b"__wrap_" in faulty


def test_environment_of_the_hooks_spoils_records(tmp_path, reads):
    env = {"SAMTOOLS_FAULT": "arena:flip", "SAMTOOLS_FAULT_TOLD": str(tmp_path / "told")}
    assert run_sort([reads], env=env).returncode == 0
    assert not (tmp_path / "told").exists()


# ---------------------------------------------------------------- records changed, lost, twice


KINDS = ("flip", "drop", "double", "both")


@teams
@memories
@forms(*OUTPUTS)
def test_fault_in_the_arena_passes(desk, reads, form, where, n):
    """The fault comes after decoding, before the sort."""
    for kind in KINDS:
        told = noticed(desk, ["-@", n, *OUTPUTS[form], reads], "arena:" + kind, PLACES[where])
        assert "records with checksum" in told, kind


@teams
@memories
def test_records_of_a_reader_are_lost_before_the_arena(desk, where, n):
    """The parser of SAM gives a slice, and its last record or all of its records are missing."""
    lines = ["r%d\t0\tc1\t%d\t9\t10M\t*\t0\t0\tACGTACGTAC\t*\n" % (i, 900 - i) for i in range(400)]
    (desk / "in.sam").write_text("@SQ\tSN:c1\tLN:9999\n" + "".join(lines))
    assert "fewer bytes than their slice" in noticed(desk, ["-@", n, "in.sam"], "slice:drop", PLACES[where])
    assert "into the sort: 400 records came in, but" in noticed(desk, ["-@", n, "in.sam"], "slice:lose", PLACES[where])


@teams
@forms(*OUTPUTS)
def test_fault_on_the_way_into_a_run_passes(desk, reads, form, n):
    """The slice is packed from wrong records, so that its own checksum is right."""
    for kind in KINDS:
        told = noticed(desk, ["-@", n, *OUTPUTS[form], reads], "run:%s:40:700" % kind, PLACES["spilled"])
        assert "records with checksum" in told, kind


@teams
@forms(*OUTPUTS)
def test_packed_slice_is_not_what_was_packed(desk, reads, form, n):
    """A disk or a page cache returns other data: the slice's checksum, each field of its header, its data."""
    for at in [0, 8, 16, 24, 40, 5000, 1 << 30]:
        told = noticed(desk, ["-@", n, *OUTPUTS[form], reads], "slice:flip:%d" % at, PLACES["spilled"])
        assert "temporary" in told


@teams
@forms(*OUTPUTS)
def test_slice_that_is_back_in_memory_changes(desk, reads, form, n):
    told = noticed(desk, ["-@", n, *OUTPUTS[form], reads], "unpacked:flip", PLACES["spilled"])
    assert "records with checksum" in told


@teams
@memories
@forms(*OUTPUTS)
@faults("place", ["merged", "block"])
def test_fault_behind_the_merge_passes(desk, reads, form, where, n, place):
    for kind in KINDS:
        told = noticed(desk, ["-@", n, *OUTPUTS[form], reads], "%s:%s:41" % (place, kind), PLACES[where])
        assert "records with checksum" in told, kind


LEVELS = [["-u"], ["-l", "1"], ["-l", "6"], []]  # each has its own encoder


@teams
@memories
@faults("verify", [[], ["--verify"]], ids=["plain", "verify"])
def test_fault_in_a_gathered_block_passes(desk, reads, where, n, verify):
    for level in LEVELS + [["-O", "sam"], ["-O", "sam.gz"]]:
        told = noticed(desk, ["-@", n, *level, *verify, reads], "gathered:flip:41:500", PLACES[where])
        assert "records with checksum" in told


@memories
@forms(*OUTPUTS)
def test_number_of_records_alone_is_wrong(desk, reads, form, where):
    """The count is wrong, but the sums agree."""
    assert "records with checksum" in noticed(desk, ["-@", 2, *OUTPUTS[form], reads], "count:flip", PLACES[where])


def test_index_that_htslib_refuses_passes(desk, reads):
    assert "index" in noticed(desk, ["-@", 2, "--write-index", reads], "index:drop:0:700")


# The bytes of a record that hold lengths and references, and some of each part.
FIELDS = [0, 1, 3, 4, 7, 8, 11, 12, 13, 16, 17, 18, 20, 22, 23, 24, 27, 28, 32, 36, 43, 44, 46, 48, 78, 1 << 20]


@forms(*OUTPUTS)
@faults("place,where", [("arena", "memory"), ("arena", "spilled"), ("unpacked", "spilled"), ("block", "memory")])
def test_wrong_bit_in_a_field_crashes_instead(desk, reads, form, place, where):
    """Lengths that no longer match the record: htslib, the index and the packing rely on them."""
    index = ["--write-index"] if form != "sam" else []
    for at in FIELDS[::3 if SHORT else 1]:
        told = noticed(desk, ["-@", 2, *OUTPUTS[form], *index, reads], "%s:flip:%d" % (place, at), PLACES[where])
        # An index may report it as a position: a valid one, in another place. If lengths differ, tags begin elsewhere,
        # and are broken.
        assert "Memory may be faulty" in told or (8 <= at < 12 and "index" in told) \
            or "has a broken tag" in told, (at, told)


@faults("order", [["-n"], ["-t", "NM"], ["--template-coordinate"], ["-M"]], ids="".join)
@faults("verify", [[], ["--verify"]], ids=["plain", "verify"])
def test_wrong_bit_in_a_field_crashes_a_comparison(desk, reads, order, verify):
    for at in FIELDS:
        noticed(desk, ["-@", 2, *order, *verify, reads], "arena:flip:%d" % at)


# ---------------------------------------------------------------- faults that only --verify finds


@teams
@memories
@faults("place", ["encoder", "deflated"])
def test_verify_passes_a_block_that_is_not_of_those_bytes(desk, reads, where, n, place):
    """The bytes change before the encoder has read them, but after the checksum was computed; or the encoded block
    changes: its header, data, CRC and size."""
    for level in LEVELS:
        for at in [11, 13, 30, 5000, 1 << 30]:
            told = noticed(desk, ["-@", n, "--verify", *level, reads], "%s:flip:%d" % (place, at), PLACES[where])
            assert "--verify" in told or "records with checksum" in told


@teams
@memories
@forms(*OUTPUTS)
@faults("place", ["arena", "merged"])
def test_verify_passes_records_in_the_wrong_order(desk, reads, form, where, n, place):
    """All are there, each unchanged: no checksum shows it."""
    told = noticed(desk, ["-@", n, "--verify", *OUTPUTS[form], reads], place + ":swap", PLACES[where])
    assert "belongs before" in told


@teams
@forms(*OUTPUTS)
def test_verify_passes_lists_in_the_wrong_order(desk, reads, form, n):
    """Each list is in order."""
    assert "belongs before" in noticed(desk, ["-@", n, "--verify", *OUTPUTS[form], reads], "merged:apart", PLACES["memory"])


# ---------------------------------------------------------------- htslib


@teams
@faults("kind", ["drop", "double"])
def test_htslib_loses_a_record_of_cram_or_writes_it_twice(desk, reads, n, kind):
    told = noticed(desk, ["-@", n, *OUTPUTS["cram"], reads], "htslib:" + kind)
    assert "htslib wrote" in told


@teams
@faults("form", ["sam", "sam.gz"])
def test_htslib_loses_a_line_of_sam(desk, reads, form, n):
    told = noticed(desk, ["-@", n, "-O", form, reads], "htslib:drop")
    assert "lines of htslib above may say why" in told


@teams
def test_verify_passes_a_block_of_sam_that_is_not_of_that_text(desk, reads, n):
    told = noticed(desk, ["-@", n, "--verify", "-O", "sam.gz", reads], "deflated:flip:30")
    assert "--verify" in told
