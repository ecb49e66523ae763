/* SPDX-License-Identifier: Apache-2.0 */
#include "dns/name.h"

#include "base/bytes.h"
#include "dns/message.h"
#include "dns/name_inline.h"

#define LABEL_TYPE_MASK 0xc0
#define LABEL_TYPE_POINTER 0xc0

/* Offsets of a name's labels, so that names can be walked from the root. */
struct labels {
	unsigned count;
	uint8_t at[NAME_MAX_LABELS];
};

static void labels_find(struct labels *l, const uint8_t *name)
{
	size_t pos = 0;

	l->count = 0;
	while (name[pos] != 0) {
		ASSERT(l->count < NAME_MAX_LABELS);
		l->at[l->count++] = (uint8_t)pos;
		pos += 1u + name[pos];
	}
}

/* Order of two labels, length octets included: as octet strings, case ignored, a prefix first. */
static int label_compare(const uint8_t *a, const uint8_t *b)
{
	size_t shorter = MIN(a[0], b[0]);

	for (size_t i = 1; i <= shorter; i++) {
		int difference = name_octet_lower(a[i]) - name_octet_lower(b[i]);

		if (difference != 0)
			return difference;
	}
	return (int)a[0] - (int)b[0];
}

static bool octets_equal(const uint8_t *a, const uint8_t *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (name_octet_lower(a[i]) != name_octet_lower(b[i]))
			return false;
	return true;
}

size_t name_wire_bytes(const uint8_t *wire, size_t max_bytes)
{
	size_t end = MIN(max_bytes, NAME_MAX_BYTES), pos = 0;

	while (pos < end) {
		uint8_t label = wire[pos];

		if (label == 0)
			return pos + 1;
		if (label > NAME_MAX_LABEL_BYTES)
			return 0;
		pos += 1u + label;
	}
	return 0;
}

unsigned name_labels(const uint8_t *name)
{
	unsigned count = 0;

	for (size_t pos = 0; name[pos] != 0; pos += 1u + name[pos])
		count++;
	return count;
}

size_t name_suffix_offset(const uint8_t *name, unsigned drop)
{
	size_t pos = 0;

	while (drop-- > 0) {
		ASSERT(name[pos] != 0);
		pos += 1u + name[pos];
	}
	return pos;
}

void name_lower(uint8_t *out, const uint8_t *name, size_t name_bytes)
{
	size_t whole = name_bytes & ~(size_t)15; /* the blocks of name_lower_inline that touch nothing behind the name */

	name_lower_inline(out, name, whole);
	for (size_t i = whole; i < name_bytes; i++)
		out[i] = name_octet_lower(name[i]);
}

/* Not by way of name_hash_inline, which comes here for long names. */
uint64_t name_hash(const uint8_t *lower, size_t name_bytes) { return XXH3_64bits(lower, name_bytes); }

bool name_equal(const uint8_t *a, const uint8_t *b)
{
	size_t pos = 0;

	for (;;) {
		uint8_t label = a[pos];

		if (b[pos] != label)
			return false;
		if (label == 0)
			return true;
		if (!octets_equal(a + pos + 1, b + pos + 1, label))
			return false;
		pos += 1u + label;
	}
}

int name_compare(const uint8_t *a, const uint8_t *b)
{
	struct labels la, lb;

	labels_find(&la, a);
	labels_find(&lb, b);
	while (la.count > 0 && lb.count > 0) {
		int difference = label_compare(a + la.at[--la.count], b + lb.at[--lb.count]);

		if (difference != 0)
			return difference;
	}
	return (int)la.count - (int)lb.count;
}

bool name_is_at_or_below(const uint8_t *name, const uint8_t *parent)
{
	unsigned labels = name_labels(name), parent_labels = name_labels(parent);

	return labels >= parent_labels && name_equal(name + name_suffix_offset(name, labels - parent_labels), parent);
}

bool name_is_wildcard(const uint8_t *name) { return name[0] == 1 && name[1] == '*'; }

unsigned name_common_labels(const uint8_t *a, const uint8_t *b)
{
	struct labels la, lb;
	unsigned common = 0;

	labels_find(&la, a);
	labels_find(&lb, b);
	while (la.count > 0 && lb.count > 0 && label_compare(a + la.at[--la.count], b + lb.at[--lb.count]) == 0)
		common++;
	return common;
}

