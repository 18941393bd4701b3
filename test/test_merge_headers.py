# SPDX-License-Identifier: MIT
"""Header and tags of the output of `samtools merge`: the cases of its manual page, word by word, and compared with
samtools 1.24."""

import json
import pathlib
import re

import pytest

import bamgen
from conftest import oracle_call, same_lines
from test_merge import merged, merges_the_same, ours, refused

HD, C = "@HD\tVN:1.6\tSO:coordinate", ["@SQ\tSN:c1\tLN:1000", "@SQ\tSN:c2\tLN:1000"]
PROGRAMS = ["@PG\tID:p1", "@PG\tID:p2\tPP:p1"]


def sam(name, place="c1:1", flag=0, *tags):
    ref, pos = place.split(":") if ":" in place else (place, "0")
    return "\t".join([name, str(flag), ref, pos, "9", "*" if flag & 4 else "4M", "*", "0", "0", "ACGT", "IIII", *tags])


A = [HD, *C, "@RG\tID:x\tPG:p2\tSM:a", "@RG\tID:y\tSM:a", *PROGRAMS, sam("a", "c1:1", 0, "RG:Z:x", "PG:Z:p2", "NM:i:1")]
B = [HD, *C, "@RG\tID:x\tPG:p2\tSM:b", "@RG\tID:z\tSM:b", *PROGRAMS, sam("b", "c1:2", 0, "RG:Z:x", "PG:Z:p1"),
     sam("b2", "c1:3", 0, "RG:Z:z")]
BARE = [HD, *C]
U = [*BARE, sam("u50", "c1:50"), sam("u5", "c1:5"), sam("u60", "c1:60")]
V = [*BARE, sam("v20", "c1:20"), sam("v55", "c1:55")]
P = [HD, *C, sam("p1", "c1:5"), sam("p2", "c2:15")]
Q = [HD, *C[::-1], sam("q1", "c2:5"), sam("q2", "c1:15")]


def named(*reads):
    return [*BARE, *(sam(name, "c1:9", flag) for name, flag in reads)]


def tagged(*reads):
    return [*BARE, *(sam(name, "c1:%d" % pos, 0, *tags) for name, pos, *tags in reads)]


