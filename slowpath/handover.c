/* SPDX-License-Identifier: Apache-2.0 */
#include "slowpath/slowpath.h"
#include "table/shm.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define CONFIG_TEXT_MAX_BYTES (1ull << 30)

static void init(struct handover *h)
{
	*h = (struct handover){ .control_fd = -1, .zones_fd = -1, .policy_fd = -1, .kept = { .map_fd = -1 } };
	shared_init(&h->shared);
}

enum err handover_settings(struct settings *out, int fd, const char **why)
{
	const void *map;
	size_t bytes;
	*why = "the settings are not sealed";
	if (!shm_is_sealed(fd, false))
		return ERR_DENIED;
	*why = "the settings can't be mapped";
	enum err err = shm_map(&map, &bytes, fd);
	if (err != ERR_OK)
		return err;
	err = settings_load(out, map, bytes, why);
	shm_unmap(map, bytes);
	return err;
}

static enum err take_config(struct handover *h, const struct link_msg *m, int fd)
{
	struct stat st;
	if (h->config_text || fstat(fd, &st) < 0 || st.st_size < 0 || (uint64_t)st.st_size > CONFIG_TEXT_MAX_BYTES)
		return ERR_MALFORMED;
	size_t bytes = (size_t)st.st_size;
	char *text = malloc(bytes + 1);
	if (!text)
		return ERR_NOMEM;
	for (size_t at = 0; at < bytes;) {
		ssize_t got = pread(fd, text + at, bytes - at, (off_t)at);
		if (got <= 0) {
			free(text);
			return ERR_MALFORMED;
		}
		at += (size_t)got;
	}
	text[bytes] = 0;
	h->config_text = text;
	h->config_bytes = bytes;
	memcpy(h->config_path, m->text, sizeof(h->config_path));
	return ERR_OK;
}

/* Takes fd on success. */
static enum err take_socket(struct handover *h, const struct link_msg *m, int fd)
{
	if (m->a > LINK_LISTEN_TCP || m->b >= LISTEN_MAX_WORKERS || h->socket_count == SLOWPATH_MAX_SOCKETS)
		return ERR_MALFORMED;
	struct listen_socket *grown = realloc(h->socket, (h->socket_count + 1) * sizeof(*grown));
	if (!grown)
		return ERR_NOMEM;
	h->socket = grown;
	h->socket[h->socket_count++] = (struct listen_socket){ .fd = fd, .kind = (enum link_listen)m->a, .worker = m->b };
	return ERR_OK;
}

/* Takes fd on success. */
static enum err take_segment(struct handover *h, const struct link_msg *m, int fd)
{
	struct publish_kept *k = &h->kept;
	if (k->segment_count == ZONE_SET_MAX_SEGMENTS)
		return ERR_MALFORMED;
	struct publish_kept_segment *grown = realloc(k->segment, (k->segment_count + 1) * sizeof(*grown));
	if (!grown)
		return ERR_NOMEM;
	k->segment = grown;
	k->segment[k->segment_count++] =
		(struct publish_kept_segment){ .id = m->a, .fd = fd, .is_verified = m->b == LINK_VERIFIED };
	return ERR_OK;
}

/* One order. *fd becomes -1 if it was taken. */
static enum err take(struct handover *h, const struct link_msg *m, int *fd, const char **why)
{
	enum err err;
	switch (m->type) {
	case LINK_CONFIG: return take_config(h, m, *fd);
	case LINK_COUNTERS: return h->counters ? ERR_MALFORMED : counters_attach(&h->counters, *fd, true);
	case LINK_SETTINGS: return handover_settings(&h->settings, *fd, why);
	case LINK_CONTROL:
		if (h->control_fd >= 0)
			return ERR_MALFORMED;
		h->control_fd = *fd;
		*fd = -1;
		return ERR_OK;
	case LINK_ZONES:
		if (h->zones_fd >= 0 || !shm_is_sealed(*fd, true))
			return ERR_MALFORMED;
		h->zones_fd = *fd;
		err = ERR_OK;
		break;
	case LINK_POLICY:
		if (h->policy_fd >= 0)
			close(h->policy_fd); /* the last one counts */
		h->policy_fd = *fd;
		err = ERR_OK;
		break;
	case LINK_LISTEN: err = take_socket(h, m, *fd); break;
	case LINK_SEGMENT: err = take_segment(h, m, *fd); break;
	case LINK_MAP:
		if (h->kept.map_fd >= 0)
			return ERR_MALFORMED;
		h->kept.map_fd = *fd;
		h->kept.generation = m->generation;
		h->kept.is_map_verified = m->b == LINK_VERIFIED;
		err = ERR_OK;
		break;
	default: err = shared_take(&h->shared, m, fd); return err == ERR_NOTFOUND ? ERR_MALFORMED : err;
	}
	if (err == ERR_OK)
		*fd = -1;
	return err;
}

enum handover_result handover_receive(struct handover *h, int link, const char **why)
{
	init(h);
	for (;;) {
		struct link_msg m;
		int fd = -1;
		enum err err = link_receive(link, &m, &fd);
		if (err != ERR_OK) {
			*why = err_text(err);
			return HANDOVER_BROKEN;
		}
		if (m.type == LINK_STOP)
			return HANDOVER_STOP;
		if (m.type == LINK_GO)
			break;
		*why = link_type_text(m.type);
		err = take(h, &m, &fd, why);
		if (fd >= 0)
			close(fd);
		if (err != ERR_OK)
			return HANDOVER_BROKEN;
	}
	*why = "GO came before everything else";
	return h->config_text && h->zones_fd >= 0 && h->counters && h->settings.magic && h->control_fd >= 0 ? HANDOVER_GO
													    : HANDOVER_BROKEN;
}

void handover_drop_kept(struct handover *h)
{
	for (size_t i = 0; i < h->kept.segment_count; i++)
		close(h->kept.segment[i].fd);
	if (h->kept.map_fd >= 0)
		close(h->kept.map_fd);
	free(h->kept.segment);
	h->kept = (struct publish_kept){ .map_fd = -1 };
}

void handover_fini(struct handover *h)
{
	handover_drop_kept(h);
	for (size_t i = 0; i < h->socket_count; i++)
		close(h->socket[i].fd);
	free(h->socket);
	if (h->control_fd >= 0)
		close(h->control_fd);
	if (h->zones_fd >= 0)
		close(h->zones_fd);
	if (h->counters)
		counters_detach(h->counters);
	if (h->policy_fd >= 0)
		close(h->policy_fd);
	shared_fini(&h->shared);
	free(h->config_text);
	init(h);
}
