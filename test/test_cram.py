# SPDX-License-Identifier: MIT
"""htslib decodes CRAM and may treat data that it cannot decode as the end: as many records must be read as the
containers state, from files and from pipes, in each version of the format. Nor does it compare all checksums,
namely those of headers."""

import json
import os
import struct
import subprocess
import zlib

import pysam
import pytest

import bamgen
from conftest import BINARY, FASTA_REFS, HANG, HTSLIB_LEAKS, clean_env, oracle_bytes, read_bam, run_sort, same_records, sorted_bytes
from test_safety import feed, refused, start

VERSIONS = ["2.1", "3.0", "3.1"]
N = 700  # records, 50 in each container


def itf8(data, at):
    """A number of the format, and its size in bytes."""
    ones = next(k for k in range(5) if k == 4 or not data[at] & 0x80 >> k)
    v = data[at] & (0x7F >> ones if ones < 4 else 15)
    for b in data[at + 1:at + 1 + min(ones, 3)]:
        v = v << 8 | b
    return (v << 4 | data[at + 4] & 15, 5) if ones == 4 else (v, ones + 1)


def as_itf8(v):
    return next(bytes([(0xFF00 >> k & 0xFF) | v >> 8 * k]) + v.to_bytes(4, "big")[4 - k:] for k in range(4) if v >> 7 * k + 7 == 0)


class Container:
    """The container at `start`; its number of records is at `at` and has `width` bytes."""

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
        self.checked = at                            # the CRC, in version 3, covers the bytes up to here
        self.inside = at + (4 if major > 2 else 0)
        self.end = self.inside + struct.unpack_from("<i", data, start)[0]


def containers(data):
    """The containers of records. In version 2 the stated length of the header's container is too small by some
    bytes."""
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
    """The places of the compression header and the slice headers of a container: start and end of each."""
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
    """Arguments of a sort that reads these bytes from a file or a pipe."""
    if way == "pipe":
        return {"args": [], "stdin": data}
    (tmp_path / "in.cram").write_bytes(data)
    return {"args": ["in.cram"]}


def test_containers_are_those_of_the_file(data):
    """Checks that the tests below test something."""
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
    words = "its containers state %d records, but %d could be read" % (N + more, N)
    refused(tmp_path, ["-@", threads, "-o", "out.bam", *args], words, **how)
    refused(tmp_path, ["-@", threads, "--check", *args], words, **how)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("version", VERSIONS[1:])
