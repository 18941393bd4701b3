# SPDX-License-Identifier: MIT
"""The size of the output at -l 1, against samtools'."""

import pytest

from conftest import REAL_BAMS, oracle_bytes, run_sort
from test_spill import gen_bam  # noqa: F401

MOST = 1.01     # times samtools' size
SIZE = "16M"    # of what is made of each file: of the smallest ones the header is a good part


def sizes(path, order, tmp_path):
    """Bytes of our output and of samtools'."""
    out = tmp_path / "out.bam"
    args = ["--no-PG", "-l", "1", *order]
    p = run_sort([*args, "-o", out, path])
    assert p.returncode == 0, p.stderr
    ours = out.stat().st_size
    out.unlink()
    return ours, len(oracle_bytes(path, *args, scratch=tmp_path / "theirs"))


@pytest.mark.parametrize("order", [[], ["-n"]], ids=["coordinate", "name"])
@pytest.mark.parametrize("path", REAL_BAMS)
def test_output_at_level_1_is_larger_than_that_of_samtools(path, order, gen_bam, tmp_path):  # noqa: F811
    """Also of many more records of the same kind."""
    for file in (path, gen_bam("--grow", path, "--size", SIZE, "--level", 1)):
        ours, theirs = sizes(file, order, tmp_path)
        assert ours <= MOST * theirs, "%s%s: %.4f of samtools' size" % (
            path.name, "" if file == path else ", grown", ours / theirs)
