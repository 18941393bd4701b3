#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Sorts with up to 128 threads on few cores, in slow motion: build/dilated_samtools. `make scaling` runs it.

    bench/dilate.py           sorts, checks all outputs, prints tables (markdown), draws the curves
    bench/dilate.py tables    tables and curves of the existing reports

Settings are environment variables, below with their defaults. doc/dev/scaling.md explains the numbers.
"""
import copy
import filecmp
import glob
import json
import os
import subprocess
import sys

import scaling
import svg

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DIR = os.environ.get("SCALING_DIR", os.path.join(TOP, "bench/work"))   # inputs, outputs, reports
SIZE = os.environ.get("SCALING_SIZE", "900M")        # of the input, uncompressed
THREADS = os.environ.get("SCALING_THREADS", "1 2 4 8 16 32 64 128")
SORTS = os.environ.get("SCALING_SORTS", "")          # names below; empty: all
SLOWER = float(os.environ.get("SCALING_SLOWER", 1))  # 2: half as much work at a time on the cores, twice the time
SVG = os.environ.get("SCALING_SVG", os.path.join(DIR, "scaling.svg"))
BUILD = os.path.join(TOP, os.environ.get("BUILD", "build"))

# Name: kind of input, kind of output, options.
KINDS = {
    "default": ("bam", "bam", []),
    "l1": ("bam", "bam", ["-l", "1"]),
    "u": ("bam", "bam", ["-u"]),
    "spilled": ("bam", "bam", ["-l", "1", "--total-memory", "512M"]),
    "name": ("bam", "bam", ["-n"]),
    "sam_in": ("sam", "bam", ["-l", "1"]),           # through a pipe
    "sam_out": ("bam", "sam", ["-O", "sam"]),
    "cram_out": ("bam", "cram", ["-O", "cram,no_ref=1"]),
}
NAMES = SORTS.split() or list(KINDS)


def say(text):
    print("scaling:", text, file=sys.stderr, flush=True)


# ------------------------------------------------------------------ runs

def dilation(threads):
    """Threads that all work keep half of the cores busy."""
    return max(2, 2 * threads / os.cpu_count()) * SLOWER


def mebibytes(size):
    return int(size.rstrip("KMG")) * {"K": 1 / 1024, "M": 1, "G": 1024}.get(size[-1], 1 / 1048576)


def get_input(kind):
    path = os.path.join(DIR, "scaling.%s.%s" % (SIZE, kind))
    if not os.path.exists(path):
        say("generating " + path)
        subprocess.run([BUILD + "/gen_bam", "--size", SIZE, "-@", str(os.cpu_count()), "-O", kind, "-o",
                        path + ".part"], check=True, stderr=subprocess.DEVNULL)
        os.rename(path + ".part", path)
    return path


def facts(path):
    """Records, bytes and checksum of a file, independent of their order; and whether they are in coordinate order."""
    line = subprocess.run([BUILD + "/check_sorted", path], check=True, stdout=subprocess.PIPE).stdout.decode()
    _, records, size, checksum, _, order = line.rstrip().split("\t")
    return {"records": int(records), "bytes": int(size), "checksum": checksum, "sorted": order == "sorted"}


def report_path(name, threads):
    return os.path.join(DIR, "scaling.%s.%d.json" % (name, threads))


def work_in_phases(trace, threads):
    """Seconds of the team's work in each phase. "sorts": how long the reading phase continued after the last block."""
    spans = [json.loads(line.rstrip(",\n")) for line in open(trace) if line.startswith('{"ph":"X"')]
    phases = {span["name"]: (span["ts"], span["ts"] + span["dur"]) for span in spans if span["cat"] == "phase"}
    work = dict.fromkeys(phases, 0)
    for span in spans:
        if span["cat"] not in ("phase", "waiting") and span["tid"] <= threads:
            for name, (start, end) in phases.items():
                work[name] += max(0, min(end, span["ts"] + span["dur"]) - max(start, span["ts"])) / 1e6
    found = max((span["ts"] + span["dur"] for span in spans if span["name"] == "find"), default=phases["read"][1])
    return dict(work, sorts=max(0, phases["read"][1] - found) / 1e6)


