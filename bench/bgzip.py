# SPDX-License-Identifier: MIT
"""Helpers of bench/bgzip.sh: VCF text from a seed, and the table."""

import os
import random
import resource
import shutil
import statistics
import subprocess
import sys
import time


def vcf(megabytes, to):
    """Calls of ten samples, as GATK writes them."""
    rng = random.Random(1)

    def sample():
        depth, kind = rng.randint(5, 40), rng.choices((0, 1, 2), (80, 14, 6))[0]
        alt = (0, depth // 2 + rng.randint(-2, 2), depth)[kind]
        likely = ("0,%d,%d" % (depth * 3, depth * 40), "%d,0,%d" % (alt * 37, depth * 30), "%d,%d,0" % (depth * 40, depth * 3))[kind]
        return "%s:%d,%d:%d:%d:%s" % (("0/0", "0/1", "1/1")[kind], depth - alt, alt, depth, rng.choice((99, 99, 99, rng.randint(3, 98))), likely)

    samples = [sample() for _ in range(5000)]
    to.write("##fileformat=VCFv4.2\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\tFORMAT\t%s\n" % "\t".join("S%d" % i for i in range(10)))
    at, written = 10000, 0
    while written < megabytes * 10**6:
        at += rng.randint(1, 900)
        count, ref, alt = rng.randint(1, 20), *rng.sample("ACGT", 2)
        name = "rs%d" % rng.randint(1, 10**9) if rng.random() < .7 else "."
        line = ("chr1\t%d\t%s\t%s\t%s\t%.2f\tPASS\tAC=%d;AF=%.3f;AN=20;BaseQRankSum=%.3f;DP=%d;ExcessHet=%.4f;FS=%.3f;MQ=60.00;QD=%.2f;"
                "SOR=%.3f\tGT:AD:DP:GQ:PL\t%s\n"
                % (at, name, ref, alt, rng.random() * 5000, count, count / 20, rng.gauss(0, 1), rng.randint(50, 400), rng.random() * 5,
                   rng.random() * 10, rng.random() * 30, rng.random() * 3, "\t".join(rng.choices(samples, k=10))))
        written += len(line)
        to.write(line)


def timed(argv, source, target):
    """Wall and CPU seconds."""
    with open(source, "rb") as given, open(target, "wb") as out:
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        subprocess.run(argv, stdin=given, stdout=out, check=True)
        wall, after = time.monotonic() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def programs(ours, threads):
    """Name -> commands that compress and decompress."""
    found = {"ours": [[ours, "bgzip", "-@", threads, "-c"], [ours, "bgzip", "-@", threads, "-dc"]]}
    if shutil.which("bgzip"):
        found["bgzip"] = [["bgzip", "-@", threads, "-c"], ["bgzip", "-@", threads, "-dc"]]
    if shutil.which("crabz"):
        found["crabz"] = [["crabz", "-f", "bgzf", "-p", threads], ["crabz", "-d", "-f", "bgzf", "-p", threads]]
    return found


def rows(ours, data, out, rounds, threads):
    """Lines of the table for one file and number of threads."""
    with_ = programs(ours, threads)
    megabytes = os.path.getsize(data) / 1e6
    times = {(name, way): [] for name in with_ for way in (0, 1)}
    packed, sizes = os.path.join(out, "bench.gz"), {}
    for turn in range(rounds + 1):
        for name, ways in with_.items():
            for way in (0, 1):                   # every program decompresses the file that it compressed
                took = timed(ways[way], (data, packed)[way], (packed, os.path.join(out, "bench.out"))[way])
                if turn:
                    times[name, way].append(took)
            sizes[name] = os.path.getsize(packed)
            if not turn:
                subprocess.run(["cmp", data, os.path.join(out, "bench.out")], check=True)
    for name in with_:
        cells = []
        for way in (0, 1):
            mine, base = times[name, way], times.get(("bgzip", way), times[name, way])
            cells += ["%.0f" % (megabytes / statistics.median(w for w, _ in mine)), "%.2f" % statistics.median(c for _, c in mine),
                      "%.2f" % statistics.median(b[0] / m[0] for b, m in zip(base, mine))]
        yield "| %s | %s | %s | %.1f | %s |" % (os.path.basename(data)[5:], threads, name, sizes[name] / 1e6, " | ".join(cells))
    for name in "bench.gz", "bench.out":
        os.remove(os.path.join(out, name))


def table(ours, work, out, rounds, threads, *kinds):
    print("| data | threads | program | MB | compress MB/s | CPU s | x bgzip | decompress MB/s | CPU s | x bgzip |")
    print("|---|---:|---|---:|---:|---:|---:|---:|---:|---:|")
    for kind in kinds:
        for n in threads.split():
            for row in rows(os.path.abspath(ours), os.path.join(work, "data." + kind), out, int(rounds), n):
                print(row, flush=True)


if sys.argv[1] == "vcf":
    vcf(int(sys.argv[2]), sys.stdout)
else:
    table(*sys.argv[2:])
