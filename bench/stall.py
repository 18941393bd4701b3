#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The longest time for which a sort blocks a fast producer that feeds it.

    bench/stall.py FILE COMMAND...      e.g. bench/stall.py x.bam ./samtools sort -m 128M -@ 2 -o y.bam -

Writes FILE to COMMAND's standard input as fast as possible, 64 KiB at a time,
and prints the longest writes."""

import subprocess
import sys
import time

CHUNK = 64 << 10


def main(path, *command):
    waits = []
    with open(path, "rb", buffering=0) as data:
        sort = subprocess.Popen(command, stdin=subprocess.PIPE, bufsize=0)
        begin = time.monotonic()
        while chunk := data.read(CHUNK):
            before = time.monotonic()
            view = memoryview(chunk)
            while view:
                view = view[sort.stdin.write(view):]
            waits.append(time.monotonic() - before)
        sort.stdin.close()
        fed = time.monotonic() - begin
        status = sort.wait()
    waits.sort(reverse=True)
    print("fed in %.2f s, all done in %.2f s, status %d; longest writes (s): %s"
          % (fed, time.monotonic() - begin, status, " ".join("%.3f" % w for w in waits[:5])))
    return status


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
