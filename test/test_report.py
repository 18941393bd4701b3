# SPDX-License-Identifier: MIT
"""--report, --trace and --progress: numbers that add up, pages that need no other file, and no output unless
requested."""

import concurrent.futures
import gzip
import html.parser
import json
import os
import pty
import re
import signal
import subprocess
import time

import pytest

import bamgen
from conftest import BINARY, HANG, PRECIOUS, REPO, SANITIZED, blocks, clean_env, limit_on, needs_htslib, only_cpus, run, run_sort, sorted_bytes
from test_safety import feed, refused, snapshot, sort_in_public, start, until

FAST = ("--no-PG", "-l", "1")
SMALL_ARENA = {"SAMTOOLS_OMP_ARENA": "262144"}
IO = ("read", "write", "spill_write", "spill_read")


def reported(folder, args, name="r.json", **kw):
    """The report of a sort into folder/o.bam that has to succeed."""
    p = run_sort([*FAST, "--report=" + name, "-o", "o.bam", *args], cwd=folder, **kw)
    assert p.returncode == 0, p.stderr
    text = (folder / name).read_text()
    return json.loads(text) if name.endswith(".json") else text


@pytest.fixture(params=[1, 2, 5], ids=lambda n: "t%d" % n)
def team(request):
    return request.param


# ---------------------------------------------------------------- numbers


def check_sums(r):
    """Times of a thread add up to the wall time, and those of threads to the stages'."""
    for slot in r["slots"]:
        assert sum(slot["stages"].values()) == pytest.approx(r["wall_s"], abs=1e-4), slot["name"]
    for name, stage in r["stages"].items():
        total = sum(s["stages"].get(name, 0) for s in r["slots"])
        assert stage["s"] == pytest.approx(total, abs=1e-4), name
        assert 0 <= stage["blocked_s"] <= stage["s"]
        assert 0 <= stage["critical_s"] <= stage["s"] + 1e-6
        most = max(s["stages"].get(name, 0) for s in r["slots"])
        if name in IO and stage["s"] > 0:            # some thread is in it, and a single one at least that long
            assert most - 1e-6 <= stage["any_thread_s"] <= stage["s"] + 1e-6
            assert stage["any_thread_s"] <= r["wall_s"]
            rate = stage["mb_per_s_all_threads"]
            assert rate == pytest.approx(stage["bytes"] / 1e6 / stage["any_thread_s"], rel=0.05) if stage["bytes"] else rate is None
        elif name not in (*IO, "convert"):
            assert stage["any_thread_s"] is stage["mb_per_s_all_threads"] is None
    works = sum(s["s"] for s in r["stages"].values() if s["kind"] != "rest")
    assert works <= r["wall_s"] * r["threads"] + 1e-3
    everything = r["wall_s"] * r["threads"]
    without_queue = works - (r["run_queue_s"] or 0)
    assert r["busy_share"] == pytest.approx(min(max(without_queue, r["user_s"] + r["system_s"]), works) / everything, abs=0.01)
    assert r["io_share"] == pytest.approx(sum(r["stages"][s]["s"] for s in IO) / works, abs=0.01)


def test_threads_that_are_not_allowed_are_counted_as_idle(realistic_bam, tmp_path):
    r = reported(tmp_path, ["-@", 4, realistic_bam], env={"OMP_THREAD_LIMIT": "2"})
    assert r["threads"] == 2
    check_sums(r)


@pytest.mark.skipif(SANITIZED, reason="sanitizers have a thread of their own")
@pytest.mark.skipif(os.geteuid() != 0, reason="needs a user without any process")
def test_threads_that_cannot_be_started_are_counted_as_idle(realistic_bam, public_dir):
    """ulimit -u sets the limit. There is also the thread that reads a pipe, which is counted before the team starts."""
    os.mkdir(public_dir + "/o")
    os.chmod(public_dir + "/o", 0o777)
    limit = limit_on("NPROC", 4) + "\nos.setuid(%d)" % (1100000 + os.getpid())
    args = [*FAST, "-@", "8", "--report=%s/o/r.json" % public_dir]
    p = sort_in_public(public_dir, args, limit, input=realistic_bam.read_bytes())
    started = re.search(rb"only (\d) of 8 threads can be started", p.stderr)
    assert p.returncode == 0 and started, p.stderr
    with open(public_dir + "/o/r.json") as f:
        r = json.load(f)
    assert 1 < r["threads"] == int(started[1])
    assert [s["name"] for s in r["slots"]] == [*("thread %d" % i for i in range(r["threads"])), "reader"]
    assert r["slots"][-1]["stages"]["read"] > 0
    assert r["stages"]["idle"]["s"] == pytest.approx(sum(s["stages"].get("idle", 0) for s in r["slots"]), abs=1e-4)
    assert all(sum(s["stages"].values()) == pytest.approx(r["wall_s"], abs=1e-4) for s in r["slots"])


def test_times_do_not_add_up(realistic_bam, tmp_path, team):
    r = reported(tmp_path, ["-@", team, realistic_bam])
    assert len(r["slots"]) >= r["threads"] == team
    check_sums(r)
    phases = [r["phases"][p] for p in ("open", "read", "write", "finish")]
    for before, after in zip(phases, phases[1:]):
        assert before["start_s"] + before["s"] == pytest.approx(after["start_s"], abs=1e-5)
    assert phases[-1]["start_s"] + phases[-1]["s"] == pytest.approx(r["wall_s"], abs=1e-5)


def test_bytes_are_not_those_of_the_files(realistic_bam, tmp_path, team):
    r = reported(tmp_path, ["-@", team, realistic_bam])
    stages, data = r["stages"], (tmp_path / "o.bam").read_bytes()
    plain = sum(len(b.data) for b in blocks(realistic_bam.read_bytes()))
    written = sum(len(b.data) for b in blocks(data))
    assert stages["read"]["bytes"] == realistic_bam.stat().st_size
    assert stages["inflate"]["bytes"] == r["bytes"] == plain
    assert stages["gather"]["bytes"] == stages["deflate"]["bytes"] == written
    assert stages["write"]["bytes"] == len(data)
    assert r["records"] == stages["sort"]["records"] == stages["fill"]["records"] == 20000
    assert (r["input"], r["output"]) == (str(realistic_bam), "o.bam")


