/* SPDX-License-Identifier: Apache-2.0 */
/* Any octets as a received frame: refused, or turned round into a reply that is right by the plainest check. The first octet of
 * the input says whether UDP checksums are verified, the next two how long the answer is; the frame follows. */
#include "xdp/frame.h"

#include "tests/unit/fastpath/xdp/packet.h"

#include <stdlib.h>

#define ROOM 1792u /* of a frame of 2048 octets */

/* What the checks saw, told apart from the frame's own octets. */
static void check_reply(const uint8_t *query, const struct frame *f, const uint8_t *reply, size_t reply_bytes, size_t dns_bytes)
{
	struct packet_options o = { .family = f->family,
				    .vlan = f->l3 == 18 ? 0 : -1,
				    .source_port = (uint16_t)packet_get16(query + f->dns - 8),
				    .destination_port = (uint16_t)packet_get16(query + f->dns - 6) };

	ASSERT(packet_check_reply(query, &o, reply, reply_bytes, dns_bytes) == NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
	struct answer_client client = { .port = 0 };
	struct frame f = { .dns = 0 };
	uint8_t *exact, reply[ROOM];
	size_t dns_bytes, capacity;

	if (bytes < 3 || bytes - 3 > ROOM)
		return 0;
	/* Memory of exactly the frame's size: an octet read behind it is seen. */
	exact = malloc(bytes > 3 ? bytes - 3 : 1);
	memcpy(exact, data + 3, bytes - 3);
	if (frame_parse(&f, &client, exact, bytes - 3, data[0] & 1) == FRAME_OK) {
		ASSERT(f.dns + f.dns_bytes <= bytes - 3 && f.dns_bytes >= FRAME_DNS_HEADER_BYTES);
		ASSERT(client.port != 0 && (client.family == 4 || client.family == 6));
		capacity = frame_capacity(&f, ROOM, 1500);
		dns_bytes = FRAME_DNS_HEADER_BYTES + packet_get16(data + 1) % (capacity - FRAME_DNS_HEADER_BYTES + 1);
		memset(reply, 0x5a, sizeof(reply));
		memcpy(reply, exact, bytes - 3);
		check_reply(exact, &f, reply, frame_reply(&f, reply, dns_bytes), dns_bytes);
	}
	free(exact);
	return 0;
}
