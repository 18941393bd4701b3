#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Tables and curves of a sort over MPI on 1 to 64 nodes, from traces of small runs (bench/cluster.sh makes them).

    cluster.py FOLDER SVG      FOLDER/l1.RANKS.TIME.*, default.*, spilled.*: traces of mpi_trace.c
"""
import functools
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
LISTING = 0.011                 # s per GB sent: the main thread lists records, 4 ns for each of 350 bytes, by perf
PLAIN = {"l1": 3.80, "default": 7.42}  # CPU s per GB of samtools -@ 2 in memory, least of 3, same machine as the traces
STEPS, MOVING = ("sort_a", "exchange", "measure", "write"), ("exchange", "send_main", "receive_main")
SAM_PER_BAM = 1.255             # bytes of SAM per byte of records, measured with an input of gen_bam
DESCRIBED = {"ranks_per_node": 2, "cores": 32, "efficiency": 0.98, "bytes": 1e12, "memory": 96 * 2**30,
             "network": 12.5e9, "latency": 2e-6, "files": 400e9, "files_node": 10e9,
             "scratch_read": 5e9, "scratch_write": 3e9}
SENT, OWN = {"own_writes": False}, {"own_writes": True}
FREE = {"network": 1e15, "latency": 0, "files": 1e15, "files_node": 1e15, "scratch_read": 1e15, "scratch_write": 1e15}


def costs(folder, kind, ranks):
    paths = glob.glob("%s/%s.%d.*.0" % (glob.escape(folder), kind, ranks))
    return mpi_rule.least_costs([path[:-2] for path in paths])


def per_gb(cost, step):
    """Seconds; for the exchange per GB that is sent, which is not all of the records."""
    return cost[step] / cost["moved" if step in MOVING else "bytes"] * 1e9


def make_rule(folder, kind):
    """Means of the runs of 2 and of 4 ranks."""
    runs = [costs(folder, kind, n) for n in (2, 4)]

    def mean(get, runs=runs):
        return sum(get(run) for run in runs) / len(runs)

    rule = {step: mean(lambda run, step=step: per_gb(run, step)) for step in STEPS}
    rule["list"] = per_gb(runs[0], "list")                             # with 4 ranks, too much is the same for any
                                                                       # bytes
    rule["send_main"] = LISTING + mean(lambda run: per_gb(run, "send_main"))
    rule["receive_main"] = mean(lambda run: per_gb(run, "receive_main"))
    rule["follow"] = mean(lambda run: run["follow"] / run["n"])        # for any number of bytes
    rule["in_ratio"] = mean(lambda run: run["sort_a", "read"] / run["bytes"])
    rule["out_ratio"] = mean(lambda run: run["write", "written"] / run["bytes"])
    rule["cut"] = mean(lambda run: run["cut"] / (8192 * run["n"] * math.log2(8192 * run["n"])))
    rule["plain"] = PLAIN[kind]
    spilled, kept = (costs(folder, name, 2) for name in ("spilled", "l1"))
    rule["spill_ratio"] = spilled["sort_a", "written"] / spilled["bytes"]
    for step in STEPS:
        rule["spilled_" + step] = max(0, per_gb(spilled, step) - per_gb(kept, step))
    return rule


def simulate(rule, **settings):
    return run_simulation(json.dumps({**DESCRIBED, **OWN, **settings, "rule": rule}))


@functools.lru_cache(None)
def run_simulation(text):
    program = os.path.join(os.path.dirname(__file__), "simulate.py")
    run = subprocess.run(["/usr/bin/python3", program, text], capture_output=True, text=True, timeout=300)
    if run.returncode:
        sys.exit(run.stderr)
    return json.loads(run.stdout)


def one_node(rule):
    """Seconds of one node with two ranks that has memory for everything, as described and without changes."""
    return simulate(rule, nodes=1, memory=1e15)["s"]


def at_nodes(rule, nodes, settings):
    row = dict(simulate(rule, nodes=nodes, **settings), nodes=nodes)
    row["efficiency"] = rule["one_node"] / row["s"] / nodes
    row["useful"] = efficiency(rule, row)
    return row


def series(rule, settings):
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(lambda n: at_nodes(rule, n, settings), NODES))


def efficiency(rule, row):
    """The share of the nodes' cores that one samtools-omp needs for the same sort in memory."""
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