def test_serial_part_is_not_what_its_stages_are(realistic_bam, tmp_path, team):
    r = reported(tmp_path, ["-@", team, realistic_bam])
    serial = r["serial"]
    assert serial["s"] == pytest.approx(sum(serial["stages"].values()), abs=1e-4)
    assert serial["s_per_gb"] == pytest.approx(serial["s"] / r["bytes"] * 1e9, rel=1e-2)
    for name, seconds in serial["stages"].items():
        assert r["stages"][name]["kind"] == "serial"
        assert seconds <= r["stages"][name]["critical_s"] + 1e-6
    assert serial["s"] <= r["wall_s"]


def test_last_sublist_keeps_one_thread_busy_alone(tmp_path):
    """2^20 records in a sublist, and eight for the rest, are nine; each thread's share of the expected records gives
    more."""
    some = b"".join(bamgen.record("r", 0, 0, i * 7919 % 65536) for i in range(16384))
    (tmp_path / "in.bam").write_bytes(bamgen.bgzf(bamgen.header() + some * 76, level=1))
    sort = reported(tmp_path, ["-@", 8, "in.bam"])["stages"]["sort"]
    assert sort["records"] == 76 * 16384 > 1 << 20
    assert 20 <= sort["events"] <= 60
    assert reported(tmp_path, ["-@", 1, "in.bam"])["stages"]["sort"]["events"] == 2


def test_temporary_data_are_not_counted(realistic_bam, tmp_path, team):
    r = reported(tmp_path, ["-@", team, realistic_bam], env=SMALL_ARENA)
    check_sums(r)
    stages = r["stages"]
    # If several tasks merge runs, each a part of the order, a slice with a cut in it is read twice.
    written, read = stages["spill_write"]["bytes"], stages["spill_read"]["bytes"]
    packed, unpacked = stages["pack"]["bytes"], stages["unpack"]["bytes"]
    assert 0 < written <= read < 1.2 * written
    assert stages["free"]["events"] == r["threads"] + 6      # a share of memory each, tasks' resources, and the files
    assert written < packed <= unpacked < 1.2 * packed


@pytest.mark.parametrize("fmt", ["sam", "sam.gz"])
def test_sam_is_counted_like_bam(made, tmp_path, team, fmt):
    """Bytes of text are not bytes of records."""
    path = tmp_path / "in"
    path.write_bytes(sorted_bytes(["--no-PG", "-O", fmt, made("mixed")]))
    r = reported(tmp_path, ["-@", team, path])
    check_sums(r)
    stages, want = r["stages"], reported(tmp_path, ["-@", team, made("mixed")])
    assert stages["read"]["bytes"] == path.stat().st_size
    assert stages["parse"]["records"] == r["records"] == want["records"] and stages["convert"]["events"] == 0
    assert r["bytes"] == stages["find"]["bytes"] > 0 == stages["inflate"]["bytes"]


def test_other_formats_are_not_counted(realistic_bam, tmp_path):
    needs_htslib(1, 14)  # older ones would drop RG tags of groups that the header lacks
    path = tmp_path / "in.cram"
    path.write_bytes(sorted_bytes(["-O", "cram,no_ref=1", realistic_bam]))
    for options, stage in ([], "parse"), (["--input-fmt-option", "decode_md=0"], "convert"):
        r = reported(tmp_path, ["-@", "2", *options, path])
        check_sums(r)
        assert r["stages"]["read"]["events"] == 0 < r["stages"][stage]["events"]


@pytest.mark.parametrize("fmt", ["bam", "sam", "cram,no_ref=1"])
def test_records_that_are_found_count_twice_or_never(realistic_bam, tmp_path, fmt):
    """A merge, fixmate before a sort, and a sort that collates each find the records that they read."""
    needs_htslib(1, 14)
    path = tmp_path / "in"
    path.write_bytes(run(["collate", "--no-PG", "-O", realistic_bam]).stdout if fmt == "bam"
                     else sorted_bytes(["-n", "--no-PG", "-O", fmt, realistic_bam]))
    told = {}
    for words in ("sort -o {o} {i}", "sort --input-fmt-option filter=1 -o {o} {i}", "fixmate {i} {o}", "merge -f -n -o {o} {i}",
                  "sormadup -o {o} {i}", "sormadup --collate -o {o} {i}"):
        if "filter" in words and fmt.startswith("cram"):
            continue
        command, *args = words.format(i=path, o=tmp_path / "o.bam").split()
        p = run([command, "-@", "2", "--report=%s" % (tmp_path / "r.json"), *args])
        assert p.returncode == 0, p.stderr
        told[words] = json.loads((tmp_path / "r.json").read_text())["bytes"]
    assert len(set(told.values())) == 1 and told["sort -o {o} {i}"] > 0, told


def test_reader_of_a_pipe_is_not_a_thread_of_its_own(realistic_bam, tmp_path, team):
    r = reported(tmp_path, ["-@", team, "-"], stdin=realistic_bam.read_bytes())
    assert [s["name"] for s in r["slots"]] == [*("thread %d" % i for i in range(team)), "reader"]
    for slot in r["slots"]:
        assert sum(slot["stages"].values()) == pytest.approx(r["wall_s"], abs=1e-4)
    assert r["stages"]["read"]["bytes"] == realistic_bam.stat().st_size
    assert r["slots"][-1]["stages"]["read"] > 0
    assert r["busy_share"] <= 1                  # share of the team
    page = reported(tmp_path, ["-@", team, "-"], "r.html", stdin=realistic_bam.read_bytes())
    assert page.count("<rect ") == team + 1


def test_memory_is_not_told(realistic_bam, tmp_path):
    r = reported(tmp_path, ["-m", "64M", realistic_bam])
    assert r["memory_bytes"] == (64 + 64) << 20, "what the process may take"
    page = reported(tmp_path, ["--total-memory", "100000000", realistic_bam], "r.html")
    assert re.search(r"<b>[0-9]+ MB</b><span>peak memory, of 100 MB allowed[;<]", page)
    assert 1 << 20 < r["peak_rss_bytes"] < (1 << 32 if SANITIZED else 128 << 20)
    if os.path.exists("/proc/self/smaps_rollup"):
        assert 0 <= r["huge_page_bytes"] <= r["peak_rss_bytes"]
    assert 1 <= r["cpus"] <= os.cpu_count()


