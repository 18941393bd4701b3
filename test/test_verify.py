# SPDX-License-Identifier: MIT
"""--verify and --checksum. unit_sink_verify.c also tests the faults that --verify finds."""

import re
import struct
import zlib

import pytest

import bamgen
from conftest import PRECIOUS, blocks, read_bam, run_sort, sorted_bytes
from test_safety import damage, refused, snapshot
from test_spill import MANY

LINE = re.compile(r"^records=(\d+) xxh3sum=([0-9a-f]{16})\n$")
ORDERS = [[], ["-n"], ["-N"], ["--picard"], ["-t", "NM"], ["-M"]]
FORMATS = [["-u"], ["-l", "1"], [], ["-l", "9"], ["-O", "sam"]]


def checksum(args, **kw):
    """Number of records and checksum."""
    n, digits = LINE.match(sorted_bytes([*args, "--checksum=-"], **kw).decode()).groups()
    return int(n), int(digits, 16)


# ---------------------------------------------------------------- --verify


@pytest.mark.parametrize("env", [{}, MANY], ids=["in_memory", "spilled"])
@pytest.mark.parametrize("order", ORDERS, ids="".join)
def test_verify_refuses_or_changes_sound_output(made, order, env):
    for form in FORMATS:
        args = ["--no-PG", "-@", 3, *order, *form, made("mixed")]
        assert sorted_bytes(["--verify", *args], env=env) == sorted_bytes(args), form


@pytest.mark.parametrize("name", ["header_only", "one_record", "long_records", "block_edges", "far_positions"])
def test_verify_refuses_odd_records(made, name):
    args = ["--no-PG", "-@", 2, "-n", made(name)]
    assert sorted_bytes(["--verify", *args]) == sorted_bytes(args)


def test_verify_passes_a_bit_that_was_flipped_after_compression(tmp_path, made, fault_shim):
    """The encoder (or the memory it wrote to) fails: the file could not be read."""
    (tmp_path / "out.bam").write_bytes(PRECIOUS)
    before = snapshot(tmp_path)
    args = ["-@", 2, "-l", "9", "-o", "out.bam", made("mixed")]
    for n in range(1, 5):
        env = fault_shim | {"FAULT_CALL": "libdeflate_deflate_compress", "FAULT_AT": str(n)}
        p = run_sort(["--verify", *args], cwd=tmp_path, env=env)
        assert p.returncode == 1 and re.search("--verify.*out.bam", p.stderr) and snapshot(tmp_path) == before
    assert run_sort(args, cwd=tmp_path, env=env).returncode == 0
    with pytest.raises((AssertionError, zlib.error)):
        blocks((tmp_path / "out.bam").read_bytes())


# ---------------------------------------------------------------- --checksum


@pytest.mark.parametrize("name", ["mixed", "wrong_bins", "cg_short", "long_records", "header_only", "seq_shapes"])
def test_checksum_depends_on_more_than_the_records(made, tmp_path, name):
    """Order, threads, level, memory; and for the output it is the same again."""
    out, seen = tmp_path / "out.bam", set()
    for args, env in (([], {}), (["-@", 3, "-n", "-u"], {}), (["-@", 2, "--picard"], MANY)):
        seen.add(checksum(["-o", out, *args, made(name)], env=env))
        seen.add(checksum(["-o", tmp_path / "again.bam", out]))
        order = [a for a in args if a in ("-n", "--picard")]
        seen.add(checksum(["--check", *order, out]))
    assert len(seen) == 1
    assert seen.pop()[0] == len(read_bam(out).records())


def test_checksum_is_none_of_the_whole(tmp_path):
    """It adds up: the checksums of two files give that of both; so every record counts."""
    head, recs = bamgen.CORPUS["mixed"]()
    parts = {"all": recs, "a": recs[::2], "b": recs[1::2], "one": recs[7:8], "twice": recs[7:8] * 2}
    sums = {}
    for name, some in parts.items():
        (tmp_path / name).write_bytes(bamgen.bgzf(head + b"".join(some)))
        sums[name] = checksum(["-o", tmp_path / "out.bam", tmp_path / name])
    assert sums["all"] == (len(recs), (sums["a"][1] + sums["b"][1]) % 2 ** 64)
    assert sums["twice"] == (2, 2 * sums["one"][1] % 2 ** 64)
    both = checksum(["-o", tmp_path / "out.bam", "--add-input", tmp_path / "b", tmp_path / "a"])
    assert both == sums["all"]


def test_checksum_overlooks_a_change(tmp_path):
    head, recs = bamgen.CORPUS["seq_shapes"]()
    known, r = set(), bamgen.rng("change")
    changed = [recs]
    for _ in range(20):
        i = r.randrange(len(recs))
        flag, = struct.unpack_from("<H", recs[i], 18)
        changed.append(recs[:i] + [recs[i][:18] + struct.pack("<H", flag ^ 1 << r.choice((9, 10))) + recs[i][20:]]
                       + recs[i + 1:])
    changed += [recs[1:], recs + recs[:1]]
    for some in changed:
        (tmp_path / "in.bam").write_bytes(bamgen.bgzf(head + b"".join(some)))
        known.add(checksum(["-o", tmp_path / "out.bam", tmp_path / "in.bam"]))
    assert len(known) == len({b"".join(sorted(some)) for some in changed})


def test_checksum_goes_elsewhere_than_to_its_file(tmp_path, made):
    (tmp_path / "sum").write_bytes(PRECIOUS)
    for args in (["-o", "out.bam"], ["--check"], ["-O", "sam", "-o", "out.sam"]):
        p = run_sort(["--checksum", "sum", *args, made("sorted")], cwd=tmp_path)
        assert p.returncode == 0 and p.stdout == b"", p.stderr
        assert LINE.match((tmp_path / "sum").read_text())
    data = sorted_bytes(["--no-PG", "--checksum=sum", made("mixed")], cwd=tmp_path)
    assert data == sorted_bytes(["--no-PG", made("mixed")])


def test_checksum_is_mixed_with_the_data(tmp_path, made):
    p = run_sort(["--checksum=-", made("mixed")], cwd=tmp_path)
    assert p.returncode == 1 and p.stdout == b"" and "standard output cannot be both output and checksum" in p.stderr


def test_checksum_of_a_failed_sort_is_left(desk, sound):
    data, found = sound
    (desk / "in.bam").write_bytes(damage(data, found, "crc", 150))
    (desk / "old").write_bytes(PRECIOUS)
    for name in "new", "old":
        refused(desk, ["-@", 2, "--checksum", name, "-o", "out.bam", "in.bam"], "in.bam")
    assert not run_sort(["--checksum=-", "-o", desk / "out.bam", desk / "in.bam"]).stdout


def test_checksum_that_cannot_be_written_is_lost_silently(desk, made):
    path = made("mixed")
    refused(desk, ["--checksum", "missing/sum", "-o", "out.bam", path], "missing/sum")
    refused(desk, ["--checksum", "/dev/full", "-o", "out.bam", path], "No space left")
    refused(desk, ["--checksum", "/dev/full", "--check", made("sorted")], "No space left")