def bounds(rules):
    """At 64 nodes: the cost of each part, found by leaving them out one after another. rules: for -l 1, for the default
    level."""
    free_card = {"send_main": LISTING, "receive_main": 0}
    alone = {**free_card, "list": 0, "cut": 0}
    cases = (("rank 0 writes", {}, SENT),
             ("every rank writes its part", {}, OWN),
             ("... and the network card moves messages", free_card, OWN),
             ("... and splitters cost nothing", alone, OWN),
             ("... and network and disks cost nothing", alone, {**OWN, **FREE}),
             ("every rank writes, file system 200 GB/s", {}, {**OWN, "files": 200e9}),
             ("every rank writes, file system 800 GB/s, 20 a node, scratch twice", {}, {
                 **OWN, "files": 800e9, "files_node": 20e9, "scratch_read": 10e9, "scratch_write": 6e9}),
             ("every rank writes, 1 rank a node", {}, {**OWN, "ranks_per_node": 1}),
             ("every rank writes, 4 ranks a node", {}, {**OWN, "ranks_per_node": 4}))
    print("\n| at 64 nodes |" + 2 * " s | efficiency | useful |" + "\n|---|" + 6 * "---:|")
    with ThreadPoolExecutor(2) as pool:
        for name, changes, settings in cases:
            rows = pool.map(lambda rule, c=changes, s=settings: at_nodes({**rule, **c}, 64, s), rules)
            print("| %s |" % name + "".join(" %.1f | %.2f | %.2f |" % (row["s"], row["efficiency"], row["useful"])
                                            for row in rows))


def check_rule(folder, kind):
    print("\n| s per GB | of 2 and 4 ranks | 8 ranks, measured |\n|---|---:|---:|")
    rule, eight = make_rule(folder, kind), costs(folder, kind, 8)
    for step in STEPS:
        print("| %s | %.3f | %.3f |" % (step, rule[step], per_gb(eight, step)))


def peers(default):
    print("\n| mpiSORT's case | cores | mpiSORT s | ours | files GB/s |\n|---|---:|---:|---:|---:|")
    for name, size, nodes, cores, theirs in (("70 GB of SAM", 70e9, 1, 16, 219), ("70 GB of SAM", 70e9, 2, 16, 115),
                                             ("1.3 TB", 1.3e12, 32, 32, 600)):
        settings = {"bytes": size / SAM_PER_BAM, "nodes": nodes, "cores": cores, "memory": cores * 3 * 2**30}
        ours = simulate(default, **settings)["s"]
        moved = settings["bytes"] * (default["in_ratio"] + default["out_ratio"])
        print("| %s | %d | %d | %.0f | %.1f |" % (name, nodes * cores, theirs, ours, moved / ours / 1e9))


WIDTH, HEIGHT, ROOM = 240, 150, 60


def panel(name, curves):
    yield svg.title(name)
    for share in (0, 0.5, 0.8, 1):
        yield svg.rule(HEIGHT * (1 - share), WIDTH, "%d %%" % (100 * share))
    for i, n in enumerate(NODES):
        yield svg.tick(WIDTH * i / 6, HEIGHT, n)
    for rows, color in zip(curves, ("#c33", "#06c")):
        yield svg.curve([(WIDTH * i / 6, HEIGHT * (1 - min(row["efficiency"], 1))) for i, row in enumerate(rows)],
                        'stroke="%s" stroke-width="2"' % color)


def main():
    folder, picture = sys.argv[1:]
    elements, rules = [], []
    for i, (kind, title) in enumerate((("l1", "-l 1"), ("default", "default level"))):
        rule = make_rule(folder, kind)
        print("\n### %s\n\nThe rule, s per GB: %s" % (title, ", ".join("%s %.3g" % pair for pair in rule.items())))
        rules.append({**rule, "one_node": one_node(rule)})
        curves = [series(rules[-1], settings) for settings in (SENT, OWN)]
        for name, rows in zip(("rank 0 writes", "every rank writes its part"), curves):
            table("%s, %s" % (title, name), rows)
        elements += svg.group(ROOM - 10 + i * (WIDTH + ROOM), 26, panel(title, curves))
    elements.append(svg.text(ROOM - 10, HEIGHT + 60, 'efficiency by nodes of 32 cores, 1 TB, simulated: '
                             '<tspan fill="#c33">rank 0 writes</tspan>, '
                             '<tspan fill="#06c">every rank writes its part</tspan>'))
    svg.save(picture, 2 * (WIDTH + ROOM) + 10, HEIGHT + 72, elements)
    bounds(rules)
    check_rule(folder, "l1")
    peers(rules[1])


if __name__ == "__main__":
    main()