# name: inputs, arguments, and the expected output: header lines of these kinds, names of records, or "NAME: TAGS"
CASES = {
    "1": ({"a.sam": A, "b.sam": B}, ["a.sam", "b.sam"], {
        "RG": ["ID:x PG:p2 SM:a", "ID:y SM:a", "ID:x-055424A4 PG:p2-6ADB4A65 SM:b", "ID:z SM:b"],
        "PG": ["ID:p1", "ID:p2 PP:p1", "ID:p1-3A2CCEF5", "ID:p2-6ADB4A65 PP:p1-3A2CCEF5"],
        "tags": ["a: NM:i:1 RG:Z:x PG:Z:p2", "b: RG:Z:x-055424A4 PG:Z:p1-3A2CCEF5", "b2: RG:Z:z"]}),
    "2": ({"a.sam": A, "b.sam": B}, ["-c", "-p", "a.sam", "b.sam"], {
        "RG": ["ID:x PG:p2 SM:a", "ID:y SM:a", "ID:z SM:b"], "PG": ["ID:p1", "ID:p2 PP:p1"],
        "tags": ["a: NM:i:1 RG:Z:x PG:Z:p2", "b: RG:Z:x PG:Z:p1", "b2: RG:Z:z"]}),
    "3": ({"a.sam": A, "b.sam": B}, ["-r", "a.sam", "b.sam"], {
        "RG": ["ID:a PG:p2 SM:a", "ID:b PG:p2-3A2CCEF5 SM:b"],
        "PG": ["ID:p1", "ID:p2 PP:p1", "ID:p1-055424A4", "ID:p2-3A2CCEF5 PP:p1-055424A4"],
        "tags": ["a: NM:i:1 PG:Z:p2 RG:Z:a", "b: PG:Z:p1-055424A4 RG:Z:b", "b2: RG:Z:b"]}),
    "4": ({"a.sam": A, "d/a.sam": V}, ["-r", "a.sam", "d/a.sam"], {
        "RG": ["ID:a PG:p2 SM:a", "ID:a-055424A4"],
        "tags": ["a: NM:i:1 PG:Z:p2 RG:Z:a", "v20: RG:Z:a", "v55: RG:Z:a"]}),
    "5": ({"rg.txt": ["@RG\tID:a"], "a.sam": A, "d/a.sam": V}, ["-r", "-h", "rg.txt", "a.sam", "d/a.sam"], {
        "RG": ["ID:a", "ID:a-055424A4", "ID:a-3A2CCEF5"], "PG": ["ID:p1", "ID:p2 PP:p1"],
        "tags": ["a: NM:i:1 PG:Z:p2 RG:Z:a", "v20: RG:Z:a", "v55: RG:Z:a"]}),
    "6": ({"a.sam": [*A[:-1], sam("r", "c1:1", 0, "RG:Z:x", "PG:Z:p1", "NM:i:1")]}, ["a.sam"],
          {"tags": ["r: NM:i:1 RG:Z:x PG:Z:p1"]}),
    "7": ({"a.sam": [*BARE, sam("r", "c1:1", 0, "RG:Z:no", "NM:i:1"), sam("s", "c1:1", 0, "RG:Z:no")]}, ["a.sam"],
          {"RG": [], "tags": ["r: NM:i:1", "s:"]}),
    "8": ({"nr.cram.sam": V}, ["-r", "nr.cram.sam"], {
        "RG": ["ID:nr.cram"], "tags": ["v20: RG:Z:nr.cram", "v55: RG:Z:nr.cram"]}),
    "9": ({"u.sam": U, "v.sam": V}, ["u.sam", "v.sam"], {
        "names": "v20 u50 u5 v55 u60", "HD": ["VN:1.6 SO:coordinate"]}),
    "10": ({"p.sam": P, "q.sam": Q}, ["p.sam", "q.sam"], {"names": "p1 q1 q2 p2", "HD": ["VN:1.6 SO:unsorted"]}),
    "10 with SS and GO": ({"p.sam": ["@HD\tVN:1.6\tGO:none\tSO:coordinate\tSS:coordinate:x", *P[1:]], "q.sam": Q},
                          ["p.sam", "q.sam"], {"names": "p1 q1 q2 p2", "HD": ["VN:1.6 SO:unsorted"]}),
    "11": ({"p.sam": P, "q.sam": Q}, ["-n", "p.sam", "q.sam"], {
        "names": "p1 p2 q1 q2", "HD": ["VN:1.6 SO:coordinate"]}),
    "12": ({"a.sam": [C[0]], "b.sam": ["@SQ\tSN:c1\tLN:999\tM5:0", sam("r")]}, ["a.sam", "b.sam"],
           {"names": "r", "SQ": ["SN:c1 LN:1000"]}),
    "13": ({"l.sam": ["@SQ\tSN:c9\tLN:1000\tAN:c2", sam("l", "c9:7")], "r.sam": [*C[1:], sam("r", "c2:5")]},
           ["l.sam", "r.sam"], {"SQ": ["SN:c9 LN:1000 AN:c2"], "names": "r l"}),
    "14": ({"p.sam": [*BARE, sam("p")], "q.sam": [*BARE, sam("q")]}, ["p.sam", "q.sam"], {"names": "p q"}),
    "14 swapped": ({"p.sam": [*BARE, sam("p")], "q.sam": [*BARE, sam("q")]}, ["q.sam", "p.sam"], {"names": "q p"}),
    "15": ({"a.sam": named(("a2", 0), ("a10", 0)), "b.sam": named(("a02", 0), ("a9", 0), ("a10", 256))},
           ["-n", "a.sam", "b.sam"], {"names": "a2 a02 a9 a10 a10"}),
    "16": ({"a.sam": named(("r", 129 + 256)), "b.sam": named(("r", 129), ("r", 129 + 2304)), "c.sam": named(("r", 65)),
            "d.sam": named(("r", 129 + 2048))}, ["-n", "a.sam", "b.sam", "c.sam", "d.sam"],
           {"flags": "65 129 2177 385 2433"}),
    "17": ({"a.sam": tagged(("none50", 50), ("A9", 9, "CB:Z:A"), ("C5", 5, "CB:Z:C")),
            "b.sam": tagged(("none60", 60), ("A7", 7, "CB:Z:A"), ("i3", 3, "CB:i:3"))}, ["-t", "CB", "a.sam", "b.sam"],
           {"names": "none50 none60 A7 A9 C5 i3"}),
    "18": ({"a.sam": [*C, sam("r")], "b.sam": ["@HD\tVN:1.3\tSO:queryname", *C]}, ["a.sam", "b.sam"], {
        "HD": ["VN:1.3 SO:queryname"]}),
    "19": ({"a.sam": [*BARE, sam("rev", "c1:1", 20)], "b.sam": [*BARE, sam("un", "c1:1", 4)],
            "c.sam": [*BARE, sam("map", "c1:1")]}, ["a.sam", "b.sam", "c.sam"], {"names": "un map rev"}),
    "20": ({"a.sam": [*A[:-1], "@CO\tonly"], "v.sam": V}, ["a.sam", "v.sam"],
           {"names": "v20 v55", "RG": ["ID:x PG:p2 SM:a", "ID:y SM:a"], "CO": ["only"]}),
}


