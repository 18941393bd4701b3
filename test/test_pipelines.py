# SPDX-License-Identifier: MIT
"""The command lines of pipelines, unchanged: ours is `samtools` on PATH, samtools 1.24 (of pysam) comes after it.
Each line runs once with and once without ours; its files, messages and status must be the same."""

import json
import os
import re
import shutil
import subprocess
import sys

import pytest

import bamgen
from conftest import BINARY, HANG, HTSLIB_LEAKS, REPO, clean_env, needs_htslib, oracle, read_bam, same_bam, same_lines, same_records, script

pytestmark = pytest.mark.skipif(not shutil.which("bash"), reason="no bash here")

# samtools 1.24 as a program. Its sort gets one thread: with more it sometimes waits forever for its own threads.
BEHIND = """#!%s
import os, sys
from pysam.libcutils import _pysam_dispatch
command, args = sys.argv[1], sys.argv[2:]
for name in ("-@", "--threads") if command == "sort" else ():
    if name in args:
        del args[args.index(name):args.index(name) + 2]
rc, err, _ = _pysam_dispatch("samtools", command, tuple(args), catch_stdout=False, save_stdout="/dev/stdout")
sys.stderr.write(err or "")
sys.stderr.flush()
os._exit(rc & 0xFF)
""" % sys.executable

# The environment of a Slurm job, with the OpenMP settings of its other programs.
JOB = {"OMP_NUM_THREADS": "2", "OMP_PLACES": "cores", "OMP_PROC_BIND": "close", "OMP_WAIT_POLICY": "passive", "OMP_DYNAMIC": "true",
       "SLURM_JOB_ID": "4711", "SLURM_CPUS_PER_TASK": "2", "SLURM_MEM_PER_NODE": "8192", "GALAXY_SLOTS": "2", "LC_ALL": "C"}

