# SPDX-License-Identifier: MIT
"""Coordinate order: the same records, bytes and order as samtools 1.24, for any number of threads, any OpenMP
settings, and any way in which the input arrives or is cut into blocks."""

import os
import random
import subprocess
import threading

import pytest

import bamgen
from conftest import DATA_BAMS, HANG, REAL_BAMS, THREADS, only_cpus, oracle, read_bam, run_sort, same_bam, sorted_bytes
from test_safety import feed, start

FAST = ("--no-PG", "-l", "1")


# ---------------------------------------------------------------- against samtools


def same_with_any_threads(path, expected, numbers=THREADS):
    outs = [sorted_bytes([*FAST, "-@", n, path]) for n in numbers]
    same_bam(read_bam(outs[0]), expected)
    for n, out in zip(numbers, outs):
        assert out == outs[0], "other bytes with -@ %d" % n


@pytest.mark.parametrize("name", bamgen.CORPUS)
def test_generated_input_sorts_unlike_samtools(made, name, threads):
    path = made(name)
    ours = read_bam(sorted_bytes([*FAST, "-@", threads, path]))
    same_bam(ours, oracle(path, "--no-PG"))


@pytest.mark.parametrize("path", DATA_BAMS + REAL_BAMS)
def test_real_input_sorts_unlike_samtools_or_by_threads(tmp_path, path):
    same_with_any_threads(path, oracle(path, "--no-PG", scratch=tmp_path / "o"))


@pytest.mark.parametrize("path", DATA_BAMS + REAL_BAMS)
def test_real_input_at_default_level_sorts_unlike_samtools(tmp_path, path):
    out = tmp_path / "out.bam"
    p = run_sort(["-@", 2, "-o", out, path])
    assert p.returncode == 0, p.stderr
    same_bam(read_bam(out), oracle(path, scratch=tmp_path / "o"), oracle(
        path, "--no-PG", scratch=tmp_path / "o").lines())


# ---------------------------------------------------------------- same bytes always


@pytest.mark.parametrize("name", bamgen.CORPUS)
def test_output_bytes_depend_on_threads(made, name):
    path = made(name)
    outs = {n: sorted_bytes(["--no-PG", "-@", n, path]) for n in THREADS}
    assert len(set(outs.values())) == 1, {n: len(o) for n, o in outs.items()}


OMP_SETTINGS = [
    {"OMP_NUM_THREADS": "1"}, {"OMP_NUM_THREADS": "5"}, {"OMP_THREAD_LIMIT": "2"},
    {"OMP_THREAD_LIMIT": "1"}, {"OMP_DYNAMIC": "true"}, {"OMP_PLACES": "cores"},
    {"OMP_PLACES": "{0}"}, {"OMP_PROC_BIND": "true"}, {"OMP_PROC_BIND": "close"},
    {"OMP_PROC_BIND": "spread", "OMP_PLACES": "threads"}, {"OMP_WAIT_POLICY": "active"},
    {"OMP_WAIT_POLICY": "passive"}, {"OMP_MAX_ACTIVE_LEVELS": "0"}, {"OMP_NESTED": "true"},
    {"OMP_CANCELLATION": "true"}, {"OMP_MAX_TASK_PRIORITY": "9"}, {"GOMP_SPINCOUNT": "infinite"},
    {"OMP_NUM_THREADS": "banana"}]


@pytest.mark.parametrize("env", OMP_SETTINGS,
                         ids=lambda e: ",".join("%s=%s" % i for i in e.items()))
@pytest.mark.parametrize("at", [[], ["-@", 4]], ids=["no-at", "at4"])
def test_output_bytes_depend_on_openmp_setting(made, env, at):
    path = made("mixed", "prime_blocks")
    plain = sorted_bytes([*FAST, "-@", 1, path])
    assert sorted_bytes([*FAST, *at, path], env=env) == plain


