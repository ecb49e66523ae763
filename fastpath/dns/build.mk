# fastpath/dns: see the lists in the Makefile