@pytest.mark.parametrize("where", ["file", "pipe"])
def test_head_tells_of_another_machine_or_file(realistic_bam, tmp_path, where):
    """Unknown values are null, and all others are not."""
    data = realistic_bam.read_bytes()
    (tmp_path / "in.bam").write_bytes(data)      # sorted in place: the report has its old size
    if where == "file":
        p = run_sort([*FAST, "--report=r.json", "-o", "in.bam", "in.bam"], cwd=tmp_path)
        out = (tmp_path / "in.bam").read_bytes()
    else:
        p = run_sort([*FAST, "--report=r.json", "-"], cwd=tmp_path, stdin=data)
        out = p.stdout
    assert p.returncode == 0, p.stderr
    r = json.loads((tmp_path / "r.json").read_text())
    assert r["host"] == os.uname().nodename
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", r["date"])
    assert r["system"].startswith(os.uname().sysname) and r["system"].endswith(os.uname().machine)
    assert r["cpu_model"] is None or r["cpu_model"] in open("/proc/cpuinfo").read()
    assert r["socket_cores"] is None or sum(r["socket_cores"]) == r["cores"]
    assert r["input_bytes"] == len(data)
    assert r["output_bytes"] == len(out)
    assert (r["input_where"], r["output_where"]) == ("pipe", "pipe") or where == "file"
    if os.path.exists("/proc/self/mountinfo"):
        mounts = [line.split() for line in open("/proc/self/mountinfo")]
        types = {mount[mount.index("-") + 1] for mount in mounts}
        if "/" not in {mount[4] for mount in mounts}:             # in a chroot, whose own root is not listed
            types.add("file system unknown")
        assert r["temp_where"] in types and (where == "pipe" or r["input_where"] == r["output_where"] == r["temp_where"])
    said = subprocess.run([BINARY, "--version"], capture_output=True, text=True).stdout
    assert "Using htslib %s\n" % r["htslib"] in said and "Samtools-omp %s " % r["version"] in said
    assert r["machine_memory_bytes"] >= 1 << 20 and r["code_path"] and r["libdeflate"]


def test_device_is_called_a_pipe(realistic_bam, tmp_path):
    args = [*FAST, "--report=r.json", realistic_bam]
    for more, out in (["-o", "/dev/null"], None), ([], subprocess.DEVNULL):
        with start([*args, *more], stdout=out, cwd=tmp_path) as p:
            assert p.wait(HANG) == 0, p.stderr.read()
        assert json.loads((tmp_path / "r.json").read_text())["output_where"] == "device"


def test_file_that_output_is_added_to_counts_as_output(realistic_bam, tmp_path):
    with open(tmp_path / "o.bam", "wb") as f:
        f.write(b"before" * 100)
        f.flush()
        with start([*FAST, "--report=r.json", realistic_bam], stdout=f, cwd=tmp_path) as p:
            assert p.wait(HANG) == 0, p.stderr.read()
    r = json.loads((tmp_path / "r.json").read_text())
    assert r["output_bytes"] == len(sorted_bytes([*FAST, realistic_bam]))


