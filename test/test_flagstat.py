# SPDX-License-Identifier: MIT
"""`samtools flagstat` and `samtools idxstats` against samtools 1.24: text, exit status, the use of an index."""

import os
import random
import subprocess

import pysam
import pytest

import bamgen
from conftest import BINARY, FASTA_REFS, MORE_THREADS, REAL_DIR, bam_files, clean_env, run, run_sort, script

REAL = bam_files(REAL_DIR, "shared/real") if REAL_DIR.exists() else []
FORMATS = [[], ["-O", "json"], ["-O", "tsv"], ["-O", "other"]]
CASES = [["-O", "JSON"], ["-O", "TSV"], ["-O", "Json"], ["-O", "tsV"]]


def theirs(command, *args):
    """The output of samtools 1.24; None: it fails."""
    try:
        return getattr(pysam.samtools, command)(*map(str, args), catch_stdout=True)
    except pysam.SamtoolsError:
        return None


def ours(command, *args, **kw):
    p = run([command, *args], **kw)
    assert p.returncode == 0 or (p.returncode == 1 and not p.stdout), p.stderr
    return p.stdout.decode() if p.returncode == 0 else None


def compare(command, *args, more=(), **kw):
    expected = theirs(command, *args)
    assert ours(command, *more, *args, **kw) == expected, args
    return expected


def all_flags(n, seed=1, cram=False):
    """(header, records): flags, places and mates of all kinds. cram: as CRAM gives them back."""
    r = random.Random(seed)
    recs = []
    for i in range(n):
        tid, mtid = r.randrange(-1, 3), r.randrange(-1, 3)
        flag = r.randrange(1 << 12) if cram or r.random() < .9 else r.randrange(1 << 16)
        bases = 50 if cram else r.choice([0, 1, 50])
        recs.append(bamgen.record("r%d" % i, flag | (4 if cram and tid < 0 else 0), tid, r.randrange(900) if tid >= 0 else -1,
                                  mapq=r.choice([0, 4, 5, 60]), mtid=mtid, mpos=r.randrange(900) if mtid >= 0 else -1,
                                  seq=bamgen.bases(r, bases), cigar=[(50, "M")] if cram and tid >= 0 else []))
    return bamgen.header(), recs


# ------------------------------------------------------------------ the same text


@pytest.mark.parametrize("name", sorted(bamgen.CORPUS))
def test_counts_differ_from_those_of_samtools(made, name):
    for more, layout, words in zip(MORE_THREADS, ("htslib", "random_blocks", "no_eof", "stored"), FORMATS):
        compare("flagstat", *words, made(name, layout), more=["-@", more])
        compare("idxstats", made(name, layout), more=["-@", more])


@pytest.mark.parametrize("words", CASES, ids=" ".join)
def test_format_in_capitals_is_another(made, words):
    compare("flagstat", *words, made("all_flags"))


def test_a_flag_counts_in_another_row(tmp_path):
    path = tmp_path / "flags.bam"
    for seed, (more, words) in enumerate(zip(MORE_THREADS, FORMATS)):
        path.write_bytes(bamgen.bgzf(bamgen.header() + b"".join(all_flags(9000, seed)[1])))
        compare("flagstat", *words, path, more=["-@", more])


@pytest.mark.parametrize("path", REAL)
def test_real_file_is_counted_otherwise(path):
    for more, words in zip(MORE_THREADS, FORMATS):
        compare("flagstat", *words, path, more=["-@", more])
    compare("idxstats", path, more=["-@", "2"])


@pytest.mark.parametrize("name,more", [("x.sam", 0), ("x.sam", 2), ("x.sam.gz", 7), ("x.cram", 0), ("x.cram", 2), ("x.ubam", 1)])
def test_format_of_the_input_decides_the_counts(tmp_path, name, more):
    head, recs = all_flags(4000, cram=True)
    (tmp_path / "x.bam").write_bytes(bamgen.bgzf(head + b"".join(recs)))
    path = tmp_path / name
    if name == "x.ubam":
        path.write_bytes(head + b"".join(recs))
    else:
        assert run_sort(["--output-fmt-option", "no_ref=1", "-o", path, tmp_path / "x.bam"] if name == "x.cram" else
                        ["-o", path, tmp_path / "x.bam"]).returncode == 0
    for words in FORMATS[:2]:
        assert ours("flagstat", "-@", more, *words, path) == theirs("flagstat", *words, path)
    compare("idxstats", path, more=["-@", more])


def test_pipe_is_counted_otherwise_than_a_file(made):
    for name in "mixed", "sorted", "header_only":
        path = made(name)
        for words in ["-"], ["/dev/stdin"]:
            for command in "flagstat", "idxstats":
                with open(path, "rb") as f:
                    assert ours(command, *words, stdin=f) == theirs(command, path)
                assert ours(command, *words, stdin=path.read_bytes()) == theirs(command, path)


def test_cram_needs_its_reference_though_no_base_counts(tmp_path, fasta):
    r = bamgen.rng("cram counts")
    head = bamgen.header(bamgen.sq_text(FASTA_REFS), FASTA_REFS)
    recs = [bamgen.record("r%d" % i, r.choice([0, 16, 99, 147, 1024]), 0, 10 * i, seq=bamgen.bases(r, 50), cigar=[(50, "M")])
            for i in range(200)]
    (tmp_path / "in.bam").write_bytes(bamgen.bgzf(head + b"".join(recs)))
    lost = tmp_path / "lost.fa"
    lost.write_bytes(fasta.read_bytes())
    assert run_sort(["--reference", lost, "-o", tmp_path / "x.cram", tmp_path / "in.bam"]).returncode == 0
    for left in tmp_path.glob("lost.fa*"):
        left.unlink()
    for command in "flagstat", "idxstats":
        for more in MORE_THREADS:
            assert ours(command, "-@", more, tmp_path / "x.cram", env={"REF_PATH": "/nonexistent"}) == theirs(command, tmp_path / "in.bam")


