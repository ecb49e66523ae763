# bpf: the XDP program, compiled for the BPF machine and turned into a skeleton that the library embeds.
STEER_OBJ   := $(O)/gen/steer.bpf.o
STEER_SKEL  := $(O)/gen/steer.skel.h
GEN_HEADERS += $(STEER_SKEL)
BPF_CFLAGS  := -std=gnu17 -target bpf -O2 -g -Wall -Wextra -Werror -D__TARGET_ARCH_$(ARCH) -I/usr/include/$(shell uname -m)-linux-gnu

$(STEER_OBJ): bpf/steer.bpf.c bpf/steer_maps.h
	@mkdir -p $(@D)
	$(CLANG) $(BPF_CFLAGS) -c -o $@ $<

$(STEER_SKEL): $(STEER_OBJ)
	$(BPFTOOL) gen skeleton $< name steer > $@.new
	@mv $@.new $@