size_t name_concat(uint8_t out[static NAME_MAX_BYTES], const uint8_t *left, size_t left_bytes_without_root, const uint8_t *right)
{
	size_t right_bytes = name_wire_bytes(right, NAME_MAX_BYTES);

	if (left_bytes_without_root + right_bytes > NAME_MAX_BYTES)
		return 0;
	memcpy(out, left, left_bytes_without_root);
	memcpy(out + left_bytes_without_root, right, right_bytes);
	return left_bytes_without_root + right_bytes;
}

size_t name_replace_suffix(uint8_t out[static NAME_MAX_BYTES], const uint8_t *name, const uint8_t *from, const uint8_t *to)
{
	unsigned labels = name_labels(name), from_labels = name_labels(from);

	ASSERT(labels >= from_labels);
	return name_concat(out, name, name_suffix_offset(name, labels - from_labels), to);
}

size_t name_from_message(uint8_t out[static NAME_MAX_BYTES], const uint8_t *msg, size_t msg_bytes, size_t *pos)
{
	size_t at = *pos, written = 0, behind = 0;
	size_t limit = at; /* pointers must go below the start of the run of labels that they end, so no loop is possible */

	for (unsigned pointers = 0; at < msg_bytes;) {
		uint8_t label = msg[at];

		if (label <= NAME_MAX_LABEL_BYTES) {
			if (at + 1 + label > msg_bytes || written + 1 + label > NAME_MAX_BYTES)
				return 0;
			memcpy(out + written, msg + at, 1u + label);
			written += 1u + label;
			at += 1u + label;
			if (label == 0) {
				*pos = behind != 0 ? behind : at;
				return written;
			}
			continue;
		}
		if ((label & LABEL_TYPE_MASK) != LABEL_TYPE_POINTER || at + 2 > msg_bytes || ++pointers > NAME_MAX_POINTERS)
			return 0;
		if (behind == 0)
			behind = at + 2;
		at = load_be16(msg + at) & DNS_POINTER_MAX;
		if (at >= limit)
			return 0;
		limit = at;
	}
	return 0;
}

void name_compressor_init(struct name_compressor *c) { c->count_ = 0; }

/* Whether the name that was written at msg + at equals suffix. Everything before `end` was written by us. */
static bool written_equals(const uint8_t *msg, size_t end, size_t at, const uint8_t *suffix)
{
	for (unsigned steps = 0; steps < NAME_MAX_LABELS + NAME_MAX_POINTERS && at + 1 < end; steps++) {
		uint8_t label = msg[at];

		if ((label & LABEL_TYPE_MASK) == LABEL_TYPE_POINTER) {
			at = load_be16(msg + at) & DNS_POINTER_MAX;
			continue;
		}
		if (label != suffix[0] || label == 0)
			return label == suffix[0];
		if (at + 1 + label > end || !octets_equal(msg + at + 1, suffix + 1, label))
			return false;
		at += 1u + label;
		suffix += 1u + label;
	}
	/* Only the root octet of the last name can stand in the last octet. */
	return at + 1 == end && msg[at] == 0 && suffix[0] == 0;
}

static bool find_written(const struct name_compressor *c, const uint8_t *msg, size_t end, const uint8_t *suffix, size_t *at)
{
	for (unsigned i = 0; i < c->count_; i++) {
		if (written_equals(msg, end, c->offset_[i], suffix)) {
			*at = c->offset_[i];
			return true;
		}
	}
	return false;
}

bool name_to_message(struct name_compressor *c, uint8_t *msg, size_t max_bytes, size_t *pos, const uint8_t *name, bool compress)
{
	size_t keep = 0, target = 0, bytes;
	bool found = false;

	/* keep = octets of name before the longest suffix that stands in the message already. */
	for (; name[keep] != 0; keep += 1u + name[keep]) {
		if (compress && find_written(c, msg, *pos, name + keep, &target)) {
			found = true;
			break;
		}
	}
	bytes = keep + (found ? 2 : 1);
	if (*pos > max_bytes || bytes > max_bytes - *pos)
		return false;
	memcpy(msg + *pos, name, keep);
	if (found)
		store_be16(msg + *pos + keep, (uint16_t)(LABEL_TYPE_POINTER << 8 | target));
	else
		msg[*pos + keep] = 0;
	for (size_t at = 0; at < keep && *pos + at <= DNS_POINTER_MAX && c->count_ < NAME_COMPRESS_SLOTS; at += 1u + name[at])
		c->offset_[c->count_++] = (uint16_t)(*pos + at);
	*pos += bytes;
	return true;
}
