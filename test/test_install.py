# SPDX-License-Identifier: MIT
"""The files that `make install` installs, `samtools-omp --env`, the module file, the manual, completion, and the
tarball of a release. All goes to folders of the test; the program is the one under test, installed unchanged."""

import hashlib
import os
import pathlib
import re
import shutil
import subprocess
import tarfile

import pytest

from conftest import BINARY, HANG, REPO, clean_env, htslib_version, script

BUILD = pathlib.Path(BINARY).resolve().parent
MAKE = next(filter(shutil.which, ("gmake", "make")), None)
SYSTEM = "/usr/bin:/bin"
OTHER = """printf 'other'
printf ' [%s]' "$@"
echo
"""
# Names that only the real samtools may have.
TAKEN = ["bin/samtools", "share/bash-completion/completions/samtools", "share/man/man1/samtools-sort.1"]
VERSION = re.search('SAMTOOLS_OMP_VERSION "(.*)"', (REPO / "base" / "version.h").read_text()).group(1)
MANUALS = ["man1/bgzip-omp.1", *("man1/samtools-omp-%s.1" % command for command in
           ("collate", "fixmate", "markdup", "merge", "sormadup", "sort", "stats")), "man1/samtools-omp.1", "man5/samtools-omp-report.5"]
OURS = ["bin/bgzip-omp", "bin/samtools-omp", "libexec/samtools-omp/samtools", "share/bash-completion/completions/bgzip-omp",
        "share/bash-completion/completions/samtools-omp", "share/fish/vendor_completions.d/bgzip-omp.fish",
        "share/fish/vendor_completions.d/samtools-omp.fish", *("share/man/" + page for page in MANUALS),
        "share/samtools-omp/modulefiles/samtools-omp/" + VERSION,
        "share/samtools-omp/modulefiles/samtools-omp/%s.lua" % VERSION, "share/zsh/site-functions/_samtools-omp"]

OF_MPI = ["bin/samtools-omp-mpi", "share/man/man1/samtools-omp-mpi.1"]


def make(*args, status=0, cwd=REPO, **env):
    if not MAKE:
        pytest.skip("no make here")
    clean = {k: v for k, v in clean_env(**env).items() if k not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "DESTDIR", "PREFIX")}
    p = subprocess.run([MAKE, "--no-print-directory", *map(str, args)], cwd=cwd, env=clean, capture_output=True, text=True, timeout=10 * HANG)
    assert p.returncode == status, p.stdout + p.stderr
    return p.stdout + p.stderr


def install(word, destdir, prefix="/usr/local", *args, **kw):
    """`make install` or uninstall that builds nothing (-o), and so needs no flags (those of sanitized builds are not
    determined)."""
    if os.path.basename(os.path.realpath(BINARY)) != "samtools":
        pytest.skip("%s is not a build" % BINARY)
    return make("-o", BUILD / "samtools", word, "BUILD=%s" % BUILD, "CFLAGS=-fsanitize", "DESTDIR=%s" % destdir, "prefix=%s" % prefix, *args, **kw)


def files(folder):
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*") if p.is_symlink() or not p.is_dir())


def shell(text, path, cwd=None, name="sh"):
    p = subprocess.run([name, "-c", text], env=clean_env(PATH=path), cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True,
                       text=True, errors="replace", timeout=HANG)
    return p.returncode, p.stdout, p.stderr


@pytest.fixture
def root(tmp_path):
    install("install", tmp_path / "root", "/usr")
    return tmp_path / "root" / "usr"


@pytest.fixture
def other(tmp_path):
    """A folder with another samtools."""
    return script(tmp_path / "other" / "samtools", OTHER).parent


# ---------------------------------------------------------------- installed files


def test_install_takes_a_name_of_the_real_samtools(root):
    assert files(root) == OURS
    assert os.readlink(root / "libexec" / "samtools-omp" / "samtools") == "../../bin/samtools-omp"
    assert not any(os.access(root / name, os.X_OK) for name in OURS if name.startswith("share"))


