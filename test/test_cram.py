# SPDX-License-Identifier: MIT
"""htslib decodes CRAM and may take what it cannot decode for the end: as many records are read as the containers
say, from files and from pipes, in each version of the format. Nor does it compare all checksums: those of headers."""

import os
import struct
import subprocess
import threading
import time
import zlib

import pysam
import pytest

import bamgen
from conftest import BINARY, HANG, HTSLIB_LEAKS, clean_env, oracle_bytes, read_bam, run_sort, same_records, sorted_bytes
from test_safety import refused

VERSIONS = ["2.1", "3.0", "3.1"]
N = 700  # records, 50 in each container


def itf8(data, at):
    """A number of the format, and how many bytes it takes."""
    ones = next(k for k in range(5) if k == 4 or not data[at] & 0x80 >> k)
    v = data[at] & (0x7F >> ones if ones < 4 else 15)
    for b in data[at + 1:at + 1 + min(ones, 3)]:
        v = v << 8 | b
    return (v << 4 | data[at + 4] & 15, 5) if ones == 4 else (v, ones + 1)


def as_itf8(v):
    return next(bytes([(0xFF00 >> k & 0xFF) | v >> 8 * k]) + v.to_bytes(4, "big")[4 - k:] for k in range(4) if v >> 7 * k + 7 == 0)


class Container:
    """At `start`; its number of records lies at `at` and takes `width` bytes."""

    def __init__(self, data, start):
        major, self.start, self.at = data[4], start, start + 4
        for _ in "reference", "start", "span":
            self.at += itf8(data, self.at)[1]
        self.n, self.width = itf8(data, self.at)
        at = self.at + self.width
        for bits in 32 if major == 2 else 64, 64:    # counter, bases
            ones = next(k for k in range(9) if k == 8 or not data[at] & 0x80 >> k)
            at += 1 + (ones if bits == 64 else min(ones, 4))
        at += itf8(data, at)[1]
        landmarks, width = itf8(data, at)
        at += width
        for _ in range(landmarks):
            at += itf8(data, at)[1]
        self.checked = at                            # up to here by the CRC, of version 3
        self.inside = at + (4 if major > 2 else 0)
        self.end = self.inside + struct.unpack_from("<i", data, start)[0]


def containers(data):
    """Those of records. What version 2 says of the length of the header's is too small by some bytes."""
    found, at = [], Container(data, 26).end
    if data[4] == 2:
        first = Container(data, 26).inside
        size, width = itf8(data, first + 3)
        at = first + 3 + width + itf8(data, first + 3 + width)[1] + size
    while at < len(data):
        found.append(Container(data, at))
        at = found[-1].end
    assert at == len(data) and found.pop().n == 0    # the end
    return found


def claiming(data, which, n):
    """The file with another number of records in the header of that container."""
    c = containers(data)[which]
    head = data[c.start:c.at] + as_itf8(n) + data[c.at + c.width:c.checked]
    crc = struct.pack("<I", zlib.crc32(head)) if data[4] > 2 else b""
    return data[:c.start] + head + crc + data[c.inside:]


def header_blocks(data, container):
    """Where the compression header and the slice headers of a container lie: beginning and end of each."""
    found, at = [], container.inside
    while at < container.end:
        start, type, at = at, data[at + 1], at + 2
        at += itf8(data, at)[1]
        size, width = itf8(data, at)
        at += width
        at += itf8(data, at)[1] + size + 4
        if type in (1, 2):
            found.append((start, at))
    assert at == container.end and len(found) > 1
    return found


@pytest.fixture(scope="module")
def cram(tmp_path_factory):
    """cram(version): the bytes of a file."""
    folder = tmp_path_factory.mktemp("cram")
    r = bamgen.rng("cram")
    places = sorted((r.randrange(3), r.randrange(900)) for i in range(N))
    recs = [bamgen.record("r%d" % i, 0, *place, seq="ACGT" * 10, cigar=[(40, "M")]) for i, place in enumerate(places)]
    (folder / "in.bam").write_bytes(bamgen.bgzf(bamgen.header() + b"".join(recs)))

    def get(version):
        path = folder / version
        if not path.exists():
            with pysam.AlignmentFile(folder / "in.bam") as bam, pysam.AlignmentFile(
                    path, "wc", template=bam, format_options=[b"no_ref=1", b"seqs_per_slice=50",
                                                              b"version=" + version.encode()]) as out:
                for record in bam:
                    out.write(record)
        return path.read_bytes()

    return get


@pytest.fixture(params=VERSIONS, ids=lambda v: "v" + v)
def data(cram, request):
    return cram(request.param)


@pytest.fixture(params=[1, 3], ids=["t1", "t3"])
def threads(request):
    return request.param


WAYS = ["file", "pipe"]


def source(tmp_path, data, way):
    """Arguments of a sort that reads these bytes in a way."""
    if way == "pipe":
        return {"args": [], "stdin": data}
    (tmp_path / "in.cram").write_bytes(data)
    return {"args": ["in.cram"]}


def test_containers_are_those_of_the_file(data):
    """So that the tests below test something."""
    found = containers(data)
    assert len(found) >= N // 50 and sum(c.n for c in found) == N
    assert claiming(data, 3, found[3].n) == data
    assert [c.n for c in containers(claiming(data, 3, 12345))].count(12345) == 1


