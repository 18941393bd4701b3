#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tables and curves of a sort over MPI on 1 to 64 nodes, from traces of small runs (bench/cluster.sh makes them).

    cluster.py FOLDER SVG      FOLDER/l1.RANKS.TIME.*, default.*, spilled.*: traces of mpi_trace.c
"""
import glob
import json
import math
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

sys.path[:0] = [os.path.dirname(__file__), os.path.join(os.path.dirname(__file__), "..")]
import mpi_rule  # noqa: E402
import svg       # noqa: E402

NODES = 1, 2, 4, 8, 16, 32, 64
SEND_MAIN, RECEIVE_MAIN = 0.14, 0.13   # s per GB of the main thread alone, by perf: exchange.c
PLAIN = {"l1": 3.19, "default": 6.16}  # CPU s per GB of samtools-omp in memory on 32 threads (SCALING.md)
SAM_PER_BAM = 1.255             # bytes of SAM per byte of records, measured with an input of gen_bam
DESCRIBED = {"ranks_per_node": 2, "cores": 32, "efficiency": 0.98, "bytes": 1e12, "memory": 96 * 2**30,
             "network": 12.5e9, "latency": 2e-6, "files": 400e9, "files_node": 10e9,
             "scratch_read": 5e9, "scratch_write": 3e9}
SENT = {"own_writes": False, "staggered": False, "shared_main": False, "free_splitters": False}
FREE = {"network": 1e15, "latency": 0, "files": 1e15, "files_node": 1e15, "scratch_read": 1e15, "scratch_write": 1e15}
OWN = {**SENT, "own_writes": True}
ALL = {**OWN, "staggered": True, "shared_main": True}


def costs(folder, kind, ranks):
    paths = glob.glob("%s/%s.%d.*.0" % (glob.escape(folder), kind, ranks))
    return mpi_rule.median_costs([path[:-2] for path in paths])


def per_gb(cost, step):
    return cost[step] / cost["bytes"] * 1e9


def make_rule(folder, kind):
    """Means of the runs of 2 and of 4 ranks."""
    runs = [costs(folder, kind, n) for n in (2, 4)]

    def mean(get, runs=runs):
        return sum(get(run) for run in runs) / len(runs)

    steps = "sort_a", "send", "receive", "measure", "write"
    rule = {step: mean(lambda run, step=step: per_gb(run, step)) for step in steps}
    rule["follow"] = mean(lambda run: run["follow"] / run["n"])        # whatever the bytes
    rule["in_ratio"] = mean(lambda run: run["sort_a", "read"] / run["bytes"])
    rule["out_ratio"] = mean(lambda run: run["write", "written"] / run["bytes"])
    rule["sample"] = mean(lambda run: run["sorting"] / (8192 * run["n"] * math.log2(8192 * run["n"])))
    rule["plain"] = PLAIN[kind]
    rule["send_main"], rule["receive_main"] = SEND_MAIN, RECEIVE_MAIN
    spilled, kept = (costs(folder, name, 2) for name in ("spilled", "l1"))
    rule["spill_ratio"] = spilled["sort_a", "written"] / spilled["bytes"]
    for step in ("sort_a", "send", "measure", "write"):
        rule["spilled_" + step] = max(0, per_gb(spilled, step) - per_gb(kept, step))
    return rule


def simulate(rule, **settings):
    program = os.path.join(os.path.dirname(__file__), "simulate.py")
    text = json.dumps({**DESCRIBED, **OWN, **settings, "rule": rule})
    run = subprocess.run(["/usr/bin/python3", program, text], capture_output=True, text=True, timeout=300)
    if run.returncode:
        sys.exit(run.stderr)
    return json.loads(run.stdout)


def series(rule, **settings):
    alone = simulate(rule, nodes=1, **{**settings, "memory": 1e15})["s"]
    with ThreadPoolExecutor(2) as pool:
        rows = list(pool.map(lambda n: dict(simulate(rule, nodes=n, **settings), nodes=n), NODES))
    for row in rows:
        row["efficiency"] = alone / row["s"] / row["nodes"]
        row["useful"] = efficiency(rule, row)
    return rows


def efficiency(rule, row):
    """Of what the nodes' cores could do, what one samtools-omp does for the same sort in memory (SCALING.md)."""
    return rule["plain"] * DESCRIBED["bytes"] / 1e9 / (row["s"] * row["nodes"] * DESCRIBED["cores"])


def seconds_of_steps(row):
    ends = [0, *row["ends"].values()]
    return [end - before for before, end in zip(ends, ends[1:])]


def table(title, rows):
    print("\n**%s**\n" % title)
    print("| nodes | s | GB/s | efficiency | useful | on disk | " + " | ".join(rows[0]["ends"]) + " |")
    print("|---:|---:|---:|---:|---:|---|" + "---:|" * len(rows[0]["ends"]))
    for row in rows:
        print("| %d | %.1f | %.1f | %.2f | %.2f | %s | " % (
            row["nodes"], row["s"], 1000 / row["s"], row["efficiency"], row["useful"], "yes" if row["spills"] else "no")
              + " | ".join("%.2f" % s for s in seconds_of_steps(row)) + " |")


