# make lint, make format. clang-tidy and cppcheck take the flags of the build.
C_FILES = $(shell git ls-files '*.c' '*.h' | grep -v '^bpf/.*\.bpf\.c$$')
LINT_SOURCES = $(filter-out tests/% %.bpf.c,$(filter %.c,$(C_FILES)))
# How far clang's analyzer follows calls. `make lint-tidy TIDY_MODE=deep` finds more and takes a quarter of an hour on two cores.
TIDY_MODE ?= shallow

.PHONY: lint lint-includes lint-sizes lint-hot lint-format lint-tidy lint-cppcheck lint-docs
lint: lint-includes lint-sizes lint-hot lint-format lint-tidy lint-cppcheck lint-docs ## include directions, sizes, hot symbols, format, clang-tidy, cppcheck, generated docs
lint-includes:
	@tools/lint/includes.py
lint-sizes:
	@tools/lint/sizes.py
lint-hot: $(LIB_OBJ) $(foreach p,$(PROGS),$(call obj,$($(p)_SRC)))
	@tools/lint/hot_symbols.py $(O)/obj
# One file a process: clang-tidy 14 takes the state of one file into the next.
lint-tidy: $(GEN_HEADERS) $(O)/gen/echo.skel.h $(O)/gen/generate.skel.h
	@printf '%s\n' $(LINT_SOURCES) | xargs -P $$(nproc) -I FILE clang-tidy --quiet FILE -- $(CPPFLAGS) $(filter-out -Werror,$(CFLAGS)) \
		-DSKUA_VERSION='""' -Xclang -analyzer-config -Xclang mode=$(TIDY_MODE) 2>/dev/null
lint-cppcheck: $(GEN_HEADERS)
	@cppcheck --quiet -j $$(nproc) --enable=warning,portability --inline-suppr --error-exitcode=1 --std=c11 '-DLIBBPF_OPTS(type, name, ...)=struct type name' \
		$(CPPFLAGS) $(LINT_SOURCES)
lint-docs: docs-check
format: ## let clang-format lay out the sources
	clang-format -i $(C_FILES)
lint-format:
	@clang-format --dry-run -Werror $(C_FILES)
