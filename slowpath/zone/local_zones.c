/* SPDX-License-Identifier: Apache-2.0 */
#include "slowpath/zone/local_zones.h"
#include "base/log.h"
#include "dns/master.h"
#include "dns/name.h"
#include "dns/rr_type.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#define HOSTS_TTL_S 60u
#define HOSTS_LINE_BYTES 4096
#define HOSTS_MAX_BYTES (256u << 20) /* of the text made from all files */

/* RFC 6303 section 3 wants this SOA, with a server that nobody asks. */
#define EMPTY "$TTL 10800\n@ SOA localhost. nobody.invalid. 1 3600 1200 604800 10800\n@ NS localhost.\n"

static const char empty_text[] = EMPTY;
static const char localhost_text[] = EMPTY "@ A 127.0.0.1\n@ AAAA ::1\n* A 127.0.0.1\n* AAAA ::1\n";
static const char loopback_text[] = EMPTY "1.0.0 PTR localhost.\n";
static const char loopback6_text[] = EMPTY "@ PTR localhost.\n";

static const struct {
	const char *path, *text;
} builtin[] = {
	{ LOCAL_ZONES_PREFIX "empty", empty_text },
	{ LOCAL_ZONES_PREFIX "localhost", localhost_text },
	{ LOCAL_ZONES_PREFIX "loopback", loopback_text },
	{ LOCAL_ZONES_PREFIX "loopback6", loopback6_text },
};

#define ZEROS_28 "0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0."
static const struct {
	const char *name;
	unsigned file; /* in builtin */
} special[] = {
	{ "localhost.", 1 },
	{ "127.in-addr.arpa.", 2 },
	{ "1.0.0.0." ZEROS_28 "ip6.arpa.", 3 },
	{ "0.0.0.0." ZEROS_28 "ip6.arpa.", 0 },
	/* RFC 6303 section 4 */
	{ "10.in-addr.arpa.", 0 },
	{ "168.192.in-addr.arpa.", 0 },
	{ "0.in-addr.arpa.", 0 },
	{ "254.169.in-addr.arpa.", 0 },
	{ "2.0.192.in-addr.arpa.", 0 },
	{ "100.51.198.in-addr.arpa.", 0 },
	{ "113.0.203.in-addr.arpa.", 0 },
	{ "255.255.255.255.in-addr.arpa.", 0 },
	{ "d.f.ip6.arpa.", 0 },
	{ "8.e.f.ip6.arpa.", 0 },
	{ "9.e.f.ip6.arpa.", 0 },
	{ "a.e.f.ip6.arpa.", 0 },
	{ "b.e.f.ip6.arpa.", 0 },
	{ "8.b.d.0.1.0.0.2.ip6.arpa.", 0 },
	/* special-use names */
	{ "test.", 0 },
	{ "invalid.", 0 },
	{ "local.", 0 },
	{ "onion.", 0 },
	{ "alt.", 0 },
	{ "home.arpa.", 0 },
	{ "resolver.arpa.", 0 },
};

static struct {
	char **hosts, **records; /* owned copies */
	size_t hosts_count, records_count;
} own;

/* --- which zones -------------------------------------------------------------------------------------------------------- */

static bool is_off(const struct config *c, const uint8_t *name)
{
	for (size_t i = 0; i < c->local.special_names_off_count; i++)
		if (name_is_at_or_below(name, c->local.special_names_off[i].name))
			return true;
	/* Who forwards a part of it wants to be asked there. */
	for (size_t i = 0; i < c->forward_count; i++)
		if (name_is_at_or_below(c->forward[i].zone.name, name))
			return true;
	return false;
}

static enum err add_one(struct zone_store *store, const struct config *c, const char *text, unsigned file)
{
	uint8_t name[NAME_MAX_BYTES];
	const char *why;

	ASSERT(name_from_text(name, text, strlen(text), NULL, &why));
	if (is_off(c, name))
		return ERR_OK;
	enum err err = zone_store_add(store, name, builtin[file].path);

