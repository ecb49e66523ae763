/* SPDX-License-Identifier: Apache-2.0 */
/* Budget: 90 instructions and two cache lines for a name of 20 octets. */
#include "table/log_ring_private.h"

void log_write_record(struct log_writer *w, const struct log_record *record)
{
	struct log_ring *r = w->ring_;
	uint64_t words[LOG_RECORD_MAX_SLOTS * (LOG_SLOT_WORDS - 1)];
	struct log_fixed f = { .wall_ns = record->wall_ns,
			       .latency_us = record->latency_us,
			       .qtype = record->qtype,
			       .qclass = record->qclass,
			       .response_bytes = record->response_bytes,
			       .flags = record->flags,
			       .rcode = record->rcode,
			       .group = record->group,
			       .port = record->port,
			       .ede = record->ede,
			       .family = record->family,
			       .transport = record->transport,
			       .path = record->path,
			       .name_bytes = record->name_bytes };
	uint32_t address_bytes = record->family == 4 ? 4 : 16;
	uint32_t bytes = LOG_FIXED_BYTES + address_bytes + record->name_bytes;
	uint32_t parts = (bytes + LOG_SLOT_DATA_BYTES - 1) / LOG_SLOT_DATA_BYTES, word = 0;
	uint8_t *data = (uint8_t *)words;

	memcpy(data, &f, sizeof(f));
	memcpy(data + LOG_FIXED_BYTES, record->address, address_bytes);
	memcpy(data + LOG_FIXED_BYTES + address_bytes, record->name, record->name_bytes);
	memset(data + bytes, 0, parts * LOG_SLOT_DATA_BYTES - bytes);
	atomic_store_explicit(&r->begun, w->next_ + parts, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	for (uint32_t part = 0; part < parts; part++) {
		_Atomic uint64_t *slot = r->slot[(w->next_ + part) % LOG_RING_SLOTS];

		atomic_store_explicit(&slot[0], LOG_HEAD(w->number_, part, parts), memory_order_relaxed);
		for (unsigned i = 1; i < LOG_SLOT_WORDS; i++)
			atomic_store_explicit(&slot[i], words[word++], memory_order_relaxed);
	}
	w->next_ += parts;
	w->number_++;
	atomic_store_explicit(&r->number, w->number_, memory_order_relaxed);
	atomic_store_explicit(&r->done, w->next_, memory_order_release);
}
