/* SPDX-License-Identifier: Apache-2.0 */
/* printable.h: text from outside made safe to show: in a log line, a JSON string, a terminal.
 *
 * The copy is valid UTF-8 and holds no character that could end a line, move a cursor or turn the writing direction:
 * control characters (C0, DEL, C1), line and paragraph separators, direction marks and octets that are not UTF-8 become \xNN,
 * one an octet. Everything else, backslashes included, stays as it is. */
#pragma once
#include "base/base.h"

/* Copies text[0..text_bytes) to out and ends it with a NUL; a copy that does not fit is cut between characters and ends in
 * "...". out_bytes is at least 8. Returns the length without the NUL. */
size_t printable_copy(char *out, size_t out_bytes, const char *text, size_t text_bytes);
