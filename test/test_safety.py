# SPDX-License-Identifier: MIT
"""Behaviour at failures: no wrong output, no partial output, no files left, an exit status that shows the failure,
and a helpful message."""

import array
import contextlib
import fcntl
import gzip
import os
import re
import shutil
import signal
import stat
import struct
import subprocess
import termios
import threading
import time
import zlib

import pytest

import bamgen
from conftest import (BINARY, HANG, HTSLIB_LEAKS, PRECIOUS, SANITIZED, SHORT, blocks, clean_env, launch, limit_on, oracle, oracle_batch, oracle_call,
                      oracle_process, read_bam, run, run_sort, same_bam, same_records, sorted_bytes)


def snapshot(folder):
    """Everything in a folder: name -> kind and content (a checksum)."""
    return {str(p.relative_to(folder)): (p.lstat().st_ino, oct(p.lstat().st_mode), p.lstat().st_size,
                                         zlib.crc32(p.read_bytes()) if p.is_file() else None)
            for p in sorted(folder.rglob("*"))}


def refused(folder, args, words=".", lines=6, **kw):
    """The sort fails with a message, writes nothing and changes nothing in the folder, its cwd. lines: the most
    lines of the message."""
    before = snapshot(folder)
    p = run_sort(args, cwd=folder, **kw)
    assert p.returncode == 1, (p.returncode, p.stderr)
    assert re.search(words, p.stderr), p.stderr
    assert len(p.stderr.splitlines()) <= lines, p.stderr
    assert not p.stdout and snapshot(folder) == before
    return p.stderr


# ---------------------------------------------------------------- damaged blocks


