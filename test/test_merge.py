# SPDX-License-Identifier: MIT
"""`samtools merge` against samtools 1.24: the same records in the same order under the same header, for any inputs,
threads and memory. The program cannot find another samtools here, so no command is passed on to it."""

import heapq
import random
import re
import shutil
import struct

import pytest

import bamgen
import mergegen
import ordergen
from conftest import REAL_BAMS, MORE_THREADS, in_turn, oracle_call, read_bam, run, same_lines, same_records, sees_fault

ALONE = {"SAMTOOLS_UPSTREAM": "/nonexistent/samtools"}
SMALL = {"SAMTOOLS_OMP_ARENA": "262144"}
ORDERS = mergegen.ORDERS
LEAST = ["--total-memory", "least"]                # the memory that the program reports as its minimum
# Threads and environment or memory with which every merge has the same bytes.
SETTINGS = [(["-@", n, *memory], env) for n in MORE_THREADS for memory, env in (([], {}), ([], SMALL), (LEAST, {}))]


def ours(args, env=None, **kw):
    return run(["merge", *args], env={**ALONE, **(env or {})}, **kw)


def good_merge(args, **kw):
    """A merge to standard output, which has to succeed."""
    p = ours(["-o", "-", *args], **kw) if "least" not in args else with_least_memory(args, **kw)
    assert p.returncode == 0, p.stderr
    return p


def merged(args, **kw):
    return good_merge(args, **kw).stdout


def with_least_memory(args, **kw):
    """Merges with the memory that the program reports as enough, if it does."""
    memory = 24
    while True:
        p = ours(["-o", "-", *("%dM" % memory if x == "least" else x for x in args)], **kw)
        found = re.search(r"(\d+)M is enough|the minimum is", p.stderr)
        if p.returncode == 0 or not found or memory > 10000:
            return p
        memory = int(found.group(1) or 2 * memory)


def theirs(args, scratch, stdin=None):
    """samtools' result."""
    out = scratch / "theirs"
    try:
        status, err = oracle_call("merge", ["-f", "-l", "1", "-O", "bam", "-o", out, *args], stdin)
        assert status == 0, err
        return read_bam(out.read_bytes())
    finally:
        out.unlink(missing_ok=True)


def header_lines(bam):
    """VN and CL hidden on the lines that this merge has added: no other program is called merge here."""
    return [re.sub(r"\t(VN|CL):[^\t]*", r"\t\1:*", x) if re.search("^@PG.*\tCL:[^\t]* merge ", x) else x
            for x in bam.lines()]


def same_merge(mine, expected):
    same_lines("\n".join(header_lines(mine)), "\n".join(header_lines(expected)), "the header")
    assert mine.refs == expected.refs, "reference dictionary differs"
    same_records(mine, expected)


def merges_the_same(args, scratch, settings=SETTINGS[3:4], **kw):
    """Ours, with all of these settings, compared with samtools. args: with a seed. Returns ours."""
    args = ["-s", "1", *args]
    data = merged([*args, *settings[0][0]], env=settings[0][1])
    mine = read_bam(data)
    same_merge(mine, theirs(args, scratch, **kw))
    if len(settings) > 1:
        plain = merged([*args, "--no-PG", *settings[0][0]], env=settings[0][1])
        for more, env in settings[1:]:
            assert merged([*args, "--no-PG", *more], env=env) == plain, (more, env)
    return mine


def files_in(folder):
    return sorted(str(x.relative_to(folder)) for x in folder.rglob("*"))


def refused(args, folder, words):
    """One message, status 1, nothing written."""
    before = files_in(folder)
    p = ours(args, cwd=folder)
    assert p.returncode == 1 and words in p.stderr, p.stderr
    assert p.stderr.startswith("samtools merge: ") and p.stdout == b"", p.stderr
    assert files_in(folder) == before
    return p


# -------------------------------------------------------------- complete merges


def some_settings(r):
    """Two threads, and two others."""
    return [SETTINGS[3], *r.sample(SETTINGS, 2)]


def sorted_or_skipped(path, order):
    try:
        return mergegen.sorted_part(path, order)
    except AssertionError as e:
        if "no MC tag" not in str(e):
            raise
        pytest.skip("no MC tags here")


