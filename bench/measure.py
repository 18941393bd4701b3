#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Run one command and print its cost as one tab-separated line:

    wall seconds, user+system CPU seconds, peak RSS in KiB, exit status

usage: measure.py LOGFILE TIMEOUT_SECONDS COMMAND [ARGUMENT ...]

The command's stdout and stderr go to LOGFILE. An exit status above 128 means
a signal, 124 the time limit. wait4() gives CPU and RSS of the command itself
(and of children it waited for), so nothing but Python is needed.

BENCH_TOUCH=MIB in the environment: before the command this much memory is
touched and released, so that in a virtual machine the host has it ready.
Otherwise the first program after a pause pays for that.
"""
import mmap
import os
import signal
import subprocess
import sys
import time


def touch(mib):
    child = os.fork()
    if child == 0:
        memory = mmap.mmap(-1, mib << 20)
        for at in range(0, mib << 20, mmap.PAGESIZE):
            memory[at] = 1
        os._exit(0)
    os.waitpid(child, 0)


def measure(log_name, timeout, command, started=None):
    """Returns wall seconds, rusage and exit status. `started` is called with the process id."""
    if os.environ.get("BENCH_TOUCH"):
        touch(int(os.environ["BENCH_TOUCH"]))
    timed_out = False
    with open(log_name, "wb") as log:
        start = time.monotonic()
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log,
                                 stderr=log, start_new_session=True)

        def kill_group(_signal, _frame):
            nonlocal timed_out
            timed_out = True
            os.killpg(child.pid, signal.SIGKILL)

        signal.signal(signal.SIGALRM, kill_group)
        signal.alarm(int(timeout))
        try:
            if started:
                started(child.pid)
            _, status, usage = os.wait4(child.pid, 0)
        except KeyboardInterrupt:
            os.killpg(child.pid, signal.SIGKILL)
            raise
        wall = time.monotonic() - start
        signal.alarm(0)
    code = os.waitstatus_to_exitcode(status)
    return wall, usage, 124 if timed_out else code if code >= 0 else 128 - code


def main(log_name, timeout, *command):
    wall, usage, code = measure(log_name, timeout, command)
    print(f"{wall:.3f}\t{usage.ru_utime + usage.ru_stime:.3f}"
          f"\t{usage.ru_maxrss}\t{code}")


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
