#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the output bytes of two builds: 40 settings of orders, formats, levels, threads, memory and pipes.

usage: test/same_bytes.py BEFORE AFTER [FOLDER]    two programs; FOLDER for inputs and outputs, about 300 MB (/dev/shm)

For a change that must not change the output. CRAM is written with one thread: with more, htslib chooses its
compression as the threads happen to run. Inputs are made with build/gen_bam and by AFTER. A line for each setting,
then "N same, N differ"; status 1 if any differ. SAMTOOLS_OMP_ARENA makes the input spill.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Arguments; the input is in.X by the first word. "<": through a pipe. "ARENA": spilled. Output to out.X, or, with "|",
# through a pipe.
SETTINGS = """
bam -@2                                     bam -@1
bam -@3 -l0                                 bam -@2 -l1
bam -@2 -l9                                 bam -@2 -u
bam -@8 -n                                  bam -@2 -N
bam -@2 -t NM                               bam -@3 -t NM -n
bam -@2 --template-coordinate               bam -@2 --picard -n
bam -@2 -M                                  bam -@3 -M -l1
bam -@1 -n -l1                              bam -@2 -n -l1
bam -@2 -m 2M ARENA                         bam -@3 -m 2M ARENA -n
bam -@2 -m 2M ARENA -l1                     bam -@2 -m 2M ARENA -M
bam -@2 -m 2M ARENA --template-coordinate   bam -@1 -m 2M ARENA -t NM
bam -@2 -m 64M -l1                          bam -@8 -m 2M ARENA -u
bam < -@2                                   bam < -@2 -n -l1 |
bam < -@3 -m 2M ARENA |                     bam -@2 -O sam
bam -@3 -O sam.gz                           bam -@2 -O sam -n |
bam -@1 -O cram,no_ref=1                    bam -@1 -O cram,no_ref=1 |
sam -@2                                     sam < -@3 -n
sam.gz -@2 -l1                              sam < -@2 -m 2M ARENA
cram -@2                                    cram < -@3 -n -l1
bam -@2 --write-index                       bam -@3 --write-index -m 2M ARENA -l1
"""


def settings():
    for line in SETTINGS.strip().splitlines():
        words = line.split("  ")
        yield from (w.strip() for w in words if w.strip())


def inputs(program, folder):
    bam = folder / "in.bam"
    subprocess.run([ROOT / "build/gen_bam", "--size", "60M", "--seed", "7", "-o", bam], check=True, stderr=subprocess.DEVNULL)
    for ending, how in (("sam", "sam"), ("sam.gz", "sam.gz"), ("cram", "cram,no_ref=1")):
        subprocess.run([program, "sort", "--no-PG", "-N", "-O", how, "-o", folder / f"in.{ending}", bam], check=True)


def output(program, folder, setting):
    """Names and bytes of what the program writes."""
    kind, *args = setting.split()
    env = dict(os.environ, SAMTOOLS_OMP_ARENA=str(3 << 20)) if "ARENA" in args else None
    piped_in, piped_out = "<" in args, "|" in args
    args = [a for a in args if a not in ("<", "|", "ARENA")]
    with tempfile.TemporaryDirectory(dir=folder) as out:
        out = pathlib.Path(out)
        command = [program, "sort", "--no-PG", *args]
        command += [] if piped_out else ["-o", out / "out"]
        if "-O" not in args:
            command += ["-O", "bam"]
        source = folder / f"in.{kind}"
        first = subprocess.Popen(["cat", source], stdout=subprocess.PIPE) if piped_in else None
        second = subprocess.run(command if piped_in else [*command, source], stdin=first.stdout if first else None,
                                stdout=subprocess.PIPE, env=env, check=True)
        found = {p.name: p.read_bytes() for p in out.iterdir()}
    return found | ({"|": second.stdout} if piped_out else {})


def main():
    before, after = (pathlib.Path(p).resolve() for p in sys.argv[1:3])
    same = differ = 0
    with tempfile.TemporaryDirectory(dir=sys.argv[3] if len(sys.argv) > 3 else "/dev/shm") as folder:
        folder = pathlib.Path(folder)
        inputs(after, folder)
        for setting in settings():
            equal = output(before, folder, setting) == output(after, folder, setting)
            same, differ = same + equal, differ + (not equal)
            print("same  " if equal else "DIFFER", setting, flush=True)
    print(f"{same} same, {differ} differ")
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
