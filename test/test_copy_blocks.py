# SPDX-License-Identifier: MIT
"""--copy-blocks: blocks are copied unchanged where the rule allows it, and only there (write/copied_blocks.h). The
rule is implemented here again, with offsets: the copied blocks depend on the inputs only."""

import bisect
import json
import struct
import subprocess

import pysam
import pytest

import bamgen
from conftest import BINARY, HANG, blocks, clean_env, read_bam, run, run_sort, same_bam, same_lines
from mergegen import cut_tags, with_tags
from test_merge import LEAST, merged, ours

REFS = [("c1", 1 << 22), ("c2", 1 << 22)]
LEAST_BLOCK, BEFORE, FILL = 32768, 3, 0xFF00
SETTINGS = [["-@", n, *memory] for n, memory in ((0, []), (1, LEAST), (2, ["--total-memory", "300M"]), (7, []))]
FEW = SETTINGS[1:3]


class Input:
    """A BAM file, with its blocks and the places of its records."""

    def __init__(self, path):
        self.path, self.data = path, path.read_bytes()
        self.blocks, at = [], 0
        for b in blocks(self.data):
            self.blocks.append((at, at + len(b.data), self.data[b.offset:b.offset + b.size]))
            at += len(b.data)
        bam = read_bam(self.data)
        self.records, self.begin = bam.records(), bam.header_size
        self.starts = [self.begin]
        for rec in self.records:
            self.starts.append(self.starts[-1] + len(rec))


