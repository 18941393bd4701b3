# SPDX-License-Identifier: MIT
# samtools-omp. `make` works as it is; ./configure only writes config.mk
# (paths, optional libraries), which is read here when it exists.
#
#   make              the program, ./samtools      make WERROR=1   warnings are errors
#   make V=1          shows the whole commands     make -s         shows nothing
#   make mpi          ./samtools-omp-mpi, for several nodes (MPICC=mpicc)
#   make check        unit tests and pytest (a sample; make check TESTS=all)
#   make check-all    all tests, an hour            make check-asan all, sanitized
#   make check-faults every call fails once        make check-stress 500 sorts under odd settings
#   make check-tsan   data races                   make fuzz       hostile input (FUZZ_SECONDS=60 a target)
#   make check-static what cppcheck and clang-tidy find   make check-mutants tests that notice no blind guard
#   make gate BEFORE=path   the same output as that program, byte for byte, for all commands and formats
#   make check-htslibs the same as check, with the oldest and the newest htslib
#   make bench        table against the peers on PATH
#   make scaling      up to 128 threads, in slow motion
#   make install      to $(DESTDIR)$(prefix)       make uninstall
#   make install-strip  the same, without what debuggers read
#   make install SAMTOOLS_NAME=yes                 bin/samtools as well
#   make install-mpi  what `make mpi` built        (make uninstall removes it)
#   make debian       the link that dpkg-buildpackage wants, to packaging/debian
#   make check-release   pages, packages, scripts, all mutants; the static tarball, in an empty root too
#   make dist         the release: tarball with ./configure, and its SHA-256
#   make help         this list

# Scripts ask make for settings (show-CC). Started by `make -C`, they would be told the folder as well.
MAKEFLAGS += --no-print-directory
CC       = cc
# -g1 keeps functions and lines for stack traces. With -g the build takes a sixth longer. For a debugger, run
# make CFLAGS='-O0 -g'.
CFLAGS   = -O2 -g1
CPPFLAGS =
LDFLAGS  =
prefix   = /usr/local
-include config.mk

bindir   ?= $(prefix)/bin
libexecdir ?= $(prefix)/libexec
datadir  ?= $(prefix)/share
mandir   ?= $(datadir)/man
man1dir  ?= $(mandir)/man1
man5dir  ?= $(mandir)/man5
completionsdir ?= $(datadir)/bash-completion/completions
zshdir   ?= $(datadir)/zsh/site-functions
fishdir  ?= $(datadir)/fish/vendor_completions.d
# The folder to be put first on PATH: it has the program as `samtools`.
namedir   = $(libexecdir)/samtools-omp
moduledir = $(datadir)/samtools-omp/modulefiles
modules   = $(moduledir)/samtools-omp
INSTALL  ?= install
INSTALL_PROGRAM ?= $(INSTALL)
HTS_LIBS ?= -lhts
DEFLATE_LIBS ?= -ldeflate
LZ4_LIBS ?= -llz4
JANSSON_LIBS ?= -ljansson
Z_LIBS ?= -lz
OPENMP_CFLAGS ?= -fopenmp

BUILD    = build
WARN     = -Wall -Wextra
ifeq ($(WERROR),1)
WARN    += -Werror
endif

# Hardening flags make mistakes of ours harder to exploit, at no measurable cost. Only flags that compiler and linker
# accept are used. Sanitizers see more without them. HARDEN_CFLAGS= HARDEN_LDFLAGS= turns them off.
#   $(call takes,FLAGS): FLAGS if they are accepted, else nothing. They are tried with string.h and -O2, because
#   fortified headers warn only then.
takes = $(shell o=$$(mktemp) && printf '\043include <string.h>\nint main(void) { return 0; }\n' | \
          $(CC) -O2 -Werror -U_FORTIFY_SOURCE $(1) -x c -o $$o - >/dev/null 2>&1 && echo '$(1)'; rm -f $$o)
# Returns the flags that are accepted. Usually one try with all of them is enough.
all_taken = $(or $(call takes,$(1)),$(foreach flag,$(1),$(call takes,$(flag))))
# For builds that are slow to compile and need not run fast: the codec's functions are not copied into each caller.
SMALL = -Dalways_inline=unused
comma = ,
optimised = $(filter -O1 -O2 -O3 -Os,$(CFLAGS))
ifeq ($(findstring -fsanitize,$(CFLAGS)),)
find_cflags = $(call all_taken,-fstack-protector-strong -fstack-clash-protection -fPIE \
                   $(if $(findstring 86,$(shell $(CC) -dumpmachine)),-fcf-protection,-mbranch-protection=standard)) \
              $(if $(optimised),-U_FORTIFY_SOURCE $(or $(call takes,-D_FORTIFY_SOURCE=3),-D_FORTIFY_SOURCE=2))