	return err == ERR_EXISTS ? ERR_OK : err; /* a zone of the operator's */
}

static enum err add_special(struct zone_store *store, const struct config *c)
{
	char text[64];
	enum err err = ERR_OK;

	for (size_t i = 0; i < ARRAY_LEN(special) && err == ERR_OK; i++)
		err = add_one(store, c, special[i].name, special[i].file);
	for (unsigned i = 16; i < 32 && err == ERR_OK; i++) {
		snprintf(text, sizeof(text), "%u.172.in-addr.arpa.", i);
		err = add_one(store, c, text, 0);
	}
	for (unsigned i = 64; i < 128 && err == ERR_OK; i++) { /* RFC 7793 */
		snprintf(text, sizeof(text), "%u.100.in-addr.arpa.", i);
		err = add_one(store, c, text, 0);
	}
	return err;
}

static enum err copy_texts(char ***out, size_t *out_count, char *const *texts, size_t count)
{
	*out = calloc(MAX(count, 1u), sizeof(**out));
	if (!*out)
		return ERR_NOMEM;
	for (; *out_count < count; ++*out_count) /* what was copied is local_zones_fini's */
		if (!((*out)[*out_count] = strdup(texts[*out_count])))
			return ERR_NOMEM;
	return ERR_OK;
}

enum err local_zones_add(struct zone_store *store, const struct config *config)
{
	static const uint8_t root[1];
	enum err err = ERR_OK;

	if (config->forward_count == 0)
		return ERR_OK;
	if (config->local.special_names)
		err = add_special(store, config);
	if (err != ERR_OK || config->local.hosts_count + config->local.records_count == 0)
		return err;
	err = copy_texts(&own.hosts, &own.hosts_count, config->local.hosts, config->local.hosts_count);
	if (err == ERR_OK)
		err = copy_texts(&own.records, &own.records_count, config->local.records, config->local.records_count);
	if (err == ERR_OK)
		err = zone_store_add(store, root, LOCAL_ZONES_HOSTS);
	return err == ERR_EXISTS ? ERR_OK : err; /* who serves the root itself has nothing to add to it */
}

void local_zones_fini(void)
{
	for (size_t i = 0; i < own.hosts_count; i++)
		free(own.hosts[i]);
	for (size_t i = 0; i < own.records_count; i++)
		free(own.records[i]);
	free(own.hosts);
	free(own.records);
	memset(&own, 0, sizeof(own));
}

/* --- hosts files -------------------------------------------------------------------------------------------------------- */

static bool put_reverse(FILE *out, int family, const uint8_t *address, const char *name)
{
	if (family == AF_INET)
		return fprintf(out, "%u.%u.%u.%u.in-addr.arpa. PTR %s\n", address[3], address[2], address[1], address[0], name) >
		       0;
	for (int i = 15; i >= 0; i--)
		fprintf(out, "%x.%x.", address[i] & 15, address[i] >> 4);
	return fprintf(out, "ip6.arpa. PTR %s\n", name) > 0;
}

/* One line: an address, names. False: it is none. Empty ones and comments are fine. */
static bool put_line(FILE *out, char *line)
{
	static const uint8_t root[1];
	char *save, *word, text[NAME_TEXT_MAX_BYTES];
	uint8_t address[16], wire[NAME_MAX_BYTES];
	const char *why;
	bool is_first = true;

	line[strcspn(line, "#\r\n")] = '\0';
	word = strtok_r(line, " \t", &save);
	if (!word)
		return true;
	int family = strchr(word, ':') ? AF_INET6 : AF_INET;

	if (inet_pton(family, word, address) != 1)
		return false;
	while ((word = strtok_r(NULL, " \t", &save))) {
		if (!name_from_text(wire, word, strlen(word), root, &why))
			return false;
		name_to_text(text, wire);
		fprintf(out, "%s %s ", text, family == AF_INET ? "A" : "AAAA");
		char address_text[INET6_ADDRSTRLEN];

		fprintf(out, "%s\n", inet_ntop(family, address, address_text, sizeof(address_text)));
		if (is_first)
			put_reverse(out, family, address, text);
		is_first = false;
	}
	return !is_first;
}

