# SPDX-License-Identifier: MIT
"""Every system and library call may fail or return less than requested, one at a time: the sort then ends with one
message, exit status 1 and an unchanged folder, or with the right output. No other result is allowed.

The normal run tries a sample; `make check-faults` (FAULTS=all) tries every call."""

import errno
import gzip
import os
import random
import re
import struct
import subprocess

import pysam
import pytest

import bamgen
from conftest import BINARY, PRECIOUS, SANITIZED, clean_env, run_sort
from test_safety import snapshot
from test_spill import MANY

ALL = os.environ.get("FAULTS") == "all"
SAMPLE = 5   # faults of each kind that the normal run tries for a case
MOST = 300   # and for a case with thousands of similar calls, or calls of a library
FAULT_HANG = 60  # seconds; a run takes some 30 ms

# Several containers in the smallest file; and containers of the usual size.
CRAM = "cram,no_ref=1,seqs_per_slice=50"

# name: input ("<": by a pipe), arguments, environment
CASES = {
    "bam": ("small.bam", ["-o", "out.bam"], {}),
    "bam_index_3": ("small.bam", ["-@", 3, "--write-index", "-o", "out.bam"], {}),
    "named_index": ("small.bam", ["--write-index", "-o", "out.bam"], {"FAULT_NAMED": "1"}),
    "level_9": ("small.bam", ["-@", 2, "-l", 9, "-o", "out.bam"], {}),
    "name": ("small.bam", ["-n", "-o", "out.bam", "-T", "t"], {}),
    "tag": ("small.bam", ["-@", 2, "-t", "XT", "-o", "out.bam"], {}),
    "template": ("small.bam", ["--template-coordinate", "-o", "out.bam"], {}),
    "verify": ("small.bam", ["-@", 2, "--verify", "--checksum", "out.sum", "-o", "out.bam"], {}),
    "minimiser": ("small.bam", ["-M", "-I", "genome.fa", "-o", "out.bam"], {}),
    "two_inputs": ("small.bam", ["--add-input", "small.sam", "-o", "out.bam"], {}),
    "renamed_programs": ("program1.bam", ["-@", 2, "--add-input", "program2.bam", "-o", "out.bam"], {}),
    "filtered": ("small.bam", ["-@", 2, "--input-fmt-option", "filter=mapq >= 0", "-o", "out.bam"], {}),
    "sam_to_cram": ("small.sam", ["-@", 2, "-O", CRAM, "--write-index", "-o", "out.cram"], {}),
    "cram_to_sam": ("small.cram", ["-@", 2, "-o", "out.sam"], {}),
    "cram_by_pipe": ("<small.cram", ["-@", 3, "-o", "out.bam"], {}),
    "cram_alone": ("<small21.cram", ["-O", CRAM, "-o", "out.cram"], {}),
    "cram_to_pipe": ("small21.cram", ["-@", 3, "-O", CRAM], {}),
    "bam_to_cram": ("full.bam", ["-O", CRAM + ",version=2.1", "--write-index", "-o", "out.cram"], {}),
    "sam_to_pipe": ("small.bam", ["-@", 3, "-O", "sam"], {}),
    "sam_gz": ("small.bam", ["-@", 3, "-o", "out.sam.gz"], {}),
    "sam_gz_index": ("small.bam", ["-@", 3, "--write-index", "-o", "out.sam.gz"], {}),
    "gzip_sam": ("small.sam.gz", ["-@", 2, "-O", "sam", "-o", "out.sam"], {}),
    "check_cram": ("sorted.cram", ["--check", "-@", 2], {}),
    "standard_output": ("small.bam", [], {}),
    "check": ("sorted.bam", ["--check", "--checksum=-"], {}),
    "check_3": ("sorted.sam", ["--check", "-@", 3], {}),
    "spilled_named": ("large.bam", ["-@", 2, "-o", "out.bam"], MANY | {"FAULT_NAMED": "1"}),
    "spilled": ("large.bam", ["-o", "out.bam"], MANY),
    "spilled_3": ("large.bam", ["-@", 3, "-n", "--write-index", "-o", "out.bam"], MANY),
    "merged_twice": ("larger.bam", ["-@", 2, "-l", 1, "-o", "out.bam"], MANY),
    "spilled_standard_output": ("large.bam", ["-@", 2, "-t", "XT"], MANY),
    "merge": ("sorted.bam", ["merge", "-@", 2, "-f", "-o", "out.bam", "sorted.sam", "sorted.bam"], {}),
    "merge_joined": ("program1.bam", ["merge", "-r", "-h", "small.sam", "-f", "-o", "out.bam", "program2.bam"], {}),
    "merge_index": ("sorted.cram", ["merge", "-@", 3, "--write-index", "-f", "-o", "out.bam", "sorted.bam"], {}),
    "merge_regions": ("sorted.cram", ["merge", "-@", 2, "-L", "two.bed", "-f", "-o", "out.bam"], {}),
    "markdup": ("out.bam", ["markdup", "-@", 2, "-t", "-d", 9, "-s", "sorted.bam"], {}),
    "markdup_spilled": ("out.bam", ["markdup", "-@", 2, "-S", "ordered.bam"], MANY),
    "markdup_losses": ("out.bam", ["markdup", "-t", "-d", 9, "--read-coords", "d([0-9]*([0-9]))", "--coords-order", "xy",
                                   "ordered.bam"], {"SAMTOOLS_OMP_ARENA": "100000"}),
    "counted": ("small.bam", ["-@", 2, "--stats", "out.stats", "--flagstat", "out.flags", "--idxstats", "out.refs", "--coverage",
                              "out.cover", "-o", "out.bam"], {}),
    "counted_sam": ("small.bam", ["-@", 2, "--flagstat", "out.flags", "--idxstats", "-", "--stats-args", "-p", "--stats", "out.stats",
                                  "-o", "out.sam"], {}),
    "counted_split": ("program1.bam", ["-@", 2, "--stats", "out.stats", "--stats-args", "-S PG", "-o", "out.bam"], {}),
    "flagstat": ("small.bam", ["flagstat", "-@", 2], {}),
    "idxstats": ("sorted.sam", ["idxstats", "-@", 2], {}),
    "coverage": ("sorted.cram", ["coverage", "-@", 2, "-Q", 20, "-o", "out.cover"], {}),
    "stats": ("sorted.cram", ["stats", "-@", 2, "-p"], {}),
    "merge_unsorted": ("small.bam", ["merge", "-@", 2, "-n", "sorted.bam", "-O", "sam", "-o", "-"], {}),
}
MEMORY = ["malloc", "calloc", "realloc", "aligned_alloc", "strdup", "strndup", "asprintf", "mmap"]
TRANSFERS = ["read", "pread", "write", "writev", "pwrite", "pwritev", "send"]
ERRORS = {"pthread_create": errno.EAGAIN, "socketpair": errno.EMFILE, "dup": errno.EMFILE, "fopen": errno.EMFILE, "fallocate": errno.EOPNOTSUPP,
          "fchown": errno.EPERM, "fchmod": errno.EPERM, "madvise": errno.EINVAL, "posix_fadvise": errno.EINVAL}
