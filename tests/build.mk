# tests: unit/ mirrors the tree, one Criterion binary a file; fuzz/ likewise, one libFuzzer target a file.
UNIT += $(wildcard tests/unit/*/*_test.c tests/unit/*/*/*_test.c tests/unit/*/*/*/*_test.c)
FUZZ += $(wildcard tests/fuzz/*/*_fuzz.c tests/fuzz/*/*/*_fuzz.c)
