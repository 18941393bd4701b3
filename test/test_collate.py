# SPDX-License-Identifier: MIT
"""`samtools collate` against samtools 1.24.

Records with the same name and the same READ1 and READ2 flags are ties. Their order in samtools is undefined; ours keep
the order of the input. So names and flags are compared in order, and the records of a tie as a set.
"""

import itertools
import os
import random
import struct

import pytest

import bamgen
from conftest import (PRECIOUS, REAL_DIR, MORE_THREADS, bam_files, oracle_process, read_bam, run,
                      same_header, script)

SPILLED = {"SAMTOOLS_OMP_ARENA": "262144"}
REAL = bam_files(REAL_DIR, "shared/real") if REAL_DIR.exists() else []


def ours(args, **kw):
    return run(["collate", *args], **kw)


def collated(path, *args, **kw):
    p = ours(["-O", *args, path], **kw)
    assert p.returncode == 0 and "merging from" not in p.stderr, p.stderr
    return p.stdout


def oracle(path, scratch, *args):
    out = scratch / "theirs.bam"
    p = oracle_process(["-o", out, "-T", scratch / "temp", *args, path], "collate")
    assert p.returncode == 0, p.stderr
    return read_bam(out)


def name_and_mate(rec):
    n, flag = rec[12], struct.unpack_from("<H", rec, 18)[0]
    return rec[36:36 + n - 1], flag & 0xC0


def ties(records):
    return [(key, list(group)) for key, group in itertools.groupby(records, name_and_mate)]


def without_bin(rec):
    """htslib computes BIN again."""
    return rec[:14] + rec[16:]


def same_order(mine, expected, before):
    """mine: in the order of expected, except ties, which are in the order of before. All are lists of records."""
    a, b = ties(mine), ties(expected)
    assert [key for key, _ in a] == [key for key, _ in b]
    in_input = {}
    for rec in before:
        in_input.setdefault(name_and_mate(rec), []).append(without_bin(rec))
    for (key, x), (_, y) in zip(a, b):
        assert sorted(x) == sorted(y), key
        assert [without_bin(r) for r in x] == in_input[key], "ties of %r are not in the order of the input" % (key,)


def same_collation(path, scratch, mine, *args):
    before, expected = read_bam(path), oracle(path, scratch, *args)
    bam = read_bam(mine)
    same_header(bam, expected, before.lines())
    same_order(bam.records(), expected.records(), before.records())


# The inputs whose records htslib changes more are omitted.
@pytest.mark.parametrize("name", sorted(set(bamgen.CORPUS) - {"cg_short", "cg_moved", "name_oddities", "stray_bytes"}))
def test_order_differs(made, tmp_path, name):
    path = made(name)
    same_collation(path, tmp_path, collated(path, "-@", 2))


@pytest.mark.parametrize("path", REAL, ids=lambda p: p.name)
def test_order_of_real_reads_differs(tmp_path, path):
    data = collated(path, "-@", 2)
    same_collation(path, tmp_path, data)
    for n in (1, 3):
        assert read_bam(collated(path, "-@", n, "--no-PG", env=SPILLED)).body == read_bam(data).body