LINES = {
    "nf-core": """
samtools cat in.bam other.bam | samtools sort -T x -@ 2 -o x.bam##idx##x.bam.bai --write-index -
samtools idxstats x.bam > x.idxstats.txt; samtools view -c x.bam chr1:1000-50000 > x.count.txt""",
    "nf-core with its newer options": """
samtools cat in.bam | samtools sort -T x --threads 1 --reference ref.fa -O bam -o x.bam##idx##x.bam.csi --write-index -
samtools view -c x.bam chr1:1000-50000 > x.count.txt""",
    "nf-core, CRAM": """
samtools cat in.bam | samtools sort --output-fmt-option no_ref=1 -T x --threads 2 -O cram -o x.cram -
samtools view --no-PG x.cram > x.sam""",
    "nf-core, one command after the other": """
samtools sort -@ 2 -o x.bam -T x in.bam; samtools index -@ 1 x.bam; samtools flagstat x.bam > x.flagstat.txt
samtools stats x.bam | grep ^SN > x.stats.txt; samtools idxstats x.bam > x.idxstats.txt""",
    "Snakemake's wrapper": "samtools sort -n -m 1M --threads 2 -T $TMPDIR/samtools_sort in.bam -o x.bam",
    "Snakemake's wrapper, index": "samtools sort -m 691M -@ 2 --write-index -T $TMPDIR/x in.bam -o x.bam##idx##x.bai; samtools idxstats -X x.bam x.bai > x.txt",
    "Galaxy": 'samtools sort -@ $GALAXY_SLOTS -m 768M -O bam -T "${TMPDIR:-.}" in.bam > x.bam',
    "Galaxy, by name and tag": "samtools sort -@ $GALAXY_SLOTS -m 3M -n -t RG -O sam -T sorttmp in.bam > x.sam",
    "WDL": "bwa mem -K 100000000 -p -v 3 -t 2 -Y ref.fa r.fq | samtools sort -@ 2 -m 1G -o x.bam -",
    "WDL, both from and to a pipe": "bwa mem ref.fa r.fq | samtools view -b - | samtools sort -T x.tmp - | samtools view -h - > x.sam",
    "CWL": "samtools sort -o x.bam -@ 2 -m 2G in.bam",
    "DRAGEN": "samtools sort -l 1 -@ 2 in.bam -o x.bam; samtools index x.bam x.bai",
    "minimap2, without a name": "bwa mem ref.fa r.fq | samtools sort -@2 -m4g -o x.bam",
    "bcbio": "bwa mem ref.fa r.fq | samtools sort -n -@ 2 -m 1G -O bam -T $TMPDIR/x-sorttmp -o x.bam /dev/stdin",
    "velocyto": "samtools sort -l 7 -m 2M -t RG -O BAM -@ 2 -o x.bam in.bam",
    "fgbio": "samtools sort -@ 2 --template-coordinate -u in.bam | samtools view -b --no-PG - > x.bam",
    "duplicates": """
samtools collate -O -u in.bam $TMPDIR/c | samtools fixmate -m -u - - | samtools sort -u -@ 2 -T $TMPDIR/s - | samtools markdup - x.bam""",
    "duplicates, by name": """
samtools sort -n -@ 2 -m 2M -T a in.bam | samtools fixmate -m - - | samtools sort -@ 2 - | samtools markdup -r - x.bam""",
    "process substitution": "samtools sort -@ 2 -o x.bam <(samtools view -b in.bam)",
    "named pipe": "mkfifo p; samtools view -b in.bam > p & samtools sort -o x.bam p; rm p",
    "many in a row": "for f in in other; do samtools sort -T $f $f.bam -o $f.sorted.bam; done; samtools merge -s 1 x.bam in.sorted.bam other.sorted.bam",
    "nf-core, merge": """
samtools sort -o 1.bam in.bam; samtools sort -o 2.bam other.bam
samtools merge --threads 1 -c -p --write-index x.bam 1.bam 2.bam
samtools idxstats x.bam > x.idxstats.txt; samtools view -c x.bam chr1:1000-50000 > x.count.txt""",
    "nf-core, merge, all CPUs": """
samtools sort -o 1.bam in.bam; samtools merge --threads 1 -@ 2 -c -p --reference ref.fa x.bam 1.bam 1.bam""",
    "nf-core, merge of one": "samtools sort -n -o 1.bam in.bam; samtools merge --threads 0 -n x.bam 1.bam",
    "Snakemake's wrapper, merge": """
samtools sort -o 1.bam in.bam; samtools sort -o 2.bam other.bam; samtools merge  -@ 1  -cp -l 1 x.bam 1.bam 2.bam""",
    "Galaxy, merge": """
samtools sort -@ $GALAXY_SLOTS -m 768M -T sorttemp -O sam -o 0.sam in.bam; ln -s in.bam 1.sam; : > x.bam
samtools merge -@ $GALAXY_SLOTS -s 1 -f -h other.bam -c x.bam 0.sam 1.sam; rm 1.sam""",
    "Galaxy, merge of a region": """
samtools sort -o 0.bam in.bam; samtools index 0.bam
samtools merge -@ $GALAXY_SLOTS -s 1 -f -R chr1:1000-50000 x.bam 0.bam 0.bam""",
    "merge of a list": """
samtools sort -o 1.bam in.bam; ls 1.bam > list.txt
samtools merge -cp -u - -b list.txt in.bam | samtools view -h - > x.sam""",
    "two at once": "samtools sort -o x.bam in.bam & first=$!; samtools sort -o y.bam other.bam; wait $first",
    "closed input": "samtools sort -@ 2 -o x.bam in.bam <&-",
    "log file": "samtools sort -@ 2 -o x.bam in.bam > x.log.txt 2> x.err.txt",
    "time": "TIMEFORMAT=; time samtools sort -o x.bam in.bam",
    "an aligner that fails": "(bwa mem ref.fa r.fq; exit 3) | samtools sort -T x -o - - > /dev/null",
    "an aligner that is cut": "bwa mem ref.fa r.fq | head -c 300000 | samtools sort -T x -o /dev/null -",
    "nothing from the aligner": "samtools view -H in.bam | samtools sort -@ 2 -o x.bam -",
    "no header, nothing": "bwa missing > /dev/null | samtools sort -o x.bam -",
    "input that is missing": "samtools sort -o x.bam missing.bam",
}