def fields(lines, kind):
    return [x[4:].replace("\t", " ") for x in lines if x.startswith("@" + kind)]


def seen_in(bam_as_sam):
    """The parts of the output that CASES may name."""
    lines = bam_as_sam.splitlines()
    reads = [x.split("\t") for x in lines if not x.startswith("@")]
    seen = {kind: fields(lines, kind) for kind in ("HD", "SQ", "RG", "PG", "CO")}
    seen["names"], seen["flags"] = (" ".join(x[i] for x in reads) for i in (0, 1))
    seen["tags"] = [" ".join([x[0] + ":", *x[11:]]) for x in reads]
    return seen


def lay_out(folder, files):
    for name, lines in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("".join(line + "\n" for line in lines))


@pytest.mark.parametrize("case", CASES)
def test_case_of_the_page_differs(tmp_path, monkeypatch, case):
    files, args, expected = CASES[case]
    lay_out(tmp_path, files)
    monkeypatch.chdir(tmp_path)
    args = ["-s", "1", "--no-PG", *args]
    status, err = oracle_call("merge", ["-O", "sam", "-o", "theirs.sam", *args])
    assert status == 0, err
    expected_text = pathlib.Path("theirs.sam").read_text()
    for n in 1, 2:
        text = merged(["-O", "sam", "-@", n, *args]).decode()
        same_lines(text, expected_text, "the output")
        seen = seen_in(text)
        assert {what: seen[what] for what in expected} == expected


@pytest.mark.parametrize("names, empty", [(".sam", 0), (".bam", 0), ("d/.sam", 1), ("d/.cram .sam", 1), ("..sam", 0),
                                          ("./.sam", 1), ("v.sam .sam d/v.bam", 0), (".sam.sam d/.sam", 1)])
def test_group_of_a_name_that_is_its_end_is_empty(tmp_path, monkeypatch, names, empty):
    """The name .sam stays, as with samtools; in a folder nothing of it is left, which we report."""
    lay_out(tmp_path, {name: V for name in names.split()})
    monkeypatch.chdir(tmp_path)
    merges_the_same(["-r", *names.split()], tmp_path)
    p = ours(["-r", "-o", "-", *names.split()])
    assert p.stderr.count("is empty") == p.stderr.count("\n") == empty, p.stderr


def test_group_of_standard_input_is_another(tmp_path, monkeypatch):
    lay_out(tmp_path, {"a.sam": A, "b.sam": B})
    monkeypatch.chdir(tmp_path)
    args = ["-r", "-s", "1", "--no-PG", "-O", "sam"]
    status, err = oracle_call("merge", [*args, "-o", "theirs.sam", "a.sam", "-"], stdin="b.sam")
    assert status == 0, err
    with open("b.sam", "rb") as file:
        text = merged([*args, "a.sam", "-"], stdin=file).decode()
    same_lines(text, pathlib.Path("theirs.sam").read_text(), "the output")
    assert "@RG\tID:-\t" in text


def test_warnings_are_missing_or_repeated(tmp_path):
    """One for each unknown value of a file, one for a file whose references are in another order, one for a missing
    @HD."""
    reads = [sam("r%d" % i, "c1:%d" % (i + 1), 0, "RG:Z:no%d" % (i % 2), "PG:Z:nix") for i in range(9)]
    lay_out(tmp_path, {"a.sam": [*C, "@RG\tID:x\tPG:gone", *reads], "q.sam": [*C[::-1]]})
    p = ours(["-o", "out.sam", "a.sam", "q.sam"], cwd=tmp_path)
    assert p.returncode == 0, p.stderr
    for words in "no0", "no1", "nix", "gone", "q.sam", "no input":
        assert len(re.findall(r"(?<!\w)%s(?!\w)" % words, p.stderr)) == 1, (words, p.stderr)
    q = ours(["--no-PG", "--verbosity", "1", "-f", "-o", "out.sam", "a.sam", "q.sam"], cwd=tmp_path)
    assert q.returncode == 0 and len(q.stderr) <= len(p.stderr)


