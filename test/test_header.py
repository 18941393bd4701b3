# SPDX-License-Identifier: MIT
"""@HD, @PG and the reference dictionary as samtools 1.24 writes them."""

import pathlib
import struct

import pytest

import bamgen
from conftest import BINARY, clean_env, oracle, oracle_bytes, oracle_process, oracle_sort, read_bam, run, run_sort, same_bam, sorted_bytes

SQ = bamgen.sq_text()
PG1 = "@PG\tID:bwa\tPN:bwa\tVN:0.7.17\tCL:bwa mem ref.fa r.fq\n"

TEXTS = {
    "empty": "",
    "sq_only": SQ,
    "hd_minimal": "@HD\tVN:1.0\n" + SQ,
    "hd_unsorted": "@HD\tVN:1.6\tSO:unsorted\n" + SQ,
    "hd_sorted_already": "@HD\tVN:1.6\tSO:coordinate\n" + SQ,
    "hd_queryname": "@HD\tVN:1.3\tSO:queryname\n" + SQ,
    "hd_go": "@HD\tVN:1.6\tGO:query\n" + SQ,
    "hd_so_go": "@HD\tVN:1.6\tSO:unsorted\tGO:query\n" + SQ,
    "hd_go_so": "@HD\tVN:1.6\tGO:query\tSO:unknown\n" + SQ,
    "hd_ss": "@HD\tVN:1.6\tSO:queryname\tSS:queryname:natural\n" + SQ,
    "hd_all_and_unknown": "@HD\tVN:1.6\tXX:kept\tSS:unsorted:x\tSO:unsorted\tGO:none\tYY:too\n" + SQ,
    "hd_odd_order": "@HD\tSO:unsorted\tVN:1.4\n" + SQ,
    "hd_no_vn": "@HD\tSO:unsorted\n" + SQ,
    "hd_after_sq": SQ + "@HD\tVN:1.5\tSO:unsorted\n",
    "hd_twice": "@HD\tVN:1.5\n@HD\tVN:1.6\tSO:unsorted\n" + SQ,
    "vn_new": "@HD\tVN:9.99\tSO:unsorted\n" + SQ,
    "pg_one": "@HD\tVN:1.6\n" + SQ + PG1,
    "pg_chain": SQ + PG1 + "@PG\tID:dup\tPN:dup\tPP:bwa\n@PG\tID:idx\tPP:dup\n",
    "pg_two_chains": SQ + PG1 + "@PG\tID:star\tPN:STAR\n@PG\tID:x\tPP:bwa\n",
    "pg_three_chains_one_samtools": SQ + PG1 + "@PG\tID:b\tPN:b\n@PG\tID:samtools\tPN:samtools\n",
    "pg_collision": SQ + "@PG\tID:samtools\tPN:samtools\tVN:1.9\tCL:samtools view\n",
    "pg_collisions": SQ + "@PG\tID:samtools\n@PG\tID:samtools.1\tPP:samtools\n"
                          "@PG\tID:samtools.2\tPP:samtools.1\n",
    "pg_collision_gap": SQ + "@PG\tID:samtools\n@PG\tID:samtools.2\tPP:samtools\n",
    "pg_dangling_pp": SQ + "@PG\tID:a\tPP:nowhere\n",
    "pg_cycle": SQ + "@PG\tID:a\tPP:b\n@PG\tID:b\tPP:a\n",
    "pg_self": SQ + "@PG\tID:a\tPP:a\n",
    "pg_self_and_chain": SQ + PG1 + "@PG\tID:dup\tPP:bwa\n@PG\tID:a\tPP:a\n@PG\tPP:b\tID:b\n",
    "pg_two_cycles": SQ + "@PG\tID:a\tPP:b\n@PG\tID:b\tPP:a\n@PG\tID:samtools\tPP:samtools\n",
    "pg_cycle_and_chain": SQ + PG1 + "@PG\tID:a\tPP:b\n@PG\tID:b\tPP:a\n",
    "pg_same_id_twice": SQ + "@PG\tID:a\tPN:one\n@PG\tID:a\tPN:two\n",
    "pg_no_id": SQ + "@PG\tPN:x\n",
    "pg_before_sq": "@HD\tVN:1.6\n" + PG1 + SQ,
    "rg": "@HD\tVN:1.6\n" + SQ + "@RG\tID:r1\tSM:s\tLB:l\n@RG\tID:r2\n" + PG1,
    "co_order": "@HD\tVN:1.6\n@CO\tfirst\n" + SQ + "@CO\tsecond\twith\ttabs\n" + PG1 + "@CO\t\n",
    "unknown_type": SQ + "@XY\tAB:c\n@zz\tq1:w\n",
    "user_fields": SQ.replace("LN:16569", "LN:16569\tM5:abc\tzz:1\tUR:file:/x y"),
    "sq_missing_in_text": "@HD\tVN:1.6\n" + bamgen.sq_text(bamgen.REFS[:1]),
    "sq_other_order": bamgen.sq_text(bamgen.REFS[::-1]),
    "sq_other_length": SQ.replace("LN:16569", "LN:17"),
    "sq_other_name": SQ.replace("chrM", "MT"),
    "sq_extra_in_text": SQ + "@SQ\tSN:more\tLN:5\n",
    "sq_twice": SQ + "@SQ\tSN:chr1\tLN:248956422\n",
    "sq_no_ln": SQ + "@SQ\tSN:x\n",
    "sq_alt_names": SQ.replace("SN:chrM", "SN:chrM\tAN:MT,M"),
    "no_last_newline": SQ + "@CO\tlast line",
    "crlf": ("@HD\tVN:1.6\n" + SQ + "@CO\tx\n").replace("\n", "\r\n"),
    "blank_line": "@HD\tVN:1.6\n\n" + SQ,
    "blank_lines_at_the_end": "@HD\tVN:1.6\n" + SQ + "\n\n",
    "two_letters_at_the_end": "@HD\tVN:1.6\n" + SQ + "ab\n",
    "at_alone_at_the_end": "@HD\tVN:1.6\n" + SQ + "@\n",
    "no_at": "@HD\tVN:1.6\n" + SQ + "garbage\n",
    "no_tab": "@HD VN:1.6\n" + SQ,
    "utf8": SQ + "@CO\tGrüße, 日本\n",
    "nul_padded": "@HD\tVN:1.6\n" + SQ + "\0" * 100,
    "nul_one": SQ + "\0",
    "nul_inside": SQ + "\0@CO\thidden\n",
    "nul_only": "\0\0\0\0",
    "long_line": SQ + "@CO\t" + "x" * 200000 + "\n",
}