def many_names(n, seed):
    """Pairs, singles, secondary and supplementary reads in random order."""
    r = random.Random(seed)
    recs = []
    for i in range(n):
        name = r.choice(["x%d", "A0:%d", "%d", "\x7f%d", "read.%d/x"]) % r.randrange(n // 3)
        recs.append(bamgen.record(name, r.choice([0, 65, 129, 193, 321, 2113, 2177, 385, 1, 77, 141]), 0, r.randrange(900)))
    return bamgen.header(), recs


@pytest.mark.parametrize("bins", [1, 2, 7, 64, 100, 1000])
@pytest.mark.parametrize("spilled", [False, True])
def test_other_numbers_of_bins_give_another_order(made, tmp_path, bins, spilled):
    path = made("many names", content=lambda: many_names(6000, 1))
    data = collated(path, "-n", bins, env=SPILLED if spilled else None)
    # samtools opens as many files
    same_collation(path, tmp_path, data, "-n", bins)


def test_threads_or_memory_change_the_bytes(made):
    path = made("many names", content=lambda: many_names(6000, 1))
    all_bytes = {collated(path, "--no-PG", "-@", n, env=env) for n in MORE_THREADS for env in (None, SPILLED)}
    assert len(all_bytes) == 1


def test_a_pipe_is_collated_otherwise(made):
    path = made("mixed")
    assert collated("-", "--no-PG", stdin=path.read_bytes()) == collated(path, "--no-PG")


# ------------------------------------------------------------ where it goes


def outputs(folder):
    return sorted(p.name for p in folder.iterdir())


def test_a_prefix_does_not_name_the_output(made, tmp_path):
    path = made("mixed")
    for ext, args in (("bam", []), ("sam", ["--output-fmt", "sam"]), ("bam", ["--output-fmt", "bam"])):
        for place in (["%s/pre" % tmp_path], ["-T", "%s/pre" % tmp_path]):
            p = ours([*args, *([path, *place] if place[0] != "-T" else [*place, path])])
            assert p.returncode == 0, p.stderr
            assert outputs(tmp_path) == ["pre." + ext] and p.stdout == b""
            os.unlink(tmp_path / ("pre." + ext))


def test_o_and_the_prefix_are_mixed_up(made, tmp_path):
    path = made("mixed")
    p = ours(["-o", tmp_path / "out.sam", path, tmp_path / "pre", "more", "words"])
    assert p.returncode == 0, p.stderr
    assert outputs(tmp_path) == ["out.sam"]
    assert (tmp_path / "out.sam").read_bytes().startswith(b"@HD\t")


@pytest.mark.parametrize("name", ["-", "plain", "x.BAM", "x.bam.tmp", "/dev/stdout"])
def test_format_of_a_name_is_another(made, tmp_path, name):
    """samtools collate, unlike all other commands, chooses SAM if the extension of -o's name is not that of a
    format."""
    theirs = oracle_process(["-o", name, made("ties")], "collate", cwd=tmp_path)
    file = tmp_path / name
    wanted = file.read_bytes() if file.is_file() else theirs.stdout
    p = ours(["-o", name, made("ties")], cwd=tmp_path)
    assert p.returncode == theirs.returncode == 0, p.stderr
    assert (file.read_bytes() if file.is_file() else p.stdout)[:2] == wanted[:2]


@pytest.mark.parametrize("args", [[], ["-n", "3"], ["-O"], ["-o", "x.bam"]])
def test_a_line_without_input_or_output_is_taken(made, tmp_path, args):
    line = [*args, made("mixed")] if args in ([], ["-n", "3"]) else args
    p = ours(line, cwd=tmp_path)
    assert p.returncode == 1 and p.stderr.startswith("samtools collate: no ")
    if line[-1:] in (["-O"], ["x.bam"]):         # without input, the usage follows, as in samtools
        assert "\nUsage: samtools collate " in p.stderr
    else:
        assert p.stderr.count("\n") == 1
    assert outputs(tmp_path) == []


@pytest.mark.parametrize("args", [["-O", "-o", "x.bam"], ["-O", "-n", "0"], ["-O", "-n", "-1"], ["-O", "-n", "two"],
                                  ["-O", "-n", "9999999999"], ["-O", "--nonsense"], ["-O", "-l", "much"]])
def test_a_mistake_is_taken(made, tmp_path, args):
    p = ours([*args, made("mixed")], cwd=tmp_path)
    assert p.returncode == 1 and p.stderr.startswith("samtools collate: ") and p.stderr.count("\n") == 1
    assert p.stdout == b"" and outputs(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("level", [["-u"], ["-u", "-l", "9"], ["-l", "0"], ["-l", "9"], ["-l", "77"], ["-l", "-1"], []])
def test_level_is_another(made, level):
    path = made("realistic", content=lambda: bamgen.realistic(20000))
    data, plain, one = (collated(path, "--no-PG", *x) for x in (level, ["-l", "0"], ["-l", "1"]))
    if level == ["-l", "9"]:
        assert len(data) < len(one)
    else:
        assert data == (plain if "-u" in level or level == ["-l", "0"] else one)


def test_temporary_files_lie_elsewhere(made, tmp_path):
    """If the output is a pipe, temporary files are made in TMPDIR."""
    path = made("many names", content=lambda: many_names(6000, 1))
    folder = tmp_path / "scratch"
    folder.mkdir()
    data = collated(path, env={**SPILLED, "TMPDIR": str(folder)})
    assert len(read_bam(data).records()) == 6000 and outputs(folder) == []


# ------------------------------------------------------------------- guards


def test_damage_leaves_an_output(sound, desk):
    data, blocks = sound
    bad = bytearray(data)
    bad[blocks[len(blocks) // 2].offset + 40] ^= 255
    (desk / "bad.bam").write_bytes(bad)
    p = ours(["-o", desk / "out.bam", desk / "bad.bam"])
    assert p.returncode == 1 and "bad.bam" in p.stderr and p.stderr.startswith("samtools collate: ")
    assert (desk / "out.bam").read_bytes() == PRECIOUS and outputs(desk) == ["bad.bam", "out.bam"]


def test_verify_report_and_checksum_are_ignored(made, tmp_path):
    path = made("many names", content=lambda: many_names(6000, 1))
    p = ours(["-o", tmp_path / "out.bam", "--verify", "--report", "--checksum", tmp_path / "sum", "--progress", path])
    assert p.returncode == 0, p.stderr
    assert "samtools collate: %s -> " % path in p.stderr and "samtools collate: done: 100 %" in p.stderr
    q = run(["sort", "--check", "--checksum", "-", "-t", "ZZ", path])
    assert (tmp_path / "sum").read_bytes().split()[0] == b"records=6000"
    assert q.returncode in (0, 1)


def test_the_pg_line_is_missing(made):
    path = made("mixed")
    added = [x for x in read_bam(collated(path)).lines() if x.startswith("@PG") and "CL:" in x and " collate " in x]
    assert len(added) == 1
    assert not [x for x in read_bam(collated(path, "--no-PG")).lines() if " collate " in x]


# ------------------------------------------------------- what is handed on


@pytest.mark.parametrize("args", [["-f"], ["-f", "-r", "5"], ["-r", "100", "-O"], ["-Of"]])
def test_fast_mode_is_ignored(made, tmp_path, args):
    """The words reach the other samtools unchanged, in their order."""
    tool = script(tmp_path / "bin" / "samtools", 'printf "%s\\n" "$0" "$@"\n')
    line = [str(made("mixed")), *args, "prefix", "-@", "3"]
    p = ours(line, env={"SAMTOOLS_UPSTREAM": str(tool)})
    assert p.returncode == 0, p.stderr
    assert p.stdout.decode().split("\n")[1:-1] == ["collate", *line]


def test_fast_mode_fails_without_a_word(made):
    p = ours(["-f", "-O", made("mixed")], env={"PATH": "/nonexistent"})
    assert p.returncode == 1 and p.stderr.count("\n") == 1 and p.stdout == b""


@pytest.mark.parametrize("words", [["collate", "--help"], ["collate", "-h"], ["help", "collate"]])
def test_help_is_missing(words):
    p = run(words)
    assert p.returncode == 0 and p.stdout.startswith(b"Usage: samtools collate ") and p.stderr == ""


def test_help_lists_no_collate():
    p = run(["help"], env={"PATH": "/nonexistent"})
    assert b"\n     collate " in p.stdout