def damage(data, found, kind, n):
    """The file with its block n damaged in a way that BGZF, gzip or CRC can detect."""
    b = found[n]
    start, end = b.offset, b.offset + b.size
    new = bytearray(data)
    if kind == "crc":
        new[end - 8] ^= 1
    elif kind == "isize_low":
        new[end - 4] ^= 4
    elif kind == "isize_0":  # it states that it has no data: then its missing records would go unnoticed
        new[end - 4:end] = bytes(4)
    elif kind == "isize_huge":
        new[end - 1] = 0x7F
    elif kind == "payload":
        new[start + b.size // 2] ^= 0x10
    elif kind == "reserved_deflate_type":
        new[start + 18] |= 6
    elif kind == "bsize_small":
        new[start + 16:start + 18] = b"\x05\0"
    elif kind == "bsize_large":
        new[start + 16:start + 18] = b"\xff\xff"
    elif kind == "magic":
        new[start] = 0
    elif kind == "no_bc":
        new[start + 12:start + 14] = b"XX"
    elif kind == "method":
        new[start + 2] = 7
    elif kind.startswith("cut_"):
        keep = {"cut_in_magic": 1, "cut_in_header": 11, "cut_before_bsize": 16,
                "cut_in_payload": b.size // 2, "cut_in_footer": b.size - 3}[kind]
        del new[start + keep:]
    elif kind == "dropped":  # the records no longer fit together
        del new[start:end]
    elif kind == "junk_between":
        new[start:start] = b"junk that is no block"
    elif kind == "zeros_between":
        new[start:start] = bytes(512)
    elif kind == "gzip_between":
        new[start:start] = gzip.compress(b"other data")
    else:
        raise AssertionError(kind)
    return bytes(new)


KINDS = ["crc", "isize_low", "isize_0", "isize_huge", "payload", "reserved_deflate_type", "bsize_small",
         "bsize_large", "magic", "no_bc", "method", "cut_in_magic", "cut_in_header",
         "cut_before_bsize", "cut_in_payload", "cut_in_footer", "junk_between", "zeros_between",
         "gzip_between"]


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_block_passes_or_costs_the_old_output(desk, sound, kind, threads):
    data, found = sound
    n = len(found) - 9
    path = desk / "in.bam"
    path.write_bytes(damage(data, found, kind, n))
    if kind == "no_bc":  # then it is plain gzip, which is read
        assert sorted_bytes(["-u", "--no-PG", "-@", threads, path]) == sorted_bytes(["-u", "--no-PG"], stdin=data)
        return
    err = refused(desk, ["-@", threads, "-o", "out.bam", path])
    assert str(path) in err
    if kind != "gzip_between":  # that is read, and then the records do not continue
        assert re.search(r"offset %d\b" % found[n].offset, err), (found[n].offset, err)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [0, 1, -2], ids=["first", "second", "last"])
def test_damage_at_either_end_passes(desk, sound, kind, n):
    data, found = sound
    path = desk / "in.bam"
    path.write_bytes(damage(data, found, kind, len(found) - 2 if n == -2 else n))
    if kind == "no_bc":  # then it is plain gzip, which is read
        assert sorted_bytes(["-u", "--no-PG", path]) == sorted_bytes(["-u", "--no-PG"], stdin=data)
        return
    assert "in.bam" in refused(desk, ["-@", 2, "-o", "out.bam", "in.bam"])


@pytest.mark.parametrize("kind", ["crc", "cut_in_payload", "magic"])
def test_damaged_pipe_passes_or_hangs(desk, sound, kind, threads):
    data, found = sound
    refused(desk, ["-@", threads, "-o", "out.bam"], stdin=damage(data, found, kind, 150))


def test_damaged_eof_block_passes(desk, sound):
    data, _ = sound
    (desk / "in.bam").write_bytes(data[:-20])
    refused(desk, ["-@", 2, "-o", "out.bam", "in.bam"], "in.bam")


@pytest.mark.parametrize("tail", [b"x", b"\0" * 512, b"trailing junk", b"\x1f\x8b\x08\x04"],
                         ids=["byte", "zeros", "text", "magic"])
def test_junk_after_the_end_passes(desk, sound, tail):
    (desk / "in.bam").write_bytes(sound[0] + tail)
    assert oracle_process(["-o", desk / "x", desk / "in.bam"]).returncode == 1
    (desk / "x").unlink(missing_ok=True)
    refused(desk, ["-@", 2, "-o", "out.bam", "in.bam"], "in.bam")


def test_flipped_bit_passes():
    """A bit is flipped anywhere in the file. There is an error, or no difference (time stamp and the like in a gzip
    header)."""
    head, recs = bamgen.CORPUS["seq_shapes"]()
    data = bamgen.bgzf(head + b"".join(recs), size=150)
    plain = sorted_bytes(["--no-PG", "-l", "1"], stdin=data)
    r = bamgen.rng("flip")
    refusals = 0
    tried = r.sample(range(8 * len(data)), 60 if SHORT else 300)
    for bit in tried:
        new = bytearray(data)
        new[bit // 8] ^= 1 << bit % 8
        p = run_sort(["--no-PG", "-l", "1", "-@", 2], stdin=bytes(new))
        assert p.returncode == 1 or (p.returncode, p.stdout) == (0, plain), (bit, p.stderr)
        refusals += p.returncode
    assert refusals > 2 * len(tried) // 3


def test_cut_file_passes():
    """The file is cut at any byte. There is an error, or all records and a warning if only the EOF block is missing."""
    head, recs = bamgen.CORPUS["seq_shapes"]()
    data = bamgen.bgzf(head + b"".join(recs), size=150)
    plain = sorted_bytes(["--no-PG", "-l", "1"], stdin=data)
    for n in range(0, len(data), 11 if SHORT else 3):
        p = run_sort(["--no-PG", "-l", "1", "-@", 2], stdin=data[:n])
        assert p.returncode == 1 and p.stderr, n
    p = run_sort(["--no-PG", "-l", "1", "-@", 2], stdin=data[:-28])
    assert (p.returncode, p.stdout) == (0, plain) and "EOF" in p.stderr


def test_several_damages_give_several_messages(desk, sound):
    """The first error wins and is reported once, even if many tasks find one."""
    data, found = sound
    new = bytearray(data)
    for b in found[20:-5]:
        new[b.offset + b.size - 8] ^= 1
    (desk / "in.bam").write_bytes(new)
    err = refused(desk, ["-@", 8, "-o", "out.bam", "in.bam"])
    assert len(err.splitlines()) == 1, err


def test_block_of_more_than_64_kib_overruns_its_place(desk):
    """ISIZE and deflate data agree on 70,000 bytes: more than BGZF allows."""
    plain = bamgen.header() + b"".join(
        bamgen.record("r%d" % i, 0, 0, i) for i in range(1600))
    assert len(plain) > 70000
    z = zlib.compressobj(9, zlib.DEFLATED, -15)
    deflated = z.compress(plain) + z.flush()
    good = bytearray(bamgen.block(b"x" * 100))
    size = 18 + len(deflated) + 8
    big = (bytes(good[:16]) + (size - 1).to_bytes(2, "little") + deflated
           + zlib.crc32(plain).to_bytes(4, "little") + len(plain).to_bytes(4, "little"))
    (desk / "in.bam").write_bytes(big + bamgen.EOF_BLOCK)
    refused(desk, ["-@", 2, "-o", "out.bam", "in.bam"], "in.bam")


# ---------------------------------------------------------------- damaged records

raw = bamgen.raw_record
CIGAR9 = b"r\0" + bamgen.cigar_bytes([(9, "M")]) + b"\x11\x11" + b"\xff" * 4
BAD_RECORDS = {
    "block_size_31": raw(body=b"", block_size=31),
    "block_size_0": raw(body=b"", block_size=0),
    "block_size_negative": raw(body=b"", block_size=-1),
    "block_size_most_negative": raw(body=b"", block_size=-1 << 31),
    "block_size_2_gib": raw(block_size=(1 << 31) - 1),
    "block_size_past_the_end": raw(block_size=1 << 20),
    "name_length_0": raw(l_name=0, body=b"abcd"),
    "name_length_0_and_nothing_else": raw(l_name=0, body=b""),
    "name_longer_than_record": raw(l_name=200),
    "ref_id_too_large": raw(tid=3),
    "ref_id_huge": raw(tid=(1 << 31) - 1),
    "ref_id_below_minus_1": raw(tid=-2),
    "mate_ref_id_too_large": raw(mtid=3),
    "mate_ref_id_below_minus_1": raw(mtid=-1 << 31),
    "seq_length_negative": raw(l_seq=-1),
    "seq_length_most_negative": raw(l_seq=-1 << 31),
    "seq_longer_than_record": raw(l_seq=100),
    "seq_length_2_gib": raw(l_seq=(1 << 31) - 1),
    "cigar_longer_than_record": raw(n_cigar=5),
    "cigar_of_65535_operations_not_there": raw(n_cigar=65535),
    "cigar_and_seq_differ": raw(n_cigar=1, l_seq=4, body=CIGAR9),
    "cigar_operation_unknown": raw(n_cigar=1, l_seq=4, body=b"r\0" + (4 << 4 | 9).to_bytes(
        4, "little") + b"\x11\x11" + b"\xff" * 4),
    "cg_promised_but_tags_broken": bamgen.record("r", 0, 0, 5, cigar=[(4, "S"), (4, "N")],
                                                tags=b"XXi\1"),
}
ENDS_INSIDE = ("block_size_2_gib", "block_size_past_the_end")


def bad_file(bad, good_before=5, layout="own_block"):
    """Five valid records, the bad one, five valid ones; and the bad one's block."""
    head = bamgen.header()
    good = [bamgen.record("good%d" % i, 0, 0, 100 - i) for i in range(10)]
    before, after = b"".join(good[:good_before]), b"".join(good[good_before:])
    at = len(head) + len(before)
    cuts = {"own_block": [len(head), at, at + len(bad)], "one_block": [],
            "bytes": range(1, at + len(bad) + len(after)), "no_blocks": None}[layout]
    data = head + before + bad + after
    return data if cuts is None else bamgen.bgzf(data, cuts), at


@pytest.mark.parametrize("name", BAD_RECORDS)
def test_bad_record_passes_or_is_not_named(desk, name):
    data, at = bad_file(BAD_RECORDS[name])
    path = desk / "in.bam"
    path.write_bytes(data)
    assert oracle_process(["-o", desk / "x", path]).returncode == 1, "samtools takes it"
    (desk / "x").unlink(missing_ok=True)
    offsets = [b.offset for b in blocks(data)]
    for n in (1, 3):
        err = refused(desk, ["-@", n, "-o", "out.bam", path])
        assert str(path) in err
        assert re.search(r"\brecord 6\b", err), err
        assert re.search(r"\b%d\b" % at, err), "uncompressed offset %d: %s" % (at, err)
        assert int(re.search(r"offset (\d+)", err).group(1)) in offsets[2:], err


@pytest.mark.skipif(SANITIZED, reason="time")
def test_record_full_of_what_looks_like_records_costs_minutes(tmp_path):
    """Each block is a chain of small records that breaks at its end; its twin has no such chain."""
    false = bamgen.raw_record(-1, l_name=1, flag=4, body=b"\0") * (bamgen.BLOCK // 37 - 1)
    false += b"\xff" * (bamgen.BLOCK - len(false))
    seconds = []
    for inside in (false, b"\xff" * len(false)):
        tag = inside * 320
        rec = bamgen.record(tags=b"XXBC" + struct.pack("<I", len(tag)) + tag)
        data = bamgen.header() + rec
        cuts = range(len(data) - len(tag), len(data), bamgen.BLOCK)
        (tmp_path / "in.bam").write_bytes(bamgen.bgzf(data, cuts, level=1))
        before = os.times()
        out = sorted_bytes(["-u", "-m", "100M", tmp_path / "in.bam"])
        seconds.append(os.times().children_user - before.children_user)
        assert read_bam(out).body == rec
    assert seconds[0] < 5 * seconds[1] + 0.5


@pytest.mark.parametrize("layout", ["one_block", "bytes", "no_blocks"])
@pytest.mark.parametrize("name", BAD_RECORDS)
def test_bad_record_passes_in_another_layout(desk, name, layout):
    data, at = bad_file(BAD_RECORDS[name], layout=layout)
    (desk / "in.bam").write_bytes(data)
    err = refused(desk, ["-@", 2, "-o", "out.bam", "in.bam"])
    assert re.search(r"\brecord 6\b", err) and re.search(r"\bbyte %d\b" % at, err), err
    assert ("the file ends inside record" in err) == (name in ENDS_INSIDE), err


@pytest.mark.parametrize("where", [0, 10], ids=["first", "last"])
@pytest.mark.parametrize("name", BAD_RECORDS)
def test_bad_record_passes_at_either_end(desk, name, where):
    (desk / "in.bam").write_bytes(bad_file(BAD_RECORDS[name], where)[0])
    err = refused(desk, ["-@", 2, "-o", "out.bam", "in.bam"])
    assert re.search(r"\brecord %d\b" % (where + 1), err), err


def test_bad_record_among_many_gets_the_wrong_number(desk, threads):
    """Its number counts records of the complete file, over many blocks and tasks."""
    head, recs = bamgen.CORPUS["mixed"]()
    for n in (1234, 2999):
        data = bamgen.bgzf(head + b"".join(recs[:n]) + BAD_RECORDS["ref_id_too_large"]
                           + b"".join(recs[n:]), size=4093, level=1)
        (desk / "in.bam").write_bytes(data)
        err = refused(desk, ["-@", threads, "-o", "out.bam", "in.bam"])
        assert re.search(r"\brecord %d\b" % (n + 1), err), err


def test_name_without_nul_comes_out_otherwise_than_from_samtools(desk):
    """samtools adds the NUL."""
    head, recs = bamgen.missing_name_nul()
    path = desk / "in.bam"
    path.write_bytes(bamgen.bgzf(head + b"".join(recs)))
    p = run_sort(["--no-PG", "-@", 2, "-o", "new.bam", path], cwd=desk)
    assert p.returncode == 0, p.stderr
    same_bam(read_bam(desk / "new.bam"), oracle(path, "--no-PG"))


@pytest.mark.parametrize("seed", range(4))
def test_random_damage_to_records_is_judged_otherwise_than_by_samtools(tmp_path, seed):
    """The CRCs are right, but bytes of records are not. We accept and refuse the same files as samtools, and write the
    same records. Records that samtools itself cannot view may be refused."""
    r = bamgen.rng("mutate %d" % seed)
    paths = [tmp_path / ("%d.bam" % i) for i in range(100)]
    for path in paths:
        path.write_bytes(bamgen.mutated(r))
    theirs = oracle_batch(paths)
    assert {0, 1} == set(theirs)
    for path, status in zip(paths, theirs):
        p = run_sort(["--no-PG", "-l", "1", "-@", r.choice((1, 3)), path])
        if (status, p.returncode) == (0, 1) and "no program could read the file" in p.stderr:
            assert oracle_call("view", ["-o", os.devnull, "%s.theirs" % path])[0] == 1, p.stderr
            continue
        assert p.returncode == status, (path, p.stderr)
        if status == 0:
            same_bam(read_bam(p.stdout), read_bam("%s.theirs" % path))


@pytest.mark.parametrize("cut", ["1 byte", "size word", "fixed fields", "name", "last byte"])
@pytest.mark.parametrize("eof", [True, False], ids=["eof", "no-eof"])
def test_record_cut_at_a_block_edge_is_dropped_silently(desk, cut, eof, threads):
    """Every block is valid and so is the end marker, but the last record is cut."""
    head, recs = bamgen.CORPUS["sorted"]()
    keep = {"1 byte": 1, "size word": 3, "fixed fields": 20, "name": 37,
            "last byte": len(recs[-1]) - 1}[cut]
    data = bamgen.bgzf(head + b"".join(recs[:-1]) + recs[-1][:keep], size=4093, eof=eof)
    (desk / "in.bam").write_bytes(data)
    err = refused(desk, ["-@", threads, "-o", "out.bam", "in.bam"])
    assert re.search(r"record %d\b" % len(recs), err), err


# ---------------------------------------------------------------- not BAM at all


NOT_BAM = {
    "empty": b"",
    "one_byte": b"\x1f",
    "gzip_magic": b"\x1f\x8b\x08\x04",
    "eof_block_only": bamgen.EOF_BLOCK,
    "eof_blocks_only": bamgen.EOF_BLOCK * 3,
    "magic_only": bamgen.bgzf(b"BAM\1"),
    "random": bamgen.rng("noise").randbytes(100000),
    "text": b"hello, world\n" * 1000,
    "text_in_bgzf": bamgen.bgzf(b"hello, world\n" * 10000),
    "zeros": bytes(100000),
    "bai": b"BAI\1" + bytes(100),
    "half_a_header_block": bamgen.bgzf(bamgen.header())[:30],
}


@pytest.mark.parametrize("way", ["file", "pipe"])
@pytest.mark.parametrize("what", NOT_BAM)
def test_something_else_is_sorted_as_bam(desk, what, way):
    (desk / "in.bam").write_bytes(NOT_BAM[what])
    assert oracle_process(["-o", desk / "x", desk / "in.bam"]).returncode == 1
    (desk / "x").unlink(missing_ok=True)
    for n in (1, 3):
        if way == "file":
            refused(desk, ["-@", n, "-o", "out.bam", "in.bam"], "in.bam")
        else:
            refused(desk, ["-@", n, "-o", "out.bam", "-"], stdin=NOT_BAM[what])


def test_failure_writes_a_valid_end_to_standard_output(sound):
    """A reader of the pipe must notice the failure: no EOF block after an error."""
    data, found = sound
    p = run_sort(["-@", "2"], stdin=damage(data, found, "crc", len(found) - 9))
    assert p.returncode == 1
    assert not p.stdout.endswith(bamgen.EOF_BLOCK)


# ---------------------------------------------------------------- only a warning


@pytest.mark.parametrize("way", ["file", "pipe"])
def test_missing_eof_block_is_an_error_or_not_told(made, tmp_path, way, threads):
    path = made("mixed", "no_eof")
    args = ["--no-PG", "-@", threads, "-o", tmp_path / "out.bam"]
    p = run_sort([*args, path]) if way == "file" else run_sort(args, stdin=path.read_bytes())
    assert p.returncode == 0, p.stderr
    assert re.search(r"EOF (marker|block)", p.stderr), p.stderr
    same_bam(read_bam(tmp_path / "out.bam"), oracle(made("mixed"), "--no-PG"))


@pytest.mark.parametrize("verbosity", ["0", "1", "3"])
def test_low_verbosity_hides_errors(tmp_path, sound, verbosity):
    """Exit status 1 always has its reason on stderr, as in samtools."""
    data, found = sound
    (tmp_path / "in.bam").write_bytes(damage(data, found, "crc", 150))
    assert oracle_process(["--verbosity", verbosity, tmp_path / "in.bam"]).stderr
    assert run_sort(["--verbosity", verbosity, "missing.bam"]).stderr
    refused(tmp_path, ["--verbosity", verbosity, "-o", "out.bam", "in.bam"], "in.bam")


def test_sound_file_is_warned_of(made):
    assert "EOF" not in run_sort(["-@", "2", made("mixed")]).stderr


# ---------------------------------------------------------------- the output file


def test_missing_input_truncates_output(desk):
    refused(desk, ["-o", "out.bam", "missing.bam"], "missing.bam")


@pytest.mark.parametrize("spell", ["{}", "./{}", "{}/../{}"], ids=["same", "dot", "hardlink"])
def test_sorting_in_place_loses_the_file(tmp_path, made, spell, threads):
    """-o may be the input, under any of its names."""
    path = tmp_path / "x.bam"
    shutil.copy(made("mixed"), path)
    target = path
    if spell == "./{}":
        target = "./x.bam"
    elif spell != "{}":
        target = tmp_path / "y.bam"
        os.link(path, target)
    p = run_sort(["--no-PG", "-@", threads, "-o", target, path], cwd=tmp_path)
    assert p.returncode == 0, p.stderr
    same_bam(read_bam(tmp_path / target), oracle(made("mixed"), "--no-PG"))


def test_failed_sort_in_place_damages_the_input(tmp_path, sound):
    data, found = sound
    (tmp_path / "x.bam").write_bytes(damage(data, found, "crc", len(found) - 9))
    refused(tmp_path, ["-@", 2, "-o", "x.bam", "x.bam"], "x.bam")


def test_old_output_is_rewritten_instead_of_replaced(desk, made):
    """Programs that have the old file open keep reading the old file."""
    with open(desk / "out.bam", "rb") as old:
        p = run_sort(["-o", "out.bam", made("ties")], cwd=desk)
        assert p.returncode == 0, p.stderr
        assert old.read() == PRECIOUS
    assert read_bam(desk / "out.bam").body == oracle(made("ties")).body
    assert os.listdir(desk) == ["out.bam"]


@pytest.mark.parametrize("link,target", [("out.bam", "real.bam"), ("out.bam", "sub/real.bam"),
                                         ("sub/out.bam", "../real.bam")])
@pytest.mark.parametrize("exists", [True, False], ids=["exists", "dangling"])
def test_symbolic_link_is_replaced_by_a_file(tmp_path, made, link, target, exists):
    (tmp_path / "sub").mkdir()
    (tmp_path / link).symlink_to(target)
    real = tmp_path / "sub" / target if link.startswith("sub") else tmp_path / target
    if exists:
        real.write_bytes(PRECIOUS)
    p = run_sort(["--no-PG", "-o", link, made("ties")], cwd=tmp_path)
    assert p.returncode == 0, p.stderr
    assert (tmp_path / link).is_symlink() and not real.is_symlink()
    same_records(read_bam(real), oracle(made("ties"), "--no-PG"))
    assert len([p for p in tmp_path.rglob("*") if p.is_file() and not p.is_symlink()]) == 1


def test_chain_of_links_to_input_loses_the_file(tmp_path, made):
    shutil.copy(made("ties"), tmp_path / "x.bam")
    (tmp_path / "one").symlink_to("x.bam")
    (tmp_path / "two").symlink_to("one")
    p = run_sort(["--no-PG", "-o", "two", "x.bam"], cwd=tmp_path)
    assert p.returncode == 0, p.stderr
    assert (tmp_path / "one").is_symlink() and (tmp_path / "two").is_symlink()
    same_bam(read_bam(tmp_path / "x.bam"), oracle(made("ties"), "--no-PG"))


def in_name_space(command, **kw):
    """The start of a command line that has its own mount name space and runs `command` in it first."""
    argv = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
    argv += ["sh", "-c", command + ' && exec "$0" "$@"']
    try:
        if subprocess.run([*argv, "true"], capture_output=True, timeout=HANG, **kw).returncode:
            pytest.skip("cannot mount in a name space here")
    except FileNotFoundError:
        pytest.skip("no unshare here")
    return argv


def test_link_to_itself_hangs(tmp_path, made):
    (tmp_path / "out.bam").symlink_to("out.bam")
    refused(tmp_path, ["-o", "out.bam", made("ties")], "out.bam")


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o664, 0o755], ids=oct)
def test_mode_of_the_old_file_is_lost(desk, made, mode):
    (desk / "out.bam").chmod(mode)
    p = run_sort(["-o", "out.bam", made("ties")], cwd=desk)
    assert p.returncode == 0, p.stderr
    assert stat.S_IMODE((desk / "out.bam").stat().st_mode) == mode


@pytest.mark.parametrize("mask", [0o022, 0o027, 0o077, 0o000], ids=oct)
def test_new_file_disobeys_umask(tmp_path, made, mask):
    p = run_sort(["-o", "new.bam", made("ties")], cwd=tmp_path, before="os.umask(%d)" % mask)
    assert p.returncode == 0, p.stderr
    assert stat.S_IMODE((tmp_path / "new.bam").stat().st_mode) == 0o666 & ~mask


def test_owner_of_the_old_file_is_lost(desk, made):
    if os.geteuid() != 0:
        pytest.skip("only root may give files away")
    os.chown(desk / "out.bam", 12345, 54321)
    (desk / "out.bam").chmod(0o4750)
    p = run_sort(["-o", "out.bam", made("ties")], cwd=desk)
    assert p.returncode == 0, p.stderr
    st = (desk / "out.bam").stat()
    assert (st.st_uid, st.st_gid, stat.S_IMODE(st.st_mode)) == (12345, 54321, 0o4750)


def old_output(folder, folder_mode, mode):
    """An older output file in a separate folder."""
    os.mkdir(folder)
    os.chmod(folder, folder_mode)
    old = folder + "/out.bam"
    with open(old, "wb") as f:
        f.write(PRECIOUS)
    os.chmod(old, mode)
    return old


@pytest.mark.skipif(os.geteuid() != 0, reason="needs two users")
def test_group_of_another_users_file_is_lost(public_dir, made):
    """A user who shares it by its group can replace it, and still shares it after that."""
    old = old_output(public_dir + "/team", 0o770, 0o660)
    for x in (old, public_dir + "/team"):
        os.chown(x, 12345, 54321)

    become = "os.setgroups([54321])\nos.setgid(23456)\nos.setuid(23456)"
    p = sort_in_public(public_dir, ["-o", old], become, input=made("ties").read_bytes())
    assert p.returncode == 0, p.stderr
    assert (os.stat(old).st_gid, stat.S_IMODE(os.stat(old).st_mode)) == (54321, 0o660)


@pytest.mark.parametrize("mode", [0o666, 0o4676])
def test_owner_that_a_container_does_not_know_costs_the_mode(desk, made, mode):
    """Its group is then another one, which gets the rights of others."""
    if os.geteuid() != 0 or not shutil.which("unshare") or subprocess.run(["unshare", "-r", "true"], check=False).returncode:
        pytest.skip("needs two users and a name space")
    os.chown(desk / "out.bam", 12345, 54321)
    (desk / "out.bam").chmod(mode)
    p = subprocess.run(["unshare", "-r", BINARY, "sort", "-o", "out.bam", made("ties")], cwd=desk, capture_output=True,
                       env=clean_env(), timeout=HANG)
    assert p.returncode == 0, p.stderr
    assert stat.S_IMODE((desk / "out.bam").stat().st_mode) == 0o666


@pytest.mark.parametrize("named", [False, True], ids=["unnamed", "named"])
def test_others_can_read_data_that_are_not_whole(desk, made, fault_shim, named):
    """Output and temporary files while they are written, with any umask."""
    env = fault_shim | {"SAMTOOLS_OMP_ARENA": "262144"} | ({"FAULT_NAMED": "1"} if named else {})
    data = made("mixed").read_bytes()
    with start(["-@", 2, "-T", "x", "-o", "out.bam"], env=env, stdin=subprocess.PIPE, cwd=desk,
               before="os.umask(0)") as p:
        feed(p, data[:-1000])
        until(lambda: writes_below(p, desk), p)
        fds = "/proc/%d/fd/" % p.pid
        ours = [fds + n for n in os.listdir(fds) if os.readlink(fds + n).startswith(str(desk))]
        assert [stat.S_IMODE(os.stat(path).st_mode) for path in ours] == [0o600] * 2
        p.kill()
        p.stdin.close()


@pytest.mark.parametrize("kind", ["file", "folder", "link", "dangling", "pipe"])
def test_planted_temporary_name_is_followed_or_overwritten(desk, made, kind):
    """The name that the output has for a moment is predictable: it contains the process's number."""
    (desk / "victim").write_bytes(PRECIOUS)

    plant = {"file": "os.link('victim', name)", "folder": "os.mkdir(name)", "pipe": "os.mkfifo(name)",
             "link": "os.symlink('victim', name)", "dangling": "os.symlink('nowhere', name)"}[kind]
    before = "for i in range(3):\n    name = '.out.bam.tmp-%d-%d' % (os.getpid(), i)\n    " + plant
    p = run_sort(["--no-PG", "-o", "out.bam", made("ties")], cwd=desk, before=before)
    assert p.returncode == 0, p.stderr
    planted = [x for x in desk.iterdir() if x.name.startswith(".out.bam.tmp-")]
    assert len(planted) == 3 and (desk / "victim").read_bytes() == PRECIOUS and not (desk / "nowhere").exists()
    assert all(x.is_symlink() == (kind in ("link", "dangling")) for x in planted)
    assert not (desk / "out.bam").is_symlink() and sorted(os.listdir(desk))[3:] == ["out.bam", "victim"]
    same_bam(read_bam(desk / "out.bam"), oracle(made("ties"), "--no-PG"))


def test_long_or_odd_output_name_fails(tmp_path, made):
    """A temporary name made from it must not get too long, nor be read as a pattern."""
    for name in ("n" * 251 + ".bam", " leading space", "percent%sXXXXXX", "new\nline", "-dash"):
        p = run_sort(["--no-PG", "-o", name, made("ties")], cwd=tmp_path)
        assert p.returncode == 0, p.stderr
        same_bam(read_bam(tmp_path / name), oracle(made("ties"), "--no-PG"))
        assert os.listdir(tmp_path) == [name]
        (tmp_path / name).unlink()


def test_two_sorts_to_one_output_mix(tmp_path, made):
    path = made("mixed")
    with contextlib.ExitStack() as stack:
        ps = [stack.enter_context(start(["--no-PG", "-@", 2, "-o", tmp_path / "out.bam", path]))
              for _ in range(6)]
        assert [p.wait(HANG) for p in ps] == [0] * 6
    same_bam(read_bam(tmp_path / "out.bam"), oracle(path, "--no-PG"))
    assert os.listdir(tmp_path) == ["out.bam"]


# ---------------------------------------------------------------- pipes and devices


@contextlib.contextmanager
def device(tmp_path, name, minor):
    """A separate node: a test must not endanger the machine's /dev/null."""
    node = tmp_path / name
    try:
        os.mknod(node, stat.S_IFCHR | 0o666, os.makedev(1, minor))
        with open(node, "wb"):
            pass
    except OSError:
        if os.geteuid() == 0:
            pytest.skip("no device nodes here")
        node = "/dev/" + name
    yield node
    assert stat.S_ISCHR(os.stat(node).st_mode), "the device was replaced"


def test_null_device_is_replaced_by_a_file(tmp_path, made):
    with device(tmp_path, "null", 3) as node:
        before = os.listdir(tmp_path)
        p = run_sort(["-@", 2, "-o", node, made("mixed")])
        assert p.returncode == 0, p.stderr
        assert os.listdir(tmp_path) == before


def test_link_to_null_device_is_replaced_by_a_file(tmp_path, made):
    with device(tmp_path, "null", 3) as node:
        (tmp_path / "out.bam").symlink_to(node)
        p = run_sort(["-@", 2, "-o", tmp_path / "out.bam", made("mixed")])
        assert p.returncode == 0, p.stderr
        assert (tmp_path / "out.bam").is_symlink()


@pytest.mark.parametrize("name", ["mixed", "header_only"])
def test_full_device_is_not_noticed(tmp_path, made, name, threads):
    with device(tmp_path, "full", 7) as node:
        p = run_sort(["-@", threads, "-o", node, made(name)])
        assert p.returncode == 1
        assert "No space left" in p.stderr, p.stderr


def test_full_device_as_standard_output_is_not_noticed(made, threads):
    with open("/dev/full", "wb") as full:
        p = subprocess.run([BINARY, "sort", "-@", str(threads), made("mixed")], stdout=full,
                           stderr=subprocess.PIPE, env=clean_env(), timeout=HANG)
    assert p.returncode == 1 and b"No space left" in p.stderr


def test_named_pipe_as_output_is_replaced_by_a_file(tmp_path, made, threads):
    fifo = tmp_path / "out.fifo"
    os.mkfifo(fifo)
    got = []
    reader = threading.Thread(target=lambda: got.append(fifo.read_bytes()), daemon=True)
    reader.start()
    p = run_sort(["--no-PG", "-@", threads, "-o", fifo, made("mixed")])
    assert p.returncode == 0, p.stderr
    reader.join(HANG)
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    same_bam(read_bam(got[0]), oracle(made("mixed"), "--no-PG"))


def test_sort_stands_still_while_its_reader_is_busy(long_write):
    """A pipe holds more than its default of 64 KiB."""
    if not hasattr(fcntl, "F_GETPIPE_SZ"):
        pytest.skip("no telling how large a pipe is")
    with start(["-u", "-@", 2, long_write], stdout=subprocess.PIPE) as p:
        until(lambda: unread(p.stdout) > 64 << 10, p)


def test_dev_stdout_is_replaced_by_a_file(tmp_path, made):
    p = run_sort(["--no-PG", "-o", "/dev/stdout", made("ties")], cwd=tmp_path)
    assert p.returncode == 0, p.stderr
    same_bam(read_bam(p.stdout), oracle(made("ties"), "--no-PG"))
    assert os.listdir(tmp_path) == []


def test_standard_output_is_written_from_the_start_of_the_file(tmp_path, made):
    """After `echo x > f; samtools sort ... >> f` both outputs are in f."""
    path = tmp_path / "f"
    path.write_bytes(b"lead")
    with open(path, "ab") as out:
        p = subprocess.run([BINARY, "sort", "--no-PG", "-@", "2", made("ties")], stdout=out,
                           env=clean_env(), timeout=HANG)
    assert p.returncode == 0
    data = path.read_bytes()
    assert data[:4] == b"lead" and data[4:] == sorted_bytes(["--no-PG", made("ties")])


def test_closed_standard_output_passes(tmp_path, made):
    p = subprocess.run(["sh", "-c", 'exec "$0" sort "$1" >&-', BINARY, made("mixed")], cwd=tmp_path,
                       stderr=subprocess.PIPE, env=clean_env(), timeout=HANG)
    assert p.returncode == 1 and p.stderr


@pytest.mark.parametrize("ignored", [False, True], ids=["default", "ignored"])
def test_reader_that_goes_away_hangs_the_sort(long_write, threads, ignored):
    """`samtools sort | head -c 100`, with and without SIGPIPE."""
    leave_reading(["-u", "-@", threads, long_write], ignored)


def limited(size):
    """Returns a statement for launch(): files may grow to size bytes, a full disk that needs no disk."""
    return "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n" + limit_on("FSIZE", size)


@pytest.mark.parametrize("part", [0, 0.5, 1], ids=["at-once", "midway", "last-byte"])
def test_full_disk_costs_the_old_output_or_leaves_a_file(desk, made, part, threads):
    path = made("mixed")
    size = len(sorted_bytes(["-l", "1", "-@", threads, "-o", "-", path]))
    before = limited(max(4096, int(size * part) - 2))     # clang's OpenMP runtime makes a file of 1024 bytes
    refused(desk, ["-l", "1", "-@", threads, "-o", "o.bam", path], "o.bam", before=before)
    refused(desk, ["-l", "1", "-@", threads, "-o", "out.bam", path], "out.bam", before=before)


@pytest.fixture
def small_disk(tmp_path):
    """Runs a program in a folder that is a separate file system of 256 KiB."""
    (tmp_path / "disk").mkdir()
    argv = [*in_name_space("mount -t tmpfs -o size=256k none disk && cd disk", cwd=tmp_path), "sh", "-c",
            'printf %s "$OLD" >out.bam && { "$0" "$@"; status=$?; ls -A; cat out.bam; exit $status; }']
    return lambda args: subprocess.run([*argv, BINARY, "sort", *map(str, args)], capture_output=True, timeout=HANG,
                                       env=clean_env(OLD=PRECIOUS.decode(), **HTSLIB_LEAKS), cwd=tmp_path)


@pytest.mark.parametrize("args", [["-u"], ["-l", "1", "--write-index"], ["-O", "sam"], ["-O", "cram,no_ref=1"]],
                         ids=lambda a: a[-1])
def test_full_disk_is_not_told_or_costs_the_old_output(small_disk, long_write, args, threads):
    p = small_disk(["-@", threads, *args, "-o", "out.bam", long_write])
    assert p.returncode == 1, p.stderr
    assert len(re.findall(rb"^samtools sort: .*out.bam", p.stderr, re.M)) == 1, p.stderr
    if args[-1] != "cram,no_ref=1" or threads > 1:   # without threads, htslib does not report the cause
        assert b"No space left" in p.stderr
    assert p.stdout == b"out.bam\n" + PRECIOUS


def test_index_that_does_not_fit_is_not_told_or_costs_the_old_output(desk, made):
    for index in "/dev/full", "missing/x.csi":
        err = refused(desk, ["-@", 2, "--write-index", "-o", "out.bam##idx##" + index, made("mixed")], env=HTSLIB_LEAKS)
        assert "index" in err or index in err


# ---------------------------------------------------------------- before reading


def fails_before_reading(argv, **kw):
    """Fails while its standard input is still open and silent."""
    r, w = os.pipe()
    try:
        return subprocess.run([BINARY, "sort", *map(str, argv)], stdin=r, capture_output=True,
                              env=clean_env(), timeout=min(HANG, 20), **kw)
    finally:
        os.close(r)
        os.close(w)


@pytest.mark.parametrize("out", ["missing/out.bam", "file/out.bam", ".", "sub", "sub/", "new/", "",
                                 "n" * 256], ids=lambda v: v[:20] or "empty")
def test_impossible_output_is_told_only_after_reading(tmp_path, out):
    (tmp_path / "file").write_bytes(PRECIOUS)
    (tmp_path / "sub").mkdir()
    before = snapshot(tmp_path)
    p = fails_before_reading(["-@", 2, "-o", out], cwd=tmp_path)
    assert p.returncode == 1, p.stderr
    assert out.encode() in p.stderr
    assert snapshot(tmp_path) == before


# Statement for launch(): makes the process another user's, where the tests are run by root.
NOBODY = "if os.geteuid() == 0:\n    os.setuid(65534)"


def sort_in_public(public_dir, args, before=NOBODY, env=None, **kw):
    """The result of a sort by another user."""
    return subprocess.run(**launch([public_dir + "/program", "sort", *args], clean_env(**(env or {})), before),
                          capture_output=True, timeout=HANG, **kw)


def test_unwritable_folder_is_told_only_after_reading(public_dir):
    os.mkdir(public_dir + "/closed", 0o555)
    r, w = os.pipe()
    p = sort_in_public(public_dir, ["-o", public_dir + "/closed/out.bam"], stdin=r)
    os.close(r)
    os.close(w)
    assert p.returncode == 1 and b"closed/out.bam" in p.stderr, p.stderr
    assert os.listdir(public_dir + "/closed") == []


def test_unwritable_old_output_is_replaced_all_the_same(public_dir, made):
    """A file that the user may not write is kept, although he could rename a file over it in its folder."""
    old = old_output(public_dir + "/open", 0o777, 0o444)
    p = sort_in_public(public_dir, ["-o", old], input=made("ties").read_bytes())
    assert p.returncode == 1 and b"out.bam" in p.stderr, p.stderr
    assert open(old, "rb").read() == PRECIOUS and os.listdir(public_dir + "/open") == ["out.bam"]


def test_umask_keeps_the_index_from_being_written(public_dir, made):
    """It is opened again by a name, before it has its mode."""
    os.mkdir(public_dir + "/open")
    os.chmod(public_dir + "/open", 0o777)

    p = sort_in_public(public_dir, ["--write-index", "-o", public_dir + "/open/out.bam"], NOBODY + "\nos.umask(0o277)",
                       input=made("ties").read_bytes())
    assert p.returncode == 0, p.stderr
    for name in ("out.bam", "out.bam.csi"):
        assert stat.S_IMODE(os.stat(public_dir + "/open/" + name).st_mode) == 0o400


@pytest.mark.skipif(os.geteuid() != 0, reason="needs two users")
def test_output_of_another_user_in_a_shared_folder_is_told_only_after_reading(public_dir):
    """The folder is like /tmp: writing to the file would work, but it cannot be replaced."""
    old = old_output(public_dir + "/shared", 0o1777, 0o666)
    with running([public_dir + "/program", "sort", "-o", old, "-"], stdin=subprocess.PIPE, before=NOBODY) as p:   # not fed
        assert p.wait(HANG) == 1
        assert re.search(rb"cannot write .*Operation not permitted.*Nothing was read", p.stderr.read())
    assert open(old, "rb").read() == PRECIOUS and os.listdir(public_dir + "/shared") == ["out.bam"]


def test_unreadable_input_truncates_output(public_dir):
    os.mkdir(public_dir + "/open")
    os.chmod(public_dir + "/open", 0o777)
    with open(public_dir + "/open/in.bam", "wb") as f:
        f.write(PRECIOUS)
    os.chmod(public_dir + "/open/in.bam", 0)
    p = sort_in_public(public_dir, ["-o", "out.bam", "in.bam"], cwd=public_dir + "/open")
    assert p.returncode == 1 and b"in.bam" in p.stderr, p.stderr
    assert os.listdir(public_dir + "/open") == ["in.bam"]


# ---------------------------------------------------------------- signals

SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


# Statements for launch(): signals as from an interactive shell, however the tests were started.
DEFAULT_SIGNALS = "for s in %r:\n    signal.signal(s, signal.SIG_DFL)" % [int(s) for s in SIGNALS]


def start(argv, **kw):
    return running([BINARY, "sort", *map(str, argv)], **kw)


@contextlib.contextmanager
def running(argv, before=DEFAULT_SIGNALS, env=None, **kw):
    """A running program; killed when a test fails and leaves it running."""
    with subprocess.Popen(**launch(argv, clean_env(**(env or {})), before), stderr=subprocess.PIPE, **kw) as p:
        try:
            yield p
        finally:
            p.kill()


def leave_reading(argv, ignored, **kw):
    """Closes the pipe to which a sort writes, after 100 bytes. ignored: the sort ignores SIGPIPE."""
    with start(argv, stdout=subprocess.PIPE,
               before="signal.signal(signal.SIGPIPE, signal.SIG_IGN)" if ignored else DEFAULT_SIGNALS, **kw) as p:
        assert len(p.stdout.read(100)) == 100
        p.stdout.close()
        assert p.wait(HANG) in ((1,) if ignored else (1, -signal.SIGPIPE))


def until(condition, process):
    """Waits for a state of the process, not for a time. Fails with its messages if it ends before."""
    end, pause = time.monotonic() + HANG, 0.0001
    while not condition():
        if process.poll() is not None:
            pytest.fail("it ended with status %d: %s" % (process.returncode, process.stderr.read() if process.stderr else ""))
        assert time.monotonic() < end, "never came to that state"
        time.sleep(pause)
        pause = min(2 * pause, 0.002)


def feed(process, data):
    """Writes data to the standard input of a process, and waits until it has read them."""
    left = memoryview(data)
    os.set_blocking(process.stdin.fileno(), False)

    def is_read():
        nonlocal left
        with contextlib.suppress(BlockingIOError, BrokenPipeError):
            while left:
                left = left[os.write(process.stdin.fileno(), left):]
        return not left and unread(process.stdin) == 0
    until(is_read, process)


def unread(pipe):
    """Bytes in a pipe."""
    n = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, n)
    return n[0]


