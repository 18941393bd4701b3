#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the output of two builds: every command and format, levels, orders, memory and disk, files and pipes.

usage: test/same_bytes.py [--records] [--folder DIR] BEFORE AFTER [WORD...]    or: make gate BEFORE=path

BEFORE and AFTER are two programs. Every change that must not change the output has to pass it. It takes two to three
minutes on two idle cores. WORDs select the settings that have all of them.

Both programs get the same arguments in a folder of the same name, so that @PG lines and statistics are equal, too. It
compares exit status, standard output, and each file that appears (output, index, statistics, checksums). Standard error
is compared only if a setting requests it, because messages may change.

--records: for a change of the encoder. BGZF is inflated before it is compared. For an index of BGZF only its existence
is compared: its offsets are those of compressed bytes.

CRAM is written with one thread: with more, htslib's choice of compression depends on the timing of its threads. No
setting depends on how many threads a number of -@ means. Inputs are made by build/gen_bam and by BEFORE; files of
../shared/real are used if they exist. One line for each setting, then "N same, N differ"; status 1 if any differ, or if
BEFORE fails at what should succeed (then nothing would be compared).
"""

import argparse
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import zlib

import fixmategen
import markdupgen

ROOT = pathlib.Path(__file__).resolve().parent.parent
REAL = ROOT.parent / "shared" / "real"

# One setting a line: arguments of the program, and these words.
#   IN/x     the input x (see inputs())            <x       standard input is a pipe that gets the input x
#   ARENA    arenas so small that everything spills       2>       standard error is compared, too
#   !        the exit status is not 0               ?        it may be any, if both have the same
# Standard output is always a pipe. CRAM is written without -@, see above.
SETTINGS = """
sort -@2 -o out.bam IN/raw.bam
sort -@1 -o out.bam IN/raw.bam
sort -@3 -l0 -o out.bam IN/raw.bam
sort -@2 -l1 -o out.bam IN/raw.bam
sort -@2 -l9 -o out.bam IN/small.bam
sort -@2 -u IN/raw.bam
sort -@8 -n -o out.bam IN/raw.bam
sort -@2 -N -o out.bam IN/raw.bam
sort -@1 -n -l1 -o out.bam IN/raw.bam
sort -@2 -t NM -o out.bam IN/raw.bam
sort -@3 -t NM -n -o out.bam IN/raw.bam
sort -@2 --template-coordinate -o out.bam IN/raw.bam
sort -@2 --picard -n -o out.bam IN/raw.bam
sort -@2 -M -o out.bam IN/unmapped.bam
sort -@3 -M -l1 -o out.bam IN/raw.bam
sort -@2 -M -H -R -K 11 -o out.bam IN/unmapped.bam
sort -@2 -I IN/genome.fa -w 20 -o out.bam IN/unmapped.bam
sort -@2 -m 2M ARENA -o out.bam IN/raw.bam
sort -@3 -m 2M ARENA -n -o out.bam IN/raw.bam
sort -@2 -m 2M ARENA -l1 -o out.bam IN/raw.bam
sort -@2 -m 2M ARENA -M -o out.bam IN/unmapped.bam
sort -@2 -m 2M ARENA --template-coordinate -o out.bam IN/raw.bam
sort -@1 -m 2M ARENA -t NM -o out.bam IN/raw.bam
sort -@8 -m 2M ARENA -u -o out.bam IN/raw.bam
sort -@2 -m 64M -l1 -o out.bam IN/raw.bam
sort -@2 -O bam <raw.bam
sort -@2 -O bam -n -l1 - <raw.bam
sort -@3 -O bam -m 2M ARENA <raw.bam
sort -@2 -o out.sam IN/raw.bam
sort -@3 -o out.sam.gz IN/raw.bam
sort -@2 -o out.sam.gz -l1 -m 2M ARENA IN/raw.bam
sort -@2 -O sam -n IN/raw.bam
sort -@2 -O fastq -n IN/raw.bam
sort -@2 -O fasta -n IN/small.bam
sort -O cram,no_ref=1 -o out.cram IN/raw.bam
sort -O cram,no_ref=1 -m 2M ARENA <small.bam
sort -@2 -o out.bam IN/raw.sam
sort -@2 -o out.bam -n <raw.sam
sort -@2 -o out.bam -m 2M ARENA <raw.sam
sort -@2 -l1 -o out.bam IN/raw.sam.gz
sort -@2 -m 2M ARENA -n -o out.bam IN/raw.sam.gz
sort -@2 -o out.bam IN/raw.cram
sort -@3 -n -l1 -O bam <raw.cram
sort -@2 -m 2M ARENA -o out.bam IN/raw.cram
sort -@2 -o out.bam --input-fmt-option filter=flag.read1 IN/raw.bam
sort -@2 -n -o out.bam --input-fmt-option filter=flag.read1 IN/raw.cram
sort -@2 --write-index -o out.bam IN/raw.bam
sort -@3 --write-index -l1 -m 2M ARENA -o out.bam IN/raw.bam
sort -@2 --write-index=bai -o out.bam IN/raw.sam
sort -@2 --write-index -o out.sam.gz IN/raw.bam
sort -O cram,no_ref=1 --write-index -o out.cram IN/small.bam
sort -@2 --checksum sums --verify --no-PG -o out.bam IN/raw.bam
sort -@2 --checksum samtools:sums -m 2M ARENA -o out.bam IN/raw.bam
sort -@2 --copy-blocks -o out.bam IN/coord.bam
sort -@2 --add-input IN/raw.cram --add-input IN/coord.sam -o out.bam IN/raw.bam
sort -@2 -o out.bam IN/many.sam
sort -@2 -o out.bam IN/long.bam
sort -@2 -l1 -o out.bam IN/long.bam
sort -@2 -m 2M ARENA -o out.bam IN/long.bam
sort -@2 -o out.bam IN/full.bam
sort -@2 -l1 -n -o out.bam IN/full.bam
sort --check IN/coord.bam
sort --check -n IN/grouped.sam
sort --check IN/coord.cram
sort --check <coord.bam
sort --check IN/raw.bam !

