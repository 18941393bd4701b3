#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Turn bench.sh's results into a markdown table: report.py RESULTS.tsv

One line per run: input, order, level, program, round, wall s, CPU s, RSS KiB,
output bytes, status. Round 0 is the warm-up: it is only counted if it failed.
A ratio to samtools is the median of the ratios within each round, since two
runs side by side in time see the same machine.
"""
import collections
import statistics
import sys

Run = collections.namedtuple(
    "Run", "input order level program round wall cpu rss size status")


def read(name):
    with open(name) as lines:
        for line in lines:
            f = line.rstrip("\n").split("\t")
            yield Run(*f[:4], int(f[4]), float(f[5]), float(f[6]), int(f[7]),
                      int(f[8]), f[9])


def by_round(runs, field):
    return {r.round: getattr(r, field) for r in runs
            if r.round > 0 and r.status == "ok"}


def ratio(runs, base, field):
    ours, theirs = by_round(runs, field), by_round(base, field)
    pairs = [ours[k] / theirs[k] for k in ours if theirs.get(k)]
    return f"{statistics.median(pairs):.3f}" if pairs else "-"


def row(key, runs, base):
    bad = [r for r in runs if r.status != "ok"]
    good = [r for r in runs if r.status == "ok" and r.round > 0]
    if not good:
        why = bad[0].status if bad else "no timed round"
        return [*key, f"**failed: {why}**", "-", "-", "-", "-", "-"]
    name = f"{key[3]} (failed {len(bad)} of {len(runs)}: {bad[0].status})" if bad else key[3]
    walls = [r.wall for r in good]
    return [*key[:3], name,
            f"{statistics.median(walls):.2f} ({min(walls):.2f}-{max(walls):.2f})",
            f"{statistics.median(r.cpu for r in good):.2f}",
            f"{max(r.rss for r in good) / 1024:.0f}",
            f"{good[-1].size}", ratio(runs, base, "wall"), ratio(runs, base, "size")]


def main(name):
    cells = collections.OrderedDict()
    for r in read(name):
        cells.setdefault((r.input, r.order, r.level, r.program), []).append(r)
    head = ["input", "order", "level", "program", "wall s: median (min-max)", "CPU s",
            "peak RSS MiB", "output bytes", "wall / samtools", "size / samtools"]
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * 4 + "---:|" * 6)
    for key, runs in cells.items():
        base = cells.get((*key[:3], "samtools"), [])
        print("| " + " | ".join(row(key, runs, base)) + " |")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
