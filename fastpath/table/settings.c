/* SPDX-License-Identifier: Apache-2.0 */
#include "table/settings.h"

#define PAYLOAD_MIN 512u
#define PAYLOAD_MAX 4096u
#define PAYLOAD_DEFAULT 1232u  /* DNS flag day 2020: fits the IPv6 minimum MTU */
#define KEEPALIVE_DEFAULT 100u /* ten seconds, config.h's tcp.idle_timeout_ms */
#define FLAGS_KNOWN (SETTINGS_F_COOKIES | SETTINGS_F_NSID | SETTINGS_F_CHAOS | SETTINGS_F_EDE | SETTINGS_F_PREFETCH)

void settings_defaults(struct settings *out)
{
	memset(out, 0, sizeof(*out));
	out->magic = SETTINGS_MAGIC;
	out->version = SETTINGS_VERSION;
	out->size_bytes = sizeof(*out);
	out->udp_payload_bytes = PAYLOAD_DEFAULT;
	out->flags = SETTINGS_F_NSID | SETTINGS_F_CHAOS | SETTINGS_F_EDE;
	out->tcp_idle_timeout_100ms = KEEPALIVE_DEFAULT;
}

static const char *first_fault(const struct settings *s)
{
	if (s->magic != SETTINGS_MAGIC)
		return "not a settings block";
	if (s->version != SETTINGS_VERSION)
		return "settings block of another layout version";
	if (s->size_bytes != sizeof(*s))
		return "settings block of another size";
	if (s->udp_payload_bytes < PAYLOAD_MIN || s->udp_payload_bytes > PAYLOAD_MAX)
		return "UDP payload size out of range";
	if (s->flags & ~FLAGS_KNOWN)
		return "unknown flags in the settings block";
	if (s->cookie_secret_count > COOKIE_SECRETS)
		return "too many cookie secrets";
	if ((s->flags & SETTINGS_F_COOKIES) && s->cookie_secret_count == 0)
		return "cookies are on without a secret";
	if (!memchr(s->identity, 0, sizeof(s->identity)))
		return "unterminated identity";
	if (!memchr(s->version_text, 0, sizeof(s->version_text)))
		return "unterminated version text";
	return NULL;
}

enum err settings_load(struct settings *out, const void *bytes, size_t size_bytes, const char **why)
{
	struct settings copy; /* the memory may change under us: copy, check the copy, use the copy */
	if (size_bytes < sizeof(copy)) {
		*why = "settings block is too short";
		return ERR_CORRUPT;
	}
	memcpy(&copy, bytes, sizeof(copy));
	const char *fault = first_fault(&copy);
	if (fault) {
		*why = fault;
		return ERR_CORRUPT;
	}
	*out = copy;
	return ERR_OK;
}