@pytest.mark.parametrize("how", ["resolved", "moved", "copied", "packed", "linked", "no hard links"])
def test_installed_bgzip_is_another_program(root, tmp_path, how):
    """It is the same program if links are resolved, if the tree goes elsewhere, and after a second `make install`, over
    an older one's link."""
    program, home = root / "bin" / "bgzip-omp", tmp_path / "home"
    program.unlink()
    program.symlink_to("samtools-omp")
    install("install", root.parent, "/usr")
    if how == "moved":
        root.rename(home)
    elif how == "copied":
        shutil.copytree(root, home, symlinks=True)
        shutil.rmtree(root)
    elif how == "packed":
        subprocess.run("mkdir %s && cd %s && tar cf - . | (cd %s && tar xf -)" % (home, root, home), shell=True, check=True)
        shutil.rmtree(root)
    elif how == "linked":
        home.joinpath("bin").mkdir(parents=True)
        (home / "bin" / "bgzip-omp").symlink_to(program)
    elif how == "no hard links":
        ln = script(tmp_path / "tools" / "ln", 'case $1 in (-s*) exec /bin/ln "$@" ;; esac; exit 1')
        mask = os.umask(0o077)
        try:
            install("install", root.parent, "/usr", PATH="%s:%s" % (ln.parent, os.environ["PATH"]))
        finally:
            os.umask(mask)
        assert program.stat().st_mode & 0o777 == 0o755, "only its owner can run the copy"
        assert not os.path.samefile(program, root / "bin" / "samtools-omp")
    if home.exists():
        program = home / "bin" / "bgzip-omp"
    for path in program, os.path.realpath(program):
        p = subprocess.run([path, "--version"], env=clean_env(), capture_output=True, text=True, timeout=HANG)
        assert p.stdout.startswith("bgzip (htslib) 1.24\n") and not p.stderr


def test_name_of_samtools_cannot_be_had(tmp_path):
    install("install", tmp_path, "/usr", "SAMTOOLS_NAME=yes")
    install("install", tmp_path, "/usr", "SAMTOOLS_NAME=yes")
    assert files(tmp_path / "usr") == sorted(OURS + TAKEN)
    for name in TAKEN:
        assert (tmp_path / "usr" / name).exists()
    assert shell("samtools --version", "%s/usr/bin:%s" % (tmp_path, SYSTEM))[1].startswith("samtools 1.24\n")


@pytest.mark.parametrize("name", TAKEN)
def test_files_of_the_real_samtools_are_overwritten_or_removed(tmp_path, name):
    theirs = tmp_path / "usr" / name
    theirs.parent.mkdir(parents=True)
    theirs.write_text("theirs")
    said = install("install", tmp_path, "/usr", "SAMTOOLS_NAME=yes", status=2)
    assert str(theirs) in said and files(tmp_path) == ["usr/" + name]
    install("install", tmp_path, "/usr")
    install("uninstall", tmp_path, "/usr")
    assert files(tmp_path) == ["usr/" + name] and theirs.read_text() == "theirs"


@pytest.mark.parametrize("args", [(), ("SAMTOOLS_NAME=yes",)], ids=["plain", "named"])
@pytest.mark.parametrize("prefix", ["/usr", "/opt/a b/soft", ""], ids=["usr", "space", "none"])
def test_uninstall_leaves_something(tmp_path, prefix, args):
    (tmp_path / "usr").mkdir()
    (tmp_path / "usr" / "keep").write_text("")
    install("install", tmp_path, prefix, *args)
    assert len(files(tmp_path)) == 1 + len(OURS) + len(args) * len(TAKEN)
    install("uninstall", tmp_path, prefix)
    assert files(tmp_path) == ["usr/keep"]
    assert not list(tmp_path.rglob("*samtools-omp*"))
    install("uninstall", tmp_path, prefix)


def install_mpi(tmp_path, prefix):
    """The program is a separate file, so that it can be installed without MPI."""
    built = tmp_path / "built" / "samtools-omp-mpi"
    built.parent.mkdir()
    shutil.copy(BINARY, built)
    install("install-mpi", tmp_path / "root", prefix, "MPI_BUILD=%s" % built.parent)


@pytest.mark.parametrize("prefix", ["/usr", "/opt/a b/soft", ""], ids=["usr", "space", "none"])
def test_program_for_several_nodes_is_not_installed_or_stays(tmp_path, prefix):
    install("install", tmp_path / "root", prefix)
    install_mpi(tmp_path, prefix)
    top = tmp_path / "root" / prefix[1:]
    assert files(top) == sorted(OURS + OF_MPI)
    assert os.access(top / OF_MPI[0], os.X_OK) and not os.access(top / OF_MPI[1], os.X_OK)
    install("uninstall", tmp_path / "root", prefix)
    assert files(tmp_path / "root") == []


def test_manual_of_ranks_names_no_option_or_lacks_a_refused_one(tmp_path):
    """The options in the usage, and all that rank_sort.c refuses by name."""
    text = re.sub(r"\\f[BIR]", "", (REPO / "doc" / "samtools-omp-mpi.1").read_text()).replace("\\", "")
    text = re.sub(r" (srun|mpirun) .*? samtools-omp-mpi", "", text)
    usage = subprocess.run([BINARY, "sort", "--help"], capture_output=True, text=True, timeout=HANG)
    usage = usage.stdout + usage.stderr
    option = r"(?<![\w-])--?[A-Za-z@][\w-]*"
    others = {"-N", "--ntasks-per-node", "-c", "-n", "--version"}   # options of launchers, and of the program
    named = set(re.findall(option, text.split(".SH DESCRIPTION")[1]))
    assert named - set(re.findall(option, usage)) - others == set()
    source = (REPO / "mpi" / "rank_sort.c").read_text()
    refused = re.findall(r'return "([^"]*)"', source.split("rank_sort_refuses")[1].split("\n}")[0])
    assert len(refused) > 3
    assert set(re.findall(option, " ".join(refused))) <= named


