#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The predicted curve for many threads, from the --report=FILE.json of a run on few.

    bench/scaling.py REPORT.json [TASK_NS]

The model. A sort has two phases, reading and writing. In each, tasks share the
parallel work, and one thread has the serial work (deal, plan, fill, ...), while
the others continue; so a phase takes

    max(serial, (serial + parallel) / threads)        or, if the machine's bandwidth is less, bytes / bandwidth

Beyond that, a task costs TASK_NS on the thread that makes it (bench/task_cost; it is in the
measured times of the run already, so the default is 0), and reading ends with the
sort of the last sublist, by one thread. The table shows the speeds that disk and memory must
have at each width; the times include neither.
"""
import json
import sys

READING = ("read", "deal", "inflate", "parse", "find", "join", "sort", "spill_write", "pack", "other")
# Bytes for one byte of a block: cleared page, inflated, found (in the cache), gathered, its copy (in the cache); keys
# and page cache in and out.
MEMORY_TOUCHED = 4.0
SUBLIST = 1 << 20


def work(report, kinds, reading):
    stages = report["stages"]
    return sum(s["s"] - s["blocked_s"] for name, s in stages.items()
               if s["kind"] in kinds and (name in READING) == reading)


def predict(report, threads, task_ns):
    total, stages = 0.0, report["stages"]
    for reading in (True, False):
        serial = work(report, ("serial",), reading)
        serial += task_ns * 1e-9 * stages["inflate" if reading else "deflate"]["events"]
        in_turn = work(report, ("in_turn",), reading)
        parallel = work(report, ("parallel",), reading)
        total += max(serial, in_turn, (serial + in_turn + parallel) / threads)
    sorts = max(stages["sort"]["events"], 1)
    if threads > 1:
        total += stages["sort"]["s"] / sorts * (1 - 1 / threads)
    return total


def main():
    report = json.load(open(sys.argv[1]))
    task_ns = float(sys.argv[2]) if len(sys.argv) > 2 else 0.0
    gb = report["bytes"] / 1e9
    files = report["stages"]["read"]["bytes"] + report["stages"]["write"]["bytes"]
    alone = predict(report, 1, task_ns)
    print("| threads | s per GB | speedup | efficiency | files GB/s | memory GB/s |")
    print("|---:|---:|---:|---:|---:|---:|")
    for threads in (1, 2, 4, 8, 16, 32, 64, 128):
        t = predict(report, threads, task_ns)
        print("| %d | %.3f | %.1f | %.0f %% | %.2f | %.1f |" % (
            threads, t / gb, alone / t, 100 * alone / t / threads, files / 1e9 / t, MEMORY_TOUCHED * gb / t))


if __name__ == "__main__":
    main()