@pytest.mark.parametrize("way", WAYS)
def test_sound_file_is_refused_or_other_records_come_out(tmp_path, data, way, threads):
    how = source(tmp_path, data, way)
    ours = sorted_bytes(["--no-PG", "-@", threads, *how.pop("args")], cwd=tmp_path, **how)
    (tmp_path / "all.cram").write_bytes(data)
    same_records(read_bam(ours), read_bam(oracle_bytes(tmp_path / "all.cram", "--no-PG")))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("which", [0, 5, -1], ids=["first", "middle", "last"])
@pytest.mark.parametrize("more", [1, -1, 100000])
def test_other_records_than_containers_say_pass(tmp_path, data, way, which, more, threads):
    how = source(tmp_path, claiming(data, which, containers(data)[which].n + more), way)
    args = how.pop("args")
    words = "%d records could be read but its containers hold %d" % (N, N + more)
    refused(tmp_path, ["-@", threads, "-o", "out.bam", *args], words, **how)
    refused(tmp_path, ["-@", threads, "--check", *args], words, **how)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("version", VERSIONS[1:])
def test_flipped_bit_in_a_header_block_passes(tmp_path, cram, way, version):
    """htslib compares the checksum of no header block that is not compressed."""
    data, told = cram(version), 0
    for start, end in header_blocks(data, containers(data)[3]):
        for at in [*range(start + 7, end, 7), end - 1]:
            how = source(tmp_path, data[:at] + bytes([data[at] ^ 1 << at % 8]) + data[at + 1:], way)
            err = refused(tmp_path, ["-@", 2, "-o", "out.bam", *how.pop("args")], env=HTSLIB_LEAKS, **how)
            told += "at file offset %d: the CRC-32 of a header block of CRAM is wrong" % start in err
    assert told > 5


@pytest.mark.parametrize("way", WAYS)
def test_checksum_that_is_to_be_ignored_is_compared(tmp_path, cram, way):
    data = cram("3.0")
    at = header_blocks(data, containers(data)[3])[-1][1] - 1     # of the CRC-32
    wrong = data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]
    for option, status in (("ignore_md5=1", 0), ("ignore_md5=0", 1)):
        how = source(tmp_path, wrong, way)
        p = run_sort(["--no-PG", "--input-fmt-option", option, *how.pop("args")], cwd=tmp_path, **how)
        assert p.returncode == status, p.stderr


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("keep", [0, 1, 9])
def test_file_that_is_only_shorter_is_refused(tmp_path, data, way, keep):
    """Whole containers and the one at the end: nothing tells of those that were there once."""
    found = containers(data)
    how = source(tmp_path, data[:found[keep].start] + data[found[-1].end:], way)
    ours = sorted_bytes(["--no-PG", "-@", 2, *how.pop("args")], cwd=tmp_path, **how)
    assert len(read_bam(ours).records()) == sum(c.n for c in found[:keep])


@pytest.mark.parametrize("way", WAYS)
def test_records_that_nobody_wants_are_missed(tmp_path, data, way, threads):
    how = source(tmp_path, data, way)
    ours = sorted_bytes(["--no-PG", "-@", threads, "--input-fmt-option", "filter=pos>400", *how.pop("args")],
                        cwd=tmp_path, **how)
    assert 0 < len(read_bam(ours).records()) < N


@pytest.mark.parametrize("option", ["required_fields=0x1ff", "decode_md=0"])
def test_option_changes_how_many_there_are(tmp_path, data, option):
    how = source(tmp_path, data, "file")
    ours = sorted_bytes(["--no-PG", "--input-fmt-option", option, *how.pop("args")], cwd=tmp_path)
    assert len(read_bam(ours).records()) == N


def test_file_is_counted_from_its_first_byte_not_from_where_it_stands(tmp_path, data):
    (tmp_path / "in").write_bytes(b"something before" + data)
    with open(tmp_path / "in", "rb") as file:
        os.lseek(file.fileno(), 16, os.SEEK_SET)
        p = run_sort(["--no-PG", "-@", 2], stdin=file)
    assert p.returncode == 0 and len(read_bam(p.stdout).records()) == N, p.stderr


def test_pipe_in_small_pieces_loses_records(data):
    ours = sorted_bytes(["--no-PG"], stdin=data)
    with subprocess.Popen([BINARY, "sort", "--no-PG", "-@", "3"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          env=clean_env()) as p:
        def feed():
            for at in range(0, len(data), 777):
                os.write(p.stdin.fileno(), data[at:at + 777])
                time.sleep(.001)
            p.stdin.close()
        t = threading.Thread(target=feed)
        t.start()
        got = p.stdout.read()
        t.join()
        assert p.wait(HANG) == 0 and got == ours


def test_error_waits_for_a_pipe_that_stays_open(cram):
    """Whoever writes to it may wait for us."""
    data = bytearray(cram("3.0"))
    data[containers(data)[4].inside + 40] ^= 1
    with subprocess.Popen([BINARY, "sort", "-@", "2"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, env=clean_env(**HTSLIB_LEAKS)) as p:
        os.write(p.stdin.fileno(), data)
        assert p.wait(HANG) == 1
        assert b"cannot be read" in p.stderr.read()


def test_producer_of_a_file_that_is_refused_waits_for_ever(cram):
    """It goes on to write, more than a pipe holds, and gets its signal."""
    data = bytearray(cram("3.0"))
    data[containers(data)[0].inside + 40] ^= 1
    with subprocess.Popen([BINARY, "sort"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, env=clean_env(**HTSLIB_LEAKS)) as p:
        with pytest.raises(BrokenPipeError):
            for _ in range(1000):
                os.write(p.stdin.fileno(), data)
        assert p.wait(HANG) == 1
