# SPDX-License-Identifier: MIT
"""samtools-omp-mpi --report: one report of all ranks.

Skipped without mpicc and mpirun.
"""

import html.parser
import json
import re
import subprocess

import pytest

import bamgen
from conftest import BINARY, HANG, clean_env
from test_mpi import KINDS, desk, half_placed, kind, launch, more_than_memory, programs, pytestmark, sort_mpi, write  # noqa: F401

STEPS = ["open", "read", "exchange", "measure", "blocks", "join"]


def sort_with(programs, desk, n, args, data=None, kind=KINDS[0] if KINDS else None):
    source = desk / "in.bam"
    source.write_bytes(data or bamgen.l_htslib(*bamgen.realistic(2000)))
    return sort_mpi(programs[kind], kind, n, ["--no-PG", *args, "-o", desk / "out.bam", source])


def size_of_records(path):
    import gzip
    import pysam
    with pysam.AlignmentFile(str(path), check_sq=False) as given:
        data = gzip.decompress(path.read_bytes())
        at = 8 + int.from_bytes(data[4:8], "little")
        n_ref = int.from_bytes(data[at:at + 4], "little")
        at += 4
        for _ in range(n_ref):
            at += 8 + int.from_bytes(data[at:at + 4], "little")
        return sum(1 for _ in given.fetch(until_eof=True)), len(data) - at


@pytest.mark.parametrize("n", [1, 3])
def test_numbers_do_not_add_up(programs, desk, kind, n):
    status, err = sort_with(programs, desk, n, ["--report=%s" % (desk / "r.json")], kind=kind)
    assert status == 0, err
    report = json.loads((desk / "r.json").read_text())
    ranks = report["ranks"]
    records, size = size_of_records(desk / "in.bam")
    assert [rank["rank"] for rank in ranks] == list(range(n))
    assert sum(rank["records"] for rank in ranks) == records == report["records"]
    assert sum(rank["read_bytes"] for rank in ranks) == size
    assert sum(rank["sent_bytes"] for rank in ranks) == sum(rank["received_bytes"] for rank in ranks)
    assert (sum(rank["sent_bytes"] for rank in ranks) > 0) == (n > 1)
    eof = len(bamgen.EOF_BLOCK)
    assert sum(rank["written_bytes"] for rank in ranks) in range((desk / "out.bam").stat().st_size - eof,
                                                                 (desk / "out.bam").stat().st_size + n * eof + 1)
    for rank in ranks:
        assert rank["host"] and rank["threads"] == 1 and rank["cpu"] > 0 and rank["peak_rss"] > 1 << 20
        assert rank["temporary_bytes"] == 0
        times = [rank["steps"][step][end] for step in STEPS for end in ("begin", "end")]
        assert times == sorted(times) and times[0] >= 0 and times[-1] <= report["wall"]
    slowest = report["slowest"]
    own = [rank["steps"][slowest["step"]] for rank in ranks]
    assert slowest["step"] in ("read", "measure", "blocks")
    assert abs(max(s["end"] - s["begin"] for s in own) - slowest["seconds"]) < 1e-5
    assert abs(own[slowest["rank"]]["end"] - own[slowest["rank"]]["begin"] - slowest["seconds"]) < 1e-5


@pytest.mark.parametrize("args", [["-n"], ["-M"], ["-M", "-K", "25"]], ids=" ".join)
def test_one_rank_gets_most_records_of_an_order(programs, desk, args):
    data = bamgen.l_htslib(*half_placed())
    status, err = sort_with(programs, desk, 3, [*args, "-l", "0", "--report=%s" % (desk / "r.json")], data)
    assert status == 0, err
    written = [rank["written_bytes"] for rank in json.loads((desk / "r.json").read_text())["ranks"]]
    assert max(written) < 1.5 * sum(written) / 3, written


def test_temporary_data_are_not_counted(programs, desk):
    status, err = sort_with(programs, desk, 2, ["-m", "3M", "-l", "0", "--report=%s" % (desk / "r.json")], more_than_memory())
    assert status == 0, err
    assert all(rank["temporary_bytes"] > 1 << 20 for rank in json.loads((desk / "r.json").read_text())["ranks"])


@pytest.mark.parametrize("args", [[], ["-n"], ["-t", "ZZ"], ["-t", "ZZ", "-N"]], ids=" ".join)
def test_ranks_have_unequal_parts(programs, desk, args):
    """The parts are equal even if no key decides: no record has the tag ZZ."""
    data = bamgen.l_htslib(*bamgen.realistic(12000))
    status, err = sort_with(programs, desk, 4, ["-l", "0", *args, "--report=%s" % (desk / "r.json")], data)
    assert status == 0, err
    written = [rank["written_bytes"] for rank in json.loads((desk / "r.json").read_text())["ranks"]]
    assert max(written) - min(written) < sum(written) / 4 / 50 + 2 * 65536, written