def test_verdict_is_not_in_all_forms(realistic_bam, tmp_path):
    """The input is a slow pipe. The program at its other end is blamed, in all three forms, unless the machine is
    overloaded."""
    data = realistic_bam.read_bytes()
    for name in "r.json", "r.txt", "r.html":
        with start([*FAST, "--report=" + name, "-o", "o.bam", "-"], stdin=subprocess.PIPE, cwd=tmp_path) as p:
            for i in range(4):
                feed(p, data[len(data) * i // 4:len(data) * (i + 1) // 4])
                time.sleep(0.15)
            p.stdin.close()
            assert p.wait(HANG) == 0
    r = json.loads((tmp_path / "r.json").read_text())
    verdicts = "cpu input output temporary_disk memory pipe_producer pipe_consumer one_thread other_programs nothing".split()
    assert r["verdict"]["bound_by"] in verdicts and r["verdict"]["why"].endswith(".")
    assert 0 <= r["cpu_share"] <= 1 and (r["run_queue_s"] is None or r["run_queue_s"] >= 0)
    if r["run_queue_s"] is not None and r["run_queue_s"] < 0.1 and r["cpu_share"] < 0.4:
        assert r["verdict"]["bound_by"] == "pipe_producer"
    assert re.search(r"^  bound by [a-zA-Z ]+: .*\.$", (tmp_path / "r.txt").read_text(), re.M)
    assert re.search(r"<b>Bound by [a-zA-Z ]+:</b> [^<]*\.</p>", (tmp_path / "r.html").read_text())


def test_curve_does_not_come_to_what_the_report_says(realistic_bam, tmp_path):
    r = reported(tmp_path, ["-@", 2, "-m", "64M", realistic_bam], env=SMALL_ARENA)
    c, stages = r["curve"], r["stages"]
    assert set(c) == {"s", "rss_bytes", "cpu_s", "read_bytes", "written_bytes"}
    assert 2 <= len(c["s"]) <= 256 and len({len(v) for v in c.values()}) == 1
    for key in "s", "cpu_s", "read_bytes", "written_bytes":
        assert c[key] == sorted(c[key]), key
    assert c["s"][-1] == pytest.approx(r["wall_s"], abs=1e-3)
    assert c["read_bytes"][-1] == stages["read"]["bytes"] + stages["spill_read"]["bytes"]
    assert c["written_bytes"][-1] == stages["write"]["bytes"] + stages["spill_write"]["bytes"]
    assert c["cpu_s"][-1] <= r["user_s"] + r["system_s"] + 0.05
    if c["rss_bytes"][0] is None:
        assert r["mean_rss_bytes"] is None
    else:
        assert min(c["rss_bytes"]) <= r["mean_rss_bytes"] <= max(c["rss_bytes"]) <= r["peak_rss_bytes"] * 1.02 + (1 << 20)
    page = reported(tmp_path, ["-@", 2, "-m", "64M", realistic_bam], "r.html", env=SMALL_ARENA)
    assert len(re.findall('class="line"', page)) == 3 + (r["mean_rss_bytes"] is not None)
    assert re.search("</b>, MB: mean [0-9]+, peak [0-9]+</span>", page) or r["mean_rss_bytes"] is None


def test_label_of_an_axis_is_not_where_it_stands(realistic_bam, tmp_path):
    """The mean of the line, by the label at the top of its axis, is the mean in the text. The text also counts the time
    before the line begins, so the run must not be short."""
    page = reported(tmp_path, ["-@", 2, "-l", 9, realistic_bam], "r.html")
    part = page[page.index('aria-label="CPUs in use over time"'):]
    bottom, line, top, mean = re.search(r'class="line"[^>]* d="M0 ([0-9]+)L(.*?)"/>.*?style="top:0">([0-9.]+)<.*?in use: mean ([0-9.]+)<',
                                        part, re.S).groups()
    heights = [1 - float(point.split()[1]) / int(bottom) for point in line.split("L")]
    assert float(top) * sum(heights) / len(heights) == pytest.approx(float(mean), rel=0.08)


def test_nobody_asked_and_memory_is_looked_at(realistic_bam, tmp_path):
    """Without a report, /proc/self/statm is not opened."""
    trace = tmp_path / "trace"
    for options, opened in ([], 0), (["--report=r.json"], 1):
        try:
            p = subprocess.run(["strace", "-f", "-e", "trace=open,openat", "-o", trace, BINARY, "sort", *FAST, *options, "-o", "o.bam",
                                realistic_bam], cwd=tmp_path, env=clean_env(), capture_output=True)
        except FileNotFoundError:
            pytest.skip("no strace")
        if p.returncode:
            pytest.skip("strace is not allowed to trace")
        assert trace.read_text().count('"/proc/self/statm"') == opened


def test_cpus_that_may_not_be_used_are_counted(realistic_bam, tmp_path):
    one = {min(os.sched_getaffinity(0))}
    r = reported(tmp_path, ["-@", "3", realistic_bam], before=only_cpus(one))
    assert r["cpus"] == 1


@pytest.mark.parametrize("name", ["header_only", "header_only_no_refs", "one_record"])
def test_empty_input_divides_by_zero(made, tmp_path, name):
    r = reported(tmp_path, [made(name)])
    assert r["records"] == (name == "one_record")
    assert r["serial"]["s_per_gb"] is None, "it is the time that any program takes to start"
    for format in ("txt", "html"):
        text = reported(tmp_path, [made(name)], "r." + format)
        assert not re.search(r"\b(nan|inf)\b|[0-9] s/GB|[0-9] MB/s", text)


def test_cores_are_more_than_cpus(realistic_bam, tmp_path):
    one = {min(os.sched_getaffinity(0))}
    for cpus in None, one:
        r = reported(tmp_path, [realistic_bam], before=cpus and only_cpus(cpus))
        for key in "cores", "sockets", "numa_nodes":
            assert r[key] is None or 1 <= r[key] <= len(cpus or os.sched_getaffinity(0))
    if os.path.exists("/sys/devices/system/cpu/cpu0/topology/core_cpus_list"):
        assert r["cores"] == 1


@pytest.mark.release
def test_key_is_not_in_the_manual(realistic_bam, tmp_path):
    manual = re.sub(r"\\f[BIR]", "", (REPO / "doc" / "samtools-omp-report.5").read_text())
    r = reported(tmp_path, [realistic_bam])
    keys = {*r, *r["stages"], *r["stages"]["read"], *r["serial"], *r["verdict"], *r["curve"], *r["slots"][0], *r["phases"], *r["phases"]["read"]}
    assert [k for k in sorted(keys) if not re.search(r"\b%s\b" % k, manual)] == []


# ---------------------------------------------------------------- destination


def test_report_on_standard_error_spoils_the_output(realistic_bam):
    p = run_sort([*FAST, "--report", realistic_bam])
    assert p.returncode == 0
    assert p.stdout == sorted_bytes([*FAST, realistic_bam])
    for words in ("host .*20[0-9-]+T", "CPU .*cores by socket", "htslib [0-9]", "input [0-9,]+ bytes", "wall [0-9.]+ s", "busy", "20000 records", "MB/s", "inflate", "deflate", "serial: [0-9.]+ s/GB"):
        assert re.search(words, p.stderr), p.stderr
    assert len(p.stderr.splitlines()) < 32, "more than a screen"
    assert max(map(len, p.stderr.splitlines())) < 160


def test_report_as_text_is_another_one(realistic_bam, tmp_path):
    assert reported(tmp_path, [realistic_bam], "r.txt").startswith("samtools sort: %s -> o.bam\n" % realistic_bam)


def test_report_without_being_asked(realistic_bam, tmp_path):
    p = run_sort([*FAST, "-o", "o.bam", realistic_bam], cwd=tmp_path)
    assert p.stderr == ""
    assert os.listdir(tmp_path) == ["o.bam"]


@pytest.mark.parametrize("option", ["--report=nowhere/r.json", "--report=nowhere/r.html", "--trace=nowhere/t.json", "--report="])
def test_report_that_cannot_be_written_is_told_only_after_reading(tmp_path, option):
    with start([option, "-o", "o.bam", "-"], stdin=subprocess.PIPE, cwd=tmp_path) as p:   # its input stays silent
        assert p.wait(HANG) == 1
        assert re.search(rb"cannot write (nowhere/|:).*Nothing was read", p.stderr.read())
    assert os.listdir(tmp_path) == []


def test_report_that_cannot_be_written_ends_other_commands_in_a_crash(tmp_path):
    for args in ["merge", "o.bam", "-"], ["fixmate", "-", "o.bam"], ["markdup", "-", "o.bam"], ["sormadup", "-"]:
        p = subprocess.run([BINARY, args[0], "--report=nowhere/r.json", *args[1:]], cwd=tmp_path, env=clean_env(),
                           stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=HANG)
        assert p.returncode == 1 and p.stderr.count("\n") == 1, (args, p.stderr)
        assert "cannot write nowhere/r.json" in p.stderr, args
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("command", "sort merge collate fixmate markdup sormadup".split())
def test_advice_names_an_option_that_means_something_else(command):
    """-l is a window in markdup, -m a mode. -T is there where something is spilled."""
    said = re.findall(r'"((?:Use|Write|Name|Set) [^"]*)', (REPO / "report" / "report_advice.c").read_text())
    named = set(re.findall(r"(?<![\w-])-{1,2}[A-Za-z@][\w-]*", " ".join(said))) - {"-T", "-@"}
    assert named == {"--total-memory", "--output-fmt-option"}
    usage = run([command, "--help"]).stdout.decode()
    assert all(option in usage for option in named)


@pytest.mark.parametrize("args", [
    ["--report=in.bam", "-o", "o.bam", "in.bam"], ["--report=./in.bam", "in.bam"], ["--trace=o.bam", "-o", "o.bam", "in.bam"],
    ["--report=o.bam.csi", "--write-index", "-o", "o.bam", "in.bam"], ["--report=x", "--trace=x", "in.bam"],
    ["--report=more.bam", "--add-input", "more.bam", "in.bam"], ["--report=-", "in.bam"],
    ["--checksum=in.bam", "-o", "o.bam", "in.bam"], ["--checksum=./o.bam", "-o", "o.bam", "in.bam"], ["--report=./o.bam", "-o", "o.bam", "in.bam"],
    ["--check", "--checksum=in.bam", "in.bam"], ["--checksum=more.bam", "--add-input=more.bam", "-o", "o.bam", "in.bam"],
    ["--checksum=x", "--report=x", "-o", "o.bam", "in.bam"], ["--write-index", "-o", "o.bam##idx##o.bam", "in.bam"],
    ["--write-index", "-o", "o.bam##idx##in.bam", "in.bam"], ["--checksum=-", "--report=-", "-o", "o.bam", "in.bam"],
], ids=" ".join)
def test_file_beside_the_output_overwrites_data(made, tmp_path, args):
    for name in ("in.bam", "more.bam"):
        (tmp_path / name).write_bytes(made("ties").read_bytes())
    refused(tmp_path, args, "cannot be both")


def test_check_ignores_report(made, tmp_path):
    p = run_sort(["--check", "--report", made("ties")])
    assert p.returncode == 1 and "--check writes no --report" in p.stderr


def test_report_of_a_failed_sort_looks_whole(made, tmp_path):
    (tmp_path / "cut.bam").write_bytes(made("mixed").read_bytes()[:-100])
    (tmp_path / "r.html").write_bytes(PRECIOUS)
    refused(tmp_path, ["--report=r.html", "--trace=t.json", "-o", "o.bam", "cut.bam"], "cut.bam")


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGKILL], ids=lambda s: s.name)
def test_killed_sort_leaves_a_report(realistic_bam, tmp_path, sig):
    (tmp_path / "r.html").write_bytes(PRECIOUS)
    before = snapshot(tmp_path)
    with start(["--report=r.html", "--trace=t.json", "-o", "o.bam", "-"], stdin=subprocess.PIPE, cwd=tmp_path) as p:
        feed(p, realistic_bam.read_bytes()[:1 << 16])
        until(lambda: len(os.listdir("/proc/%d/fd" % p.pid)) > 5, p)
        p.send_signal(sig)
        assert p.wait(HANG) == -sig
    assert snapshot(tmp_path) == before