def bounds(rule):
    """At 64 nodes: what each part costs, by leaving out one after the other."""
    print("\n| at 64 nodes | s | useful |\n|---|---:|---:|")
    cases = []
    for name, settings in (
            ("rank 0 writes", SENT), ("every rank writes its part", OWN),
            ("... and no rank waits in the exchange (staggered)", {**OWN, "staggered": True}),
            ("... and all threads copy messages", ALL),
            ("... and splitters cost nothing", {**ALL, "free_splitters": True}),
            ("... and network and disks cost nothing", {**ALL, **FREE}),
            ("all of these, file system 200 GB/s", {**ALL, "files": 200e9}),
            ("all of these, file system 800 GB/s, 20 a node, scratch twice", {
                **ALL, "files": 800e9, "files_node": 20e9, "scratch_read": 10e9, "scratch_write": 6e9}),
            ("all of these, 1 rank a node", {**ALL, "ranks_per_node": 1}),
            ("rank 0 writes, 1 rank a node", {**SENT, "ranks_per_node": 1}),
            ("every rank writes, 1 rank a node", {**OWN, "ranks_per_node": 1})):
        cases.append((name, settings))
    with ThreadPoolExecutor(2) as pool:
        rows = list(pool.map(lambda case: dict(simulate(rule, nodes=64, **case[1]), nodes=64), cases))
    for (name, _), row in zip(cases, rows):
        print("| %s | %.1f | %.2f |" % (name, row["s"], efficiency(rule, row)))


def check_rule(folder, kind):
    print("\n| s per GB | of 2 and 4 ranks | 8 ranks, measured |\n|---|---:|---:|")
    rule, eight = make_rule(folder, kind), costs(folder, kind, 8)
    for step in ("sort_a", "measure", "write"):
        print("| %s | %.4f | %.4f |" % (step, rule[step], per_gb(eight, step)))
    print("| send and receive | %.3f | %.3f |" % (rule["send"] + rule["receive"], per_gb(eight, "send") + per_gb(eight, "receive")))


def peers(rule, default):
    print("\n| mpiSORT's case | cores | mpiSORT s | ours, today | ours, all changes | files GB/s, today "
          "| files GB/s, all changes |\n|---|---:|---:|---:|---:|---:|---:|")
    for name, size, nodes, cores, theirs in (("70 GB of SAM", 70e9, 1, 16, 219), ("70 GB of SAM", 70e9, 2, 16, 115),
                                             ("1.3 TB", 1.3e12, 32, 32, 600)):
        settings = {"bytes": size / SAM_PER_BAM, "nodes": nodes, "cores": cores, "memory": cores * 3 * 2**30}
        today, best = simulate(default, **settings), simulate(default, **{**settings, **ALL})
        moved = settings["bytes"] * (default["in_ratio"] + default["out_ratio"])
        print("| %s | %d | %d | %.0f | %.0f | %.1f | %.1f |" % (
            name, nodes * cores, theirs, today["s"], best["s"], moved / today["s"] / 1e9, moved / best["s"] / 1e9))


WIDTH, HEIGHT, ROOM = 240, 150, 60


def panel(name, curves):
    yield svg.title(name)
    for share in (0, 0.5, 0.8, 1):
        yield svg.rule(HEIGHT * (1 - share), WIDTH, "%d %%" % (100 * share))
    for i, n in enumerate(NODES):
        yield svg.tick(WIDTH * i / 6, HEIGHT, n)
    for rows, color in zip(curves, ("#c33", "#06c", "#393")):
        yield svg.curve([(WIDTH * i / 6, HEIGHT * (1 - min(row["efficiency"], 1))) for i, row in enumerate(rows)],
                        'stroke="%s" stroke-width="2"' % color)


def main():
    folder, picture = sys.argv[1:]
    elements = []
    for i, (kind, title) in enumerate((("l1", "-l 1"), ("default", "default level"))):
        rule = make_rule(folder, kind)
        print("\n### %s\n\nThe rule, s per GB: %s" % (title, ", ".join("%s %.3g" % pair for pair in rule.items())))
        curves = [series(rule, **settings) for settings in (SENT, OWN, ALL)]
        for name, rows in zip(("rank 0 writes", "every rank writes its part", "all changes"), curves):
            table("%s, %s" % (title, name), rows)
        bounds(rule)
        elements += svg.group(ROOM - 10 + i * (WIDTH + ROOM), 26, panel(title, curves))
    elements.append(svg.text(ROOM - 10, HEIGHT + 60, 'efficiency by nodes of 32 cores, 1 TB, simulated: '
                             '<tspan fill="#c33">rank 0 writes</tspan>, <tspan fill="#06c">every rank writes its part</tspan>, '
                             '<tspan fill="#393">all changes</tspan>'))
    svg.save(picture, 2 * (WIDTH + ROOM) + 10, HEIGHT + 72, elements)
    check_rule(folder, "l1")
    peers(make_rule(folder, "l1"), make_rule(folder, "default"))


if __name__ == "__main__":
    main()