find_ldflags = $(call all_taken,-Wl$(comma)-z$(comma)relro -Wl$(comma)-z$(comma)now $(if $(filter -static,$(LDFLAGS)),,-pie))
# The compiler is tried once, and only if something is compiled: not by `make install` or a script that asks for a
# setting.
HARDEN_CFLAGS = $(eval HARDEN_CFLAGS := $(find_cflags))$(HARDEN_CFLAGS)
HARDEN_LDFLAGS = $(eval HARDEN_LDFLAGS := $(find_ldflags))$(HARDEN_LDFLAGS)
endif
ALL_CPPFLAGS = -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -I. $(CPPFLAGS)
ALL_CFLAGS   = -std=c11 $(WARN) $(OPENMP_CFLAGS) $(HARDEN_CFLAGS) $(CFLAGS)
LIBS     = $(HTS_LIBS) $(DEFLATE_LIBS) $(LZ4_LIBS) $(JANSSON_LIBS) $(Z_LIBS) $(EXTRA_LIBS) -lm

# Each target prints one short line, or its command with V=1 or if it fails.
#   $(call run,WORD,FILE,COMMAND); quiet is for what no line is needed for.
# Options of one letter are the first word of MAKEFLAGS, unless that is a long one or, with make 3.81, a variable:
# -s, and -n, which shows commands anyhow.
flags   = $(firstword -$(MAKEFLAGS))
letters = $(if $(findstring =,$(flags)),,$(filter-out --%,$(flags)))
ifneq ($(filter 1,$(V))$(findstring n,$(letters)),)
run   = $(3)
quiet =
else
run   = @$(if $(findstring s,$(letters)),,printf '  %-5s %s\n' '$(1)' '$(2)';) $(3) || \
        { status=$$?; printf '  %-5s %s failed. make V=1 shows the command\n' '$(1)' '$(2)' >&2; exit $$status; }
quiet = @
endif

