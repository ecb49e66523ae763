/* SPDX-License-Identifier: Apache-2.0 */
/* exchange_tls.c: DNS over TLS (RFC 7858, RFC 8310): OpenSSL over memory; exchange_stream.c moves the octets.
 *
 * Strict: nothing is sent before the certificate has shown the name (chain to a CA, host name) and the pin that were asked for, each if
 * it was given. There is no way back to plain text. */
#include "base/log.h"
#include "slowpath/resolve/exchange_private.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/sha.h>
#include <openssl/x509v3.h>
#include <stdlib.h>

#define PLAIN_BYTES 16384u /* the most that one TLS record holds */

struct exchange_tls {
	SSL_CTX *context;
	int stream_index; /* of the SSL's extra data */
};

static const char *const ca_bundles[] = {
	"/etc/ssl/certs/ca-certificates.crt", /* Debian, Arch, Alpine */
	"/etc/pki/tls/certs/ca-bundle.crt",   /* Fedora, RHEL */
	"/etc/ssl/ca-bundle.pem",	      /* SUSE */
	"/etc/ssl/cert.pem",
};

/* --- settings ------------------------------------------------------------------------------------------------------- */

static bool load_cas(SSL_CTX *context, const char *ca_file)
{
	if (ca_file)
		return SSL_CTX_load_verify_file(context, ca_file) == 1;
	const char *from_environment = getenv(X509_get_default_cert_file_env());
	if (from_environment)
		return SSL_CTX_load_verify_file(context, from_environment) == 1;
	for (size_t i = 0; i < ARRAY_LEN(ca_bundles); i++)
		if (SSL_CTX_load_verify_file(context, ca_bundles[i]) == 1)
			return true;
	return false;
}

/* A session ticket came: the next connection to this server resumes it. */
static int on_session(SSL *ssl, SSL_SESSION *session)
{
	const struct exchange_tls *tls = SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl));
	struct stream *c = SSL_get_ex_data(ssl, tls->stream_index);
	SSL_SESSION_free(c->peer->session);
	c->peer->session = session;
	return 1; /* it is ours now */
}

