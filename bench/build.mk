# bench: see the lists in the Makefile
