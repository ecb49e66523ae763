/* SPDX-License-Identifier: Apache-2.0 */
/* settings.h: what the answer function must know of the configuration, as one flat block in shared memory: the seed of the
 * policy image (design.md section 3). Made by `skua run`, sealed, replaced whole on reload. Readers copy it, check it,
 * and use the copy. */
#pragma once
#include "base/base.h"

#define SETTINGS_MAGIC 0x544b5653u
#define SETTINGS_VERSION 1u
#define SETTINGS_TEXT_BYTES 128 /* CHAOS answers and NSID: at most 127 octets */
#define COOKIE_SECRETS 2	/* [0] makes new cookies; both verify (RFC 9018 section 5: roll-over) */

struct settings {
	uint32_t magic, version, size_bytes;
	uint16_t udp_payload_bytes; /* our limit for UDP answers and the size that our OPT announces; 512 to 4096, default 1232 */
	uint16_t flags;		    /* SETTINGS_F_ */
	uint32_t cookie_secret_count;		   /* 0 to COOKIE_SECRETS */
	uint8_t cookie_secret[COOKIE_SECRETS][16]; /* SipHash-2-4 keys, one set for an anycast group */
	char identity[SETTINGS_TEXT_BYTES];	   /* NSID, id.server, hostname.bind; NUL-terminated; empty: not answered */
	char version_text[SETTINGS_TEXT_BYTES];	   /* version.bind, version.server; empty: REFUSED */
	uint16_t tcp_idle_timeout_100ms;	   /* edns-tcp-keepalive (RFC 7828), units of 100 ms; 0: not sent */
	uint16_t reserved;
};
enum { SETTINGS_F_COOKIES = 1, SETTINGS_F_NSID = 2, SETTINGS_F_CHAOS = 4, SETTINGS_F_EDE = 8, SETTINGS_F_PREFETCH = 16 };

/* Sane defaults with no secrets, cookies off until a secret is there. */
void settings_defaults(struct settings *out);
/* Copies from `bytes` and checks everything. ERR_CORRUPT with *why. */
MUST_USE enum err settings_load(struct settings *out, const void *bytes, size_t size_bytes, const char **why);
