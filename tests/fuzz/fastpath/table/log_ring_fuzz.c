/* SPDX-License-Identifier: Apache-2.0 */
/* A log ring that holds anything: a reader ends, stays inside, and what it gives out keeps what log_ring.h promises.
 *
 * Input      steps of eight octets: what to do, where, a value */
#include "table/log_ring_private.h"

#include "table/shm.h"

#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STEP_BYTES 8u
#define READ_MAX (3 * LOG_RING_SLOTS) /* records: more than a reader can find without a writer */

static void read_all(struct log_reader *r)
{
	struct log_record record;
	unsigned n = 0;

	while (log_reader_next(r, &record)) {
		ASSERT((record.family == 4 || record.family == 6) && record.path < LOG_PATH_COUNT_ &&
		       record.name_bytes <= NAME_MAX_BYTES);
		ASSERT(++n <= READ_MAX);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct log_ring_map *map;
	static struct log_ring *ring;
	struct log_writer writer;
	struct log_reader reader;
	struct log_record record = { .family = 4 };

	if (!map) {
		int fd;
		ASSERT(log_ring_create(&fd, 1, "fuzz") == ERR_OK && log_ring_attach(&map, fd, true) == ERR_OK);
		close(fd);
		log_writer_init(&writer, map, 0);
		ring = writer.ring_;
	}
	memset(ring, 0, sizeof *ring);
	log_writer_init(&writer, map, 0);
	log_reader_init(&reader, map, 0, false);
	for (; size >= STEP_BYTES; data += STEP_BYTES, size -= STEP_BYTES) {
		uint32_t value;
		memcpy(&value, data + 4, 4);
		unsigned at = (unsigned)(data[1] << 8 | data[2]) % LOG_RING_SLOTS;
		switch (data[0] % 8) {
		case 0: ring->begun = value; break;
		case 1: ring->done = value; break;
		case 2: ring->done = ring->begun = ring->done + value % (LOG_RING_SLOTS + 1); break;
		case 3: ring->slot[at][data[3] % LOG_SLOT_WORDS] = (uint64_t)value << 32 | value; break;
		case 4: ring->slot[at][0] = LOG_HEAD(value, data[3] & 15, data[3] >> 4); break;
		case 5:
			for (unsigned i = 0; i < data[3]; i++) {
				record.name_bytes = (uint8_t)(value + i);
				record.family = value & 256 ? 4 : 6;
				log_write_record(&writer, &record);
			}
			break;
		case 6: log_reader_init(&reader, map, 0, value & 1); break;
		default: read_all(&reader); break;
		}
	}
	read_all(&reader);
	return 0;
}
