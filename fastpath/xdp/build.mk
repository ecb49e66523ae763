# fastpath/xdp: see the lists in the Makefile
LIB += fastpath/xdp/program.c fastpath/xdp/program_maps.c
LIB += fastpath/xdp/device.c fastpath/xdp/frame_hot.c fastpath/xdp/serve.c fastpath/xdp/serve_hot.c fastpath/xdp/socket.c fastpath/xdp/umem_hot.c
