#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The runs, tables and plots of paper.sh, which sets PAPER_* and calls it:

    bench/paper.py SIZE INPUT PROGRAM...    sorts INPUT with each samtools; the others are compared with the first
    bench/paper.py                          tables and plots again, from the existing results
"""
import collections
import csv
import glob
import json
import os
import re
import statistics
import subprocess
import sys
import threading
import time
from math import ceil, floor, log2

import measure
import svg
from dilate import facts, mebibytes

DIR, OUT = os.environ.get("PAPER_DIR", "bench/work"), os.environ.get("PAPER_OUT", "bench/work")
TIMEOUT = 3600                                       # seconds for one run
TICK = 0.02                                          # between two samples of a program's threads
MODES = {"memory": "in memory", "external": "on disk"}
COLUMNS = ["program", "version", "threads", "mode", "trial", "wall_s", "user_s", "sys_s", "peak_rss_mb",
           "output_bytes", "temp_files", "status"]


def say(text):
    print("paper:", text, file=sys.stderr, flush=True)


# -------------------------------------------------------------- programs

def version(path):
    """Program and version; ours also prints the version that it replaces."""
    output = subprocess.run([path, "--version"], check=True, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL).stdout
    words = output.decode(errors="replace")
    found = re.search(r"(?i)(samtools-omp) ([\d.]+)", words) or re.search(r"^(samtools) ([\d.]+)", words)
    return found[1].lower(), found[2]


def command(program, threads, mode, size, source, output):
    """The total memory is the same for any number of threads, so that the same amount goes through temporary files:
    three times the records' size, or an eighth. samtools refuses a -m below 1M."""
    total = mebibytes(size) * (3 if mode == "memory" else 1 / 8)
    kib = max(1024, int(total * 1024 / threads))
    return [program, "sort", "-@", str(threads), "-m", "%dK" % kib, "-T", os.path.join(DIR, "paper.tmp"), "-o", output, source]


# --------------------------------------------------------- threads in /proc

class Sampler:
    """When each thread of a program was on a CPU, as its schedstat (nanoseconds) shows every TICK."""

    def __init__(self):
        self.spans = collections.OrderedDict()       # for each thread: [start, end, share on a CPU]
        self.done = threading.Event()

    def start(self, pid):
        self.thread = threading.Thread(target=self.watch, args=("/proc/%d/task" % pid,), daemon=True)
        self.thread.start()

    def watch(self, folder):
        begin, last = time.monotonic(), {}
        while not self.done.wait(TICK):
            try:
                tasks = sorted(os.listdir(folder), key=int)
            except OSError:
                return
            for task in tasks:
                try:
                    with open("%s/%s/schedstat" % (folder, task)) as file:
                        used = int(file.read().split()[0]) / 1e9
                except (OSError, IndexError):        # it has ended in the meantime
                    continue
                now = time.monotonic() - begin
                then, before = last.get(task, (max(0, now - TICK), 0))
                last[task] = now, used
                self.spans.setdefault(task, []).append([then, now, min(1, (used - before) / (now - then))])

    def rows(self):
        """Threads that live one after another share a row. Rows that work for less than a hundredth of the time are
        left out. Spans: start, end, stage, share of that time."""
        self.done.set()
        self.thread.join()
        rows = []
        for spans in self.spans.values():
            row = next((row for row in rows if row[-1][1] <= spans[0][0]), None)
            if row is None:
                row = []
                rows.append(row)
            row += [[start, end, "on a CPU", share] for start, end, share in spans]
        wall = max((row[-1][1] for row in rows), default=0)
        return [row for row in rows if sum((end - start) * share for start, end, _, share in row) > wall / 100]


def traced(path, threads):
    """Reads such rows from our own --trace: the work of each thread, without its waits."""
    rows = [[] for _ in range(threads)]
    for line in open(path):
        if line.startswith('{"ph":"X"'):
            span = json.loads(line.rstrip(",\n"))
            if span["cat"] not in ("phase", "waiting") and 1 <= span["tid"] <= threads:
                rows[span["tid"] - 1].append([span["ts"] / 1e6, (span["ts"] + span["dur"]) / 1e6, span["name"], 1])
    return rows


