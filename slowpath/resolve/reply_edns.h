/* SPDX-License-Identifier: Apache-2.0 */
/* reply_edns.h: the OPT record of a reply (RFC 6891): a pure function over bytes that a stranger sent. Skips the other records without
 * looking into them; reads no octet twice, so the work is bounded by the message. */
#pragma once
#include "base/base.h"

#define REPLY_COOKIE_MAX_BYTES 40u /* 8 of the client, up to 32 of the server (RFC 7873 section 4) */

struct reply_edns {
	bool is_malformed; /* the records can't be skipped, there are two OPT records, or an option exceeds its record */
	bool has_opt;
	bool is_do;
	uint8_t version;
	uint16_t rcode;	      /* the whole one: 12 bits with OPT, 4 without */
	int16_t ede;	      /* the first extended error's code (RFC 8914), or EDE_NONE */
	uint8_t cookie_bytes; /* of the first COOKIE option; 0: none, or one of a length that RFC 7873 does not allow */
	uint8_t cookie[REPLY_COOKIE_MAX_BYTES];
};
/* message: at least a header. */
void reply_edns_read(struct reply_edns *out, const uint8_t *message, size_t message_bytes);