def sort(name, threads, output):
    kind, _, options = KINDS[name]
    path, factor = get_input(kind), dilation(threads)
    trace = os.path.join(DIR, "scaling.trace")
    command = [BUILD + "/dilated_samtools", "sort", "--no-PG", "-@", str(threads), *options, "-o", output,
               "--report=" + report_path(name, threads), "--trace=" + trace, "-" if kind == "sam" else path]
    touch = 512 if name == "spilled" else int(1.2 * mebibytes(SIZE))
    environment = dict(os.environ, SAMTOOLS_DILATION=str(factor), SAMTOOLS_DILATION_TOUCH=str(touch << 20))
    subprocess.run("cat '%s' >/dev/null" % path, shell=True, check=True)
    if kind == "sam":
        with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as cat:
            subprocess.run(command, check=True, env=environment, stdin=cat.stdout, stderr=subprocess.DEVNULL)
    else:
        subprocess.run(command, check=True, env=environment, stderr=subprocess.DEVNULL)
    report = json.load(open(report_path(name, threads)))
    report.update(dilation=factor, input=facts_of[kind], work=work_in_phases(trace, threads))
    os.remove(trace)
    json.dump(report, open(report_path(name, threads), "w"))
    say("%s, %d threads, %g times slower: %.1f s" % (name, threads, factor, report["wall_s"]))


def check(name, output, first):
    """The first output has the records of the input; every other one has the bytes of the first. htslib's threads make
    other bytes of CRAM each time, so all of those are read."""
    kind, out, _ = KINDS[name]
    if out != "cram" and os.path.exists(first):
        if not filecmp.cmp(output, first, shallow=False):
            sys.exit("scaling: %s: the output differs from that of fewer threads: %s" % (name, output))
        os.remove(output)
        return
    had, has = facts_of[kind], facts(output)
    same = ("records",) if out == "cram" else ("records", "bytes", "checksum")
    if any(had[key] != has[key] for key in same) or not (has["sorted"] or name == "name"):
        sys.exit("scaling: %s: these are not the records of the input, or not sorted: %s" % (name, output))
    os.replace(output, first)


def run_all():
    os.makedirs(DIR, exist_ok=True)
    for name in NAMES:
        kind, out, _ = KINDS[name]
        if kind not in facts_of:
            facts_of[kind] = facts(get_input(kind))
        output, first = (os.path.join(DIR, "scaling.%s.%s" % (what, out)) for what in ("out", "first"))
        if os.path.exists(first):
            os.remove(first)
        for threads in map(int, THREADS.split()):
            sort(name, threads, output)
            check(name, output, first)
        os.remove(first)


facts_of = {}


# --------------------------------------------------------------- numbers

def undilated(report):
    """The report with all times divided. The stages that may block waited mostly for our sleep."""
    r, factor = copy.deepcopy(report), report["dilation"]
    for stage in r["stages"].values():
        stage["s"] /= factor
        stage["blocked_s"] = 0
    for part in (r["work"], *r["phases"].values(), *(slot["stages"] for slot in r["slots"])):
        for key in part:
            part[key] /= factor
    r["wall_s"] /= factor
    return r


def busy(slot):
    return sum(s for name, s in slot["stages"].items() if name not in ("idle", "wait"))


def numbers(r, alone):
    """The table's numbers for a run; shares are of all threads' wall time, those of main and reader of their own."""
    threads, wall, gb = r["threads"], r["wall_s"], r["input"]["bytes"] / 1e9
    team, joined = r["slots"][:threads], r["slots"][threads:]
    phases = {name: r["phases"][name]["s"] for name in ("read", "write")}
    kinds = {name: stage["kind"] for name, stage in r["stages"].items()}
    main = {name: s / wall for name, s in team[0]["stages"].items()
            if kinds[name] in ("serial", "in_turn") or name == "wait"}
    for slot in joined:
        main[slot["name"]] = busy(slot) / wall
    return {
        "threads": threads, "dilation": r["dilation"], "s_per_gb": wall / gb,
        "busy_per_gb": sum(map(busy, team)) / gb, "efficiency": r["busy_share"],
        "model": scaling.predict(alone, 1, 0) / scaling.predict(alone, threads, 0) / threads,
        "phases": ["%.3f s, %.0f %%" % (s / gb, 100 * r["work"][phase] / threads / s) for phase, s in phases.items()],
        "sorts": r["work"]["sorts"] / gb,
        "main": main,
    }