@pytest.mark.parametrize("folders", [("/usr/bin", "/usr/lib/exec"), ("/a/bin", "/b/libexec"), ("/bin", "/libexec"), ("/x", "/x/y")], ids=str)
def test_link_in_odd_folders_leads_nowhere(tmp_path, folders):
    install("install", tmp_path, "/usr", "bindir=%s" % folders[0], "libexecdir=%s" % folders[1])
    link = tmp_path / folders[1][1:] / "samtools-omp" / "samtools"
    assert not os.path.isabs(os.readlink(link)) and link.resolve() == (tmp_path / folders[0][1:] / "samtools-omp").resolve()


# ---------------------------------------------------------------- --env


def env_line(program, path=SYSTEM, cwd=None):
    p = subprocess.run([str(program), "--env"], env=clean_env(PATH=path), cwd=cwd, capture_output=True, text=True, timeout=HANG)
    assert (p.returncode, p.stderr) == (0, ""), p.stderr
    return p.stdout


SHELLS = [name for name in ("sh", "dash", "bash", "ksh", "zsh", "busybox") if shutil.which(name)]


@pytest.mark.parametrize("name", SHELLS)
@pytest.mark.parametrize("folder", ["plain", "a b", "it's", 'q"$(x)`y`', "new\nline", "back\\slash", "*"], ids=repr)
def test_line_for_path_is_misread(root, other, tmp_path, folder, name):
    """The tree is moved into an odd folder first. command -v would quote it in ksh."""
    home = tmp_path / folder
    root.rename(home)
    text = 'eval "$(samtools-omp --env)"; printf "%s/samtools\\n" "${PATH%%:*}"; samtools view x; samtools --version'
    program = ["busybox", "sh"] if name == "busybox" else [name]
    p = subprocess.run([*program, "-c", text], env=clean_env(PATH="%s/bin:%s:%s" % (home, other, SYSTEM)), capture_output=True, text=True,
                       timeout=HANG)
    assert (p.returncode, p.stderr) == (0, "")
    assert p.stdout.startswith("%s/libexec/samtools-omp/samtools\nother [view] [x]\nsamtools 1.24\n" % os.path.realpath(home)), p.stdout


OTHER_SHELLS = {"csh": 'eval "`samtools-omp --env=csh`"', "tcsh": 'eval "`samtools-omp --env=tcsh`"', "fish": "samtools-omp --env=fish | source"}


@pytest.mark.release
@pytest.mark.parametrize("name", OTHER_SHELLS)
@pytest.mark.parametrize("folder", ["plain", "a  b", "it's", 'q"$(x)`y`', "back\\slash", "*", "a!b"], ids=repr)
def test_line_for_path_of_other_shells_is_misread(root, other, tmp_path, folder, name):
    if not shutil.which(name):
        pytest.skip("no %s here" % name)
    home = tmp_path / folder
    root.rename(home)
    text = "%s; which samtools; samtools view x; samtools --version" % OTHER_SHELLS[name]
    p = subprocess.run([name, *["-f"] * (name != "fish"), "-c", text], capture_output=True, text=True, timeout=HANG,
                       env=clean_env(PATH="%s/bin:%s:%s" % (home, other, SYSTEM), HOME=str(tmp_path)))
    assert (p.returncode, p.stderr) == (0, "")
    assert p.stdout.startswith("%s/libexec/samtools-omp/samtools\nother [view] [x]\nsamtools 1.24\n" % os.path.realpath(home)), p.stdout


@pytest.mark.parametrize("text,said", [('eval "$(%s --env)"', "is not installed"), ('eval "$(%s --env=zz)"', "the shells are sh")])
@pytest.mark.parametrize("name", SHELLS)
def test_script_goes_on_with_the_other_samtools(root, name, text, said):
    """eval has the status of its argument, and of nothing that is 0."""
    (root / "libexec" / "samtools-omp" / "samtools").unlink()
    program = ["busybox", "sh"] if name == "busybox" else [name]
    p = subprocess.run([*program, "-ec", text % (root / "bin" / "samtools-omp") + "; echo went on"], env=clean_env(),
                       capture_output=True, text=True, timeout=HANG)
    assert p.returncode == 1 and p.stdout == "" and said in p.stderr


def test_line_for_path_is_shown_without_a_word(root):
    """The output is a terminal: a user who forgets eval gets a hint."""
    if not shutil.which("script"):
        pytest.skip("no script here")
    p = subprocess.run(["script", "-qec", "%s --env" % (root / "bin" / "samtools-omp"), "/dev/null"], stdin=subprocess.DEVNULL,
                       env=clean_env(), capture_output=True, text=True, timeout=HANG)
    assert p.returncode == 0 and 'Run eval "$(samtools-omp --env)"' in p.stdout


