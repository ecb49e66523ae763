/* SPDX-License-Identifier: Apache-2.0 */
/* value.h: the kinds of values that skua.yaml holds, from text and to text. Pure functions; out-parameters stay untouched
 * when a function returns false. */
#pragma once
#include "config/config.h"

#define VALUE_TEXT_BYTES 32 /* of a number, size or duration */
#define VALUE_MAX_CPU 1023

/* true, false, yes, no, on, off, in any letter case. */
MUST_USE bool value_bool(const char *text, bool *out);
/* Decimal digits only, no leading zero. */
MUST_USE bool value_count(const char *text, uint64_t *out);
/* A count, or a count with K, M, G or T (powers of 1024; KiB, MiB, GiB, TiB are the same). */
MUST_USE bool value_size(const char *text, uint64_t *out_bytes);
/* A count with us, ms, s, m, h or d; 0 needs no unit. */
MUST_USE bool value_duration(const char *text, uint64_t *out_ns);
/* An IPv4 address, an IPv6 address, or either with a port ("10.0.0.1:53", "[::1]:53"). place is left alone. On failure *why says
 * why in words that follow "not an address: ". */
MUST_USE bool value_address(const char *text, uint16_t default_port, struct config_address *out, const char **why);
/* "10.0.0.0/8", "2001:db8::/32", or an address alone, which is a prefix of its own. Bits behind the length must be zero. place is left
 * alone. On failure *why says why in words that follow "not a prefix: ". */
MUST_USE bool value_prefix(const char *text, struct config_prefix *out, const char **why);
/* "10.0.0.1:5300", "tls://10.0.0.1#dns.example", "tls://[2001:db8::1]:8853#sha256/BASE64". place and auth_name are left alone: *auth_name
 * points into text, NULL if there is none. On failure *why says why in words that follow "not a server: ". */
MUST_USE bool value_upstream(const char *text, struct config_upstream *out, const char **auth_name, const char **why);
/* One CPU or a range of them ("2", "2-5"), comma-separated. Adds to cpus[0..*count), refusing what is there already.
 * On failure *why says why. */
MUST_USE bool value_cpus(const char *text, unsigned cpus[static CONFIG_MAX_CPUS], size_t *count, const char **why);
/* What may name a network interface. */
MUST_USE bool value_is_interface(const char *text);
/* What may name a user of the system. */
MUST_USE bool value_is_user(const char *text);
/* 32 hexadecimal digits. */
MUST_USE bool value_is_secret(const char *text);

/* The shortest text that the functions above read back. */
void value_size_text(char out[static VALUE_TEXT_BYTES], uint64_t bytes);
void value_duration_text(char out[static VALUE_TEXT_BYTES], uint64_t ns);

/* The word of words (which ends in NULL) that text was most likely meant to be, NULL if none is near. A hyphen and an
 * underscore count as the same. */
const char *value_nearest(const char *text, const char *const *words);
