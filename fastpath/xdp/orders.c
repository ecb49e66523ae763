/* SPDX-License-Identifier: Apache-2.0 */
/* The supervisor's messages. Before GO they are kept; GO makes sockets and threads; after it they are obeyed at once. The link is
 * non-blocking. A message that breaks the protocol, or a zone set that fails its checks, ends the process: the slots go with its
 * sockets, and the kernel path serves. */
#include "xdp/fastpath.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/privileges.h"
#include "table/shm.h"

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

#define SEND_WAIT_MS 1000
#define RECEIVE_BATCH 64 /* messages before the rest of the loop gets its turn */

bool orders_send(struct fastpath *f, enum link_type type, uint64_t generation, uint32_t a, const char *text)
{
	struct link_msg m = { .type = type, .generation = generation, .a = a };
	struct pollfd p = { .fd = f->link, .events = POLLOUT };
	enum err err;

	snprintf(m.text, sizeof(m.text), "%s", text);
	err = link_send(f->link, &m, -1);
	if (err == ERR_AGAIN && poll(&p, 1, SEND_WAIT_MS) > 0)
		err = link_send(f->link, &m, -1);
	return err == ERR_OK;
}

/* Says why to log and supervisor; the caller returns the result. */
static bool fail(struct fastpath *f, enum link_exit code, const char *why)
{
	f->exit_code = code;
	if (!orders_send(f, LINK_FAILED, 0, code, why))
		log_write(M_XDP_LINK_ENDED, "ending (%s), and the supervisor could not be told", why);
	return false;
}

static void report_config(void *user, bool is_error, struct config_place place, const char *message)
{
	const struct link_msg *m = user;

	if (is_error)
		log_write(M_XDP_CONFIG, "%s:%u:%u: %s", m->text, place.line, place.column, message);
}

static bool take_config(struct fastpath *f, struct link_msg *m, int fd)
{
	const void *text;
	size_t bytes;
	enum err err = f->config ? ERR_EXISTS : shm_is_sealed(fd, true) ? shm_map(&text, &bytes, fd) : ERR_DENIED;

	close(fd);
	if (err)
		return fail(f, LINK_EXIT_FAILURE, "the configuration cannot be mapped");
	err = config_load(&f->config, m->text, text, bytes, report_config, m);
	shm_unmap(text, bytes);
	if (err)
		return fail(f, LINK_EXIT_CONFIG, "the configuration has errors");
	for (size_t i = 0; i < f->config->log.level_count; i++)
		log_set_level((enum log_subsystem)f->config->log.level[i].subsystem,
			      (enum log_level)f->config->log.level[i].level);
	if (f->config->xdp.reply == REPLY_ROUTE)
		log_write(M_XDP_REPLY_ROUTE, "xdp.reply: route is not available: replies swap addresses");
	return true;
}

static bool take_counters(struct fastpath *f, int fd)
{
	enum err err = f->counters ? ERR_EXISTS : counters_attach(&f->counters, fd, true);

	close(fd);
	if (err)
		return fail(f, LINK_EXIT_FAILURE, "the counters cannot be mapped");
	counters_reset(f->counters, (uint32_t)getpid());
	return true;
}

static bool take_interface(struct fastpath *f, const struct link_msg *m, int fd)
{
	if (!f->is_started && m->b <= XDP_MODE_SKB &&
	    queues_add(&f->queues, m->text, m->a, (enum config_xdp_mode)m->b, fd) == ERR_OK)
		return true;
	close(fd);
	return fail(f, LINK_EXIT_FAILURE, "an interface came too late, or one too many");
}

/* What fails its checks is left out: hits and zones are served without the other part's good will. */
static enum err attach_shared(struct fastpath *f)
{
	const char *why = "";
	enum err err = shared_attach(&f->shared, &why);

	if (err)
		log_write(M_SHARED_BAD, "%s: %s", why, err_text(err));
	return zones_cache(&f->zones, f->shared.cache);
}

static bool take_shared(struct fastpath *f, const struct link_msg *m, int fd)
{
	enum err err = f->is_started ? ERR_MALFORMED : shared_take(&f->shared, m, &fd);

	if (fd >= 0)
		close(fd);
	return !err || fail(f, LINK_EXIT_FAILURE, "shared memory came too late, or twice");
}

