/* SPDX-License-Identifier: Apache-2.0 */
/* certificates.h: for tests: a CA and certificates of it, made anew for each run: no key is kept anywhere. */
#pragma once
#include <criterion/criterion.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

struct certificate {
	EVP_PKEY *key;
	X509 *x509;
};

static inline void certificate_extend_(X509 *x, X509 *issuer, int nid, const char *value)
{
	X509V3_CTX ctx;
	X509V3_set_ctx(&ctx, issuer, x, NULL, NULL, 0);
	X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
	cr_assert_not_null(e, "%s", value);
	cr_assert_eq(X509_add_ext(x, e, -1), 1);
	X509_EXTENSION_free(e);
}

/* issuer NULL: a CA of its own. alt_names: "DNS:dns.example,IP:127.0.0.3". days: of life, negative: it is over. */
static inline struct certificate certificate_make(const struct certificate *issuer, const char *alt_names, int days)
{
	static long serial = 1;
	struct certificate c = { EVP_EC_gen("P-256"), X509_new() };
	X509 *x = c.x509;
	X509_set_version(x, 2);
	ASN1_INTEGER_set(X509_get_serialNumber(x), serial++);
	X509_gmtime_adj(X509_getm_notBefore(x), -10 * 86400);
	X509_gmtime_adj(X509_getm_notAfter(x), days * 86400);
	X509_set_pubkey(x, c.key);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(x), "CN", MBSTRING_ASC,
				   (const unsigned char *)(issuer ? "a server" : "a CA"), -1, -1, 0);
	X509_set_issuer_name(x, X509_get_subject_name(issuer ? issuer->x509 : x));
	certificate_extend_(x, issuer ? issuer->x509 : x, NID_basic_constraints,
			    issuer ? "critical,CA:FALSE" : "critical,CA:TRUE");
	if (alt_names)
		certificate_extend_(x, issuer ? issuer->x509 : x, NID_subject_alt_name, alt_names);
	cr_assert_gt(X509_sign(x, issuer ? issuer->key : c.key, EVP_sha256()), 0);
	return c;
}

static inline void certificate_free(struct certificate *c)
{
	X509_free(c->x509);
	EVP_PKEY_free(c->key);
}

/* A server's settings with it. */
static inline SSL_CTX *certificate_server(const struct certificate *c)
{
	SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
	cr_assert_eq(SSL_CTX_use_certificate(ctx, c->x509), 1);
	cr_assert_eq(SSL_CTX_use_PrivateKey(ctx, c->key), 1);
	return ctx;
}

/* Writes it as PEM into a file of its own; path has room for 64. */
static inline void certificate_write(const struct certificate *c, char *path)
{
	snprintf(path, 64, "/tmp/skua-test-ca-XXXXXX");
	int fd = mkstemp(path);
	FILE *f = fdopen(fd, "w");
	cr_assert_eq(PEM_write_X509(f, c->x509), 1);
	fclose(f);
}

static inline void certificate_pin(const struct certificate *c, uint8_t pin[32])
{
	uint8_t *der = NULL;
	int bytes = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(c->x509), &der);
	cr_assert_gt(bytes, 0);
	SHA256(der, (size_t)bytes, pin);
	OPENSSL_free(der);
}
