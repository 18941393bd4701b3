#!/bin/sh
# SPDX-License-Identifier: MIT
# From an empty machine to a sorted BAM, and to a tested build. See usage() or `./bootstrap.sh help`.
set -eu

usage() {
    cat <<'EOF'
usage: ./bootstrap.sh COMMAND

  demo    install what is missing, build, and sort some hundred MB of reads, in turn with the samtools on PATH if there
          is one; show how much faster it is, and whether the records are the same
  check   install what is missing for the build and the tests, build, run the unit tests and a sample of the others:
          some 4 minutes on 2 cores; closes with "N passed, N failed"
  check-all    all tests, with everything that finds more: clang's sanitizers and fuzzing, static checks, two MPIs, other
          versions of htslib; these are installed where they can be. An hour on 2 cores
  extras  install what check-all takes, and nothing else
  check-rest   what check-all does and check has not done, but for pages, packages and scripts: for after extras and check
  deps    install what is missing for the build, and nothing else
  help    this text

Installs with apt-get, dnf, apk, Homebrew or conda, as root or through sudo, and only what a trial
compilation cannot find. What it makes lies in this folder: build/, demo/, .venv/; but check-all keeps two other
versions of htslib in ~/.cache/samtools-omp.

environment:
  CC            compiler (default: that of the Makefile, cc)
  NO_INSTALL=1  install nothing; say what is missing and stop
  NO_EXTRAS=1   check-all: install and build nothing that a test could do without, and leave out what then lacks its tools
  DEMO_SIZE     uncompressed size of the demo's input (default 300M)
  SAMTOOLS_UPSTREAM    the samtools that the demo compares with (default: the first on PATH that is not ours)
  WERROR=1      warnings are errors
EOF
}

root=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd -P)
cd -- "$root"
scratch=$(mktemp -d "${TMPDIR:-/tmp}/samtools-omp.XXXXXX")
trap 'rm -rf -- "$scratch"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

step() { printf '\n== %s\n' "$*"; }
die() { printf 'bootstrap: %s\n' "$*" >&2; exit 1; }
have() { command -v "$1" >/dev/null 2>&1; }
cores() { nproc 2>/dev/null || sysctl -n hw.ncpu 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1; }

# ---- what is there? ----

# Compiler and flags as the Makefile (and config.mk, if ./configure has run) will use them, plus folders
# of headers and libraries that compilers do not search by themselves.
read_settings() {
    if have make; then
        cc=${CC:-$(make -s show-CC)}
        cppflags=$(make -s show-CPPFLAGS) ldflags=$(make -s show-LDFLAGS)
        openmp=$(make -s show-OPENMP_CFLAGS) hts_libs=$(make -s show-HTS_LIBS) deflate_libs=$(make -s show-DEFLATE_LIBS)
        lz4_libs=$(make -s show-LZ4_LIBS)
        jansson_libs=$(make -s show-JANSSON_LIBS)
    else
        cc=${CC:-cc} cppflags='' ldflags='' openmp=-fopenmp hts_libs=-lhts deflate_libs=-ldeflate
        lz4_libs=-llz4
        jansson_libs=-ljansson
    fi
    if [ -e config.mk ]; then
        return    # ./configure has found everything already
    fi
    if [ -n "${CONDA_PREFIX:-}" ] && [ -e "$CONDA_PREFIX/include/htslib/sam.h" ]; then
        add_folder "$CONDA_PREFIX"
        ldflags="$ldflags -Wl,-rpath,$CONDA_PREFIX/lib"
    fi
    if [ "$(uname -s)" = Darwin ] && have brew; then
        add_folder "$(brew --prefix)"
        add_folder "$(brew --prefix libomp 2>/dev/null || echo /nonexistent)"
        if ! $cc --version 2>/dev/null | grep -q 'Free Software'; then
            openmp='-Xpreprocessor -fopenmp' ldflags="$ldflags -lomp"    # Apple's clang
        fi
    fi
}

add_folder() {
    [ -d "$1/include" ] || return 0
    cppflags="$cppflags -I$1/include" ldflags="$ldflags -L$1/lib"
}

