# bpf: see the lists in the Makefile
