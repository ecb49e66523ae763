# fastpath/xdp: a library part (program, sockets, frames, serving) and the process skua-fastpath.
LIB += $(addprefix fastpath/xdp/,cpus.c device.c frame_hot.c program.c program_maps.c queues.c serve.c serve_hot.c serve_miss.c serve_miss_hot.c socket.c umem_hot.c)

PROGS += skua-fastpath
skua-fastpath_SRC := $(addprefix fastpath/xdp/,main.c orders.c seccomp.c status.c zones.c)

# This test runs the process; a sibling of the test's folder in the build tree.
$(O)/tests/unit/fastpath/xdp/fastpath_test: | $(O)/skua-fastpath
