# tools: see the lists in the Makefile
