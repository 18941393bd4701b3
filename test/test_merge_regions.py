# SPDX-License-Identifier: MIT
"""merge -R, -L and -X against samtools 1.24: the same records of the same regions; no more is read than the parts
that the index names."""

import os
import struct
import subprocess

import pysam
import pytest

import bamgen
import mergegen
from conftest import BINARY, DATA_BAMS, HANG, REAL_BAMS, clean_env, limit_on, oracle_call, read_bam
from test_merge import SETTINGS, merged, merges_the_same, ours, refused

REFS = [("c1", 400000), ("c2", 90000), ("c:3", 5000), ("c4", 700), ("c5", 50)]
LINES = ["@HD\tVN:1.6\tSO:coordinate", *bamgen.sq_text(REFS).splitlines(), "@RG\tID:x", "@PG\tID:p"]
REGIONS = ["c1", "c1:200,000", "c1:1-1", "c1:1000-2000", "c1:3e5-301k", "c2:89000-91000", "{c:3}:10-2000", "c:3",
           "c4:-50", "c4:300-200", "c5", "c5:51-60", "c2:", "c1:0-9", "c9", "*", ".", "", "c4:x"]
BEDS = ["c1\t1000\t2000\nc1\t1500\t9000\nc4\t0\t700\nc2 5 5\n",
        "#x\ntrack c1\nbrowser\n\nc1 100000 100001\r\n  c1 7000\nc9\t0\t5\n",
        "".join("c1\t%d\t%d\tname\n" % (i, i + 50) for i in range(399000, 0, -1777))
        + "c:3\t0\t99999999999\n",
        "c1\t5000\t5000\nc1\t6000\t6000\nc2\t0\t90001\n", "c9\t0\t100\n", "", "c1\n", "c1 20 10\n", "c1 -5 10\n",
        "c1 0\n", "c1\t0\t9\nno numbers\n"]


def spread(seed, n):
    """Records over all references, in order, some over long gaps, some unmapped beside their mates, some unplaced."""
    r = bamgen.rng("regions %s" % seed)
    places = sorted((r.choice((0, 0, 0, 0, 1, 1, 2, 3)), r.random()) for _ in range(n))
    out = []
    for i, (tid, at) in enumerate(places):
        spliced = [(20, "M"), (r.choice((9, 3000, 60000)), "N"), (40, "M")]
        cigar = r.choice(([(60, "M")], spliced, [(60, "S")], [(60, "I")], [(60, "M")]))
        flag = r.choice((0, 16, 99, 4, 1024))
        seq = bamgen.bases(r, 60)
        tags = b"RGZx\0" if i % 3 else b"PGZp\0XZZ" + seq.encode()[:r.randrange(1, 60)] + b"\0"
        out.append(bamgen.record("%s%d" % (seed, i), flag, tid, int(at * REFS[tid][1]), seq=seq, tags=tags,
                                 cigar=[] if flag & 4 else cigar))
    out.sort(key=lambda x: (*struct.unpack_from("<ii", x, 4), x[18] & 16))
    return out + [bamgen.record("%s_none%d" % (seed, i), 4, -1, -1) for i in range(5)]


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """a.bam has many blocks and a BAI, b.bam a CSI and other references, d.sam.gz a CSI; e.bam is small."""
    folder = tmp_path_factory.mktemp("regions")
    whole = mergegen.Part(LINES, REFS, spread("a", 9000))
    other = mergegen.Part(LINES, REFS, spread("b", 3000))
    mergegen.keep_refs(other, [0, 2, 3])
    parts = {"a.bam": whole, "b.bam": other, "c.cram": whole.copy(spread("c", 2000)),
             "d.sam.gz": whole.copy(spread("d", 500)), "e.bam": whole.copy(spread("e", 30))}
    for name, part in parts.items():
        kind = name.split(".", 1)[1]
        mergegen.write([part], folder, [kind])[0].rename(folder / name)
        pysam.index(*(["-c"] if name[0] in "bd" else []), str(folder / name))
    for i, text in enumerate(BEDS):
        (folder / ("%d.bed" % i)).write_text(text)
    return folder


def same_or_refused(args, scratch, settings=SETTINGS[3:4]):
    """Our result equals that of samtools, or both fail. Returns the number of records; None: both failed."""
    try:
        return len(merges_the_same(args, scratch, settings).records())
    except AssertionError:
        status, err = oracle_call("merge", ["-f", "-o", scratch / "out.bam", "-s", "1", *args])
        p = ours(["-f", "-o", scratch / "ours.bam", "-s", "1", *args])
        if status == 0 or p.returncode == 0:
            raise
        assert status == p.returncode == 1 and p.stderr.count("samtools merge: ") >= 1, (err, p.stderr)
        assert not (scratch / "ours.bam").exists()
        return None


