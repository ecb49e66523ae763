/* SPDX-License-Identifier: Apache-2.0 */
#include "xdp/program.h"
#include "xdp/program_private.h"

#include "base/log.h"
#include "steer.skel.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/magic.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define DEFAULT_BPFFS "/sys/fs/bpf"
#define PIN_LINK "link"
#define PIN_PROGRAM "program"

static const char *const map_names[PROGRAM_MAP_COUNT_] = {
	[PROGRAM_MAP_XSKS] = STEER_MAP_XSKS,
	[PROGRAM_MAP_ADDRESSES4] = STEER_MAP_ADDRESSES4,
	[PROGRAM_MAP_ADDRESSES6] = STEER_MAP_ADDRESSES6,
	[PROGRAM_MAP_SETTINGS] = STEER_MAP_SETTINGS,
	[PROGRAM_MAP_COUNTERS] = STEER_MAP_COUNTERS,
};

/* --- what libbpf says ----------------------------------------------------------------------------------------------- */

/* The kernel explains a refusal to attach only in a netlink message, which libbpf prints; this keeps the last such line. */
static _Thread_local char kernel_words[256];

static int keep_words(enum libbpf_print_level level, const char *format, va_list args)
{
	static const char mark[] = "Kernel error message: ";
	char line[512];
	const char *at;

	if (level == LIBBPF_DEBUG)
		return 0;
	vsnprintf(line, sizeof(line), format, args);
	line[strcspn(line, "\n")] = '\0';
	at = strstr(line, mark);
	if (at)
		snprintf(kernel_words, sizeof(kernel_words), "%s", at + sizeof(mark) - 1);
	else if (level == LIBBPF_WARN)
		log_write(M_XDP_LIBBPF, "%s", line);
	return 0;
}

const char *program_errno_hint(int errno_value)
{
	switch (errno_value) {
	case EPERM:
	case EACCES: return "needs CAP_BPF and CAP_NET_ADMIN: run as root or with these capabilities";
	case EOPNOTSUPP: return "the driver has no XDP: set xdp.mode to skb (slow), or leave the interface out of xdp.interfaces";
	case ERANGE: return "the MTU is too large for XDP: ip link set dev IF mtu 1500";
	case EINVAL:
		return "the driver refuses its present settings: lower the MTU to 1500, switch off LRO and header split "
		       "(ethtool -K IF lro off), use fewer combined queues (ethtool -L IF combined N)";
	case EBUSY:
	case EEXIST:
		return "another XDP program is attached: see `ip link show dev IF`, remove it with `ip link set dev IF xdp off` "
		       "or by "
		       "ending the program that owns it";
	case ENOMEM:
		return "too little memory for the driver's XDP queues: use smaller rings (ethtool -G IF) or fewer queues "
		       "(ethtool -L IF)";
	case ENODEV: return "the interface has gone";
	case ENOSYS: return "the kernel has no bpf system call, or a filter forbids it";
	case E2BIG: return "the kernel is older than this program: 6.1 or newer is needed";
	default: return "see `dmesg` for the driver's own message";
	}
}

/* --- paths ---------------------------------------------------------------------------------------------------------- */

static bool is_bpffs(const char *path)
{
	struct statfs fs;

	return statfs(path, &fs) == 0 && (unsigned long)fs.f_type == BPF_FS_MAGIC;
}

/* mkdir -p */
static enum err make_dirs(const char *path)
{
	char part[PATH_MAX];
	size_t bytes = strlen(path);

	if (bytes == 0 || bytes >= sizeof(part))
		return ERR_ARGUMENT;
	memcpy(part, path, bytes + 1);
	for (size_t i = 1; i <= bytes; i++) {
		if (part[i] != '/' && part[i] != '\0')
			continue;
		part[i] = '\0';
		if (mkdir(part, 0700) != 0 && errno != EEXIST)
			return err_from_errno(errno);
		part[i] = path[i];
	}
	return ERR_OK;
}

enum err xdp_program_pin_dir(const char *pin_dir)
{
	bool is_default = strncmp(pin_dir, DEFAULT_BPFFS "/", sizeof(DEFAULT_BPFFS)) == 0;
	const char *mount_at = is_default ? DEFAULT_BPFFS : pin_dir;
	enum err err = ERR_OK;