build() {
    make -j"$(cores)" CC="$cc" CPPFLAGS="$cppflags" LDFLAGS="$ldflags" OPENMP_CFLAGS="$openmp" "$@"
}

# compiles SOURCE [FLAG]...: does it compile and link?
compiles() {
    printf '%s\n' "$1" >"$scratch/probe.c"
    shift
    # shellcheck disable=SC2086
    $cc $cppflags -o "$scratch/probe" "$scratch/probe.c" "$@" $ldflags >"$scratch/probe.log" 2>&1
}

# found NEED: is it on this machine?
found() {
    # shellcheck disable=SC2086
    case $1 in
    make)       have make ;;
    compiler)   compiles 'int main(void) { return 0; }' ;;
    openmp)     compiles '#include <omp.h>
int main(void) { return omp_get_max_threads() < 1; }' $openmp ;;
    htslib)     compiles '#include <htslib/hts.h>
#if HTS_VERSION < 101300
#error htslib 1.13 or later
#endif
int main(void) { return !hts_version(); }' $hts_libs ;;
    libdeflate) compiles '#include <libdeflate.h>
int main(void) { libdeflate_free_compressor(libdeflate_alloc_compressor(1)); return 0; }' $deflate_libs ;;
    lz4)        compiles '#include <lz4.h>
int main(void) { return LZ4_sizeofState() == 0; }' $lz4_libs ;;
    jansson)    compiles '#include <jansson.h>
int main(void) { return !json_object(); }' $jansson_libs ;;
    zlib)       compiles '#include <zlib.h>
int main(void) { return !zlibVersion(); }' -lz ;;
    xxhash)     compiles '#define XXH_INLINE_ALL
#include <xxhash.h>
int main(void) { return XXH3_64bits("", 0) == 0; }' ;;
    cmocka)     compiles '#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
int main(void) { const struct CMUnitTest t[1] = { { 0 } }; return cmocka_run_group_tests(t, 0, 0); }' -lcmocka ;;
    python)     "${PYTHON:-python3}" -c 'import ensurepip, venv' >/dev/null 2>&1 ;;
    autoconf|cppcheck|clang-tidy|strace) have "$1" ;;
    sanitizers) have clang && have llvm-symbolizer && printf 'int LLVMFuzzerTestOneInput(void) { return 0; }\n' >"$scratch/probe.c" &&
                clang -fopenmp -fsanitize=fuzzer,address -o "$scratch/probe" "$scratch/probe.c" >"$scratch/probe.log" 2>&1 ;;
    bzip2)      compiles '#include <bzlib.h>
int main(void) { return !BZ2_bzlibVersion(); }' -lbz2 ;;
    lzma)       compiles '#include <lzma.h>
int main(void) { return !lzma_version_number(); }' -llzma ;;
    curl)       compiles '#include <curl/curl.h>
int main(void) { return !curl_version(); }' -lcurl ;;
    openmpi|mpich) have "mpirun.$1" && (cc=mpicc.$1 && compiles '#include <mpi.h>
int main(void) { return MPI_Init(0, 0); }') ;;    # the names of Debian, where both can be installed
    esac
}

build_needs='make compiler openmp htslib libdeflate lz4 jansson zlib xxhash'
test_needs='cmocka python'
extra_needs='autoconf'    # ./configure: nice to have, never an error
check_extra_needs='sanitizers cppcheck clang-tidy strace'    # clang's, for data races and fuzzing: the same
mpi_needs='openmpi mpich'    # of samtools-omp-mpi, which is tested with each of them: the same
htslib_needs='bzip2 lzma curl'    # of all CRAM and of URLs, for the other versions of htslib: the same

# missing NEED...: those that are not there
missing() {
    for need in "$@"; do
        found "$need" || printf '%s ' "$need"
    done
}

# ---- installing ----

