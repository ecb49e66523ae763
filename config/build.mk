# config: see the lists in the Makefile
