# fastpath/table: see the lists in the Makefile
LIB += fastpath/table/shm.c fastpath/table/counters.c fastpath/table/settings.c