@pytest.mark.release
def test_commands_of_the_readme_do_not_work_without_root(other, tmp_path):
    """The instructions that install into a home folder and put the program on PATH, run unchanged."""
    home = tmp_path / "home"
    install("install", "", home / ".local")
    line, = [line for line in (REPO / "README.md").read_text().splitlines() if line.startswith("    export PATH=$HOME/.local/bin")]
    profile, = re.findall(r"`(eval \"\$\(\$HOME/[^`]*)`", (REPO / "doc" / "install.md").read_text())
    for text in (line + '\neval "$(samtools-omp --env)"', profile):
        p = subprocess.run(["sh", "-ec", text + "\ncommand -v samtools\nsamtools view x"], capture_output=True, text=True,
                           env=clean_env(PATH="%s:%s" % (other, SYSTEM), HOME=str(home)), timeout=HANG)
        assert (p.returncode, p.stdout) == (0, "%s/.local/libexec/samtools-omp/samtools\nother [view] [x]\n" % os.path.realpath(home)), p.stderr


@pytest.mark.parametrize("how", ["link", "chain", "relative", "merged", "folder", "drop-in", "cwd"])
def test_line_for_path_depends_on_how_the_program_is_called(root, tmp_path, how):
    real, links = root / "bin" / "samtools-omp", tmp_path / "links"
    links.mkdir()
    program, cwd = links / "samtools-omp", None
    if how == "link":
        program.symlink_to(real)
    elif how == "chain":
        (links / "one").symlink_to(real)
        program.symlink_to("one")
    elif how == "relative":
        program.symlink_to(os.path.relpath(real, links))
    elif how == "merged":
        (root.parent / "bin").symlink_to("usr/bin")
        program = root.parent / "bin" / "samtools-omp"
    elif how == "folder":
        (links / "current").symlink_to(root)
        program = links / "current" / "bin" / "samtools-omp"
    elif how == "drop-in":
        program = root / "libexec" / "samtools-omp" / "samtools"
    else:
        program, cwd = "./samtools-omp", root / "bin"
    assert env_line(program, cwd=cwd) == "PATH='%s'${PATH:+\":$PATH\"}; export PATH\n" % (root.resolve() / "libexec" / "samtools-omp")


def test_empty_path_gets_the_current_folder(root):
    assert shell("PATH=; %s; echo $PATH" % env_line(root / "bin" / "samtools-omp").strip(), SYSTEM, name="/bin/sh")[1] == \
        "%s\n" % (root.resolve() / "libexec" / "samtools-omp")


@pytest.mark.parametrize("why", ["not installed", "colon", "full"])
def test_line_for_path_that_cannot_be_is_printed(root, tmp_path, why):
    out = subprocess.PIPE
    if why == "not installed":
        (root / "libexec" / "samtools-omp" / "samtools").unlink()
    elif why == "colon":
        root = root.rename(tmp_path / "a:b")
    elif not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    else:
        out = os.open("/dev/full", os.O_WRONLY)
    p = subprocess.run([root / "bin" / "samtools-omp", "--env"], stdout=out, stderr=subprocess.PIPE, text=True, timeout=HANG)
    assert p.returncode == 1 and p.stdout in (None, "false\n")
    assert why == "full" or re.fullmatch(r"samtools: --env: .*%s.*\n" % why, p.stderr)


# ---------------------------------------------------------------- handing on


@pytest.mark.parametrize("how", ["libexec", "relative", "here", "merged", "hard link", "copy", "named", "twice"])
@pytest.mark.parametrize("name", ["samtools-omp", "samtools"])
def test_installed_program_hands_on_to_itself(root, other, tmp_path, name, how):
    libexec, first = root / "libexec" / "samtools-omp", []
    if how == "relative":
        first = ["../libexec/samtools-omp", "../bin/"]
    elif how == "here":
        first = ["", ".", "../bin/../libexec/samtools-omp"]
    elif how == "merged":
        (root.parent / "bin").symlink_to("usr/bin")
        (root / "bin" / "samtools").symlink_to("samtools-omp")
        first = [root.parent / "bin"]
    elif how == "named":
        install("install", root.parent, "/usr", "SAMTOOLS_NAME=yes")
    elif how in ("hard link", "copy"):
        (libexec / "samtools").unlink()
        (os.link if how == "hard link" else shutil.copy2)(root / "bin" / "samtools-omp", libexec / "samtools")
    path = [*first, *[libexec, root / "bin"] * (2 if how == "twice" else 1), other]
    p = subprocess.run(["/usr/bin/env", name, "view", "a b"], cwd=root / "bin", stdin=subprocess.DEVNULL, capture_output=True, text=True,
                       env=clean_env(PATH=":".join(map(str, path)) + ":" + SYSTEM), timeout=HANG)
    assert (p.returncode, p.stdout, p.stderr) == (0, "other [view] [a b]\n", "")
    only = [str(p) for p in path[:-1]]
    p = subprocess.run([root / "bin" / "samtools-omp", "view"], cwd=root / "bin", capture_output=True, text=True,
                       env=clean_env(PATH=":".join(only)), timeout=HANG)
    assert p.returncode == 1 and "no other samtools" in p.stderr


