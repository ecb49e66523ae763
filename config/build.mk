# config: see the lists in the Makefile
LIB += config/glance.c config/load.c config/load_value.c config/load_zones.c config/load_forward.c config/reference.c config/schema.c config/tree.c config/value.c

# The generated pages: `make docs` writes them, `make docs-check` (part of lint) says whether they are what is committed.
DOCS_GENERATOR := $(O)/gen/docs
$(DOCS_GENERATOR): $(O)/obj/config/docs_main.o $(O)/libskua.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)
DOCS_PAGES := config messages

.PHONY: docs docs-check
docs: $(DOCS_GENERATOR) ## write docs/config.md and docs/messages.md from the tables that they describe
	@mkdir -p docs
	@for p in $(DOCS_PAGES); do $(DOCS_GENERATOR) $$p > docs/$$p.md || exit 1; done

docs-check: $(DOCS_GENERATOR) ## fail if docs/config.md or docs/messages.md is older than its table
	@for p in $(DOCS_PAGES); do $(DOCS_GENERATOR) $$p | diff -u docs/$$p.md - || { echo "docs/$$p.md: run make docs"; exit 1; }; done
