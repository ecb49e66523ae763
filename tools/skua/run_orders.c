/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/log.h"
#include "tools/skua/run.h"

#include <stdio.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#define RECEIVE_BATCH 64 /* messages of one part before the others get their turn */
#define LAST_WORDS 256	 /* batches that are read of a part that has ended */

static struct run_part *other(struct run *r, const struct run_part *p)
{
	return &r->part[p->id == LINK_PART_FASTPATH ? LINK_PART_SLOWPATH : LINK_PART_FASTPATH];
}

/* How far a part is. Without a process, nobody there looks at older zones. */
static void report_live(struct run *r, const struct run_part *p)
{
	uint64_t generation = run_part_is_running(p) ? p->live_generation : r->publish.generation;
	struct link_msg message = { .type = LINK_LIVE, .a = p->id, .generation = generation };

	if (generation)
		run_part_send(&r->part[LINK_PART_SLOWPATH], &message, -1);
}

static void hand_over_listeners(struct run *r, struct run_part *p)
{
	for (size_t i = 0; i < r->sockets.count; i++) {
		const struct bind_socket *s = &r->sockets.sockets[i];
		struct link_msg message = { .type = LINK_LISTEN, .a = s->kind, .b = s->worker };
		snprintf(message.text, sizeof message.text, "%s", s->text);
		run_part_send(p, &message, s->fd);
	}
}

static void hand_over_interfaces(struct run *r, struct run_part *p)
{
	for (size_t i = 0; i < r->xdp.count; i++) {
		const struct run_interface *x = &r->xdp.interface[i];
		struct link_msg message = { .type = LINK_XSKMAP, .a = x->ifindex, .b = r->config->xdp.mode };
		if (!x->program)
			continue;
		snprintf(message.text, sizeof message.text, "%s", x->name);
		run_part_send(p, &message, xdp_program_xskmap_fd(x->program));
	}
}

static void hand_over_zones(struct run *r, struct run_part *p)
{
	for (size_t i = 0; i < r->publish.count; i++) {
		const struct run_segment *s = &r->publish.segment_[i];
		struct link_msg message = { .type = LINK_SEGMENT, .a = s->id, .b = s->verified >> p->id & LINK_VERIFIED };
		run_part_send(p, &message, s->fd);
	}
	if (r->publish.map_fd >= 0) {
		struct link_msg message = { .type = LINK_MAP,
					    .b = r->publish.map_verified >> p->id & LINK_VERIFIED,
					    .generation = r->publish.generation };
		run_part_send(p, &message, r->publish.map_fd);
	}
}

static void send_shared(void *user, const struct link_msg *message, int fd) { run_part_send(user, message, fd); }

static void hand_over_all(struct run *r, struct run_part *p)
{
	struct link_msg message = { .type = LINK_CONFIG };

	snprintf(message.text, sizeof message.text, "%s", r->config_path);
	run_part_send(p, &message, r->small_config_fd);
	run_part_send(p, &(struct link_msg){ .type = LINK_COUNTERS }, p->counters_fd);
	run_part_send(p, &(struct link_msg){ .type = LINK_SETTINGS }, r->settings_fd);
	run_part_send(p, &(struct link_msg){ .type = LINK_CONTROL }, p->control_fd);
	run_shared_hand_over(&r->shared, p->id, send_shared, p);
	if (p->id == LINK_PART_SLOWPATH) {
		run_part_send(p, &(struct link_msg){ .type = LINK_ZONES }, r->config_fd);
		hand_over_listeners(r, p);
	} else {
		hand_over_interfaces(r, p);
	}
	hand_over_zones(r, p);
	run_part_send(p, &(struct link_msg){ .type = LINK_GO }, -1);
	if (p->id == LINK_PART_SLOWPATH)
		report_live(r, other(r, p));
}

void run_orders_start(struct run *r, struct run_part *p, uint64_t now_ns)
{
	uint64_t wait_ns;

	if (run_part_is_other_program(p))
		run_publish_forget(&r->publish, p->id);
	enum err err = run_part_spawn(p, now_ns);
	if (err == ERR_OK) {
		hand_over_all(r, p);
		return;
	}
	if (err == ERR_NOTFOUND) {
		p->state = RUN_PART_FAILED;
		log_write(M_RUN_NO_PROGRAM, "%s can't be executed: %m", p->program);
		if (p->id == LINK_PART_SLOWPATH)
			run_orders_stop(r, VERB_FAILED, now_ns);
		return;
	}
	wait_ns = run_backoff_next(&p->backoff, 0, now_ns);
	log_write(M_RUN_SYSTEM, "%s can't be started: %m; again in %llu ms", p->name, (unsigned long long)wait_ns / 1000000);
	p->state = RUN_PART_WAITING;
	p->due_ns = now_ns + wait_ns;
}

