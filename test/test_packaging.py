# SPDX-License-Identifier: MIT
"""The recipes of packages agree with the program."""

import hashlib
import re
import subprocess

import pytest

from conftest import REPO

pytestmark = pytest.mark.release

VERSION = re.search(r'SAMTOOLS_OMP_VERSION "(.*)"', (REPO / "base/version.h").read_text()).group(1)
RELEASE = VERSION.replace("-dev", "")            # the release of these recipes, which use its published tarball


@pytest.mark.parametrize("name,pattern", [
    ("packaging/debian/changelog", r"samtools-omp \((.*)-\d+\)"), ("packaging/conda/meta.yaml", r'set version = "(.*)"'),
    ("packaging/spack/package.py", r'version\("([^"]*)"'), ("packaging/Containerfile", r"ARG VERSION=(.*)"),
    ("CITATION.cff", r"\nversion: (.*)"), ("packaging/Containerfile", r"-t samtools-omp:(\S*)"),
    *((str(page.relative_to(REPO)), r'\.TH .*"samtools-omp (.*)" "') for page in (REPO / "doc").glob("*.[15]"))])
def test_package_has_another_version_than_the_program(name, pattern):
    """Debian's mark of a version before a release is ~, which sorts before the release."""
    version = {"packaging/debian/changelog": VERSION.replace("-dev", "~dev"), "packaging/conda/meta.yaml": RELEASE, "packaging/spack/package.py": RELEASE}
    assert re.search(pattern, (REPO / name).read_text()).group(1) == version.get(name, VERSION)


def test_recipe_of_conda_does_not_render():
    jinja2, yaml = pytest.importorskip("jinja2"), pytest.importorskip("yaml")
    text = (REPO / "packaging/conda/meta.yaml").read_text()
    rendered = jinja2.Environment(undefined=jinja2.StrictUndefined).from_string(text).render(
        compiler=str, stdlib=str, pin_subpackage=lambda name, max_pin: name)
    recipe = yaml.safe_load(rendered)
    assert recipe["package"] == {"name": "samtools-omp", "version": RELEASE}
    assert all((REPO / name).exists() for name in [*recipe["test"]["source_files"], recipe["about"]["license_file"]])


def test_manual_that_is_installed_is_not_in_a_debian_package():
    installed = [page for page in (REPO / "doc").glob("*.[15]")]
    packed = "".join(p.read_text() for p in (REPO / "packaging/debian").glob("*.install"))
    assert len(installed) > 3
    assert [page.name for page in installed if "usr/share/man/man%s/%s\n" % (page.suffix[1:], page.name) not in packed] == []


def test_page_that_the_readme_links_is_not_in_the_debian_package():
    """NEWS.md is installed as changelog.gz; pages for contributors are left out."""
    patterns = [line.split()[0] for line in (REPO / "packaging/debian/samtools-omp.install").read_text().splitlines()]
    there = {path for pattern in patterns for path in REPO.glob(pattern)} | {REPO / "NEWS.md"}
    assert all((REPO / name).exists() for package in ("", "-mpi") for name in (REPO / ("packaging/debian/samtools-omp%s.docs" % package)).read_text().split())
    linked = re.findall(r"\]\((?!\.github)([^)#:]+)\)", (REPO / "README.md").read_text())
    assert len(linked) > 5
    assert [name for name in linked if REPO / name not in there and not any(REPO / name in path.parents for path in there)] == []


FIELDS = [
    ("packaging/conda/meta.yaml", r"\n  url: .*\.tar\.gz\n  sha256: [0-9a-f]{64}\n"), ("packaging/conda/meta.yaml", r"\nabout:\n  home: "),
    ("packaging/conda/meta.yaml", r"\n  recipe-maintainers:\n    - "), ("packaging/conda/meta.yaml", r"\n  license_file: LICENSE\n"),
    ("packaging/spack/package.py", r"\A# Copyright Spack Project Developers\..*\n#\n# SPDX-License-Identifier: \(Apache-2.0 OR MIT\)\n"),
    ("packaging/spack/package.py", r'\n    homepage = "https://'), ("packaging/spack/package.py", r'\n    url = "https://.*\.tar\.gz"'),
    ("packaging/spack/package.py", r"\n    maintainers\("), ("packaging/spack/package.py", r'version\("[0-9.]+", sha256="[0-9a-f]{64}"\)'),
    ("packaging/debian/control", r"\nHomepage: https://"), ("packaging/debian/control", r"\nPackage: samtools-omp-mpi\n"),
    ("packaging/Containerfile", r"\nARG BASE=\S+/debian:\d+\.\d+-slim\n"), ("packaging/Containerfile", r"\nUSER (?!root)\S+\n"),
    ("packaging/Containerfile", r"image\.source="), ("packaging/Containerfile", r"image\.description="),
]


@pytest.mark.parametrize("name,pattern", FIELDS)
def test_field_that_reviewers_want_is_missing(name, pattern):
    assert re.search(pattern, (REPO / name).read_text())


def published(tmp_path, *changes):
    """release.conf of a published release; changes: (name, value)."""
    text = (REPO / "packaging/release.conf").read_text()
    for name, value in dict([("home", "https://example.org/omp"), ("url", "https://example.org/omp/v%s/samtools-omp-%s.tgz" % (RELEASE, RELEASE)),
                             ("maintainer", "somebody"), ("email", "somebody@example.org"), ("base", "debian@sha256:12"), *changes]).items():
        assert re.search(r"(?m)^%s=" % name, text)
        text = re.sub(r"(?m)^%s=\S*" % name, "%s=%s" % (name, value), text)
    (tmp_path / "release.conf").write_text(text)
    (tmp_path / "omp.tgz").write_bytes(b"tarball")
    return [REPO / "packaging/fill_in.sh", tmp_path / "omp.tgz", tmp_path / "out", tmp_path / "release.conf"]


def test_recipe_of_a_release_keeps_a_placeholder(tmp_path):
    subprocess.run(published(tmp_path), check=True, capture_output=True)
    filled = {str(path.relative_to(tmp_path / "out")): path.read_text() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert not [name for name, text in filled.items() if re.search(r"\.invalid|0{64}|omp-maintainer", text)]
    digest, address = hashlib.sha256(b"tarball").hexdigest(), "https://example.org/omp/v%s/samtools-omp-%s.tgz"
    assert digest in filled["conda/meta.yaml"] and address % (("{{ version }}",) * 2) in filled["conda/meta.yaml"]
    assert 'url = "%s"' % (address % (RELEASE, RELEASE)) in filled["spack/package.py"] and 'sha256="%s"' % digest in filled["spack/package.py"]
    assert "Homepage: https://example.org/omp\n" in filled["debian/control"] and "ARG BASE=debian@sha256:12\n" in filled["Containerfile"]
    assert "<somebody@example.org>" in filled["debian/changelog"] and "    - somebody\n" in filled["conda/meta.yaml"]
    assert (tmp_path / "out/debian/rules").stat().st_mode & 0o111


@pytest.mark.parametrize("change,why", [
    (("home", "https://samtools-omp.invalid"), "does not say all yet"), (("url", ""), "does not say all yet"),
    (("url", "https://example.org/omp-0.0.9.tgz"), "which https://example.org/omp-0.0.9.tgz does not name"), (("maintainer", "a\\&b"), "no |, & or")])
def test_recipe_of_a_release_is_made_of_what_is_not_one(tmp_path, change, why):
    p = subprocess.run(published(tmp_path, change), capture_output=True, text=True)
    assert p.returncode == 1 and why in p.stderr and p.stderr.count("\n") == 1 and not (tmp_path / "out").exists()