@pytest.mark.parametrize("path,order", in_turn(REAL_BAMS, ORDERS, 3))
def test_merge_of_real_reads_differs(tmp_path, path, order):
    r = bamgen.rng("%s %s" % (path.name, order))
    shutil.copyfile(path, tmp_path / "whole")
    whole = sorted_or_skipped(tmp_path / "whole", ORDERS[order])
    parts = mergegen.split(whole, r.choice((2, 3, 8, 30)), r.choice(mergegen.WAYS), r)
    inputs = mergegen.write(parts, tmp_path, r.sample(("bam", "u.bam", "bam"), 2))
    options = r.choice(([], ["-c", "-p"], ["-r", "-c"], ["-p"]))
    merges_the_same([*ORDERS[order], *options, *inputs], tmp_path, some_settings(r))


def template_pool():
    head, recs = ordergen.TEMPLATES["odd"]()
    bam = read_bam(bamgen.bgzf(head + b"".join(recs)))
    return mergegen.part_of(bam)


@pytest.fixture(scope="module")
def pools(tmp_path_factory):
    """order -> a Part in that order, made once."""
    folder, made = tmp_path_factory.mktemp("pools"), {}

    def make(order):
        if order not in made:
            part = template_pool() if order == "template" else mergegen.pool(order)
            path, = mergegen.write([part], folder)
            made[order] = mergegen.sorted_part(path, ORDERS[order])
        return made[order]

    return make


@pytest.mark.parametrize("way", mergegen.WAYS)
@pytest.mark.parametrize("order", ORDERS)
def test_equal_keys_or_formats_are_mixed_up(pools, tmp_path, order, way):
    r = bamgen.rng("formats %s %s" % (order, way))
    kinds = mergegen.KINDS if order != "template" else mergegen.KINDS[:2]    # other orders refuse some odd values
    parts = mergegen.split(pools(order), r.choice((2, 5, 9)), way, r)
    inputs = mergegen.write(parts, tmp_path, r.sample(kinds, len(kinds)))
    merges_the_same([*ORDERS[order], *inputs], tmp_path, SETTINGS)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("options", [[], ["-c"], ["-p"], ["-c", "-p"], ["-r"], ["-r", "-c", "-p"]], ids="".join)
@pytest.mark.parametrize("seed", range(6))
def test_headers_are_joined_otherwise(pools, tmp_path, order, options, seed):
    """One to all kinds of differences at a time. -h: the header of one of the files, too. With -r no reference is
    removed in template order: mates that lose theirs have -1, where samtools' order is circular
    (order/template_key.c)."""
    r = bamgen.rng("headers %s %s %d" % (order, options, seed))
    parts = mergegen.split(pools(order), r.choice((1, 2, 3, 7)), r.choice(mergegen.WAYS), r)
    left_out = ("fewer_refs", "first_has_all") if order == "template" and "-r" in options else ()
    for name in r.sample(sorted(mergegen.CHANGES), r.randint(1, len(mergegen.CHANGES))):
        if name not in left_out:
            mergegen.CHANGES[name](parts, r)
    inputs = mergegen.write(parts, tmp_path, ("bam", "sam") if order != "template" else ("bam",))
    more = ["-h", r.choice(inputs)] if r.random() < .3 else []
    merges_the_same([*ORDERS[order], *options, *more, *inputs], tmp_path, some_settings(r))


@pytest.mark.parametrize("order", ["RG", "template"])
def test_group_that_a_record_did_not_bring_decides_where_it_goes(pools, tmp_path, order):
    """With -r, samtools gives records their file's group after it has compared them."""
    r = bamgen.rng("groups brought " + order)
    parts = mergegen.split(pools(order), 4, "twice", r)
    for part, library in zip(parts, ("\tLB:b", "\tLB:a", "\tLB:b", "")):
        part.replace("RG", ["@RG\tID:x" + library])
        mergegen.tag_records(part, r, [b"x"], [b"p1"])
    inputs = mergegen.write(parts, tmp_path)
    inputs = mergegen.write([mergegen.sorted_part(x, ORDERS[order]) for x in inputs], tmp_path, ["bam", "u.bam"])
    args = ["-r", *ORDERS[order], *inputs]
    merges_the_same(args, tmp_path, SETTINGS)
    plain = merged(["--no-PG", *args])
    for more in ["--copy-blocks"], ["--verify", "-@", "2"]:
        p = ours(["--no-PG", "-o", "-", *more, *args])
        assert p.returncode == 0 and "belongs before" not in p.stderr and p.stdout == plain, (more, p.stderr)


