# SPDX-License-Identifier: MIT
"""Is the output as small as promised, and how fast is the encoder? A table of files in three orders at both levels:

    make samtools tools build/deflate_bench && python3 bench/sizes.py [options] [FILE.bam...]

Without files: ../shared/real and ../shared/size, as they are and grown, and generated ones: by build/gen_bam, and the
kinds of bench/kinds.py. Constants of the encoder are chosen on seeds below 1,000; this table begins with seed 9,000, on
which none was. Sizes are our DEFLATE data by that of libdeflate's level 1 (-l 1) and 7 (default), of the blocks
that samtools would write: they depend on no machine. **Bold**: more than is promised; then the exit status is 1.
--speed adds times libdeflate's speed, by CPU time of one thread, which other programs on the machine disturb."""

import argparse
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
LEVELS = {"-l 1": ("f", "1", 1.01), "default": ("d", "7", 1.016)}    # ours, theirs, promised
COVERAGES = (1, 5, 30, 100)
DEEP = ("NA12878.chr22.s", "NA12878_S1.chr20.10_10p1mb", "test.rna.paired_end.sorted.chr6")
DEEP_MEGABYTES = 200                                                # where like records lie far apart
OTHERS = {"binned, 2 % errors": ["--error", 0.02], "full, 2 % errors": ["--qual", "full", "--error", 0.02],
          "binned, MM/ML": ["--mods"], "long, MM/ML": ["--long", "--mods"],
          "binned, 50 bases, few places": ["--ties", "--read-len", 50],
          "binned, 100 bases, few places": ["--ties", "--read-len", 100],
          "full, few places": ["--qual", "full", "--ties"]}


def run(*words):
    return subprocess.run([str(w) for w in words], check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True).stdout


def inputs(files, megabytes, seed):
    """(name, words that make it in a file named after them, or none: a file)."""
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
    for qual in ("binned", "full"):
        for length in (36, 50, 100, 250):
            for coverage in COVERAGES:
                seed += 1
                genome = megabytes * 1_000_000 * length // int(2.3 * length + 150) // coverage
                yield (f"{qual}, {length} bases, coverage {coverage}", [*size, "--qual", qual, "--read-len", length,
                                                                       "--genome", genome, "--seed", seed], None)
    for seed, (name, words) in enumerate(OTHERS.items(), seed + 1):
        yield name, [*size, *words, "--seed", seed], None
    for name in KINDS:
        yield name, [sys.executable, ROOT / "bench/kinds.py", name, first, "-s", megabytes], None


def cells(made, work, options):
    """The name and, for each level and order, (size, speed); None where a file cannot have the order."""
    name, words, path = made
    if words:
        path = Path(work) / (re.sub(r"\W+", "_", name) + ".bam")
        run(*words, "-o", path)
    row, out = {}, Path(f"{work}/{re.sub(r'[^a-z0-9]+', '_', name.lower())}.sorted")
    for order, flags in ORDERS.items():
        try:
            run(BUILD / "samtools", "sort", "--no-PG", "-u", *flags, "-o", out, path)
        except subprocess.CalledProcessError as e:
            if "no MC tag" not in e.stderr:
                sys.exit(e.stderr)
            continue
        size = max(1, round(out.stat().st_size / 1e6))              # uncompressed
        text = run(BUILD / "deflate_bench", "-m", size, "-e", max(1, size // options.megabytes), "-r",
                   options.rounds, "-c", "17fd", out)
        found = {c: (float(speed), float(l1), float(l7)) for c, speed, l1, l7 in
                 re.findall(r" ([17fd]) +([0-9.]+) MB/s .*size/l1 ([0-9.]+) +size/l7 ([0-9.]+)", text)}
        for level, (ours, theirs, _) in LEVELS.items():
            row[level, order] = found[ours][1 if theirs == "1" else 2], found[ours][0] / found[theirs][0]
        out.unlink()
    if words:
        path.unlink()
    return name, row


def cell(value, promised, speed):
    if value is None:
        return "-"
    text = f"**{value[0]:.3f}**" if value[0] > promised else f"{value[0]:.3f}"
    return f"{text}; {value[1]:.1f}" if speed else text


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("files", nargs="*")
    parser.add_argument("--megabytes", type=int, default=8, help="of each file, uncompressed (8)")
    parser.add_argument("--rounds", type=int, default=1, help="the best counts, for speeds (1)")
    parser.add_argument("--speed", action="store_true", help="tell speeds; one file at a time")
    parser.add_argument("--seed", type=int, default=9000, help="of what is generated (9000)")
    parser.add_argument("--only", default="", help="regular expression: rows that have it")
    parser.add_argument("--misses", action="store_true", help="rows without a bold number are left out")
    options = parser.parse_args()
    heads = [f"{level}: {order}" for level in LEVELS for order in ORDERS]
    print("| file | " + " | ".join(heads) + " |\n|---|" + "---|" * len(heads))
    missed = 0
    with tempfile.TemporaryDirectory() as work, ThreadPoolExecutor(1 if options.speed else os.cpu_count()) as pool:
        made = [m for m in inputs(options.files, options.megabytes, options.seed) if re.search(options.only, m[0])]
        for name, row in pool.map(lambda m: cells(m, work, options), made):
            misses = sum(size > LEVELS[level][2] for (level, _), (size, _) in row.items())
            missed += misses
            if misses or not options.misses:
                print(f"| {name} | " + " | ".join(cell(row.get((level, order)), LEVELS[level][2], options.speed)
                                                  for level in LEVELS for order in ORDERS) + " |", flush=True)
    print(f"\n{missed} sizes of {len(made)} files are larger than promised")
    return missed > 0


if __name__ == "__main__":
    sys.exit(main())
