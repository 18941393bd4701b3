# SPDX-License-Identifier: MIT
"""A sample of `make check-stress`."""

import stress
from conftest import SANITIZED


def test_odd_settings_change_the_output(tmp_path):
    """Threads, memory, OpenMP's settings, one core only, a pipe, busy cores."""
    wrong = stress.run(10 if SANITIZED else 25, 7, tmp_path)
    assert not wrong, "\n".join(wrong)