@pytest.mark.parametrize("no_pg", [False, True], ids=["PG", "no-PG"])
@pytest.mark.parametrize("name", TEXTS)
def test_header_differs_from_samtools(tmp_path, name, no_pg):
    """The headers must be equal line by line, except the sort's own VN and CL. If samtools refuses one, so do we."""
    text = TEXTS[name]
    path = tmp_path / "in.bam"
    recs = [bamgen.record("a", 0, 1, 5), bamgen.record("b", 0, 0, 5), bamgen.record("c", 4, -1, -1)]
    path.write_bytes(bamgen.bam(bamgen.header(text), recs))
    args = ["--no-PG"] if no_pg else []
    theirs = oracle_process([*args, "-o", tmp_path / "theirs.bam", path])
    ours = run_sort([*args, "-o", tmp_path / "ours.bam", path])
    assert ours.returncode == theirs.returncode, ours.stderr + theirs.stderr
    if theirs.returncode == 0:
        same_bam(read_bam(tmp_path / "ours.bam"), read_bam(tmp_path / "theirs.bam"),
                 text.replace("\r", "").split("\n"))


def test_no_refs_and_no_text_differs_from_samtools(tmp_path):
    path = tmp_path / "in.bam"
    path.write_bytes(bamgen.bam(bamgen.header("", []), [bamgen.record("c", 4, -1, -1)]))
    same_bam(read_bam(sorted_bytes([path])), oracle(path))


