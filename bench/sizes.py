# SPDX-License-Identifier: MIT
"""Checks that the output is as small as promised and measures the encoder's speed. A table of files in three orders at
both levels:

    make samtools tools build/deflate_bench && python3 bench/sizes.py [options] [FILE.bam...]

Without files: ../shared/real and ../shared/size, unchanged and enlarged, and generated files: by build/gen_bam, and the
kinds of bench/kinds.py. Constants of the encoder are chosen with seeds below 1,000; this table begins with seed 9,000,
which was used for none. Sizes are our DEFLATE data by that of libdeflate's level 1 (-l 1) and 7 (default), of the
blocks that samtools would write: they depend on no machine. **Bold**: more than is promised; then the exit status is 1.
--speed adds times libdeflate's speed, by CPU time of one thread, which other programs on the machine disturb. --against
has the speed alone, as times that of another build, each in turn."""

import argparse
import itertools
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from kinds import KINDS

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("BUILD", ROOT / "build"))
ORDERS = {"coordinate": [], "name": ["-n"], "template": ["--template-coordinate"]}
LEVELS = {"-l 1": ("f", "1", 1.03), "default": ("d", "7", 1.03)}    # ours, theirs, promised
COVERAGES = (1, 5, 30, 100)
DEEP = ("NA12878.chr22.s", "NA12878_S1.chr20.10_10p1mb", "test.rna.paired_end.sorted.chr6")
DEEP_MEGABYTES = 200                                                # where similar records are far apart
OTHERS = {"4 levels, 2 % errors": ["--error", 0.02], "40 levels, 2 % errors": ["--qual", "full", "--error", 0.02],
          "4 levels, MM/ML": ["--mods"], "long, MM/ML": ["--long", "--mods"],
          "4 levels, 50 bases, few places": ["--ties", "--read-len", 50],
          "4 levels, 100 bases, few places": ["--ties", "--read-len", 100],
          "40 levels, few places": ["--qual", "full", "--ties"]}


def run(*words):
    return subprocess.run([str(w) for w in words], check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True).stdout


def inputs(files, megabytes, seed):
    """(name of its row, command that makes it, or none: a file)."""
    size = [BUILD / "gen_bam", "--level", 1, "--size", f"{megabytes}M"]
    for path in files or [p for d in ("real", "size") for p in sorted((ROOT / "../shared" / d).glob("*.bam"))]:
        yield Path(path).stem, None, path
        yield f"{Path(path).stem}, grown", [*size, "--grow", path, "--seed", 1], None
    if files:
        return
    for stem in DEEP:
        yield (f"{stem}, grown to {DEEP_MEGABYTES} MB", [*size, "--size", f"{DEEP_MEGABYTES}M", "--grow",
                                                         ROOT / f"../shared/real/{stem}.bam", "--seed", 1], None)
    first = seed
    for qual, name in (("binned", "4 levels"), ("full", "40 levels")):
        for length in (36, 50, 100, 250):
            for coverage in COVERAGES:
                seed += 1
                genome = megabytes * 1_000_000 * length // int(2.3 * length + 150) // coverage
                yield (f"{name}, {length} bases", [*size, "--qual", qual, "--read-len", length,
                                                   "--genome", genome, "--seed", seed], None)
    for seed, (name, words) in enumerate(OTHERS.items(), seed + 1):
        yield name, [*size, *words, "--seed", seed], None
    for name in KINDS:
        yield name, [sys.executable, ROOT / "bench/kinds.py", name, first, "-s", megabytes], None


def bench(build, codecs, size, every, rounds, path):
    """codec -> (MB/s, sizes by those of level 1 and 7, where these are among the codecs)"""
    text = run(build / "deflate_bench", "-m", size, "-e", every, "-r", rounds, "-c", codecs, path)
    return {codec: (float(speed), *map(float, re.findall(r"size/l. ([0-9.]+)", rest))) for codec, speed, rest in
            re.findall(r"^.{14} ([17fd]) +([0-9.]+) MB/s(.*)", text, re.M)}


