# fastpath/dns: see the lists in the Makefile
LIB += fastpath/dns/name.c fastpath/dns/name_text.c fastpath/dns/rr_type.c
LIB += fastpath/dns/master.c fastpath/dns/master_directive.c fastpath/dns/master_generate.c fastpath/dns/master_lex.c fastpath/dns/master_ttl.c