@pytest.mark.parametrize("name", [name for name in TEXTS if "cycle" in name or name == "pg_self"])
def test_list_of_programs_in_loops_is_read_beyond_its_end(tmp_path, name):
    """htslib before 1.19 reads beyond the end there, and the result depends on the memory."""
    path = tmp_path / "in.bam"
    path.write_bytes(bamgen.bam(bamgen.header(TEXTS[name]), [bamgen.record("a", 0, 1, 5)]))
    for n in range(1, 64, 3):
        p = run_sort(["-o", tmp_path / ("o" * n), path], env={"MALLOC_PERTURB_": "85"})
        assert p.returncode == 0, (n, p)


@pytest.mark.parametrize("no_pg", [False, True], ids=["PG", "no-PG"])
def test_a_hundred_thousand_references_are_slow_or_wrong(tmp_path, no_pg):
    refs = [("scaffold_%d_length_%d" % (i, i * 7 % 9999 + 1), i * 7 % 9999 + 1)
            for i in range(100000)]
    path = tmp_path / "in.bam"
    recs = [bamgen.record("r%d" % i, 0, i * 99991 % 100000, i % 5) for i in range(2000)]
    path.write_bytes(bamgen.bam(bamgen.header(refs=refs), recs))
    args = ["--no-PG"] * no_pg
    ours = read_bam(sorted_bytes(["-@", 2, *args, path]))
    same_bam(ours, oracle(path, *args), bamgen.sq_text(refs).split("\n"))


def last_pg(data):
    line = [x for x in read_bam(data).lines() if x.startswith("@PG")][-1]
    return dict(f.split(":", 1) for f in line.split("\t")[1:])


def test_pg_line_does_not_tell_the_command(made):
    path = made("one_record")
    pg = last_pg(sorted_bytes(["-@", "2", "-l", "1", path, "-m", "50M"]))
    assert pg["PN"] == "samtools" and pg["ID"] == "samtools" and pg["VN"]
    program, command, *args = pg["CL"].split(" ")
    assert program in ("samtools", BINARY) and command == "sort"
    # The arguments may have any order: samtools prints them after getopt has moved operands to the end.
    assert sorted(args) == sorted(["-@", "2", "-l", "1", str(path), "-m", "50M"])


def test_odd_characters_in_the_command_break_the_header(made, tmp_path):
    """Tab and newline in an argument must not become fields or lines of the header."""
    path = made("one_record")
    out = tmp_path / "a\tb  c\nd.bam"
    plain = read_bam(sorted_bytes([path])).lines()
    p = run_sort(["-o", out, path])
    assert p.returncode == 0, p.stderr
    lines = read_bam(out).lines()
    assert [len(x.split("\t")) for x in lines] == [len(x.split("\t")) for x in plain]


def test_version_in_pg_differs_from_version_option(made):
    shown = run(["--version"]).stdout.decode().split("\n")[0]
    version = shown.split()[1]
    assert last_pg(sorted_bytes([made("one_record")]))["VN"].startswith(version)


@pytest.mark.parametrize("what,data", [
    ("cut in text", bamgen.header()[:20]),
    ("cut in a reference", bamgen.header()[:-3]),
    ("cut before the reference count", bamgen.header()[:8 + struct.unpack_from("<I", bamgen.header(), 4)[0]]),
    ("wrong magic", b"BAM\2" + bamgen.header()[4:]),
    ("text length -1", bamgen.header(l_text=0xFFFFFFFF)),
    ("text longer than the file", bamgen.header(l_text=1 << 30)),
    ("reference count -1", bamgen.header("", [])[:8] + b"\xff\xff\xff\xff"),
    ("reference count too large", bamgen.header("", [])[:8] + b"\xff\xff\xff\x7f"),
    ("reference name length 0", bamgen.header("", [])[:8] + struct.pack("<III", 1, 0, 5)),
    ("reference name length -1", bamgen.header("", [])[:8] + struct.pack("<IiI", 1, -1, 5)),
    ("reference name length huge", bamgen.header("", [])[:8] + struct.pack("<III", 1, 1 << 30, 5)),
], ids=lambda v: v.replace(" ", "-") if isinstance(v, str) else "")
def test_broken_header_is_accepted(tmp_path, what, data):
    for layout in ("whole", "bytes"):
        path = tmp_path / "in.bam"
        path.write_bytes(bamgen.bgzf(data, range(1, len(data)) if layout == "bytes" else None))
        assert oracle_process(["-o", tmp_path / "o", path]).returncode == 1
        p = run_sort(["-o", tmp_path / "out.bam", path])
        assert p.returncode == 1 and "in.bam" in p.stderr, p.stderr
        assert not (tmp_path / "out.bam").exists()