static enum err set_up(struct exchange_tls *tls, const char *ca_file)
{
	/* The protocol's version first: a session of another one must not be asked for. */
	bool is_set = SSL_CTX_set_min_proto_version(tls->context, TLS1_2_VERSION) == 1 &&
		      SSL_CTX_set_alpn_protos(tls->context, (const unsigned char *)"\3dot", 4) == 0;
	if (!is_set)
		return ERR_UNSUPPORTED;
	SSL_CTX_set_app_data(tls->context, tls);
	SSL_CTX_set_options(tls->context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	SSL_CTX_set_mode(tls->context, SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_session_cache_mode(tls->context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
	SSL_CTX_sess_set_new_cb(tls->context, on_session);
	return load_cas(tls->context, ca_file) ? ERR_OK : ERR_NOTFOUND;
}

enum err exchange_tls_create(struct exchange_tls **out, const char *ca_file)
{
	struct exchange_tls *tls = calloc(1, sizeof *tls);
	if (!tls)
		return ERR_NOMEM;
	tls->stream_index = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
	tls->context = SSL_CTX_new(TLS_client_method());
	enum err err = tls->stream_index < 0 || !tls->context ? ERR_NOMEM : set_up(tls, ca_file);
	ERR_clear_error();
	if (err != ERR_OK) {
		exchange_tls_destroy(tls);
		return err;
	}
	*out = tls;
	return ERR_OK;
}

void exchange_tls_destroy(struct exchange_tls *tls)
{
	if (!tls)
		return;
	SSL_CTX_free(tls->context);
	free(tls);
}

/* --- one connection ------------------------------------------------------------------------------------------------- */

/* Says why, once per failed connection; the log has its rate limit. Always false. */
static bool fail(struct stream *c, const char *why)
{
	unsigned long code = ERR_peek_last_error();
	long verified = c->ssl ? SSL_get_verify_result(c->ssl) : X509_V_OK;
	if (!why && verified != X509_V_OK)
		why = X509_verify_cert_error_string(verified);
	if (!why && code)
		why = ERR_reason_error_string(code);
	log_write(M_UPSTREAM_TLS, "%s: %s", c->peer->text ? c->peer->text : "?", why ? why : "the connection ended");
	ERR_clear_error();
	if (c->state == STREAM_HANDSHAKE)
		counter_add(c->x->counters, C_UPSTREAM_TLS_FAILURES, 1);
	return false;
}

/* What TLS wants to be sent goes behind what waits. */
static bool drain(struct stream *c)
{
	uint8_t octets[4096];
	int n;
	while ((n = BIO_read(SSL_get_wbio(c->ssl), octets, sizeof octets)) > 0)
		if (!stream_buffer_append(&c->out, octets, (size_t)n, STREAM_OUT_MAX_BYTES))
			return false;
	return true;
}

static bool expect_name(SSL *ssl, const char *name)
{
	uint8_t address[16];
	X509_VERIFY_PARAM *param = SSL_get0_param(ssl);
	bool is_address = inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
	if (is_address)
		return X509_VERIFY_PARAM_set1_ip_asc(param, name) == 1;
	X509_VERIFY_PARAM_set_hostflags(param, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return X509_VERIFY_PARAM_set1_host(param, name, 0) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

static SSL *make_ssl(struct stream *c)
{
	const struct exchange_peer *peer = c->peer;
	SSL *ssl = SSL_new(peer->tls->context);
	BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
	if (!ssl || !in || !out || (peer->auth_name && !expect_name(ssl, peer->auth_name)) ||
	    SSL_set_ex_data(ssl, peer->tls->stream_index, c) != 1) {
		BIO_free(in);
		BIO_free(out);
		SSL_free(ssl);
		return NULL;
	}
	/* With a pin alone the chain does not matter: the key does (RFC 7858 section 4.2). */
	SSL_set_verify(ssl, peer->auth_name ? SSL_VERIFY_PEER : SSL_VERIFY_NONE, NULL);
	SSL_set_bio(ssl, in, out);
	SSL_set_connect_state(ssl);
	if (peer->session)
		(void)SSL_set_session(ssl, peer->session); /* if not, a full handshake */
	return ssl;
}

static bool has_pin(SSL *ssl, const uint8_t *pin)
{
	uint8_t digest[SHA256_DIGEST_LENGTH], *key = NULL;
	X509 *certificate = SSL_get0_peer_certificate(ssl);
	int bytes = certificate ? i2d_X509_PUBKEY(X509_get_X509_PUBKEY(certificate), &key) : 0;
	if (bytes <= 0)
		return false;
	SHA256(key, (size_t)bytes, digest);
	OPENSSL_free(key);
	static_assert(SHA256_DIGEST_LENGTH == EXCHANGE_PIN_BYTES, "the pin is a SHA-256");
	return CRYPTO_memcmp(digest, pin, sizeof digest) == 0;
}

/* The handshake is done. OpenSSL has checked the name already; not to rely on a flag, again. */
static bool check_identity(struct stream *c)
{
	const struct exchange_peer *peer = c->peer;
	if (peer->auth_name && (SSL_get_verify_result(c->ssl) != X509_V_OK || !SSL_get0_peer_certificate(c->ssl)))
		return fail(c, NULL);
	if (peer->pin && !has_pin(c->ssl, peer->pin))
		return fail(c, "the certificate's key is not the one that the pin names");
	return peer->auth_name || peer->pin;
}

static bool shake_hands(struct stream *c)
{
	int n = SSL_do_handshake(c->ssl);
	if (n != 1) {
		int error = SSL_get_error(c->ssl, n);
		bool is_waiting = error == SSL_ERROR_WANT_READ;
		if (!drain(c) && is_waiting)
			return fail(c, "it makes us send too much");
		return is_waiting || fail(c, NULL);
	}
	if (!check_identity(c)) {
		SSL_SESSION_free(c->peer->session);
		c->peer->session = NULL;
		return false;
	}
	if (SSL_session_reused(c->ssl))
		counter_add(c->x->counters, C_UPSTREAM_TLS_RESUMED, 1);
	exchange_stream_opened(c);
	return drain(c);
}

bool exchange_tls_begin(struct stream *c)
{
	ERR_clear_error();
	c->ssl = make_ssl(c);
	return c->ssl ? shake_hands(c) : fail(c, "out of memory");
}

bool exchange_tls_write(struct stream *c, const uint8_t *octets, size_t bytes)
{
	ERR_clear_error();
	return SSL_write(c->ssl, octets, (int)bytes) == (int)bytes && drain(c);
}

bool exchange_tls_feed(struct stream *c, const uint8_t *octets, size_t bytes)
{
	uint8_t plain[PLAIN_BYTES];
	int n;
	ERR_clear_error();
	if (BIO_write(SSL_get_rbio(c->ssl), octets, (int)bytes) != (int)bytes)
		return fail(c, "out of memory");
	if (c->state == STREAM_HANDSHAKE && !shake_hands(c))
		return false;
	if (c->state != STREAM_OPEN)
		return true;
	while ((n = SSL_read(c->ssl, plain, sizeof plain)) > 0)
		if (!exchange_stream_take(c, plain, (size_t)n))
			return false;
	int error = SSL_get_error(c->ssl, n);
	if (error == SSL_ERROR_ZERO_RETURN) /* the server has ended it in order */
		return false;
	return error == SSL_ERROR_WANT_READ ? drain(c) : fail(c, NULL);
}

void exchange_tls_end(struct stream *c)
{
	if (!c->ssl)
		return;
	ERR_clear_error();
	if (SSL_is_init_finished(c->ssl)) {
		(void)SSL_shutdown(c->ssl);
		(void)drain(c);
		if (c->out.bytes && !c->is_writing) {
			uv_buf_t buffer = uv_buf_init((char *)c->out.octets, c->out.bytes);
			(void)uv_try_write((uv_stream_t *)&c->handle, &buffer, 1);
		}
		/* A session whose connection ended otherwise stays good too: DNS messages carry their lengths. */
		SSL_set_shutdown(c->ssl, SSL_SENT_SHUTDOWN | SSL_RECEIVED_SHUTDOWN);
	}
	SSL_free(c->ssl);
	c->ssl = NULL;
	ERR_clear_error();
}