# ------------------------------------------------------------------ runs

def temp_files(log):
    """The number of sorted lists that a program read back from temporary files; each prints it, unless it is 0."""
    found = re.search(r"merging from (\d+) files", open(log, errors="replace").read())
    return int(found[1]) if found else 0


def sort(program, threads, mode, trial, run, more=(), started=None):
    """One run, as a dict of COLUMNS. The input is in the page cache, and there is no output yet."""
    name, number = run["versions"][program]
    output, log = os.path.join(DIR, "paper.out.bam"), os.path.join(DIR, "paper.log")
    words = command(program, threads, mode, run["size"], run["input"], output)
    if os.path.exists(output):
        os.remove(output)
    with open(run["input"], "rb") as file:
        while file.read(1 << 24):
            pass
    os.sync()
    wall, usage, code = measure.measure(log, TIMEOUT, words[:2] + list(more) + words[2:], started)
    status = "ok"
    if code:
        status = "exit status %d: %s" % (code, (open(log, errors="replace").read().strip().splitlines() or [""])[-1])
        for path in glob.glob(os.path.join(DIR, "paper.tmp*")):
            os.remove(path)
    elif (temp_files(log) > 0) != (mode == "external"):
        status = "not sorted %s" % MODES[mode]
    say("%s %s, %d threads, %s, trial %s: %.2f s, merged %d temporary files, %s" % (
        name, number, threads, MODES[mode], trial, wall, temp_files(log), status))
    return dict(zip(COLUMNS, (
        name, number, threads, mode, trial, "%.3f" % wall, "%.3f" % usage.ru_utime, "%.3f" % usage.ru_stime,
        "%.1f" % (usage.ru_maxrss * 1024 / 1e6), os.path.getsize(output) if os.path.exists(output) else 0,
        temp_files(log), status)))


def check(run, output, moves_tags):
    """Checks that it has the records of the input, in order."""
    had, has = run["facts"], facts(output)
    same = ("records", "bytes") if moves_tags else ("records", "bytes", "checksum")
    if not has["sorted"] or any(had[key] != has[key] for key in same):
        sys.exit("paper: these are not the records of the input, or not sorted: " + output)


def timeline(program, threads, mode, run):
    """A run that is not timed: it warms up, shows the threads, and has its output checked."""
    trace, sampler = os.path.join(DIR, "paper.trace"), Sampler()
    ours = run["versions"][program][0] != "samtools"
    more = ["--trace=" + trace] if ours else []
    result = sort(program, threads, mode, "timeline", run, more, sampler.start)
    rows = sampler.rows()
    if result["status"] != "ok":
        return {"wall": 0, "rows": [], "status": result["status"]}
    # When samtools 1.3.1 merges files, each record's RG moves to the end of its tags.
    check(run, os.path.join(DIR, "paper.out.bam"), mode == "external" and run["versions"][program][1] == "1.3.1")
    return {"wall": float(result["wall_s"]), "rows": traced(trace, threads) if ours else rows, "status": "ok"}


def run_all(size, source, *programs):
    threads = [int(n) for n in os.environ["PAPER_THREADS"].split()]
    run = {"size": size, "input": source, "programs": programs, "threads": threads, "facts": facts(source),
           "versions": {path: version(path) for path in programs}, "machine": machine()}
    run["timelines"] = {mode: {path: timeline(path, max(threads), mode, run) for path in programs} for mode in MODES}
    json.dump(run, open(os.path.join(DIR, "paper.json"), "w"))
    with open(os.path.join(OUT, "paper.csv"), "w", newline="") as file:
        table = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        table.writeheader()
        for trial in range(1, int(os.environ["PAPER_TRIALS"]) + 1):
            for mode in MODES:
                for n in threads:
                    for path in programs:
                        table.writerow(sort(path, n, mode, trial, run))
                        file.flush()
    for name in ("paper.out.bam", "paper.log", "paper.trace"):
        if os.path.exists(os.path.join(DIR, name)):
            os.remove(os.path.join(DIR, name))