	if (!is_default)
		err = make_dirs(pin_dir);
	if (!err && !is_bpffs(mount_at)) {
		if (mount("bpf", mount_at, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=0700") != 0) {
			err = err_from_errno(errno);
			log_write(M_XDP_PIN_FAILED,
				  "cannot mount a bpffs at %s: %s; mount one yourself (mount -t bpf bpf %s) or set xdp.pin-dir",
				  mount_at, strerror(errno), mount_at);
			return err;
		}
		log_write(M_XDP_BPFFS_MOUNTED, "mounted a bpffs at %s", mount_at);
	}
	if (!err && is_default)
		err = make_dirs(pin_dir);
	if (err)
		log_write(M_XDP_PIN_FAILED, "cannot make the folder %s: %s", pin_dir, err_text(err));
	return err;
}

static const char *pin_path(const struct xdp_program *p, const char *name, char out[PATH_MAX])
{
	snprintf(out, PATH_MAX, "%s/%s", p->dir, name);
	return out;
}

static int get_pinned(const struct xdp_program *p, const char *name)
{
	char path[PATH_MAX];

	return bpf_obj_get(pin_path(p, name, path));
}

static void unpin(const struct xdp_program *p, const char *name)
{
	char path[PATH_MAX];

	unlink(pin_path(p, name, path));
}

/* Replaces what is pinned under the name. */
static enum err pin(const struct xdp_program *p, const char *name, int fd)
{
	char path[PATH_MAX];
	int saved;

	unpin(p, name);
	if (bpf_obj_pin(fd, pin_path(p, name, path)) == 0)
		return ERR_OK;
	saved = errno;
	log_write(M_XDP_PIN_FAILED, "cannot pin %s: %s", path, strerror(saved));
	return err_from_errno(saved);
}

/* --- the handle ----------------------------------------------------------------------------------------------------- */

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void xdp_program_close(struct xdp_program *take)
{
	if (!take)
		return;
	close_fd(&take->link_fd);
	close_fd(&take->program_fd);
	for (size_t i = 0; i < PROGRAM_MAP_COUNT_; i++)
		close_fd(&take->map_fd[i]);
	free(take);
}

static enum err handle_create(struct xdp_program **out, const char *ifname, const char *pin_dir)
{
	struct xdp_program *p;
	unsigned ifindex = if_nametoindex(ifname);

	if (!ifindex)
		return ERR_NOTFOUND;
	p = calloc(1, sizeof(*p));
	if (!p)
		return ERR_NOMEM;
	p->link_fd = p->program_fd = -1;
	for (size_t i = 0; i < PROGRAM_MAP_COUNT_; i++)
		p->map_fd[i] = -1;
	p->info.ifindex = ifindex;
	snprintf(p->info.ifname, sizeof(p->info.ifname), "%s", ifname);
	if (snprintf(p->dir, sizeof(p->dir), "%s/%s", pin_dir, ifname) >= (int)sizeof(p->dir)) {
		free(p);
		return ERR_ARGUMENT;
	}
	libbpf_set_print(keep_words);
	*out = p;
	return ERR_OK;
}

/* Fills in link and program if what is pinned is attached to this interface, not to a namesake or a dead one. */
static bool get_attached(struct xdp_program *p)
{
	struct bpf_link_info link = { 0 };
	struct bpf_prog_info program = { 0 };
	uint32_t link_bytes = sizeof(link), program_bytes = sizeof(program);
	LIBBPF_OPTS(bpf_xdp_query_opts, now);

	p->link_fd = get_pinned(p, PIN_LINK);
	p->program_fd = get_pinned(p, PIN_PROGRAM);
	if (p->link_fd < 0 || p->program_fd < 0)
		goto none;
	if (bpf_obj_get_info_by_fd(p->link_fd, &link, &link_bytes) || link.type != BPF_LINK_TYPE_XDP ||
	    link.xdp.ifindex != p->info.ifindex)
		goto none;
	if (bpf_obj_get_info_by_fd(p->program_fd, &program, &program_bytes) || program.id != link.prog_id)
		goto none;
	if (bpf_xdp_query((int)p->info.ifindex, 0, &now))
		goto none;
	if (now.drv_prog_id != link.prog_id && now.skb_prog_id != link.prog_id)
		goto none;
	p->info.is_skb = now.skb_prog_id == link.prog_id;
	p->info.program_id = link.prog_id;
	return true;
none:
	close_fd(&p->link_fd);
	close_fd(&p->program_fd);
	return false;
}

static bool get_maps(struct xdp_program *p)
{
	bool all = true;

	for (size_t i = 0; i < PROGRAM_MAP_COUNT_; i++) {
		p->map_fd[i] = get_pinned(p, map_names[i]);
		all = all && p->map_fd[i] >= 0;
	}
	return all;
}

static bool same_layout(int fd, const struct bpf_map *map)
{
	struct bpf_map_info info = { 0 };
	uint32_t bytes = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &bytes) == 0 && info.type == bpf_map__type(map) &&
	       info.key_size == bpf_map__key_size(map) && info.value_size == bpf_map__value_size(map) &&
	       info.max_entries == bpf_map__max_entries(map);
}

/* Loads the program, with the handle's maps where they fit, and gives the handle those that were made. *same_maps: none was
 * made. */
