/* SPDX-License-Identifier: Apache-2.0 */
#include "xdp/program.h"
#include "xdp/program_private.h"

#include "base/log.h"

#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <stdlib.h>

static enum err map_failed(const struct xdp_program *p, const char *what)
{
	int saved = errno;

	log_write(M_XDP_MAP_FAILED, "%s: %s: %s", p->info.ifname, what, strerror(saved));
	return err_from_errno(saved);
}

/* --- slots, switch -------------------------------------------------------------------------------------------------- */

enum err xdp_program_clear_slot(struct xdp_program *p, uint32_t queue)
{
	if (bpf_map_delete_elem(p->map_fd[PROGRAM_MAP_XSKS], &queue) == 0)
		return ERR_OK;
	return errno == ENOENT || errno == EINVAL ? ERR_NOTFOUND : map_failed(p, "cannot clear an XSKMAP slot");
}

void xdp_program_clear_slots(struct xdp_program *p)
{
	for (uint32_t queue = 0; queue < STEER_MAX_QUEUES; queue++)
		if (xdp_program_clear_slot(p, queue) == ERR_IO)
			return;
}

/* A map that was just made holds zeroes. */
static enum err read_settings(const struct xdp_program *p, struct steer_settings *out)
{
	uint32_t zero = 0;

	if (bpf_map_lookup_elem(p->map_fd[PROGRAM_MAP_SETTINGS], &zero, out) == 0)
		return ERR_OK;
	return map_failed(p, "cannot read the settings of steering");
}

static enum err write_settings(const struct xdp_program *p, const struct steer_settings *settings)
{
	uint32_t zero = 0;

	if (bpf_map_update_elem(p->map_fd[PROGRAM_MAP_SETTINGS], &zero, settings, BPF_ANY) == 0)
		return ERR_OK;
	return map_failed(p, "cannot change the settings of steering");
}

enum err xdp_program_set_enabled(struct xdp_program *p, bool enabled)
{
	struct steer_settings settings;
	enum err err = read_settings(p, &settings);

	if (err)
		return err;
	settings.flags = enabled ? STEER_F_ON : 0;
	return write_settings(p, &settings);
}

/* --- addresses ------------------------------------------------------------------------------------------------------ */

/* The wanted keys of one family; struct steer_key4 or steer_key6 by key_bytes. */
struct key_set {
	int map_fd;
	size_t key_bytes, count;
	struct {
		uint8_t key[sizeof(struct steer_key6)];
		uint8_t value;
	} wanted[STEER_MAX_ADDRESSES];
};

static enum err key_set_add(struct key_set *set, const void *key, uint8_t value)
{
	for (size_t i = 0; i < set->count; i++)
		if (memcmp(set->wanted[i].key, key, set->key_bytes) == 0)
			return ERR_OK;
	if (set->count == ARRAY_LEN(set->wanted))
		return ERR_NOSPACE;
	memcpy(set->wanted[set->count].key, key, set->key_bytes);
	set->wanted[set->count++].value = value;
	return ERR_OK;
}

/* One address and its port's marker. */
static enum err add4(struct key_set *set, const void *address, uint16_t port)
{
	struct steer_key4 key = { .port = htons(port) };
	enum err err = key_set_add(set, &key, STEER_PORT_ONLY);

	memcpy(&key.address, address, sizeof(key.address));
	return err || !key.address ? err : key_set_add(set, &key, STEER_LISTED);
}

static enum err add6(struct key_set *set, const void *address, uint16_t port)
{
	static const uint8_t any[16];
	struct steer_key6 key = { .port = htons(port) };
	enum err err = key_set_add(set, &key, STEER_PORT_ONLY);

	memcpy(key.address, address, sizeof(key.address));
	return err || memcmp(address, any, sizeof(any)) == 0 ? err : key_set_add(set, &key, STEER_LISTED);
}

/* Every address of the namespace, loopback ones aside: those can't come in by a wire. */
static enum err add_all(struct key_set *set, int family, uint16_t port)
{
	struct ifaddrs *list;
	enum err err = ERR_OK;

	if (getifaddrs(&list) != 0)
		return err_from_errno(errno);
	for (const struct ifaddrs *i = list; i && !err; i = i->ifa_next) {
		if (!i->ifa_addr || i->ifa_addr->sa_family != family)
			continue;
		if (family == AF_INET) {
			const struct in_addr *a = &((const struct sockaddr_in *)i->ifa_addr)->sin_addr;

			if (ntohl(a->s_addr) >> 24 != IN_LOOPBACKNET)
				err = add4(set, a, port);
		} else {
			const struct in6_addr *a = &((const struct sockaddr_in6 *)i->ifa_addr)->sin6_addr;

			if (!IN6_IS_ADDR_LOOPBACK(a))
				err = add6(set, a, port);
		}
	}
	freeifaddrs(list);
	return err;
}

static enum err collect(struct key_set *set4, struct key_set *set6, const struct config_address *a)
{
	static const uint8_t any[16];
	bool is_any = memcmp(a->address, any, a->family == 4 ? 4 : 16) == 0;
	enum err err;

	if (a->family == 4) {
		err = add4(set4, a->address, a->port);
		return err || !is_any ? err : add_all(set4, AF_INET, a->port);
	}
	err = add6(set6, a->address, a->port);
	return err || !is_any ? err : add_all(set6, AF_INET6, a->port);
}

