# SPDX-License-Identifier: MIT
"""Records whose names lack the closing NUL. samtools 1.24 adds it, so the record grows by one byte."""

import gzip
import struct

import pytest

import bamgen
from conftest import oracle_call, read_bam, run, same_bam

LENGTHS = (1, 2, 3, 4, 5, 7, 8, 30, 31, 253, 254)


def opened(record):
    """The record without the NUL of its name."""
    size, n = struct.unpack_from("<I", record)[0], record[12]
    return struct.pack("<I", size - 1) + record[4:12] + bytes([n - 1]) + record[13:36 + n - 1] + record[36 + n:]


def pairs(coordinate):
    """Templates of two mates, in which no, one or both names are open; some names begin like the one before."""
    out = []
    for i in range(400):
        name = ("%03d" % i + "x" * 254)[:LENGTHS[i % len(LENGTHS)]] if i % 3 else "n" * (1 + i % 250)
        for half, place in ((99, 100 + i), (147, 300 + i)):
            tags = b"MCZ4M\0msS" + struct.pack("<H", 60)
            r = bamgen.record(name, half, 0, place, 60, [(4, "M")], 0, 400 + 2 * i - place, 204 if half == 99 else -204, "ACGT",
                              bytes([30] * 4), tags)
            out.append((place, opened(r) if (i * 7 + half) % 5 < 2 else r))
    return [r for _, r in (sorted(out, key=lambda x: x[0]) if coordinate else out)]


COMMANDS = {"fixmate": (False, "fixmate -m --no-PG {x} {a} {o}"), "markdup": (True, "markdup --no-PG {x} {a} {o}"),
            "merge": (True, "merge --no-PG {x} -o {o} {a} {a}"),
            "filter": (True, "sort --no-PG --input-fmt-option filter=1 {x} -o {o} {a}")}


@pytest.mark.parametrize("layout", ["whole", "small", "tiny"])
@pytest.mark.parametrize("command", COMMANDS)
def test_name_without_nul_gets_it(tmp_path, command, layout):
    by_place, words = COMMANDS[command]
    recs = pairs(by_place)
    stream = bamgen.header() + b"".join(recs)
    path = tmp_path / "in.bam"
    path.write_bytes(bamgen.bgzf(stream, size={"whole": bamgen.BLOCK, "small": 997, "tiny": 61}[layout]))
    name, *args = words.format(a=path, o=tmp_path / "theirs.bam", x="").split()
    assert oracle_call(name, args)[0] == 0
    expected = read_bam(tmp_path / "theirs.bam")
    for threads in 1, 3:
        ours = tmp_path / ("ours%d.bam" % threads)
        p = run(words.format(a=path, o=ours, x="-@ %d" % threads).split())
        assert p.returncode == 0, p.stderr
        same_bam(read_bam(ours), expected)


def test_template_goes_on_with_a_name_that_only_begins_like_its_own(tmp_path):
    """The names go over many chunks: each is that of the previous template plus one letter, without a NUL."""
    recs = []
    for i in range(9000):
        for half, place in ((99, 100), (147, 300)):
            recs.append(opened(bamgen.record("n" * (1 + i % 200), half, 0, place, 60, [(4, "M")], 0, 400 - place,
                                             204 if half == 99 else -204, "ACGT", bytes([30] * 4), b"")))
    path = tmp_path / "in.bam"
    path.write_bytes(bamgen.bgzf(bamgen.header() + b"".join(recs)))
    assert oracle_call("fixmate", ["-m", "--no-PG", path, tmp_path / "theirs.bam"])[0] == 0
    p = run(["fixmate", "-m", "--no-PG", "-@", 2, "--total-memory", "64M", path, tmp_path / "ours.bam"])
    assert p.returncode == 0, p.stderr
    same_bam(read_bam(tmp_path / "ours.bam"), read_bam(tmp_path / "theirs.bam"))


@pytest.mark.parametrize("command", [*COMMANDS, "sort"])
def test_name_of_255_bytes_has_no_room_for_a_nul(tmp_path, command):
    words = COMMANDS[command][1] if command in COMMANDS else SORTS[command]
    body = b"q" * 255 + b"\x12\x48" + b"IIII"
    path, out = tmp_path / "in.bam", tmp_path / "out.bam"
    path.write_bytes(bamgen.bam(bamgen.header(), [bamgen.raw_record(-1, -1, 255, 0, 4680, 0, 4, 4, -1, -1, 0, body)]))
    name, *args = words.format(a=path, o=out, x="").split()
    assert oracle_call(name, args)[0] == 1
    out.unlink(missing_ok=True)
    p = run(words.format(a=path, o=out, x="").split())
    assert p.returncode == 1 and "record 1 " in p.stderr and "does not end in NUL" in p.stderr and not out.exists()


