# SPDX-License-Identifier: MIT
"""The inputs and outputs of `samtools merge`: pipes, lists, formats, thousands of inputs; damaged or missing inputs
leave no output."""

import os
import pathlib
import re
import shutil
import struct
import subprocess

import pysam
import pytest

import bamgen
import mergegen
from conftest import (BINARY, HANG, PRECIOUS, SANITIZED, blocks, clean_env, limit_on, oracle_call, read_bam, run,
                      same_lines)
from test_merge import (ALONE, SETTINGS, SMALL, bam_of, files_in, merged, merges_the_same, ours, pools, refused,
                        tiny_at)

# --------------------------------------------------- inputs and outputs


@pytest.fixture(scope="module")
def five(pools, tmp_path_factory):
    """Five inputs in coordinate order and the merge of them."""
    folder = tmp_path_factory.mktemp("five")
    inputs = mergegen.write(mergegen.split(pools("coordinate"), 5, "random", bamgen.rng("five")), folder)
    return inputs, merged(["-s", "1", "--no-PG", *inputs])


def test_input_from_a_pipe_differs(five, tmp_path):
    inputs, expected = five
    line = 'exec "$0" merge -s 1 --no-PG -@ 2 -o out.bam "$1" <(cat "$2") "$3" - <(cat "$5") <"$4"'
    p = subprocess.run(["bash", "-c", line, BINARY, *map(str, inputs)], cwd=tmp_path, capture_output=True,
                       env=clean_env(**ALONE), timeout=HANG)
    assert p.returncode == 0, p.stderr
    assert read_bam(tmp_path / "out.bam").records() == read_bam(expected).records()
    for place in range(5):
        args = [*inputs[:place], "-", *inputs[place + 1:]]
        assert merged(["-s", "1", "--no-PG", *args], stdin=inputs[place].read_bytes()) == expected


def test_one_input_changes(five, tmp_path):
    for path in five[0]:
        merges_the_same([path], tmp_path, SETTINGS)


def test_same_input_many_times_differs(five, tmp_path):
    merges_the_same([five[0][0]] * 20, tmp_path)
    merges_the_same(["-c", "-p", *[five[0][0]] * 20], tmp_path)


@pytest.mark.parametrize("how", ["operand", "-o", "stdout"])
def test_output_goes_elsewhere(five, tmp_path, how):
    inputs, expected = five
    out = {"operand": ["out.bam", *inputs], "-o": [*inputs[:2], "-o", "out.bam", *inputs[2:]],
           "stdout": ["-", *inputs]}[how]
    p = ours(["-s", "1", "--no-PG", *out], cwd=tmp_path)
    assert p.returncode == 0, p.stderr
    data = p.stdout if how == "stdout" else (tmp_path / "out.bam").read_bytes()
    assert data == expected and files_in(tmp_path) == ["out.bam"] * (how != "stdout")


def test_existing_output_is_overwritten_unasked_or_not_at_all(five, desk):
    inputs, expected = five
    for args in (["out.bam", *inputs], ["-o", "out.bam", *inputs]):
        p = refused(args, desk, "out.bam")
        assert "-f" in p.stderr and (desk / "out.bam").read_bytes() == PRECIOUS
    p = ours(["-f", "-s", "1", "--no-PG", "out.bam", *inputs], cwd=desk)
    assert p.returncode == 0 and (desk / "out.bam").read_bytes() == expected and files_in(desk) == ["out.bam"]


def test_output_that_is_an_input_is_lost(five, tmp_path):
    """Either the merge replaces the input, or all files are unchanged."""
    inputs, expected = five
    shutil.copyfile(inputs[1], tmp_path / "in.bam")
    p = ours(["-f", "-s", "1", "--no-PG", "-o", "in.bam", inputs[0], "in.bam", *inputs[2:]], cwd=tmp_path)
    data = (tmp_path / "in.bam").read_bytes()
    assert (p.returncode, data) in ((0, expected), (1, inputs[1].read_bytes())), p.stderr
    assert files_in(tmp_path) == ["in.bam"]


