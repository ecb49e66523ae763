# fastpath/dns: see the lists in the Makefile
LIB += fastpath/dns/name.c fastpath/dns/name_text.c