def test_one_cpu_for_many_threads_hangs_or_changes_output(made):
    """Eight threads on a single CPU: spinning threads must not starve the one that works."""
    path = made("mixed", "prime_blocks")
    out = sorted_bytes([*FAST, "-@", 8, path], before=only_cpus({min(os.sched_getaffinity(0))}))
    assert out == sorted_bytes([*FAST, "-@", 1, path])


def test_a_race_changes_output_now_and_then(made):
    """Many small blocks, more threads than cores, again and again."""
    path = made("mixed", "prime_blocks")
    plain = sorted_bytes([*FAST, path])
    for i in range(60):
        assert sorted_bytes([*FAST, "-@", (2, 3, 5, 8, 16)[i % 5], path]) == plain, i


@pytest.mark.parametrize("m", ["40M", "100M", "1G"])
def test_output_bytes_depend_on_memory_setting(made, m):
    path = made("mixed")
    assert sorted_bytes([*FAST, "-@", 2, "-m", m, path]) == sorted_bytes([*FAST, "-@", 2, path])


def test_sorting_sorted_output_changes_it(made):
    once = sorted_bytes([*FAST, "-@", 2, made("mixed")])
    assert sorted_bytes([*FAST, "-@", 3], stdin=once) == once


# ---------------------------------------------------------------- block layouts


@pytest.mark.parametrize("layout", bamgen.LAYOUTS)
@pytest.mark.parametrize("name", ["mixed", "tags", "cg_long", "header_only", "two_records"])
def test_layout_of_input_blocks_changes_output(made, name, layout):
    path = made(name, layout)
    same_bam(oracle(path, "--no-PG"), oracle(made(name), "--no-PG"))  # the layout is legal
    plain = sorted_bytes([*FAST, "-@", 1, made(name)])
    for n in THREADS:
        assert sorted_bytes([*FAST, "-@", n, path]) == plain, "-@ %d" % n


@pytest.mark.parametrize("layout", ["straddle", "full_64k", "stored"])
def test_records_over_many_blocks_change_with_layout(made, layout):
    plain = sorted_bytes([*FAST, made("long_records")])
    for n in (1, 3):
        assert sorted_bytes([*FAST, "-@", n, made("long_records", layout)]) == plain


@pytest.mark.parametrize("name", ["two_records", "header_only", "header_only_no_refs",
                                  "seq_shapes"])
def test_one_byte_blocks_change_output(made, name, threads):
    out = sorted_bytes([*FAST, "-@", threads, made(name, "one_byte")])
    assert out == sorted_bytes([*FAST, made(name)])


def test_a_block_edge_somewhere_in_header_or_record_breaks_the_parser():
    """A small file is made of two blocks, cut at every byte in turn."""
    head = bamgen.header(refs=[("c", 99)])
    stream = head + bamgen.record("zz", 0, 0, 9) + bamgen.record("a", 16, 0, 3, seq="ACG")
    plain = sorted_bytes([*FAST], stdin=bamgen.bgzf(stream))
    assert len(read_bam(plain).records()) == 2
    for cut in range(1, len(stream)):
        out = sorted_bytes([*FAST, "-@", 2], stdin=bamgen.bgzf(stream, [cut]))
        assert out == plain, "cut at byte %d" % cut


@pytest.mark.parametrize("where", ["before", "after", "both"])
@pytest.mark.parametrize("first", [False, True], ids=["later-blocks", "all-blocks"])
def test_other_extra_subfields_beside_bc_are_refused(made, where, first):
    """gzip allows more subfields in the extra field than BGZF's BC (SAMv1 4.1)."""
    head, recs = bamgen.CORPUS["ties"]()
    extra = {"before": b"XY\4\0abcd" * (where != "after"), "after": b"ZZ\0\0" * (where != "before")}
    data = (bamgen.bgzf(head, eof=False, **(extra if first else {}))
            + bamgen.bgzf(b"".join(recs), size=5003, **extra))
    for n in (1, 3):
        assert sorted_bytes([*FAST, "-@", n], stdin=data) == sorted_bytes([*FAST, made("ties")])


# ---------------------------------------------------------------- how input arrives