/* Sockets while there are privileges, threads when there are none. */
static bool go(struct fastpath *f)
{
	enum err err;

	if (f->is_started || !f->config || !f->counters || f->control_listen_fd < 0)
		return fail(f, LINK_EXIT_FAILURE, "GO came twice, or before what it needs");
	if (attach_shared(f) != ERR_OK)
		return fail(f, LINK_EXIT_FAILURE, "no memory for a snapshot");
	err = queues_bind(&f->queues, f->config, f->counters);
	if (err == ERR_UNSUPPORTED || err == ERR_RANGE || err == ERR_ARGUMENT)
		return fail(f, LINK_EXIT_CONFIG, "no AF_XDP socket can be made with this configuration");
	if (err)
		return fail(f, LINK_EXIT_FAILURE, "no AF_XDP socket could be made");
	if (privileges_drop(f->config->server.user_fastpath) != ERR_OK)
		return fail(f, LINK_EXIT_FAILURE, "privileges could not be given up");
	if (zones_start_empty(&f->zones) != ERR_OK ||
	    control_server_create(&f->control, f->control_listen_fd, status_verbs, f) != ERR_OK ||
	    queues_start(&f->queues, f->config, &f->zones.holder, &f->shared) != ERR_OK)
		return fail(f, LINK_EXIT_FAILURE, "the threads could not be started");
	if (syscall_filter_enter(&fastpath_syscalls) != ERR_OK)
		return fail(f, LINK_EXIT_FAILURE, "system calls could not be restricted");
	f->is_started = true;
	if (f->zones.generation)
		queues_insert(&f->queues);
	log_write(M_XDP_SERVING, "serving %zu queues of %zu interfaces, ready after %llu ms", f->queues.count,
		  f->queues.interface_count, (unsigned long long)(clock_mono_ns() - f->started_ns) / 1000000);
	if (!orders_send(f, LINK_READY, 0, 0, ""))
		return false;
	return f->zones.generation ? orders_send(f, LINK_LIVE, f->zones.generation, LINK_PART_FASTPATH, "") : true;
}

static bool take_map(struct fastpath *f, const struct link_msg *m, int fd)
{
	if (zones_map(&f->zones, m->generation, fd, m->b == LINK_VERIFIED) != ERR_OK)
		return fail(f, LINK_EXIT_FAILURE, "a zone set failed its checks");
	if (!f->is_started)
		return true;
	queues_insert(&f->queues);
	return orders_send(f, LINK_LIVE, f->zones.generation, LINK_PART_FASTPATH, "");
}

static bool obey(struct fastpath *f, struct link_msg *m, int fd)
{
	switch (m->type) {
	case LINK_CONFIG: return take_config(f, m, fd);
	case LINK_COUNTERS: return take_counters(f, fd);
	case LINK_SETTINGS:
		return zones_settings(&f->zones, fd) == ERR_OK || fail(f, LINK_EXIT_FAILURE, "the settings failed their checks");
	case LINK_CONTROL:
		if (f->control_listen_fd >= 0)
			break;
		f->control_listen_fd = fd;
		return true;
	case LINK_XSKMAP: return take_interface(f, m, fd);
	case LINK_POLICY: (void)!zones_policy(&f->zones, fd); return true; /* the last good one stays */
	case LINK_CACHE:
	case LINK_MARKS:
	case LINK_RINGS:
	case LINK_WAKE:
	case LINK_LOG: return take_shared(f, m, fd);
	case LINK_SEGMENT:
		return zones_segment(&f->zones, m->a, fd, m->b == LINK_VERIFIED) == ERR_OK ||
		       fail(f, LINK_EXIT_FAILURE, "a segment failed its checks");
	case LINK_SEGMENT_DROP: zones_segment_drop(&f->zones, m->a); return true;
	case LINK_MAP: return take_map(f, m, fd);
	case LINK_GO: return go(f);
	case LINK_PARKED: queues_parked(&f->queues, m->a, m->b); return true;
	case LINK_STOP: f->exit_code = LINK_EXIT_OK; return false;
	default: break;
	}
	if (fd >= 0)
		close(fd);
	log_write(M_XDP_LINK_ENDED, "the supervisor sent an unexpected message: %s", link_type_text(m->type));
	return fail(f, LINK_EXIT_ORPHANED, "an unexpected message");
}

bool orders_receive(struct fastpath *f)
{
	for (unsigned i = 0; i < RECEIVE_BATCH; i++) {
		struct link_msg m;
		int fd = -1;
		enum err err = link_receive(f->link, &m, &fd);

		if (err == ERR_AGAIN)
			return true;
		if (err) {
			f->exit_code = LINK_EXIT_ORPHANED;
			log_write(M_XDP_LINK_ENDED, "the link to the supervisor ended: %s", err_text(err));
			return false;
		}
		if (!obey(f, &m, fd))
			return false;
	}
	return true;
}
