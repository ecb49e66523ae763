LIB += $(addprefix fastpath/answer/,answer_hot.c parse_hot.c edns_hot.c chaos_hot.c cached_hot.c cookie_hot.c tsig_hot.c zone_hot.c \
	denial_hot.c additional_hot.c render_hot.c)
