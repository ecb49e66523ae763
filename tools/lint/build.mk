# make lint, make format. clang-tidy and cppcheck take the flags of the build.
C_FILES = $(shell git ls-files '*.c' '*.h' | grep -v '^bpf/.*\.bpf\.c$$')
C_SOURCES = $(filter %.c,$(C_FILES))

.PHONY: lint lint-includes lint-sizes lint-hot lint-format lint-tidy lint-cppcheck lint-docs
lint: lint-includes lint-sizes lint-hot lint-format lint-tidy lint-cppcheck lint-docs ## include directions, sizes, hot symbols, format, clang-tidy, cppcheck, generated docs
lint-includes:
	@tools/lint/includes.py
lint-sizes:
	@tools/lint/sizes.py
lint-hot: $(LIB_OBJ) $(foreach p,$(PROGS),$(call obj,$($(p)_SRC)))
	@tools/lint/hot_symbols.py $(O)/obj
lint-tidy: $(GEN_HEADERS)
	@printf '%s\n' $(C_SOURCES) | xargs -P $$(nproc) -n 4 clang-tidy --quiet -- $(CPPFLAGS) $(filter-out -Werror,$(CFLAGS)) 2>&1 | \
		grep -v 'warnings generated' | (! grep -E 'warning:|error:')
lint-cppcheck: $(GEN_HEADERS)
	@cppcheck --quiet -j $$(nproc) --enable=warning,portability --inline-suppr --error-exitcode=1 --std=c11 --check-level=normal \
		$(CPPFLAGS) $(filter-out tests/%,$(C_SOURCES)) 2>/dev/null || \
	 cppcheck --quiet -j $$(nproc) --enable=warning,portability --inline-suppr --error-exitcode=1 --std=c11 $(CPPFLAGS) $(filter-out tests/%,$(C_SOURCES))
lint-docs: docs-check
format: ## let clang-format lay out the sources
	clang-format -i $(C_FILES)
lint-format:
	@clang-format --dry-run -Werror $(C_FILES)