static enum err load(struct xdp_program *p, struct steer **out, bool *same_maps)
{
	struct steer *s = steer__open();
	struct bpf_map *map[PROGRAM_MAP_COUNT_];
	int saved;

	if (!s)
		goto failed;
	*same_maps = true;
	for (size_t i = 0; i < PROGRAM_MAP_COUNT_; i++) {
		map[i] = bpf_object__find_map_by_name(s->obj, map_names[i]);
		ASSERT(map[i]);
		if (p->map_fd[i] >= 0 && !same_layout(p->map_fd[i], map[i]))
			close_fd(&p->map_fd[i]);
		if (p->map_fd[i] < 0)
			*same_maps = false;
		else if (bpf_map__reuse_fd(map[i], p->map_fd[i]))
			goto failed;
	}
	if (steer__load(s))
		goto failed;
	for (size_t i = 0; i < PROGRAM_MAP_COUNT_; i++) {
		if (p->map_fd[i] < 0)
			p->map_fd[i] = fcntl(bpf_map__fd(map[i]), F_DUPFD_CLOEXEC, 3);
		if (p->map_fd[i] < 0)
			goto failed;
	}
	*out = s;
	return ERR_OK;
failed:
	saved = errno;
	log_write(M_XDP_LOAD_FAILED, "%s: cannot load the XDP program: %s; %s", p->info.ifname, strerror(saved),
		  program_errno_hint(saved));
	if (s)
		steer__destroy(s);
	return err_from_errno(saved);
}

/* --- attaching ------------------------------------------------------------------------------------------------------ */

/* bpf_link_create() gives an errno only; the older netlink call, made again, also gives the driver's sentence. */
static void ask_why(const struct xdp_program *p, int program_fd, uint32_t mode)
{
	kernel_words[0] = '\0';
	if (bpf_xdp_attach((int)p->info.ifindex, program_fd, mode | XDP_FLAGS_UPDATE_IF_NOEXIST, NULL) == 0)
		bpf_xdp_detach((int)p->info.ifindex, mode, NULL);
}

static enum err attach(struct xdp_program *p, int program_fd, bool skb)
{
	uint32_t mode = skb ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE;
	LIBBPF_OPTS(bpf_link_create_opts, opts, .flags = mode);
	int saved;

	p->link_fd = bpf_link_create(program_fd, (int)p->info.ifindex, BPF_XDP, &opts);
	if (p->link_fd >= 0) {
		p->info.is_skb = skb;
		return ERR_OK;
	}
	saved = errno;
	ask_why(p, program_fd, mode);
	log_write(M_XDP_ATTACH_FAILED, "%s: cannot attach the XDP program in %s mode: %s%s%s%s; %s", p->info.ifname,
		  skb ? "skb" : "driver", strerror(saved), kernel_words[0] ? " (the kernel says: " : "", kernel_words,
		  kernel_words[0] ? ")" : "", program_errno_hint(saved));
	return saved == EEXIST ? ERR_BUSY : err_from_errno(saved);
}

static enum err pin_maps(const struct xdp_program *p)
{
	enum err err = ERR_OK;

	for (size_t i = 0; i < PROGRAM_MAP_COUNT_ && !err; i++)
		err = pin(p, map_names[i], p->map_fd[i]);
	return err;
}

/* The handle has the maps, no link. Pins last: what is pinned is complete. */
static enum err attach_new(struct xdp_program *p, int program_fd, bool skb)
{
	enum err err;

	err = make_dirs(p->dir);
	if (!err)
		err = attach(p, program_fd, skb);
	if (!err)
		err = pin_maps(p);
	if (!err)
		err = pin(p, PIN_PROGRAM, program_fd);
	if (!err)
		err = pin(p, PIN_LINK, p->link_fd);
	p->info.origin = XDP_PROGRAM_ATTACHED;
	return err;
}

static bool same_program(int a, int b)
{
	struct bpf_prog_info ia = { 0 }, ib = { 0 };
	uint32_t bytes_a = sizeof(ia), bytes_b = sizeof(ib);

	return bpf_obj_get_info_by_fd(a, &ia, &bytes_a) == 0 && bpf_obj_get_info_by_fd(b, &ib, &bytes_b) == 0 &&
	       memcmp(ia.tag, ib.tag, sizeof(ia.tag)) == 0;
}

/* The handle has link, program and maps. */
static enum err update(struct xdp_program *p, int program_fd, bool same_maps)
{
	enum err err;

	if (same_maps && same_program(p->program_fd, program_fd)) {
		p->info.origin = XDP_PROGRAM_ADOPTED;
		return ERR_OK;
	}
	if (bpf_link_update(p->link_fd, program_fd, NULL)) {
		err = err_from_errno(errno);
		log_write(M_XDP_ATTACH_FAILED, "%s: cannot replace the XDP program: %s; the old one stays", p->info.ifname,
			  strerror(errno));
		return err;
	}
	p->info.origin = XDP_PROGRAM_UPDATED;
	err = pin(p, PIN_PROGRAM, program_fd);
	return err || same_maps ? err : pin_maps(p);
}

