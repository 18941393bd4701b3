# SPDX-License-Identifier: MIT
"""--plan: forecasts near the real use of the sort; it makes no file and reads nothing from a pipe."""

import json
import os
import re
import subprocess

import pytest

import bamgen
from conftest import BINARY, HANG, SANITIZED, clean_env, run, run_sort, sorted_bytes
from test_safety import in_name_space, refused, snapshot

NEAR = 0.3


def planned(args, **kw):
    p = run_sort(["--plan=json", *args], **kw)
    assert (p.returncode, p.stderr) == (0, "")
    return json.loads(p.stdout)


def text_of(args, **kw):
    """Its lines, by the text before the colon; and the warnings."""
    p = run_sort(["--plan", *args], **kw)
    assert (p.returncode, p.stderr) == (0, "")
    lines = p.stdout.decode().splitlines()
    facts = dict(re.fullmatch(r"(#SBATCH --[a-z-]+|[a-z@0-9 -]+)[=:] ?(.*)", line).groups() for line in lines)
    return facts, [line for line in lines if line.startswith("warning: ")]


def done(folder, args, **kw):
    p = run_sort(["--report=r.json", "-o", "o.bam", *args], cwd=folder, **kw)
    assert p.returncode == 0, p.stderr
    return json.loads((folder / "r.json").read_text())


# ---------------------------------------------------------------- forecast and fact

KINDS = {  # arguments of gen_bam; of sort
    "memory": (["--size", "60M"], ["-m", "256M", "-@", "2", "-l", "1"]),
    "spilled": (["--size", "100M"], ["-m", "24M", "-l", "1"]),
    "spilled_by_name": (["--size", "100M"], ["-m", "12M", "-@", "2", "-n", "-l", "1"]),
    "long_spilled": (["--size", "80M", "--long", "--sorted"], ["-m", "16M", "-l", "1"]),
    "default_level": (["--size", "40M", "--ties"], ["-m", "64M"]),
}


@pytest.mark.slow
@pytest.mark.skipif(SANITIZED, reason="sanitizers need memory of their own")
@pytest.mark.parametrize("kind", KINDS)
def test_forecast_is_far_from_what_the_sort_takes(gen_bam, tmp_path, kind):
    generator, args = KINDS[kind]
    path = gen_bam(*generator, "--level", 1)
    plan, real = planned([*args, path]), done(tmp_path, [*args, path])
    spilled = real["stages"]["spill_write"]["bytes"]
    assert plan["memory_bytes"] == pytest.approx(real["peak_rss_bytes"], rel=NEAR)
    assert plan["records"] == pytest.approx(real["records"], rel=0.05)
    assert plan["record_bytes"] == pytest.approx(real["bytes"], rel=0.05)
    assert plan["in_memory"] == (spilled == 0) == ("memory" in kind or "level" in kind)
    assert plan["packed_bytes"] == pytest.approx(spilled, rel=NEAR)
    assert plan["output_bytes"] == pytest.approx((tmp_path / "o.bam").stat().st_size, rel=1)
    assert real["peak_rss_bytes"] < plan["request_mem_mib"] << 20
    assert plan["memory_bytes"] <= plan["memory_most_bytes"] <= (int(args[1][:-1]) * plan["threads"] + 64) << 20


@pytest.mark.slow
@pytest.mark.skipif(SANITIZED, reason="sanitizers need memory of their own")
@pytest.mark.parametrize("first", ["large", "small"])
def test_large_record_takes_more_than_the_plan_says(tmp_path, first):
    """It is not complete in the sample, and found by its size at the file's beginning, or from where a piece has
    begun before it."""
    header, large = bamgen.long_reads(6, 24000000)
    small = [bamgen.record("s%d" % i, pos=i) for i in range(100)] if first == "small" else []
    path = tmp_path / "in.bam"
    path.write_bytes(bamgen.bgzf(header + b"".join(small + large), level=1))
    plan, real = planned(["-m", "8M", path]), done(tmp_path, ["-m", "8M", "-u", path])
    assert 24000000 < plan["large_record_bytes"] < 25000000
    assert real["peak_rss_bytes"] < plan["memory_most_bytes"] and real["peak_rss_bytes"] < plan["request_mem_mib"] << 20
    facts, _ = text_of(["-m", "8M", path])
    assert re.match(r"one of 24\.\d MB was seen, for which up to 7\d\.\d MB", facts["large records"]), facts
    assert planned(["-m", "256M", path])["large_record_bytes"] is None


