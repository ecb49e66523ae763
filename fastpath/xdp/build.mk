# fastpath/xdp: a library part (program, sockets, frames, serving) and the process skua-fastpath.
LIB += $(addprefix fastpath/xdp/,cpus.c device.c frame_hot.c program.c program_maps.c queues.c serve.c serve_hot.c socket.c umem_hot.c)

PROGS += skua-fastpath
skua-fastpath_SRC := $(addprefix fastpath/xdp/,main.c orders.c privileges.c seccomp.c status.c zones.c)