def test_record_behind_an_open_name_has_the_number_of_another_input(tmp_path):
    recs = pairs(True)[:6]
    first, second = tmp_path / "first.bam", tmp_path / "second.bam"
    first.write_bytes(bamgen.bam(bamgen.header(), [bamgen.record("r", 0, 0, 5)] * 9))
    bad = recs[0][:4] + struct.pack("<i", 99) + recs[0][8:]      # a reference that is not there
    second.write_bytes(bamgen.bam(bamgen.header(), [recs[0], opened(bamgen.record("o", 0, 0, 5)), bad]))
    p = run(["sort", "-o", tmp_path / "out.bam", "--add-input", second, first])
    assert p.returncode == 1 and "second.bam: record 3 " in p.stderr, p.stderr


SORTS = {"sort": "sort --no-PG {x} -o {o} {a}", "by name": "sort -n --no-PG {x} -o {o} {a}",
         "by tag": "sort -t MC --no-PG {x} -o {o} {a}", "collate": "collate --no-PG {x} -o {o} {a}"}


@pytest.mark.parametrize("layout", ["whole", "small", "tiny"])
@pytest.mark.parametrize("order", SORTS)
def test_sort_of_a_name_without_nul(tmp_path, order, layout):
    """The file may also come through a pipe, be not compressed, or be the second one."""
    stream = bamgen.header() + b"".join(pairs(True))
    path, raw = tmp_path / "in.bam", tmp_path / "raw.bam"
    path.write_bytes(bamgen.bgzf(stream, size={"whole": bamgen.BLOCK, "small": 997, "tiny": 61}[layout]))
    raw.write_bytes(stream)
    words, theirs, ours = SORTS[order], tmp_path / "theirs.bam", tmp_path / "ours.bam"
    name, *args = words.format(a=path, o=theirs, x="").split()
    assert oracle_call(name, args)[0] == 0
    for source, stdin, threads in (path, None, 1), (path, None, 3), ("-", path, 2), (raw, None, 2):
        p = run(words.format(a=source, o=ours, x="-@ %d" % threads).split(), stdin=stdin and open(stdin, "rb"))
        assert p.returncode == 0 and not p.stderr, p.stderr
        if order != "collate":                   # samtools leaves the order of equal names and flags open
            same_bam(read_bam(ours), read_bam(theirs))
        assert sorted(read_bam(ours).records()) == sorted(read_bam(theirs).records())


@pytest.mark.parametrize("n", [1, 2, 30])
def test_last_record_needs_a_nul(tmp_path, n):
    """The record ends a file of one block, and one of many blocks."""
    recs = pairs(True)[:n]
    recs[-1] = opened(bamgen.record("last", 4, -1, -1, 0, [], -1, -1, 0, "ACGT", bytes([30] * 4)))
    for size in bamgen.BLOCK, 97:
        path = tmp_path / "in.bam"
        path.write_bytes(bamgen.bgzf(bamgen.header() + b"".join(recs), size=size))
        assert oracle_call("sort", ["--no-PG", "-o", tmp_path / "theirs.bam", path])[0] == 0
        p = run(["sort", "--no-PG", "-o", tmp_path / "ours.bam", path])
        assert p.returncode == 0, p.stderr
        same_bam(read_bam(tmp_path / "ours.bam"), read_bam(tmp_path / "theirs.bam"))


def far_behind(n, opens):
    """Records, and the same ones with NUL; those for which `opens` is true lack it."""
    r = bamgen.rng("open names")
    closed = [bamgen.record("%x" % r.getrandbits(64), 0, 0, r.randrange(1000), 60, [(600, "M")], -1, -1, 0, "ACGT" * 150,
                            bytes([30]) * 600) for _ in range(n)]
    return [opened(c) if opens(i) else c for i, c in enumerate(closed)], closed