def with_group_in_front(part, r):
    """Records that have an RG tag get another one before it. Half of the others get one that the header lacks."""
    for k, rec in enumerate(part.records):
        front, tags = mergegen.cut_tags(rec)
        at = next((i for i, tag in enumerate(tags) if tag[:2] == b"RG"), None)
        if at is not None or r.random() < .5:
            first = b"RGZ" + (r.choice((b"x", b"no")) if at is not None else b"no") + b"\0"
            tags.insert(r.randint(0, len(tags) if at is None else at), first)
        part.records[k] = mergegen.with_tags(front, tags)


@pytest.mark.parametrize("order,kinds", [("RG", "bam,u.bam"), ("RG", "sam,bam,cram"), ("template", "bam,u.bam")])
def test_first_of_two_groups_decides_where_a_record_goes(pools, tmp_path, order, kinds):
    """With -r, samtools moves the first RG tag to the end, and then compares the one that was the second."""
    r = bamgen.rng("two groups %s %s" % (order, kinds))
    parts = mergegen.split(pools(order), 4, "twice", r)
    for part in parts:
        with_group_in_front(part, r)
        part.lines.append("@RG\tID:x\tLB:%d" % r.randrange(9))
    inputs = mergegen.write(parts, tmp_path, kinds.split(","))
    args = ["-r", *ORDERS[order], "-h", inputs[0], *inputs]         # its groups have the libraries of second tags
    merges_the_same(args, tmp_path, SETTINGS)
    p = ours(["--no-PG", "-o", "-", *args])
    assert p.stdout == merged(["--no-PG", "--copy-blocks", *args])
    assert "belongs before" not in p.stderr or "cram" in kinds      # CRAM has moved tags


SECOND = [b"Zx\0", b"Zy\0", b"Z\0", b"Zin000\0", b"Zlonger than most\0", b"HAB\0"]
OTHERS = [b"i\1\2\0\0", b"Aq", b"BC\2\0\0\0ab", b"f\0\0\0\x3f"]


@pytest.mark.parametrize("tag", ["RG", "PG"])
@pytest.mark.parametrize("options", [["-r"], ["-n", "-r", "-c"], ["-N", "-r", "-p"], ["-c", "-p"], []], ids="".join)
@pytest.mark.parametrize("kinds", [("bam",), ("sam", "cram", "bam")], ids=" ".join)
def test_first_of_several_tags_decides_where_a_record_goes(tmp_path, tag, options, kinds):
    """Up to three RG and PG tags, of any type except the first; in CRAM, which puts others first, all are strings."""
    r = bamgen.rng("several %s %s %s" % (tag, options, kinds))
    inputs, values = [], SECOND + (OTHERS if kinds == ("bam",) else [])
    order = [*(x for x in options if x in ("-n", "-N")), "-t", tag]
    for number in range(3):
        recs = []
        for i in range(200):
            tags = [[b"XTC" + bytes([r.randrange(9)])]]
            for name in b"RG", b"PG":
                n = r.choice((0, 1, 2, 2, 3))
                tags.append([name + r.choice((b"Zx\0", b"Zy\0", b"Zno\0") if k == 0 else values) for k in range(n)])
            some = [k for k, x in enumerate(tags) for _ in x]
            r.shuffle(some)
            recs.append(bamgen.record("q%d" % r.randrange(90), r.choice((0, 16)), 0, r.randrange(20),
                                      tags=b"".join(tags[k].pop(0) for k in some)))
        part = mergegen.Part(["@HD\tVN:1.6", *bamgen.sq_text().splitlines(), "@RG\tID:x\tLB:b", "@RG\tID:y\tLB:a",
                              "@PG\tID:x", "@PG\tID:y"], bamgen.REFS, recs)
        if number:
            path, = mergegen.write([part], tmp_path, name="plain")
            part = mergegen.sorted_part(path, order)
        inputs += mergegen.write([part], tmp_path, kinds[number % len(kinds):], name="in%d" % number)
    merges_the_same(["-t", tag, *options, *inputs], tmp_path, some_settings(r))


@pytest.mark.parametrize("change", mergegen.CHANGES)
@pytest.mark.parametrize("order", ["coordinate", "name"])
def test_headers_that_differ_in_one_way_are_joined_otherwise(pools, tmp_path, order, change):
    r = bamgen.rng("one change %s %s" % (order, change))
    parts = mergegen.split(pools(order), 5, "random", r)
    mergegen.CHANGES[change](parts, r)
    merges_the_same([*ORDERS[order], *mergegen.write(parts, tmp_path)], tmp_path)