FAILING = {"an aligner that fails", "an aligner that is cut", "no header, nothing", "input that is missing"}


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """The folders with our samtools, with the other, and with the inputs."""
    base = tmp_path_factory.mktemp("pipelines")
    for folder in ("ours", "behind", "data"):
        (base / folder).mkdir()
    (base / "ours" / "samtools").symlink_to(BINARY)
    (base / "behind" / "samtools").write_text(BEHIND)
    (base / "behind" / "samtools").chmod(0o755)
    script(base / "behind" / "bwa", '[ "$1" = mem ] && cat aligned.sam\n')
    head, recs = bamgen.realistic(6000)
    for name, some in (("in", recs), ("other", recs[1::2])):
        (base / "data" / (name + ".bam")).write_bytes(bamgen.bam(head, some, "htslib"))
    (base / "data" / "ref.fa").write_text(">chr1\nACGT\n")
    (base / "data" / "ref.fa.fai").write_text("chr1\t4\t6\t4\t5\n")
    sam = subprocess.run([base / "behind" / "samtools", "view", "-h", "--no-PG", "in.bam"], cwd=base / "data",
                         stdout=subprocess.PIPE, check=True, timeout=HANG).stdout
    (base / "data" / "aligned.sam").write_bytes(sam)
    return base


def job(programs, desk, line, *folders, **env):
    """Runs a line as Nextflow does; (status, stderr, its files: name -> path)."""
    (desk / "tmp").mkdir(parents=True)
    for file in (programs / "data").iterdir():
        (desk / file.name).symlink_to(file)
    before = {p.name for p in desk.iterdir()}
    path = ":".join([*(str(programs / f) for f in folders), "/usr/local/bin:/usr/bin:/bin"])
    p = subprocess.run(["bash", "-euo", "pipefail", "-c", line], cwd=desk, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                       errors="replace", timeout=HANG, env=clean_env(**{**JOB, **HTSLIB_LEAKS, "PATH": path, "TMPDIR": str(desk / "tmp"), **env}))
    assert os.listdir(desk / "tmp") == [], "left in TMPDIR"
    assert p.stdout == ""
    return p.returncode, p.stderr, {q.name: q for q in desk.iterdir() if q.name not in before}


def plain_text(path):
    return re.sub(r"(?m)^@PG.*|^# .*", "", path.read_text())


@pytest.mark.parametrize("name", LINES)
def test_line_of_a_pipeline_ends_otherwise_than_with_samtools(programs, tmp_path, name):
    if "CRAM" in name:
        needs_htslib(1, 16)  # older ones lose read groups that the header lacks
    status, told, left = job(programs, tmp_path / "theirs", LINES[name], "behind")
    ours_status, ours_told, ours_left = job(programs, tmp_path / "ours", LINES[name], "ours", "behind")
    assert ours_status == status and (status != 0) == (name in FAILING), ours_told
    assert told or not ours_told, ours_told
    assert sorted(ours_left) == sorted(left)
    for file, theirs in left.items():
        if file.endswith(".bam"):
            same_bam(read_bam(ours_left[file]), read_bam(theirs))
            assert (b"+omp" in read_bam(ours_left[file]).text) == ("sort" in LINES[name]), "the other samtools did it"
        elif file.endswith((".sam", ".txt")):
            same_lines(plain_text(ours_left[file]), plain_text(theirs), file)
        else:
            assert file.endswith((".bai", ".csi", ".cram")) and ours_left[file].stat().st_size, file


@pytest.mark.parametrize("name", sorted(FAILING - {"an aligner that fails"}))
def test_failed_pipeline_leaves_what_looks_like_a_result(programs, tmp_path, name):
    line = LINES[name].replace("-o /dev/null", "-o x.bam")
    status, told, left = job(programs, tmp_path / "job", line, "ours", "behind")
    assert status and told and not left


# ---------------------------------------------------------------- the page for workflows


PAGE = (REPO / "doc" / "workflows.md").read_text()


