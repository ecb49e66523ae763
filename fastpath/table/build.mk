# fastpath/table: see the lists in the Makefile
