#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures README's table of seconds in one run, and writes it between its markers, with doc/speed.svg of the same
numbers: readme_table.py [--runs N] [--size SIZE] [--threads N] [--dir DIR] [--dry]

One input (build/gen_bam) and the files made from it are processed by samtools 1.24, samtools-omp, sambamba and fgumi,
in turn within each round. The numbers are medians; a warm-up round is not counted. samtools is $SAMTOOLS_124, or the
one that bench/build_samtools.sh builds; the others are used if they are on PATH. CPU time, memory and size of the
output go to DIR/readme_table.tsv. --dry writes nothing else and prints the table. `make samtools tools` first, with
nothing else running.
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
OURS, TIMEOUT = "samtools-omp", 3600
PROGRAMS = ("samtools", OURS, "sambamba", "fgumi")
DRAWN = {"`sort`": "sort, default level", "`sort -l 1`": "sort -l 1"}     # the groups of the chart


def output_of(*command):
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def version_text(path):
    p = subprocess.run([path, "--version"], capture_output=True, text=True, errors="replace", stdin=subprocess.DEVNULL)
    return p.stdout + p.stderr


def version_of(program, path):
    """Its name with its version, as the program prints it."""
    pattern = r"amtools-omp ([\d.]+\d(?:-dev)?)" if program == OURS else r"%s (\S+)" % program
    return "%s %s" % (program, re.search(pattern, version_text(path)).group(1).rstrip(","))


def find_programs():
    found = {"samtools": os.environ.get("SAMTOOLS_124") or output_of("sh", "bench/build_samtools.sh").splitlines()[-1],
             OURS: str(ROOT / "samtools"), "sambamba": shutil.which("sambamba"), "fgumi": shutil.which("fgumi")}
    return {name: path for name, path in found.items() if path}


# ---------------------------------------------------------------- command lines

def sort_lines(options, source, out, memory, *words, threads=None):
    """program -> shell command. Equal work, as far as the programs allow: sambamba spills at half of its limit, so it
    gets twice as much; fgumi counts all memory together."""
    n, temp = threads or options.threads, options.dir
    total = n * int(memory[:-1])
    level = " ".join(words)
    return {"samtools": f"{{p}} sort -@ {n} -m {memory} -T {temp}/tmp {level} -o {out} {source}",
            OURS: f"SAMTOOLS_OMP_THREADS={n} {{p}} sort -@ {n} -m {memory} -T {temp} {level} -o {out} {source}",
            "sambamba": f"{{p}} sort -t {n} -m {2 * total}{memory[-1]} --tmpdir {temp} {level} -o {out} {source}",
            "fgumi": f"{{p}} sort -i {source} -o {out} --threads {n} -m {total}{memory[-1]} -T {temp} --order coordinate"
                     + (" --compression-level 1" if level else "")}


def command_lines(options, made, source, out):
    """task -> program -> shell command, in which {p} is the program."""
    n, temp = options.threads, options.dir / "tmp"
    lanes = " ".join(map(str, made["lanes"]))

    def both(line):
        return {"samtools": line, OURS: line}

    steps = (f"{{p}} fixmate -@ {n} -m -u {made['grouped']} - | {{p}} sort -@ {n} -u -T {temp} - | "
             f"{{p}} markdup -@ {n} -T {temp} - {out}")
    side = "".join(f" --{name} {options.dir}/out.{name}" for name in ("stats", "flagstat", "idxstats"))
    five = (f"{{p}} sort -@ {n} -m 1G -T {temp} -o {out} {source} && {{p}} index -@ {n} {out} && "
            + " && ".join(f"{{p}} {name} -@ {n} {out} > {options.dir}/out.{name}" for name in ("stats", "flagstat", "idxstats")))
    return {"`sort`": sort_lines(options, source, out, "1G"),
            "`sort`, one thread": sort_lines(options, source, out, "2G", threads=1),
            "`sort -l 1`": sort_lines(options, source, out, "1G", "-l 1"),
            "`sort -m 64M`, spilled": sort_lines(options, source, out, "64M"),
            "`merge` of 8 files": {**both(f"{{p}} merge -@ {n} -f -c -p -o {out} {lanes}"),
                                   "sambamba": f"{{p}} merge -t {n} {out} {lanes}"},
            "`collate`": both(f"{{p}} collate -@ {n} -o {out} {made['sorted']} {temp}"),
            "`fixmate -m`": both(f"{{p}} fixmate -@ {n} -m {made['grouped']} {out}"),
            "`markdup`": {**both(f"{{p}} markdup -@ {n} -T {temp} {made['fixed']} {out}"),
                          "sambamba": f"{{p}} markdup -t {n} --tmpdir {options.dir} {made['fixed']} {out}"},
            "mark duplicates: `fixmate`, `sort`, `markdup`, or `sormadup`": {
                "samtools": steps, OURS: f"{{p}} sormadup -@ {n} -m 1G -T {options.dir} -o {out} {made['grouped']}"},
            "`stats`": both(f"{{p}} stats -@ {n} {made['sorted']} > {options.dir}/out.stats"),
            "sort, index, three statistics: five commands, or one": {
                "samtools": five, OURS: f"{{p}} sort -@ {n} -m 1G -T {options.dir} --write-index{side} -o {out} {source}"}}


def make_inputs(programs, options, source):
    """The inputs of the commands: 8 lanes; the source in order, grouped by name, with mates fixed."""
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
    mates = make("mates", ours, "fixmate", "-m", made["grouped"])
    made["fixed"] = make("fixed", ours, "sort", "--no-PG", mates)
    return made


