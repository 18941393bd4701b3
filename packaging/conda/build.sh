#!/bin/bash
# SPDX-License-Identifier: MIT
set -euo pipefail
flags=(prefix="$PREFIX" CC="$CC" CFLAGS="${CFLAGS:-}" CPPFLAGS="${CPPFLAGS:-}" LDFLAGS="${LDFLAGS:-}")
make -j"${CPU_COUNT:-1}" V=1 "${flags[@]}"
make install "${flags[@]}"