def field(path, name):
    return next((line.split(":", 1)[1].strip() for line in open(path) if line.startswith(name)), "?")


def machine():
    return "%s; %d CPUs, %.0f GiB, %s %s; %s; load before the first run: %s" % (
        field("/proc/cpuinfo", "model name"), os.cpu_count(), int(field("/proc/meminfo", "MemTotal").split()[0]) / 2**20,
        os.uname().sysname, os.uname().release, time.strftime("%Y-%m-%d"), " ".join("%.2f" % load for load in os.getloadavg()))


# ---------------------------------------------------------------- tables

def results():
    """For each program, by mode and number of threads: the results of its good runs."""
    cells, failed = collections.OrderedDict(), []
    for row in csv.DictReader(open(os.path.join(OUT, "paper.csv"))):
        if row["status"] == "ok":
            key = row["mode"], row["program"] + " " + row["version"], int(row["threads"])
            cells.setdefault(key, []).append({k: float(row[k]) for k in COLUMNS[5:10]})
        else:
            failed.append(row)
    return cells, failed


def median(runs, *columns):
    return statistics.median(sum(run[column] for column in columns) for run in runs)


def spread(runs):
    """Relative standard deviation of the wall time."""
    walls = [run["wall_s"] for run in runs]
    return "%.1f %%" % (100 * statistics.stdev(walls) / statistics.mean(walls)) if len(walls) > 1 else "-"


def speedup(cells, key, base):
    return median(cells[base], "wall_s") / median(cells[key], "wall_s") if base in cells else None


def number(value):
    return "%.2f" % value if value else "-"


def table(cells, mode, first):
    yield ("| program | threads | wall s | RSD | CPU s | speedup over %s, 1 thread | "
           "over itself, 1 thread | peak MB | output MB |") % first
    yield "|---|" + "---:|" * 8
    for key in sorted((key for key in cells if key[0] == mode), key=lambda key: key[2]):
        runs = cells[key]
        yield "| %s | %d | %.2f | %s | %.2f | %s | %s | %.0f | %.1f |" % (
            key[1], key[2], median(runs, "wall_s"), spread(runs), median(runs, "user_s", "sys_s"),
            number(speedup(cells, key, (mode, first, 1))), number(speedup(cells, key, (mode, key[1], 1))),
            max(run["peak_rss_mb"] for run in runs), median(runs, "output_bytes") / 1e6)


def page(run, cells, failed, names):
    most = max(run["threads"])
    yield "# The experiments of the 2017 paper, on this machine\n"
    yield ("N. T. Weeks and G. R. Luecke, *Optimization of SAMtools sorting using OpenMP tasks*, Cluster Computing 2017. Made by "
           "`bench/paper.sh`; every run is in [paper.csv](paper.csv).\n")
    yield "- machine: " + run["machine"]
    yield "- input: %d generated records (`gen_bam --size %s --seed 1`), %.0f MB uncompressed, at random places" % (
        run["facts"]["records"], run["size"], run["facts"]["bytes"] / 1e6)
    yield ("- trials: %d, the programs in turn, the input in the page cache; wall and CPU times are medians, RSD is the relative "
           "standard deviation of the wall times, peaks are the highest" % max(map(len, cells.values()), default=0))
    yield ("- each program's default compression level; outputs with %d threads were checked: the input's records, sorted "
           "(by number and bytes where samtools 1.3.1 merges files, as it moves RG tags then)" % most)
    yield "- on disk each run of each program merged temporary files, in memory none did (`temp_files` in paper.csv); else it failed"
    for mode, words in MODES.items():
        example = " ".join(command("samtools", most, mode, run["size"], "IN.bam", "OUT.bam")).replace(DIR, "DIR")
        yield "- %s: `%s`; with other `-@`, so much memory in all" % (words, example)
    yield from dict.fromkeys("- **failed**: %s %s, %s threads, %s: %s" % (
        row["program"], row["version"], row["threads"], MODES[row["mode"]], row["status"]) for row in failed)
    for mode, words in MODES.items():
        yield "\n## Sorted %s\n" % words
        yield from table(cells, mode, names[0])
        yield "\n![speedup by threads](paper-%s.svg)" % mode
    yield "\n## What the threads do (%d threads)\n" % most
    yield ("Ours by `--trace`; of samtools it is known from outside only when a thread is on a CPU (sampled every %d ms). "
           "Threads that live one after the other share a row. Beside other programs, ours seem busier than they are: a stage "
           "that waits for a CPU goes on.\n" % (1000 * TICK))
    yield "![timelines of all threads](paper-timelines.svg)"