# packages MANAGER NEED...: names of the packages that bring them
packages() {
    manager=$1
    shift
    for need in "$@"; do
        case $manager/$need in
        apt/make|apt/compiler) echo build-essential ;;
        apt/openmp)     if is_clang; then echo libomp-dev; else echo build-essential; fi ;;
        apt/htslib)     echo libhts-dev ;;
        apt/libdeflate) echo libdeflate-dev ;;
        apt/lz4)        echo liblz4-dev ;;
        apt/jansson)    echo libjansson-dev ;;
        apt/zlib)       echo zlib1g-dev ;;
        apt/xxhash)     echo libxxhash-dev ;;
        apt/cmocka)     echo libcmocka-dev ;;
        apt/python)     echo python3-venv ;;
        apt/bzip2)      echo libbz2-dev ;;
        apt/lzma)       echo liblzma-dev ;;
        apt/curl)       echo libcurl4-gnutls-dev ;;
        apt/openmpi)    echo libopenmpi-dev openmpi-bin ;;
        apt/mpich)      echo libmpich-dev mpich ;;
        apt/sanitizers) echo clang libomp-dev libclang-rt-dev llvm ;;
        dnf/compiler)   echo gcc ;;
        dnf/openmp)     if is_clang; then echo libomp-devel; else echo gcc; fi ;;
        dnf/htslib)     echo htslib-devel ;;
        dnf/libdeflate) echo libdeflate-devel ;;
        dnf/lz4)        echo lz4-devel ;;
        dnf/jansson)    echo jansson-devel ;;
        dnf/zlib)       echo zlib-devel ;;
        dnf/xxhash)     echo xxhash-devel ;;
        dnf/cmocka)     echo libcmocka-devel ;;
        dnf/python)     echo python3 ;;
        dnf/bzip2)      echo bzip2-devel ;;
        dnf/lzma)       echo xz-devel ;;
        dnf/curl)       echo libcurl-devel ;;
        dnf/openmpi)    echo openmpi-devel ;;    # on PATH after `module load mpi`
        dnf/mpich)      echo mpich-devel ;;
        dnf/clang-tidy) echo clang-tools-extra ;;
        dnf/sanitizers) echo clang compiler-rt libomp-devel llvm ;;
        apk/make|apk/compiler) echo build-base ;;
        apk/openmp)     if is_clang; then echo openmp-dev; else echo libgomp; fi ;;
        apk/htslib)     echo htslib-dev ;;
        apk/libdeflate) echo libdeflate-dev ;;
        apk/lz4)        echo lz4-dev ;;
        apk/jansson)    echo jansson-dev ;;
        apk/zlib)       echo zlib-dev ;;
        apk/xxhash)     echo xxhash-dev ;;
        apk/cmocka)     echo cmocka-dev ;;
        apk/python)     echo python3 ;;
        apk/bzip2)      echo bzip2-dev ;;
        apk/lzma)       echo xz-dev ;;
        apk/curl)       echo curl-dev ;;
        apk/openmpi)    echo openmpi openmpi-dev ;;
        apk/clang-tidy) echo clang-extra-tools ;;
        apk/sanitizers) echo clang compiler-rt openmp-dev llvm ;;
        brew/make|brew/compiler) ;;    # not Homebrew's: xcode-select --install
        brew/openmp)    echo libomp ;;
        brew/openmpi)   echo open-mpi ;;
        brew/strace) ;;                # Linux only
        apk/mpich|brew/mpich|conda/mpich) ;;    # its files have the names of Open MPI's: one of them will do
        brew/lzma|conda/lzma) echo xz ;;
        conda/compiler) echo c-compiler ;;
        conda/openmp)   if is_clang; then echo llvm-openmp; else echo libgomp; fi ;;
        conda/lz4)      echo lz4-c ;;
        conda/curl)     echo libcurl ;;
        conda/clang-tidy) echo clang-tools ;;
        *)              echo "$need" ;;
        esac
    done | sort -u | tr '\n' ' '
}

is_clang() {
    $cc --version 2>/dev/null | grep -q clang
}

# Sets manager (empty: none that we know), sudo, and may_install. A folder of conda's own needs no root.
find_manager() {
    manager='' sudo='' may_install=yes
    if [ "$(uname -s)" = Darwin ]; then
        if have brew; then manager=brew; fi
        return
    fi
    if have apt-get; then manager=apt
    elif have dnf; then manager=dnf
    elif have apk; then manager=apk
    fi
    if [ "$(id -u)" -ne 0 ]; then
        if have sudo; then
            sudo=sudo
            [ -t 0 ] || sudo='sudo -n'
        elif [ -n "${CONDA_PREFIX:-}" ] && have conda; then
            manager=conda
        else
            may_install=''
        fi
    fi
}

