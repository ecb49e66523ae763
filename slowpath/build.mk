# slowpath: see the lists in the Makefile
LIB += slowpath/listen/bind.c slowpath/listen/port_holder.c
