# fastpath/table: see the lists in the Makefile
LIB += fastpath/table/shm.c fastpath/table/counters.c fastpath/table/settings.c fastpath/table/snapshot.c fastpath/table/snapshot_hot.c
LIB += fastpath/table/zone_set.c fastpath/table/zone_set_hot.c fastpath/table/zone_set_map.c fastpath/table/zone_set_segment.c
LIB += fastpath/table/zone_build.c
LIB += fastpath/table/zone_compile.c fastpath/table/zone_compile_block.c fastpath/table/zone_compile_nsec3.c
LIB += fastpath/table/zone_image_delta_hot.c fastpath/table/nsec3_hash_hot.c
LIB += fastpath/table/zone_check.c fastpath/table/zone_check_target.c fastpath/table/zone_check_dnssec.c
LIB += fastpath/table/zone_verify.c
LIB += $(addprefix fastpath/table/,log_ring.c log_ring_hot.c shared.c ring.c ring_hot.c miss_quota_hot.c policy.c policy_hot.c)
LIB += $(addprefix fastpath/table/,cache.c cache_hot.c cache_entry_hot.c cache_write.c cache_evict.c cache_repair.c cache_file.c)