run_manager() {
    case $manager in
    apt)   $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" ;;
    dnf)   $sudo dnf install -y "$@" ;;
    apk)   $sudo apk add --no-cache "$@" ;;
    brew)  brew install "$@" ;;
    conda) conda install -y -c conda-forge -c bioconda "$@" ;;
    esac
}

# Output of package managers is long and of interest only when they fail.
quietly() {
    if "$@" >"$scratch/install.log" 2>&1 </dev/null; then
        return 0
    fi
    tail -n 20 "$scratch/install.log" >&2
    return 1
}

# cannot_install WHY NEEDS: what to install by hand, for the system at hand or for all we know
cannot_install() {
    printf '\nbootstrap: %s\nNot found on this machine: %s\n' "$1" "$2" >&2
    echo 'Install these packages, then run this command again:' >&2
    by_hand apt 'Debian, Ubuntu' 'apt-get install' "$2"
    by_hand dnf 'Fedora; RHEL with EPEL and CRB' 'dnf install' "$2"
    by_hand apk 'Alpine' 'apk add' "$2"
    by_hand brew 'macOS, after xcode-select --install' 'brew install' "$2"
    by_hand conda 'conda' 'conda install -c conda-forge -c bioconda' "$2"
    echo 'Libraries in other folders, such as a newer htslib (1.13 will do): ./configure --with-htslib=DIR --with-libdeflate=DIR' >&2
    exit 1
}

# A user who may not install packages can use conda.
by_hand() {
    case $manager/$1 in
    "/$1"|"$1/$1") ;;
    */conda) [ -z "$may_install" ] || return 0 ;;
    *) return 0 ;;
    esac
    # shellcheck disable=SC2086
    printf '  %-36s%s %s\n' "$2" "$3" "$(packages "$1" $4)" >&2
}

# set_up NEED...: makes sure that they are there, or ends with a clear word
# shellcheck disable=SC2046,SC2086
set_up() {
    step 'Set-up'
    read_settings
    lacking=$(missing "$@")
    if [ -z "$lacking" ]; then
        echo "everything is there: $*"
        return
    fi
    find_manager
    if [ -n "${NO_INSTALL:-}" ]; then
        cannot_install 'NO_INSTALL is set.' "$lacking"
    elif [ -z "$manager" ]; then
        cannot_install 'no package manager here that this script knows.' "$lacking"
    elif [ -z "$may_install" ]; then
        cannot_install 'installing packages takes root, or sudo.' "$lacking"
    fi
    wanted=$(packages $manager $lacking)
    echo "missing: $lacking"
    echo "installing with $manager: $wanted"
    update_lists
    quietly run_manager $wanted || cannot_install "$manager could not install $wanted(no network, perhaps)" "$lacking"
    read_settings
    lacking=$(missing "$@")
    if [ -n "$lacking" ]; then
        found "${lacking%% *}" || cat "$scratch/probe.log" >&2
        cannot_install 'installed, but still not usable:' "$lacking"
    fi
    try_to_set_up $extra_needs
    echo "everything is there: $*"
}

# Lists of packages may be old, or not there at all. Once is enough.
updated=''
# shellcheck disable=SC2086
update_lists() {
    if [ "$manager" = apt ] && [ -z "$updated" ]; then
        quietly $sudo apt-get update -q || echo 'apt-get update failed; going on with the lists that are here' >&2
        updated=yes
    fi
}

# try_to_set_up NEED...: installs what is nice to have, where that can be done
# shellcheck disable=SC2046,SC2086
try_to_set_up() {
    find_manager
    for need in $(missing "$@"); do
        if [ -n "${NO_INSTALL:-}" ] || [ -z "$manager" ] || [ -z "$may_install" ]; then
            echo "not available here, and not needed: $need"
            continue
        fi
        wanted=$(packages "$manager" "$need")
        [ -n "$wanted" ] || continue
        update_lists
        echo "optional, for $need: $wanted$(size_of $wanted)"
        quietly run_manager $wanted 2>/dev/null || echo "not available here, and not needed: $need"
    done
}