# The folders, in the order in which a record meets them. Everything but main(), so that unit tests and fuzzers link
# the same objects.
FOLDERS  = cli sormadup bgzip merge fixmate markdup stats engine read hts sort write report order codec bam base
LIB_SRCS = $(filter-out cli/samtools.c,$(wildcard *.c $(FOLDERS:%=%/*.c)))
LIB_OBJS = $(LIB_SRCS:%.c=$(BUILD)/%.o)
# No library may call a function of ours in place of its own.
$(LIB_OBJS) $(BUILD)/cli/samtools.o: ALL_CFLAGS += -fvisibility=hidden
# Little time is spent in these folders, and with -O1 they compile a fifth faster. Other CFLAGS are left as they are.
ifeq ($(CFLAGS),-O2 -g1)
$(filter $(BUILD)/cli/% $(BUILD)/report/%,$(LIB_OBJS)) $(BUILD)/cli/samtools.o: CFLAGS := -O1 -g1
endif
UNIT_SRCS = $(wildcard test/unit_*.c)
UNIT_BINS = $(UNIT_SRCS:test/%.c=$(BUILD)/%)
# Fuzz targets, for libFuzzer and for a main() of our own that replays files.
FUZZ_SRCS = $(wildcard test/fuzz/fuzz_*.c)
FUZZ_BINS = $(FUZZ_SRCS:test/fuzz/%.c=$(BUILD)/%)
REPLAY_BINS = $(FUZZ_SRCS:test/fuzz/fuzz_%.c=$(BUILD)/replay_%)
# Helpers of tests, demo and benchmark: test/NAME.c and test/NAME_*, htslib only.
TOOLS    = $(BUILD)/gen_bam $(BUILD)/check_sorted $(BUILD)/timed
# Everything is rebuilt when one of these changes.
SETTINGS = Makefile $(wildcard config.mk)

all: samtools

# A tree that may not be written gets no link: BUILD lies elsewhere then.
samtools: $(BUILD)/samtools
	$(quiet)[ ! -w . ] || ln -sf $< $@

help:
	@sed -n 's/^#   \(make \)/\1/p' Makefile

# A compiler reports a missing library among a hundred other lines. So the libraries are looked for first.
NEEDED = htslib/sam.h libdeflate.h lz4.h jansson.h zlib.h xxhash.h omp.h
$(LIB_OBJS) $(BUILD)/cli/samtools.o: | $(BUILD)/libraries.found
$(BUILD)/libraries.found:
	@mkdir -p $(@D)
	@for header in $(NEEDED); do \
	    echo "#include <$$header>" | $(CC) $(ALL_CPPFLAGS) $(OPENMP_CFLAGS) $(CFLAGS) -E -x c - >/dev/null 2>&1 || \
	        lacking="$$lacking $$header"; done; \
	[ -z "$$lacking" ] || { echo "make: $(firstword $(CC)) does not find:$$lacking. Type" >&2; \
	    echo '    ./bootstrap.sh deps      to install what is missing (NO_INSTALL=1 ./bootstrap.sh deps names the packages)' >&2; \
	    echo '    ./configure --help       if it lies in a folder of its own; in a checkout of git, autoconf makes ./configure' >&2; \
	    exit 1; }
	@: >$@

$(BUILD)/samtools: $(BUILD)/cli/samtools.o $(LIB_OBJS)
	$(call run,LINK,$@,$(CC) $(ALL_CFLAGS) $(HARDEN_LDFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS))
	$(if $(findstring s,$(letters)),,@$@ --version 2>/dev/null | sed -n 's/^CRAM is/  NOTE  CRAM is/p')

# For several nodes (doc/mpi.md): the same objects and the folder mpi/.
MPICC    = mpicc
MPI_SRCS = $(wildcard mpi/*.c)
MPI_BUILD = $(BUILD)
MPI_OBJS = $(MPI_SRCS:%.c=$(MPI_BUILD)/%.o)
mpi: $(MPI_BUILD)/samtools-omp-mpi
	$(quiet)ln -sf $< samtools-omp-mpi

# Records the MPI, because the same mpicc may be that of another MPI tomorrow (module load).
$(MPI_BUILD)/mpicc.show: always
	@mkdir -p $(@D)
	@if $(MPICC) -show >$@.new 2>/dev/null && ! cmp -s $@.new $@; then mv $@.new $@; else rm -f $@.new; fi
	@[ -e $@ ] || : >$@

$(MPI_OBJS): $(MPI_BUILD)/%.o: %.c $(SETTINGS) $(MPI_BUILD)/mpicc.show
	@mkdir -p $(@D)
	$(call run,MPICC,$<,$(MPICC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<)
$(MPI_BUILD)/samtools-omp-mpi: $(MPI_OBJS) $(LIB_OBJS)
	$(call run,LINK,$@,$(MPICC) $(ALL_CFLAGS) $(HARDEN_LDFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS))

# The commit of a version that is not released, where this is a checkout of git. Root, who installs, may not look into the
# user's checkout: then what the user has found stays.
$(BUILD)/commit.h: always
	@mkdir -p $(@D)
	@commit=; case $(VERSION) in *-dev) [ ! -e .git ] || \
	    commit=.$$(git describe --always --abbrev=8 --exclude='*' --dirty 2>/dev/null) || [ ! -e $@ ] || exit 0 ;; esac; \
	echo "#define SAMTOOLS_OMP_COMMIT \"$${commit%.}\"" >$@.new; \
	if cmp -s $@.new $@; then rm -f $@.new; else mv -f $@.new $@; fi
$(BUILD)/base/version.o: $(BUILD)/commit.h
$(BUILD)/base/version.o: ALL_CPPFLAGS += -include $(BUILD)/commit.h

# Unit tests and fuzz targets know no commit, so they are not linked anew for each.
$(BUILD)/base/version_alone.o: base/version.c $(SETTINGS)
	@mkdir -p $(@D)
	$(call run,CC,$<,$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<)

$(BUILD)/%.o: %.c $(SETTINGS)
	@mkdir -p $(@D)
	$(call run,CC,$<,$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<)

$(BUILD)/gen_bam: $(wildcard test/gen_bam_*.c test/gen_bam*.h)
$(TOOLS): $(BUILD)/%: test/%.c $(SETTINGS) | $(BUILD)
	$(call run,LINK,$@,$(CC) $(ALL_CPPFLAGS) $(TEST_CFLAGS) $(HARDEN_LDFLAGS) $(LDFLAGS) -o $@ $(filter %.c,$^) $(LIBS))

$(BUILD)/unit_bam_deflate $(BUILD)/unit_bam_inflate $(BUILD)/fuzz_inflate $(BUILD)/replay_inflate: EXTRA_LIBS += -lz
$(BUILD)/unit_bgzf_source $(BUILD)/unit_hts_writer: EXTRA_LIBS += -ldl
# A unit test or fuzz target links only the objects that it needs. With all objects and sanitizers, a hundred of them
# would take gigabytes.
PARTS = $(BUILD)/parts.a
$(PARTS): $(LIB_OBJS:$(BUILD)/base/version.o=$(BUILD)/base/version_alone.o)
	$(quiet)rm -f $@ && $(AR) crs $@ $^

# Unit tests of mpi/ link objects of their own, which call the MPI of test/no_mpi.
NO_MPI = $(BUILD)/no_mpi.a
NO_MPI_OBJS = $(patsubst %,$(BUILD)/no_mpi/mpi/%.o,block_boundary heavy_keys key_samples output_gather record_shares shared_file splitter \
              splitters) $(BUILD)/no_mpi/test/no_mpi/world.o
$(BUILD)/no_mpi/%.o: %.c $(SETTINGS)
	@mkdir -p $(@D)
	$(call run,CC,$<,$(CC) -Itest/no_mpi $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<)
$(NO_MPI): $(NO_MPI_OBJS)
	$(quiet)rm -f $@ && $(AR) crs $@ $^
NO_MPI_UNITS = $(BUILD)/unit_block_boundary $(BUILD)/unit_output_gather $(BUILD)/unit_splitters
$(NO_MPI_UNITS): $(NO_MPI)
$(NO_MPI_UNITS): ALL_CPPFLAGS := -Itest/no_mpi $(ALL_CPPFLAGS)
$(NO_MPI_UNITS): PARTS := $(NO_MPI) $(PARTS)
$(BUILD)/unit_output_gather: EXTRA_LIBS += -Wl$(comma)--wrap=task_team

# Flags for the sources of tests and helpers, for which -O2 takes up to two and a half times as long. The tested objects
# have their own flags.
TEST_CFLAGS = $(patsubst -O2,-O1,$(patsubst -g,-g1,$(ALL_CFLAGS)))

# Not fortified: some stand in for functions of libc.
$(BUILD)/unit_%: test/unit_%.c $(PARTS) $(SETTINGS) | $(BUILD)
	$(call run,LINK,$@,$(CC) $(ALL_CPPFLAGS) $(TEST_CFLAGS) -U_FORTIFY_SOURCE $(HARDEN_LDFLAGS) $(LDFLAGS) -MMD -MP -o $@ $< $(PARTS) -lcmocka $(LIBS))

# The counter of stats alone, in ranges: test_stats.py runs it.
$(BUILD)/stats_ranges: test/stats_ranges.c $(PARTS) $(SETTINGS) | $(BUILD)
	$(call run,LINK,$@,$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(HARDEN_LDFLAGS) $(LDFLAGS) -MMD -MP -o $@ $< $(PARTS) $(LIBS))

# The program, of the same objects, with functions between them that spoil records: test_guards.py runs it.
FAULTY_WRAPS = bam_arena_cut_sublist sublist_sort spill_packer_add spill_packer_pack spill_slice_unpack record_sink_put \
               output_blocks_open output_blocks_put bgzf_block_deflate hts_writer_put sam_write1 sam_format1 record_sink_count hts_idx_push \
               fixmate_template chunk_reader_counts record_slice_list chunk_reader_take dup_mark_append sorted_slices_take \
               marked_store_lend
$(BUILD)/faulty_samtools: test/faulty_samtools.c $(BUILD)/cli/samtools.o $(LIB_OBJS) $(SETTINGS) | $(BUILD)
	$(call run,LINK,$@,$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(HARDEN_LDFLAGS) $(LDFLAGS) -MMD -MP -o $@ $(filter %.c %.o,$^) \
	$(FAULTY_WRAPS:%=-Wl$(comma)--wrap=%) $(LIBS))

# Preloaded by test_faults.py; never sanitized itself.
$(BUILD)/fault_shim.so: test/fault_shim.c $(SETTINGS) | $(BUILD)
	$(call run,LINK,$@,$(CC) -D_GNU_SOURCE -std=c11 $(WARN) -O1 -g -fPIC -shared -o $@ $< -ldl)

FUZZ_OBJS = $(BUILD)/test/fuzz/fuzz.o $(BUILD)/test/fuzz/program.o
.SECONDARY: $(FUZZ_OBJS) $(BUILD)/test/fuzz/replay.o
$(BUILD)/fuzz_%: test/fuzz/fuzz_%.c $(FUZZ_OBJS) $(PARTS) $(SETTINGS) | $(BUILD)
	$(call run,LINK,$@,$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(HARDEN_LDFLAGS) $(LDFLAGS) -fsanitize=fuzzer -MMD -MP -o $@ $< $(FUZZ_OBJS) $(PARTS) $(LIBS))

$(BUILD)/replay_%: test/fuzz/fuzz_%.c $(BUILD)/test/fuzz/replay.o $(FUZZ_OBJS) $(PARTS) $(SETTINGS) | $(BUILD)
	$(call run,LINK,$@,$(CC) $(ALL_CPPFLAGS) $(TEST_CFLAGS) $(HARDEN_LDFLAGS) $(LDFLAGS) -MMD -MP -o $@ $< $(BUILD)/test/fuzz/replay.o $(FUZZ_OBJS) $(PARTS) $(LIBS))

# The program in slow motion, of the same objects: bench/dilate.py runs it (`make scaling`).
DILATED_WRAPS = clocks_new clocks_enter clocks_leave clocks_enter_as clocks_leave_as clocks_phase clocks_stop \
                task_ring_hand_out task_ring_submit task_ring_add task_ring_take bam_arena_init command_report_measure_memory \
                machine_run_queue counts_join counts_pair
$(BUILD)/dilated_samtools: bench/dilated_samtools.c $(BUILD)/cli/samtools.o $(LIB_OBJS) $(SETTINGS) | $(BUILD)
	$(call run,LINK,$@,$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(HARDEN_LDFLAGS) $(LDFLAGS) -MMD -MP -o $@ $(filter %.c %.o,$^) \
	$(DILATED_WRAPS:%=-Wl$(comma)--wrap=%) $(LIBS))

# By hand: build/NAME of bench/NAME.c, with those libraries that pkg-config finds.
BENCH_PKGS = $(shell { for p in libzstd libisal; do pkg-config --exists $$p && echo $$p; done; } 2>/dev/null)
$(patsubst bench/%.c,$(BUILD)/%,$(filter-out bench/dilated_samtools.c,$(wildcard bench/*.c))): $(BUILD)/%: bench/%.c $(LIB_OBJS) $(SETTINGS) | $(BUILD)
	$(call run,LINK,$@,$(CC) $(ALL_CPPFLAGS) $(if $(filter libzstd,$(BENCH_PKGS)),-DWITH_ZSTD) $(if $(filter libisal,$(BENCH_PKGS)),-DWITH_ISAL) \
	$(ALL_CFLAGS) $(HARDEN_LDFLAGS) $(LDFLAGS) -MMD -MP -o $@ $< $(LIB_OBJS) $(LIBS) \
	$(if $(BENCH_PKGS),$(shell pkg-config --libs $(BENCH_PKGS))))

$(BUILD):
	$(quiet)mkdir -p $@

# ---- tests ----

tools: $(TOOLS)

check-programs: $(BUILD)/samtools $(BUILD)/stats_ranges $(BUILD)/faulty_samtools $(BUILD)/dilated_samtools $(TOOLS) $(UNIT_BINS) $(REPLAY_BINS) $(BUILD)/fault_shim.so

fuzz-programs: $(FUZZ_BINS)

# TESTS=all: the command-line tests with all their parameters; check has a sample, as ./bootstrap.sh check.
check: check-programs
	@BUILD=$(BUILD) TESTS=$(TESTS) sh test/run_tests.sh

# All of that, and each longer check below in its short form.
check-all: check-programs
	@BUILD=$(BUILD) TESTS=all MORE_CHECKS=1 sh test/run_tests.sh

check-asan:
	@sh test/check_asan.sh

# Minutes each; `make check TESTS=all` has a sample of both.
PYTHON = .venv/bin/python
check-faults: check-programs
	FAULTS=all SAMTOOLS_OMP=$(CURDIR)/$(BUILD)/samtools $(PYTHON) -m pytest -q -p no:cacheprovider test/test_faults.py

check-stress: check-programs
	SAMTOOLS_OMP=$(CURDIR)/$(BUILD)/samtools $(PYTHON) test/stress.py

# Runs the tests with each htslib of test/htslibs.txt, which is built outside the tree first.
check-htslibs:
	@sh test/check_htslibs.sh

# The gate of every change that must not change the output: BEFORE is a program built before it. RECORDS=1 compares records
# only, for a change of the encoder; WORDS="markdup -d" picks settings.
gate: $(BUILD)/samtools tools
	@[ -x "$(BEFORE)" ] || { echo 'make gate BEFORE=path: the program to compare with' >&2; exit 2; }
	@python3 test/same_bytes.py $(if $(RECORDS),--records) -- "$(BEFORE)" $(BUILD)/samtools $(WORDS)

# Makes each guard blind, one at a time. The tests must notice it (test/mutants.py).
check-mutants:
	@python3 test/check_mutants.py

# The unit tests with threads.
TSAN_UNITS = bgzf_sink bgzf_source join_tree latch merge_ring out_pipe output_block sam_reader sam_text spill spill_store
tsan-programs: $(BUILD)/samtools $(BUILD)/gen_bam $(TSAN_UNITS:%=$(BUILD)/unit_%)

check-tsan:
	@sh test/check_tsan.sh

# Runs each target for this number of seconds; two run at a time.
FUZZ_SECONDS = 60
fuzz:
	@sh test/fuzz/run.sh $(FUZZ_SECONDS)

# Compilers, cppcheck and clang-tidy (.clang-tidy) check the sources without running anything.
STATIC_WARN = -Wconversion -Wsign-conversion -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wpointer-arith \
              -Wcast-qual -Wundef -Wformat=2 -Wwrite-strings
STATIC_SRCS = cli/samtools.c $(LIB_SRCS) $(wildcard test/fuzz/*.c) $(if $(MPI_HEADERS),$(MPI_SRCS))
# The folder of mpi.h, as MPICC names it, marked as system headers. If MPICC cannot compile, this is empty and mpi/ is
# left out. Only the checks need it.
ifneq ($(filter check-static static-% show-MPI_HEADERS,$(MAKECMDGOALS)),)
MPI_HEADERS := $(shell flags=$$($(MPICC) -show -c x.c 2>/dev/null | tr ' ' '\n' | sed -n 's/^-I/-isystem /p' | tr '\n' ' '); \
                 flags=$${flags:--I.}; \
                 printf '\043include <mpi.h>\n' | $(CC) $$flags -fsyntax-only -x c - >/dev/null 2>&1 && echo "$$flags")
endif
# uninitvar: does not see that a counting sort fills its array. shiftTooManyBitsSigned: GCC and clang define it.
CPPCHECK = cppcheck -q -j $(shell getconf _NPROCESSORS_ONLN) --std=c11 --enable=warning,performance,portability --error-exitcode=1 \
           --suppress=shiftTooManyBitsSigned --suppress=uninitvar:codec/huffman.c
check-static:
	@sh test/check_static.sh

check-release: check-programs
	@sh test/check_release.sh
	@BUILD=$(BUILD) TESTS=release sh test/run_tests.sh
	@python3 test/check_mutants.py

STATIC_COMPILER = $(STATIC_SRCS:%=static-compiler/%)
TIDY_SRCS = $(STATIC_SRCS)
STATIC_TIDY = $(TIDY_SRCS:%=static-tidy/%)
static-compiler: $(STATIC_COMPILER)
$(STATIC_COMPILER): static-compiler/%:
	$(call run,WARN,$*,$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(STATIC_WARN) $(if $(filter mpi/%,$*),$(MPI_HEADERS)) -Werror -fsyntax-only $*)

static-cppcheck:
	$(call run,CHECK,cppcheck,$(CPPCHECK) $(ALL_CPPFLAGS) $(STATIC_SRCS))

# Its standard error counts warnings that are not shown. TIDY_NODES bounds how far the analyzer follows the paths of one
# function: clang's own bound, or less where time is short. 60000 takes a third of the time.
TIDY_NODES = 225000
static-tidy: $(STATIC_TIDY)
$(STATIC_TIDY): static-tidy/%:
	$(call run,TIDY,$*,clang-tidy -quiet -extra-arg=-Xclang -extra-arg=-analyzer-config \
	    -extra-arg=-Xclang -extra-arg=max-nodes=$(TIDY_NODES) $* -- $(ALL_CPPFLAGS) $(if $(filter mpi/%,$*),$(MPI_HEADERS)) -std=c11 -fopenmp 2>/dev/null)

bench: samtools $(TOOLS)
	bench/bench.sh

scaling: $(BUILD)/dilated_samtools $(TOOLS)
	python3 bench/dilate.py

# ---- installation ----

VERSION = $(shell sed -n 's/.*SAMTOOLS_OMP_VERSION "\(.*\)"/\1/p' base/version.h)
hash = \#
# $(call relative,TO,FROM): the path from folder FROM to TO, as shell code. Links and the program use such paths, so the
# installed tree can be moved.
relative = from="$(2)"; up=; until case "$(1)" in ("$$from"/*) ;; (*) false ;; esac || [ -z "$$from" ]; \
           do case $$from in (*/*) from=$${from%/*} ;; (*) from= ;; esac; up=../$$up; done; \
           to="$(1)"; to="$$up$${to$(hash)"$$from"/}"
$(BUILD)/cli/upstream.o: ALL_CPPFLAGS += -DLIBEXEC_FROM_BIN='"$(shell $(call relative,$(namedir),$(bindir)); printf %s "$$to")"'

# Names of the real samtools, which only SAMTOOLS_NAME=yes takes: links to ours, by which `make uninstall` knows them.
TAKEN_NAMES = "$(bindir)/samtools" samtools-omp "$(man1dir)/samtools-sort.1" samtools-omp-sort.1 \
              "$(completionsdir)/samtools" samtools-omp

MANUALS = samtools-omp $(patsubst %,samtools-omp-%,sort merge collate fixmate markdup sormadup stats) bgzip-omp

# The program is bgzip by its name. So bgzip-omp is not a symbolic link: a program that resolves links would start
# samtools-omp.
install: $(BUILD)/samtools
ifeq ($(SAMTOOLS_NAME),yes)
	@set -- $(TAKEN_NAMES); while [ $$# -gt 0 ]; do \
	    if [ -e "$(DESTDIR)$$1" ] && [ "$$(readlink "$(DESTDIR)$$1")" != "$$2" ]; then \
	        echo "make install: $(DESTDIR)$$1 belongs to another samtools, or an older version: remove it first" >&2; exit 1; fi; shift 2; done
endif
	[ -d "$(DESTDIR)$(modules)" ] || rm -f "$(DESTDIR)$(modules)"
	$(INSTALL) -d "$(DESTDIR)$(bindir)" "$(DESTDIR)$(namedir)" "$(DESTDIR)$(man1dir)" "$(DESTDIR)$(man5dir)" \
	    "$(DESTDIR)$(completionsdir)" "$(DESTDIR)$(zshdir)" "$(DESTDIR)$(fishdir)" "$(DESTDIR)$(modules)"
	$(INSTALL_PROGRAM) -m 755 $(BUILD)/samtools "$(DESTDIR)$(bindir)/samtools-omp"
	$(call relative,$(bindir)/samtools-omp,$(namedir)); ln -sf "$$to" "$(DESTDIR)$(namedir)/samtools"
	rm -f "$(DESTDIR)$(bindir)/bgzip-omp"
	cd "$(DESTDIR)$(bindir)" && { ln samtools-omp bgzip-omp || cp -p samtools-omp bgzip-omp; }
	for page in $(MANUALS); do $(INSTALL) -m 644 doc/$$page.1 "$(DESTDIR)$(man1dir)/$$page.1" || exit 1; done
	$(INSTALL) -m 644 doc/samtools-omp-report.5 "$(DESTDIR)$(man5dir)/samtools-omp-report.5"
	$(INSTALL) -m 644 doc/samtools-omp.bash "$(DESTDIR)$(completionsdir)/samtools-omp"
	ln -sf samtools-omp "$(DESTDIR)$(completionsdir)/bgzip-omp"
	$(INSTALL) -m 644 doc/samtools-omp.zsh "$(DESTDIR)$(zshdir)/_samtools-omp"
	$(INSTALL) -m 644 doc/samtools-omp.fish "$(DESTDIR)$(fishdir)/samtools-omp.fish"
	ln -sf samtools-omp.fish "$(DESTDIR)$(fishdir)/bgzip-omp.fish"
	rm -f "$(DESTDIR)$(modules)"/[0-9]*
	for ending in "" .lua; do \
	    sed -e 's/@VERSION@/$(VERSION)/' -e "s|@LIBEXEC@|$(namedir)|" -e "s|@BIN@|$(bindir)|" -e "s|@MAN@|$(mandir)|" \
	        doc/samtools-omp.module$$ending >"$(DESTDIR)$(modules)/$(VERSION)$$ending" && \
	    chmod 644 "$(DESTDIR)$(modules)/$(VERSION)$$ending" || exit 1; done
ifeq ($(SAMTOOLS_NAME),yes)
	set -- $(TAKEN_NAMES); while [ $$# -gt 0 ]; do ln -sf "$$2" "$(DESTDIR)$$1" || exit 1; shift 2; done
endif
	$(if $(DESTDIR)$(findstring s,$(letters)),,@echo 'Installed. To make `samtools` this one in a shell, type' && \
	    echo '    eval "$$($(bindir)/samtools-omp --env)"')

install-strip: INSTALL_PROGRAM = $(INSTALL) -s
install-strip: install

# Installs what was built, with whatever MPI: root, who installs, may find another mpicc or none.
install-mpi:
	@[ -x $(MPI_BUILD)/samtools-omp-mpi ] || { echo "make install-mpi: $(MPI_BUILD)/samtools-omp-mpi is not there: run make mpi first" >&2; exit 1; }
	$(INSTALL) -d "$(DESTDIR)$(bindir)" "$(DESTDIR)$(man1dir)"
	$(INSTALL_PROGRAM) -m 755 $(MPI_BUILD)/samtools-omp-mpi "$(DESTDIR)$(bindir)/samtools-omp-mpi"
	$(INSTALL) -m 644 doc/samtools-omp-mpi.1 "$(DESTDIR)$(man1dir)/samtools-omp-mpi.1"

uninstall:
	set -- $(TAKEN_NAMES); while [ $$# -gt 0 ]; do \
	    if [ "$$(readlink "$(DESTDIR)$$1")" = "$$2" ]; then rm -f "$(DESTDIR)$$1"; fi; shift 2; done
	rm -f "$(DESTDIR)$(bindir)/samtools-omp" "$(DESTDIR)$(namedir)/samtools"
	if [ -d "$(DESTDIR)$(modules)" ]; then rm -f "$(DESTDIR)$(modules)"/[0-9]*; else rm -f "$(DESTDIR)$(modules)"; fi
	rm -f "$(DESTDIR)$(bindir)/bgzip-omp" "$(DESTDIR)$(bindir)/samtools-omp-mpi"
	for page in $(MANUALS) samtools-omp-mpi; do rm -f "$(DESTDIR)$(man1dir)/$$page.1"; done
	rm -f "$(DESTDIR)$(man5dir)/samtools-omp-report.5"
	rm -f "$(DESTDIR)$(completionsdir)/samtools-omp" "$(DESTDIR)$(completionsdir)/bgzip-omp" "$(DESTDIR)$(zshdir)/_samtools-omp"
	rm -f "$(DESTDIR)$(fishdir)/samtools-omp.fish" "$(DESTDIR)$(fishdir)/bgzip-omp.fish"
	for folder in "$(namedir)" "$(modules)" "$(moduledir)" "$(datadir)/samtools-omp"; do \
	    if [ -d "$(DESTDIR)$$folder" ]; then rmdir "$(DESTDIR)$$folder" || :; fi; done

# Makes the release from the committed files.
DISTDIR = .
dist:
	sh test/make_dist.sh samtools-omp-$(VERSION) "$(DISTDIR)"

# dpkg-buildpackage wants the folder at the top.
debian:
	$(quiet)ln -sfn packaging/debian $@

# ---- housekeeping ----

clean:
	rm -rf build build-* samtools samtools-omp-mpi

distclean: clean
	rm -rf config.mk config.log config.status configure configure~ autom4te.cache .venv demo bench/work samtools-omp-*.tar.gz samtools-omp-*.tar.gz.sha256

# For scripts that want to know a setting: make -s show-CC
show-%:
	@echo '$($*)'

-include $(wildcard $(BUILD)/*.d $(BUILD)/*/*.d $(MPI_OBJS:.o=.d) $(NO_MPI_OBJS:.o=.d))

.PHONY: all always help install-strip mpi tools gate check check-all check-programs check-asan check-faults check-stress tsan-programs check-tsan check-static check-release check-htslibs check-mutants fuzz-programs fuzz bench scaling \
        static-compiler static-cppcheck static-tidy $(STATIC_COMPILER) $(STATIC_TIDY) install install-mpi uninstall dist clean distclean