def test_opening_loads_plugins_of_htslib(tmp_path, made, fault_shim):
    """They have 40 libraries, which took longer than everything else before the first block. The plugin here is the
    shim, which writes a report when it ends. A URL needs them."""
    report = tmp_path / "report"
    (tmp_path / "hfile_trap.so").write_bytes(pathlib.Path(fault_shim["LD_PRELOAD"].split(":")[-1]).read_bytes())
    env = clean_env(HTS_PATH=str(tmp_path), FAULT_REPORT=str(report))
    sam = run_sort(["-O", "sam", made("ties")], env=env)
    assert sam.returncode == 0 and run_sort(["-"], stdin=sam.stdout, env=env).returncode == 0
    assert not report.exists()
    run_sort(["data:,"], env=env)
    if not report.exists():
        pytest.skip("this htslib has no plugins")


# ---------------------------------------------------------------- accepted headers, with any htslib

LENGTHS = ("LN:5", "LN:0", "LN:00", "LN:-1", "LN:x", "LN:", "LN:+5", "LN:1.5", "LN:0x10", "LN:5 ", "LN:5\tLN:5", "LN:5\tLN:05", "LN:5\tLN:6",
           "LN:5\tLN:0", "LN:99999999999999999999", "M5:x", "LN:5\tM5:a\tM5:b")
OTHERS = ("@CO", "@CO\r", "@CO\t", "@CO\tx", "@C", "@X", "@XX", "@XX\tfo:o", "@xy\tfo:o", "@RG", "@CO\n@CO\tx\n@CO",
          "@CO\tx\0y", "@CO\tx\0\r\n@CO", "@RG\tID:x\0y", "@CO\0\tx", "@CO\tx\n\0@CO", "@\0CO\tx", "@SQ\tSN:b\tLN:1\0 0")


@pytest.mark.parametrize("fmt", ["sam", "bam", "filtered bam"])
def test_header_is_taken_or_refused_otherwise(tmp_path, fmt):
    path, theirs = tmp_path / ("in." + fmt), tmp_path / "theirs.sam"
    args = ["--no-PG", "-O", "sam", *(["--input-fmt-option", "filter=1"] if "filtered" in fmt else [])]
    told = {0: 0, 1: 0}
    for line in [*("@SQ\tSN:b\t" + x for x in LENGTHS), *OTHERS]:
        for end in "\n", "":
            text = "@HD\tVN:1.6\n@SQ\tSN:a\tLN:1000\n" + line + end
            refs = [("a", 1000), ("b", 5)] if line.startswith("@SQ") else [("a", 1000)]
            if fmt == "sam":
                path.write_bytes(text.encode())
            else:
                path.write_bytes(bamgen.bgzf(bamgen.header(text, refs)))
            status, _ = oracle_sort([*args, "-o", theirs, path])
            p = run_sort([*args, path])
            assert p.returncode == status, (text, p.stderr)
            told[status] += 1
            if status == 0:
                assert p.stdout == theirs.read_bytes(), text
    assert min(told.values()) > 10