def writes_below(process, folder):
    """Returns whether the process has a file of the folder open for writing, named or not."""
    fds = "/proc/%d/fd" % process.pid
    with contextlib.suppress(OSError):
        for fd in os.listdir(fds):
            with contextlib.suppress(OSError):
                if os.readlink("%s/%s" % (fds, fd)).startswith(str(folder) + "/"):
                    if os.stat("%s/%s" % (fds, fd)).st_size > 0:
                        return True
    return False


@pytest.mark.parametrize("sig", SIGNALS, ids=lambda s: s.name)
def test_signal_while_reading_is_survived_or_leaves_a_file(desk, made, sig, threads):
    """Blocked in a read of a pipe that stays open."""
    before = snapshot(desk)
    with start(["-@", threads, "-o", "out.bam"], stdin=subprocess.PIPE, cwd=desk) as p:
        feed(p, made("mixed").read_bytes()[:300000])
        p.send_signal(sig)
        assert p.wait(HANG) == -sig
        p.stdin.close()
    assert snapshot(desk) == before


@pytest.mark.parametrize("sig", SIGNALS, ids=lambda s: s.name)
def test_signal_while_writing_is_survived_or_leaves_a_file(desk, long_write, sig, threads):
    before = snapshot(desk)
    with start(["-@", threads, "-l", "9", "-o", "out.bam", long_write], cwd=desk) as p:
        until(lambda: writes_below(p, desk), p)
        p.send_signal(sig)
        assert p.wait(HANG) == -sig
    assert snapshot(desk) == before