# ----------------------------------------------------------------- plots

WIDTH, HEIGHT, ROOM = 260, 170, 50                   # of a panel; around it
COLOURS = ("#888", "#c60", "#06c", "#083")           # of the programs, in their order


def apart(labels, least=11):
    """Labels (y, words, colour) moved up until they do not overlap."""
    last = HEIGHT + least
    for y, *rest in sorted(labels, reverse=True):
        last = min(y, last - least)
        yield (last, *rest)


def speedups(cells, mode, names, first, heading):
    """A panel: speedup over `first` (None: over itself) by threads, both as powers of two."""
    curves = {}
    for name in names:
        base = mode, first or name, 1
        curves[name] = [(key[2], speedup(cells, key, base))
                        for key in sorted(cells) if key[:2] == (mode, name) and base in cells]
    points = [point for curve in curves.values() for point in curve] or [(1, 1)]
    most = max(n for n, _ in points)
    low, high = log2(min(1, min(s for _, s in points))), max(1, log2(max(most, max(s for _, s in points))))

    def place(n, s):
        return WIDTH * log2(n) / max(1, log2(most)), HEIGHT * (high - log2(s)) / (high - low)

    yield svg.title(heading)
    for power in range(ceil(low), floor(high) + 1):
        yield svg.rule(place(1, 2**power)[1], WIDTH, "%g" % 2**power)
    for n in sorted({n for n, _ in points}):
        yield svg.tick(place(n, 1)[0], HEIGHT, n)
    yield svg.curve([place(1, 1), place(most, most)], 'stroke="#bbb" stroke-dasharray="4 3"')
    labels = []
    for curve, colour in zip(curves.values(), COLOURS):
        if curve:
            yield svg.curve([place(*point) for point in curve], 'stroke="%s" stroke-width="2"' % colour)
            labels.append((place(*curve[-1])[1], curve[-1], colour))
    for y, (n, s), colour in apart(labels):
        yield svg.text(place(n, 1)[0] + 5, y + 4, "%.1f" % s, 'fill="%s"' % colour)


def names_in_colour(pairs):
    return ['<tspan fill="%s" font-weight="bold">%s</tspan>' % (colour, name) for name, colour in pairs]


def draw_speedups(cells, mode, names):
    elements = svg.group(ROOM, 26, speedups(cells, mode, names, names[0], "over %s with 1 thread" % names[0]))
    elements += svg.group(2 * ROOM + 20 + WIDTH, 26, speedups(cells, mode, names, None, "over itself with 1 thread"))
    legend = ["speedup by threads, %s:" % MODES[mode], *names_in_colour(zip(names, COLOURS)),
              '<tspan fill="#777">dashed: linear</tspan>']
    elements.append(svg.text(ROOM, HEIGHT + 62, " &#160; ".join(legend)))
    svg.save(os.path.join(OUT, "paper-%s.svg" % mode), 2 * (WIDTH + ROOM) + 60, HEIGHT + 76, elements)