# ---------------------------------------------------------------- measuring

def one_run(options, command, out):
    """Wall s, CPU s, peak MiB, and MB of output."""
    wall, usage, status = measure.measure(options.dir / "log", TIMEOUT, ["sh", "-c", command])
    if status:
        told = (options.dir / "log").read_text(errors="replace")
        sys.exit("%s\nstatus %d:\n%s" % (command, status, told))
    size = out.stat().st_size / 1e6 if out.exists() else 0
    for left in options.dir.glob("out.*"):
        left.unlink()
    return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024, size


def measured(programs, options, lines, out):
    """task -> program -> medians of wall s, CPU s, peak MiB, and MB of output."""
    found = {}
    for what, commands in lines.items():
        runs = {program: [] for program in PROGRAMS if program in programs and program in commands}
        for run in range(options.runs + 1):
            for program, numbers in runs.items():
                command = commands[program].replace("{p}", programs[program])
                numbers.append(one_run(options, command, out))
                print("%s, round %d, %s: %.2f s" % (what, run, program, numbers[-1][0]), file=sys.stderr)
        found[what] = {program: [statistics.median(column) for column in zip(*numbers[1:])] for program, numbers in runs.items()}
    return found


def cpu_name():
    names = re.findall(r"^model name\s*:\s*(.*)$", pathlib.Path("/proc/cpuinfo").read_text(), re.M)
    return names[0] if names else os.uname().machine


def system_name():
    try:
        return re.search(r'PRETTY_NAME="?([^"\n]*)', pathlib.Path("/etc/os-release").read_text()).group(1)
    except (OSError, AttributeError):
        return " ".join(os.uname()[::2][:2])


# ---------------------------------------------------------------- README

def describe(options, program):
    """The commit is the one that the program was built from; a release has none."""
    commit = re.search(r"amtools-omp [\d.]+-dev\.(\S+)", version_text(program))
    place = ", at commit %s" % commit.group(1) if commit else ""
    size = re.sub("([KMG])$", r" \1iB", options.size)
    return ("Seconds for %s of reads (uncompressed) with `-@ %d`: medians of %d interleaved rounds on %d CPUs (%s, %s), on %s%s."
            % (size, options.threads, options.runs, os.cpu_count(), cpu_name(), system_name(), datetime.date.today(), place))


def table(numbers, names, sentence):
    """A column for each program that is here."""
    others = [program for program in PROGRAMS[2:] if program in names]
    heads = ["", names["samtools"], names[OURS], "faster", *(names[program] for program in others)]
    rows = [heads, ["---"] + ["---:"] * (len(heads) - 1)]
    for what, row in numbers.items():
        seconds = {program: "%.2f" % row[program][0] if program in row else "" for program in PROGRAMS}
        rows.append([what, seconds["samtools"], "**%s**" % seconds[OURS], "%.1f x" % (row["samtools"][0] / row[OURS][0]),
                     *(seconds[program] for program in others)])
    lines = ["| %s |" % " | ".join(row) for row in rows]
    return "\n".join([*wrap(sentence), "", *lines]) + "\n"


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
    longest = max(n[0] for what in DRAWN for n in numbers[what].values())
    elements, top = [], 30
    for what, title in DRAWN.items():
        words = [svg.title(title)]
        for k, (program, (seconds, *_)) in enumerate(numbers[what].items()):
            width = bars * seconds / longest
            words += [svg.text(-8, k * row + 13, names[program], 'text-anchor="end"'),
                      '<rect x="0" y="%d" width="%.1f" height="%d" fill="%s"/>' % (
                          k * row, width, row - 3, "#0b6e4f" if program == OURS else "#b8c4ce"),
                      svg.text(width + 5, k * row + 13, "%.2f s" % seconds)]
        elements += svg.group(left, top, words)
        top += len(numbers[what]) * row + gap
    elements.append(svg.text(10, top - 14, caption))
    svg.save(path, left + bars + 60, top, elements)


def save_details(path, numbers, names):
    rows = [("what", "program", "wall_s", "cpu_s", "peak_mib", "output_mb")]
    rows += [(what, names[program], *("%.2f" % n for n in row)) for what, cells in numbers.items() for program, row in cells.items()]
    path.write_text("".join("\t".join(row) + "\n" for row in rows))


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
    os.environ["SAMTOOLS_OMP_THREADS"] = str(options.threads)     # in total, whatever -@ says for ours
    source = options.dir / ("readme-%s.bam" % options.size)
    programs = find_programs()
    names = {program: version_of(program, path) for program, path in programs.items()}
    if not source.exists():
        part = source.with_suffix(".part")
        subprocess.run([str(ROOT / "build" / "gen_bam"), "--size", options.size, "--qual", "binned", "--seed", "1",
                        "-o", str(part)], check=True)
        part.rename(source)
    out = options.dir / "out.bam"
    numbers = measured(programs, options, command_lines(options, make_inputs(programs, options, source), source, out), out)
    save_details(options.dir / "readme_table.tsv", numbers, names)
    rows = table(numbers, names, describe(options, programs[OURS]))
    if options.dry:
        print(rows, end="")
        return
    options.readme.write_text(put_table(options.readme.read_text(), rows))
    draw(options.svg, numbers, names, "wall seconds; %d threads, %s, %s" % (
        options.threads, cpu_name(), datetime.date.today()))


if __name__ == "__main__":
    main()
