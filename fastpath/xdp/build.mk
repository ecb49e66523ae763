# fastpath/xdp: see the lists in the Makefile