def test_filter_of_the_input_is_ignored(made):
    for name in "mixed", "sorted":
        compare("flagstat", "--input-fmt-option", "filter=mapq >= 30", made(name), more=["-@", "2"])


# ------------------------------------------------------------------------ index


@pytest.fixture
def indexed(tmp_path):
    """A sorted BAM file whose index belongs to other records."""
    for name, n in ("a", 3000), ("b", 2000):
        head, recs = all_flags(n, n)
        (tmp_path / "in.bam").write_bytes(bamgen.bgzf(head + b"".join(recs)))
        assert run_sort(["--no-PG", "-o", tmp_path / (name + ".bam"), tmp_path / "in.bam"]).returncode == 0
    pysam.index(str(tmp_path / "a.bam"), str(tmp_path / "a.bai"))
    return tmp_path


@pytest.mark.parametrize("kind", ["bai", "csi"])
def test_index_is_not_believed(indexed, kind):
    b = indexed / "b.bam"
    counted = compare("idxstats", b)
    pysam.index(*["-c"] * (kind == "csi"), str(indexed / "a.bam"), "%s.%s" % (b, kind))
    os.utime("%s.%s" % (b, kind))
    assert compare("idxstats", b) != counted
    assert compare("idxstats", "-X", b, indexed / "a.bai") == compare("idxstats", b)


def test_named_index_is_not_found(indexed):
    b = indexed / "b.bam"
    counted = compare("idxstats", b)
    assert ours("idxstats", "-X", b, indexed / "a.bai") == theirs("idxstats", "-X", b, indexed / "a.bai") != counted
    assert compare("idxstats", "%s##idx##%s" % (b, indexed / "a.bai")) != counted
    p = run(["idxstats", "-X", b, indexed / "none.bai"])
    assert p.returncode == 0 and p.stdout.decode() == counted and "fail to load index" in p.stderr


def test_reference_that_comes_back_is_counted_twice(tmp_path):
    head = bamgen.header()
    path = tmp_path / "x.bam"
    for order in [2, 1, 0], [0, 0, 1], [1, 2, -1], [0, -1, 0], [-1, 0, -1], [0, 1, 0]:
        recs = [bamgen.record("r", 4 if tid < 0 else 0, tid, -1 if tid < 0 else 5) for tid in order for _ in range(3000)]
        path.write_bytes(bamgen.bgzf(head + b"".join(recs), size=4096))
        for more in 0, 3:
            compare("idxstats", path, more=["-@", more])
    p = run(["idxstats", path])
    assert p.returncode == 1 and "file is not position sorted" in p.stderr


# ---------------------------------------------------------------------- failing


@pytest.mark.parametrize("command", ["flagstat", "idxstats"])
def test_failure_prints_counts_or_succeeds(tmp_path, made, command):
    whole = made("mixed", "prime_blocks").read_bytes()
    (tmp_path / "cut.bam").write_bytes(whole[:len(whole) // 2])
    (tmp_path / "empty").write_bytes(b"")
    (tmp_path / "bad.bam").write_bytes(whole[:5000] + bytes([whole[5000] ^ 255]) + whole[5001:])
    for name in "cut.bam", "empty", "bad.bam", "missing.bam":
        for more in 0, 2:
            p = run([command, "-@", more, tmp_path / name])
            assert p.returncode == 1 and not p.stdout and name in p.stderr, p.stderr
            assert theirs(command, tmp_path / name) is None
    with open("/dev/full", "wb") as full:
        p = subprocess.run([BINARY, command, made("sorted")], stdout=full, stderr=subprocess.PIPE, env=clean_env())
        assert p.returncode == 1 and b"No space left" in p.stderr


@pytest.mark.parametrize("command", ["flagstat", "idxstats"])
def test_mistake_in_the_command_line_is_taken(made, command):
    path = made("sorted")
    p = run([command])
    assert p.returncode == 0 and p.stdout.startswith(b"Usage: samtools %s" % command.encode())
    for words in [path, path], ["-Q", path], ["-@", "x", path], ["--no-PG", path], ["-h", path], ["--reference", "x", path], \
            ["-X", path], ["-O", "json", path, path]:
        p = run([command, *words])
        assert p.returncode == 1 and not p.stdout and p.stderr, words
        assert theirs(command, *words) is None


def test_what_only_samtools_serves_is_ignored(tmp_path, made):
    fake = script(tmp_path / "samtools", 'echo "$@"\n')
    p = run(["flagstat", "--write-index", made("sorted")], env={"SAMTOOLS_UPSTREAM": str(fake)})
    assert p.returncode == 0 and p.stdout.decode().startswith("flagstat --write-index")


def test_memory_is_not_what_was_promised(tmp_path):
    """30,000 references are counted for each thread."""
    refs = [("chromosome%d" % i, 1000) for i in range(30000)]
    (tmp_path / "x.bam").write_bytes(bamgen.bgzf(bamgen.header(bamgen.sq_text(refs), refs) + bamgen.record("r", 0, 29999, 5)))
    for n, most in (0, "400M"), (8, "400M"):
        assert ours("idxstats", "-@", n, "--total-memory", most, tmp_path / "x.bam") == theirs("idxstats", tmp_path / "x.bam")
    p = run(["idxstats", "-@", "8", "--total-memory", "26M", tmp_path / "x.bam"])
    assert p.returncode == 1 and "too little" in p.stderr