@pytest.mark.parametrize("sig", SIGNALS, ids=lambda s: s.name)
@pytest.mark.parametrize("n", [1, 3])
def test_signal_while_blocked_in_writing_is_survived(long_write, sig, n):
    """A pipe that is full and not read."""
    with start(["-u", "-@", n, long_write], stdout=subprocess.PIPE) as p:
        until(stuck(p), p)
        p.send_signal(sig)
        assert p.wait(HANG) == -sig


def stuck(process):
    """A condition: no more bytes arrive in the process's standard output, which has some."""
    full = []
    def is_stuck():
        full.append(unread(process.stdout))
        return len(full) > 20 and full[-1] > 0 and len(set(full[-20:])) == 1
    return is_stuck


def test_signal_waits_for_a_thread_that_is_blocked_in_writing(desk, long_write, fault_shim):
    """A file beside the output has a name at that time. The signal goes to any thread."""
    before = snapshot(desk)
    for _ in range(10):
        with start(["-u", "-@", "8", "--checksum=sum", long_write], stdout=subprocess.PIPE, cwd=desk,
                   env={**fault_shim, "FAULT_NAMED": "1"}) as p:
            until(stuck(p), p)
            p.send_signal(signal.SIGTERM)
            assert p.wait(HANG) == -signal.SIGTERM
        assert snapshot(desk) == before