@pytest.mark.skipif(SANITIZED, reason="sanitizers need memory of their own")
def test_memory_with_which_all_should_fit_does_not_do(gen_bam, tmp_path):
    path = gen_bam("--size", "100M", "--level", 1)
    plan = planned(["-m", "24M", path])
    enough = "%dM" % -(-plan["memory_to_fit_bytes"] >> 20)
    assert "merging from" not in run_sort(["-u", "-o", "/dev/null", "--total-memory", enough, path], cwd=tmp_path).stderr
    assert 0.5 * plan["memory_to_fit_bytes"] < plan["record_bytes"]


@pytest.mark.parametrize("layout", ["htslib", "prime_blocks"])
@pytest.mark.parametrize("args", [[], ["-n"], ["-t", "NM"], ["--template-coordinate"], ["-M"], ["--picard", "-l", "9"], ["-u"],
                                  ["--verify", "--write-index", "-o", "o.bam"]], ids=" ".join)
def test_small_file_is_counted_wrongly(made, tmp_path, layout, args):
    """All of it is in the sample, for any blocks and any order."""
    path = made("realistic-2000", layout, content=lambda: bamgen.realistic(2000))
    real = done(tmp_path, [path])
    (tmp_path / "o.bam").unlink()
    plan = planned([*args, path], cwd=tmp_path)
    assert plan["records"] == pytest.approx(real["records"], abs=1)
    assert plan["record_bytes"] == pytest.approx(real["bytes"], rel=0.02)
    assert plan["in_memory"] is True and plan["temporary_bytes"] == 0 and plan["warnings"] == []
    assert (plan["output_bytes"] > plan["record_bytes"]) == ("-u" in args)


def test_records_behind_a_long_header_are_not_found(tmp_path):
    path = tmp_path / "in.bam"
    path.write_bytes(bamgen.bgzf(bamgen.header(refs=[("chr%d" % i, 1000) for i in range(100000)]) + bamgen.tiny(50000), level=1))
    plan = planned([path])
    assert plan["records"] == pytest.approx(50000, rel=0.01)


def test_one_of_several_files_is_not_counted(made):
    path = made("mixed")
    one, two = planned([path]), planned(["--add-input", path, path])
    for key in ("records", "record_bytes", "input_bytes"):
        assert two[key] == pytest.approx(2 * one[key], rel=0.01), key