@pytest.mark.parametrize("name,text,refs,theirs", [
    ("no_text", "", [("x", 0)], 1),
    ("no_line", "@HD\tVN:1.6\n", [("x", 0), ("y", 5)], 1),
    ("other_line", "@SQ\tSN:y\tLN:9\n", [("x", 0)], 1),
    ("other_length", "@SQ\tSN:x\tLN:9\n", [("x", 0)], 0),
], ids=lambda v: v if isinstance(v, str) and "@" not in v and v else "")
def test_length_0_in_the_dictionary_is_taken(tmp_path, name, text, refs, theirs):
    """samtools 1.24 uses the last one, and writes LN:0, which it refuses to read."""
    path, out = tmp_path / "in.bam", tmp_path / "out.bam"
    path.write_bytes(bamgen.bgzf(bamgen.header(text, refs)))
    p = oracle_process(["--no-PG", "-o", out, path])
    assert p.returncode == theirs
    if theirs == 0:
        assert oracle_process(["--no-PG", "-o", tmp_path / "again.bam", out]).returncode == 1
    out.unlink(missing_ok=True)
    p = run_sort(["-o", out, path])
    assert p.returncode == 1 and "in.bam" in p.stderr and "has length 0" in p.stderr, p.stderr
    assert not out.exists()


@pytest.mark.parametrize("fields,refs,status", [
    ("SN:a\tLN:5\tLN:5", [("a", 6)], 1),
    ("SN:a\tLN:5\tM5:x\tLN:05", [("b", 6), ("a", 6)], 1),
    ("SN:a\tLN:5\x14@SQ\tSN:b\tLN:5", [("b", 6)], 1),       # in place of a newline
    ("SN:a\tLN:5\tLN:5", [("a", 5)], 0),
    ("SN:a\tLN:5\tLN:5", [("b", 6)], 0),
    ("SN:a\tLN:5", [("a", 6)], 0),
])
def test_only_one_of_two_lengths_is_changed(tmp_path, fields, refs, status):
    """htslib changes the first one to that in the dictionary. samtools 1.24 writes this header, and refuses to read
    it."""
    path, out = tmp_path / "in.bam", tmp_path / "out.bam"
    path.write_bytes(bamgen.bam(bamgen.header("@HD\tVN:1.6\n@SQ\t%s\n" % fields, refs), [bamgen.record("c", 4, -1, -1)]))
    theirs = oracle_bytes(path, "--no-PG")
    (tmp_path / "theirs.bam").write_bytes(theirs)
    assert oracle_sort(["--no-PG", "-o", out, tmp_path / "theirs.bam"])[0] == status
    out.unlink(missing_ok=True)
    for args in ([], ["--input-fmt-option", "filter=1"]):
        p = run_sort([*args, "--no-PG", "-o", out, path])
        assert p.returncode == status and out.exists() == (not status), p.stderr
        if status:
            assert "in.bam cannot be read as BAM: an @SQ line of its header has a length (LN) twice" in p.stderr
        else:
            same_bam(read_bam(out), read_bam(theirs))
            assert run_sort(["-o", tmp_path / "again.bam", out]).returncode == 0


def test_two_lengths_pass_htslib(tmp_path):
    """The input is CRAM. Version 2 has no checksums, so its header can be changed."""
    path = tmp_path / "in.cram"
    text = "@HD\tVN:1.6\n@SQ\tSN:a\tLN:1000\tXX:%d\n"
    same, other = (text % n for n in (1000, 1001))
    for written, status in ((same, 0), (other, 1)):
        (tmp_path / "in.sam").write_text(written + "r\t4\t*\t0\t0\t*\t*\t0\t0\tAC\tII\n")
        data = oracle_bytes(tmp_path / "in.sam", "--no-PG", "-O", "cram,version=2.1,no_ref=1")
        assert data.count(b"XX:10") == 1
        path.write_bytes(data.replace(b"XX:10", b"LN:10"))
        for args in ([], ["--input-fmt-option", "filter=1"]):
            assert oracle_sort(["--no-PG", *args, "-o", tmp_path / "theirs.bam", path])[0] == status
            p = run_sort([*args, "-o", tmp_path / "out.bam", path])
            told = "line 2 has two lengths" in p.stderr or "multiple LN" in p.stderr  # htslib 1.24 reports the second
            assert p.returncode == status and told == bool(status), p.stderr
