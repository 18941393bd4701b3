#!/bin/sh
# SPDX-License-Identifier: MIT
# Fetches a source archive of pysam by pip and unpacks it: pysam has the sources of htslib and samtools in it. If that
# fails, the exit status is 1, and the last lines of pip are on standard error.
#
# usage: test/fetch_pysam.sh REQUIREMENT FOLDER     FOLDER/pysam-VERSION is made; REQUIREMENT: a line as in htslibs.txt
set -eu
cd -- "$(dirname -- "$0")/.."
requirement=$1 folder=$2
python=.venv/bin/python
[ -x $python ] || python=python3
python=${PYTHON:-$python}

# pip would run the set-up of pysam, which needs a compiler of Python's own language, to learn its name. This gives the
# name.
mkdir -p "$folder/stub/setuptools"
: >"$folder/stub/setuptools/__init__.py"
cat >"$folder/stub/setuptools/build_meta.py" <<'END'
import os
import shutil
import sys

__legacy__ = sys.modules[__name__]


def prepare_metadata_for_build_wheel(folder, config_settings=None):
    os.makedirs(os.path.join(folder, "pysam.dist-info"))
    shutil.copy("PKG-INFO", os.path.join(folder, "pysam.dist-info", "METADATA"))
    return "pysam.dist-info"
END
printf '%s\n' "$requirement" >"$folder/requirement.txt"
PYTHONPATH=$(cd "$folder" && pwd)/stub "$python" -m pip download -q --disable-pip-version-check --retries 1 --no-deps \
    --no-binary :all: --no-build-isolation --use-pep517 -d "$folder" -r "$folder/requirement.txt" \
    >"$folder/pip.log" 2>&1 </dev/null || {
    tail -n 20 "$folder/pip.log" >&2
    exit 1
}
tar -xzf "$folder"/pysam-*.tar.gz -C "$folder"
