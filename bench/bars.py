#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Draw bench.sh's results as bars: bars.py RESULTS.tsv PLOT.svg CAPTION [PROGRAM=NAME]...

One panel for each input and level, one bar for each program: the median of its wall times, in seconds. A failed run has
no bar. CAPTION describes machine, threads and input; NAME is a program's name with its version.
"""
import html
import statistics
import sys

import report
import svg

NAMES, BARS, ROW, GAP = 190, 420, 18, 42
OURS, OTHERS = "#0b6e4f", "#b8c4ce"


def panels(path):
    """(input, level) -> program -> median of wall seconds; None: it failed."""
    cells = {}
    for run in report.read(path):
        cells.setdefault((run.input, run.level), {}).setdefault(run.program, []).append(run)
    return {key: {program: None if any(r.status != "ok" for r in runs)
                  else statistics.median(r.wall for r in runs if r.round > 0) for program, runs in programs.items()}
            for key, programs in cells.items()}


def bar(y, name, seconds, longest, colour):
    words = [svg.text(-8, y + 13, name, 'text-anchor="end"')]
    if seconds is None:
        return words + [svg.text(4, y + 13, "failed")]
    width = BARS * seconds / longest
    return words + ['<rect x="0" y="%g" width="%.1f" height="%d" fill="%s"/>' % (y, width, ROW - 3, colour),
                    svg.text(width + 5, y + 13, "%.2f s" % seconds)]


def panel(top, heading, programs, names, longest):
    elements = [svg.title(heading)]
    for k, (program, seconds) in enumerate(sorted(programs.items(), key=lambda item: item[1] or longest)):
        elements += bar(k * ROW, names.get(program, program), seconds, longest, OURS if program == "ours" else OTHERS)
    return svg.group(NAMES, top, elements)


def main(results, plot, caption, *names):
    names = dict(html.escape(name).split("=", 1) for name in names)
    cells = panels(results)
    longest = max(seconds for programs in cells.values() for seconds in programs.values() if seconds)
    elements, top = [], 30
    for (kind, level), programs in cells.items():
        heading = "%s, %s" % (names.get(kind, kind), "default level" if level == "default" else "-l " + level)
        elements += panel(top, heading, programs, names, longest)
        top += len(programs) * ROW + GAP
    elements.append(svg.text(10, top - 14, html.escape(caption)))
    svg.save(plot, NAMES + BARS + 60, top, elements)


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