collate -@2 -o out.bam IN/raw.bam
collate -@2 -O -u IN/raw.bam
collate -@2 -n 3 -l6 -O - <raw.sam
collate -@2 ARENA -o out.bam IN/raw.bam
collate -@2 ARENA -O -n 7 IN/raw.cram
collate -@2 --output-fmt sam -o out.sam IN/raw.sam.gz
collate -@2 -o out.bam --checksum sums IN/fix.sam
collate --output-fmt cram,no_ref=1 -o out.cram IN/small.bam
collate -@2 --output-fmt fastq -O IN/raw.bam
collate -@2 -o out.bam IN/long.bam

merge -@2 -o out.bam IN/p1.bam IN/p2.bam IN/p3.bam
merge -@2 out.bam IN/p1.bam IN/p2.cram IN/p3.sam IN/p1.sam.gz
merge -@2 -l1 -n -o out.bam IN/n1.bam IN/n2.bam IN/n3.bam
merge -@3 -N -u -o out.bam IN/a1.bam IN/a2.bam
merge -@2 -t NM -o out.bam IN/t1.bam IN/t2.bam
merge -@2 --template-coordinate -o out.bam IN/c1.bam IN/c2.bam
merge -@2 -r -c -p -o out.bam IN/p1.bam IN/p2.bam IN/p3.bam
merge -@2 -r -s 7 -O sam -o - IN/p1.bam IN/p3.sam
merge -@2 -R chr1:1000-9000 -o out.bam IN/p1.bam IN/p2.bam IN/p3.bam
merge -@2 -L IN/regions.bed -1 -o out.bam IN/p1.bam IN/p2.bam
merge -@2 -R chr2 -r -o out.bam -X IN/p1.bam IN/p2.bam IN/p1.bam.csi IN/p2.bam.csi
merge -@2 --copy-blocks -o out.bam IN/p1.bam IN/p2.bam IN/p3.bam
merge -@2 --copy-blocks -o out.bam IN/p1.bam
merge -@2 --write-index -o out.bam IN/p1.bam IN/p2.bam IN/p3.bam
merge -@2 --write-index=bai --checksum sums -o out.bam IN/p1.bam IN/p2.cram
merge -@2 -h IN/header.sam -o out.bam IN/p1.bam IN/p2.bam
merge -@2 -b IN/list -o out.bam IN/p3.sam
merge -@2 -O bam -o - - IN/p2.bam <p1.bam
merge -@2 -o out.sam.gz IN/p1.bam IN/p2.bam
merge -O cram,no_ref=1 -o out.cram IN/p1.bam IN/p2.bam
merge -@2 -n -O fastq -o out.fastq IN/n1.bam IN/n2.bam
merge -@2 --total-memory 200M -o out.bam IN/p1.bam IN/p2.bam IN/p3.bam IN/p1.bam IN/p2.bam IN/p3.bam IN/p1.bam IN/p2.bam
merge -@2 -o out.bam IN/raw.bam IN/p1.bam
merge -@2 -o out.bam IN/long.bam IN/coord.bam

