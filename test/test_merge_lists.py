# SPDX-License-Identifier: MIT
"""BAM headers whose text and list of references differ, and SAM with the same text: in every command that joins or
shares headers. The name of a record states its reference."""

import itertools
import struct

import pytest

import bamgen
from conftest import oracle_call, read_bam, run
from mergegen import refs_of
from test_merge import merges_the_same, ours, refused

C1, C2, C3 = ("c1", 1000), ("c2", 500), ("c3", 7)
LISTS = {"12": [C1, C2], "21": [C2, C1], "1": [C1], "long": [C1, ("c2", 600)]}
TEXTS = {**LISTS, "123": [C1, C2, C3], "other": [("d1", 1000), C2], "none": []}
HEADERS = list(itertools.product(TEXTS, LISTS))
FORMS = ("bam", "sam", "sam.gz", "pipe")


def lines_of(text, first="@HD\tVN:1.6\n"):
    return first + bamgen.sq_text(TEXTS[text])


def write_bam(path, text, refs, name, first="@HD\tVN:1.6\n"):
    """A record on each reference of the list."""
    records = [bamgen.record("%s.%s" % (name, ref), tid=i, pos=10 + len(name), mtid=(i + 1) % len(LISTS[refs]), mpos=3)
               for i, (ref, _) in enumerate(LISTS[refs])]
    path.write_bytes(bamgen.bgzf(bamgen.header(lines_of(text, first), LISTS[refs]) + b"".join(records)))
    return path


def write_sam(path, text, name):
    """A record on each reference of the text. The extension of the path decides whether it is BGZF."""
    refs = [ref for ref, _ in TEXTS[text]]
    sam = lines_of(text) + "".join("%s.%s\t0\t%s\t%d\t60\t4M\t%s\t4\t0\tACGT\t*\n" % (
        name, ref, ref, 11 + len(name), refs[(i + 1) % len(refs)]) for i, ref in enumerate(refs))
    path.write_bytes(bamgen.bgzf(sam.encode()) if path.name.endswith("gz") else sam.encode())
    return path


def write(folder, header, form, name):
    """A file with this header; SAM has only the text."""
    path = folder / ("%s.%s" % (name, form))
    return write_sam(path, header[0], name) if form.startswith("sam") else write_bam(path, *header, name)


def references(header, form):
    """Returns them in htslib's order: the references of the list, then those of the text that are missing in it."""
    text, listed = TEXTS[header[0]], LISTS[header[1]]
    return text if form.startswith("sam") else listed + [r for r in text if r[0] not in dict(listed)]


def stay_where_they_are(bam):
    refs = [name for name, _ in refs_of(bam)]
    for rec in bam.records():
        tid, = struct.unpack_from("<i", rec, 4)
        name = rec[36:36 + rec[12] - 1].decode()
        assert name.endswith("." + refs[tid]), (name, refs[tid])


def pairs_from(text):
    """Pairs of headers, the first of this text, that agree in the text or in the list."""
    for a, b in itertools.product(HEADERS, HEADERS):
        if a[0] == text and (a[0] == b[0]) != (a[1] == b[1]):
            yield a, b