@pytest.mark.skipif(SANITIZED, reason="sanitizers need memory of their own")
def test_plan_of_markdup_is_far_from_what_it_takes(gen_bam, desk):
    """With -S all records wait; otherwise the number is unknown, and the text does not state one."""
    path, few = gen_bam("--size", "20M", "--long", "--sorted", "--level", 1), {"SAMTOOLS_OMP_ARENA": "4000000"}
    before = snapshot(desk)

    def told(*args, env=few, **kw):
        p = run(["markdup", *args, "out.bam"], cwd=desk, env=env, **kw)
        assert (p.returncode, p.stderr) == (0, "") and snapshot(desk) == before
        return p.stdout

    kept, some, all_fit = (json.loads(told("--plan=json", *args, path, env=env))
                           for args, env in ((["-S"], few), ([], few), (["-S"], {})))
    p = run(["markdup", "-S", "--report=r.json", path, "out.bam"], cwd=desk, env=few)
    assert p.returncode == 0, p.stderr
    real = json.loads((desk / "r.json").read_text())
    assert kept["packed_bytes"] == kept["temporary_bytes"] == pytest.approx(real["stages"]["spill_write"]["bytes"], rel=NEAR)
    assert kept["records"] == pytest.approx(real["records"], rel=0.05)
    assert kept["output_bytes"] == pytest.approx((desk / "out.bam").stat().st_size, rel=1)
    assert real["peak_rss_bytes"] < kept["memory_bytes"] <= kept["memory_most_bytes"] <= (768 + 64) << 20
    assert kept["in_memory"] is False and some["in_memory"] is some["temporary_bytes"] is None
    assert all_fit["in_memory"] is True and all_fit["temporary_bytes"] == 0
    before = snapshot(desk)
    for args, words in ((["-S"], "records that wait: all, of which"), ([], "memory: at most")):
        assert words in told("--plan", *args, path).decode()
    assert b"nothing was read" in told("--plan", "-", stdin=subprocess.DEVNULL)
    (desk / "name.sam").write_text("@HD\tVN:1.6\tSO:queryname\n@SQ\tSN:c\tLN:9\n")
    for args in ["--plan=xml", path], ["--plan", "name.sam"]:
        p = run(["markdup", *args, "new.bam"], cwd=desk)
        assert p.returncode == 1 and not p.stdout and p.stderr.startswith("samtools markdup: ") and not (desk / "new.bam").exists()


@pytest.mark.skipif(SANITIZED, reason="sanitizers need memory of their own")
def test_plan_of_sormadup_is_far_from_what_it_takes(gen_bam, desk):
    """If the input is in coordinate order, both sorts are included."""
    few, options = {"SAMTOOLS_OMP_ARENA": "4000000"}, ["--size", "20M", "--long", "--level", 1]
    in_order, shuffled = gen_bam(*options, "--sorted"), gen_bam(*options)
    before = snapshot(desk)

    def told(*args, env=few, **kw):
        p = run(["sormadup", *args, "-o", "out.bam"], cwd=desk, env=env, **kw)
        assert (p.returncode, p.stderr) == (0, "") and snapshot(desk) == before
        return p.stdout

    both, one, fit = (json.loads(told("--plan=json", path, env=env))
                      for path, env in ((in_order, few), (shuffled, few), (in_order, {})))
    assert [p["collates"] for p in (both, one, fit)] == [True, False, True]
    assert both["packed_bytes"] == pytest.approx(2 * one["packed_bytes"], rel=0.5) and both["runs"] > one["runs"]
    assert fit["in_memory"] and fit["temporary_bytes"] == 0 and fit["memory_bytes"] > 2 * fit["record_bytes"]
    assert b"collated: " in told("--plan", in_order) and b"collated: " not in told("--plan", shuffled)
    assert b"nothing was read" in told("--plan", "-", stdin=subprocess.DEVNULL)
    assert json.loads(told("--plan=json", "--collate", shuffled))["collates"] is True
    p = run(["sormadup", "--report=r.json", in_order, "-o", "out.bam"], cwd=desk, env=few)
    assert p.returncode == 0, p.stderr
    real = json.loads((desk / "r.json").read_text())
    assert both["temporary_bytes"] == pytest.approx(real["stages"]["spill_write"]["bytes"], rel=NEAR)
    assert both["records"] == pytest.approx(real["records"], rel=0.05) and real["peak_rss_bytes"] < both["memory_most_bytes"]


