/* SPDX-License-Identifier: Apache-2.0 */
#include "slowpath/listen/listen.h"
#include "slowpath/listen/tcp.h"
#include "slowpath/listen/udp.h"
#include <stdlib.h>

#define DESCRIPTORS_PER_WORKER 24 /* epoll, wake-up pipes and events of the loop, and spare */

struct listen {
	struct tcp_clients *clients;
	struct udp_worker *udp[LISTEN_MAX_WORKERS];
	struct tcp_worker *tcp[LISTEN_MAX_WORKERS];
};

static unsigned worker_count(const struct listen_socket *sockets, size_t socket_count)
{
	unsigned workers = 0;
	for (size_t i = 0; i < socket_count; i++)
		workers = MAX(workers, MIN(sockets[i].worker, LISTEN_MAX_WORKERS) + 1); /* more: refused by the caller */
	return workers;
}

/* The descriptors of one worker and kind. ERR_ARGUMENT if there are too many. */
static enum err select_fds(int fds[LISTEN_MAX_SOCKETS], size_t *count, const struct listen_config *config, unsigned worker,
			   enum link_listen kind)
{
	*count = 0;
	for (size_t i = 0; i < config->socket_count; i++) {
		const struct listen_socket *s = &config->sockets[i];
		if (s->worker != worker || s->kind != kind)
			continue;
		if (*count == LISTEN_MAX_SOCKETS)
			return ERR_ARGUMENT;
		fds[(*count)++] = s->fd;
	}
	return ERR_OK;
}

static struct listen_service service_of(const struct listen_config *config, unsigned thread)
{
	return (struct listen_service){ .resolve = config->resolve,
					.marks = config->cache ? cache_reader_marks(config->cache, config->first_marks + thread)
							       : NULL,
					.log = config->log,
					.log_index = config->first_log + thread };
}

static enum err start_worker(struct listen *l, const struct listen_config *config, unsigned worker)
{
	int fds[LISTEN_MAX_SOCKETS];
	size_t count;
	int cpu = config->cpus && config->cpu_count ? config->cpus[worker % config->cpu_count] : -1;
	struct counter_block *block = &config->counters->block[config->first_block + 2 * worker];
	enum err err = select_fds(fds, &count, config, worker, LINK_LISTEN_UDP);
	if (!err && count) {
		struct udp_worker_config udp = { .fds = fds,
						 .fd_count = count,
						 .snapshots = config->snapshots,
						 .counters = &block[0],
						 .service = service_of(config, 2 * worker),
						 .index = worker,
						 .cpu = cpu };
		err = udp_worker_start(&l->udp[worker], &udp);
	}
	if (!err)
		err = select_fds(fds, &count, config, worker, LINK_LISTEN_TCP);
	if (!err && count) {
		struct tcp_worker_config tcp = { .fds = fds,
						 .fd_count = count,
						 .snapshots = config->snapshots,
						 .counters = &block[1],
						 .service = service_of(config, 2 * worker + 1),
						 .clients = l->clients,
						 .limits = config->tcp,
						 .index = worker,
						 .cpu = cpu };
		err = tcp_worker_start(&l->tcp[worker], &tcp);
	}
	return err;
}

enum err listen_start(struct listen **out, const struct listen_config *config)
{
	unsigned workers = worker_count(config->sockets, config->socket_count);
	if (workers > LISTEN_MAX_WORKERS || config->first_block + 2 * workers > config->counters->block_count)
		return ERR_ARGUMENT;
	struct listen *l = calloc(1, sizeof *l);
	if (!l)
		return ERR_NOMEM;
	enum err err = tcp_clients_create(&l->clients, config->tcp.max_connections, config->tcp.max_per_client);
	for (unsigned w = 0; !err && w < workers; w++)
		err = start_worker(l, config, w);
	if (err) {
		listen_stop(l);
		return err;
	}
	*out = l;
	return ERR_OK;
}

void listen_stop(struct listen *l)
{
	if (!l)
		return;
	for (unsigned w = 0; w < LISTEN_MAX_WORKERS; w++) {
		udp_worker_stop(l->udp[w]);
		tcp_worker_stop(l->tcp[w]);
	}
	tcp_clients_destroy(l->clients);
	free(l);
}

uint32_t listen_blocks(const struct listen_socket *sockets, size_t socket_count)
{
	return 2 * worker_count(sockets, socket_count);
}

unsigned listen_descriptors(unsigned workers, const struct tcp_limits *tcp)
{
	return tcp->max_connections + workers * (2 * LISTEN_MAX_SOCKETS + DESCRIPTORS_PER_WORKER);
}
