# fastpath/table: see the lists in the Makefile
LIB += fastpath/table/shm.c fastpath/table/counters.c fastpath/table/settings.c fastpath/table/snapshot.c fastpath/table/snapshot_hot.c
LIB += fastpath/table/zone_set.c fastpath/table/zone_set_hot.c fastpath/table/zone_set_map.c fastpath/table/zone_set_segment.c
LIB += fastpath/table/zone_build.c
