# SPDX-License-Identifier: MIT
"""The recipes of packages say what the program says."""

import re

import pytest

from conftest import REPO

VERSION = re.search(r'SAMTOOLS_OMP_VERSION "(.*)"', (REPO / "base/version.h").read_text()).group(1)


@pytest.mark.parametrize("name,pattern", [
    ("debian/changelog", r"samtools-omp \((.*)-\d+\)"), ("packaging/conda/meta.yaml", r'set version = "(.*)"'),
    ("packaging/spack/package.py", r'version\("(.*)"\)'), ("packaging/Containerfile", r"ARG VERSION=(.*)"),
    ("CITATION.cff", r"\nversion: (.*)"), ("packaging/Containerfile", r"-t samtools-omp:(\S*)")])
def test_package_has_another_version_than_the_program(name, pattern):
    assert re.search(pattern, (REPO / name).read_text()).group(1) == VERSION


def test_recipe_of_conda_does_not_render():
    jinja2, yaml = pytest.importorskip("jinja2"), pytest.importorskip("yaml")
    text = (REPO / "packaging/conda/meta.yaml").read_text()
    rendered = jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(text).render(
        compiler=str, stdlib=str, pin_subpackage=lambda name, max_pin: name)
    recipe = yaml.safe_load(rendered)
    assert recipe["package"] == {"name": "samtools-omp", "version": VERSION}
    assert all((REPO / name).exists() for name in [*recipe["test"]["source_files"], recipe["about"]["license_file"]])


def test_documents_of_the_debian_package_are_missing():
    assert all((REPO / name).exists() for name in (REPO / "debian/samtools-omp.docs").read_text().split())
