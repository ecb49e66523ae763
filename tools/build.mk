# tools: the skua command. What has unit tests of its own stands in the library; see the lists in the Makefile.
LIB += $(addprefix tools/skua/,verb.c run_backoff.c run_heartbeat.c run_publish.c)