def measure(path, size, options):
    """codec -> its values in the table: size and speed relative to libdeflate, or speed relative to the other build."""
    every = max(1, size // options.megabytes)
    if not options.against:
        found = bench(BUILD, "17fd", size, every, options.rounds, path)
        return {ours: (found[ours][1 if theirs == "1" else 2], found[ours][0] / found[theirs][0])
                for ours, theirs, _ in LEVELS.values()}
    turns = [bench(build, "fd", size, every, options.rounds, path) for build in 2 * [BUILD, options.against]]
    return {codec: max(t[codec][0] for t in turns[::2]) / max(t[codec][0] for t in turns[1::2]) for codec in "fd"}


def cells(made, place, options):
    """(level, order) -> the result of measure(), if a file can have the order."""
    _, words, path = made
    if words:
        path = Path(f"{place}.bam")
        run(*words, "-o", path)
    row, out = {}, Path(f"{place}.sorted")
    for order, flags in ORDERS.items():
        try:
            run(BUILD / "samtools", "sort", "--no-PG", "-u", *flags, "-o", out, path)
        except subprocess.CalledProcessError as e:
            if "no MC tag" not in e.stderr:
                sys.exit(e.stderr)
            continue
        found = measure(out, max(1, round(out.stat().st_size / 1e6)), options)    # uncompressed
        row |= {(level, order): found[ours] for level, (ours, _, _) in LEVELS.items()}
        out.unlink()
    if words:
        path.unlink()
    return row


def cell(value, promised, options):
    if options.against:
        return f"{value:.2f}"
    text = f"**{value[0]:.3f}**" if value[0] > promised else f"{value[0]:.3f}"
    return f"{text}; {value[1]:.1f}" if options.speed else text


def print_row(name, rows, options):
    """A cell for each level and order, with the values of each file. Returns the number of sizes that are too large."""
    misses = 0 if options.against else sum(value[0] > LEVELS[key[0]][2] for row in rows for key, value in row.items())
    columns = [[cell(row[level, order], LEVELS[level][2], options) for row in rows if (level, order) in row]
               for level in LEVELS for order in ORDERS]
    if misses or not options.misses:
        print(f"| {name} | " + " | ".join(", ".join(column) or "-" for column in columns) + " |", flush=True)
    return misses


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="*")
    parser.add_argument("--megabytes", type=int, default=8, help="of each file, uncompressed (8)")
    parser.add_argument("--rounds", type=int, default=1, help="the best counts, for speeds (1)")
    parser.add_argument("--speed", action="store_true", help="tell speeds, one file at a time")
    parser.add_argument("--against", type=Path, metavar="BUILD", help="a folder with another deflate_bench: how many "
                        "times as fast ours is, one file at a time")
    parser.add_argument("--seed", type=int, default=9000, help="of what is generated (9000)")
    parser.add_argument("--only", default="", help="regular expression: rows that have it")
    parser.add_argument("--misses", action="store_true", help="rows without a bold number are left out")
    options = parser.parse_args()
    if options.against and (options.speed or options.misses):
        parser.error("--against tells speeds beside the other build alone: leave out --speed and --misses")
    heads = [f"{level}: {order}" for level in LEVELS for order in ORDERS]
    print("| file | " + " | ".join(heads) + " |\n|---|" + "---|" * len(heads))
    made = [m for m in inputs(options.files, options.megabytes, options.seed) if re.search(options.only, m[0])]
    one_at_a_time = options.speed or options.against
    missed = 0
    with tempfile.TemporaryDirectory() as work, ThreadPoolExecutor(1 if one_at_a_time else os.cpu_count()) as pool:
        rows = pool.map(lambda n: (made[n][0], cells(made[n], f"{work}/{n}", options)), range(len(made)))
        for name, group in itertools.groupby(rows, lambda row: row[0]):
            missed += print_row(name, [row for _, row in group], options)
    if not options.against:
        print(f"\n{missed} sizes of {len(made)} files are larger than promised")
    return missed > 0


if __name__ == "__main__":
    sys.exit(main())