fixmate -@2 IN/grouped.bam out.bam
fixmate -@2 -m IN/grouped.bam out.bam
fixmate -@2 -m -c -z all IN/fix.sam out.bam
fixmate -@2 -r -p -m IN/fix.sam out.bam
fixmate -@2 -z none -c IN/fix.sam out.sam
fixmate -@2 -z cigar,pos,aux,cigarx IN/fix.sam out.bam
fixmate -@2 -M -m IN/mods.sam out.bam
fixmate -@2 -m -u IN/grouped.sam - 
fixmate -@2 -m -O bam - - <grouped.sam
fixmate -@2 -c --output-fmt-option level=1 IN/grouped.sam.gz out.bam
fixmate -@2 -m --checksum sums IN/grouped.cram out.bam
fixmate -@2 -m IN/grouped.bam out.sam.gz
fixmate -m -O cram,no_ref=1 IN/grouped.bam out.cram
fixmate -@2 -m -O fastq IN/grouped.bam out.fastq

markdup -@2 IN/fixed.bam out.bam
markdup -@2 -S -s IN/fixed.bam out.bam 2>
markdup -@2 -S -f stats --json IN/fixed.bam out.bam
markdup -@2 -r -f stats IN/fixed.bam out.bam
markdup -@2 -d 2500 -f stats IN/fixed.bam out.bam
markdup -@2 -d 100 -t --duplicate-count -S IN/mark.sam out.bam
markdup -@2 -d 100 -m s --no-multi-dup -f stats IN/mark.sam out.sam
markdup -@2 -c -m s --include-fails -f stats IN/mark.sam out.bam
markdup -@2 --use-read-groups -f stats -r IN/mark.sam out.bam
markdup -@2 --barcode-tag BX -S -f stats IN/mark.sam out.bam
markdup -@2 --barcode-name -d 300 -f stats IN/umi.sam out.bam
markdup -@2 --barcode-rgx ':([ACGT]+)$' -t -f stats IN/umi.sam out.bam
markdup -@2 --move-umi-to-tag --barcode-name IN/umi.sam out.bam
markdup -@2 --read-coords '([!-9;-?A-~]+:[0-9]:[0-9]+):([0-9]+):([0-9]+)' --coords-order txy -d 100 -f stats IN/mark.sam out.bam
markdup -@2 -l 100 --write-index -f stats IN/fixed.bam out.bam
markdup -@2 -u - - <fixed.sam
markdup -@2 -r -O bam - - <fixed.bam
markdup -@2 -f stats IN/fixed.cram out.bam
markdup -@2 --output-fmt-option level=1 --checksum sums IN/fixed.sam.gz out.bam
markdup -@2 -f stats IN/fixed.bam out.sam.gz
markdup -O cram,no_ref=1 -f stats IN/fixed.bam out.cram
markdup -@2 -O fastq IN/fixed.bam out.fastq

