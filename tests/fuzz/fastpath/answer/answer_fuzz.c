/* SPDX-License-Identifier: Apache-2.0 */
/* Any message into the answer function, over zones with every kind of node. The response must parse to its last octet and stay within
 * its limits. Input: one octet of choices (bit 0 TCP, bit 1 IPv6, bits 2-3 capacity), then the message. */
#include <stdlib.h>

#include "dns/message.h"
#include "tests/unit/lib/zones.h"

#define RRSIG(type) "RRSIG " type " 13 2 300 20300101000000 20200101000000 1 example. AAAA\n"

/* clang-format off */
static const char nsec_zone[] =
	"@ SOA ns host 1 2 3 4 5\n@ " RRSIG("SOA") "@ NS ns\n@ " RRSIG("NS") "@ NSEC a NS SOA RRSIG NSEC\n@ " RRSIG("NSEC")
	"a A 192.0.2.1\na " RRSIG("A") "a NSEC *.w A RRSIG NSEC\na " RRSIG("NSEC") "*.w CNAME a\n*.w " RRSIG("CNAME")
	"*.w NSEC b.ent CNAME RRSIG NSEC\n*.w " RRSIG("NSEC") "b.ent MX 1 a\nb.ent NSEC d MX RRSIG NSEC\nd NS ns.d\nns.d AAAA 2001:db8::1\n"
	"d NSEC dn NS RRSIG NSEC\ndn DNAME c.other.\ndn NSEC @ DNAME RRSIG NSEC\ns NS ns\ns DS 1 13 2 "
	"0000000000000000000000000000000000000000000000000000000000000000\nloop CNAME loop2\nloop2 CNAME loop\nhttps HTTPS 1 . alpn=h2\n";
static const char nsec3_zone[] =
	"@ SOA ns host 1 2 3 4 5\n@ NS ns\n@ NSEC3PARAM 1 0 1 ab\n*.c TXT \"wild\"\nx.y.c SRV 1 2 3 ns\nns A 192.0.2.1\nd NS ns.d\nns.d A 192.0.2.2\n"
	"00000000000000000000000000000000 NSEC3 1 1 1 ab 80000000000000000000000000000000 A RRSIG\n"
	"80000000000000000000000000000000 NSEC3 1 1 1 ab 00000000000000000000000000000000 A RRSIG\n";
/* clang-format on */

static struct snapshot *snapshot;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	const struct zones_text zones[] = { { "example.", nsec_zone }, { "other.", nsec3_zone }, { "bad.", NULL } };

	(void)argc;
	(void)argv;
	snapshot = zones_snapshot(zones, ARRAY_LEN(zones));
	snapshot->settings.flags |= SETTINGS_F_COOKIES | SETTINGS_F_NSID | SETTINGS_F_CHAOS | SETTINGS_F_EDE;
	snapshot->settings.cookie_secret_count = 2;
	memcpy(snapshot->settings.identity, "fuzz", 5);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const uint16_t capacities[] = { 512, 1232, 1472, 4096 };
	struct answer_query query;

	if (size < 1)
		return 0;
	size_t capacity = capacities[data[0] >> 2 & 3];
	uint8_t *msg = malloc(capacity); /* exact, so that the sanitizer sees one octet too many */

	if (!msg || size - 1 > capacity) {
		free(msg);
		return 0;
	}
	memcpy(msg, data + 1, size - 1);
	if (zones_answer_raw(snapshot, msg, size - 1, capacity, data[0] & 1, &query) == ANSWER_SEND) {
		if (query.response_bytes > capacity || dns_id(msg) != load_be16(data + 1))
			abort();
		free(zones_message_text(msg, query.response_bytes));
	}
	free(msg);
	return 0;
}
