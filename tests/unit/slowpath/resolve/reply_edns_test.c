/* SPDX-License-Identifier: Apache-2.0 */
#include <criterion/criterion.h>
#include "dns/message.h"
#include "dns/rr_type.h"
#include "slowpath/resolve/reply_edns.h"

/* Header: id 0, flags 0x81 then rcode; counts. */
#define HEADER(rcode, qd, an, ns, ar) "\0\0\x81" rcode "\0" qd "\0" an "\0" ns "\0" ar
#define QUESTION "\1a\4test\0\0\1\0\1"
#define ANSWER "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\1\2\3\4"
#define OPT(rcode, version, flags, bytes) "\0\0\x29\4\xd0" rcode version flags "\0" bytes
#define COOKIE_8 \
	"\0\x0a\0\x08" \
	"12345678"

struct row {
	const char *what, *message;
	size_t bytes;
	bool is_malformed, has_opt, is_do;
	uint16_t rcode;
	int16_t ede;
	uint8_t cookie_bytes;
};
#define M(text) text, sizeof(text) - 1
static const struct row rows[] = {
	{ "a header alone", M(HEADER("\1", "\0", "\0", "\0", "\0")), .rcode = 1, .ede = EDE_NONE },
	{ "no OPT", M(HEADER("\0", "\1", "\1", "\0", "\0") QUESTION ANSWER), .ede = EDE_NONE },
	{ "an empty OPT", M(HEADER("\0", "\1", "\1", "\0", "\1") QUESTION ANSWER OPT("\0", "\0", "\0\0", "\0")), .has_opt = true,
	  .ede = EDE_NONE },
	{ "DO", M(HEADER("\0", "\1", "\0", "\0", "\1") QUESTION OPT("\0", "\0", "\x80\0", "\0")), .has_opt = true, .is_do = true,
	  .ede = EDE_NONE },
	{ "BADVERS", M(HEADER("\0", "\1", "\0", "\0", "\1") QUESTION OPT("\1", "\0", "\0\0", "\0")), .has_opt = true, .rcode = 16,
	  .ede = EDE_NONE },
	{ "BADCOOKIE", M(HEADER("\7", "\1", "\0", "\0", "\1") QUESTION OPT("\1", "\0", "\0\0", "\0")), .has_opt = true,
	  .rcode = 23, .ede = EDE_NONE },
	{ "an extended error, the first of two",
	  M(HEADER("\2", "\1", "\0", "\0", "\1") QUESTION OPT("\0", "\0", "\0\0", "\x10") "\0\x0f\0\4\0\6no"
											  "\0\x0f\0\4\0\7no"),
	  .has_opt = true, .rcode = 2, .ede = 6 },
	{ "an extended error of one octet",
	  M(HEADER("\2", "\1", "\0", "\0", "\1") QUESTION OPT("\0", "\0", "\0\0", "\5") "\0\x0f\0\1\1"), .has_opt = true,
	  .rcode = 2, .ede = EDE_NONE },
	{ "a client cookie", M(HEADER("\0", "\1", "\0", "\0", "\1") QUESTION OPT("\0", "\0", "\0\0", "\x0c") COOKIE_8),
	  .has_opt = true, .ede = EDE_NONE, .cookie_bytes = 8 },
	{ "a cookie of 9 octets",
	  M(HEADER("\0", "\1", "\0", "\0", "\1") QUESTION OPT("\0", "\0", "\0\0", "\x0d") "\0\x0a\0\x09"
											  "123456789"),
	  .has_opt = true, .ede = EDE_NONE },
	{ "a cookie of 41 octets",
	  M(HEADER("\0", "\1", "\0", "\0", "\1")
		    QUESTION OPT("\0", "\0", "\0\0", "\x2d") "\0\x0a\0\x29"
							     "12345678901234567890123456789012345678901"),
	  .has_opt = true, .ede = EDE_NONE },
	{ "an OPT in the answer section is none", M(HEADER("\0", "\1", "\1", "\0", "\0") QUESTION OPT("\0", "\0", "\0\0", "\0")),
	  .ede = EDE_NONE },
	{ "an OPT with a name is none", M(HEADER("\0", "\1", "\0", "\0", "\1") QUESTION "\1a" OPT("\0", "\0", "\0\0", "\0")),
	  .ede = EDE_NONE },
	{ "two OPTs",
	  M(HEADER("\0", "\1", "\0", "\0", "\2") QUESTION OPT("\0", "\0", "\0\0", "\0") OPT("\0", "\0", "\0\0", "\0")),
	  .is_malformed = true, .has_opt = true, .ede = EDE_NONE },
	{ "an option that exceeds its record",
	  M(HEADER("\0", "\1", "\0", "\0", "\1") QUESTION OPT("\0", "\0", "\0\0", "\4") "\0\x0a\0\x08"
											"12345678"),
	  .is_malformed = true, .has_opt = true, .ede = EDE_NONE },
	{ "half an option", M(HEADER("\0", "\1", "\0", "\0", "\1") QUESTION OPT("\0", "\0", "\0\0", "\3") "\0\x0a\0"),
	  .is_malformed = true, .has_opt = true, .ede = EDE_NONE },
	{ "a record that exceeds the message",
	  M(HEADER("\0", "\1", "\1", "\0", "\0") QUESTION "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\5\1\2\3\4"), .is_malformed = true,
	  .ede = EDE_NONE },
	{ "records that are not there", M(HEADER("\0", "\1", "\2", "\0", "\0") QUESTION ANSWER), .is_malformed = true,
	  .ede = EDE_NONE },
	{ "a question that is not there", M(HEADER("\0", "\1", "\0", "\0", "\0") "\1a"), .is_malformed = true, .ede = EDE_NONE },
	{ "a label type that is none", M(HEADER("\0", "\1", "\1", "\0", "\0") QUESTION "\x40\0\1\0\1\0\0\0\x3c\0\0"),
	  .is_malformed = true, .ede = EDE_NONE },
	{ "half a pointer", M(HEADER("\0", "\1", "\1", "\0", "\0") QUESTION "\xc0"), .is_malformed = true, .ede = EDE_NONE },
};

Test(reply_edns, rows)
{
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];
		struct reply_edns e;
		uint8_t *exact = malloc(r->bytes); /* so that reading beyond it shows */
		memcpy(exact, r->message, r->bytes);
		memset(&e, 0xa5, sizeof e);
		reply_edns_read(&e, exact, r->bytes);
		cr_assert_eq(e.is_malformed, r->is_malformed, "%s", r->what);
		cr_assert_eq(e.has_opt, r->has_opt, "%s", r->what);
		cr_assert_eq(e.is_do, r->is_do, "%s", r->what);
		cr_assert_eq(e.rcode, r->rcode, "%s: %u", r->what, e.rcode);
		cr_assert_eq(e.ede, r->ede, "%s: %d", r->what, e.ede);
		cr_assert_eq(e.cookie_bytes, r->cookie_bytes, "%s", r->what);
		free(exact);
	}
}

Test(reply_edns, the_cookie_is_copied)
{
	static const char text[] = HEADER("\0", "\1", "\0", "\0", "\1") QUESTION OPT("\0", "\0", "\0\0", "\x0c") COOKIE_8;
	struct reply_edns e;
	reply_edns_read(&e, (const uint8_t *)text, sizeof text - 1);
	cr_assert_eq(memcmp(e.cookie, "12345678", 8), 0);
}
