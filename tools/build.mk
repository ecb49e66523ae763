# tools: the skua command. What has unit tests of its own stands in the library; see the lists in the Makefile.
LIB += $(addprefix tools/skua/,verb.c run_backoff.c run_heartbeat.c run_publish.c run_lock.c run_share.c run_shared.c)
PROGS += skua
skua_LIBS := -lxxhash
skua_SRC := $(addprefix tools/skua/,main.c client.c config_file.c run.c run_memory.c run_setup.c run_orders.c run_watch.c run_control.c run_part.c \
	run_xdp.c verb_status.c verb_zone.c verb_zone_check.c verb_xdp.c verb_config.c verb_resolve.c)