def records_of(seed, n, size=900, every=None, tags=b""):
    """Records of some `size` bytes at rising places, each with its own name; one of `every` does not fit into a
    block."""
    r = bamgen.rng("copied %s" % seed)
    out = []
    for i in range(n):
        length = 50000 if every and i % every == every - 1 else r.randrange(size // 3, size)
        out.append(bamgen.record("%s.%d" % (seed, i), tid=i >= n - n // 8, pos=1000 + 60 * i, tags=tags,
                                 seq=bamgen.bases(r, length), qual=bamgen.draw(r, bytes((2, 11, 25, 37)), length)))
    return out


def files(folder, lists, layout="htslib", lines=""):
    text = "@HD\tVN:1.6\tSO:coordinate\n" + bamgen.sq_text(REFS) + lines
    head, out = bamgen.header(text, REFS), []
    for i, recs in enumerate(lists):
        path = folder / ("in%d.bam" % i)
        path.write_bytes(bamgen.bam(head, recs, layout))
        out.append(Input(path))
    return out


def is_plain(block):
    return block[3] == 4 and block[10:12] == b"\6\0"


def may_be_copied(inputs, order, changed):
    """Yields, for each block that is copied in one piece, (first and last place of its records in the output, input,
    begin, end, its bytes). order: (input, number) of each record of the output; changed: those whose bytes differ."""
    place = {key: i for i, key in enumerate(order)}
    for k, x in enumerate(inputs):
        for begin, end, data in x.blocks:
            if begin < x.begin or end - begin < LEAST_BLOCK or len(data) > end - begin or not is_plain(data):
                continue
            first = bisect.bisect_left(x.starts, begin)
            if first >= len(x.records) or x.starts[first + 1] > end:
                continue
            low = first - (x.starts[first] > begin)
            high = bisect.bisect_left(x.starts, end) - 1
            has = [(k, i) for i in range(low, high + 1)]
            if any(key in changed or len(x.records[key[1]]) > FILL for key in has):
                continue
            if place[has[-1]] - place[has[0]] == len(has) - 1:
                yield place[has[0]], place[has[-1]], k, begin, end, data


def copies_expected(inputs, order, changed=()):
    out, before, last = [], 0, None
    for block in sorted(may_be_copied(inputs, order, changed), key=lambda b: (b[0], b[3])):
        low, _, k, begin, _, _ = block
        if last:
            whole = [inputs[i].starts[order[at][1]] for at, i in ((low, k),)]
            joins = (last[2] == k and last[4] == begin) or (
                last[1] + 1 == low and whole[0] == begin
                and inputs[last[2]].starts[order[last[1]][1] + 1] == last[4])
            before = before + 1 if joins else 0
        if before >= BEFORE:
            out.append(block[5])
        last = block
    return out


def copies_in(data, inputs):
    """The blocks of the output that equal blocks of inputs, byte for byte, and are not small."""
    known = {b for x in inputs for begin, end, b in x.blocks if end - begin >= LEAST_BLOCK}
    return [data[b.offset:b.offset + b.size] for b in blocks(data) if data[b.offset:b.offset + b.size] in known]


def name_of(rec):
    return rec[36:36 + rec[12] - 1]


def keys_of(inputs, bam):
    known = {name_of(rec): (k, i) for k, x in enumerate(inputs) for i, rec in enumerate(x.records)}
    return [known[name_of(rec)] for rec in bam.records()]


def any_order(rec):
    front, tags = cut_tags(rec)
    return with_tags(front, sorted(tags))


def check(inputs, args=(), settings=FEW, changed=None):
    """Checks that the records and the header are equal with and without the option, and that the rule's blocks are
    copied. Returns their number and the output."""
    paths = [x.path for x in inputs]
    args = ["--no-PG", *args, *paths]
    plain = merged(["-@", 2, *args])
    data = merged(["--copy-blocks", *settings[0], *args])
    mine, expected = read_bam(data), read_bam(plain)
    same_lines("\n".join(mine.lines()), "\n".join(expected.lines()), "the header")
    assert mine.refs == expected.refs
    assert [any_order(x) for x in mine.records()] == [any_order(x) for x in expected.records()]
    for more in settings[1:]:
        assert merged(["--copy-blocks", *more, *args]) == data, more
    order = keys_of(inputs, expected)
    copied = copies_in(data, inputs)
    others = {key for key in order if changed and changed(key)}
    assert copied == copies_expected(inputs, order, others)
    return len(copied), data


def lumps(recs, seed, n=3, most=900):
    """Deals the records to n inputs in turn, some at a time."""
    r, lists, at = bamgen.rng("lumps %s" % seed), [[] for _ in range(n)], 0
    while at < len(recs):
        size = r.choice((1, 2, 30, most, most, 2 * most))
        lists[r.randrange(n)].extend(recs[at:at + size])
        at += size
    return lists


@pytest.mark.parametrize("layout", ["htslib", "straddle", "full_64k", "empty_blocks", "stored"])
def test_gathered_files_are_deflated_again(tmp_path, layout):
    """Blocks are copied, and the records are right even if blocks begin in the middle of a record."""
    recs = records_of("g", 1800)
    parts = [recs[:700], recs[700:710], recs[710:1400], [], recs[1400:]]
    n, _ = check(files(tmp_path, parts, layout), settings=SETTINGS)
    assert (n > 10) == (layout in ("htslib", "straddle", "full_64k"))


@pytest.mark.parametrize("layout", ["htslib", "straddle", "full_64k"])
def test_blocks_of_files_that_take_turns_are_cut_wrongly(tmp_path, layout):
    n, data = check(files(tmp_path, lumps(records_of("t", 3000), layout), layout), args=["--verify"])
    assert n > 3
    small = [b for b in blocks(data) if 0 < len(b.data) < LEAST_BLOCK]
    assert len(small) <= n + 4


@pytest.mark.parametrize("layout", ["htslib", "straddle"])
def test_records_longer_than_a_block_are_cut_wrongly(tmp_path, layout):
    recs = records_of("l", 1500, every=400)
    n, _ = check(files(tmp_path, [recs[:700], recs[700:]], layout), args=["--verify"])
    assert n > 3


def test_long_reads_that_fill_blocks(tmp_path):
    recs = records_of("h", 150, size=20000)
    n, _ = check(files(tmp_path, [recs[:80], recs[80:]], "straddle"))
    assert n > 3


def test_index_of_copied_blocks_is_wrong(tmp_path):
    recs = records_of("i", 2500)
    inputs = files(tmp_path, [recs[:1200], recs[1200:]], "straddle")
    p = ours(["-o", "out.bam", "--copy-blocks", "--write-index", "-@", 3, "--report", *(x.path for x in inputs)],
             cwd=tmp_path)
    assert p.returncode == 0, p.stderr
    found = copies_in((tmp_path / "out.bam").read_bytes(), inputs)
    assert len(found) > 10
    told = "copied blocks: %d, with {:,} bytes of the output\n".format(sum(map(len, found))) % len(found)
    assert told in p.stderr
    places = [(struct.unpack_from("<ii", rec, 4), name_of(rec).decode(), len(rec)) for rec in recs]
    with pysam.AlignmentFile(str(tmp_path / "out.bam"), index_filename=str(tmp_path / "out.bam.csi")) as out:
        for tid, begin, end in ((0, 0, 5000), (0, 50000, 50100), (0, 131000, 132000), (1, 0, 1 << 22)):
            found = [x.query_name for x in out.fetch(REFS[tid][0], begin, end)]
            starts = {name for (t, pos), name, _ in places if t == tid and begin <= pos < end}
            assert starts <= set(found) and len(found) <= len(starts) + 20
            assert found == [name for _, name, _ in places if name in set(found)]
        assert sum(x.total for x in out.get_index_statistics()) == len(recs)


GROUP = "@RG\tID:x\tSM:s\n@PG\tID:p\tPN:p\n"
TAGGED = b"RGZx\0PGZp\0NMC\1"


def test_tags_that_keep_their_values_move(tmp_path):
    """Tags whose values stay the same keep their places. Otherwise, in most files, no block could be copied."""
    recs = records_of("k", 1500, tags=TAGGED)
    inputs = files(tmp_path, [recs[:700], recs[700:]], "straddle", GROUP)
    n, data = check(inputs, args=["-c", "-p"])
    assert n > 10 and read_bam(data).records()[0] == recs[0]


def test_blocks_of_changed_records_are_copied(tmp_path):
    """IDs clash: the records of the second file have other values. One record of the first has a tag without a line,
    and one a wrong bin."""
    recs = records_of("c", 2400, tags=TAGGED)
    recs[300] = recs[300].replace(b"RGZx\0", b"RGZo\0")
    recs[700] = recs[700][:14] + b"\1\0" + recs[700][16:]
    inputs = files(tmp_path, [recs[:1200], recs[1200:]], "straddle", GROUP)
    n, _ = check(inputs, args=["-s", "1"], changed=lambda key: key[0] == 1 or key[1] in (300, 700))
    assert n > 3
    n, _ = check(inputs, args=["-c", "-p", "-r"], changed=lambda key: True)
    assert n == 0


def test_file_out_of_order_is_merged_otherwise(tmp_path):
    recs = records_of("o", 3000)
    first = recs[:500] + recs[900:1500] + recs[500:900]
    n, _ = check(files(tmp_path, [first, recs[1500:]], "straddle"), args=["--verify"], settings=SETTINGS)
    assert n > 10


def test_names_are_merged_otherwise(tmp_path):
    recs = sorted(records_of("n", 2000), key=lambda rec: int(name_of(rec).split(b".")[1]))
    n, _ = check(files(tmp_path, [recs[:900], recs[900:]], "straddle"), args=["-n"])
    assert n > 5


def test_option_changes_other_outputs(tmp_path):
    """Without compression there is nothing to save; filters and regions leave records out."""
    recs = records_of("u", 800)
    inputs = files(tmp_path, [recs[:400], recs[400:]], "straddle")
    for x in inputs:
        pysam.index("-c", str(x.path))
    regions = ["-R", "c1:2000-30000"]
    for args in (["-u"], ["-O", "sam"], ["--input-fmt-option", "filter=pos>3000"], regions):
        args = ["--no-PG", *args, *(x.path for x in inputs)]
        assert merged(["--copy-blocks", *args]) == merged(args), args


def test_damaged_block_is_copied(tmp_path):
    recs = records_of("d", 1500)
    inputs = files(tmp_path, [recs[:700], recs[700:]], "htslib")
    data, at = bytearray(inputs[1].data), 0
    for begin, end, block in inputs[1].blocks[:7]:
        at += len(block)
    data[at + 5000] ^= 1
    inputs[1].path.write_bytes(data)
    p = ours(["-o", "out.bam", "--copy-blocks", "-@", 2, *(x.path for x in inputs)], cwd=tmp_path)
    assert p.returncode == 1 and "in1.bam: block at file offset %d" % at in p.stderr, p.stderr
    assert not (tmp_path / "out.bam").exists()


# ---------------------------------------------------------------- sort

IN_MEMORY = [["-@", 2], ["-@", 3, "--total-memory", "300M"]]
ORDERS = ([], ["-n"], ["-N"], ["-t", "NM"], ["--template-coordinate"], ["--picard"])


def sort(folder, args, out="out.bam"):
    """The output, and the report's numbers."""
    p = run_sort(["--no-PG", "-o", out, "--report=report.json", *args], cwd=folder)
    assert p.returncode == 0, p.stderr
    return (folder / out).read_bytes(), json.loads((folder / "report.json").read_text())


def sorts_the_same(folder, args, paths, settings=IN_MEMORY):
    """Checks that the records and the header are equal with and without the option. Returns the output and the report's
    numbers."""
    plain, _ = sort(folder, [*args, *paths], "plain.bam")
    data, report = sort(folder, [*args, "--copy-blocks", *settings[0], *paths])
    for more in settings[1:]:
        assert sort(folder, [*args, "--copy-blocks", *more, *paths])[0] == data, more
    same_bam(read_bam(data), read_bam(plain))
    assert read_bam(data).lines() == read_bam(plain).lines()
    return data, report


def copied(data, inputs, report):
    """The number of blocks copied from the inputs: the rule's, which must equal the report's."""
    found = copies_in(data, inputs)
    assert found == copies_expected(inputs, keys_of(inputs, read_bam(data)))
    assert report["copied_blocks"] == len(found) and report["copied_bytes"] == sum(map(len, found))
    assert report["copied_none_because"] is None
    return len(found)


@pytest.mark.parametrize("order", ORDERS, ids="".join)
def test_sorted_input_is_deflated_again(tmp_path, order):
    recs = records_of("s", 1000, tags=b"NMC\1")
    bamgen.rng("sorted").shuffle(recs)
    (tmp_path / "in.bam").write_bytes(files(tmp_path, [recs])[0].data)
    bam = read_bam(sort(tmp_path, [*order, "in.bam"])[0])
    head = bamgen.header("".join(line + "\n" for line in bam.lines() if line), REFS)
    (tmp_path / "sorted.bam").write_bytes(bamgen.bam(head, bam.records(), "straddle"))   # deflated by another program
    x = Input(tmp_path / "sorted.bam")
    data, report = sorts_the_same(tmp_path, [*order, "--verify"], [x.path])
    assert copied(data, [x], report) > 5
    data, report = sorts_the_same(tmp_path, order, ["in.bam"], IN_MEMORY[:1])
    assert report["copied_blocks"] == 0 and "in.bam: record " in report["copied_none_because"]
    assert data == (tmp_path / "plain.bam").read_bytes()


def test_sorted_inputs_are_deflated_again(tmp_path):
    """Their headers become the one that sort writes: records of programs with clashing IDs get the new IDs."""
    recs = records_of("m", 2400)
    inputs = files(tmp_path, [recs[:800], recs[1600:], recs[800:1600]], "straddle", "@PG\tID:p\tPN:p\n")
    paths = ["--add-input", inputs[1].path, "--add-input", inputs[2].path, inputs[0].path]
    data, report = sorts_the_same(tmp_path, ["--write-index"], paths)
    assert copied(data, inputs, report) > 10
    tagged = records_of("p", 1200, tags=TAGGED)
    first, second = files(tmp_path, [tagged[:600], tagged[600:]], "straddle", "@PG\tID:p\tPN:p\n")
    second.path.write_bytes(bamgen.bam(bamgen.header("@SQ\tSN:c1\tLN:4194304\n@SQ\tSN:c2\tLN:4194304\n"
                                                     "@PG\tID:p\tPN:other\n", REFS), tagged[600:], "straddle"))
    data, report = sorts_the_same(tmp_path, [], ["--add-input", second.path, first.path])
    assert 3 < report["copied_blocks"] == len(copies_in(data, [first])) and not copies_in(data, [Input(second.path)])


def test_sorted_input_is_replaced_while_it_is_read(tmp_path):
    recs = records_of("r", 900)
    x = files(tmp_path, [recs], "straddle")[0]
    data, report = sort(tmp_path, ["--copy-blocks", "-@", 2, x.path], x.path)
    assert copied(data, [x], report) > 5 and read_bam(data).records() == recs


def test_late_inversion_is_copied(tmp_path):
    recs = records_of("v", 1500)
    recs[1490], recs[1491] = recs[1491], recs[1490]
    x = files(tmp_path, [recs], "straddle")[0]
    before = sorted(p.name for p in tmp_path.iterdir())
    data, report = sorts_the_same(tmp_path, ["--verify"], [x.path])
    assert report["copied_none_because"] == "%s: record 1492 belongs before the preceding record" % x.path
    assert data == (tmp_path / "plain.bam").read_bytes()
    left = {"out.bam", "plain.bam", "report.json"}
    assert sorted(p.name for p in tmp_path.iterdir() if p.name not in left) == before


def test_sort_fails_where_it_cannot_copy(tmp_path):
    recs = records_of("w", 300)
    x = files(tmp_path, [recs], "straddle")[0]
    (tmp_path / "in.sam").write_text(pysam.samtools.view("-h", str(x.path), catch_stdout=True))
    cases = [(["-u"], x.path, "the output is not compressed BAM"), (["-O", "sam"], x.path, "the output is not"),
             (["-M"], x.path, "-M changes records"), ([], "in.sam", "not all inputs are BAM"), ([], "-", "twice"),
             (["--input-fmt-option", "filter=pos>3000"], x.path, "a filter leaves records out")]
    for args, path, why in cases:
        how = ["--no-PG", *args, path]
        plain = run_sort(["-o", "-", *how], cwd=tmp_path, stdin=x.data)
        p = run_sort(["-o", "out", "--copy-blocks", "--report", *how], cwd=tmp_path, stdin=x.data)
        assert p.returncode == plain.returncode == 0 and why in p.stderr.split("copied blocks: none: ")[1], p.stderr
        assert plain.stdout == (tmp_path / "out").read_bytes(), how
    p = run_sort(["--no-PG", "--copy-blocks", "--report", x.path])
    assert p.returncode == 0 and "copied blocks: none" in p.stderr and "cannot be written again" in p.stderr, p.stderr
    assert read_bam(p.stdout).records() == recs


@pytest.mark.parametrize("old,mode,at,copies", [
    (b"", "wb", 0, True), (b"old", "r+b", 3, True), (b"old", "ab", 3, False), (bytes(1 << 20), "r+b", 0, False),
], ids=["new", "behind", "append", "over"])
def test_standard_output_in_a_file_is_left_with_what_was_written_first(tmp_path, old, mode, at, copies):
    """The inversion comes late: most of the merge is in the file by then. Nothing is copied if old bytes come before
    the output, or if others may append."""
    recs = records_of("z", 1500)
    inverted = recs[:1490] + [recs[1491], recs[1490]] + recs[1492:]
    good, bad = (x.path for x in files(tmp_path, [recs, inverted], "straddle"))
    plain = run_sort(["--no-PG", "-o", "-", good]).stdout
    none = None if copies else "cannot be written again"
    for path, because in (good, none), (bad, none or "belongs before"):
        (tmp_path / "out").write_bytes(old)
        with open(tmp_path / "out", mode) as to:
            to.seek(at)
            args = ["--no-PG", "--copy-blocks", "--report=" + str(tmp_path / "report.json"), "-@2", str(path)]
            p = subprocess.run([BINARY, "sort", *args], stdout=to, stderr=subprocess.PIPE, env=clean_env(),
                               timeout=HANG)
        assert p.returncode == 0, p.stderr
        report, found = json.loads((tmp_path / "report.json").read_text()), (tmp_path / "out").read_bytes()
        assert (because or "None") in str(report["copied_none_because"])
        assert (report["copied_blocks"] > 3) == (because is None) and found[:at] == old[:at]
        if because:
            assert found[at:at + len(plain)] == plain and len(found) == max(at + len(plain), len(old))
        else:
            assert read_bam(found[at:]).records() == recs


def test_many_inputs_need_more_memory_than_a_sort(tmp_path):
    recs = records_of("y", 1200)
    inputs = files(tmp_path, [recs[i::40] for i in range(40)])
    paths = [word for x in inputs[1:] for word in ("--add-input", x.path)] + [inputs[0].path]
    _, report = sorts_the_same(tmp_path, [], paths, [["--total-memory", "60M"]])
    assert report["copied_none_because"] == "a merge needs more memory than is available"


def test_damaged_block_is_sorted(tmp_path):
    x = files(tmp_path, [records_of("d", 900)], "straddle")[0]
    data, at = bytearray(x.data), sum(len(block) for _, _, block in x.blocks[:7])
    data[at + 5000] ^= 1
    x.path.write_bytes(data)
    p = run_sort(["-o", "out.bam", "--copy-blocks", "-@", 2, x.path], cwd=tmp_path)
    assert p.returncode == 1 and "in0.bam: block at file offset %d" % at in p.stderr, p.stderr
    assert not (tmp_path / "out.bam").exists()


def test_plan_is_silent_of_copied_blocks(tmp_path):
    x = files(tmp_path, [records_of("q", 300)], "straddle")[0]
    for command, args, say in (
            ("sort", [], "if the input is in this order"), ("merge", [], "where the records of one input follow"),
            ("sort", ["-M"], "none: -M changes records"), ("merge", ["-u"], "none: the output is not compressed BAM"),
            ("sort", ["--input-fmt-option", "filter=pos>3000"], "none: a filter leaves records out")):
        told = {}
        for plan in ("--plan", "--plan=json"):
            p = run([command, "--copy-blocks", plan, "-o", "out.bam", *args, x.path], cwd=tmp_path)
            assert p.returncode == 0, p.stderr
            told[plan] = p.stdout.decode()
        told["--plan=json"] = json.loads(told["--plan=json"])
        assert "copied blocks: " + say in told["--plan"]
        none = say.startswith("none: ")
        assert told["--plan=json"]["copied_none_because"] == (say[6:] if none else None)
