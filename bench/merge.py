# SPDX-License-Identifier: MIT
"""The tables of bench/merge.sh, bench/fixmate.sh and bench/chain.sh."""

import os
import shutil
import statistics
import subprocess
import sys

from measure import measure


# Programs that break ties differently from samtools.
OTHERS = "bamsormadup", "sambamba", "elprep", "fgumi"


def command(what, program, path, threads, level, out, inputs):
    """Equal work, as far as the programs allow: equal @RG and @PG lines are joined. samtools does not count the main
    thread."""
    if what == "chain":
        return ["sh", "bench/chain.sh", "run", program, path, threads, level, out, *inputs]
    if what == "fixmate":                            # samtools has no -l there, and its -u has no effect for a file
        how = [] if level == "default" else ["-O", "bam,level=" + level]
        return [path, what, "-m", "-@", threads, *how, *inputs, out]
    how = [] if level in ("default", "gather") else ["-l", level]
    if program == "sambamba":
        return [path, "merge", "-t", threads, *how, out, *inputs]
    how = ["--copy-blocks"] if program == "copied" else ["-u"] if level == "0" else how
    return [path, "merge", "-@", threads, "-c", "-p", "-f", *how, "-o", out, *inputs]


def records(samtools, path, fields):
    """A checksum of these fields of all records, in their order."""
    return subprocess.check_output(["sh", "-c", '"$0" view -@ 1 "$1" | cut -f "$2" | cksum', samtools, path, fields])


def count(samtools, path, *which):
    return int(subprocess.check_output([samtools, "view", "-c", *which, path]))


def look_at_marks(samtools, name, path, source):
    """No record may be missing; returns the number of duplicates."""
    if count(samtools, path) != count(samtools, source):
        sys.exit("merge.py: %s loses records" % name)
    print("%s marks %d duplicates" % (name, count(samtools, path, "-f", "1024")), file=sys.stderr)


def one_run(argv, out, log):
    """Wall and CPU seconds, MiB, MB of output."""
    if os.path.exists(out):
        os.unlink(out)
    wall, usage, status = measure(log, 3600, argv)
    if status:
        with open(log, errors="replace") as told:
            sys.exit("%s: exit status %d: %s" % (" ".join(argv[:2]), status, told.read()[-300:]))
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, os.path.getsize(out) / 1e6


def rows(what, programs, folder, rounds, threads, level, inputs):
    programs = {name: path for name, path in programs.items() if level == "default" or name != "elprep"}
    runs, first, log = {name: [] for name in programs}, {}, os.path.join(folder, "log")
    for turn in range(rounds + 1):
        for name, path in programs.items():
            out = os.path.join(folder, "out.%s.bam" % name)
            cost = one_run(command(what, name, path, threads, level, out, inputs), out, log)
            if turn:
                runs[name].append(cost)
            elif name not in OTHERS:
                fields = "-11" if level == "gather" else "1-"     # in copied blocks, tags stay in their places
                first[name] = records(programs["samtools"], out, fields)
            if what == "chain" and not turn:
                look_at_marks(programs["samtools"], name, out, inputs[0])
            for left in out, out + ".bai":
                if os.path.exists(left):
                    os.unlink(left)
    os.unlink(log)
    if len(set(first.values())) > 1:
        sys.exit("merge.py: the records differ")
    for name, mine in runs.items():
        wall, cpu, memory, size = (statistics.median(x) for x in zip(*mine))
        ratio = statistics.median(theirs[0] / x[0] for theirs, x in zip(runs["samtools"], mine))
        yield "| %s | %s | %s | %.2f | %.2f | %.0f | %.1f | %.2f |" % (
            level, threads, name, wall, cpu, memory, size, ratio)


def main(what, ours, samtools, folder, rounds, threads, levels, *inputs):
    programs = {"ours": os.path.abspath(ours), "samtools": samtools}
    if what == "chain":
        programs["steps"] = programs["ours"]
    others = {"merge": ["sambamba"], "chain": OTHERS}.get(what, [])
    programs.update((name, shutil.which(name)) for name in others if shutil.which(name))
    if levels == "gather":
        programs["copied"] = programs["ours"]
    print("| level | threads | program | wall s | CPU s | MiB | MB | x samtools |")
    print("|---|---:|---|---:|---:|---:|---:|---:|")
    for level in levels.split():
        for n in threads.split():
            os.environ["SAMTOOLS_OMP_THREADS"] = n    # in total, whatever -@ says for ours; ignored by samtools
            for row in rows(what, programs, folder, int(rounds), n, level, inputs):
                print(row, flush=True)


main(*sys.argv[1:])
