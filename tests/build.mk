# tests: unit/ mirrors the tree, one Criterion binary a file; fuzz/ likewise, one libFuzzer target a file.
UNIT += $(wildcard tests/unit/*/*_test.c tests/unit/*/*/*_test.c tests/unit/*/*/*/*_test.c)
FUZZ += $(wildcard tests/fuzz/*/*_fuzz.c tests/fuzz/*/*/*_fuzz.c)

# race/: programs without Criterion, which does not run under ThreadSanitizer; each ends by itself and says by its exit code how it was.
RACE := $(wildcard tests/race/*/*_race.c tests/race/*/*/*_race.c)
RACE_BIN := $(patsubst tests/race/%.c,$(O)/tests/race/%,$(RACE))
RACE_SECONDS ?= 8
.PHONY: race race-run race-build
$(O)/tests/race/%: $(O)/obj/tests/race/%.o $(O)/libskua.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)
race-build: $(RACE_BIN)
race-run: race-build
	@for t in $(RACE_BIN); do echo "== $$t"; $$t $(RACE_SECONDS) || exit 1; done
race: ## look for data races: the programs of tests/race/ under ThreadSanitizer
	$(MAKE) VARIANT=tsan race-run

# tests/tools/: small programs that the system tests use; no part of the library is in them but in the last two.
TEST_TOOLS := $(O)/tests/tools/qload $(O)/tests/tools/zonedump $(O)/tests/tools/rdata_tool
.PHONY: test-tools
test-tools: $(TEST_TOOLS) ## build the small programs that the system tests use
$(O)/tests/tools/%: tests/tools/%.c
	@mkdir -p $(@D)
	$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $<
# These show what the library makes of a master file.
$(O)/tests/tools/zonedump $(O)/tests/tools/rdata_tool: $(O)/tests/tools/%: $(O)/obj/tests/tools/%.o $(O)/libskua.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)
