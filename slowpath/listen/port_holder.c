/* SPDX-License-Identifier: Apache-2.0 */
#include "slowpath/listen/port_holder.h"
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define TCP_STATE_LISTEN 0x0a

static bool is_zero(const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (p[i])
			return false;
	}
	return true;
}

/* The kernel prints addresses as 32-bit words of the machine's byte order. */
static bool parse_address(uint8_t *out, const char *hex, size_t words)
{
	for (size_t i = 0; i < words; i++) {
		unsigned v;
		if (sscanf(hex + 8 * i, "%8X", &v) != 1)
			return false;
		uint32_t word = v;
		memcpy(out + 4 * i, &word, 4);
	}
	return true;
}

/* The inode of a socket in /proc/net/{udp,tcp}[6] that conflicts; 0 if none. A v6 wildcard holds IPv4 too, maybe. */
static unsigned long find_inode(bool is_udp, uint8_t table_family, uint8_t family, const uint8_t *address, uint16_t port)
{
	char path[32], line[512], local[40];
	snprintf(path, sizeof path, "/proc/net/%s%s", is_udp ? "udp" : "tcp", table_family == 6 ? "6" : "");
	FILE *f = fopen(path, "re");
	if (!f)
		return 0;
	size_t bytes = table_family == 6 ? 16 : 4;
	unsigned long found = 0;
	while (!found && fgets(line, sizeof line, f)) {
		unsigned local_port, state;
		unsigned long inode;
		uint8_t have[16];
		if (sscanf(line, " %*u: %32[0-9A-F]:%X %*[0-9A-F]:%*X %X %*s %*s %*s %*u %*u %lu", local, &local_port, &state,
			   &inode) != 4)
			continue;
		if (local_port != port || (!is_udp && state != TCP_STATE_LISTEN) || strlen(local) != 2 * bytes ||
		    !parse_address(have, local, bytes / 4))
			continue;
		bool is_same = table_family == family && memcmp(have, address, bytes) == 0;
		if (is_same || is_zero(have, bytes) || is_zero(address, family == 6 ? 16 : 4))
			found = inode;
	}
	fclose(f);
	return found;
}

static bool process_has(const char *pid, unsigned long inode)
{
	char path[300], target[64], want[64];
	snprintf(path, sizeof path, "/proc/%s/fd", pid);
	snprintf(want, sizeof want, "socket:[%lu]", inode);
	DIR *d = opendir(path);
	if (!d)
		return false;
	bool found = false;
	struct dirent *e;
	for (unsigned n = 0; !found && n < PORT_HOLDER_MAX_FILES && (e = readdir(d)); n++) {
		ssize_t length = readlinkat(dirfd(d), e->d_name, target, sizeof target - 1);
		if (length <= 0)
			continue;
		target[length] = 0;
		found = strcmp(target, want) == 0;
	}
	closedir(d);
	return found;
}

static void process_text(char *out, size_t out_bytes, const char *pid)
{
	char path[300], name[64] = "?";
	snprintf(path, sizeof path, "/proc/%s/comm", pid);
	FILE *f = fopen(path, "re");
	if (f) {
		if (fgets(name, sizeof name, f))
			name[strcspn(name, "\n")] = 0;
		fclose(f);
	}
	snprintf(out, out_bytes, "%s (pid %s)", name, pid);
}

bool port_holder_find(char *out, size_t out_bytes, bool is_udp, uint8_t family, const uint8_t *address, uint16_t port)
{
	unsigned long inode = find_inode(is_udp, family, family, address, port);
	if (!inode && family == 4)
		inode = find_inode(is_udp, 6, family, address, port);
	if (!inode)
		return false;
	DIR *d = opendir("/proc");
	if (!d)
		return false;
	bool found = false;
	struct dirent *e;
	for (unsigned n = 0; !found && n < PORT_HOLDER_MAX_PROCESSES && (e = readdir(d)); n++) {
		if (!isdigit((unsigned char)e->d_name[0]) || !process_has(e->d_name, inode))
			continue;
		process_text(out, out_bytes, e->d_name);
		found = true;
	}
	closedir(d);
	return found;
}