def test_kill_leaves_a_visible_file(desk, long_write):
    """Even kill -9 leaves none, if the file system can make unnamed files."""
    try:
        os.close(os.open(desk, os.O_TMPFILE | os.O_WRONLY, 0o600))
    except OSError:
        pytest.skip("no unnamed files on this file system")
    before = snapshot(desk)
    with start(["-@", 2, "-l", "9", "-o", "out.bam", long_write], cwd=desk) as p:
        until(lambda: writes_below(p, desk), p)
        p.kill()
        p.wait(HANG)
    assert snapshot(desk) == before


def test_hangup_ends_a_sort_under_nohup(desk, made):
    """A signal that was ignored at the start stays ignored."""
    data = made("mixed").read_bytes()
    with start(["--no-PG", "-@", 2, "-o", "out.bam"], stdin=subprocess.PIPE, cwd=desk,
               before="signal.signal(signal.SIGHUP, signal.SIG_IGN)") as p:
        feed(p, data[:200000])
        p.send_signal(signal.SIGHUP)
        feed(p, data[200000:])
        p.stdin.close()
        assert p.wait(HANG) == 0, p.stderr.read()
    same_bam(read_bam(desk / "out.bam"), oracle(made("mixed"), "--no-PG"))


def test_stop_and_continue_breaks_a_sort(desk, made):
    """After Ctrl-Z and fg, interrupted reads are no errors and no end of file."""
    data = made("mixed").read_bytes()
    with start(["--no-PG", "-@", 2, "-o", "out.bam"], stdin=subprocess.PIPE, cwd=desk) as p:
        for at in range(0, len(data), 50000):
            feed(p, data[at:at + 50000])
            p.send_signal(signal.SIGSTOP)
            p.send_signal(signal.SIGCONT)
        p.stdin.close()
        assert p.wait(HANG) == 0, p.stderr.read()
    same_bam(read_bam(desk / "out.bam"), oracle(made("mixed"), "--no-PG"))