@pytest.mark.parametrize("lists", [1, 2])
def test_list_of_inputs_is_read_otherwise(five, tmp_path, lists):
    """They come before the operands."""
    inputs, expected = five
    cut = [inputs[:2], []] if lists == 1 else [inputs[:1], inputs[1:3]]
    words = []
    for i in range(lists):
        (tmp_path / ("list%d" % i)).write_text("".join("%s\n" % x for x in cut[i]))
        words += ["-b", "list%d" % i]
    rest = inputs[sum(map(len, cut)):]
    for args in (["out.bam", *rest, *words], [*words, "-f", "-o", "out.bam", *rest]):
        p = ours(["-s", "1", "--no-PG", *args], cwd=tmp_path)
        assert p.returncode == 0, p.stderr
        assert (tmp_path / "out.bam").read_bytes() == expected
    (tmp_path / "all").write_text("".join("%s\n" % x for x in inputs).rstrip("\n"))
    assert merged(["-s", "1", "--no-PG", "-b", "all"], cwd=tmp_path) == expected


@pytest.mark.parametrize("form", ["sam", "bam", "sam.gz", "cram"])
@pytest.mark.parametrize("by", ["option", "suffix"])
def test_output_has_another_format(five, tmp_path, form, by):
    inputs, expected = five
    out = tmp_path / ("out." + (form if by == "suffix" else "x"))
    args = [] if by == "suffix" else ["-O", form]
    more = ["--output-fmt-option", "no_ref=1"] if form == "cram" else []
    p = ours(["-s", "1", "--no-PG", *args, *more, "-o", out, *inputs])
    assert p.returncode == 0, p.stderr
    first = out.read_bytes()[:4]
    assert {"sam": first == b"@HD\t", "cram": first == b"CRAM"}.get(form, first == b"\x1f\x8b\x08\x04")
    (tmp_path / "expected.bam").write_bytes(expected)
    model = converted(tmp_path / "expected.bam", "cram,no_ref=1") if form == "cram" else tmp_path / "expected.bam"
    same_lines(converted(out, "sam").read_text(), converted(model, "sam").read_text(), "the output")


def converted(path, form):
    """samtools converts it; CRAM has RG tags at the end."""
    made = path.with_suffix("." + form[:3] + ".x")
    status, err = oracle_call("view", ["--no-PG", "--verbosity", "1", "-h", "-O", form, "-o", made, path])
    assert status == 0, err
    return made


@pytest.mark.parametrize("level", [["-u"], ["-1"], ["-l", "0"], ["-l", "1"], ["-l", "9"], ["-l", "77"], ["-l", "-3"],
                                   ["-u", "-l", "9"], ["-l", "9", "-u"], ["-1", "-u"], []],
                         ids=lambda x: "".join(x) or "none")
def test_level_is_another(five, level):
    inputs, expected = five
    args = ["-s", "1", "--no-PG", *inputs]
    data = merged([*level, *args])
    word = {"-u": "0", "-1": "1", "-3": "-1", "77": "9"}.get(level[-1], level[-1]) if level else "-1"
    assert data == merged(["-l", word, *args]) and read_bam(data).body == read_bam(expected).body
    stored = all(len(b.deflated) >= len(b.data) for b in blocks(data) if b.data)
    assert stored == (word == "0")


@pytest.mark.parametrize("name, index", [("out.bam", "out.bam.csi"), ("out.bam##idx##x.csi", "x.csi"),
                                         ("out.bam##idx##x.bai", "x.bai")])
def test_index_is_wrong(five, tmp_path, name, index):
    inputs, expected = five
    p = ours(["-s", "1", "--no-PG", "--write-index", "-o", name, *inputs], cwd=tmp_path)
    assert p.returncode == 0, p.stderr
    assert (tmp_path / "out.bam").read_bytes() == expected and files_in(tmp_path) == sorted(["out.bam", index])
    with pysam.AlignmentFile(str(tmp_path / "out.bam"), index_filename=str(tmp_path / index)) as file:
        reads = list(file.fetch(until_eof=True))
        for tid, ref in enumerate(file.references):
            there = [r for r in reads if r.reference_id == tid and r.reference_start < 20
                     and (r.reference_end or r.reference_start + 1) > 5]
            assert [r.to_string() for r in file.fetch(ref, 5, 20)] == [r.to_string() for r in there]


