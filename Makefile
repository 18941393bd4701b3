# SPDX-License-Identifier: MIT
# samtools-omp. `make` works as it is; ./configure only writes config.mk
# (paths, optional libraries), which is read here when it exists.

CC       = cc
CFLAGS   = -O2 -g
CPPFLAGS =
LDFLAGS  =
prefix   = /usr/local
-include config.mk

bindir   ?= $(prefix)/bin
mandir   ?= $(prefix)/share/man
PYTHON   ?= python3
HTS_LIBS ?= -lhts
DEFLATE_LIBS ?= -ldeflate
OPENMP_CFLAGS ?= -fopenmp

BUILD    = build
WARN     = -Wall -Wextra
ALL_CPPFLAGS = -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -I. $(CPPFLAGS)
ALL_CFLAGS   = -std=c11 $(WARN) $(OPENMP_CFLAGS) $(CFLAGS)
LIBS     = $(HTS_LIBS) $(DEFLATE_LIBS) $(EXTRA_LIBS) -lm

# Everything but main(), so that unit tests and fuzzers link the same objects.
LIB_SRCS = sort_opts.c bam_sort.c bgzf_block.c bgzf_omp.c bam_arena.c bam_record.c \
           sort_key.c sort_run.c run_merge.c latch.c stats.c
LIB_OBJS = $(LIB_SRCS:%.c=$(BUILD)/%.o)
UNIT_SRCS = $(wildcard test/unit_*.c)
UNIT_BINS = $(UNIT_SRCS:test/%.c=$(BUILD)/%)

all: samtools

samtools: $(BUILD)/samtools
	ln -sf $< $@

$(BUILD)/samtools: $(BUILD)/samtools.o $(LIB_OBJS)
	$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)

$(BUILD)/%.o: %.c Makefile | $(BUILD)
	$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/gen_bam: test/gen_bam.c Makefile | $(BUILD)
	$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $< $(LIBS)

$(BUILD)/unit_%: test/unit_%.c $(LIB_OBJS) Makefile | $(BUILD)
	$(CC) $(ALL_CPPFLAGS) $(ALL_CFLAGS) $(LDFLAGS) -MMD -MP -o $@ $< $(LIB_OBJS) -lcmocka $(LIBS)

$(BUILD):
	mkdir -p $@

clean:
	rm -rf build build-* samtools

-include $(wildcard $(BUILD)/*.d)

.PHONY: all clean