def test_other_samtools_is_called_by_our_name(root, tmp_path):
    """It writes its own name into @PG lines, and may be a program with several names."""
    cat = shutil.which("cat")
    if os.path.basename(os.path.realpath(cat)) != "cat" or not os.path.exists("/proc/self/cmdline"):
        pytest.skip("no cat or no /proc to show it")
    (tmp_path / "up").mkdir()
    (tmp_path / "up" / "samtools").symlink_to(cat)
    for program, seen in ((root / "bin" / "samtools-omp", "samtools"), (root / "libexec" / "samtools-omp" / "samtools", None)):
        p = subprocess.run([program, "/proc/self/cmdline"], env=clean_env(PATH=str(tmp_path / "up")), capture_output=True, text=True, timeout=HANG)
        assert p.stdout.split("\0")[0] == (seen or str(program)), p.stderr


def test_names_sort_differently(root, made):
    program, link = root / "bin" / "samtools-omp", root / "libexec" / "samtools-omp" / "samtools"
    said = {}
    for name in (program, link):
        p = subprocess.run([name, "sort", "-O", "sam", made("ties")], env=clean_env(), capture_output=True, text=True, timeout=HANG)
        assert (p.returncode, p.stderr) == (0, "")
        said[name] = p.stdout
        assert "CL:%s sort -O sam" % name in p.stdout and "@PG\tID:samtools" in p.stdout
    assert said[program].replace(str(program), str(link)) == said[link]


# ---------------------------------------------------------------- module, manual, completion


MODULE = """proc prepend-path {name folder} { puts "$name=$folder" }
proc append-path {name folder} { puts "$name+=$folder" }
proc module-whatis {text} { puts $text }
source $::argv
ModulesHelp
"""


@pytest.mark.release
def test_module_file_has_another_folder(tmp_path):
    """The order counts: the last folder named comes first on PATH. The system's manuals stay."""
    if not shutil.which("tclsh"):
        pytest.skip("no tclsh here")
    install("install", tmp_path, "/opt/a b")
    module = tmp_path / "opt/a b/share/samtools-omp/modulefiles/samtools-omp" / VERSION
    (tmp_path / "try.tcl").write_text(MODULE.replace("$::argv", "{%s}" % module))
    p = subprocess.run(["tclsh", tmp_path / "try.tcl"], capture_output=True, text=True, timeout=HANG)
    assert p.returncode == 0 and "samtools-omp %s: " % VERSION in p.stdout and VERSION in p.stderr, p.stderr
    assert p.stdout.endswith("PATH=/opt/a b/bin\nPATH=/opt/a b/libexec/samtools-omp\nMANPATH=/opt/a b/share/man\nMANPATH+=\n")
    assert module.read_text().startswith("#%Module")


LUA = """
function help(text) print(text) end
whatis = help
function prepend_path(name, folder) print(name .. "=" .. folder) end
function append_path(name, folder) print(name .. "+=" .. folder) end
dofile(arg[1])
"""


@pytest.mark.release
def test_module_file_of_lmod_says_something_else(tmp_path):
    lua = next(filter(shutil.which, ("lua", "lua5.3", "lua5.4", "lua5.1", "luajit")), None)
    if not lua:
        pytest.skip("no lua here")
    install("install", tmp_path, "/opt/a b")
    (tmp_path / "try.lua").write_text(LUA)
    module = tmp_path / ("opt/a b/share/samtools-omp/modulefiles/samtools-omp/%s.lua" % VERSION)
    p = subprocess.run([lua, tmp_path / "try.lua", module], capture_output=True, text=True, timeout=HANG)
    assert p.returncode == 0, p.stderr
    assert p.stdout.endswith("PATH=/opt/a b/bin\nPATH=/opt/a b/libexec/samtools-omp\nMANPATH=/opt/a b/share/man\nMANPATH+=\n")
    assert "Version: %s\n" % VERSION in p.stdout


