# bench: ceilings, generator and the micro benchmark, into $(O)/bench/. `make bench-build` builds, bench/run runs.
BENCH_PROGS := echo_xdp echo_socket answer_micro generate cache_micro exchange_micro
BENCH_BIN   := $(addprefix $(O)/bench/,$(BENCH_PROGS))

$(O)/gen/%.bpf.o: bench/%.bpf.c
	@mkdir -p $(@D)
	$(CLANG) $(BPF_CFLAGS) -c -o $@ $<
$(O)/gen/echo.skel.h $(O)/gen/generate.skel.h: $(O)/gen/%.skel.h: $(O)/gen/%.bpf.o
	$(BPFTOOL) gen skeleton $< name $* > $@.new
	@mv $@.new $@
$(O)/obj/bench/echo_xdp.o: $(O)/gen/echo.skel.h
$(O)/obj/bench/generate_xdp.o: $(O)/gen/generate.skel.h

.PHONY: bench-build
bench-build: $(BENCH_BIN)
bench: bench-build all ## the auth scenario against peers; see bench/README.md for more
	bench/run auth --peers knot-xdp,knot,nsd,gdnsd,echo-xdp,echo-socket --rounds 3
$(O)/bench/echo_%: $(O)/obj/bench/echo_%.o $(O)/obj/fastpath/base/base.o
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ -lxdp -lbpf
$(O)/bench/generate: $(O)/obj/bench/generate.o $(O)/obj/bench/generate_udp.o $(O)/obj/bench/generate_xdp.o $(O)/libskua.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS)
$(O)/bench/answer_micro: $(O)/obj/bench/micro/answer_micro.o $(O)/libunit.a $(O)/libskua.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS) $(JEMALLOC)
$(O)/bench/exchange_micro: $(O)/obj/bench/micro/exchange_micro.o $(O)/libskua.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS) $(JEMALLOC)
$(O)/bench/cache_micro: $(O)/obj/bench/micro/cache_micro.o $(O)/libunit.a $(O)/libskua.a
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $^ $(LDLIBS) -lm $(JEMALLOC)
