# One make, no recursion. Each folder's build.mk adds to the lists below.
#
#   LIB    library sources, linked into build/libskua.a (every program links it)
#   PROGS  programs; for each one NAME_SRC lists its own sources (main and friends), NAME_LIBS extra -l flags
#   UNIT   Criterion test sources, one binary each        FUZZ   libFuzzer targets, one binary each
#   LINT_*, GEN_* see tools/build.mk
#
# VARIANT selects flags and the object folder: release (default), debug, asan, tsan, fuzz. BUILD: another place for all of it.

VARIANT ?= release
BUILD   ?= build
O       := $(BUILD)$(if $(filter-out release,$(VARIANT)),/$(VARIANT))
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

CC      ?= gcc
ifeq ($(origin CC),default)
CC      := gcc
endif
CLANG   ?= clang
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool) bpftool)
PKGS    := libxdp libbpf liburcu-qsbr libuv jansson yaml-0.1 libssl libcrypto libseccomp libcap libsystemd
ARCH    := $(shell uname -m | sed 's/x86_64/x86/;s/aarch64/arm64/')

CPPFLAGS += -I. -Ifastpath -isystem $(O)/gen -D_GNU_SOURCE
WARN     := -Wall -Wextra -Wshadow -Werror
CFLAGS_release := -O2 -g -D_FORTIFY_SOURCE=2 -fstack-protector-strong
CFLAGS_debug   := -O1 -g -DSKUA_DEBUG=1
CFLAGS_asan    := -O1 -g -DSKUA_DEBUG=1 -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
CFLAGS_tsan    := -O1 -g -DSKUA_DEBUG=1 -fsanitize=thread -fno-omit-frame-pointer
CFLAGS_fuzz    := -O1 -g -DSKUA_DEBUG=1 -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
LDFLAGS_release := -Wl,-z,relro,-z,now
LDFLAGS_asan    := -fsanitize=address,undefined
LDFLAGS_tsan    := -fsanitize=thread
LDFLAGS_fuzz    := -fsanitize=address,undefined
ifeq ($(VARIANT),fuzz)
CC := $(CLANG)
endif
CFLAGS  += -std=gnu17 $(WARN) -fPIE -pthread $(CFLAGS_$(VARIANT)) $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
LDFLAGS += -pie -pthread $(LDFLAGS_$(VARIANT))
LDLIBS  := $(shell pkg-config --libs $(PKGS) 2>/dev/null)
JEMALLOC := $(if $(filter release,$(VARIANT)),-ljemalloc)

LIB   :=
PROGS :=
UNIT  :=
FUZZ  :=
.DEFAULT_GOAL := all
ROOMS := bpf fastpath/base fastpath/dns fastpath/table fastpath/answer fastpath/xdp slowpath config tools tools/lint tests tests/zerocopy bench
include $(foreach r,$(ROOMS),$(r)/build.mk)

obj      = $(patsubst %.c,$(O)/obj/%.o,$(1))
LIB_OBJ := $(call obj,$(LIB))
LIBSKUA := $(O)/libskua.a
PROG_BIN := $(addprefix $(O)/,$(PROGS))
UNIT_BIN := $(patsubst tests/unit/%.c,$(O)/tests/unit/%,$(UNIT))
FUZZ_BIN := $(patsubst tests/fuzz/%.c,$(O)/tests/fuzz/%,$(FUZZ))

.PHONY: all check check-long check-zerocopy bench install format lint fuzz help clean unit unit-build fuzz-build fuzz-replay fuzz-run
all: $(PROG_BIN) ## build every program into build/

$(O)/obj/%.o: %.c $(GEN_HEADERS)
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(LIBSKUA): $(LIB_OBJ)
	@rm -f $@
	ar rcs $@ $^

# What a command waits for first is the dynamic linker: of libcrypto it needs SHA-1 alone, of jemalloc nothing.
SHORT_LIVED := skua
STATIC_CRYPTO := $(filter-out -lssl -lcrypto,$(LDLIBS)) -l:libcrypto.a