@pytest.mark.release
def test_module_of_another_version_stays(tmp_path):
    """One prefix has one program. Files that the site has put there are not ours."""
    folder = tmp_path / "usr/share/samtools-omp/modulefiles"
    folder.mkdir(parents=True)
    (folder / "samtools-omp").write_text("#%Module of 0.1.0, which was no folder")
    install("install", tmp_path, "/usr")
    for name in "0.1.0", "0.1.0.lua", ".modulerc":
        (folder / "samtools-omp" / name).write_text("old")
    install("install", tmp_path, "/usr")
    assert files(folder) == ["samtools-omp/.modulerc", "samtools-omp/" + VERSION, "samtools-omp/%s.lua" % VERSION]
    install("uninstall", tmp_path, "/usr")
    assert files(tmp_path / "usr") == ["share/samtools-omp/modulefiles/samtools-omp/.modulerc"]


def test_install_ends_without_the_line_to_type(tmp_path):
    """A staged installation (DESTDIR) would show another line."""
    said = install("install", "", tmp_path / "own")
    assert said.endswith('\n    eval "$(%s/own/bin/samtools-omp --env)"\n' % tmp_path)
    line = said.splitlines()[-1].strip()
    assert shell(line + "; command -v samtools", SYSTEM)[1] == "%s/own/libexec/samtools-omp/samtools\n" % os.path.realpath(tmp_path)
    assert "--env" not in install("install", tmp_path / "root")


@pytest.mark.release
def test_stripped_program_is_as_large_as_before(tmp_path):
    if not shutil.which("strip") or b".debug_info" not in pathlib.Path(BINARY).read_bytes():
        pytest.skip("no strip, or nothing to strip")
    install("install-strip", tmp_path, "/usr")
    assert files(tmp_path / "usr") == OURS
    program = tmp_path / "usr/bin/samtools-omp"
    assert program.stat().st_size < os.path.getsize(BINARY) / 2 and os.path.samefile(program, program.with_name("bgzip-omp"))
    assert subprocess.run([program, "--version-only"], capture_output=True, timeout=HANG).stdout.startswith(b"1.24")


@pytest.mark.release
@pytest.mark.parametrize("page", [*MANUALS, "man1/samtools-omp-mpi.1"])
def test_manual_does_not_render(root, tmp_path, page):
    if page.endswith("-mpi.1"):
        install_mpi(tmp_path, "/usr")
    page = root / "share" / "man" / page
    if not shutil.which("man") or not shutil.which("groff"):
        pytest.skip("no man here")
    p = subprocess.run(["man", "--warnings", "-E", "UTF-8", "-l", page], env=clean_env(MANWIDTH="100", LC_ALL="C.UTF-8", MANPAGER="cat"),
                       capture_output=True, text=True, timeout=HANG)
    if "unrecognized option" in p.stderr or not p.stdout:
        pytest.skip("no such man here")
    assert (p.returncode, p.stderr) == (0, "")
    headings = re.findall(r"^[A-Z][A-Z ]+$", p.stdout, re.M)
    assert headings[:3] == ["NAME", "SYNOPSIS", "DESCRIPTION"] and headings[-5:] == ["EXAMPLES", "BUGS", "AUTHORS", "COPYRIGHT", "SEE ALSO"]
    for name, section in re.findall(r"\b(samtools-omp[a-z-]*|bgzip-omp)\(([15])\)", p.stdout):
        assert (REPO / "doc" / ("%s.%s" % (name, section))).exists(), name
    if shutil.which("mandoc"):
        assert not subprocess.run(["mandoc", "-T", "lint", "-W", "warning", page], capture_output=True, timeout=HANG).stdout


@pytest.mark.release
def test_example_of_the_manual_is_refused(root, made, tmp_path):
    """Our commands in EXAMPLES run unchanged."""
    text = (REPO / "doc" / "samtools-omp-sort.1").read_text().split(".SH EXAMPLES")[1].replace("\\-", "-")
    lines = [line for block in re.findall(r"\.EX\n(.*?)\.EE", text, re.S) for line in block.splitlines()]
    assert len(lines) > 8
    for name in ("in", "lane1", "lane2", "lane3"):
        shutil.copy(made("ties"), tmp_path / (name + ".bam"))
    script(tmp_path / "tools" / "bwa", "cat in.bam")
    script(tmp_path / "tools" / "samtools", "cat")
    script(tmp_path / "pipeline.sh", "samtools --version")
    for line in lines:
        if "--reference" in line and htslib_version() < (1, 16):
            continue
        line = line.replace("/scratch", ".").replace("--reference ref.fa", "--output-fmt-option no_ref=1").replace(" -m 4G", " -m 64M")
        status, out, err = shell("set -e; " + line, "%s/bin:%s/tools:%s" % (root, tmp_path, SYSTEM), cwd=tmp_path)
        assert status == 0 and not re.search("^samtools", err, re.M), (line, err)
    assert htslib_version() < (1, 16) or (tmp_path / "out.cram").read_bytes()[:4] == b"CRAM"
    assert (tmp_path / "report.html").exists()


