#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures README's table of numbers in one run, and writes it between its markers, with doc/speed.svg of the same
numbers: readme_table.py [--runs N] [--size SIZE] [--threads N] [--dir DIR] [--dry]

One input (build/gen_bam), by samtools-omp, samtools 1.24 and sambamba, in turn within each round: at the default level,
-l 1 and -u, in memory (-m 1G) and on disk (-m 64M); and as much by the other commands. The numbers are medians; a
warm-up round does not count. samtools is $SAMTOOLS_124, or what bench/build_samtools.sh builds; sambamba is left out
where there is none. --dry writes nothing and prints the table. `make samtools tools` first, with nothing else running.
"""
import argparse
import datetime
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys

import measure
import svg

ROOT = pathlib.Path(__file__).resolve().parent.parent
BEGIN, END = "<!-- numbers: bench/readme_table.py -->\n", "<!-- end of numbers -->\n"
LEVELS = {"default": [], "`-l 1`": ["-l", "1"], "`-u`": ["-u"]}
MEMORY = {"in memory": "1G", "on disk": "64M"}
OURS = "samtools-omp"
TIMEOUT = 3600


def output_of(*command):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def version_of(program, path):
    """Its name with its version, as the program tells it."""
    p = subprocess.run([path, "--version"], capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
    text = p.stdout + p.stderr
    pattern = {OURS: r"amtools-omp (\S+)", "samtools": r"samtools (\S+)", "sambamba": r"sambamba (\S+)"}[program]
    return "%s %s" % (program, re.search(pattern, text).group(1).rstrip(","))


def find_programs():
    found = {OURS: str(ROOT / "samtools"),
             "samtools": os.environ.get("SAMTOOLS_124") or output_of("sh", "bench/build_samtools.sh").splitlines()[-1],
             "sambamba": shutil.which("sambamba")}
    return {name: path for name, path in found.items() if path}


def command_of(program, path, level, memory, threads, source, out):
    """Equal work, as far as the programs allow. sambamba spills when half of its limit is full, so it gets twice."""
    if program != "sambamba":
        return [path, "sort", "-@", str(threads), "-m", memory, "-T", str(out.parent / "tmp"), *LEVELS[level],
                "-o", str(out), str(source)]
    number, unit = int(memory[:-1]), memory[-1]
    words = ["-l", "0"] if level == "`-u`" else LEVELS[level]
    return [path, "sort", "-t", str(threads), "-m", "%d%s" % (2 * threads * number, unit), "--tmpdir", str(out.parent), *words,
            "-o", str(out), str(source)]


def other_commands(programs, options, inputs):
    """name -> program -> command line; a program that has no such command is left out."""
    def each(words, program, tail, threads="-@"):
        if program not in programs:
            return {}
        return {program: [programs[program], *words, threads, str(options.threads), *map(str, tail)]}

    out = options.dir / "out.bam"
    lines = {"merge of 8 files": (["merge", "-f", "-c", "-p"], ["-o", out, *inputs["lanes"]]),
             "collate": (["collate"], ["-o", out, inputs["sorted"], options.dir / "tmp"]),
             "`fixmate -m`": (["fixmate", "-m"], [inputs["grouped"], out])}
    if "fixed" in inputs:
        lines["markdup"] = ["markdup"], ["-T", options.dir / "tmp", inputs["fixed"], out]
    found = {name: {**each(words, OURS, tail), **each(words, "samtools", tail)}
             for name, (words, tail) in lines.items()}
    found["merge of 8 files"].update(each(["merge"], "sambamba", [out, *inputs["lanes"]], "-t"))
    if "fixed" in inputs:
        words = ["markdup", "--tmpdir", str(options.dir)]
        found["markdup"].update(each(words, "sambamba", [inputs["fixed"], out], "-t"))
    return found


def make_other_inputs(programs, options, source):
    """What merge, collate, fixmate and markdup read: 8 lanes; the source in order, grouped by name, mates told."""
    def make(name, *command):
        path = options.dir / ("readme-%s.%s.bam" % (options.size, name))
        if not path.exists():
            part = path.with_suffix(".part")
            how = [] if "fixmate" in command else ["-o"]
            subprocess.run([*map(str, command), *how, str(part)], check=True, capture_output=True)
            part.rename(path)
        return path

    ours, number, unit = programs[OURS], *re.fullmatch(r"(\d+)([KMG]?)", options.size).groups()
    lane_size = int(number) * 1024 ** " KMG".index(unit or " ") // 8
    generator = ROOT / "build" / "gen_bam"
    made = {"lanes": [make("lane%d" % n, generator, "--size", lane_size, "--sorted", "--seed", n) for n in range(1, 9)],
            "sorted": make("sorted", ours, "sort", "--no-PG", source)}
    made["grouped"] = make("grouped", ours, "collate", "--no-PG", made["sorted"])
    alone = dict(os.environ, SAMTOOLS_UPSTREAM="/nonexistent/samtools")
    if subprocess.run([ours, "markdup", "--help"], env=alone, capture_output=True).returncode == 0:
        mates = make("mates", ours, "fixmate", "-m", made["grouped"])
        made["fixed"] = make("fixed", ours, "sort", "--no-PG", mates)
    return made


def one_run(options, command, out):
    """Wall s, CPU s, peak MiB, and MB of output."""
    wall, usage, status = measure.measure(options.dir / "log", TIMEOUT, command)
    if status:
        told = (options.dir / "log").read_text(errors="replace")
        sys.exit("%s\nstatus %d:\n%s" % (" ".join(command), status, told))
    numbers = (wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, out.stat().st_size / 1e6)
    for left in out, pathlib.Path(str(out) + ".bai"):
        left.unlink(missing_ok=True)
    return numbers


def measured(programs, options, source):
    """(memory or "", level or command, program) -> medians of wall s, CPU s, peak MiB, and MB of output."""
    found, out = {}, options.dir / "out.bam"
    jobs = {(where, level): {program: command_of(program, path, level, memory, options.threads, source, out)
                             for program, path in programs.items()}
            for where, memory in MEMORY.items() for level in LEVELS}
    others = other_commands(programs, options, make_other_inputs(programs, options, source))
    jobs.update({("", name): commands for name, commands in others.items()})
    for (where, what), commands in jobs.items():
        for run in range(options.runs + 1):
            for program, command in commands.items():
                numbers = one_run(options, command, out)
                print("%s, %s, round %d, %s: %.2f s" % (where, what, run, program, numbers[0]), file=sys.stderr)
                if run > 0:
                    found.setdefault((where, what, program), []).append(numbers)
    return {key: [statistics.median(column) for column in zip(*runs)] for key, runs in found.items()}


def cpu_name():
    names = re.findall(r"^model name\s*:\s*(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    return names[0] if names else os.uname().machine


def system_name():
    try:
        return re.search(r'PRETTY_NAME="?([^"\n]*)', pathlib.Path("/etc/os-release").read_text()).group(1)
    except (OSError, AttributeError):
        return " ".join(os.uname()[::2][:2])


def describe(options, numbers, names):
    ours, theirs = numbers["in memory", "default", OURS], numbers["in memory", "default", "samtools"]
    bytes_in = numbers["in memory", "`-u`", OURS][3] / 1e3
    commit = output_of("git", "rev-parse", "--short", "HEAD")
    if output_of("git", "status", "--porcelain", "--untracked-files=no"):
        commit += " and what was not committed"
    first = ("`sort` of %.2f GB of reads, uncompressed, `-@ %d`, default level: **%.2f s** where %s takes **%.2f s**."
             % (bytes_in, options.threads, ours[0], names["samtools"], theirs[0]))
    second = ("Medians of %d rounds in turn on %d CPUs (%s, %s), on %s, at commit %s. In memory: `-m 1G`; on disk: `-m 64M`."
              % (options.runs, os.cpu_count(), cpu_name(), system_name(), datetime.date.today(), commit))
    return first, second


def table(numbers, names, sentences):
    lines = [*wrap(sentences[0]), "", *wrap(sentences[1]), "",
             "| level | | wall s | CPU s | peak RSS MiB | output MB | on disk: wall s | CPU s | peak RSS MiB |",
             "|---|---|---:|---:|---:|---:|---:|---:|---:|"]
    for level in LEVELS:
        for n, (program, name) in enumerate(names.items()):
            bold = "**" if program == OURS else ""
            wall, cpu, rss, size = numbers["in memory", level, program]
            disk = numbers["on disk", level, program]
            lines.append("| %s | %s%s%s | %s%.2f%s | %.1f | %.0f | %.1f | %s%.2f%s | %.1f | %.0f |" % (
                "" if n else level, bold, name, bold, bold, wall, bold, cpu, rss, size, bold, disk[0], bold, disk[1], disk[2]))
    lines += ["", "The other commands, of as much, at the default level:", "",
              "| command | | wall s | CPU s | peak RSS MiB | output MB |", "|---|---|---:|---:|---:|---:|"]
    for where, what, program in numbers:
        if not where:
            bold = "**" if program == OURS else ""
            wall, cpu, rss, size = numbers[where, what, program]
            lines.append("| %s | %s%s%s | %s%.2f%s | %.1f | %.0f | %.1f |" % (
                what if bold else "", bold, names[program], bold, bold, wall, bold, cpu, rss, size))
    return "\n".join(lines) + "\n"


def wrap(sentence, width=118):
    lines = [""]
    for word in sentence.split():
        if len(lines[-1]) + len(word) >= width:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    return lines


def put_table(text, rows):
    """README with the new table between its markers."""
    if text.count(BEGIN) != 1 or text.count(END) != 1:
        sys.exit("README.md lacks its two markers")
    before, rest = text.split(BEGIN)
    return before + BEGIN + rows + END + rest.split(END)[1]


def draw(path, numbers, names, caption):
    left, bars, row, gap = 150, 420, 18, 42
    longest = max(n[0] for n in numbers.values())
    elements, top = [], 30
    for where in MEMORY:
        for level in LEVELS:
            words = [svg.title("%s, %s" % (level.strip("`") if level[0] == "`" else "default level", where))]
            for k, (program, name) in enumerate(names.items()):
                seconds = numbers[where, level, program][0]
                width = bars * seconds / longest
                words += [svg.text(-8, k * row + 13, name, 'text-anchor="end"'),
                          '<rect x="0" y="%d" width="%.1f" height="%d" fill="%s"/>' % (
                              k * row, width, row - 3, "#0b6e4f" if program == OURS else "#b8c4ce"),
                          svg.text(width + 5, k * row + 13, "%.2f s" % seconds)]
            elements += svg.group(left, top, words)
            top += len(names) * row + gap
    elements.append(svg.text(10, top - 14, caption))
    svg.save(path, left + bars + 60, top, elements)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--size", default="1G", help="of the input, uncompressed")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--dir", type=pathlib.Path, default=ROOT / "bench" / "work")
    parser.add_argument("--readme", type=pathlib.Path, default=ROOT / "README.md")
    parser.add_argument("--svg", type=pathlib.Path, default=ROOT / "doc" / "speed.svg")
    parser.add_argument("--dry", action="store_true")
    options = parser.parse_args()
    options.dir.mkdir(parents=True, exist_ok=True)
    os.environ["SAMTOOLS_OMP_THREADS"] = str(options.threads)     # in all, whatever -@ says to ours
    source = options.dir / ("readme-%s.bam" % options.size)
    programs = find_programs()
    names = {program: version_of(program, path) for program, path in programs.items()}
    if not source.exists():
        part = source.with_suffix(".part")
        subprocess.run([str(ROOT / "build" / "gen_bam"), "--size", options.size, "--qual", "binned", "--seed", "1",
                        "-o", str(part)], check=True)
        part.rename(source)
    numbers = measured(programs, options, source)
    sentences = describe(options, numbers, names)
    rows = table(numbers, names, sentences)
    if options.dry:
        print(rows, end="")
        return
    options.readme.write_text(put_table(options.readme.read_text(), rows))
    draw(options.svg, numbers, names, "wall seconds; %d threads, %s, %s" % (
        options.threads, cpu_name(), datetime.date.today()))


if __name__ == "__main__":
    main()