sormadup -@2 -o out.bam IN/grouped.bam
sormadup -@2 -l1 -o out.bam IN/grouped.sam
sormadup -@2 -O bam <grouped.sam
sormadup -@2 -m 2M ARENA -o out.bam IN/grouped.sam
sormadup -@2 -m 2M ARENA -o out.bam IN/grouped.bam
sormadup -@2 --collate -o out.bam IN/raw.bam
sormadup -@2 -o out.bam --markdup-args '-f stats' IN/coord.bam
sormadup -@2 -m 2M ARENA --collate -l1 -o out.bam IN/raw.sam.gz
sormadup -@2 -o out.bam IN/coord.cram
sormadup -@2 --markdup-args '-r -S -d 2500 -f stats' --fixmate-args '-r -c' -o out.bam IN/grouped.bam
sormadup -@2 --collate --markdup-args '-s -t' -o out.bam IN/ties.bam 2>
sormadup -@2 --write-index --checksum sums -o out.bam IN/grouped.bam
sormadup -@2 --no-PG -u IN/grouped.cram
sormadup -@2 -o out.sam.gz IN/grouped.bam
sormadup -@2 -O sam --add-input IN/grouped.sam IN/small.bam !
sormadup -O cram,no_ref=1 -o out.cram IN/grouped.bam

sort -@2 --stats stats --flagstat flags --idxstats refs --coverage cover -o out.bam IN/raw.bam
flagstat -@2 IN/raw.bam
idxstats -@2 IN/coord.bam
coverage -@2 -Q 20 IN/coord.bam
stats -@2 IN/coord.cram