static bool is_wanted(const struct key_set *set, const void *key)
{
	for (size_t i = 0; i < set->count; i++)
		if (memcmp(set->wanted[i].key, key, set->key_bytes) == 0)
			return true;
	return false;
}

/* Adds what is missing, then removes what is too much: pairs that stay are there all the time. */
static enum err apply(const struct xdp_program *p, const struct key_set *set)
{
	uint8_t key[sizeof(struct steer_key6)], (*extra)[sizeof(struct steer_key6)];
	const void *previous = NULL;
	size_t extra_count = 0;
	enum err err = ERR_OK;

	/* Room first: a full map would refuse new pairs although old ones are about to go. */
	extra = calloc(STEER_MAX_ADDRESSES, sizeof(*extra));
	if (!extra)
		return ERR_NOMEM;
	while (extra_count < STEER_MAX_ADDRESSES && bpf_map_get_next_key(set->map_fd, previous, key) == 0) {
		if (!is_wanted(set, key))
			memcpy(extra[extra_count++], key, sizeof(key));
		previous = key;
	}
	for (size_t round = 0; round < 2 && !err; round++) {
		size_t i = 0;

		for (; i < set->count; i++)
			if (bpf_map_update_elem(set->map_fd, set->wanted[i].key, &set->wanted[i].value, BPF_ANY) != 0)
				break;
		if (i < set->count && (round > 0 || errno != E2BIG))
			err = map_failed(p, "cannot list an address");
		for (size_t j = 0; j < extra_count && !err; j++)
			bpf_map_delete_elem(set->map_fd, extra[j]);
		if (i == set->count)
			break;
	}
	free(extra);
	return err;
}

/* The first listed pairs of each family stand in the settings too. They are written before the maps: a pair that goes must not
 * be found there any longer, and one that comes may be found a moment earlier. */
static enum err set_first(const struct xdp_program *p, const struct key_set set[2])
{
	struct steer_settings settings;
	enum err err = read_settings(p, &settings);
	size_t n = 0;

	if (err)
		return err;
	memset(settings.first4, 0, sizeof(settings.first4));
	memset(settings.first6, 0, sizeof(settings.first6));
	for (size_t i = 0; i < set[0].count && n < STEER_FIRST4; i++)
		if (set[0].wanted[i].value == STEER_LISTED)
			memcpy(&settings.first4[n++], set[0].wanted[i].key, sizeof(settings.first4[0]));
	n = 0;
	for (size_t i = 0; i < set[1].count && n < STEER_FIRST6; i++)
		if (set[1].wanted[i].value == STEER_LISTED)
			memcpy(&settings.first6[n++], set[1].wanted[i].key, sizeof(settings.first6[0]));
	return write_settings(p, &settings);
}

enum err xdp_program_set_addresses(struct xdp_program *p, const struct config_address *addresses, size_t count)
{
	struct key_set *set = calloc(2, sizeof(*set));
	enum err err = ERR_OK;

	if (!set)
		return ERR_NOMEM;
	set[0].map_fd = p->map_fd[PROGRAM_MAP_ADDRESSES4];
	set[0].key_bytes = sizeof(struct steer_key4);
	set[1].map_fd = p->map_fd[PROGRAM_MAP_ADDRESSES6];
	set[1].key_bytes = sizeof(struct steer_key6);
	for (size_t i = 0; i < count && !err; i++)
		err = collect(&set[0], &set[1], &addresses[i]);
	if (err == ERR_NOSPACE)
		log_write(M_XDP_MAP_FAILED, "%s: more than %d listed pairs of address and port", p->info.ifname,
			  STEER_MAX_ADDRESSES);
	if (!err)
		err = set_first(p, set);
	for (size_t i = 0; i < 2 && !err; i++)
		err = apply(p, &set[i]);
	free(set);
	return err;
}

/* --- counters ------------------------------------------------------------------------------------------------------- */

enum err xdp_program_counters(const struct xdp_program *p, uint64_t out[STEER_COUNTER_COUNT_])
{
	int cpus = libbpf_num_possible_cpus();
	uint64_t *value, sum[STEER_COUNTER_COUNT_] = { 0 };
	enum err err = ERR_OK;

	if (cpus <= 0)
		return ERR_IO;
	value = calloc((size_t)cpus, sizeof(*value));
	if (!value)
		return ERR_NOMEM;
	for (uint32_t i = 0; i < STEER_COUNTER_COUNT_ && !err; i++) {
		if (bpf_map_lookup_elem(p->map_fd[PROGRAM_MAP_COUNTERS], &i, value) != 0)
			err = map_failed(p, "cannot read the counters");
		for (int cpu = 0; cpu < cpus; cpu++)
			sum[i] += value[cpu];
	}
	free(value);
	if (!err)
		memcpy(out, sum, sizeof(sum));
	return err;
}

static const struct {
	const char *name, *help;
} counter_texts[STEER_COUNTER_COUNT_] = {
#define X(e, name, help) [STEER_##e] = { name, help },
	STEER_COUNTERS(X)
#undef X
};

const char *xdp_program_counter_name(enum steer_counter c)
{
	return (unsigned)c < STEER_COUNTER_COUNT_ ? counter_texts[c].name : "unknown";
}

const char *xdp_program_counter_help(enum steer_counter c)
{
	return (unsigned)c < STEER_COUNTER_COUNT_ ? counter_texts[c].help : "";
}
