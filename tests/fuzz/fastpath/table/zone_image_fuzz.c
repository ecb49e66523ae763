/* SPDX-License-Identifier: Apache-2.0 */
/* Damaged zone images: zone_image_verify refuses them, or every reader stays inside. The input is a choice of one of a few
 * valid images and a list of changes to it; or, with the choice out of range, an image as it is. */
#define MODEL_WITHOUT_CRITERION 1
#include "tests/unit/fastpath/table/zone_exercise.h"
#include "tests/unit/fastpath/table/zone_model.h"

#define TEMPLATES 8u
#define CHANGE_BYTES 6u /* where (3 octets), how (1), value (2) */

static struct zone_image *template_image[TEMPLATES];

static void templates_make(void)
{
	for (unsigned i = 0; i < TEMPLATES; i++) {
		model_random_state = i * UINT64_C(0x9e3779b97f4a7c15) + 9;
		struct model *m = model_create(i % 4 == 3 ? "." : "example.test.", i % MODEL_SIGNINGS, 3 + i);
		struct zone_build *b = model_build(m);
		template_image[i] = model_compile(b);
		zone_build_destroy(b);
		free(m);
	}
}

static void change(uint8_t *image, size_t bytes, const uint8_t *c)
{
	size_t at = ((size_t)c[0] << 16 | (size_t)c[1] << 8 | c[2]) % (bytes - 3);
	uint32_t word;
	memcpy(&word, image + at, sizeof word);
	uint16_t value = load_be16(c + 4);
	switch (c[3] % 5) {
	case 0: image[at] = (uint8_t)value; return;
	case 1: word = value; break;
	case 2: word += value; break;
	case 3: word -= value; break;
	default: memcpy(&word, image + value % (bytes - 3), sizeof word); break; /* what is right elsewhere */
	}
	memcpy(image + at, &word, sizeof word);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *why;
	struct zone_image *image;
	if (!template_image[0])
		templates_make();
	if (size < 1)
		return 0;
	const struct zone_image *original = data[0] < TEMPLATES ? template_image[data[0]] : NULL;
	size_t bytes = original ? original->size_bytes : size - 1;
	if (bytes == 0 || !(image = malloc(bytes)))
		return 0;
	memcpy(image, original ? (const uint8_t *)original : data + 1, bytes);
	for (size_t at = 1; original && at + CHANGE_BYTES <= size; at += CHANGE_BYTES)
		change((uint8_t *)image, bytes, data + at);
	if (zone_image_verify(image, bytes, &why) == ERR_OK) {
		/* As a set has them: a delta of the same apex on top of it, and it on top of another. */
		const struct zone_image *above[] = { original }, *damaged[] = { image };
		if (!(image->flags & ZONE_DELTA))
			exercise_view(&(struct zone_view){ .base = image });
		if (original) {
			exercise_view(&(struct zone_view){ .base = original, .delta = damaged, .delta_count = 1 });
			if (!(image->flags & ZONE_DELTA))
				exercise_view(&(struct zone_view){ .base = image, .delta = above, .delta_count = 1 });
		}
	}
	free(image);
	return 0;
}