@pytest.fixture(scope="module", params=["last", "middle", "each", "long"])
def far(request, tmp_path_factory):
    """A file with names that lack the NUL, and the same one with it."""
    n, folder = 8000, tmp_path_factory.mktemp("far")
    opens = {"last": lambda i: i == n - 1, "middle": lambda i: i == n // 2}.get(request.param, lambda i: i >= n // 3)
    recs = far_behind(n, opens)
    if request.param == "long":                   # it has several blocks
        long = bamgen.record("long", 0, 0, 7, 60, [(400000, "M")], -1, -1, 0, "ACGT" * 100000, bytes(range(40)) * 10000)
        recs[0].insert(n // 3, opened(long))
        recs[1].insert(n // 3, long)
    for name, each in zip(("open.bam", "closed.bam"), recs):
        (folder / name).write_bytes(bamgen.bgzf(bamgen.header() + b"".join(each), level=1))
    return folder / "open.bam", folder / "closed.bam"


@pytest.mark.parametrize("words", ["sort", "sort -n", "sort --total-memory 28M", "collate", "sormadup",
                                   "sort -@ 3 -m 2M -M"], ids=["sort", "n", "little", "collate", "sormadup", "M"])
def test_name_without_nul_far_behind(far, tmp_path, words):
    """The sort runs in memory and with temporary files, and after another input. The bytes are as if the NUL had been
    there."""
    got = []
    for path in far:
        first = [*words.split(), *(["-O"] if words == "collate" else []), "-l", 1, "--no-PG"]
        p = run([*first, *(["--add-input", path] if words == "sort -n" else []), path])
        assert p.returncode == 0 and ("28M" not in words or "merging from" in p.stderr), p.stderr
        got.append(p.stdout)
        with open(path, "rb") as f:
            assert words == "sort -n" or run([*first, "-"], stdin=f).stdout == p.stdout
    assert got[0] == got[1]


@pytest.mark.parametrize("command", ["sort -o {o} {a}", "sort --input-fmt-option filter=1 -o {o} {a}", "fixmate {a} {o}"])
def test_fault_behind_a_name_without_nul_is_told_with_its_place(tmp_path, command):
    """The record's number and byte count the records before it, and no other file is written."""
    recs, closed = far_behind(3000, lambda i: i % 2000 in (1000, 1001, 1999))
    bad = bytearray(closed[2000])
    bad[4:8] = struct.pack("<i", 77)             # this reference does not exist
    head = bamgen.header()
    path, out = tmp_path / "in.bam", tmp_path / "out.bam"
    path.write_bytes(bamgen.bgzf(head + b"".join(recs[:2000]) + bad + b"".join(recs[2001:])))
    p = run(command.format(a=path, o=out).split())
    place = len(head) + sum(map(len, recs[:2000]))
    assert p.returncode == 1 and "record 2001 (byte %d of" % place in p.stderr and not out.exists(), p.stderr


def test_missing_end_is_told_behind_a_name_without_nul(tmp_path):
    path = tmp_path / "in.bam"
    path.write_bytes(bamgen.bgzf(bamgen.header() + b"".join(pairs(True)), eof=False))
    p = run(["sort", "-o", tmp_path / "out.bam", path])
    assert p.returncode == 0 and p.stderr.count("EOF marker is absent") == 1, p.stderr


@pytest.mark.parametrize("memory", ["28M", "1G"])
def test_gzip_behind_a_name_without_nul(tmp_path, memory):
    """The file continues as plain gzip: bytes that were decompressed when the name was found come after it."""
    recs, closed = far_behind(9000, lambda i: i > 6000)
    got = []
    for each in recs, closed:
        path, head, body = tmp_path / "in.bam", bamgen.header(), b"".join(each)
        path.write_bytes(bamgen.bgzf(head + body[:9000], eof=False) + gzip.compress(body[9000:], 1))
        p = run(["sort", "--no-PG", "--total-memory", memory, path])
        assert p.returncode == 0, p.stderr
        got.append(p.stdout)
    assert got[0] == got[1]


def test_check_refuses_the_name_of_a_record_that_lacks_its_nul(tmp_path):
    """Every command reads such records; --check only checks their order."""
    path, ordered = tmp_path / "in.bam", tmp_path / "sorted.bam"
    path.write_bytes(bamgen.bam(bamgen.header(), pairs(True)))
    p = run(["sort", "--check", path])
    assert p.returncode == 1 and "belongs before record" in p.stderr, p.stderr
    assert run(["sort", "-o", ordered, path]).returncode == 0
    sums = [run(["sort", "--check", "--checksum", "-", ordered])]
    ordered.write_bytes(bamgen.bam(bamgen.header(), pairs(True)[:1]))
    sums.append(run(["sort", "--check", "--checksum", "-", ordered]))
    assert [s.returncode for s in sums] == [0, 0], sums