/* Segments and maps come from the slowpath only. False: it broke the protocol. Takes fd. */
static bool receive_zones(struct run *r, struct run_part *p, const struct link_msg *m, int fd)
{
	struct run_part *fastpath = other(r, p);
	enum err err = ERR_DENIED;

	if (p->id != LINK_PART_SLOWPATH)
		snprintf(p->failure, sizeof p->failure, "sent a %s, which it has no say in", link_type_text(m->type));
	else if (m->type == LINK_SEGMENT)
		err = run_publish_segment(&r->publish, m->a, fd);
	else if (m->type == LINK_MAP)
		err = run_publish_map(&r->publish, m->generation, fd);
	else
		err = run_publish_drop(&r->publish, m->a);
	if (err != ERR_OK) {
		if (!*p->failure)
			snprintf(p->failure, sizeof p->failure, "sent a bad %s (id %u, generation %llu): %s",
				 link_type_text(m->type), m->a, (unsigned long long)m->generation, err_text(err));
		if (fd >= 0)
			close(fd);
		return false;
	}
	/* Only these fields: whether something is verified is not the slowpath's to say. */
	struct link_msg pass = { .type = m->type, .a = m->a, .generation = m->generation };
	run_part_send(fastpath, &pass, fd);
	if (m->type == LINK_MAP) {
		log_write(M_RUN_PUBLISHED, "zone set %llu: %u zones in %zu segments", (unsigned long long)m->generation,
			  r->publish.zone_count, r->publish.count);
		if (!run_part_is_running(fastpath))
			report_live(r, fastpath);
	}
	return true;
}

/* Takes fd. False: the protocol does not allow this message. */
static bool receive_one(struct run *r, struct run_part *p, const struct link_msg *m, int fd, uint64_t now_ns)
{
	switch (m->type) {
	case LINK_SEGMENT:
	case LINK_SEGMENT_DROP:
	case LINK_MAP: return receive_zones(r, p, m, fd);
	case LINK_READY:
		if (p->state == RUN_PART_STARTING) {
			p->state = RUN_PART_SERVING;
			p->ready_ns = now_ns;
			log_write(M_RUN_SERVING, "%s serves after %llu ms", p->name,
				  (unsigned long long)(now_ns - p->started_ns) / 1000000);
		}
		return true;
	case LINK_LIVE:
		if (m->generation > r->publish.generation) {
			snprintf(p->failure, sizeof p->failure, "says that a zone set is live that nobody published");
			return false;
		}
		p->live_generation = m->generation;
		run_publish_live(&r->publish, p->id, m->generation);
		report_live(r, p);
		return true;
	case LINK_FAILED: snprintf(p->failure, sizeof p->failure, "%s", m->text); return true;
	default:
		snprintf(p->failure, sizeof p->failure, "sent %s, an order that is ours", link_type_text(m->type));
		if (fd >= 0)
			close(fd);
		return false;
	}
}

void run_orders_receive(struct run *r, struct run_part *p, uint64_t now_ns)
{
	for (int i = 0; i < RECEIVE_BATCH && p->link >= 0; i++) {
		struct link_msg message;
		int fd = -1;
		enum err err = link_receive(p->link, &message, &fd);

		if (err == ERR_AGAIN)
			return;
		if (err == ERR_OK && receive_one(r, p, &message, fd, now_ns))
			continue;
		if (err == ERR_OK || err == ERR_MALFORMED) {
			log_write(M_RUN_LINK_BROKEN, "%s %s", p->name, *p->failure ? p->failure : "sent a malformed message");
			run_part_kill(p, false);
		}
		run_part_unlink(p, now_ns); /* it is ending; its pid_fd tells when, its exit code why */
	}
}

void run_orders_ended(struct run *r, struct run_part *p, uint64_t now_ns)
{
	uint64_t wait_ns;
	enum run_part_end end;

	for (int i = 0; i < LAST_WORDS && p->link >= 0; i++)
		run_orders_receive(r, p, now_ns);
	if (p->id == LINK_PART_FASTPATH)
		run_xdp_clear_slots(&r->xdp);
	if (!p->ready_ns)
		run_publish_forget(&r->publish, p->id);
	end = run_part_reap(p, now_ns, &wait_ns);
	if (p->id == LINK_PART_FASTPATH)
		report_live(r, p);
	if (r->is_stopping) {
		p->state = RUN_PART_OFF;
		return;
	}
	switch (end) {
	case RUN_PART_END_STOPPED: return;
	case RUN_PART_END_CONFIG:
		p->state = RUN_PART_FAILED;
		log_write(M_RUN_CONFIG_REFUSED, "%s: %s", p->name, *p->failure ? p->failure : "refuses the configuration");
		if (p->id == LINK_PART_SLOWPATH)
			run_orders_stop(r, VERB_USAGE, now_ns);
		return;
	case RUN_PART_END_RESTART:
		log_write(M_CHILD_EXITED, "%s %s; it ran for %llu ms, starts again in %llu ms", p->name, p->last_exit,
			  (unsigned long long)(now_ns - p->started_ns) / 1000000, (unsigned long long)wait_ns / 1000000);
		if (!wait_ns)
			run_orders_start(r, p, now_ns);
		return;
	}
}

void run_orders_stop(struct run *r, int exit_code, uint64_t now_ns)
{
	if (r->is_stopping) {
		for (int i = 0; i < LINK_PART_COUNT_; i++)
			run_part_kill(&r->part[i], false); /* asked twice: in a hurry */
		return;
	}
	r->is_stopping = true;
	r->exit_code = exit_code;
	sd_notify(0, "STOPPING=1");
	/* From here on the kernel path takes everything, and the slowpath answers it until it has stopped. */
	run_xdp_clear_slots(&r->xdp);
	for (int i = 0; i < LINK_PART_COUNT_; i++) {
		if (r->part[i].state == RUN_PART_WAITING)
			r->part[i].state = RUN_PART_OFF;
		run_part_stop(&r->part[i], now_ns);
	}
}