@pytest.mark.skipif(SANITIZED, reason="what sanitizers take differs from run to run")
def test_least_memory_of_sormadup_is_not_enough_or_another_for_plan(gen_bam, tmp_path):
    """The memory of both sorts, if it collates; with less than stated, a run reports the same minimum."""
    for path in gen_bam("--size", "4M", "--sorted", "--level", 1), gen_bam("--size", "4M", "--level", 1):
        told = [re.search(r"(\d+)M is enough", run(["sormadup", *args, path]).stderr)[1]
                for args in (["--total-memory=24M", "-@2"], ["--total-memory=24M", "-@2", "--plan"])]
        assert abs(int(told[0]) - int(told[1])) <= 4     # MiB: the program's own memory varies
        for more, status in (4, 0), (-12, 1):
            p = run(["sormadup", "-@2", "--total-memory=%dM" % (int(told[0]) + more), "-o", tmp_path / "out.bam", path])
            assert p.returncode == status, (told, p.stderr)


# ---------------------------------------------------------------- no side effects


def test_plan_makes_or_changes_a_file(made, desk, tmp_path):
    before = snapshot(desk)
    for args in (["-o", "out.bam"], ["-o", "new.bam", "--write-index", "--report=r.json", "--trace", "t.json", "--checksum", "c"],
                 ["-m", "1M", "-T", "temp"], []):
        p = run_sort(["--plan", *args, made("mixed")], cwd=desk, env={"SAMTOOLS_OMP_ARENA": "65536", "SAMTOOLS_OMP_REPORT": "."})
        assert (p.returncode, p.stderr) == (0, "")
        assert snapshot(desk) == before


def test_plan_takes_data_from_a_pipe(made, tmp_path):
    r, w = os.pipe()
    os.write(w, b"precious")
    os.close(w)
    p = subprocess.run([BINARY, "sort", "--plan", "-@", "3", "-m", "10M", "-"], stdin=r, capture_output=True, env=clean_env(),
                       timeout=HANG)
    assert (p.returncode, p.stderr) == (0, b"")
    assert os.read(r, 100) == b"precious"
    os.close(r)
    assert b"nothing was read" in p.stdout and b"#SBATCH --mem=94M\n" in p.stdout and b"#SBATCH --cpus-per-task=3\n" in p.stdout
    assert b"fits in memory: up to " in p.stdout


def test_plan_of_a_file_by_standard_input_is_refused(made):
    with open(made("mixed"), "rb") as f:
        assert planned([], stdin=f)["records"] == pytest.approx(planned([made("mixed")])["records"])


@pytest.mark.parametrize("form", ["sam", "cram"])
def test_format_without_a_sample_gets_numbers(made, tmp_path, form):
    args = ["-O", form] + (["--output-fmt-option", "no_ref=1"] if form == "cram" else [])
    (tmp_path / "in").write_bytes(sorted_bytes([*args, made("ties")]))
    plan = planned(["-m", "20M", tmp_path / "in"])
    assert plan["records"] is plan["temporary_bytes"] is plan["in_memory"] is None
    assert 60 << 20 < plan["memory_bytes"] <= 84 << 20
    facts, _ = text_of(["-m", "20M", tmp_path / "in"])
    assert "not estimated" in facts["input"] and facts["memory"].startswith("at most ")


@pytest.mark.parametrize("form", ["sam", "cram", "fastq"])
def test_output_that_is_not_bam_gets_a_size(made, form):
    plan = planned(["-O", form, made("mixed")])
    assert plan["records"] > 0 and plan["output_bytes"] is None


# ---------------------------------------------------------------- errors


def test_plan_of_no_file_succeeds(desk):
    refused(desk, ["--plan", "none.bam"], "cannot open none.bam")
    (desk / "text.bam").write_text("no alignments")
    refused(desk, ["--plan", "text.bam"])


@pytest.mark.parametrize("args,words", [(["--plan=xml"], "--plan"), (["--plan", "--check"], "--check and --plan"),
                                        (["--plan", "-m", "x"], "-m needs")], ids=" ".join)
def test_plan_takes_a_wrong_command_line(made, desk, args, words):
    refused(desk, [*args, made("ties")], words)


