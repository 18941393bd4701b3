# SPDX-License-Identifier: MIT
# samtools-omp. `make` works as it is; ./configure only writes config.mk
# (paths, optional libraries), which is read here when it exists.
#
#   make              the program, ./samtools      make WERROR=1   warnings are errors
#   make check        unit tests and pytest        make check-asan the same, sanitized
#   make bench        table against the peers on PATH
#   make install      to $(DESTDIR)$(prefix)       make uninstall

CC       = cc
CFLAGS   = -O2 -g
CPPFLAGS =
LDFLAGS  =
prefix   = /usr/local
-include config.mk

bindir   ?= $(prefix)/bin
mandir   ?= $(prefix)/share/man
man1dir  ?= $(mandir)/man1
completionsdir ?= $(prefix)/share/bash-completion/completions
INSTALL  ?= install
HTS_LIBS ?= -lhts
DEFLATE_LIBS ?= -ldeflate
LZ4_LIBS ?= -llz4
OPENMP_CFLAGS ?= -fopenmp

BUILD    = build
WARN     = -Wall -Wextra
ifeq ($(WERROR),1)
WARN    += -Werror
endif
ALL_CPPFLAGS = -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -I. $(CPPFLAGS)
ALL_CFLAGS   = -std=c11 $(WARN) $(OPENMP_CFLAGS) $(CFLAGS)
LIBS     = $(HTS_LIBS) $(DEFLATE_LIBS) $(LZ4_LIBS) $(EXTRA_LIBS) -lm

# Everything but main(), so that unit tests and fuzzers link the same objects.
LIB_SRCS = sort_opts.c bam_sort.c bam_header.c bgzf_block.c bam_deflate.c bam_inflate.c huffman.c bgzf_source.c bgzf_sink.c bam_arena.c bam_record.c \
           sort_run.c run_merge.c sort_key.c name_key.c name_groups.c name_shape.c tag_key.c template_key.c text_code.c minhash.c \
           minhash_run.c arena_pair.c spill.c spill_run.c spill_slice.c record_pack.c spill_store.c run_reader.c memory_plan.c sort_check.c \
           byte_source.c far_pos.c hts_reader.c hts_writer.c bam1_bytes.c record_sink.c bam_index.c \
           out_file.c upstream.c machine.c latch.c
LIB_OBJS = $(LIB_SRCS:%.c=$(BUILD)/%.o)
UNIT_SRCS = $(wildcard test/unit_*.c)
UNIT_BINS = $(UNIT_SRCS:test/%.c=$(BUILD)/%)
# Helpers of tests, demo and benchmark: one source file each, htslib only.
TOOLS    = $(BUILD)/gen_bam $(BUILD)/check_sorted $(BUILD)/timed
# What everything is rebuilt for.
SETTINGS = Makefile $(wildcard config.mk)

all: samtools

samtools: $(BUILD)/samtools
	ln -sf $< $@

$(BUILD)/samtools: $(BUILD)/samtools.o $(LIB_OBJS)
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/%.o: %.c $(SETTINGS) | $(BUILD)
	$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(TOOLS): $(BUILD)/%: test/%.c $(SETTINGS) | $(BUILD)
	$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(LDFLAGS) -MMD -MP -o $@ $< $(LIBS)

$(BUILD)/unit_bam_deflate $(BUILD)/unit_bam_inflate: EXTRA_LIBS += -lz
$(BUILD)/unit_%: test/unit_%.c $(LIB_OBJS) $(SETTINGS) | $(BUILD)
	$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(LDFLAGS) -MMD -MP -o $@ $< $(LIB_OBJS) -lcmocka $(LIBS)

# By hand: codecs for runs on disk, with those libraries that pkg-config finds.
SPILL_PKGS = $(shell for p in libzstd libisal; do pkg-config --exists $$p && echo $$p; done)
$(BUILD)/spill_codecs: bench/spill_codecs.c $(LIB_OBJS) $(SETTINGS) | $(BUILD)
	$(CC) $(ALL_CPPFLAGS) $(patsubst lib%,-DWITH_%,$(shell echo $(SPILL_PKGS) | tr a-z A-Z | sed 's/LIB/lib/g')) \
	$(ALL_CFLAGS) $(LDFLAGS) -MMD -MP -o $@ $< $(LIB_OBJS) $(LIBS) $(if $(SPILL_PKGS),$(shell pkg-config --libs $(SPILL_PKGS)))

# By hand: our decoder beside others.
INFLATE_PKGS = $(shell pkg-config --exists libisal && echo libisal)
$(BUILD)/inflate_bench: bench/inflate_bench.c $(LIB_OBJS) $(SETTINGS) | $(BUILD)
	$(CC) $(ALL_CPPFLAGS) $(if $(INFLATE_PKGS),-DWITH_ISAL) $(ALL_CFLAGS) $(LDFLAGS) -MMD -MP -o $@ $< $(LIB_OBJS) $(LIBS) -lz \
	$(if $(INFLATE_PKGS),$(shell pkg-config --libs $(INFLATE_PKGS)))

$(BUILD):
	mkdir -p $@

# ---- tests ----

tools: $(TOOLS)

check-programs: $(BUILD)/samtools $(TOOLS) $(UNIT_BINS)

check: check-programs
	@BUILD=$(BUILD) sh test/run_tests.sh

# Address and undefined-behaviour sanitizer, in a build of its own. The first finding ends the
# program with a status that no test expects.
SAN_CFLAGS = -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=all
check-asan:
	@ASAN_OPTIONS="exitcode=99:$$ASAN_OPTIONS" UBSAN_OPTIONS="print_stacktrace=1:$$UBSAN_OPTIONS" \
	$(MAKE) BUILD=build-asan CFLAGS='$(SAN_CFLAGS)' check

bench: samtools $(TOOLS)
	bench/bench.sh

# ---- installation ----

install: all
	$(INSTALL) -d "$(DESTDIR)$(bindir)" "$(DESTDIR)$(man1dir)" "$(DESTDIR)$(completionsdir)"
	$(INSTALL) -m 755 $(BUILD)/samtools "$(DESTDIR)$(bindir)/samtools"
	$(INSTALL) -m 644 doc/samtools-sort.1 "$(DESTDIR)$(man1dir)/samtools-sort.1"
	$(INSTALL) -m 644 doc/samtools-sort.bash "$(DESTDIR)$(completionsdir)/samtools"

uninstall:
	rm -f "$(DESTDIR)$(bindir)/samtools" "$(DESTDIR)$(man1dir)/samtools-sort.1"
	rm -f "$(DESTDIR)$(completionsdir)/samtools"

# ---- housekeeping ----

clean:
	rm -rf build build-* samtools

distclean: clean
	rm -rf config.mk config.log config.status configure configure~ autom4te.cache .venv demo bench/work

# For scripts that want to know a setting: make -s show-CC
show-%:
	@echo '$($*)'

-include $(wildcard $(BUILD)/*.d)

.PHONY: all tools check check-programs check-asan bench install uninstall clean distclean
