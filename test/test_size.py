# SPDX-License-Identifier: MIT
"""The size of the output at -l 1, against samtools with libdeflate."""

import ctypes
import ctypes.util

import pytest

from conftest import REAL_BAMS, blocks, sorted_bytes

MOST = 1.01     # times samtools' size
SIZE = "20M"    # of what is made of each file
FRAME = 26      # bytes of a BGZF block that are not DEFLATE


@pytest.fixture(scope="session")
def level_1():
    """level_1(data) -> bytes that libdeflate, which samtools deflates with, needs at level 1."""
    name = ctypes.util.find_library("deflate")
    if not name:
        pytest.skip("no libdeflate to load")
    lib = ctypes.CDLL(name)
    lib.libdeflate_alloc_compressor.restype = ctypes.c_void_p
    lib.libdeflate_deflate_compress.restype = ctypes.c_size_t
    lib.libdeflate_deflate_compress.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_size_t,
                                                ctypes.c_char_p, ctypes.c_size_t]
    codec, room = lib.libdeflate_alloc_compressor(1), ctypes.create_string_buffer(1 << 17)
    return lambda data: lib.libdeflate_deflate_compress(codec, data, len(data), room, len(room))


@pytest.mark.parametrize("order", [[], ["-n"]], ids=["coordinate", "name"])
@pytest.mark.parametrize("path", REAL_BAMS)
def test_output_at_level_1_is_larger_than_that_of_samtools(path, order, gen_bam, level_1):
    """Also of copies of the records."""
    for file in (path, gen_bam("--grow", path, "--size", SIZE, "--level", 1)):
        data = sorted_bytes(["--no-PG", "-l", "1", *order, file])
        theirs = sum(FRAME + level_1(b.data) for b in blocks(data))
        assert len(data) <= MOST * theirs, "%s%s: %.4f of samtools' size" % (
            path.name, "" if file == path else ", grown", len(data) / theirs)