@pytest.mark.parametrize("text", TEXTS)
def test_merge_puts_records_on_another_reference(tmp_path, text):
    """Four inputs in turn, so that one header follows another one and occurs again."""
    for i, (a, b) in enumerate(pairs_from(text)):
        form, order = FORMS[i % 4], [[], ["-n"]][i // 4 % 2]
        if form.startswith("sam") and not TEXTS[b[0]]:
            form = "bam"
        first, second = write(tmp_path, a, "bam", "a"), write(tmp_path, b, form, "bb")
        inputs = [first, "-" if form == "pipe" else second, write(tmp_path, a, "bam", "ccc"),
                  write(tmp_path, b, "bam", "dddd")]
        args = [*order, "-s", "1", "--no-PG", *inputs]
        status, err = oracle_call("merge", ["-f", "-O", "bam", "-o", tmp_path / "theirs", *args],
                                  second if form == "pipe" else None)
        p = ours(["-o", "-", *args], stdin=second.read_bytes() if form == "pipe" else None)
        assert status == p.returncode == 0, (a, b, form, err, p.stderr)
        mine, expected = read_bam(p.stdout), read_bam(tmp_path / "theirs")
        assert (mine.lines(), mine.refs) == (expected.lines(), expected.refs), (a, b, form)
        assert mine.body == expected.body, (a, b, form, order)
        stay_where_they_are(mine)


@pytest.mark.parametrize("form", ["sam", "sam.gz"])
@pytest.mark.parametrize("order", [[], ["-n"]], ids=["coordinate", "n"])
def test_sam_gets_the_header_of_a_bam_with_another_list(tmp_path, form, order):
    for text, listed in ("21", "12"), ("12", "21"), ("12", "long"), ("123", "21"):
        bam = write_bam(tmp_path / "a.bam", text, listed, "a")
        sam = [write_sam(tmp_path / ("%s.%s" % (name, form)), text, name) for name in ("b", "c")]
        for inputs in [bam, *sam], [*sam, bam], [sam[0], bam, sam[1]]:
            stay_where_they_are(merges_the_same([*order, *inputs], tmp_path))


@pytest.mark.parametrize("command", [["sort"], ["sort", "-n"], ["sormadup"]], ids=" ".join)
def test_added_input_is_taken_with_other_references(tmp_path, command):
    """Either the added input is refused, or its records keep their references."""
    taken = 0
    some = (x for text in ("12", "21", "123", "none") for x in pairs_from(text))
    for i, (a, b) in enumerate(itertools.islice(some, 0, None, 2)):
        form = FORMS[i % 3]
        if form.startswith("sam") and not TEXTS[b[0]]:
            form = "bam"
        first, second = write(tmp_path, a, "bam", "a"), write(tmp_path, b, form, "b")
        p = run([*command, "--no-PG", "--add-input", second, first])
        same = references(a, "bam") == references(b, form)
        assert (p.returncode == 0) == same, (a, b, form, p.stderr)
        if same:
            taken += 1
            stay_where_they_are(read_bam(p.stdout))
            assert len(read_bam(p.stdout).records()) == len(LISTS[a[1]]) + len(
                TEXTS[b[0]] if form.startswith("sam") else LISTS[b[1]])
        else:
            assert p.returncode == 1 and second.name in p.stderr and p.stdout == b"", p.stderr
    assert taken > 3


def call(command, args, samtools):
    if samtools:
        return oracle_call(command, args)
    p = run([command, *args])
    return p.returncode, p.stderr


@pytest.mark.parametrize("command", ["sort", "collate", "fixmate"])
def test_list_of_references_is_left_for_the_text(tmp_path, command):
    mine, theirs = tmp_path / "mine.bam", tmp_path / "theirs.bam"
    for header in HEADERS:
        path = write(tmp_path, header, "bam", "a")
        for out in mine, theirs:
            words = [path, out] if command == "fixmate" else ["-o", out, path]
            status, err = call(command, ["--no-PG", *words], out == theirs)
            assert status == 0, (header, err)
        ours, expected = read_bam(mine), read_bam(theirs)
        assert (ours.lines(), ours.refs) == (expected.lines(), expected.refs), header
        assert sorted(ours.records()) == sorted(expected.records()), header
        stay_where_they_are(ours)


def test_references_that_only_the_text_has_are_merged(tmp_path):
    """samtools uses the list of BAM, beginning with the header after the first @HD; before that it also uses the
    text."""
    for name, first, text, listed in (("bare", "", "1", "1"), ("bare12", "", "12", "1"), ("hd", "@HD\tVN:1.6\n", "1", "1"),
                                      ("hd123", "@HD\tVN:1.6\n", "123", "1"), ("other", "", "other", "1"),
                                      ("other2", "@HD\tVN:1.6\n", "other", "21")):
        write_bam(tmp_path / name, text, listed, name, first)
    found = []
    for words in ("bare bare12", "bare bare12 hd123", "bare hd123 bare12", "hd bare12 hd123", "bare hd123 other",
                  "bare other hd bare12", "-h hd bare bare12", "-h bare12 bare hd123", "hd123 hd", "hd hd123 hd123 hd123",
                  "hd hd123 other hd123 other2 bare hd123"):
        args = [x if x == "-h" else tmp_path / x for x in words.split()]
        found.append(len(refs_of(merges_the_same(args, tmp_path))))
    assert found == [2, 3, 3, 1, 3, 3, 1, 3, 3, 1, 2], found


def test_record_on_a_reference_that_the_list_lacks_is_merged(tmp_path):
    """Its header is not the output's, so it has no such reference."""
    for name, tid in ("a", 0), ("b", 2):
        (tmp_path / name).write_bytes(bamgen.bgzf(bamgen.header(lines_of("123"), LISTS["12"])
                                                  + bamgen.record(name, tid=tid, pos=3)))
    refused(["-o", "out.bam", "a", "b"], tmp_path, "b: record 1 ")
