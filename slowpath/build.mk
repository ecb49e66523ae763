# slowpath: see the lists in the Makefile
LIB += slowpath/listen/bind.c slowpath/listen/port_holder.c slowpath/listen/listen.c slowpath/listen/listen_thread.c \
       slowpath/listen/udp.c slowpath/listen/udp_hot.c slowpath/listen/tcp.c slowpath/listen/tcp_connection.c slowpath/listen/tcp_clients.c \
       slowpath/listen/udp_miss.c slowpath/listen/tcp_miss.c
LIB += slowpath/zone/local_zones.c slowpath/zone/zone_source.c slowpath/zone/segment_notes.c slowpath/zone/segment_write.c slowpath/zone/zone_load.c \
       slowpath/zone/zone_store.c slowpath/zone/zone_image_file.c slowpath/zone/reload.c slowpath/zone/reload_faults.c slowpath/zone/repack.c \
       slowpath/zone/publish.c slowpath/zone/publish_adopt.c slowpath/zone/loader.c
LIB += slowpath/resolve/entry_build.c
LIB += $(addprefix slowpath/resolve/,timer_wheel.c reply_edns.c exchange.c exchange_query.c exchange_udp.c exchange_stream.c exchange_tls.c \
       upstream.c forward.c forward_table.c forward_status.c)
LIB += $(addprefix slowpath/resolve/,worker.c question.c join.c resolve.c resolve_report.c)
LIB += slowpath/handover.c slowpath/seccomp.c slowpath/control.c slowpath/control_resolve.c

PROGS += skua-slowpath
skua-slowpath_SRC := slowpath/main.c