@pytest.mark.parametrize("order", ["coordinate", "name", "template"])
def test_three_hundred_inputs_differ(pools, tmp_path, order):
    r = bamgen.rng("many " + order)
    parts = mergegen.split(pools(order), 300, "random", r)
    merges_the_same([*ORDERS[order], *mergegen.write(parts, tmp_path)], tmp_path, some_settings(r))


@pytest.mark.parametrize("name", ["cg_long", "long_records", "block_edges", "far_positions", "tid_none_pos_set",
                                  "many_refs", "header_only", "header_only_no_refs", "seq_shapes",
                                  "tags", "wrong_bins", "cg_short", "all_flags"])
@pytest.mark.parametrize("options", [[], ["-r"]], ids="".join)
def test_odd_or_long_records_change(made, tmp_path, name, options):
    r = bamgen.rng("odd " + name)
    (tmp_path / "whole").write_bytes(made(name).read_bytes())
    whole = mergegen.sorted_part(tmp_path / "whole", ())
    inputs = mergegen.write(mergegen.split(whole, 4, "random", r), tmp_path)
    merges_the_same([*options, *inputs], tmp_path, SETTINGS[::4])


def test_positions_below_none_end_the_input(made, tmp_path):
    """They end it without a message, as with samtools 1.24."""
    (tmp_path / "whole").write_bytes(made("negative_positions").read_bytes())
    whole = mergegen.sorted_part(tmp_path / "whole", ())
    inputs = mergegen.write(mergegen.split(whole, 3, "random", bamgen.rng("below")), tmp_path)
    assert sorted(read_bam(merged(["-s", "1", *inputs])).records()) == sorted(whole.records)


