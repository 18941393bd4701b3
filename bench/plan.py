#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the forecast of `sort --plan` with the numbers of --report, for six inputs: some in memory, some spilled.

usage: bench/plan.py [FOLDER]      FOLDER for inputs and outputs, some 700 MB (default: bench/work)

Prints a table in Markdown: forecast / real, and their quotient, of peak memory, packed temporary data, records and
output; then the rows whose memory or temporary data are off by more than 30 %. SAMTOOLS_OMP and GEN_BAM replace
./samtools and build/gen_bam."""
import json
import os
import pathlib
import subprocess
import sys

REPO = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("SAMTOOLS_OMP") or str(REPO / "samtools")
GEN_BAM = os.environ.get("GEN_BAM") or str(REPO / "build" / "gen_bam")
SHORT = ["--size", "450M", "--level", "1", "-@", "2"]
INPUTS = {  # name: arguments of gen_bam; of sort
    "short reads": (SHORT, ["-@", "2", "-m", "512M"]),
    "short reads, spilled": (SHORT, ["-@", "2", "-m", "64M"]),
    "short reads, -l 1, spilled": (SHORT, ["-@", "2", "-m", "48M", "-l", "1"]),
    "full qualities, by name": (["--size", "300M", "--qual", "full", "--level", "1", "-@", "2"], ["-n", "-@", "2", "-l", "1"]),
    "long reads, sorted, spilled": (["--size", "350M", "--long", "--sorted", "--level", "1", "-@", "2"], ["-@", "2", "-m", "56M"]),
    "many ties, one thread, -l 1": (["--size", "250M", "--ties", "--level", "1", "-@", "2"], ["-@", "1", "-l", "1"]),
}
BOUND, BOUNDED = 1.3, ("memory", "temporary")


def sort(args):
    return subprocess.run([PROGRAM, "sort", *args], check=True, capture_output=True).stdout


def compare(folder, generator, args):
    """Forecast and real values of each."""
    path, out, report = folder / "in.bam", folder / "out.bam", folder / "report.json"
    subprocess.run([GEN_BAM, *generator, "-o", path], check=True, stderr=subprocess.DEVNULL)
    command = [*args, "-o", str(out), str(path)]
    plan = json.loads(sort(["--plan=json", *command]))
    sort(["--report=%s" % report, *command])
    real = json.loads(report.read_text())
    spilled = real["stages"].get("spill_write", {}).get("bytes", 0)
    return {
        "memory": (plan["memory_bytes"], real["peak_rss_bytes"]),
        "temporary": (plan["packed_bytes"], spilled),
        "records": (plan["records"], real["records"]),
        "output": (plan["output_bytes"], out.stat().st_size),
    }


def shown(name, forecast, real):
    text = ("%.2f / %.2f M" if name == "records" else "%.0f / %.0f MB") % (forecast / 1e6, real / 1e6)
    return text + (" = %.2f" % (forecast / real) if real else "")


def main():
    if sys.argv[1:2] in (["-h"], ["--help"]):
        print(__doc__)
        return 0
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else REPO / "bench" / "work")
    folder.mkdir(parents=True, exist_ok=True)
    off, columns = [], ("memory", "temporary", "records", "output")
    print("| input | %s |\n|---|%s" % (" | ".join(columns), "---|" * len(columns)))
    for name, (generator, args) in INPUTS.items():
        row = compare(folder, generator, args)
        print("| %s, `%s` | %s |" % (name, " ".join(args), " | ".join(shown(c, *row[c]) for c in columns)), flush=True)
        for what in BOUNDED:
            forecast, real = row[what]
            if bool(forecast) != bool(real) or (real and not 1 / BOUND <= forecast / real <= BOUND):
                off.append("%s: %s" % (name, what))
    for name in ("in.bam", "out.bam", "report.json"):
        (folder / name).unlink()
    print("\nwithin bounds" if not off else "\nfurther off: " + "; ".join(off))
    return bool(off)


if __name__ == "__main__":
    sys.exit(main())