static void log_opened(const struct xdp_program *p)
{
	const struct xdp_program_info *i = &p->info;
	const char *mode = i->is_skb ? "skb" : "driver";

	switch (i->origin) {
	case XDP_PROGRAM_ATTACHED:
		log_write(M_XDP_ATTACHED, "%s: XDP program %u attached in %s mode", i->ifname, i->program_id, mode);
		break;
	case XDP_PROGRAM_ADOPTED:
		log_write(M_XDP_ADOPTED, "%s: XDP program %u found pinned in %s and kept, in %s mode", i->ifname, i->program_id,
			  p->dir, mode);
		break;
	case XDP_PROGRAM_UPDATED:
		log_write(M_XDP_UPDATED, "%s: XDP program replaced by another version, now %u, in %s mode", i->ifname,
			  i->program_id, mode);
		break;
	}
	if (i->is_skb)
		log_write(M_XDP_SKB_MODE, "%s: generic (skb) mode copies every packet twice and gains little over sockets",
			  i->ifname);
}

enum err xdp_program_open(struct xdp_program **out, const char *ifname, const char *pin_dir, enum config_xdp_mode mode)
{
	struct xdp_program *p = NULL;
	struct steer *s = NULL;
	struct bpf_prog_info info = { 0 };
	uint32_t bytes = sizeof(info);
	bool same_maps = false, is_attached, skb = mode == XDP_MODE_SKB;
	int fd;
	enum err err;

	err = handle_create(&p, ifname, pin_dir);
	if (err) {
		log_write(M_XDP_ATTACH_FAILED, "%s: %s", ifname, err == ERR_NOTFOUND ? "no such interface" : err_text(err));
		return err;
	}
	err = xdp_program_pin_dir(pin_dir);
	if (err)
		goto failed;
	is_attached = get_attached(p);
	get_maps(p);
	if (is_attached && p->info.is_skb != skb) {
		/* A link can't change its mode. */
		bpf_link_detach(p->link_fd);
		close_fd(&p->link_fd);
		close_fd(&p->program_fd);
		is_attached = false;
	}
	err = load(p, &s, &same_maps);
	if (err)
		goto failed;
	fd = bpf_program__fd(s->progs.steer);
	err = is_attached ? update(p, fd, same_maps) : attach_new(p, fd, skb);
	if (err)
		goto failed;
	if (p->info.origin != XDP_PROGRAM_ADOPTED) {
		close_fd(&p->program_fd);
		p->program_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
		if (bpf_obj_get_info_by_fd(fd, &info, &bytes) == 0)
			p->info.program_id = info.id;
	}
	err = xdp_program_set_enabled(p, true);
	if (err)
		goto failed;
	log_opened(p);
	steer__destroy(s);
	*out = p;
	return ERR_OK;
failed:
	if (s)
		steer__destroy(s);
	xdp_program_close(p);
	return err;
}

enum err xdp_program_adopt(struct xdp_program **out, const char *ifname, const char *pin_dir)
{
	struct xdp_program *p;
	enum err err = handle_create(&p, ifname, pin_dir);

	if (err)
		return err;
	if (!get_attached(p) || !get_maps(p)) {
		xdp_program_close(p);
		return ERR_NOTFOUND;
	}
	p->info.origin = XDP_PROGRAM_ADOPTED;
	*out = p;
	return ERR_OK;
}

enum err xdp_program_detach(struct xdp_program *take)
{
	enum err err = ERR_OK;

	if (take->link_fd >= 0 && bpf_link_detach(take->link_fd) != 0) {
		err = err_from_errno(errno);
		log_write(M_XDP_ATTACH_FAILED, "%s: cannot detach the XDP program: %s", take->info.ifname, strerror(errno));
	} else {
		log_write(M_XDP_DETACHED, "%s: XDP program detached", take->info.ifname);
	}
	if (!err) {
		unpin(take, PIN_LINK);
		unpin(take, PIN_PROGRAM);
		for (size_t i = 0; i < PROGRAM_MAP_COUNT_; i++)
			unpin(take, map_names[i]);
		rmdir(take->dir);
	}
	xdp_program_close(take);
	return err;
}

void xdp_program_info(const struct xdp_program *p, struct xdp_program_info *out) { *out = p->info; }

int xdp_program_xskmap_fd(const struct xdp_program *p) { return p->map_fd[PROGRAM_MAP_XSKS]; }

const char *xdp_program_origin_text(enum xdp_program_origin o)
{
	static const char *const texts[] = { "attached", "adopted", "updated" };

	return (unsigned)o < ARRAY_LEN(texts) ? texts[o] : "unknown";
}