bgzip -@2 -c IN/raw.sam
bgzip -@2 -c -l1 IN/raw.sam
bgzip -@2 -c -l9 IN/genome.fa
bgzip -@2 -l0 -i -o out.gz IN/raw.sam
bgzip -@2 --binary -i -I index -o out.gz IN/raw.bam.raw
bgzip -@2 -c <raw.bam.raw
bgzip -@2 -c -l1 <raw.bam.raw
bgzip -@2 -d -c IN/raw.bam
bgzip -@2 -d -c <raw.sam.gz
bgzip -@2 -t IN/raw.sam.gz
bgzip -@2 -r -I index IN/raw.sam.gz
bgzip -@2 -g -I IN/text.gz.gzi -o out.gz IN/genome.fa
bgzip -b 1000 -s 70000 IN/text.gz
"""

# These run for each real file; "{}" is its name.
REAL_SETTINGS = """
sort -@2 -o out.bam IN/{}
sort -@2 -l1 -o out.bam IN/{}
sort -@2 -n ARENA -m 2M -o out.bam IN/{}
collate -@2 -O IN/{}
sormadup -@2 --collate --markdup-args '-S -f stats' -l1 -o out.bam IN/{} ?
"""
REAL_WHERE = {"group-umi.bam": ["sormadup -@2 --markdup-args '--barcode-tag RX -f stats' -o out.bam IN/{}"],
              "NA12878.chr22.s.bam": ["sort -@2 -o out.sam IN/{}", "sort -O cram,no_ref=1 -o out.cram IN/{}",
                                      "markdup -@2 -d 100 -f stats IN/{} out.bam ?"],
              "cra_v2.bam": ["sort -@2 -t CB -o out.bam IN/{}"],
              "libs-and-groups.bam": ["merge -@2 -o out.bam IN/{} IN/{}"],
              "simulated-supplementary.bam": ["merge -@2 --copy-blocks -r -o out.bam IN/{} IN/{}"]}


def real_files():
    return sorted(REAL.glob("*.bam")) if REAL.is_dir() else []


def settings(words):
    every = [line.strip() for line in SETTINGS.splitlines() if line.strip()]
    for path in real_files():
        for line in [*REAL_SETTINGS.split("\n"), *REAL_WHERE.get(path.name, [])]:
            if line.strip():
                every.append(line.replace("{}", path.name))
    return [line for line in every if all(word in line for word in words)]


# ------------------------------------------------------------------ inputs

def inputs(program, folder):
    def run(*args, **kw):
        subprocess.run([program, *map(str, args)], check=True, stderr=subprocess.DEVNULL, cwd=folder, **kw)

    def gen(name, *args):
        subprocess.run([ROOT / "build/gen_bam", *map(str, args), "-o", folder / name], check=True, stderr=subprocess.DEVNULL)

    def forms(stem, source, *order):
        """Writes the records of a BAM file in each format, sorted if order names an order."""
        for ending in ("bam", "sam", "sam.gz", "cram"):
            if f"{stem}.{ending}" != source:
                fmt = ending if ending != "cram" else "cram,no_ref=1"
                run("sort", "--no-PG", *order, "-O", fmt, "-o", f"{stem}.{ending}", source)

    gen("raw.bam", "--size", "40M", "--seed", 7, "--fasta", folder / "genome.fa")
    gen("small.bam", "--size", "3M", "--seed", 8)
    gen("ties.bam", "--size", "6M", "--seed", 9, "--ties")
    gen("full.bam", "--size", "12M", "--seed", 10, "--qual", "full")
    gen("long.bam", "--size", "12M", "--seed", 11, "--long", "--mods", "--sorted")
    run("merge", "--no-PG", "-O", "sam", "-o", "raw.sam", "raw.bam")
    run("merge", "--no-PG", "-o", "raw.sam.gz", "raw.bam")
    run("merge", "--no-PG", "-O", "cram,no_ref=1", "-o", "raw.cram", "raw.bam")
    forms("coord", "raw.bam")
    forms("grouped", "ties.bam", "-n")
    run("fixmate", "--no-PG", "-m", "-u", "grouped.bam", "mates.bam")
    forms("fixed", "mates.bam")
    for i, size in ((1, "4M"), (2, "3M"), (3, "1M")):
        gen(f"m{i}.bam", "--size", size, "--seed", 20 + i)
        run("sort", "--no-PG", "--write-index", "-o", f"p{i}.bam", f"m{i}.bam")
        forms(f"p{i}", f"p{i}.bam")
        for letter, order in (("n", ["-n"]), ("a", ["-N"]), ("t", ["-t", "NM"]), ("c", ["--template-coordinate"])):
            run("sort", "--no-PG", *order, "-o", f"{letter}{i}.bam", f"m{i}.bam")
    (folder / "list").write_text("../in/p1.bam\n../in/p2.bam\n")
    (folder / "regions.bed").write_text("chr1\t100\t4000\nchr2\t0\t2000\nchr2\t1500\t5000\nchrX\t10\t900\n")
    (folder / "fix.sam").write_text(fixmategen.sam(4000, 1))
    (folder / "mods.sam").write_text(fixmategen.mods_sam(1000, 2))
    (folder / "mark.sam").write_text(markdupgen.sam(3, 400))
    (folder / "umi.sam").write_text(markdupgen.sam(4, 400, umi=True))
    lines = (folder / "raw.sam").read_text().splitlines(keepends=True)
    header = [line for line in lines if line.startswith("@")]
    (folder / "header.sam").write_text("".join(header) + "@CO\tof another file\n")
    (folder / "unmapped.sam").write_text("".join(header + [unmapped(line) for line in lines[len(header):][:20000]]))
    run("sort", "--no-PG", "-u", "-n", "-o", "unmapped.bam", "unmapped.sam")
    refs = "".join(f"@SQ\tSN:s{i}\tLN:{1000 + i}\n" for i in range(3000))
    reads = "".join(f"r{i}\t0\ts{i * 7919 % 3000}\t{1 + i % 900}\t{i % 61}\t4M\t*\t0\t0\tACGT\tIIII\n" for i in range(9000))
    (folder / "many.sam").write_text("@HD\tVN:1.6\n" + refs + reads)
    (folder / "raw.bam.raw").write_bytes(inflated((folder / "raw.bam").read_bytes()))
    run("bgzip", "-i", "-o", "text.gz", "genome.fa")
    for path in real_files():
        (folder / path.name).symlink_to(path)


def unmapped(line):
    fields = line.split("\t")
    return "\t".join([fields[0], str(4 | int(fields[1]) & 0xc1), "*", "0", "0", "*", "*", "0", "0", *fields[9:]])


# ------------------------------------------------------------------ outputs

def inflated(data):
    """All members of a gzip file."""
    parts = []
    while data:
        member = zlib.decompressobj(31)
        parts.append(member.decompress(data))
        data = member.unused_data
    return b"".join(parts)


def records(name, data):
    """The bytes that --records compares: for BGZF its content."""
    if name.endswith((".csi", ".bai", ".gzi")) or name == "index":
        return b"an index" if data else b""
    return inflated(data) if data[:4] == b"\x1f\x8b\x08\x04" else data


def outputs(program, folder, name, setting, found):
    """Stores in found the program's results in folder/name: bytes by name, "exit status" among them."""
    words = shlex.split(setting)
    marks = {w for w in words if w in ("ARENA", "!", "?", "2>")}
    source = next((folder / "in" / w[1:] for w in words if w.startswith("<")), None)
    args = [w.replace("IN/", "../in/", 1) if w.startswith("IN/") else w for w in words if w not in marks and not w.startswith("<")]
    env = {k: v for k, v in os.environ.items() if not k.startswith(("SAMTOOLS_OMP", "OMP_"))}
    if "ARENA" in marks:
        env["SAMTOOLS_OMP_ARENA"] = str(3 << 20)
    out = folder / name / "run"
    out.mkdir()
    cat = subprocess.Popen(["cat", source], stdout=subprocess.PIPE) if source else None
    ran = subprocess.run(["samtools", *args], executable=program, stdin=cat.stdout if cat else subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, cwd=out)
    if cat:
        cat.stdout.close()
        cat.wait()
    found |= {p.name: p.read_bytes() for p in out.iterdir()}
    shutil.rmtree(out)
    found |= {"standard output": ran.stdout, "exit status": b"%d" % ran.returncode}
    if "2>" in marks:
        found["standard error"] = ran.stderr
    empty = not ran.stdout and len(found) == 2 and not is_silent(setting)
    if "?" not in marks and ((ran.returncode != 0) != ("!" in marks) or empty):
        found["trouble"] = b"exit status %d, %s" % (ran.returncode, ran.stderr[-300:] or b"no output")