def test_suffixes_are_the_same_for_every_seed(tmp_path):
    lay_out(tmp_path, {"a.sam": A, "b.sam": B})
    texts = {}
    for seed in "0", "1", "7", "4294967296", "4294967297", "-1", "123456789012":
        args = ["--no-PG", "-s", seed, "-O", "sam", tmp_path / "a.sam", tmp_path / "b.sam"]
        status, err = oracle_call("merge", ["-f", "-o", tmp_path / "theirs.sam", *args])
        p = ours(["-o", "-", *args])
        assert (p.returncode, status) in ((0, 0), (1, 1)), (seed, err, p.stderr)
        if status == 0:
            texts[seed] = p.stdout
            assert p.stdout == (tmp_path / "theirs.sam").read_bytes(), seed
    assert texts["1"] != texts["7"] and texts["1"] == texts["4294967297"]
    for seed in "x", "1x", "", "0x10":
        refused(["-s", seed, "-o", "out.sam", "a.sam", "b.sam"], tmp_path, "")


def test_dictionary_behind_a_known_text_is_overlooked(tmp_path):
    """A header whose text equals an earlier one is only shared if all its bytes are the same."""
    refs, paths = [("c1", 1000), ("c2", 1000)], []
    for i, dictionary in enumerate((refs, refs[::-1], refs)):
        recs = [bamgen.record("r%d.%d" % (i, tid), tid=tid, pos=5) for tid in (0, 1)]
        paths.append(tmp_path / ("%d.bam" % i))
        paths[-1].write_bytes(bamgen.bam(bamgen.header("@HD\tVN:1.6\n" + bamgen.sq_text(refs), dictionary), recs))
    merges_the_same(paths, tmp_path)


def test_header_that_takes_turns_is_there_for_each_input(tmp_path):
    """The memory that merge states in advance."""
    for name in "ab":
        text = bamgen.sq_text([("c%d" % i, 1000) for i in range(20000)]) + "@CO\t%s\n" % name
        refs = [("c%d" % i, 1000) for i in range(20000)]
        (tmp_path / (name + ".bam")).write_bytes(bamgen.bam(bamgen.header(text, refs), [bamgen.record(pos=5)]))
    told = []
    for words in ("aaaabbbb", "abababab"):
        p = ours(["--plan=json", "-o", "o.bam", *("./" * i + name + ".bam" for i, name in enumerate(words))], cwd=tmp_path)
        told.append(json.loads(p.stdout)["memory_bytes"])
    assert abs(told[0] - told[1]) < 4 << 20     # a header takes 3 MB


