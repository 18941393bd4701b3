# SPDX-License-Identifier: MIT
"""The messages of `make`. The compiler here is a script that only makes its output file, so that every rule runs at
once and in a separate folder; the real build is not touched."""

import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import pytest

from conftest import HANG, REPO, script

pytestmark = pytest.mark.release

TARGETS = ["check-programs", "fuzz-programs", "static-compiler", "build/clocks_cost"]
COMPILER = """out=
case "$*" in *"-E -x c -"*) if [ -n "$LACKS" ] && grep -q "$LACKS"; then exit 1; fi; exit 0 ;; esac
case " $*" in *" test/fault_shim.c"*) if [ -n "$FAILS" ]; then echo 'fault_shim.c:1: no such thing' >&2; exit 3; fi ;; esac
while [ $# -gt 0 ]; do
    if [ "$1" = -o ]; then out=$2; fi
    shift
done
[ -z "$out" ] || : >"$out"
"""


@pytest.fixture
def make(tmp_path):
    """make(OPTION...): its messages, and its errors. Each call builds everything, unless it keeps the built files."""
    program = next(filter(shutil.which, ("gmake", "make")), None)
    if not program:
        pytest.skip("no make here")
    compiler = script(tmp_path / "cc", COMPILER)

    def run(*args, status=0, keep=False, **env):
        if not keep:
            shutil.rmtree(tmp_path / "build", ignore_errors=True)
        clean = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "V", "CC")}
        args = [str(tmp_path / arg) if arg.startswith("build/") else arg for arg in args]
        p = subprocess.run([program, *args, "CC=%s" % compiler, "BUILD=%s" % (tmp_path / "build")], cwd=REPO,
                           env={**clean, **env}, capture_output=True, text=True, timeout=HANG)
        assert p.returncode == status, p.stderr
        return p.stdout, p.stderr
    return run


@pytest.mark.parametrize("options", [[], ["-j3"], ["-k", "CFLAGS=-O2 -s -g"]], ids=["plain", "jobs", "variable"])
def test_screen_is_flooded_with_commands(make, tmp_path, options):
    said, errors = make(*options, *TARGETS)
    lines = said.replace(str(tmp_path) + "/", "").splitlines()
    assert errors == "" and len(lines) > 100
    for line in lines:
        assert re.fullmatch(r"  (CC|LINK|WARN) +[\w/.-]+", line) and len(line) < 60, line
    assert {"  CC    bam_sort.c", "  LINK  build/samtools", "  LINK  build/fault_shim.so", "  LINK  build/fuzz_sort",
            "  LINK  build/replay_sort", "  LINK  build/unit_clocks", "  WARN  base/clocks.c"} <= set(lines)


@pytest.mark.parametrize("option", ["V=1", "-n"])
def test_commands_cannot_be_seen(make, tmp_path, option):
    said = make(option, *TARGETS)[0]
    commands = [line for line in said.splitlines() if line.startswith(str(tmp_path / "cc"))]
    assert len(commands) > 100 and not re.search(r"printf|^  (CC|LINK)", said, re.M)
    assert any("-c -o %s/build/bam_sort.o bam_sort.c" % tmp_path in line for line in commands)


@pytest.mark.parametrize("options", [["-s"], ["--silent", "-j2"], ["-sk", "CFLAGS=-O2"]], ids=["s", "silent", "sk"])
def test_silent_make_speaks(make, options):
    assert make(*options, *TARGETS) == ("", "")


@pytest.mark.parametrize("option", ["-j1", "-s", "V=1"])
def test_failing_command_cannot_be_found(make, option):
    said, errors = make(option, "check-programs", status=2, FAILS="1")
    assert "fault_shim.c:1: no such thing" in errors
    if option == "V=1":
        assert re.search(r"^\S+/cc .*-shared .*test/fault_shim.c", said, re.M)
    else:
        assert re.search(r"^  LINK  \S+/fault_shim.so failed. make V=1 shows the command$", errors, re.M)
    assert re.search(r"Makefile:\d+: .*fault_shim.so\W* Error 3$", errors, re.M)


@pytest.mark.parametrize("options", [[], ["-j3"], ["-s"], ["samtools", "tools"]], ids=["all", "jobs", "silent", "targets"])
def test_missing_library_is_told_among_errors_of_each_file(make, options):
    said, errors = make(*options, status=2, LACKS="htslib/sam.h\\|lz4.h")
    assert "cc does not find: htslib/sam.h lz4.h. Type\n    ./bootstrap.sh deps " in errors
    assert "CC " not in said and "failed" not in errors and len(errors.splitlines()) <= 5
    assert make("build/base/version.o", keep=True)[1] == "", "it is not looked for again"


def copy_sources(tree):
    """A copy of the sources that make and configure read."""
    shutil.copytree(REPO, tree, ignore=shutil.ignore_patterns(".*", "build*", "demo", "doc", "samtools*", "config.mk", "work", "__pycache__", "shared"))
    return tree