def test_full_disk_under_the_report_is_not_told(realistic_bam, tmp_path):
    p = run_sort([*FAST, "--report=/dev/full", "-o", "o.bam", realistic_bam], cwd=tmp_path)
    assert p.returncode == 1
    assert "/dev/full" in p.stderr and "The output is complete" in p.stderr
    assert (tmp_path / "o.bam").read_bytes() == sorted_bytes([*FAST, realistic_bam])


def test_report_changes_the_output(realistic_bam, tmp_path):
    p = run_sort([*FAST, "-@", "3", "--report=r.html", "--trace=t.json", "--progress", realistic_bam], cwd=tmp_path)
    assert p.stdout == sorted_bytes([*FAST, realistic_bam])


# ---------------------------------------------------------------- the page and the trace


class Page(html.parser.HTMLParser):
    """Tags that are open, and URLs that would be loaded."""

    void = {"meta", "path", "rect", "br"}

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.loads = [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.loads += [a for a in attrs if a[0] in ("src", "href", "xlink:href", "srcset")]
        if tag not in self.void:
            self.open.append(tag)
        elif tag == "path" and self.get_starttag_text()[-2] != "/":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("n", [1, 2, 16, 64])
def test_page_needs_a_network_or_is_broken(realistic_bam, tmp_path, n):
    text = reported(tmp_path, ["-@", n, realistic_bam], "r.html")
    page = Page()
    page.feed(text)
    assert page.open == [] and page.loads == []
    assert not {"script", "link", "img", "iframe", "object"} & set(page.tags)
    assert not re.search(r"https?:|url\(|@import", text)
    assert page.tags.count("rect") == n, "a row for each thread"
    assert {"svg", "table", "style"} <= set(page.tags)
    assert "prefers-color-scheme:dark" in text
    assert not re.search(r"\b(nan|inf)\b", text)
    assert len(text) < 1 << 21


def test_page_is_cut_at_400_pixels(realistic_bam, tmp_path):
    """Pictures are stretched to the available width, and cells of the table become lines that name their column."""
    text = reported(tmp_path, ["-@", 2, realistic_bam], "r.html")
    assert not re.search(r"min-width:(?!7[26]0px)[1-9][0-9]{2,}px|overflow-x|white-space:nowrap;?}?(?=td|th)", text)
    for svg in re.findall("<svg [^>]*>", text):
        assert 'preserveAspectRatio="none"' in svg and "<text" not in text
    cells = re.findall("<td([^>]*)>(.*?)</td>", text)
    assert len(cells) > 100
    for attributes, content in cells:
        assert "data-label=" in attributes or "class=\"bar\"" in attributes or content == "" or content.startswith("<i ")


def test_page_has_a_word_or_colour_that_is_not_explained(realistic_bam, tmp_path):
    text = reported(tmp_path, ["-@", 2, "-m", "1M", realistic_bam], "r.html", env=SMALL_ARENA)
    words = " ".join(re.findall("<dt>(.*?)</dt>", text[text.index('class="words"'):]))
    tiles, heads = re.findall("</b><span>(.*?)</span>", text), re.findall("<th>(.*?)</th>", text)
    assert len(tiles) > 5 and len(heads) == 20
    for word in "busy", "CPU time", "waited for a CPU", "serial", "peak memory", "huge pages", "I/O":
        assert any(word in t for t in tiles) or word in ("waited for a CPU", "huge pages")
        assert word in words
    assert "of 2 threads busy" in tiles and any("spilled" in t for t in tiles)
    for word in "critical", "blocked", "MB/s, each thread", "MB/s, all threads", "in turn", "block", "deal", "record", "range", "bound by":
        assert word in words
    legend = dict(re.findall(r'<li><i style="background:(.*?)"></i><b>(.*?)</b> [^<]{5,}</li>', text))
    listed = re.findall(r'<tr><td><i style="background:(.*?)"></i>(.*?)</td>', text)
    assert {"idle", "wait", "spill_write"} <= set(legend.values()), "and no two have one colour"
    assert legend == dict(listed) and len(legend) == len(listed)
    assert "none" not in legend and re.search(r"<h1>[^</]*\.bam: 20,000 records, [0-9.]+\ss, [0-9]+\sMB/s</h1>", text)


def lightness(colour):
    """Relative luminance (WCAG 2.1) of #rrggbb."""
    parts = [int(colour[i:i + 2], 16) / 255 for i in (1, 3, 5)]
    return sum(share * (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4) for share, c in zip((.2126, .7152, .0722), parts))


def test_stages_that_touch_are_told_apart_by_hue_alone(realistic_bam, tmp_path):
    """Readers who see fewer hues tell them apart by their lightness."""
    text = reported(tmp_path, ["-@", 2, realistic_bam], "r.html")
    colours = {name: colour for colour, name in re.findall(r'<li><i style="background:(.*?)"></i><b>(.*?)</b>', text)}
    for pair in ("gather", "deflate"), ("read", "deal"):
        dark, light = sorted(lightness(colours[name]) for name in pair)
        assert (light + 0.05) / (dark + 0.05) >= 2.5, pair


def test_stages_are_in_no_order_or_short_ones_not_folded(realistic_bam, tmp_path):
    text = reported(tmp_path, ["-@", 2, realistic_bam], "r.html")
    table = text[text.index("<h2>Stages</h2>"):text.index("<h2>Machine and files</h2>")]
    parts = [re.findall(r'</i>([a-z_]+)</td>.*?data-label="all threads, s">([0-9.]+)<', part) for part in table.split("<details")]
    assert len(parts) == 2, "nothing is folded"
    for part in parts:
        times = [float(s) for name, s in part if name not in ("idle", "wait")]
        assert times == sorted(times, reverse=True) and not {"idle", "wait"} & {name for name, _ in part[:len(times)]}
    wall = float(re.search(r"records, ([0-9.]+)\ss", text).group(1))
    assert all(float(s) <= 0.01 * 2 * wall + 0.01 for _, s in parts[1]) and all(float(s) >= 0.01 * 2 * wall - 0.01 for _, s in parts[0])
    assert text.count("<details") >= 2 and "<details open" not in text


def test_rates_of_all_threads_are_those_of_one(realistic_bam, tmp_path):
    """With a trace, the time in which any thread was in a stage is known for all stages."""
    r = reported(tmp_path, ["-@", 3, "--trace=t.json", realistic_bam])
    for name, stage in r["stages"].items():
        if stage["kind"] == "rest":
            assert stage["any_thread_s"] is None
        elif stage["s"] > 1e-3:
            most = max(s["stages"].get(name, 0) for s in r["slots"])
            assert most * 0.999 - 1e-3 <= stage["any_thread_s"] <= min(stage["s"], r["wall_s"]) * 1.001 + 1e-3, name


def test_trace_is_no_json_or_spans_overlap(realistic_bam, tmp_path, team):
    p = run_sort([*FAST, "-@", team, "--trace", "t.json", "--report=r.json", "-o", "o.bam", realistic_bam], cwd=tmp_path)
    assert p.returncode == 0, p.stderr
    r, trace = (json.loads((tmp_path / f).read_text()) for f in ("r.json", "t.json"))
    names = {e["tid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    assert list(names.values()) == ["phases", *(s["name"] for s in r["slots"])]
    for tid, name in names.items():
        at, took = 0, 0
        for e in trace["traceEvents"]:
            if e["ph"] == "X" and e["tid"] == tid:
                assert e["ts"] >= at - 0.002 and e["dur"] >= 0
                at, took = e["ts"] + e["dur"], took + e["dur"]
        stages = next((s["stages"] for s in r["slots"] if s["name"] == name), {})
        if stages:
            assert took / 1e6 == pytest.approx(sum(stages.values()) - stages.get("idle", 0), abs=1e-3)


def test_trace_is_not_what_perfetto_documents(realistic_bam, tmp_path):
    """The format is the JSON Object Format of the Trace Event Format: complete events (X) with name, ts and dur in
    microseconds, pid and tid; metadata events (M) that name the process and every thread, each with its args."""
    p = run_sort([*FAST, "-@", "3", "--trace=t.json", "--report=r.json", "-o", "o.bam", realistic_bam], cwd=tmp_path)
    assert p.returncode == 0, p.stderr
    r, trace = (json.loads((tmp_path / f).read_text()) for f in ("r.json", "t.json"))
    events = trace["traceEvents"]
    assert isinstance(events, list) and trace["displayTimeUnit"] in ("ms", "ns")
    meta = [e for e in events if e["ph"] == "M"]
    spans = [e for e in events if e["ph"] == "X"]
    assert len(meta) + len(spans) == len(events) and len(spans) > 10, "no other kind of event"
    for e in meta:
        assert e["name"] in ("process_name", "thread_name", "thread_sort_index") and type(e["pid"]) is int
        key = "sort_index" if e["name"] == "thread_sort_index" else "name"
        assert set(e["args"]) == {key} and type(e["args"][key]) is (int if key == "sort_index" else str)
        assert e["name"] == "process_name" or type(e["tid"]) is int
    for e in spans:
        assert set(e) == {"ph", "pid", "tid", "name", "cat", "ts", "dur"}
        assert type(e["pid"]) is type(e["tid"]) is int and e["name"] and e["cat"]
        assert e["ts"] >= 0 and e["dur"] >= 0
    named = {(e["pid"], e["tid"]) for e in meta if e["name"] == "thread_name"}
    assert {(e["pid"], e["tid"]) for e in spans} <= named and len({pid for pid, tid in named}) == 1
    end = max(e["ts"] + e["dur"] for e in spans)
    assert end == pytest.approx(r["wall_s"] * 1e6, rel=1e-3), "microseconds"


# ---------------------------------------------------------------- two reports


def compare(folder, *args):
    return subprocess.run([BINARY, "report", *args], cwd=folder, env=clean_env(), capture_output=True, text=True, timeout=HANG)


def test_two_reports_are_not_compared(realistic_bam, made, tmp_path):
    a = reported(tmp_path, ["-@", 2, realistic_bam], "a.json")
    b = reported(tmp_path, ["-@", 1, made("ties")], "b.json")
    p = compare(tmp_path, "a.json", "b.json")
    assert p.returncode == 0 and p.stderr == ""
    assert max(map(len, p.stdout.splitlines())) < 100
    assert re.search(r"^  wall time, s +%.2f +%.2f +[0-9.]+$" % (a["wall_s"], b["wall_s"]), p.stdout, re.M), p.stdout
    assert re.search(r"^  records +20,000 +%s +[0-9.]+$" % format(b["records"], ","), p.stdout, re.M), p.stdout
    assert "records differ" in p.stdout
    p_text = compare(tmp_path, "a.json", "a.json").stdout
    p = compare(tmp_path, "-o", "page.html", "a.json", "a.json")
    assert (p.returncode, p.stdout, p.stderr) == (0, "", "")
    page, text = Page(), (tmp_path / "page.html").read_text()
    page.feed(text)
    assert page.open == [] and page.loads == [] and "script" not in page.tags
    stages = [line.split()[0] for line in p_text.split("seconds of all threads:\n")[1].splitlines()]
    assert stages and all("<tr><td>%s</td>" % stage in text for stage in stages), "names of stages differ from a report"
    assert text.count("20,000") == 2 and "records differ" not in text and not re.search(r"\b(nan|inf)\b", text)


@pytest.mark.parametrize("data", [b"", b"{}", b"[1, 2", PRECIOUS, b'{"version": "1.0", "results": []}', b"\0" * 1000, b"[" * 100000],
                         ids=["empty", "object", "cut", "precious", "other", "zeros", "deep"])
def test_file_that_is_no_report_of_ours_is_compared(realistic_bam, tmp_path, data):
    reported(tmp_path, [realistic_bam], "a.json")
    (tmp_path / "x.json").write_bytes(data)
    p = compare(tmp_path, "a.json", "x.json", "-o", "page.html")
    assert (p.returncode, p.stdout) == (1, "")
    assert p.stderr == "samtools report: x.json is not a report that --report=FILE.json has written\n"
    assert sorted(os.listdir(tmp_path)) == ["a.json", "o.bam", "x.json"]


@pytest.mark.parametrize("args,says", [
    ([], "Usage"), (["a"], "Usage"), (["a", "b", "c"], "Usage"), (["-x", "a", "b"], "Usage"), (["a", "b", "-o"], "Usage"),
    (["a", "none"], "cannot read a"), (["r", "r", "-o", "r"], "r cannot be both report and page"),
    (["r", "r", "-o", "no/page"], "cannot write no/page")], ids=lambda v: " ".join(v) if isinstance(v, list) else "")
def test_mistake_in_what_is_compared_is_not_told(realistic_bam, tmp_path, args, says):
    reported(tmp_path, [realistic_bam], "r.json")
    os.rename(tmp_path / "r.json", tmp_path / "r")
    before = snapshot(tmp_path)
    p = compare(tmp_path, *args)
    assert p.returncode == 1 and says in p.stderr and p.stdout == ""
    assert snapshot(tmp_path) == before


# ---------------------------------------------------------------- progress


def on_terminal(argv, given=(), pause=0.3, command="sort", **env):
    """The output of a command on a terminal, while its input arrives in pieces."""
    try:
        main, terminal = pty.openpty()
    except OSError as e:
        pytest.skip("no terminals here: %s" % e)
    with subprocess.Popen([BINARY, command, *map(str, argv)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                          stderr=terminal, env=clean_env(**{"TERM": "xterm", **env})) as p:
        os.close(terminal)
        for piece in given:
            feed(p, piece)
            time.sleep(pause)
        p.stdin.close()
        assert p.wait(HANG) == 0
        said = b""
        try:
            while part := os.read(main, 65536):
                said += part
        except OSError:
            pass                                 # the other end is closed
        os.close(main)
    return said.decode()


def pieces(path, n=4):
    data = path.read_bytes()
    size = len(data) // n + 1
    return [data[i:i + size] for i in range(0, len(data), size)]


def test_terminal_shows_no_progress(realistic_bam):
    said = on_terminal(FAST, pieces(realistic_bam))
    assert re.search(r"\rsamtools sort: reading: [0-9.]+ M records, [0-9]+ MB/s", said), said
    assert "\n" not in said
    assert said.endswith("\r\x1b[K"), "the line is still there"


def test_statistics_begin_in_a_painted_line(realistic_bam, tmp_path):
    fixed = tmp_path / "fixed.bam"
    for args in ["fixmate", "-m", realistic_bam, tmp_path / "f.bam"], ["sort", "-o", fixed, tmp_path / "f.bam"]:
        assert subprocess.run([BINARY, *map(str, args)], timeout=HANG, check=False).returncode == 0
    said = on_terminal(["-s", "-@", "2", "-", "-"], pieces(fixed), command="markdup")
    assert re.search(r"\rsamtools markdup: writing: [^\n]*\r\x1b\[KCOMMAND: ", said), said


def test_size_hint_gives_no_percentage(realistic_bam):
    said = on_terminal([*FAST, "--size-hint", "100M"], pieces(realistic_bam))
    assert re.search(r"reading [0-9]+ %,", said), said


@pytest.mark.parametrize("args,env", [(["--no-progress"], {}), ([], {"TERM": "dumb"}), (["--verbosity", "1"], {})],
                         ids=["option", "dumb", "verbosity"])
def test_progress_where_it_is_not_wanted(realistic_bam, args, env):
    assert on_terminal([*FAST, *args], pieces(realistic_bam), **env) == ""


def test_progress_goes_into_a_log_unasked(realistic_bam):
    with start(FAST, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as p:
        for piece in pieces(realistic_bam):
            feed(p, piece)
            time.sleep(0.3)
        p.stdin.close()
        assert p.stderr.read() == b""


@pytest.mark.slow
def test_progress_that_is_asked_for_is_no_plain_line(realistic_bam):
    with start([*FAST, "--progress"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as p:
        for piece in pieces(realistic_bam, 5):
            feed(p, piece)
            time.sleep(1.4)                      # the first line comes after 5 s
        p.stdin.close()
        said = p.stderr.read().decode()
    assert re.fullmatch(r"(samtools sort: (reading|writing).*MB/s.*\n)+samtools sort: done: 100 %, 0\.02 M records, [0-9]+ MB/s, [0-9]+ s\n", said), said


@pytest.mark.parametrize("args", ["sort --check in.bam", "merge -f -o out.bam in.bam", "flagstat in.bam", "markdup in.bam out.bam"])
def test_progress_ends_without_the_number_of_records(args, tmp_path):
    recs = [bamgen.record(name="q%d" % i, pos=i) for i in range(6000)]
    (tmp_path / "in.bam").write_bytes(bamgen.bam(bamgen.header(), recs))
    command, *rest = args.split()
    p = run([command, "--progress", *rest], cwd=tmp_path)
    assert p.returncode == 0 and "samtools %s: done: 100 %%, 0.01 M records, " % command in p.stderr, p.stderr


def slow_sort(realistic_bam, *args):
    return slow_run(realistic_bam, "sort", "-u", *args)


def slow_run(realistic_bam, *args):
    """The text on a terminal for a command whose input takes some two seconds; so does output of the same size."""
    try:
        main, terminal = pty.openpty()
    except OSError as e:
        pytest.skip("no terminals here: %s" % e)
    with subprocess.Popen([BINARY, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=terminal,
                          env=clean_env(TERM="xterm")) as p:
        os.close(terminal)
        for piece in pieces(realistic_bam, 8):
            feed(p, piece)
            time.sleep(0.25)
        p.stdin.close()
        while p.stdout.read(700_000):
            time.sleep(0.25)
        assert p.wait(HANG) == 0
        said = os.read(main, 1 << 20).decode()
        os.close(main)
    return said


@pytest.mark.slow
def test_progress_without_a_sort_counts_no_records_or_makes_up_a_share(realistic_bam, tmp_path):
    """The size of the input is unknown. These commands mostly wait, so they run at the same time."""
    in_order = tmp_path / "in.bam"
    assert run(["sort", "-o", in_order, realistic_bam]).returncode == 0
    commands = {"merge": (["-u", "-o", "-", "-"], "writing"), "flagstat": (["-"], "reading"), "sort": (["--check", "-"], "reading")}
    with concurrent.futures.ThreadPoolExecutor() as all_of_them:
        texts = all_of_them.map(lambda c: slow_run(in_order, c, *commands[c][0]), commands)
    for (command, (_, phase)), said in zip(commands.items(), texts):
        lines = re.findall(r"samtools %s: (\w+): ([0-9.]+) M records, [0-9]+ MB/s(.*?)\x1b" % command, said)
        assert lines and {(now, rest) for now, _, rest in lines} == {(phase, "")} and float(lines[-1][1]) > 0, said
        assert "%" not in said, said


@pytest.mark.slow
def test_percentage_begins_again_when_writing_does_or_is_made_up(realistic_bam):
    """With the size of the input, it is known from the start; otherwise only when all records have been counted. Both
    sorts mostly wait, so they run at the same time."""
    size = len(gzip.decompress(realistic_bam.read_bytes()))
    with concurrent.futures.ThreadPoolExecutor() as both:
        said, unknown = both.map(lambda args: slow_sort(realistic_bam, *args), (["--size-hint", str(size)], []))
    told = [(phase, int(percent)) for phase, percent in re.findall(r"samtools sort: (reading|writing) ([0-9]+) %,", said)]
    percents = [percent for _, percent in told]
    assert percents == sorted(percents), "it goes back"
    assert {"reading", "writing"} == {phase for phase, _ in told}
    last_read = max(percent for phase, percent in told if phase == "reading")
    assert 20 <= last_read <= 95, "reading is not all of it"
    assert percents[0] <= 50 and percents[-1] >= 80
    left = re.findall(r"writing [0-9]+ %,.* MB/s, ([0-9]+) s left", said)
    assert left and int(left[-1]) <= 1
    reading = re.findall(r"samtools sort: reading[^\r]*", unknown)
    assert reading and not any("%" in line or "left" in line for line in reading)
    assert re.search(r"writing [0-9]+ %,.* left", unknown)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["bam", "sam"])
def test_percentage_of_a_file_is_unknown(gen_bam, form):
    """The file is large enough for a line or two during reading. Writing takes longer, at any level."""
    path = gen_bam("--size", "60M" if SANITIZED else "200M", "-O", form, *(["--level", 1] if form == "bam" else []))
    said = on_terminal(["-@", 1, "-l", 1, path])
    assert re.search(r"samtools sort: reading [0-9]+ %,.* left", said), said
    assert re.search(r"samtools sort: writing [0-9]+ %,.* left", said), said


def test_failed_sort_says_it_is_done(made, tmp_path):
    (tmp_path / "cut.bam").write_bytes(made("mixed").read_bytes()[:-100])
    p = run_sort(["--progress", "-o", tmp_path / "o.bam", tmp_path / "cut.bam"])
    assert p.returncode == 1 and "samtools sort: done" not in p.stderr