define PROG_RULE
$(O)/$(1): $(call obj,$($(1)_SRC)) $(LIBSKUA)
	$$(CC) $$(LDFLAGS) -o $$@ $$^ $$($(1)_LIBS) $(if $(filter $(1),$(SHORT_LIVED)),$$(STATIC_CRYPTO),$$(LDLIBS) $$(JEMALLOC))
endef
$(foreach p,$(PROGS),$(eval $(call PROG_RULE,$(p))))

UNIT_LIB := $(O)/libunit.a
$(UNIT_LIB): $(call obj,$(wildcard tests/unit/lib/*.c))
	@rm -f $@
	ar rcs $@ $^

# The archives stand last: a test that includes a .c file overrides that member.
$(O)/tests/unit/%: $(O)/obj/tests/unit/%.o $(UNIT_LIB) $(LIBSKUA)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -Wl,-u,__lsan_default_suppressions -o $@ $^ $(LDLIBS) -lcriterion

$(O)/tests/fuzz/%: $(O)/obj/tests/fuzz/%.o $(UNIT_LIB) $(LIBSKUA)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -fsanitize=fuzzer -o $@ $^ $(LDLIBS)

unit-build: $(UNIT_BIN)
unit: unit-build ## build and run the unit tests of this VARIANT
	@for t in $(UNIT_BIN); do echo "== $$t"; $$t || exit 1; done

check: ## every test but the long suites (as root)
	tools/check
check-long: ## the long suites too: hours of fuzzing, faults and peers, zero-copy in a guest
	tools/check --long
	$(MAKE) check-zerocopy

# --- fuzzers: VARIANT=fuzz is implied -------------------------------------------------------------------------------
FUZZ_SECONDS ?= 3600
FUZZ_EACH = $$(( $(FUZZ_SECONDS) / $(words $(FUZZ_BIN)) + 1 ))
fuzz-build: $(FUZZ_BIN)
fuzz-replay: fuzz-build
	@for t in $(FUZZ_BIN); do n=$$(basename $$t); echo "== $$n"; c=tests/fuzz/corpus/$$n; [ ! -d $$c ] || $$t -runs=0 $$c || exit 1; done
fuzz-run: fuzz-build
	@for t in $(FUZZ_BIN); do n=$$(basename $$t); echo "== $$n"; mkdir -p $(O)/found/$$n; c=tests/fuzz/corpus/$$n; [ -d $$c ] || c=; \
		$$t -max_total_time=$(FUZZ_EACH) -rss_limit_mb=2048 -timeout=20 -artifact_prefix=$(O)/found/$$n- $(O)/found/$$n $$c || exit 1; done
fuzz: ## fuzz all targets for FUZZ_SECONDS (3600) in all
	$(MAKE) VARIANT=fuzz fuzz-run

# --- install --------------------------------------------------------------------------------------------------------
# The command finds the parts in ../libexec/skua, so PREFIX is free.
PREFIX  ?= /usr/local
BINDIR  = $(DESTDIR)$(PREFIX)/bin
PARTDIR = $(DESTDIR)$(PREFIX)/libexec/skua
DOCDIR  = $(DESTDIR)$(PREFIX)/share/doc/skua
install: all ## install below DESTDIR and PREFIX (/usr/local)
	install -d $(BINDIR) $(PARTDIR) $(DOCDIR)/docs $(DOCDIR)/examples
	install -m 755 $(O)/skua $(BINDIR)
	install -m 755 $(filter-out $(O)/skua,$(PROG_BIN)) $(PARTDIR)
	install -m 644 README.md LICENSE $(DOCDIR)
	install -m 644 $(wildcard docs/*.md) $(DOCDIR)/docs
	install -m 644 config/skua.yaml config/sample/demo.example.zone $(DOCDIR)/examples

clean: ## remove everything that was built
	rm -rf build

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(filter %Makefile %.mk,$(MAKEFILE_LIST)) | sed -E 's/:.*## /\t/' | sort -u | expand -t 18

.SECONDARY:
-include $(shell find $(O)/obj -name '*.d' 2>/dev/null)