/* A file that can't be read is missing, not the end of all the others. */
static void put_file(FILE *out, const char *path)
{
	char line[HOSTS_LINE_BYTES];
	FILE *in = fopen(path, "re");
	unsigned number = 0;

	if (!in) {
		log_write(M_ZONE_HOSTS, "%s: %m", path);
		return;
	}
	while (fgets(line, sizeof(line), in) && ftell(out) < (long)HOSTS_MAX_BYTES) {
		number++;
		if (!put_line(out, line))
			log_write(M_ZONE_HOSTS, "%s:%u: no address followed by host names; the line is left out", path, number);
	}
	if (ferror(in))
		log_write(M_ZONE_HOSTS, "%s:%u: %m", path, number);
	fclose(in);
}

static bool take_record(void *user, const struct master_record *record)
{
	(void)user, (void)record;
	return true;
}
static bool take_error(void *user, struct master_place place, const char *message)
{
	log_write(M_ZONE_HOSTS, "local.records: \"%s\": column %u: %s; the line is left out", (const char *)user, place.column,
		  message);
	return false;
}

/* A line of local.records, if it is one. */
static void put_record(FILE *out, const char *line)
{
	static const uint8_t root[1];
	char text[HOSTS_LINE_BYTES];
	int bytes = snprintf(text, sizeof(text), "%s\n", line);
	struct master_file file = { .name = LOCAL_ZONES_HOSTS, .text = text, .bytes = (size_t)bytes };
	struct master_options options = {
		.origin = root, .class_ = RR_CLASS_IN, .default_ttl_s = HOSTS_TTL_S, .has_default_ttl = true
	};
	struct master_callbacks callbacks = { .record = take_record, .error = take_error, .user = (void *)(uintptr_t)line };

	if (bytes <= 0 || (size_t)bytes >= sizeof(text) || *line == '$')
		log_write(M_ZONE_HOSTS, "local.records: \"%.64s\" is no record; it is left out", line);
	else if (master_read(&file, &options, &callbacks).records == 1)
		fputs(text, out);
}

static enum err hosts_text(char **text, size_t *bytes)
{
	FILE *out = open_memstream(text, bytes);

	if (!out)
		return ERR_NOMEM;
	fprintf(out,
		"$TTL %u\n@ 10800 SOA localhost. nobody.invalid. 1 3600 1200 604800 %u\n@ 10800 NS localhost.\n"
		"localhost. A 127.0.0.1\nlocalhost. AAAA ::1\n",
		HOSTS_TTL_S, HOSTS_TTL_S);
	for (size_t i = 0; i < own.hosts_count; i++)
		put_file(out, own.hosts[i]);
	for (size_t i = 0; i < own.records_count; i++)
		put_record(out, own.records[i]);
	if (fclose(out) == 0)
		return ERR_OK;
	free(*text);
	return ERR_NOMEM;
}

bool local_zones_has(const char *path) { return strncmp(path, LOCAL_ZONES_PREFIX, sizeof(LOCAL_ZONES_PREFIX) - 1) == 0; }

enum err local_zones_text(char **text, size_t *bytes, const char *path)
{
	if (strcmp(path, LOCAL_ZONES_HOSTS) == 0)
		return hosts_text(text, bytes);
	for (size_t i = 0; i < ARRAY_LEN(builtin); i++)
		if (strcmp(path, builtin[i].path) == 0) {
			*bytes = strlen(builtin[i].text);
			*text = strdup(builtin[i].text);
			return *text ? ERR_OK : ERR_NOMEM;
		}
	return ERR_NOTFOUND;
}
