# SPDX-License-Identifier: MIT
"""Small sorts under unusual settings, each of which must give the same bytes as one thread in memory.

    test/stress.py [--n 500] [--seed 1]

Each sort draws its order, threads, memory, OpenMP settings, allowed cores, and file or pipe at random, while other
processes keep the cores busy. A seed always draws the same sorts. Each failure is printed as a command line; the last
line says how many passed, such as "500/500"."""

import argparse
import os
import pathlib
import random
import shlex
import subprocess
import sys
import tempfile

import pysam

import bamgen
from conftest import BINARY, HANG, clean_env, launch, only_cpus

ORDERS = [[], ["-n"], ["-N"], ["-t", "XT"], ["-t", "XT", "-n"], ["--template-coordinate"], ["--picard"], ["-M"]]
LEVELS = [["-u"], ["-l", "1"], [], ["-O", "sam"]]
THREADS = [1, 2, 3, 4, 5, 7, 8, 12, 16]
# OpenMP variables that may be set; None: not set.
SETTINGS = {
    "OMP_PLACES": [None, "threads", "cores", "{0}", "{0,1}"],
    "OMP_PROC_BIND": [None, "true", "false", "close", "spread", "master"],
    "OMP_WAIT_POLICY": [None, "active", "passive"],
    "OMP_DYNAMIC": [None, "true"],
    "OMP_THREAD_LIMIT": [None, None, "1", "2", "3"],
    "OMP_SCHEDULE": [None, "static", "dynamic,1"],
    "OMP_NESTED": [None, "true"],
    "GOMP_SPINCOUNT": [None, "0", "1000", "infinite"],
    "SAMTOOLS_OMP_ARENA": [None, "262144", "262144", "524288", "1500000"],
}
BUSY = "import os; os.nice(5)\nwhile True: pass"


def reads(r, n):
    """Records with everything that the orders use, with many ties."""
    for i in range(n):
        seq = "".join(r.choices("ACGT", k=r.choice((10, 50, 90))))
        mapped = r.random() < .8
        yield bamgen.record("run:%d:%d" % (r.randrange(3), r.randrange(n)),
                            (1 | r.choice((0x40, 0x80)) | r.choice((0, 16))) if mapped else r.choice((77, 141)),
                            r.randrange(3) if mapped else -1, r.randrange(900) if mapped else -1, seq=seq,
                            cigar=[(len(seq), "M")] if mapped else [], bin=None if mapped else 4680,
                            tags=b"MCZ50M\0XTC" + bytes([r.randrange(9)]))


def write_inputs(folder, r):
    paths = []
    for n, size in (0, 100), (1, 100), (700, 300), (5000, 4093), (9000, 65280), (16000, 30000):
        paths.append(folder / ("%d.bam" % n))
        paths[-1].write_bytes(bamgen.bgzf(bamgen.header() + b"".join(reads(r, n)), size=size, level=1))
    return [*paths, *other_formats(folder, str(paths[-1]))]


def other_formats(folder, bam):
    sam, gz, cram = folder / "in.sam", folder / "in.sam.gz", folder / "in.cram"
    pysam.view("-h", "-o", str(sam), bam, catch_stdout=False)
    gz.write_bytes(bamgen.bgzf(sam.read_bytes(), size=50000, level=1))
    pysam.view("-O", "cram,no_ref=1", "-o", str(cram), bam, catch_stdout=False)
    return sam, gz, cram


class Stress:
    def __init__(self, folder, seed):
        self.r = random.Random(seed)
        self.inputs = write_inputs(folder, self.r)
        self.known = {}

    def reference(self, path, how):
        """The result of one thread in memory."""
        key = path, tuple(how)
        if key not in self.known:
            p = subprocess.run([BINARY, "sort", "--no-PG", *how, path], stdin=subprocess.DEVNULL, capture_output=True,
                               env=clean_env(), timeout=HANG)
            assert p.returncode == 0, p.stderr
            self.known[key] = p.stdout
        return self.known[key]

    def draw(self):
        """One sort: input, order and level, all other arguments, environment, cores, by a pipe or not."""
        r = self.r
        env = {name: r.choice(values) for name, values in SETTINGS.items()}
        args = ["-@", str(r.choice(THREADS)), *r.choice(([], ["-m", "1M"], ["-m", "3M"]))]
        cores = sorted(os.sched_getaffinity(0))
        return (r.choice(self.inputs), r.choice(ORDERS) + r.choice(LEVELS), args,
                {k: v for k, v in env.items() if v}, r.choice((cores, cores, [r.choice(cores)])), r.random() < .4)

    def one(self):
        """The command line of a sort that failed, and the failure; otherwise None."""
        path, how, args, env, cores, piped = self.draw()
        argv = [BINARY, "sort", "--no-PG", *how, *args, *([] if piped else [str(path)])]
        told = "%s taskset -c %s %s%s" % (" ".join("%s=%s" % i for i in env.items()), ",".join(map(str, cores)),
                                          shlex.join(argv), " < %s" % path if piped else "")
        feed = subprocess.Popen(["cat", path], stdout=subprocess.PIPE) if piped else None
        try:
            p = subprocess.run(**launch(argv, clean_env(**env), only_cpus(cores)), timeout=HANG, capture_output=True,
                               stdin=feed.stdout if feed else subprocess.DEVNULL)
        except subprocess.TimeoutExpired:
            return "hangs: " + told
        finally:
            if feed:
                feed.stdout.close()
                feed.wait()
        if p.returncode or p.stdout != self.reference(path, how):
            return "status %d, %s bytes: %s\n%s" % (
                p.returncode, "other" if p.stdout != self.reference(path, how) else "right", told,
                p.stderr.decode(errors="replace"))
        return None


def run(n, seed, folder):
    """Does n sorts; returns the failures."""
    stress = Stress(pathlib.Path(folder), seed)
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(len(os.sched_getaffinity(0)))]
    try:
        return [wrong for _ in range(n) for wrong in [stress.one()] if wrong]
    finally:
        for p in busy:
            p.kill()
            p.wait()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    opts = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        wrong = run(opts.n, opts.seed, folder)
    for told in wrong:
        print(told)
    print("%d/%d" % (opts.n - len(wrong), opts.n))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