@pytest.mark.parametrize("args, words", [
    (["-o", "out.bam"], ""), (["out.bam"], ""), (["-l", "much", "-o", "out.bam", "in0"], "much"),
    (["-o", "out.bam", "none.bam", "in0"], "none.bam"), (["-o", "out.bam", "in0", "none.bam"], "none.bam"),
    (["-o", "no/such/out.bam", "in0"], "no/such"), (["--nonsense", "-o", "out.bam", "in0"], "nonsense"),
    (["-O", "vcf", "-o", "out.bam", "in0"], ""), (["-h", "none.txt", "-o", "out.bam", "in0"], "none.txt"),
    (["--write-index", "-O", "sam", "-o", "out.sam", "in0"], ""),
    (["-o", "out.bam", "text", "in0"], "text"), (["-o", "out.bam", "empty", "in0"], "empty")])
def test_mistake_is_taken(five, tmp_path, args, words):
    shutil.copyfile(five[0][0], tmp_path / "in0")
    (tmp_path / "text").write_text("no alignments\n")
    (tmp_path / "empty").write_bytes(b"")
    refused(args, tmp_path, words)


# ------------------------------------------------------------------- damage


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Three inputs of some 40 blocks."""
    folder = tmp_path_factory.mktemp("large")
    head, recs = bamgen.realistic(20000)
    recs.sort(key=lambda rec: (struct.unpack_from("<ii", rec, 4), rec[18] & 16))
    part = mergegen.part_of(read_bam(bamgen.bgzf(head + b"".join(recs), level=0)))
    part.records = recs
    part.replace("RG", ["@RG\tID:lane%d\tSM:s" % i for i in range(4)])
    return mergegen.write(mergegen.split(part, 3, "robin", bamgen.rng("large")), folder)


def damaged(data, how):
    found = blocks(data)
    middle = found[len(found) // 2]
    if how == "cut":
        return data[:middle.offset + middle.size // 2]
    if how == "cut between blocks":
        return data[:middle.offset]                  # in the middle of a record: they cross borders here
    if how == "zeros":
        return data[:middle.offset] + bytes(300) + data[middle.offset + 300:]
    if how == "record":
        plain = bytearray(b"".join(b.data for b in found))
        at = read_bam(data).header_size
        for _ in range(3000):
            at += 4 + struct.unpack_from("<I", plain, at)[0]
        plain[at:at + 4] = b"\xff\xff\xff\x7f"
        return bamgen.bgzf(bytes(plain), level=1)
    bad = bytearray(data)
    bad[middle.offset + 40] ^= 255
    return bytes(bad)


DAMAGE = ["byte", "cut", "cut between blocks", "zeros", "record"]


@pytest.mark.parametrize("which", range(3))
@pytest.mark.parametrize("how", DAMAGE)
def test_damage_leaves_an_output_or_does_not_tell_where(large, desk, threads, how, which):
    inputs = [str(x) for x in large]
    (desk / "bad.bam").write_bytes(damaged(large[which].read_bytes(), how))
    inputs[which] = "bad.bam"
    for env in {}, SMALL:
        p = ours(["-f", "-@", threads, "-o", "out.bam", *inputs], cwd=desk, env=env)
        assert p.returncode == 1 and p.stderr.startswith("samtools merge: "), p.stderr
        assert p.stderr.count("bad.bam") == 1 and p.stderr.count("\n") == 1, p.stderr
        assert re.search("record 3001" if how == "record" else r"bad\.bam: .*\d", p.stderr), p.stderr
        assert (desk / "out.bam").read_bytes() == PRECIOUS and files_in(desk) == ["bad.bam", "out.bam"]


@pytest.mark.parametrize("kind", ["sam", "sam.gz", "cram"])
def test_damage_of_other_formats_leaves_an_output(pools, desk, kind):
    parts = mergegen.split(pools("coordinate"), 3, "random", bamgen.rng("damage"))
    scratch = desk.parent / (desk.name + "_in")
    scratch.mkdir()
    inputs = mergegen.write(parts, scratch, [kind])
    data = bytearray(inputs[1].read_bytes())
    if kind == "sam":
        lines = bytes(data).splitlines(True)
        lines[len(lines) // 2] = b"broken\tline\n"
        data = b"".join(lines)
    else:
        data = data[:len(data) // 2]
    inputs[1].write_bytes(data)
    p = ours(["-f", "-@", 2, "-o", "out.bam", *inputs], cwd=desk)
    assert p.returncode == 1 and inputs[1].name in p.stderr, p.stderr
    assert (desk / "out.bam").read_bytes() == PRECIOUS and files_in(desk) == ["out.bam"]


def test_missing_end_mark_is_an_error_or_not_told(large, tmp_path):
    (tmp_path / "in.bam").write_bytes(large[1].read_bytes()[:-28])
    p = ours(["--no-PG", "-s", "1", "-o", "-", large[0], tmp_path / "in.bam", large[2]])
    assert p.returncode == 0 and "in.bam" in p.stderr and p.stderr.count("\n") == 1
    assert p.stdout == merged(["--no-PG", "-s", "1", *large])


@pytest.mark.parametrize("tag", [b"RGiabcd", b"PGAx", b"RGBC\1\0\0\0x", b"PGf\0\0\0\0"])
def test_group_that_is_no_string_crashes(tmp_path, tag):
    """The result is that of samtools 1.24."""
    recs = [bamgen.record("r%d" % i, 0, 0, i, tags=b"NMC\1" + (tag if i == 50 else b"")) for i in range(99)]
    head = bamgen.header("@HD\tVN:1.6\n" + bamgen.sq_text() + "@RG\tID:x\n@PG\tID:p\n")
    (tmp_path / "in.bam").write_bytes(bamgen.bgzf(head + b"".join(recs)))
    p = refused(["-o", "out.bam", "in.bam"], tmp_path, "in.bam")
    assert "51 has an RG or PG tag that is not a string" in p.stderr and "remove the tag" in p.stderr
    assert p.stderr.count("\n") == 1


@pytest.mark.parametrize("first", [True, False])
def test_template_without_mate_cigar_leaves_an_output(tmp_path, first):
    odd = 0 if first else 500
    recs = [bamgen.record("r%d" % i, 0x41 if i == odd else 0, 0, i, mtid=0, mpos=7) for i in range(999)]
    for name in "a.bam", "b.bam":
        (tmp_path / name).write_bytes(bamgen.bgzf(bamgen.header() + b"".join(recs)))
    p = refused(["--template-coordinate", "-@", 2, "-o", "out.bam", "a.bam", "b.bam"], tmp_path, "MC")
    assert ".bam" in p.stderr


def test_verify_takes_the_wrong_order_for_a_fault(five, tmp_path):
    """Sorted inputs are recognised as sorted; a greedy merge is not sorted."""
    inputs, expected = five
    assert merged(["-s", "1", "--no-PG", "--verify", *inputs]) == expected
    for args in [], ["-u"], ["-O", "sam"]:
        by_name = ["-n", "-s", "1", "--no-PG", *args]
        assert merged([*by_name, "--verify", *inputs]) == merged([*by_name, *inputs])


def test_record_beyond_its_reference_spoils_cram(tmp_path):
    lines = ["r%d\t0\tc\t%d\t9\t1M\t*\t0\t0\tA\tI\n" % (i, i + 1 if i < 900 else 5000) for i in range(901)]
    (tmp_path / "a.sam").write_text("@SQ\tSN:c\tLN:1000\n" + "".join(lines))
    p = refused(["-o", "out.cram", "a.sam"], tmp_path, "a.sam: record 901 begins after the end of its reference")
    assert "no_ref=1" in p.stderr
    p = ours(["--output-fmt-option", "no_ref=1", "-o", "out.cram", "a.sam"], cwd=tmp_path)
    assert p.returncode == 0, p.stderr
    with pysam.AlignmentFile(str(tmp_path / "out.cram"), check_sq=False) as out:
        assert [r.reference_start for r in out][-1] == 4999


def test_full_disk_leaves_an_output(large, desk):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full here")
    with open("/dev/full", "wb") as full:
        p = subprocess.run([BINARY, "merge", "-u", *map(str, large), "-o", "-"], stdin=subprocess.DEVNULL, stdout=full,
                           stderr=subprocess.PIPE, env=clean_env(**ALONE), timeout=HANG)
    assert p.returncode == 1 and p.stderr.startswith(b"samtools merge: ")
    p = ours(["-f", "-u", "-o", "out.bam", *large], cwd=desk, before=limit_on("FSIZE", 1 << 20))
    assert p.returncode != 0 and (desk / "out.bam").read_bytes() == PRECIOUS and files_in(desk) == ["out.bam"]


# -------------------------------------------------------------------- limits


@pytest.mark.slow
@pytest.mark.parametrize("n", [1000, pytest.param(10000, marks=pytest.mark.skipif(SANITIZED, reason="takes minutes"))])
def test_many_inputs_meet_the_limit_on_open_files(tmp_path, n):
    """n names of ten files, some eight records in each."""
    recs = [tiny_at(range(i, 60, 7), b"abcdefghij"[i:i + 1]) for i in range(10)]
    files, names = [bam_of(x, tmp_path / ("of%d.bam" % i)) for i, x in enumerate(recs)], []
    for i in range(n):
        names.append(tmp_path / ("n%05d.bam" % i))
        os.link(files[i * 7 % 10], names[-1])
    (tmp_path / "list").write_text("".join("%s\n" % x for x in names))
    expected = sorted((rec for i in range(n) for rec in recs[i * 7 % 10]), key=lambda rec: rec[8:12][::-1])
    for words in [["-b", tmp_path / "list"], names][:1 if n > 1000 else 2]:
        bam = read_bam(merged(["--no-PG", "-u", "-@", 2, *words], before=limit_on("NOFILE", 64)))
        assert bam.body == b"".join(expected)


def peak(args, folder):
    """Peak resident set in bytes, by the kernel's account."""
    timed = pathlib.Path(os.path.realpath(BINARY)).parent / "timed"
    if not timed.exists():
        pytest.skip("no timed: make tools")
    p = subprocess.run([timed, folder / "timed", BINARY, "merge", *map(str, args)], stdin=subprocess.DEVNULL,
                       capture_output=True, env=clean_env(**ALONE), timeout=HANG)
    assert p.returncode == 0, p.stderr
    return 1024 * int(re.search(r"rss_kb=(\d+)", (folder / "timed").read_text()).group(1))