@pytest.mark.release
def test_example_of_bgzips_manual_is_refused(root, tmp_path):
    text = (REPO / "doc" / "bgzip-omp.1").read_text().split(".SH EXAMPLES")[1].replace("\\-", "-")
    lines = re.search(r"\.EX\n(.*?)\.EE", text, re.S).group(1).splitlines()
    (tmp_path / "calls.vcf").write_text("##fileformat=VCFv4.2\n" * 20000)
    assert len(lines) > 4
    for line in lines:
        status, out, err = shell("set -e; " + line, "%s/bin:%s" % (root, SYSTEM), cwd=tmp_path)
        assert (status, err) == (0, ""), (line, err)
        assert out == ("format=VCF" if " -b " in line else "")
    assert files(tmp_path / ".")[:1] == ["again.gz"] and (tmp_path / "calls.vcf").stat().st_size == 21 * 20000


# ---------------------------------------------------------------- completion


COMMANDS = ("sort", "collate", "merge", "fixmate", "markdup", "sormadup", "stats", "flagstat", "idxstats", "coverage", "bgzip")
# The completions of each shell for a command line, one word per line. zsh's own functions are replaced, because they
# need a terminal.
COMPLETES = {
    "bash": """. %(share)s/bash-completion/completions/samtools-omp
COMP_WORDS=(%(words)s); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _samtools_omp; printf '%%s\\n' "${COMPREPLY[@]}"
""",
    "zsh": """_describe() {
    local part
    for part; do [[ $part != -* && ${(tP)part} == array* ]] && print -rl -- ${(P)part%%%%:*}; done
}
_files() { print -rl -- *; }
compadd() { print -rl -- "$@"; }
compset() { words[CURRENT]=${words[CURRENT]#*=}; }
_message() { : ; }
words=(%(words)s); CURRENT=$#words; . %(share)s/zsh/site-functions/_samtools-omp
""",
    "fish": """source %(share)s/fish/vendor_completions.d/samtools-omp.fish; complete -C %(line)s | string replace -r '\\t.*' ''
""",
}


def completed(root, folder, name, *words):
    if not shutil.which(name):
        pytest.skip("no %s here" % name)
    # bash splits words at "="; an empty word must stay
    typed = [part for word in words for part in (re.split("(=)", word) if name == "bash" and word.startswith("--") else [word])]
    text = COMPLETES[name] % {"share": root / "share", "words": " ".join("'%s'" % word for word in typed), "line": "'%s'" % " ".join(words)}
    p = subprocess.run([name, *["-f"] * (name == "zsh"), "-c", text], cwd=folder, capture_output=True, text=True, timeout=HANG,
                       env=clean_env(PATH="%s/bin:%s" % (root, SYSTEM), HOME=str(folder)))
    assert p.stderr == "", p.stderr
    begun = "" if name == "bash" or "=" in words[-1] else words[-1]
    return {line[line.find("=") + 1:] if re.match("--[a-z-]+=.", line) else line for line in p.stdout.split("\n") if line and line.startswith(begun)}


@pytest.mark.release
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", COMPLETES)
def test_completion_lacks_an_option_of_the_help(root, tmp_path, name, command):
    """Rows of the help begin with their options; a paragraph lists more of them."""
    text = subprocess.run([BINARY, command, "--help"], capture_output=True, text=True, timeout=HANG).stdout
    wanted = set()
    for row in re.findall(r"^ {2,6}(-.*?)(?:  .*)?$", text, re.M):
        wanted |= set(re.findall(r"(?:^|, )(-[a-zA-Z0-9@]\b|-@|--[a-zA-Z][a-zA-Z-]*)", row))
    for paragraph in re.findall(r"^(?:Beyond samtools|As in sort)[^\n]*?: (--.*?)\.$", text, re.M | re.S):
        wanted |= set(re.findall("--[a-z-]+", paragraph))
    offered = {word.rstrip("=") for word in completed(root, tmp_path, name, "samtools-omp", command, "-")}
    assert len(wanted) > 8 and offered == wanted


@pytest.mark.parametrize("words,offers", [
    (["samtools-omp", "so"], {"sort", "sormadup"}), (["samtools-omp", "rep"], {"report"}), (["bgzip-omp", "--reb"], {"--rebgzip"}),
    (["samtools-omp", "sort", "-@", ""], {"auto"}), (["samtools-omp", "sort", "--threads", ""], {"auto"}),
    (["samtools-omp", "sort", "-O", "sa"], {"sam", "sam.gz"}), (["samtools-omp", "flagstat", "-O", ""], {"json", "tsv"}),
    (["samtools-omp", "markdup", "--mode", ""], {"t", "s"}), (["samtools-omp", "fixmate", "-z", "cig"], {"cigar", "cigdup", "cigarx"}),
    (["samtools-omp", "sort", "--plan="], {"json"}), (["samtools-omp", "sort", "--write-index="], {"bai", "csi"}),
    (["samtools-omp", "sort", "--write-index", ""], {"in.bam"}), (["samtools-omp", "sort", "--report="], {"in.bam"}),
    (["samtools-omp", "sort", "-t", ""], set()), (["samtools-omp", "sort", "-o", ""], {"in.bam"}),
    (["samtools-omp", "view", ""], {"in.bam"})], ids=lambda v: "_".join(v) if isinstance(v, list) else "")