TOLD = re.compile(r"^samtools (?:sort|merge|markdup|stats|flagstat|idxstats|coverage): (?!warning: ).", re.M)


def reads(n, qual=None):
    """Records with everything that the orders and formats use; CRAM 2 only with qualities."""
    r = bamgen.rng("faults")
    for i in range(n):
        seq = "".join(r.choices("ACGT", k=50))
        mapped = r.random() < .8
        yield bamgen.record("read%d" % r.randrange(n), r.choice((0x41, 0x81) if mapped else (77, 141)),
                            r.randrange(3) if mapped else -1, r.randrange(900) if mapped else -1, seq=seq,
                            cigar=[(50, "M")] if mapped else [], bin=None if mapped else 4680, qual=qual,
                            tags=b"MCZ50M\0XTC" + bytes([r.randrange(9)]))


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Small and large, in three formats."""
    folder = tmp_path_factory.mktemp("faults")
    for name, n in ("small", 300), ("large", 9000), ("larger", 25000):
        (folder / (name + ".bam")).write_bytes(bamgen.bgzf(bamgen.header() + b"".join(reads(n)), size=4093 * 7, level=1))
    (folder / "full.bam").write_bytes(bamgen.bgzf(bamgen.header() + b"".join(reads(300, bytes([30] * 50))), level=1))
    for call in 1, 2:                            # and two, one of whose programs gets another ID, in all records' tags
        head = bamgen.header(bamgen.sq_text(bamgen.REFS) + "@PG\tID:p\tCL:%d\n@CO\tone\n" % call)
        tagged = [struct.pack("<I", len(rec) - 4 + 5) + rec[4:] + b"PGZp\0" for rec in reads(300)]
        (folder / ("program%d.bam" % call)).write_bytes(bamgen.bgzf(head + b"".join(tagged), level=1))
    (folder / "genome.fa").write_text(">a\n%s\n" % "".join(bamgen.rng("genome").choices("ACGT", k=2000)))
    for args in (["-o", "small.sam"], ["-O", CRAM, "-o", "small.cram"], ["-o", "sorted.bam"], ["-o", "sorted.sam"],
                 ["-O", CRAM, "-o", "sorted.cram"]):
        assert run_sort(["--no-PG", *args, "small.bam"], cwd=folder).returncode == 0
    assert run_sort(["--no-PG", "-O", CRAM + ",version=2.1", "-o", "small21.cram", "full.bam"], cwd=folder).returncode == 0
    assert run_sort(["--no-PG", "-o", "ordered.bam", "large.bam"], cwd=folder).returncode == 0
    pysam.index(str(folder / "sorted.cram"))
    (folder / "two.bed").write_text("chr1\t10\t500\nchr2\t0\t9\nchr2\t300\t900\n")
    (folder / "small.sam.gz").write_bytes(gzip.compress((folder / "small.sam").read_bytes()))
    return folder


def cram_records(path):
    try:
        with pysam.AlignmentFile(path, check_sq=False) as file:
            return [r.to_string() for r in file]
    except (OSError, ValueError) as e:
        return str(e)


def contents(path):
    """Bytes; for CRAM, which htslib's threads write in several ways, the records, and for its index the parts that
    do not depend on sizes."""
    if not path.exists() or path.read_bytes() == PRECIOUS:
        return PRECIOUS
    if path.suffix == ".cram":
        return cram_records(path)
    if path.suffix == ".crai":
        return [line.split()[:3] for line in gzip.decompress(path.read_bytes()).splitlines()]
    return path.read_bytes()


class Case:
    """One command, in a separate folder, with older files in place of its outputs."""

    def __init__(self, name, inputs, folder, shim):
        self.shim = shim
        source, self.args, self.env = CASES[name]
        self.folder = folder
        for path in inputs.iterdir():
            os.link(path, folder / path.name)
        self.inputs = os.listdir(folder)
        self.feed = (folder / source[1:]).read_bytes() if source[0] == "<" else None
        command = next((a for a in self.args if a in ("merge", "markdup", "flagstat", "idxstats", "coverage", "stats")), "sort")
        words = [str(a) for a in self.args if a != command]
        writes = command in ("sort", "merge", "markdup")
        self.args = [BINARY, command, *["--no-PG"] * writes, *words, *([] if self.feed else [source])]
        self.outputs = sorted(a for a in self.args if a.startswith("out."))
        if "--write-index" in self.args:
            self.outputs.append(self.outputs[0] + (".crai" if "cram" in self.outputs[0] else ".csi"))
        if name == "counted_split":
            self.outputs.append("out.bam_p.bamstat")
        self.expected = self.go({})[:2]
        assert self.expected[0] == 0, self.expected
        self.many = int(self.counts["pread"]) > 300
        assert self.many == (source == "larger.bam") or name == "markdup_losses", self.counts

    def reset(self):
        for path in self.folder.iterdir():
            if path.name not in self.inputs:
                path.unlink()
        for name in self.outputs:
            (self.folder / name).write_bytes(PRECIOUS)

    def go(self, fault):
        """Exit status, outputs, stderr, and whether the fault struck."""
        self.reset()
        self.before = snapshot(self.folder)
        report = self.folder.parent / "report"
        report.unlink(missing_ok=True)
        env = clean_env(OMP_WAIT_POLICY="passive", FAULT_REPORT=str(report), **self.shim, **self.env, **fault)
        if "FAULT_FROM" in fault:
            env["ASAN_OPTIONS"] += ":detect_leaks=0"  # libraries leak when their calls fail
        stdin = {"input": self.feed} if self.feed else {"stdin": subprocess.DEVNULL}
        p = subprocess.run(self.args, cwd=self.folder, capture_output=True, env=env, timeout=FAULT_HANG, **stdin)
        self.counts = dict(line.split() for line in report.read_text().splitlines()) if report.exists() else {}
        return p.returncode, self.written(p.stdout, p.returncode), p.stderr.decode(errors="replace"), self.counts.get("struck") != "0"

    def written(self, stdout, status):
        if stdout.startswith(b"CRAM") and status == 0:
            path = self.folder.parent / "stdout.cram"
            path.write_bytes(stdout)
            stdout = cram_records(path)
        return [stdout] + [contents(self.folder / f) for f in self.outputs]

    def try_fault(self, fault, survives=False, own=True):
        """Returns the error in the handling of a fault, if there is any."""
        try:
            status, outputs, err, _ = self.go(fault)
        except subprocess.TimeoutExpired:
            assert not own, fault
            status, outputs, err = None, None, "it hangs"
        after = snapshot(self.folder)
        if (status, outputs) == self.expected:
            extra = 1 if fault["FAULT_CALL"] == "unlink" and "FAULT_NAMED" in self.env else 0   # could not be removed
            return None if len(set(after) - set(self.before)) <= extra else "left %s" % (set(after) ^ set(self.before))
        if survives:
            return "does not survive: %d %s" % (status, err)
        if status == 0:
            return "wrong output: %s" % err
        # A write of htslib goes into our pipe and does not really fail; its threads would crash.
        if not own or (status < 0 and fault["FAULT_CALL"] == "write" and CRAM in self.args and "-@" in self.args):
            return None if after == self.before else "the folder changed: %s, %d %s" % (set(after) ^ set(self.before), status, err)
        if status != 1:
            return "exit status %d: %s" % (status, err)
        # OpenMP's runtime exits when a thread cannot be created, although it could a moment ago.
        told = TOLD.findall(err) or fault["FAULT_CALL"] == "pthread_create" and re.findall("^libgomp: ", err, re.M)
        if len(told) != 1:
            return "%d messages: %s" % (len(told), err)
        if fault["FAULT_CALL"] == "rename" and len(self.outputs) > 1:    # files beside the data are removed without them
            data = dict(zip(self.args, self.args[1:])).get("-o", self.outputs[0])
            for name in set(self.outputs) - {data}:
                after.setdefault(name, self.before[name])
        return None if after == self.before else "the folder changed: %s" % (set(after.items()) ^ set(self.before.items()))


@pytest.fixture(params=CASES)
def case(request, inputs, tmp_path, fault_shim):
    (tmp_path / "cwd").mkdir()
    return Case(request.param, inputs, tmp_path / "cwd", fault_shim)


def errors_of(call):
    if call in MEMORY:
        return [errno.ENOMEM]
    if call in ERRORS:
        return [ERRORS[call]]
    if call in TRANSFERS:
        return [errno.EIO, "end" if "read" in call else errno.ENOSPC]
    return [errno.EIO]


def faults(case, calls, errors, **more):
    """Every call of these kinds in the last run, or a sample of them."""
    found = [{"FAULT_CALL": call, "FAULT_AT": str(n), "FAULT_ERROR": str(e), **more}
             for call, n in case.counts.items() if call in calls
             for e in errors(call) for n in range(1, int(n) + 1)]
    most = SAMPLE if not ALL else MOST if case.many else len(found)
    r = random.Random(len(found))
    return found if len(found) <= most else r.sample(found, most)


def walk(case, found, **kw):
    wrong = ["%s: %s" % (f, w) for f in found for w in [case.try_fault(f, **kw)] if w]
    assert not wrong, "%d of %d\n%s" % (len(wrong), len(found), "\n".join(wrong[:20]))


def test_failing_call_crashes_or_leaves_something(case):
    walk(case, faults(case, set(case.counts) - {*MEMORY, "libdeflate_deflate_compress", "struck"}, errors_of))


def test_failing_allocation_crashes_or_leaves_something(case):
    walk(case, faults(case, MEMORY, errors_of))


def test_interrupted_transfer_fails(case):
    walk(case, faults(case, TRANSFERS, lambda _: [errno.EINTR]), survives=True)
    walk(case, [{"FAULT_CALL": c, "FAULT_AT": "1", "FAULT_EVERY": "2", "FAULT_ERROR": str(errno.EINTR)} for c in TRANSFERS],
         survives=True)


def test_short_transfer_loses_data(case):
    walk(case, faults(case, TRANSFERS, lambda _: ["short"]), survives=True)
    walk(case, [{"FAULT_CALL": c, "FAULT_AT": "1", "FAULT_EVERY": "1", "FAULT_ERROR": "short"} for c in TRANSFERS],
         survives=True)


def library_errors_of(call):
    """The early end is omitted: SAM has no end marker that would be missed."""
    return [e for e in errors_of(call) if e != "end"]


LIBRARY_CALLS = ["read", "write", "open", "close", "fopen", "pthread_create"]


@pytest.mark.skipif(SANITIZED, reason="libraries leak, and tell it of their own accord")
@pytest.mark.parametrize("library", ["libhts.so", "all"])
def test_failing_allocation_of_a_library_leaves_something(case, library):
    """Without memory htslib sometimes crashes, or waits forever. Only the sort is lost."""
    case.go({"FAULT_FROM": library})
    case.many = True
    walk(case, faults(case, MEMORY, errors_of, FAULT_FROM=library), own=False)


@pytest.mark.skipif(SANITIZED, reason="libraries leak, and tell it of their own accord")
@pytest.mark.parametrize("case", ["verify", "spilled_named", "spilled_3", "merged_twice"], indirect=True)
def test_failing_allocation_behind_the_last_record_changes_a_file(case):
    """The OpenMP runtime exits when it has no memory for a task: no output may have its name by then."""
    case.go({"FAULT_FROM": "all"})
    n = int(case.counts["malloc"])
    walk(case, [{"FAULT_CALL": "malloc", "FAULT_AT": str(at), "FAULT_ERROR": str(errno.ENOMEM), "FAULT_FROM": "all"}
                for at in range(n - 40, n + 1)], own=False)


def test_failing_call_of_a_library_crashes_or_leaves_something(case):
    """The calls are htslib's reads and writes, and those that create threads of libgomp and htslib. htslib waits forever
    for a thread that it needs for the blocks of SAM.gz, so we check a moment before that threads can be created."""
    case.go({"FAULT_FROM": "all"})
    calls = [c for c in LIBRARY_CALLS if c != "pthread_create" or "out.sam.gz" not in case.outputs]
    walk(case, faults(case, calls, library_errors_of, FAULT_FROM="all"))
