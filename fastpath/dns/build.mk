# fastpath/dns: see the lists in the Makefile
LIB += fastpath/dns/name.c fastpath/dns/name_text.c fastpath/dns/rr_type.c
LIB += fastpath/dns/rdata.c fastpath/dns/rdata_number.c fastpath/dns/rdata_string.c fastpath/dns/rdata_binary.c fastpath/dns/rdata_bitmap.c
LIB += fastpath/dns/rdata_address.c fastpath/dns/rdata_loc.c fastpath/dns/rdata_svcb.c
LIB += fastpath/dns/master.c fastpath/dns/master_directive.c fastpath/dns/master_generate.c fastpath/dns/master_lex.c fastpath/dns/master_ttl.c