def test_flipped_bit_in_a_header_block_passes(tmp_path, cram, way, version):
    """htslib does not compare the checksum of uncompressed header blocks."""
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
    at = header_blocks(data, containers(data)[3])[-1][1] - 1     # last byte of the CRC-32
    wrong = data[:at] + bytes([data[at] ^ 1]) + data[at + 1:]
    for option, status in (("ignore_md5=1", 0), ("ignore_md5=0", 1)):
        how = source(tmp_path, wrong, way)
        p = run_sort(["--no-PG", "--input-fmt-option", option, *how.pop("args")], cwd=tmp_path, **how)
        assert p.returncode == status, p.stderr


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("keep", [0, 1, 9])
def test_file_that_is_only_shorter_is_refused(tmp_path, data, way, keep):
    """Complete containers and the end container: nothing shows that others are missing."""
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
    with start(["--no-PG", "-@", "3"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
        for at in range(0, len(data), 777):
            feed(p, data[at:at + 777])
        p.stdin.close()
        got = p.stdout.read()
        assert p.wait(HANG) == 0 and got == ours, p.stderr.read()


def test_error_waits_for_a_pipe_that_stays_open(cram):
    """A program that writes to it may wait for us."""
    data = bytearray(cram("3.0"))
    data[containers(data)[4].inside + 40] ^= 1
    with subprocess.Popen([BINARY, "sort", "-@", "2"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, env=clean_env(**HTSLIB_LEAKS)) as p:
        os.write(p.stdin.fileno(), data)
        assert p.wait(HANG) == 1
        assert b"cannot be read" in p.stderr.read()


def test_producer_of_a_file_that_is_refused_waits_for_ever(cram):
    """After the refusal, the producer writes more than a pipe holds, and its write fails."""
    data = bytearray(cram("3.0"))
    data[containers(data)[0].inside + 40] ^= 1
    with subprocess.Popen([BINARY, "sort"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, env=clean_env(**HTSLIB_LEAKS)) as p:
        with pytest.raises(BrokenPipeError):
            for _ in range(1000):
                os.write(p.stdin.fileno(), data)
        assert p.wait(HANG) == 1


# ------------------------------------------------- containers decoded in parallel



@pytest.fixture(scope="module")
def unsorted_bam(tmp_path_factory, fasta):
    """Several references and read groups, ties, pairs, unmapped reads; 6,000 records."""
    r, recs, path = bamgen.rng("containers"), [], tmp_path_factory.mktemp("containers") / "in.bam"
    with pysam.FastaFile(str(fasta)) as reference:
        for i in range(6000):
            tid = r.randrange(-1, 3)
            pos = r.randrange(0, 900, 5) if tid >= 0 else -1
            seq = reference.fetch(FASTA_REFS[tid][0], pos, pos + 60) if tid >= 0 else bamgen.bases(r, 60)
            seq = seq if r.randrange(3) else seq[:20] + "ACGT"[r.randrange(4)] + seq[21:]
            flag = r.choice([0x41, 0x81, 0x53, 0xa3]) if tid >= 0 else 0x4
            recs.append(bamgen.record("q%d" % (i // 2), flag, tid, pos, seq=seq, cigar=[(60, "M")] if tid >= 0 else [],
                                      mtid=tid, mpos=pos, tags=b"RGZg%d\0" % r.randrange(1, 4) + b"XXC%c" % (i % 200)))
    text = "@HD\tVN:1.6\n" + bamgen.sq_text(FASTA_REFS) + "".join("@RG\tID:g%d\tSM:s\n" % k for k in (1, 2, 3))
    path.write_bytes(bamgen.bgzf(bamgen.header(text, FASTA_REFS) + b"".join(recs)))
    return path


def as_cram(bam, path, options, reference=None, text=None):
    with pysam.AlignmentFile(bam) as file:
        header = pysam.AlignmentHeader.from_text(str(file.header) if text is None else text)
        with pysam.AlignmentFile(path, "wc", header=header, reference_filename=reference and str(reference),
                                 format_options=[o.encode() for o in options]) as out:
            for record in file:
                out.write(record)
    return path


def decoded_by(args, cwd, **kw):
    """The number of containers that our tasks decoded, the number of threads, and whether htslib returned the
    records one by one."""
    p = run_sort(["-l", 1, "--report=r.json", "-o", "r.bam", *args], cwd=cwd, **kw)
    assert p.returncode == 0, p.stderr
    report = json.loads((cwd / "r.json").read_text())
    threads = sum(slot["stages"].get("parse", 0) > 0 for slot in report["slots"])
    return report["stages"]["parse"]["events"], threads, report["stages"]["convert"]["events"] > 0


SHAPES = {
    "plain": ["no_ref=1"],
    "slices": ["no_ref=1", "slices_per_container=4"],
    "references": ["no_ref=1", "multi_seq_per_slice=1"],
    "names": ["no_ref=1", "lossy_names=1"],
    "md": ["no_ref=1", "store_md=1", "store_nm=1"],
    "embedded": ["embed_ref=1"],
    "external": [],
    "small": ["no_ref=1", "use_bzip2=1", "use_lzma=1", "level=9"],
    "arith": ["no_ref=1", "use_arith=1", "use_fqz=1", "use_tok=1", "level=7"],
}


@pytest.mark.parametrize("order", ["unsorted", "sorted"])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("version", ["3.0", "3.1"])
def test_containers_of_one_shape_come_out_otherwise(tmp_path, unsorted_bam, fasta, version, shape, order):
    """The result is the same for any number of threads as for one thread, for which htslib returns the records one by
    one, and the same as from samtools."""
    bam = unsorted_bam
    if order == "sorted":
        bam = tmp_path / "sorted.bam"
        bam.write_bytes(oracle_bytes(unsorted_bam))
    with_fasta = shape in ("embedded", "external")
    options = [*SHAPES[shape], "version=" + version, "seqs_per_slice=400"]
    path = as_cram(bam, tmp_path / "in.cram", options, fasta if with_fasta else None)
    args = ["--no-PG", *(["--reference", fasta] if with_fasta else []), "in.cram"]
    for more in [], ["-n"]:
        one = sorted_bytes(["-@", 1, *more, *args], cwd=tmp_path)
        for threads in 2, 3, 8:
            assert sorted_bytes(["-@", threads, *more, *args], cwd=tmp_path) == one, threads
    same_records(read_bam(sorted_bytes(["-@", 3, *args], cwd=tmp_path)), read_bam(oracle_bytes(path, *map(str, args[:-1]))))
    assert decoded_by(["-@", 3, *args], tmp_path)[::2] == (len(containers(path.read_bytes())), False)


def test_containers_are_decoded_by_one_thread(tmp_path, unsorted_bam):
    path = as_cram(unsorted_bam, tmp_path / "in.cram", ["no_ref=1", "seqs_per_slice=100"])
    n = len(containers(path.read_bytes()))
    for _ in range(10):
        events, threads, by_htslib = decoded_by(["-@", 4, "in.cram"], tmp_path)
        assert events == n and not by_htslib
        if threads > 1:
            return
    pytest.fail("one thread decoded all containers, ten times")


@pytest.mark.parametrize("why", ["one thread", "pipe", "version", "option", "not at its beginning", "memory", "names a reference"])
def test_cram_that_must_be_read_in_turn_is_not(tmp_path, unsorted_bam, fasta, why):
    text = None
    if why == "names a reference":                   # that exists, and may be looked up while others decode
        with pysam.AlignmentFile(unsorted_bam) as file:
            text = str(file.header).replace("\tLN:", "\tUR:file:%s\tLN:" % fasta)
    version = "2.1" if why == "version" else "3.0"
    path = as_cram(unsorted_bam, tmp_path / "in.cram", ["no_ref=1", "seqs_per_slice=400", "version=" + version], text=text)
    args, kw = ["-@", 1 if why == "one thread" else 3, "in.cram"], {}
    if why == "pipe":
        args, kw = [*args[:-1], "-"], {"stdin": path.read_bytes()}
    elif why == "option":
        args += ["--input-fmt-option", "decode_md=0"]
    elif why == "memory":
        args += ["-m", "1M"]
    elif why == "not at its beginning":
        (tmp_path / "in").write_bytes(b"before" + path.read_bytes())
        file = open(tmp_path / "in", "rb")
        os.lseek(file.fileno(), 6, os.SEEK_SET)
        args, kw = [*args[:-1], "-"], {"stdin": file}
    assert decoded_by(args, tmp_path, **kw)[::2] == (0, True)
    if why == "names a reference":
        n = len(containers(path.read_bytes()))
        assert decoded_by([*args, "--reference", fasta], tmp_path)[::2] == (n, False)
        text = text.replace(str(fasta), "/nowhere/ref.fa")
        as_cram(unsorted_bam, tmp_path / "in.cram", ["no_ref=1", "seqs_per_slice=400"], text=text)
        assert decoded_by(args, tmp_path)[::2] == (n, False)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_damage_in_a_container_is_told_of_another_record(tmp_path, cram, threads):
    data = cram("3.0")
    found = containers(data)
    c, before = found[6], sum(c.n for c in found[:6])
    at = header_blocks(data, c)[-1][1] + 8           # a byte of the first block after the slice's header
    (tmp_path / "in.cram").write_bytes(data[:at] + bytes([data[at] ^ 255]) + data[at + 1:])
    refused(tmp_path, ["-@", threads, "-o", "out.bam", "in.cram"], "in.cram: record %d cannot be read" % (before + 1),
            env=HTSLIB_LEAKS)


@pytest.mark.parametrize("threads", [1, 3])
def test_file_cut_inside_a_container_passes(tmp_path, cram, threads):
    data = cram("3.0")
    c = containers(data)[6]
    for end in c.start + 4, c.inside, (c.inside + c.end) // 2, c.end - 1:
        (tmp_path / "in.cram").write_bytes(data[:end])
        refused(tmp_path, ["-@", threads, "-o", "out.bam", "in.cram"], "in.cram", env=HTSLIB_LEAKS)


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_end_that_is_missing_is_not_told(tmp_path, cram, threads):
    data = cram("3.0")
    for end, said in (len(data), 0), (containers(data)[-1].end, 1):
        (tmp_path / "in.cram").write_bytes(data[:end])
        p = run_sort(["-@", threads, "-o", "out.bam", "in.cram"], cwd=tmp_path)
        assert p.returncode == 0 and p.stderr.count("EOF marker is absent") == said


def test_empty_container_in_the_middle_ends_the_file(tmp_path, cram):
    data = cram("3.0")
    found = containers(data)
    (tmp_path / "in.cram").write_bytes(data[:found[4].start] + data[found[-1].end:] + data[found[4].start:])
    for threads in 1, 3:
        ours = sorted_bytes(["--no-PG", "-@", threads, "in.cram"], cwd=tmp_path)
        assert len(read_bam(ours).records()) == N


def test_slices_that_hold_other_numbers_than_their_container_pass(tmp_path, cram):
    """Fewer or more records in the header of a slice, with a correct CRC-32."""
    data = cram("3.0")
    start, end = header_blocks(data, containers(data)[3])[-1]
    at = start + 3 + itf8(data, start + 3)[1]
    at += itf8(data, at)[1]
    for _ in range(3):                               # the reference, the start and the span
        at += itf8(data, at)[1]
    assert data[at] == 50
    for n in 49, 51:
        block = data[start:at] + bytes([n]) + data[at + 1:end - 4]
        (tmp_path / "in.cram").write_bytes(data[:start] + block + struct.pack("<I", zlib.crc32(block)) + data[end:])
        refused(tmp_path, ["-@", 3, "-o", "out.bam", "in.cram"], "in.cram", env=HTSLIB_LEAKS)


# ----------------------------------------------------------------- names that htslib makes


@pytest.fixture(scope="module")
def nameless(tmp_path_factory):
    """Pairs whose names are left out: decoders make names from the name of the file."""
    header, r = bamgen.header("@HD\tVN:1.6\n" + bamgen.sq_text(FASTA_REFS), FASTA_REFS), bamgen.rng("nameless")
    recs = [bamgen.record("t%d" % i, flag, 0, pos, seq=bamgen.bases(r, 20), cigar=[(20, "M")], mtid=0, mpos=mate,
                          tlen=tlen)
            for i in range(300) for flag, pos, mate, tlen in ((0x63, 5 * i, 5 * i + 200, 220), (0x93, 5 * i + 200, 5 * i, -220))]
    folder = tmp_path_factory.mktemp("nameless")
    (folder / "in.bam").write_bytes(bamgen.bgzf(header + b"".join(recs)))
    return as_cram(folder / "in.bam", folder / "in.cram", ["no_ref=1", "lossy_names=1", "seqs_per_slice=100"]).read_bytes()


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("way", ["in.cram", "sub/in.cram", "preload:sub/in.cram", "in.cram##idx##x", "file://", "-", "pipe"])
def test_names_are_made_of_a_name_that_the_user_did_not_give(tmp_path, nameless, way, threads):
    (tmp_path / "sub").mkdir()
    (tmp_path / "in.cram").write_bytes(nameless)
    (tmp_path / "sub" / "in.cram").write_bytes(nameless)
    theirs = oracle_bytes(tmp_path / "in.cram", "--no-PG", "-O", "sam")
    assert theirs.count(b"\nin.cram:") == 600
    args = ["--no-PG", "-O", "sam", "-@", threads]
    if way == "pipe":
        ours = sorted_bytes(args, stdin=nameless)
    elif way == "-":
        with open(tmp_path / "in.cram", "rb") as file:
            ours = sorted_bytes([*args, "-"], stdin=file)
    else:
        ours = sorted_bytes([*args, "file://%s/in.cram" % tmp_path if way == "file://" else way], cwd=tmp_path)
    if way in ("-", "pipe"):                         # samtools does so, too
        theirs = theirs.replace(b"\nin.cram:", b"\n-:")
    assert ours == theirs


@pytest.mark.parametrize("first", ["a.cram", "-"])
def test_names_of_several_inputs_are_one(tmp_path, nameless, first):
    (tmp_path / "a.cram").write_bytes(nameless)
    (tmp_path / "b.cram").write_bytes(nameless)
    kw = {"stdin": nameless} if first == "-" else {}
    ours = sorted_bytes(["--no-PG", "-O", "sam", "-@", 2, "--add-input", "b.cram", first], cwd=tmp_path, **kw)
    assert [ours.count(b"\n%s:" % name) for name in (first.encode(), b"b.cram")] == [600, 600]
