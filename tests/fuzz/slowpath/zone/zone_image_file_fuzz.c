/* SPDX-License-Identifier: Apache-2.0 */
/* Any octets as an image file: it is removed, or its zones lie within it. Input: an octet of choices, then the file; with bit 0 set its
 * first fields and its checksum are made right, so that what stands behind them is reached. */
#include "slowpath/zone/zone_image_file.c"

#define MIN_FILE_BYTES (sizeof(struct zone_image_file) + sizeof(struct segment_header))

/* As the seeds' notes name them; the files are not looked at. */
static const struct {
	const char *name, *file;
} zones[] = { { "\1a\7example", "/zones/a" }, { "\1b\7example", "/zones/b" }, { "\1c\7example", "/zones/c" } };

static char state[] = "/dev/shm/skua-fuzz-XXXXXX";
static struct zone_image_files files;

static void remove_folder(void)
{
	rmdir(files.folder);
	rmdir(state);
}

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc, (void)argv;
	log_set_level(LOG_ZONE, LOG_LEVEL_ERROR); /* every refusal would write a line */
	ASSERT(mkdtemp(state));
	zone_image_files_init(&files, state, 0);
	ASSERT(files.folder);
	atexit(remove_folder);
	return 0;
}

static void mend(uint8_t *file, size_t bytes)
{
	struct zone_image_file head;
	struct segment_header header = header_in_file(file + sizeof(head));
	memcpy(&head, file, sizeof(head));
	head.magic = ZONE_IMAGE_FILE_MAGIC;
	head.version = ZONE_IMAGE_FILE_VERSION;
	head.segment_version = SEGMENT_VERSION;
	head.image_version = ZONE_IMAGE_VERSION;
	head.segment_bytes = bytes - sizeof(head);
	header.magic = SEGMENT_MAGIC;
	header.version = SEGMENT_VERSION;
	header.size_bytes = head.segment_bytes;
	memcpy(file + sizeof(head), &header, sizeof(header));
	checksum(head.checksum, &head, file + sizeof(head));
	memcpy(file, &head, sizeof(head));
}

static void put_file(const char *path, const uint8_t *data, size_t bytes, bool is_mended)
{
	uint8_t *file = malloc(bytes ? bytes : 1); /* aligned */
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ASSERT(file && fd >= 0);
	memcpy(file, data, bytes);
	if (is_mended && bytes >= MIN_FILE_BYTES)
		mend(file, bytes);
	ASSERT(write(fd, file, bytes) == (ssize_t)bytes);
	close(fd);
	free(file);
}

static uint64_t check_store(const struct zone_store *store)
{
	uint64_t served = 0;
	for (size_t i = 0; i < ARRAY_LEN(zones); i++) {
		const struct zone_item *item = zone_store_find(store, (const uint8_t *)zones[i].name);
		ASSERT(item);
		if (!item->segment)
			continue;
		const uint8_t *from = segment_map(item->segment->segment), *image = (const uint8_t *)item->image;
		ASSERT(image == from + item->offset_bytes && item->is_unchecked && item->note);
		ASSERT(item->offset_bytes + sizeof(*item->image) <= segment_bytes(item->segment->segment));
		served++;
	}
	return served;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[PATH_BYTES];
	struct zone_store *store;
	uint32_t next_segment_id = 1;
	if (size < 1)
		return 0;
	ASSERT(path_of(&files, path, "0000000000000001.img") && zone_store_create(&store) == ERR_OK);
	for (size_t i = 0; i < ARRAY_LEN(zones); i++)
		ASSERT(zone_store_add(store, (const uint8_t *)zones[i].name, zones[i].file) == ERR_OK);
	put_file(path, data + 1, size - 1, data[0] & 1);
	uint64_t taken = zone_image_files_read(&files, store, &next_segment_id);
	ASSERT(check_store(store) == taken && (access(path, F_OK) == 0) == (taken > 0));
	if (taken) {
		struct store_segment *s = zone_store_segment(store, 0);
		/* A process that has the segment already finds that this is its file. */
		s->file_number = 0;
		zone_image_files_match(&files, store);
		ASSERT(s->file_number == 1);
		zone_image_files_forget(&files, s);
		ASSERT(access(path, F_OK) != 0);
	}
	zone_store_destroy(store);
	return 0;
}
