# slowpath: see the lists in the Makefile
LIB += slowpath/listen/bind.c slowpath/listen/port_holder.c slowpath/listen/listen.c slowpath/listen/listen_thread.c \
       slowpath/listen/udp.c slowpath/listen/udp_hot.c slowpath/listen/tcp.c slowpath/listen/tcp_connection.c slowpath/listen/tcp_clients.c