@pytest.fixture(scope="module")
def installed(programs):
    """Lays the program out as make install does; the page's folder has none."""
    (programs / "opt" / "bin").mkdir(parents=True)
    (programs / "opt" / "libexec" / "samtools-omp").mkdir(parents=True)
    shutil.copy(os.path.realpath(BINARY), programs / "opt" / "bin" / "samtools-omp")
    (programs / "opt" / "libexec" / "samtools-omp" / "samtools").symlink_to("../../bin/samtools-omp")
    return programs / "opt"


@pytest.mark.release
@pytest.mark.parametrize("place", ["Snakemake", "WDL and CWL", "Galaxy", "SLURM"])
def test_line_of_the_page_for_workflows_does_not_lead_to_ours(programs, installed, tmp_path, place):
    section = PAGE.split("\n## %s\n" % place)[1].split("\n## ")[0]
    line = re.search(r"""eval "\$\([^()]*\)"[^'\n]*""", section).group().replace("/opt/samtools-omp", str(installed))
    line += "\nsamtools sort -@ 2 -o x.bam in.bam\nsamtools --version | sed -n 3p > x.txt\nsamtools view -c x.bam > count.txt"
    _, told, left = job(programs, tmp_path / "job", line, "opt/bin", "behind")
    assert told == "" and "amtools-omp" in left["x.txt"].read_text() and left["count.txt"].read_text() == "6000\n"
    assert b"+omp" in read_bam(left["x.bam"]).text


@pytest.mark.release
def test_setting_of_the_page_for_nextflow_loses_to_conda(programs, installed, tmp_path):
    """Nextflow writes env.NAME = 'VALUE' as export NAME="VALUE", after the changes that module and conda make to
    PATH."""
    settings = re.findall(r"^    env\.(\w+) = '(.*)'$", PAGE, re.M)
    assert [name for name, _ in settings] == ["PATH", "SAMTOOLS_OMP_TOTAL_MEMORY"]
    exports = "".join('export %s="%s"\n' % pair for pair in settings).replace("/opt/samtools-omp", str(installed))
    line = "PATH=%s/behind:$PATH\n%ssamtools sort -@ 2 -o x.bam in.bam\nsamtools view -c x.bam > count.txt" % (programs, exports)
    _, told, left = job(programs, tmp_path / "job", line, "behind")
    assert told == "" and b"+omp" in read_bam(left["x.bam"]).text and left["count.txt"].read_text() == "6000\n"


@pytest.mark.release
def test_variables_of_the_page_for_workflows_are_ignored(programs, tmp_path):
    """A report and threads are visible in the report; an impossible memory size is refused."""
    names = set(re.findall(r"^\| `(\w+)=", PAGE, re.M))
    assert {"SAMTOOLS_OMP_TOTAL_MEMORY", "SAMTOOLS_OMP_REPORT", "OMP_NUM_THREADS"} <= names
    line, reports = "samtools sort -o x.bam in.bam", tmp_path / "reports"
    reports.mkdir()
    values = {"SAMTOOLS_OMP_REPORT": str(reports), "OMP_NUM_THREADS": "3", "OMP_DYNAMIC": "false"}
    status, told, left = job(programs, tmp_path / "job", line, "ours", "behind", SAMTOOLS_OMP_TOTAL_MEMORY="80%", **values)
    assert (status, told, sorted(left)) == (0, "", ["x.bam"])
    same_records(read_bam(left["x.bam"]), oracle(programs / "data" / "in.bam", "--no-PG"))
    report, = (json.loads(p.read_text()) for p in reports.glob("*.json"))
    assert report["threads"] == 3
    status, told, left = job(programs, tmp_path / "no", line, "ours", "behind", SAMTOOLS_OMP_TOTAL_MEMORY="0%", **values)
    assert status == 1 and "TOTAL_MEMORY" in told and not left


# ---------------------------------------------------------------- commands that pages show