def test_damage_crashes_the_plan(sound, tmp_path):
    """The plan reports the rest. The sort will report the damage."""
    data, found = sound
    for n in (0, 1, 57, len(found) - 2):
        for at in (found[n].offset, found[n].offset + 16, found[n].offset + 40, found[n].offset + found[n].size - 4):
            spoiled = bytearray(data)
            spoiled[at] ^= 0x5A
            (tmp_path / "in.bam").write_bytes(spoiled)
            p = run_sort(["--plan", tmp_path / "in.bam"])
            assert p.returncode in (0, 1) and bool(p.stdout) == (p.returncode == 0) == (not p.stderr), p.stderr
    for n in (len(data) // 2, len(data) - 5):
        (tmp_path / "in.bam").write_bytes(data[:n])
        assert planned([tmp_path / "in.bam"])["records"] > 0


def test_full_standard_output_is_no_error(made):
    with open("/dev/full", "w") as full:
        p = subprocess.run([BINARY, "sort", "--plan", made("ties")], stdout=full, stderr=subprocess.PIPE, env=clean_env(), timeout=HANG)
    assert p.returncode == 1 and b"standard output" in p.stderr


# ---------------------------------------------------------------- the text


def test_fact_is_missing(made, tmp_path):
    facts, warnings = text_of(["-@", "2", "-o", "o.bam", made("mixed")], cwd=tmp_path)
    assert {"input", "records", "memory", "sorted", "output", "output place", "#SBATCH --cpus-per-task",
            "#SBATCH --mem"} <= set(facts)
    assert "#SBATCH --tmp" not in facts and "temporary" not in facts and warnings == []
    assert facts["#SBATCH --cpus-per-task"] == "2" and re.fullmatch(r"\d+M", facts["#SBATCH --mem"])


def test_fact_of_a_spilled_sort_is_missing(gen_bam, tmp_path):
    path = gen_bam("--size", "20M", "--level", 1)
    facts, _ = text_of(["-m", "1M", "-T", tmp_path / "x", "-T", "/", path], env={"SAMTOOLS_OMP_ARENA": "1000000"})
    assert {"temporary", "temporary place", "#SBATCH --tmp"} <= set(facts)
    assert "run" in facts["sorted"] and "2 files" in facts["temporary"]


def test_place_without_room_gets_no_warning(gen_bam, tmp_path):
    path = gen_bam("--size", "20M", "--level", 1)
    _, warnings = text_of(["-m", "1M", "-T", "nowhere/x", "-o", "neither/o.bam", path], cwd=tmp_path, env={"SAMTOOLS_OMP_ARENA": "1000000"})
    assert [bool(re.search(w, t)) for w, t in zip(("file can be made in neither", "temporary file can be made in nowhere"), warnings)] == [True] * 2
    _, warnings = text_of(["-T", "nowhere/x", path], cwd=tmp_path)
    assert warnings == []


@pytest.mark.parametrize("args,words", [
    (["-o", "disk/o.bam"], "the output takes about .* only 0 MB are free in disk"),
    (["-T", "disk", "-o", "o.bam"], "temporary data take about .* only 0 MB are free in disk"),
    (["-o", "disk/o.bam", "-T", "."], "the output takes about ")], ids=lambda v: v[0] if isinstance(v, list) else "")
def test_full_disk_gets_no_warning(gen_bam, tmp_path, args, words):
    (tmp_path / "disk").mkdir()
    argv = in_name_space("mount -t tmpfs -o nr_blocks=1 none disk && echo >disk/x", cwd=tmp_path)
    p = subprocess.run([*argv, BINARY, "sort", "--plan=json", *args, gen_bam("--size", "20M", "--level", 1)], cwd=tmp_path,
                       capture_output=True, timeout=HANG, env=clean_env(SAMTOOLS_OMP_ARENA="1000000"))
    assert (p.returncode, p.stderr) == (0, b"")
    warnings = json.loads(p.stdout)["warnings"]
    assert len(warnings) == 1 + (args == ["-o", "disk/o.bam"])     # both are on that disk
    assert any(re.match(words, w) for w in warnings)
