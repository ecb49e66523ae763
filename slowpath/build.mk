# slowpath: see the lists in the Makefile