def commands_of(page, heading):
    """The lines of code of a section; lines that end with a pipe or a backslash continue in the next line."""
    section = (REPO / page).read_text().split("# %s\n" % heading)[1].split("\n## ")[0]
    code = "\n".join(line[4:] for line in section.splitlines() if line.startswith("    "))
    lines = re.sub(r"(\||\\)\n *", lambda found: found.group(1).strip("\\") + " ", code).splitlines()
    return [re.sub(" +# .*", "", line) for line in lines if re.match("samtools|bwa|bgzip-omp", line)]


SHOWN = [(page, line) for page, heading in [("README.md", "Use"), ("doc/workflows.md", "Workflows and containers"),
                                            ("doc/workflows.md", "Fewer steps"), ("doc/workflows.md", "SLURM"),
                                            ("doc/hpc.md", "Batch scripts"), ("doc/bgzip.md", "bgzip")]
         for line in commands_of(page, heading)]


def examples_of(manual):
    """The commands of EXAMPLES, block by block, as text. Those that only change PATH are tested with the installation."""
    text = (REPO / "doc" / manual).read_text().split(".SH EXAMPLES")[1]
    blocks = [block.replace("\\-", "-").replace("\\e", "\\").replace("\\(aq", "'") for block in re.findall(r"\.EX\n(.*?)\n\.EE", text, re.S)]
    return [block for block in blocks if re.match("samtools|bwa", block)]


SHOWN += [(manual, block) for manual in ["samtools-omp.1", "samtools-omp-report.5", *("samtools-omp-%s.1" % command for command in (
    "collate", "fixmate", "markdup", "merge", "sormadup", "stats"))] for block in examples_of(manual)]


@pytest.fixture(scope="module")
def inputs_of_pages(programs):
    """Files with the names that pages use: in order, with mates fixed; aligners give records grouped by name."""
    data = programs / "data"
    for name in ("bgzip-omp", "samtools-omp"):
        (programs / "ours" / name).symlink_to(BINARY)
    script(programs / "ours" / "minimap2", "cat > /dev/null; cat aligned.sam\n")
    line = "samtools collate -O -u in.bam | samtools fixmate -m -u - g.bam; samtools sort -o f.bam g.bam; samtools view -h g.bam > a.sam"
    status, told, made = job(programs, programs / "made", line, "ours", "behind")
    assert status == 0, told
    for name in ("in", "lane1", "lane2", "lane3", "fixed", "sorted", "calls"):
        (data / (name + ".bam")).write_bytes(made["f.bam"].read_bytes())
    (data / "aligned.sam").write_bytes(made["a.sam"].read_bytes())
    (data / "lanes.txt").write_text("lane1.bam\nlane2.bam\n")
    (data / "calls.vcf").write_text("".join("chr1\t%d\t.\tA\tC\n" % n for n in range(9000)))
    (programs / "made").rename(programs / "made.old")
    return programs


@pytest.mark.release
@pytest.mark.parametrize("page,line", SHOWN, ids=[line[:60] for _, line in SHOWN])
def test_command_of_a_page_does_not_run(inputs_of_pages, tmp_path, page, line):
    if "vcf.gz" in line:
        line = "cp calls.vcf c; bgzip-omp -c -i -I calls.vcf.gz.gzi c > calls.vcf.gz; " + line
    elif "out.bam |" in line:
        line = "samtools sort -o out.bam in.bam; " + line
    elif "calls.vcf" in line:
        line = "cp calls.vcf c; rm calls.vcf; mv c calls.vcf; " + line
    made = re.search(r"-o (\S+)|(?:fixmate|markdup) .* (\S+)$|$", line)
    status, told, _ = job(inputs_of_pages, tmp_path / "job", "rm -f %s; { %s\n} > shown" % (made[1] or made[2] or "", line), "ours", "behind")
    assert status in (0, 141 if line.endswith("head") else 0) and "error" not in told, told
    files = [path for path in (tmp_path / "job").iterdir() if path.is_file() and not path.is_symlink() and path.stat().st_size > 0]
    assert files, "nothing was made"
    for path in files:
        assert path.suffix != ".bam" or b"+omp" in read_bam(path).text, "another samtools made it"
