# tests: see the lists in the Makefile