def is_silent(setting):
    return "--check" in setting or " -t IN" in setting or "!" in setting


def difference(before, after):
    """The differences in words; empty if there are none."""
    for name in sorted(before.keys() | after.keys() - {"trouble"}):
        a, b = before.get(name), after.get(name)
        if a is None or b is None:
            return f"{name}: only {'BEFORE' if b is None else 'AFTER'} has it"
        if a != b:
            at = next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))
            return f"{name}: byte {at} of {len(a)} and {len(b)}"
    return ""


def compare(programs, folder, setting, only_records):
    """"", or the differences. Both programs run at once."""
    found = [{}, {}]
    threads = [threading.Thread(target=outputs, args=(p, folder, name, setting, f))
               for p, name, f in zip(programs, ("before", "after"), found)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if not all(found):
        return "could not run"
    if "trouble" in found[0]:
        return "BEFORE: " + found[0]["trouble"].decode(errors="replace").strip()
    if only_records:
        found = [{name: records(name, data) for name, data in f.items()} for f in found]
    trouble = found[1].pop("trouble", b"")
    return difference(*found) + (f" ({trouble.decode(errors='replace').strip()})" if trouble else "")


def without_version(program, copy):
    """A copy of the program whose version is 0.0.0: @PG has the version, with the commit of the build."""
    version = re.compile(rb"\d+\.\d+\.\d+-dev\.[0-9a-f]{8}(?:-dirty)?\0")
    copy.write_bytes(version.sub(lambda m: b"0.0.0".ljust(len(m[0]), b"\0"), program.read_bytes()))
    copy.chmod(0o755)
    return copy


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("--records", action="store_true")
    parser.add_argument("--folder", default="/dev/shm" if os.path.isdir("/dev/shm") else None)
    parser.add_argument("programs", nargs=2, type=pathlib.Path)
    parser.add_argument("words", nargs="*")
    args = parser.parse_args()
    differ, chosen = 0, settings(args.words)
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        folder = pathlib.Path(folder)
        (folder / "in").mkdir()
        for name in ("before", "after"):
            (folder / name).mkdir()
            (folder / name / "in").symlink_to("../in")
        programs = [without_version(p, folder / f"program{i}") for i, p in enumerate(args.programs)]
        inputs(programs[0], folder / "in")
        for setting in chosen:
            what = compare(programs, folder, setting, args.records)
            differ += bool(what)
            print(f"DIFFER {setting}\n       {what}" if what else f"same   {setting}", flush=True)
    print(f"{len(chosen) - differ} same, {differ} differ")
    return 1 if differ or not chosen else 0


if __name__ == "__main__":
    sys.exit(main())