@pytest.mark.parametrize("name", COMPLETES)
def test_completion_offers_other_words(root, tmp_path, name, words, offers):
    folder = tmp_path / "here"
    folder.mkdir()
    (folder / "in.bam").write_bytes(b"")
    assert completed(root, folder, name, *words) == offers


@pytest.mark.release
@pytest.mark.parametrize("before,names", [("", ["samtools-omp", "samtools"]), ("complete -W theirs samtools", ["samtools-omp"])],
                         ids=["alone", "beside"])
def test_completion_takes_or_lacks_a_name(root, before, names):
    if not shutil.which("bash"):
        pytest.skip("no bash here")
    text = "%s\n. %s\ncomplete -p samtools-omp samtools\n" % (before, root / "share/bash-completion/completions/samtools-omp")
    status, out, err = shell(text, SYSTEM, name="bash")
    assert (status, err) == (0, "")
    assert re.findall(r"-F _samtools_omp (\S+)", out) == names


# ---------------------------------------------------------------- the tarball of a release


@pytest.fixture(scope="module")
def tarball(tmp_path_factory):
    for program in ("git", "autoconf", "gzip"):
        if not shutil.which(program):
            pytest.skip("no %s here" % program)
    if subprocess.run(["git", "rev-parse", "-q", "--verify", "HEAD"], cwd=REPO, capture_output=True).returncode:
        pytest.skip("no checkout of git")
    folder = tmp_path_factory.mktemp("dist")
    make("dist", "DISTDIR=%s" % folder)
    return next(folder.glob("*.tar.gz"))


@pytest.mark.release
def test_tarball_is_not_whole(tarball, tmp_path):
    digest, name = pathlib.Path(str(tarball) + ".sha256").read_text().split()
    assert name == tarball.name and hashlib.sha256(tarball.read_bytes()).hexdigest() == digest
    folder = tarball.name[:-len(".tar.gz")]
    assert folder == "samtools-omp-" + VERSION
    with tarfile.open(tarball) as tar:
        names = tar.getnames()
        assert all(name == folder or name.startswith(folder + "/") for name in names)
    committed = subprocess.run(["git", "ls-files"], cwd=REPO, capture_output=True, text=True).stdout.split("\n")[:-1]
    committed = [name for name in committed if not name.startswith("doc/dev/") and name != "doc/.gitattributes"]     # for developers
    assert {folder + "/configure", folder + "/LICENSE"} <= set(names)
    assert len(set(committed) - {name[len(folder) + 1:] for name in names}) == 0 or "GIT_DIR" in os.environ
    make("dist", "DISTDIR=%s" % tmp_path)
    assert (tmp_path / tarball.name).read_bytes() == tarball.read_bytes()


@pytest.mark.release
def test_tarball_does_not_build_and_install(tarball, tmp_path, made):
    """The program and its link have separate folders."""
    if not os.environ.get("CC") and not shutil.which("cc"):
        pytest.skip("no compiler")
    with tarfile.open(tarball) as tar:
        tar.extractall(tmp_path)
    tree, root = tmp_path / tarball.name[:-len(".tar.gz")], tmp_path / "root"
    p = subprocess.run(["./configure", "--prefix=/opt/x", "--bindir=${prefix}/programs", "--libexecdir=${prefix}/lib/exec",
                        "CFLAGS=-O1 " + make("show-SMALL").strip()], cwd=tree,
                       env=clean_env(), capture_output=True, text=True, timeout=10 * HANG)
    if p.returncode and "not found. Install it" in p.stderr:
        pytest.skip(p.stderr)
    assert p.returncode == 0, p.stdout + p.stderr
    make("-j2", cwd=tree)
    make("install", "DESTDIR=%s" % root, cwd=tree)
    program = root / "opt/x/programs/samtools-omp"
    assert "amtools-omp %s runs" % VERSION in shell("%s --version" % program, SYSTEM)[1], "there is no commit in a tarball"
    assert env_line(program) == "PATH='%s/opt/x/lib/exec/samtools-omp'${PATH:+\":$PATH\"}; export PATH\n" % root.resolve()
    p = subprocess.run([program, "sort", made("ties")], capture_output=True, env=clean_env(), timeout=HANG)
    assert p.returncode == 0 and p.stdout[:2] == b"\x1f\x8b"
    make("uninstall", "DESTDIR=%s" % root, cwd=tree)
    assert files(root) == []