def paths(here, names):
    return [here / x for x in names.split()]


@pytest.mark.slow
@pytest.mark.parametrize("inputs", ["a.bam", "a.bam b.bam e.bam", "c.cram d.sam.gz a.bam"])
def test_records_of_a_region_are_others(here, tmp_path, inputs):
    found = [same_or_refused(["-R", x, *paths(here, inputs)], tmp_path) for x in REGIONS]
    assert sum(x is None for x in found) == 6 and sum(bool(x) for x in found) >= 9, found
    same_or_refused(["-n", "-r", "-R", "c2", *paths(here, inputs)], tmp_path, SETTINGS)


@pytest.mark.parametrize("inputs", ["a.bam b.bam", "c.cram e.bam d.sam.gz"])
def test_records_of_a_bed_are_others(here, tmp_path, inputs):
    beds = [here / ("%d.bed" % i) for i in range(len(BEDS))]
    found = [same_or_refused(["-L", x, *paths(here, inputs)], tmp_path) for x in beds]
    assert sum(x is None for x in found) == 6 and sum(bool(x) for x in found) == 4, found
    same_or_refused(["-L", here / "2.bed", "-cp", *paths(here, inputs)], tmp_path, SETTINGS)


def test_slices_of_cram_lie_within_others(tmp_path):
    """htslib before 1.18 loses records of several regions then (its issue 1569)."""
    refs = [("c1", 4000000), ("c2", 90000)]
    lines = ["@HD\tVN:1.6\tSO:coordinate", *bamgen.sq_text(refs).splitlines()]
    gaps = {i: [(40, "M"), (100000, "N"), (20, "M")] for i in (16, 147, 381, 395, 490)}
    records = [bamgen.record("r%d" % i, 0, i // 1000, 3900 * i % 3900000 // (1 + i // 1000 * 50), seq="ACGT" * 15,
                             cigar=gaps.get(i, [(60, "M")])) for i in range(1300)]
    bam, cram, bed = (tmp_path / x for x in ("x.bam", "x.cram", "x.bed"))
    bam.write_bytes(bamgen.bgzf(bamgen.header("\n".join(lines) + "\n", refs) + b"".join(records)))
    pysam.view("-O", "cram,no_ref=1,seqs_per_slice=10", "-o", str(cram), str(bam), catch_stdout=False)
    for x in bam, cram:
        pysam.index(str(x))
    for places in [680000, 1424000, 1542000], [100000, 1424000, 1542000, 1990000], range(9000, 3900000, 200000):
        for other in "", "c2\t50\t9000\nc2\t20000\t21000\n":
            bed.write_text("".join("c1\t%d\t%d\n" % (p, p + 9000) for p in places) + other)
            assert same_or_refused(["-L", bed, cram], tmp_path) >= 2 * len(places)
    assert same_or_refused(["-L", bed, cram, bam], tmp_path, SETTINGS)


def test_references_have_other_numbers(here, tmp_path):
    """One input has another list of its own, and two references are one in the output."""
    head = bamgen.header("@SQ\tSN:c2\tLN:9\tAN:c1\n", [("c2", 9)])
    (tmp_path / "h.bam").write_bytes(bamgen.bgzf(head))
    for region in "c2", "c1", "c4", "c:3":
        args = ["-h", tmp_path / "h.bam", "-R", region, *paths(here, "b.bam a.bam")]
        assert same_or_refused(args, tmp_path) is not None, args