# Stages of ours, in groups, and their appearance.
GROUPS = {
    "on a CPU": ("#777", ["on a CPU"]),
    "reading": ("#06c", ["read", "deal", "inflate", "parse", "find"]),
    "sorting": ("#e80", ["sort"]),
    "temporary files": ("#93c", ["pack", "unpack", "spill_write", "spill_read"]),
    "merging": ("#2a4", ["plan", "merge", "fill", "gather"]),
    "compressing": ("#c33", ["deflate", "index"]),
    "writing": ("#630", ["write"]),
    "else": ("#bbb", []),
}
GROUP_OF = {stage: group for group, (_, stages) in GROUPS.items() for stage in stages}


def bins(spans, width, count):
    """For each of `count` bins of time: the group with the largest share, and how many quarters of the bin are busy."""
    shares = [collections.Counter() for _ in range(count)]
    for start, end, stage, share in spans:
        for i in range(int(start / width), min(count, int(end / width) + 1)):
            shares[i][GROUP_OF.get(stage, "else")] += share * max(0, min(end, (i + 1) * width) - max(start, i * width))
    for part in shares:
        group, _ = part.most_common(1)[0] if part else ("else", 0)
        yield group, min(4, ceil(4 * sum(part.values()) / width - 0.2))


def bars(spans, wall, count, top, height):
    """A row of a timeline: adjacent bins that look alike are one bar."""
    begin, before = 0, None
    for i, look in enumerate([*bins(spans, wall / count, count), None]):
        if look != before:
            if before and before[1]:
                yield '<rect x="%g" y="%g" width="%g" height="%g" fill="%s"%s/>' % (
                    WIDTH * begin / count, top, WIDTH * (i - begin) / count, height, GROUPS[before[0]][0],
                    "" if before[1] == 4 else ' opacity="%g"' % (before[1] / 4))
            begin, before = i, look


def timeline_panel(title, line, wall, rows_at_most):
    rows = line["rows"]
    pitch = HEIGHT / max(rows_at_most, 4)
    yield svg.title(title)
    if line["status"] != "ok":
        yield svg.text(0, 12, "failed")
    for i, spans in enumerate(rows):
        yield from bars(spans, wall, max(60, min(WIDTH, 8000 // len(rows))), i * pitch, 0.8 * pitch)
    yield '<path d="M0 %d h%d" stroke="#999"/>' % (HEIGHT, WIDTH)
    step = next(s * 10**e for e in range(-2, 6) for s in (1, 2, 5) if wall / (s * 10.0**e) <= 6)
    for i in range(int(wall / step) + 1):
        yield svg.tick(WIDTH * i * step / wall, HEIGHT, "%g%s" % (i * step, " s" if i == 0 else ""))


def draw_timelines(run):
    elements = []
    for down, (mode, lines) in enumerate(run["timelines"].items()):
        wall = max(line["wall"] for line in lines.values()) or 1
        most = max(len(line["rows"]) for line in lines.values())
        for across, (path, line) in enumerate(lines.items()):
            title = "%s, %s: %.1f s" % (" ".join(run["versions"][path]), MODES[mode], line["wall"])
            elements += svg.group(14 + across * (WIDTH + 30), 26 + down * (HEIGHT + ROOM),
                                  timeline_panel(title, line, wall, most))
    legend = ["a row for each thread; paler: busy for part of the time",
              *names_in_colour((name, colour) for name, (colour, _) in GROUPS.items())]
    bottom = len(MODES) * (HEIGHT + ROOM)
    elements.append(svg.text(14, bottom + 16, " &#160; ".join(legend)))
    svg.save(os.path.join(OUT, "paper-timelines.svg"), len(run["programs"]) * (WIDTH + 30) + 10, bottom + 26, elements)


def show():
    run = json.load(open(os.path.join(DIR, "paper.json")))
    cells, failed = results()
    names = [" ".join(run["versions"][path]) for path in run["programs"]]
    with open(os.path.join(OUT, "PAPER.md"), "w") as file:
        file.write("\n".join(page(run, cells, failed, names)) + "\n")
    for mode in MODES:
        draw_speedups(cells, mode, names)
    draw_timelines(run)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        if len(sys.argv) < 4:
            sys.exit(__doc__)
        run_all(*sys.argv[1:])
    show()