@pytest.fixture(scope="module")
def arriving(made):
    path = made("mixed", "random_blocks")
    return path, sorted_bytes([*FAST, "-@", 1, path])


@pytest.mark.parametrize("operand", [[], ["-"], ["/dev/stdin"]], ids=["none", "dash", "devstdin"])
def test_piped_input_sorts_unlike_a_file(arriving, operand, threads):
    path, plain = arriving
    assert sorted_bytes([*FAST, "-@", threads, *operand], stdin=path.read_bytes()) == plain


def test_redirected_input_sorts_unlike_a_file(arriving, threads):
    path, plain = arriving
    with open(path, "rb") as f:
        assert sorted_bytes([*FAST, "-@", threads], stdin=f) == plain


def test_redirected_input_is_read_from_its_start_not_from_its_position(arriving):
    """An earlier reader in a shell group may have moved the offset."""
    path, plain = arriving
    data = path.read_bytes()
    both = path.with_suffix(".lead")
    both.write_bytes(b"x" * 777 + data)
    with open(both, "rb") as f:
        os.lseek(f.fileno(), 777, os.SEEK_SET)
        assert sorted_bytes([*FAST, "-@", 2], stdin=f) == plain


def test_named_pipe_as_input_fails(arriving, tmp_path, threads):
    path, plain = arriving
    fifo = tmp_path / "in.fifo"
    os.mkfifo(fifo)
    feeder = threading.Thread(target=lambda: fifo.write_bytes(path.read_bytes()), daemon=True)
    feeder.start()
    assert sorted_bytes([*FAST, "-@", threads, fifo]) == plain
    feeder.join(HANG)


def dribble(args, data, pieces):
    """The output of a sort whose standard input comes in small pieces, each when the one before it was read."""
    with start(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as p:
        at = 0
        for n in pieces:
            feed(p, data[at:at + n])
            at += n
        feed(p, data[at:])
        p.stdin.close()
        got = p.stdout.read()
        assert p.wait(HANG) == 0, p.stderr.read()
    return got


@pytest.mark.parametrize("layout", ["htslib", "random_blocks", "no_eof"])
def test_dribbling_pipe_changes_output_or_ends_early(made, layout, threads):
    """Reads of 1 to 100 bytes: a short read is not the end of the file."""
    path = made("ties", layout)
    data = path.read_bytes()[:1 << 20]
    r = random.Random(threads)
    pieces = [r.randint(1, 100) for _ in range(500)]
    assert dribble([*FAST, "-@", threads], data, pieces) == sorted_bytes([*FAST, path])


# ---------------------------------------------------------------- several sublists

SUBLIST = 1 << 20  # records per sort task


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    """2^20 + 5,000 records on a few hundred keys: two sublists with one thread, more with several, ties across them."""
    head, body = bamgen.many_ties(SUBLIST + 5000)
    path = tmp_path_factory.mktemp("many") / "many.bam"
    path.write_bytes(bamgen.bgzf(head + body, level=0))
    return path, head, body


@pytest.mark.slow
def test_ties_across_sublists_lose_input_order(many):
    same_with_any_threads(many[0], oracle(many[0], "--no-PG"), (1, 3))


@pytest.mark.parametrize("n", [SUBLIST - 1, SUBLIST, SUBLIST + 1])
def test_record_at_the_edge_of_a_sublist_is_lost_or_doubled(many, tmp_path, n):
    _, head, body = many
    path = tmp_path / "edge.bam"
    path.write_bytes(bamgen.bgzf(head + body[:44 * n], level=0))
    out = read_bam(sorted_bytes([*FAST, "-@", 2, path]))
    assert len(out.body) == 44 * n
    same_bam(out, oracle(path, "--no-PG"))


def test_ties_of_long_reads_come_out_otherwise(tmp_path):
    path = tmp_path / "long.bam"
    head, recs = bamgen.long_reads(24, 1000000)
    path.write_bytes(bamgen.bgzf(head + b"".join(recs), level=0))
    same_with_any_threads(path, oracle(path, "--no-PG"))
