/* SPDX-License-Identifier: Apache-2.0 */
/* forward_private.h: what forward.c (asking), forward_table.c (zones and upstreams) and forward_status.c share. */
#pragma once
#include "slowpath/resolve/forward.h"
#include "slowpath/resolve/upstream.h"

#define FORWARD_SHARES_MAX 256u /* forwarders of one table, over its life */
#define FORWARD_UDP_PAYLOAD_BYTES 1232u

struct forward_zone {
	uint8_t name[NAME_MAX_BYTES], name_bytes, labels;
	uint64_t hash;
	bool dnssec;
	enum config_strategy strategy;
	unsigned count;
	uint32_t upstream[CONFIG_MAX_UPSTREAMS]; /* indexes into the table's */
};

struct forward_table {
	struct forward_zone *zone; /* owned, as all */
	size_t zone_count;
	uint32_t *slot, slot_mask; /* hash to zone index + 1 */
	unsigned max_labels;
	struct upstream *upstream;
	size_t upstream_count;
	struct exchange_tls *tls; /* NULL: nobody wants it */
	_Atomic unsigned share_count;
	struct upstream_share
		*_Atomic share[FORWARD_SHARES_MAX]; /* of each forwarder that there was: upstream_count each. Released by its
								     forwarder's thread, acquired by forward_table_status */
};

/* The closest enclosing zone, or NULL. */
const struct forward_zone *forward_zone_find(const struct forward_table *t, const uint8_t *lower, size_t name_bytes);
/* A forwarder's own share, kept until the table goes. ERR_NOSPACE: there were too many. */
MUST_USE enum err forward_share_add(struct forward_table *t, struct upstream_share **out);