# size_of PACKAGE...: what their installation will take, where the package manager tells that before
size_of() {
    [ "$manager" = apt ] || return 0
    LC_ALL=C apt-get install --assume-no --no-install-recommends "$@" 2>/dev/null </dev/null |
        sed -n 's/^After this operation, \(.*\) of additional disk space.*/(\1 on disk)/p'
}

# shellcheck disable=SC2086
deps() { set_up $build_needs; }

# ---- demo ----

# Builds without a word but how long it took: the words are of interest only when it fails.
build_quietly() {
    printf 'compiling, half a minute on 2 cores ... '
    began=$(date +%s)
    if ! build "$@" >"$scratch/build.log" 2>&1 </dev/null; then
        echo
        tail -n 40 "$scratch/build.log" >&2
        die 'it does not build'
    fi
    echo "$(($(date +%s) - began)) s"
}

demo() {
    deps
    step 'Build'
    build_quietly samtools tools
    sh bench/demo.sh build demo
}

# ---- check ----

make_venv() {
    if cmp -s test/requirements.txt .venv/installed.txt && .venv/bin/python -c 'import pysam, pytest' 2>/dev/null; then
        return
    fi
    rm -rf .venv
    "${PYTHON:-python3}" -m venv .venv
    .venv/bin/python -m pip install -q --disable-pip-version-check -r test/requirements.txt ||
        die 'pip could not install test/requirements.txt; the tests need a Python package index within reach'
    cp test/requirements.txt .venv/installed.txt
}

# What finds more than the tests themselves.
# shellcheck disable=SC2086
set_up_extras() {
    if [ -n "${NO_EXTRAS:-}" ]; then
        echo "NO_EXTRAS is set: nothing more is installed"
        return
    fi
    step 'Optional tools: clang for data races and fuzzing, static checks, MPI; NO_EXTRAS=1 leaves them out'
    try_to_set_up $check_extra_needs $mpi_needs $htslib_needs
    echo 'done'
}

# For tests with the oldest and the newest version, kept outside the tree.
build_htslibs() {
    [ -z "${NO_EXTRAS:-}" ] || return 0
    step 'Other versions of htslib, for their tests; a minute or two each, once'
    # shellcheck disable=SC2013
    for version in $(sed -n 's/.*# htslib //p' test/htslibs.txt); do
        sh test/build_htslib.sh "$version" || echo "tests with htslib $version are skipped"
    done
}

# Builds of tests are made as this one.
settings_for_make() {
    for setting in CC="$cc" CPPFLAGS="$cppflags" LDFLAGS="$ldflags" OPENMP_CFLAGS="$openmp"; do
        printf '%s' "$setting" | sed 's/[\\ ]/\\&/g; s/\$/$$/g'
        printf ' '
    done
}

# What all tests need.
build_tests() {
    step 'Build'
    build samtools check-programs

    step 'Python packages of the tests, in .venv'
    make_venv
    .venv/bin/python -c 'import pysam; print("pysam", pysam.__version__, "with samtools", pysam.__samtools_version__)'
}

check() {
    extra_needs=''
    # shellcheck disable=SC2086
    set_up $build_needs $test_needs
    build_tests
    step 'Tests: some 3 minutes on 2 cores'
    MAKEFLAGS=" -- $(settings_for_make)" sh test/run_tests.sh
}

# shellcheck disable=SC2086
extras() {
    set_up $build_needs $test_needs
    set_up_extras
}

# check_more TESTS: all or rest, and what takes more tools than the tests themselves
check_more() {
    # shellcheck disable=SC2086
    set_up $build_needs $test_needs
    set_up_extras
    build_tests
    build_htslibs
    step 'Tests: up to an hour on 2 cores, less on more; parts that work quietly say how far they are'
    MAKEFLAGS=" -- $(settings_for_make)" TESTS=$1 MORE_CHECKS=1 sh test/run_tests.sh
}

case ${1:-help} in
demo)  demo ;;
check) check ;;
check-all)  check_more all ;;
check-rest) check_more rest ;;
extras) extras ;;
deps)  deps ;;
help|-h|--help) usage ;;
*)     usage >&2; exit 2 ;;
esac