def test_rank_sends_what_is_its_own(programs, desk):
    """If the input is sorted, each rank reads the part that it writes; if names are unordered, it writes a third of
    it."""
    subprocess.run([BINARY, "sort", "--no-PG", "-o", desk / "sorted.bam", "-"], check=True, env=clean_env(),
                   input=bamgen.l_htslib(*bamgen.realistic(12000)), capture_output=True)
    data = (desk / "sorted.bam").read_bytes()
    for args, least, most in ([], 0, 0.1), (["-n"], 0.5, 0.8):
        status, err = sort_with(programs, desk, 3, [*args, "--report=%s" % (desk / "r.json")], data)
        assert status == 0, err
        ranks = json.loads((desk / "r.json").read_text())["ranks"]
        sent, read = (sum(rank[key] for rank in ranks) for key in ("sent_bytes", "read_bytes"))
        assert least <= sent / read <= most, (args, sent, read)


def test_report_changes_the_output(programs, desk):
    assert sort_with(programs, desk, 2, ["--report"])[0] == 0
    many = (desk / "out.bam").read_bytes()
    subprocess.run([BINARY, "sort", "--no-PG", "-o", desk / "out.bam", desk / "in.bam"], check=True,
                   capture_output=True, env=clean_env())
    assert many == (desk / "out.bam").read_bytes()


def test_text_lacks_a_rank(programs, desk):
    status, err = sort_with(programs, desk, 3, ["--report"])
    assert status == 0
    first = [line.split()[0] for line in err.splitlines() if line.strip()]
    assert [word for word in first if word in ("0", "1", "2", "all")] == ["0", "1", "2", "all"], err
    assert err.count("the slowest to") == 1


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.open, self.count = [], {}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.count[tag] = self.count.get(tag, 0) + 1
        if tag not in ("meta", "rect", "link"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        if tag != "rect":
            assert self.open.pop() == tag


def test_page_is_no_page(programs, desk):
    status, err = sort_with(programs, desk, 3, ["--report=%s" % (desk / "r.html")])
    assert status == 0, err
    page = Page((desk / "r.html").read_text())
    assert not page.open
    assert page.count["rect"] == 3 * len(STEPS)
    assert page.count["tr"] == 1 + 3 + 1
    cells = re.findall(r"<td([^>]*)>(.*?)</td>", (desk / "r.html").read_text())
    assert len(cells) > 20 and all("data-label" in attributes for attributes, text in cells if text not in ("", "0", "1", "2", "all"))
    assert "script" not in page.count and "link" not in page.count


def test_folder_gets_a_report_of_each_rank(programs, desk):
    source = write(desk / "in.bam", *bamgen.c_ties())
    (desk / "reports").mkdir()
    job = launch(programs[KINDS[0]], KINDS[0], 2, ["-o", desk / "out.bam", source],
                 env={"SAMTOOLS_OMP_REPORT": str(desk / "reports")})
    _, err = job.communicate(timeout=HANG)
    assert job.returncode == 0, err
    assert sorted(p.suffix for p in (desk / "reports").iterdir()) == [".html", ".json"]
    assert len(json.loads(next((desk / "reports").glob("*.json")).read_text())["ranks"]) == 2


def test_report_that_cannot_be_written_is_told_after_the_sort(programs, desk):
    status, err = sort_with(programs, desk, 2, ["--report=%s" % (desk / "none" / "r.json")])
    assert status == 1
    assert len([line for line in err.splitlines() if "r.json" in line and ": " in line and "mpirun" not in line]) == 1
    assert [p.name for p in desk.iterdir()] == ["in.bam"]


def test_failed_sort_leaves_a_report(programs, desk):
    data = bamgen.l_htslib(*bamgen.realistic(2000))
    status, _ = sort_with(programs, desk, 2, ["-T", str(desk / "tmp"), "--report=%s" % (desk / "r.json")], data[:len(data) // 2])
    assert status == 1
    assert [p.name for p in desk.iterdir()] == ["in.bam"]


def test_command_that_compares_reports_takes_one_of_ranks(programs, desk):
    assert sort_with(programs, desk, 2, ["--report=%s" % (desk / "r.json")])[0] == 0
    run = subprocess.run([BINARY, "report", desk / "r.json", desk / "r.json"], capture_output=True, text=True)
    assert run.returncode == 1
    assert "r.json" in run.stderr