def series(name):
    reports = [undilated(json.load(open(path))) for path in glob.glob(os.path.join(DIR, "scaling.%s.*.json" % name))]
    reports.sort(key=lambda r: r["threads"])
    return [numbers(r, reports[0]) for r in reports]


def table(name, rows):
    print("\n**%s** (`%s`)\n" % (name, " ".join(KINDS[name][2]) or "no options"))
    print("| threads | slower | s | busy s | efficiency | model | reading | last sorts | writing | main thread |")
    print("|" + "---:|" * 9 + "---|")
    for r in rows:
        main = ["%s %.0f %%" % (stage, 100 * share) for share, stage in
                sorted(((share, stage) for stage, share in r["main"].items() if share >= 0.02), reverse=True)]
        model = "%.0f %%" % (100 * r["model"]) if KINDS[name][1] == "bam" else ""
        print("| %d | %g | %.3f | %.2f | %.0f %% | %s | %s | %.3f s | %s | %s |" % (
            r["threads"], r["dilation"], r["s_per_gb"], r["busy_per_gb"], 100 * r["efficiency"], model, r["phases"][0],
            r["sorts"], r["phases"][1], ", ".join(main)))


# ------------------------------------------------------------------ plot

WIDTH, HEIGHT, ROOM, MOST = 180, 130, 46, 128        # of a panel; around it; threads at its right end


def place(threads, share):
    doublings = threads.bit_length() - 1
    return WIDTH * doublings / (MOST.bit_length() - 1), HEIGHT * (1 - share)


def panel(name, rows):
    yield svg.title(name)
    for share in (0, 0.5, 1):
        yield svg.rule(HEIGHT * (1 - share), WIDTH, "%d %%" % (100 * share))
    for threads in (1, 2, 4, 8, 16, 32, 64, 128):
        yield svg.tick(place(threads, 0)[0], HEIGHT, threads)
    styles = {"model": 'stroke="#999" stroke-dasharray="4 3"', "efficiency": 'stroke="#06c" stroke-width="2"'}
    if KINDS[name][1] != "bam":                      # the model leaves out work that htslib's threads do
        del styles["model"]
    for key, style in styles.items():
        yield svg.curve([place(r["threads"], min(r[key], 1)) for r in rows], style)


def draw(all_rows):
    across, down = min(4, len(all_rows)), (len(all_rows) + 3) // 4
    elements = []
    for i, (name, rows) in enumerate(all_rows.items()):
        left, top = ROOM - 6 + i % 4 * (WIDTH + ROOM), 26 + i // 4 * (HEIGHT + ROOM)
        elements += svg.group(left, top, panel(name, rows))
    elements.append(svg.text(ROOM - 6, down * (HEIGHT + ROOM) + 16, 'efficiency by threads: <tspan fill="#06c">seen in '
                             'slow motion</tspan>, <tspan fill="#777">dashed: model</tspan>'))
    svg.save(SVG, across * (WIDTH + ROOM) + 10, down * (HEIGHT + ROOM) + 24, elements)


def main():
    if sys.argv[1:] not in ([], ["tables"]) or any(name not in KINDS for name in NAMES):
        sys.exit(__doc__)
    if not sys.argv[1:]:
        run_all()
    all_rows = {name: rows for name in NAMES if (rows := series(name))}
    for name, rows in all_rows.items():
        table(name, rows)
    draw(all_rows)


if __name__ == "__main__":
    main()