@pytest.mark.slow
@pytest.mark.parametrize("path", DATA_BAMS + REAL_BAMS[1:3], ids=lambda p: p.name)
def test_regions_of_real_reads_differ(tmp_path, path):
    part = mergegen.sorted_part(path, [])
    placed = [struct.unpack_from("<ii", x, 4) for x in part.records if struct.unpack_from("<i", x, 4)[0] >= 0]
    inputs = mergegen.write(mergegen.split(part, 3, "robin", bamgen.rng(path.name)), tmp_path)
    for x in inputs:
        pysam.index(str(x))
    bed = tmp_path / "x.bed"
    bed.write_text("".join("%s\t%d\t%d\n" % (part.refs[t][0], p, p + 900) for t, p in placed[::len(placed) // 40 + 1]))
    tid, pos = placed[len(placed) // 2]
    for args in ["-L", bed], ["-R", part.refs[tid][0]], ["-R", "{%s}:%d-%d" % (part.refs[tid][0], pos, pos + 5000)]:
        assert same_or_refused([*args, "-c", "-p", *inputs], tmp_path)


def test_index_files_are_taken_for_inputs(here, tmp_path):
    for name in "a.bam", "c.cram", "a.bam.bai", "c.cram.crai":
        (tmp_path / name.replace("m.", "m_").replace(".crai", "")).write_bytes((here / name).read_bytes())
    a, c, bai, crai = (tmp_path / x for x in ("a.bam", "c.cram", "a.bam_bai", "c.cram_crai"))
    for args in (["-X", "-R", "c2", a, c, bai, crai], ["-X", "-L", here / "0.bed", a, bai], ["-X", a, c, bai, "none"],
                 ["-R", "c1:5-900", "%s##idx##%s" % (a, bai)], ["-X", "-R", "c1", "%s##idx##none" % a, bai]):
        assert same_or_refused(args, tmp_path), args
    lines = tmp_path / "list"
    lines.write_text("%s##idx##%s\n" % (a, bai))
    assert same_or_refused(["-R", "c2", "-b", lines], tmp_path)
    for args in (["-R", "c1", a], ["-X", "-R", "c1", a, "none"], ["-X", "-R", "c1", a, c, bai],
                 ["-X", "-b", lines, a, bai], ["-R", "c1", "%s##idx##none" % a], ["-X", "-R", "c1", a, here / "0.bed"]):
        assert same_or_refused(args, tmp_path) is None, args


STARS = ["*\t0\t10\n", "* 7\n", "c4\t0\t50\n*\t5\t6\n", "*\t0\t0\nc4\t0\t50\nc1\t100\t9000\n*\t3\t9\n", ".\t0\t10\n",
         ".\t0\t1\nc4\t0\t50\n*\t0\t1\n", "c9\t0\t1\n*\t0\t1\n"]


@pytest.mark.parametrize("inputs", ["a.bam", "b.bam e.bam", "c.cram", "d.sam.gz", "c.cram d.sam.gz a.bam"])
def test_unplaced_reads_that_bed_names_are_left_out(here, tmp_path, inputs):
    """In place of a reference, * means the records without one, and . all of the file."""
    bed = tmp_path / "x.bed"
    for text in STARS:
        bed.write_text(text)
        found = same_or_refused(["-L", bed, *paths(here, inputs)], tmp_path)
        assert found >= 5 * len(inputs.split()) and ("." in text) == (found > 1000 or "d" in inputs and found > 500), text
    same_or_refused(["-L", bed, "-n", *paths(here, inputs)], tmp_path, SETTINGS)


@pytest.mark.parametrize("index", ["bai", "csi"])
@pytest.mark.parametrize("size", [0, 5000], ids=["in_one_block", "over_blocks"])
def test_unplaced_reads_are_sought_in_the_header(tmp_path, index, size):
    """There are no others, so the index does not state where the records begin (samtools fails then); or there are
    none."""
    bed = tmp_path / "x.bed"
    bed.write_text("*\t0\t1\n")
    head = bamgen.header("\n".join(LINES) + "\n" + "@CO\tx%d\n" * size % tuple(range(size)), REFS)
    for name, records in ("a", [bamgen.record("u%d" % i, 4, -1, -1) for i in range(900)]), ("b", []), ("c", spread("c", 9)[:10]):
        path = tmp_path / (name + ".bam")
        for layout in "htslib", "straddle":
            path.write_bytes(bamgen.bam(head, records, layout))
            pysam.index(*(["-c"] if index == "csi" else []), str(path))
            if name == "c":
                assert same_or_refused(["-L", bed, path], tmp_path) == 1
            else:
                assert read_bam(merged(["-L", bed, path])).records() == records


def test_index_that_is_older_than_its_file_is_believed_in_silence(here, tmp_path):
    """One warning, even if htslib also warns; none below --verbosity 3, and none if the file is older or as old."""
    for name in "a.bam", "a.bam.bai", "b.bam", "b.bam.csi", "c.cram", "c.cram.crai", "d.sam.gz", "d.sam.gz.csi":
        (tmp_path / name).write_bytes((here / name).read_bytes())
    for name, index in (("a.bam", "a.bam.bai"), ("a.bam", "a.bai"), ("b.bam", "b.bam.csi"), ("b.bam", "b.csi"),
                        ("c.cram", "c.cram.crai"), ("d.sam.gz", "d.sam.gz.csi")):
        path, found = tmp_path / name, tmp_path / index
        if not found.exists():
            next(tmp_path.glob(name + ".*")).rename(found)
        for age, given, verbosity in ((-1, 0, 3), (-1, 1, 3), (-1, 2, 3), (-1, 0, 2), (0, 0, 3), (1, 1, 3)):
            os.utime(path, (1e9, 1e9))
            os.utime(found, (1e9 + age, 1e9 + age))
            args = [["-R", "c1", path], ["-X", "-R", "c1", path, found],
                    ["-R", "c1", "%s##idx##%s" % (path, found)]][given]
            p = ours(["-f", "--verbosity", verbosity, "-o", tmp_path / "out.bam", *args])
            assert p.returncode == 0, p.stderr
            told = age < 0 and verbosity == 3
            assert p.stderr.count("older than") == told and (index in p.stderr) == told, (name, index, p.stderr)
            assert p.stderr.count("\n") == told, p.stderr


def test_what_cannot_be_read_by_region_is_half_read(here, tmp_path):
    a = here / "a.bam"
    (tmp_path / "x.sam").write_text("\n".join(LINES) + "\n")
    for args, words in ((["-R", "c1", "-L", here / "0.bed", a], "-R and -L exclude each other"),
                        (["-R", "nowhere", a], "-R nowhere"), (["-L", "none.bed", a], "none.bed cannot be read"),
                        (["-L", here / "6.bed", a], "line 1"), (["-X", a, a, a], "an index for each input"),
                        (["-R", "c1", "x.sam"], "x.sam: regions can be read only from"),
                        (["-R", "c1", "-X", a, "none"], "there is none in none")):
        refused(["-o", "out.bam", *args], tmp_path, words)


def test_other_parts_of_the_file_are_read(here, tmp_path):
    """Parts that the index does not name may be damaged; parts that it names may not."""
    bad, data = tmp_path / "bad.bam", bytearray((here / "a.bam").read_bytes())
    data[2 * len(data) // 5:2 * len(data) // 5 + 200] = bytes(200)
    bad.write_bytes(data)
    (tmp_path / "bad.bam.bai").write_bytes((here / "a.bam.bai").read_bytes())
    for region in "c1:1-9000", "c4", "c2":
        assert merged(["-R", region, "--no-PG", bad]) == merged(["-R", region, "--no-PG", here / "a.bam"])
    refused(["-R", "c1", "-o", "out.bam", bad], tmp_path, "bad.bam")


def test_wrong_index_is_called_a_truncated_or_broken_file(here, tmp_path):
    """If the index belongs to another file, each error says so, and none only says that the file is cut."""
    folder, failed = tmp_path, 0
    whole = mergegen.Part(LINES, REFS, [])
    for name, kind, n in (("f", "bam", 9000), ("g", "bam", 3000), ("h", "cram", 9000), ("i", "cram", 300),
                          ("j", "sam.gz", 9000), ("k", "sam.gz", 500)):
        path = mergegen.write([whole.copy(spread(name, n))], folder, [kind])[0].rename(folder / ("%s.%s" % (name, kind)))
        pysam.index(*(["-c"] if name in "gjk" else []), str(path))
    for one, index in (("f.bam", "g.bam.csi"), ("g.bam", "f.bam.bai"), ("h.cram", "i.cram.crai"),
                       ("i.cram", "h.cram.crai"), ("j.sam.gz", "k.sam.gz.csi"), ("k.sam.gz", "j.sam.gz.csi")):
        for region in "c1", "c1:200000-300000", "c1:150000-151000", "c2", "c2:40000-60000", "c4", "c:3":
            p = ours(["-X", "-R", region, "-o", "out.bam", folder / one, folder / index], cwd=tmp_path)
            if p.returncode:
                last = p.stderr.splitlines()[-1]
                assert p.returncode == 1 and not (tmp_path / "out.bam").exists()
                assert one in last and "samtools index makes a new one" in last and "truncated" not in last, p.stderr
                failed += 1
            (tmp_path / "out.bam").unlink(missing_ok=True)
    assert failed > 15


def test_blocks_of_an_older_file_are_called_its_end(tmp_path):
    """The index is that of the file when it was shorter."""
    lines = ["@HD\tVN:1.6\tSO:coordinate", "@SQ\tSN:c1\tLN:1000000"]
    for n in 2, 7:
        records = [bamgen.record("r%d" % i, 0, 0, 10 * i, seq="ACGTA") for i in range(n)]
        (tmp_path / "v.bam").write_bytes(bamgen.bam(bamgen.header("\n".join(lines) + "\n", [("c1", 1000000)]), records))
        if n == 2:
            pysam.index(str(tmp_path / "v.bam"))
    for args in ["-R", "c1:1-15"], ["-R", "c1"]:
        p = refused(["-o", "out.bam", *args, tmp_path / "v.bam"], tmp_path, "its index is that of another file")
        assert "truncated" not in p.stderr


def test_index_of_another_file_is_believed(here, tmp_path):
    for name, region in (("b.bam", "c1:300000-400000"), ("e.bam", "c2")):
        for x in name, "a.bam.bai":
            (tmp_path / x).write_bytes((here / x).read_bytes())
        args = ["-X", "-R", region, "-o", "out.bam", tmp_path / name, tmp_path / "a.bam.bai"]
        p = refused(args, tmp_path, "samtools index makes a new one")
        assert p.stderr.count("\n") == 1


@pytest.mark.parametrize("args", [["-R", "c1:1000-300000"], ["-L", "2.bed"]], ids=" ".join)
def test_many_inputs_have_too_few_files(here, tmp_path, args):
    """BAM needs no descriptor for each; CRAM does, and reports it."""
    args = [here / x if x.endswith("bed") else x for x in args] + ["-s", "1", "--no-PG"]
    few = limit_on("NOFILE", 40)
    inputs = paths(here, "a.bam b.bam e.bam") * 25
    assert merged([*args, *inputs], before=few) == merged([*args, *inputs])
    p = ours([*args, "-o", tmp_path / "out.bam", *paths(here, "c.cram") * 75], before=few)
    assert p.returncode == 1 and p.stderr.count("\n") == 1 and "ulimit -n" in p.stderr, p.stderr


def test_scattered_regions_gather_to_another_file(here, tmp_path):
    """Pipelines run one job for each region, and concatenate the results."""
    lines = """
set -e
for r in c1:1-200000 c1:200001-400000 c2 {c:3} c4; do
samtools merge -c -p -@ 2 -R $r part.$r.bam $0/a.bam $0/b.bam
done
samtools merge -f -c -p all.bam $0/a.bam $0/b.bam
samtools merge -R c2 -u -o - $0/a.bam $0/e.bam | samtools sort -n -o names.bam -
samtools merge -f -h $0/a.bam --write-index -R c2 -o indexed.bam##idx##indexed.bai $0/a.bam $0/c.cram
printf 'c2\\t0\\t1000\\n' | samtools merge -O sam -L - - $0/a.bam $0/b.bam > c2.sam
"""
    (tmp_path / "samtools").symlink_to(BINARY)
    env = clean_env(PATH="%s:/usr/bin:/bin" % tmp_path, SAMTOOLS_UPSTREAM="/nonexistent")
    p = subprocess.run(["sh", "-c", lines, here], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=HANG)
    assert p.returncode == 0, p.stderr
    parts = [read_bam((tmp_path / ("part.%s.bam" % x)).read_bytes()).records()
             for x in ("c1:1-200000", "c1:200001-400000", "c2", "{c:3}", "c4")]
    everything = read_bam((tmp_path / "all.bam").read_bytes()).records()
    placed = [x for x in everything if struct.unpack_from("<i", x, 4)[0] >= 0]
    over = [x for x in parts[0] if x in set(parts[1])]
    assert over and parts[0] + [x for x in parts[1] if x not in set(over)] + parts[2] + parts[3] + parts[4] == placed
    assert len(read_bam((tmp_path / "names.bam").read_bytes()).records()) > 1000
    assert (tmp_path / "indexed.bai").exists() and (tmp_path / "c2.sam").read_text().count("\tc2\t") > 5


def test_plan_or_report_of_regions_counts_whole_files(here, tmp_path):
    p = ours(["--plan", "-R", "c1:1-9000", "-o", "x.bam", here / "a.bam"], cwd=tmp_path)
    assert p.returncode == 0 and b"is read in part" in p.stdout and not list(tmp_path.iterdir()), p.stderr
    p = ours(["--report=r.json", "-R", "c1:1-9000", "-o", "x.bam", here / "a.bam"], cwd=tmp_path)
    assert p.returncode == 0 and '"bytes": null, "records": ' in (tmp_path / "r.json").read_text(), p.stderr