@pytest.mark.parametrize("n", [1, 2, 9, 40])
def test_memory_that_is_said_to_be_enough_is_not(five, threads, n):
    inputs = (five[0] * 8)[:n]
    p = ours(["-o", "-", "-@", threads, "--total-memory", "24M", *inputs])
    found = re.search(r"(\d+M) is enough", p.stderr)
    if found:
        assert p.returncode == 1 and p.stderr.count("\n") == 1 and p.stdout == b""
        p = ours(["-o", "-", "-@", threads, "--total-memory", found.group(1), *inputs])
    assert p.returncode == 0 or "the minimum is" in p.stderr, p.stderr


@pytest.mark.skipif(SANITIZED, reason="memory of sanitized programs")
def test_equal_headers_are_kept_for_each_input(tmp_path):
    """200,000 references of 20 inputs, 7 MB of text each. Upstream keeps a hash of all for each input."""
    refs = [("contig_%07d" % i, 1000) for i in range(200000)]
    recs = [bamgen.record("r", 0, tid, 9) for tid in (3, 70000, 199999)]
    path = tmp_path / "in.bam"
    head = bamgen.header("@HD\tVN:1.6\tSO:coordinate\n" + bamgen.sq_text(refs), refs)
    path.write_bytes(bamgen.bgzf(head + b"".join(recs), level=1))
    args = ["-u", "--total-memory", "256M", "-o", tmp_path / "out.bam", "-f"]
    few, many = peak([*args, *[path] * 2], tmp_path), peak([*args, *[path] * 20], tmp_path)
    assert len(read_bam(tmp_path / "out.bam").records()) == 60
    assert many - few < 18 * (24 << 20), "%d MiB for 2 inputs, %d MiB for 20" % (few >> 20, many >> 20)


# -------------------------------------------------------------------- help


@pytest.mark.parametrize("words", [["merge", "--help"], ["help", "merge"], ["merge"]], ids=" ".join)
def test_help_is_missing(words):
    p = run(words, env=ALONE)
    assert p.returncode == 0 and p.stdout.startswith(b"Usage: samtools merge ") and p.stderr == ""