def many(name, n, pos=0):
    return [bamgen.record("%s%d" % (name, i), tid=i * 2 // n, pos=pos + i % (n // 2), seq="ACGT" * 20)
            for i in range(n)]


@pytest.mark.parametrize("layout", sorted(bamgen.LAYOUTS))
def test_records_behind_the_same_header_are_those_of_another_file(tmp_path, layout):
    """A header is not read again in files that begin with the same blocks."""
    head = bamgen.header("@HD\tVN:1.6\n" + bamgen.sq_text() + "@RG\tID:x\n" + "@PG\tID:p\n" + "@CO\tc\n" * 300)
    files = {"a": many("a", 600), "b": many("b", 600, 1), "c": [], "d": many("a", 600)[:200] + many("d", 400)}
    for name, recs in files.items():
        (tmp_path / (name + ".bam")).write_bytes(bamgen.bam(head, recs, layout))
    (tmp_path / "raw.bam").write_bytes(head + b"".join(many("r", 20)))
    paths = [tmp_path / (name + ".bam") for name in ("a", "b", "c", "d", "raw", "a", "a", "b")]
    merges_the_same(paths, tmp_path)
    merges_the_same(["-c", "-p", "-r", *paths], tmp_path)


@pytest.mark.parametrize("at", [30, 70000, -40], ids=["header", "records", "end"])
def test_fault_in_a_file_that_begins_as_the_one_before_is_told_of_that(tmp_path, at):
    head = bamgen.header("@HD\tVN:1.6\n" + bamgen.sq_text())
    r = bamgen.rng("faults")
    recs = [bamgen.record("r%d" % i, pos=i // 10, seq=bamgen.bases(r, 200)) for i in range(3000)]
    data = bytearray(bamgen.bam(head, recs))
    for name in "acd":
        (tmp_path / (name + ".bam")).write_bytes(data)
    assert len(data) > 100000
    data[at] ^= 0xff
    (tmp_path / "b.bam").write_bytes(data)
    p = refused(["-o", "o.bam", "a.bam", "b.bam", "c.bam", "d.bam"], tmp_path, "b.bam")
    assert not re.search(r"\b[acd]\.bam", p.stderr)


def test_file_that_ends_in_the_header_of_the_one_before_is_taken(tmp_path):
    head = bamgen.header("@HD\tVN:1.6\n" + bamgen.sq_text())
    data = bamgen.bam(head, many("a", 20))
    (tmp_path / "a.bam").write_bytes(data)
    for n in 20, 60, len(bamgen.bgzf(head, eof=False)) - 1:
        (tmp_path / "b.bam").write_bytes(data[:n])
        refused(["-o", "o.bam", "a.bam", "b.bam"], tmp_path, "b.bam")


def clashes(stderr):
    return re.findall(r"warning: (\S+): (reference \S+ has \S+, and \S+) in (?:an earlier input|the first input)", stderr)


SAME = ["@SQ\tSN:c1\tLN:1000\tM5:ab", "@SQ\tSN:c2\tLN:500"]


@pytest.mark.parametrize("lines, told", [
    (["@SQ\tSN:c1\tLN:999\tM5:ab", SAME[1]], "reference c1 has LN:999, and LN:1000"),
    ([SAME[0], "@SQ\tLN:501\tSN:c2"], "reference c2 has LN:501, and LN:500"),
    (["@SQ\tSN:c1\tLN:1000\tM5:cd", SAME[1]], "reference c1 has M5:cd, and M5:ab"),
    (["@SQ\tSN:c1\tM5:AB\tLN:1000\tUR:x", "@SQ\tSN:c2\tLN:500\tM5:ff\tAS:y"], None),
    (["@SQ\tSN:c9\tLN:7", *SAME[::-1]], None), ([SAME[1], "@SQ\tSN:c1\tLN:1"], "reference c1 has LN:1, and LN:1000"),
    (["@SQ\tSN:c1\tLN:1\tAN:d1", "@SQ\tSN:c2\tLN:2"], "reference c1 has LN:1, and LN:1000")])
def test_other_genome_is_merged_without_a_word(tmp_path, lines, told):
    """There is only one warning, also for BAM if only the list has another length; and the merge is that of
    samtools."""
    lay_out(tmp_path, {"a.sam": [HD, *SAME, sam("a")], "b.sam": [HD, *lines, sam("b")], "c.sam": [HD, *lines, sam("c")]})
    refs = [(re.search("SN:([^\t]*)", x).group(1), int(re.search(r"LN:(\d+)", x).group(1))) for x in lines]
    text = "\n".join([HD, *lines]) + "\n"
    (tmp_path / "b.bam").write_bytes(bamgen.bam(bamgen.header(text, refs), [bamgen.record("b")]))
    same = "\n".join([HD, *SAME]) + "\n"
    lengths = {"c1": 1000, "c2": 500, **dict(refs)}
    (tmp_path / "l.bam").write_bytes(bamgen.bam(bamgen.header(same, [("c1", lengths["c1"]), ("c2", lengths["c2"])]), []))
    for words in "a.sam b.sam", "a.sam b.bam b.sam", "a.sam a.sam b.sam c.sam b.bam", "a.sam l.bam b.bam", "-h a.sam b.sam":
        if words.split()[1] == "l.bam" and told and "M5" in told:
            continue
        args = [x if x == "-h" else tmp_path / x for x in words.split()]
        merges_the_same(args, tmp_path)
        found = clashes(ours(["-o", "-", *args]).stderr)
        assert [x for _, x in found] == ([told] if told else []), (words, found)
        assert not found or pathlib.Path(found[0][0]).name == next(x for x in words.split() if x[0] in "bl"), found


def test_order_of_references_is_told_of_each_file(tmp_path):
    """It is reported even if the header is that of the file before."""
    refs = [("c1", 1000), ("c2", 1000)]
    for name, order in ("a", refs), ("b", refs[::-1]):
        head = bamgen.header("@HD\tVN:1.6\n" + bamgen.sq_text(order), order)
        (tmp_path / (name + ".bam")).write_bytes(bamgen.bam(head, [bamgen.record(pos=5)]))
    p = ours(["-o", "o.bam", "a.bam", "b.bam", "b.bam"], cwd=tmp_path)
    assert p.returncode == 0 and p.stderr.count("b.bam: the order of its references differs") == 2, p.stderr