def test_tree_that_may_not_be_written_is_not_built():
    """Its path has a space, the user has no HOME, and files are made for this user only."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        user = 65534 if os.geteuid() == 0 else None
        tree, build = copy_sources(pathlib.Path(folder, "a tree")), pathlib.Path(folder, "build")
        build.mkdir()
        if user:
            os.chown(build, user, -1)
        os.chmod(tree, 0o555)
        p = subprocess.run(["make", "-j2", "BUILD=%s" % build, "CC=%s" % script(pathlib.Path(folder, "cc"), COMPILER)], cwd=tree,
                           env={"PATH": os.environ["PATH"]}, user=user, umask=0o077, capture_output=True, text=True, timeout=HANG)
        os.chmod(tree, 0o755)
        assert (p.returncode, p.stderr) == (0, "")
        assert (build / "samtools").exists() and not (tree / "samtools").is_symlink()


def test_configure_in_another_folder_makes_what_nobody_reads(tmp_path):
    if not shutil.which("autoconf"):
        pytest.skip("no autoconf here")
    tree = copy_sources(tmp_path / "tree")
    subprocess.run(["autoconf"], cwd=tree, check=True, capture_output=True, timeout=HANG)
    (tree / "elsewhere").mkdir()
    p = subprocess.run(["../configure"], cwd=tree / "elsewhere", capture_output=True, text=True, timeout=HANG)
    assert p.returncode == 1 and "error: call it as ./configure; then `make BUILD=DIR` builds in another folder" in p.stderr
    assert not list(tree.rglob("config.mk"))


def test_help_lacks_a_target(make):
    said = make("help")[0]
    for word in ("make  ", "make check", "make install", "make install-strip", "make uninstall", "make dist", "make help"):
        assert word in said, word
    assert "SPDX" not in said


def test_rule_shows_its_command():
    rules = (REPO / "Makefile").read_text()
    assert not re.search(r"^\t@?(\$\(CC\)|\$\(CPPCHECK\)|clang-tidy)", rules, re.M)
    assert len(re.findall(r"^\t\$\(call run,", rules, re.M)) >= 11


def test_objects_of_the_mpi_before_are_linked(make, tmp_path):
    """mpicc is another one after `module load`. If there is none, the built files stay."""
    shown = 'if [ "$1" = -show ]; then echo "$SHOWS"; exit "${SHOW_STATUS:-0}"; fi\n'
    mpicc = "MPICC=%s" % script(tmp_path / "mpicc", shown + COMPILER)

    def compiled(**env):
        return make(mpicc, "build/mpi/mpi_team.o", keep=True, **env)[0].count("MPICC mpi/mpi_team.c")

    assert [compiled(SHOWS="cc -lone"), compiled(SHOWS="cc -lone"), compiled(SHOWS="cc -ltwo"), compiled(SHOWS="cc -ltwo"),
            compiled(SHOWS="", SHOW_STATUS="1")] == [1, 0, 1, 0, 0]


def test_script_under_make_is_told_more_than_it_asks(make, tmp_path):
    """With -C make prints the folder it enters, and so would each make that a script starts. Some versions of make
    print it for the outermost one, others for none."""
    (tmp_path / "more.mk").write_text("include Makefile\nscript:\n\t@sh -c 'make -s show-SMALL'\n")
    said = make("-C", str(REPO), "-f", str(tmp_path / "more.mk"), "script")[0].splitlines()
    assert [line for line in said if " directory '" not in line] == ["-Dalways_inline=unused"]
    assert not any("make[1]" in line for line in said)


def test_installing_builds_with_another_mpi(make, tmp_path):
    """The user who installs has another mpicc, or none; and sources are newer than the program."""
    mpicc = "MPICC=%s" % script(tmp_path / "mpicc", ": >%s\n%s" % (tmp_path / "called", COMPILER))
    args = [mpicc, "install-mpi", "DESTDIR=%s" % (tmp_path / "root"), "prefix=/usr"]
    assert "run make mpi first" in make(*args, status=2)[1]
    (tmp_path / "build").mkdir()
    built = script(tmp_path / "build" / "samtools-omp-mpi", "what was built")
    os.utime(built, (1, 1))
    make(*args, keep=True)
    assert (tmp_path / "root/usr/bin/samtools-omp-mpi").read_text() == built.read_text()
    assert not (tmp_path / "called").exists()


@pytest.mark.parametrize("pattern,files", [
    (r"#pragma omp (master|masked)", "*.[ch]"),         # deprecated in OpenMP 5.1; unknown before gcc 12
    (r"preexec_fn=|os\.fork", "test/test_*.py"),         # in a process with threads: Python 3.12 warns
    (r"\.tag = \"..\"[,}]", "test/*.c"),                # gcc 15: no room for the NUL
])
def test_what_newer_systems_warn_of_is_back(pattern, files):
    folders = [REPO] if "/" in files else [REPO, *(p for p in REPO.iterdir() if p.is_dir() and not p.name.startswith(("build", ".")))]
    found = ["%s: %s" % (p.relative_to(REPO), line) for folder in folders for p in folder.glob(files) if p.name != "test_make.py"
             for line in p.read_text(errors="replace").splitlines() if re.search(pattern, line)]
    assert not found, found