# ---------------------------------------------------------------- the process


@contextlib.contextmanager
def reading(made, args, env=None):
    """A sort that waits for more of its standard input, and a function that reads its /proc/PID/status."""
    with start([*args], env=env, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as p:
        def status(field):
            with open("/proc/%d/status" % p.pid) as f:
                return re.search(r"^%s:\s*(\S+)" % field, f.read(), re.M).group(1)
        feed(p, made("mixed").read_bytes()[:300000])
        yield p, status
        p.kill()
        p.stdin.close()


@pytest.mark.parametrize("args,env,expected", [
    ([], {}, 1), (["-@", 0], {}, 1), (["-@", 1], {}, 1), (["-@", -4], {}, 1), (["-@", 3], {}, 3),
    ([], {"OMP_NUM_THREADS": "3"}, 3), ([], {"OMP_NUM_THREADS": "4,2"}, 4),
    (["-@", 2], {"OMP_NUM_THREADS": "5"}, 2), (["-@", 8], {"OMP_THREAD_LIMIT": "2"}, 2),
    (["-@", 5], {"OMP_DYNAMIC": "true"}, 5), (["-@", 4], {"OMP_MAX_ACTIVE_LEVELS": "0"}, 4)],
    ids=lambda v: " ".join(map(str, v.items() if isinstance(v, dict) else v if isinstance(v, list)
                               else [v])))
def test_more_or_fewer_threads_run_than_asked_for(made, args, env, expected):
    """One more thread only reads the pipe. Before the work begins, threads are started as a trial for a moment."""
    def steady():
        time.sleep(0.002)
        return int(status("Threads")) == expected + 1
    with reading(made, args, env) as (p, status):
        until(lambda: all(steady() for _ in range(30)), p)


def test_fewer_threads_than_asked_for_are_not_told(made, tmp_path):
    for argv in (["sort", "-o", tmp_path / "o"], ["bgzip", "-f", "-o", tmp_path / "o"]):
        p = run([*argv, "-@", "8", made("ties")], env={"OMP_THREAD_LIMIT": "2"})
        assert p.returncode == 0 and "warning: only 2 of 8 threads can be started: OMP_THREAD_LIMIT allows" in p.stderr, p.stderr


@pytest.mark.skipif(SANITIZED, reason="sanitizers take addresses without end")
def test_fewer_threads_are_told_twice_of_bgzip(made, tmp_path):
    """The lack of threads is reported once for all files, even if buffers use addresses that threads would need."""
    (tmp_path / "a").write_bytes(made("ties").read_bytes())
    argv = ["bgzip", "-c", "-@", "16", tmp_path / "a", tmp_path / "a"]
    for env, limit in ({"OMP_THREAD_LIMIT": "2"}, None), ({}, limit_on("AS", 120 << 20)):
        p = run(argv, env=env, before=limit)
        assert p.returncode == 0 and p.stderr.count("threads can be started") == 1, p.stderr[:1000]


def test_process_goes_by_another_name_in_ps_and_top(made):
    """The name for killall samtools and for top."""
    with reading(made, ["-@", 2]) as (_, status):
        assert status("Name") == os.path.basename(BINARY)[:15]


@pytest.mark.skipif(SANITIZED, reason="sanitizers have a thread of their own")
@pytest.mark.parametrize("form", ["bam", "sam", "cram,no_ref=1"])
@pytest.mark.parametrize("most", [1, 2, 5])
def test_threads_that_cannot_be_started_end_the_sort(public_dir, made, form, most):
    """ulimit -u, or a container's limit on processes."""
    if os.geteuid() != 0:
        pytest.skip("needs a user without any process")
    user = 1000000 + os.getpid()

    limit = limit_on("NPROC", most) + "\nos.setuid(%d)" % user
    p = sort_in_public(public_dir, ["--no-PG", "-@", "8", "-O", form], limit, input=made("sorted").read_bytes())
    assert p.returncode == 0, p.stderr
    assert re.search(rb"only \d of 8 threads can be started", p.stderr), p.stderr
    if form != "cram,no_ref=1":
        assert p.stdout == sorted_bytes(["--no-PG", "-O", form, made("sorted")])


# ---------------------------------------------------------------- without /proc

@pytest.fixture
def no_proc():
    """Runs a program with an empty /proc, as in a bare chroot: an unnamed file could not
    get its name there, so that the output needs a temporary name."""
    if SANITIZED:
        pytest.skip("sanitizers need /proc")
    return [*in_name_space("mount -t tmpfs none /proc"), BINARY, "sort"]


def test_output_needs_proc(desk, made, no_proc, threads):
    (desk / "out.bam").chmod(0o640)
    p = subprocess.run([*no_proc, "--no-PG", "-@", str(threads), "-o", "out.bam", made("mixed")],
                       cwd=desk, capture_output=True, env=clean_env(), timeout=HANG)
    assert p.returncode == 0, p.stderr
    same_bam(read_bam(desk / "out.bam"), oracle(made("mixed"), "--no-PG"))
    assert os.listdir(desk) == ["out.bam"]
    assert stat.S_IMODE((desk / "out.bam").stat().st_mode) == 0o640


def test_failure_without_proc_leaves_a_file(desk, sound, no_proc):
    data, found = sound
    (desk / "in.bam").write_bytes(damage(data, found, "crc", 150))
    before = snapshot(desk)
    p = subprocess.run([*no_proc, "-@", "2", "-o", "out.bam", "in.bam"], cwd=desk,
                       capture_output=True, env=clean_env(), timeout=HANG)
    assert p.returncode == 1 and snapshot(desk) == before


@pytest.mark.parametrize("sig", SIGNALS, ids=lambda s: s.name)
@pytest.mark.parametrize("phase", ["reading", "writing"])
def test_signal_without_proc_leaves_a_file(desk, made, long_write, no_proc, sig, phase, threads):
    before = snapshot(desk)
    argv = [*no_proc, "-@", str(threads), "-l", "9", "-o", "out.bam"]
    argv += [long_write] if phase == "writing" else []
    with running(argv, cwd=desk, stdin=subprocess.PIPE) as p:
        if phase == "reading":
            feed(p, made("mixed").read_bytes()[:300000])
        else:
            until(lambda: writes_below(p, desk), p)
        p.send_signal(sig)
        assert p.wait(HANG) == -sig
        p.stdin.close()
    assert snapshot(desk) == before


# ---------------------------------------------------------------- memory


@pytest.mark.skipif(SANITIZED, reason="sanitizers need address space without limit")
def test_limit_on_address_space_fails_tiny_input(made):
    """ulimit -v far below -m x -@, as batch systems set it."""
    limit = 1 << 30
    p = run_sort(["--no-PG", "-@", "2", "-m", "4G", made("ties")],
                 before=limit_on("AS", limit))
    assert p.returncode == 0, p.stderr
    assert p.stdout == sorted_bytes(["--no-PG", made("ties")])


@pytest.mark.parametrize("n", [12, 66, 70])
@pytest.mark.parametrize("fmt", ["bam", "cram"])
def test_few_file_descriptors_fail_the_sort(made, tmp_path, fmt, n):
    path = made("ties")
    if fmt == "cram":                            # as many files as may be open decode its containers
        path = tmp_path / "in.cram"
        path.write_bytes(sorted_bytes(["-O", "cram,no_ref=1", made("ties")]))
    p = run_sort(["--no-PG", "-@", "8", path], before=limit_on("NOFILE", n))
    assert p.returncode == 0, p.stderr
    assert p.stdout == sorted_bytes(["--no-PG", path])
