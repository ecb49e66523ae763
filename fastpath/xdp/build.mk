# fastpath/xdp: see the lists in the Makefile
LIB += fastpath/xdp/program.c fastpath/xdp/program_maps.c