@pytest.mark.slow
def test_record_of_many_megabytes_is_lost(tmp_path):
    """Three records of 20 MB, in two inputs, one of which has no others; with a read group that moves and one that
    is added."""
    cigar, n = bamgen.cigar_bytes([(12 << 20, "M")]), 12 << 20
    recs = [bamgen.raw_record(0, pos, 3, 60, 4681, 1, 0, n, body=b"L%d\0" % pos + cigar + b"\x12" * (n // 2)
                              + bytes([30]) * n + b"RGZx\0NMC\1") for pos in (5, 6, 7)]
    small = [bamgen.record("s%d" % i, 0, 0, i) for i in range(10)]
    lines = ["@HD\tVN:1.6\tSO:coordinate", *bamgen.sq_text().splitlines(), "@RG\tID:x"]
    part = mergegen.Part(lines, bamgen.REFS, [])
    parts = [part.copy(x) for x in (small, recs[:2], recs[2:] + small[8:])]
    inputs = mergegen.write(parts, tmp_path, ["u.bam"])
    for options in [], ["-r"]:
        merges_the_same([*options, "-u", *inputs], tmp_path, SETTINGS[2:4])


@pytest.mark.parametrize("options", [[], ["-r"]], ids="".join)
def test_what_looks_like_records_inside_a_record_is_merged(tmp_path, options):
    """A block begins and ends inside a tag, in which small records seem to be followed by the beginning of a large
    one; the first 16 KiB of the next block contain nothing like a record."""
    head, one = bamgen.header(bamgen.sq_text()), bamgen.record("f", pos=9)
    fakes, junk = one * 40 + (1 << 20).to_bytes(4, "little") + one[4:], b"\xff" * 20000
    tag = b"XXBC" + len(fakes + junk).to_bytes(4, "little") + fakes + junk
    begin = head + bamgen.record("a", pos=4) + bamgen.record("long", pos=5, tags=tag)
    some = [bamgen.record("r%d" % i, pos=5 + i) for i in range(300)]
    cuts = [len(head), len(begin) - len(fakes + junk), len(begin) - len(junk)]
    inputs = [tmp_path / "1.bam", tmp_path / "2.bam"]
    inputs[0].write_bytes(bamgen.bgzf(begin + b"".join(some), cuts))
    inputs[1].write_bytes(bamgen.bgzf(head + b"".join(some), [len(head)]))
    merges_the_same([*options, *inputs], tmp_path, SETTINGS[::4])


# ------------------------------------------------------------ no order at all


def shuffled_parts(seed, n, size, order="coordinate"):
    r = bamgen.rng("shuffled %s" % seed)
    part = mergegen.pool(order, size) if order != "template" else template_pool()
    r.shuffle(part.records)
    return mergegen.split(part, n, "random", r)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("n", [1, 2, 5])
def test_shuffled_inputs_are_sorted_or_merged_otherwise(tmp_path, order, n):
    """samtools' merge of unsorted inputs is not in order, but always the same."""
    parts = shuffled_parts("%s %d" % (order, n), n, 3000, order)
    merges_the_same([*ORDERS[order], *mergegen.write(parts, tmp_path)], tmp_path, SETTINGS)


@pytest.mark.parametrize("fault", ["listed:drop", "slice:drop", "merged:drop", "merged:both"])
def test_fault_passes(desk, fault):
    """Faults of memory or of our code: in the task of a chunk, between its slice and the merge, after it."""
    names = [bam_of(tiny_at(range(100), name), desk / name.decode()).name for name in (b"a", b"b")]
    sees_fault(desk, fault, "merge", ["-f", "out.bam", *names])


def tiny_at(positions, name):
    """A record of 44 bytes at each."""
    return [struct.pack("<IiiBBHHHiiii", 40, 0, pos, 8, 7, 4681, 0, 0, 0, -1, -1, 0) + b"%s%06x\0" % (name, i)
            for i, pos in enumerate(positions)]


def bam_of(recs, path):
    path.write_bytes(bamgen.bgzf(bamgen.header("@HD\tVN:1.6\n" + bamgen.sq_text()) + b"".join(recs), level=1))
    return path


def greedy(inputs):
    """Returns the expected result. It takes the smallest of the inputs' next records until none is left, of equal ones
    that of the first input."""
    heads = [(struct.unpack_from("<i", recs[0], 8)[0], i, 0) for i, recs in enumerate(inputs) if recs]
    heapq.heapify(heads)
    out = []
    while heads:
        _, i, at = heads[0]
        out.append(inputs[i][at])
        if at + 1 < len(inputs[i]):
            heapq.heapreplace(heads, (struct.unpack_from("<i", inputs[i][at + 1], 8)[0], i, at + 1))
        else:
            heapq.heappop(heads)
    return out


# Places where an input of 44-byte records goes back: at its ends, and where 256 KiB, and the records read from them,
# end.
TURNS = [1, 2, 60000 - 1, *(k * (1 << 18) // 44 + d for k in (1, 2, 4, 8) for d in (-1, 0, 1))]


@pytest.mark.parametrize("turn", TURNS)
def test_one_inversion_is_overlooked(tmp_path, turn):
    """One input goes back there, once; the others do not."""
    r = random.Random(turn)
    inputs = [sorted(r.randrange(1 << 16) for _ in range(60000)) for _ in range(3)]
    x = inputs[1]
    inputs[1] = x[turn:] + x[:turn] if turn % 2 else [*x[:turn], x[turn] // 2, *x[turn + 1:]]
    recs = [tiny_at(x, b"abc"[i:i + 1]) for i, x in enumerate(inputs)]
    paths = [bam_of(x, tmp_path / ("in%d.bam" % i)) for i, x in enumerate(recs)]
    expected = b"".join(greedy(recs))
    for args, env in SETTINGS:
        assert read_bam(merged(["-u", *args, *paths], env=env)).body == expected, (args, env)


def test_inversion_of_long_records_is_overlooked(tmp_path):
    """A record is a slice, so the record that goes back is the first of its slice. A merge that overlooks it rarely
    gives another order, but it never warns. The warning names the input whose record was read first."""
    sizes, recs, told = [280000, 300000, 400000], [], []
    for i, name in enumerate((b"a", b"b")):
        positions = sorted(k * 7 % 50 for k in range(30))
        positions[17 + i] = 3
        recs.append([with_tags_of(rec, sizes[k % 3]) for k, rec in enumerate(tiny_at(positions, name))])
        told.append("in%d.bam is not in the order of the merge: record %d belongs before" % (i, 18 + i))
    paths = [bam_of(x, tmp_path / ("in%d.bam" % i)) for i, x in enumerate(recs)]
    for args, env in SETTINGS:
        p = good_merge(["-u", *args, *paths], env=env)
        assert any(x in p.stderr for x in told), (args, env, p.stderr)
        assert read_bam(p.stdout).body == b"".join(greedy(recs)), (args, env)


@pytest.mark.parametrize("skipped", [1, 250000000], ids=["short", "beyond-its-reference"])
def test_index_of_a_merge_that_is_out_of_order_is_not_refused_in_one_line(tmp_path, skipped):
    """The warning of the merge comes first. htslib would add a line of its own."""
    late = bamgen.record("late", pos=3, cigar=[(2, "M"), (skipped, "N"), (2, "M")], bin=0)
    path, out = bam_of([*tiny_at([5, 9], b"a"), late], tmp_path / "in.bam"), tmp_path / "out"
    p = run(["merge", "--write-index", "-o", out, path])
    lines = p.stderr.splitlines()
    assert p.returncode == 1 and len(lines) == 2 and not out.exists(), p.stderr
    assert "is not in the order of the merge" in lines[0]
    assert "is not in coordinate order, so there can be no index" in lines[1]


def with_tags_of(rec, size):
    return mergegen.with_tags(rec, [b"XZZ" + b"z" * size + b"\0"])


@pytest.mark.parametrize("every", [1, 100, 5000])
def test_many_inversions_among_many_records_differ(tmp_path, every):
    """The model is right, too: samtools gives the same."""
    r = random.Random(every)
    inputs = []
    for n in 100000, 30000, 5, 70000:
        runs = [sorted(r.randrange(1 << 16) for _ in range(r.randint(1, 2 * every))) for _ in range(n // every + 1)]
        inputs.append([x for run in runs for x in run])
    recs = [tiny_at(x, b"abcd"[i:i + 1]) for i, x in enumerate(inputs)]
    paths = [bam_of(x, tmp_path / ("in%d.bam" % i)) for i, x in enumerate(recs)]
    mine = merges_the_same(["-u", *paths], tmp_path, SETTINGS[::2])
    assert mine.body == b"".join(greedy(recs))


def test_lost_order_of_targets_is_merged_otherwise(tmp_path):
    """Three references; the second file has them from last to first and 30,000 records on each, in its order."""
    r, lines = random.Random(3), ["@HD\tVN:1.6\tSO:coordinate\tGO:none", *bamgen.sq_text().splitlines()]
    part = mergegen.Part(lines, bamgen.REFS, [])
    recs = [with_tid(rec, tid) for tid in range(3)
            for rec in tiny_at(sorted(r.randrange(9000) for _ in range(30000)), b"x")]
    first, second, third = part.copy(recs), part.copy(recs), part.copy(recs[::7])
    second.replace("SQ", second.of("SQ")[::-1])
    second.refs = second.refs[::-1]
    inputs = mergegen.write([first, second, third], tmp_path)
    mine = merges_the_same(["-u", *inputs], tmp_path, SETTINGS[::3])
    assert mine.lines()[0] == "@HD\tVN:1.6\tSO:unsorted"
    for order in ["-n"], ["-t", "NM"]:
        merges_the_same(["-u", *order, *inputs], tmp_path)


def with_tid(rec, tid):
    return rec[:4] + struct.pack("<i", tid) + rec[8:]


@pytest.mark.parametrize("options", [["-n"], ["-t", "CB"], []], ids="".join)
def test_long_ties_are_waited_for_without_end(tmp_path, options):
    """Keys are equal over many slices: names that begin alike, records at one place. A block of the output may then
    hold slices of one range while the next one has as many."""
    r = bamgen.rng("long ties")
    recs = [bamgen.record("A00132:53:HFHJKDSXX:1:1101:%05d" % i, 0, 0, 7, seq="ACGT" * 200, qual=r.randbytes(800))
            for i in range(12000)]
    part = mergegen.Part(["@HD\tVN:1.6", *bamgen.sq_text().splitlines()], bamgen.REFS, recs)
    for way in "random", "region":
        inputs = mergegen.write(mergegen.split(part, 2, way, r), tmp_path, ["u.bam"])
        merges_the_same([*options, "-u", *inputs], tmp_path, [(["-@", 1], {}), *SETTINGS])


@pytest.mark.parametrize("order", [["-n"], ["-N"], []], ids="".join)
def test_borrowed_slices_leave_no_room_to_find_a_cut(tmp_path, order):
    """Many inputs share memory for few. The first one borrows while it gives all records. While the second one does,
    the first fills all that it may have. A range may take all of it, and the following records must still be
    found."""
    r = bamgen.rng("borrowed slices")
    recs = [bamgen.record("A00132:53:HFHJKDSXX:1:1101:%05d" % i, 0, 0, i, seq="ACGT" * 40, qual=r.randbytes(160))
            for i in range(21000)]
    part = mergegen.Part(["@HD\tVN:1.6", *bamgen.sq_text().splitlines()], bamgen.REFS, recs)
    parts = [part.copy(recs[:7000] + recs[14000:]), part.copy(recs[7000:14000])] + [part.copy([])] * 28
    inputs = mergegen.write(parts, tmp_path, ["u.bam", "bam"])
    merges_the_same([*order, *inputs], tmp_path, SETTINGS)
