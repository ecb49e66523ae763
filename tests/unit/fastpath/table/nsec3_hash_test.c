/* SPDX-License-Identifier: Apache-2.0 */
#include "zone_model.h"

/* RFC 5155 appendix A: salt aabbccdd, 12 iterations. */
Test(nsec3_hash, hashes_of_the_rfc)
{
	static const struct {
		const char *name, *owner;
	} row[] = {
		{ "example.", "0p9mhaveqvm6t7vbl5lop2u3t2rp3tom.example." },
		{ "a.example.", "35mthgpgcu1qg68fab165klnsnk3dpvl.example." },
		{ "ai.example.", "gjeqe526plbf1g8mklp59enfd789njgi.example." },
		{ "ns1.example.", "2t7b4g4vsa5smi47k61mv5bv1a22bojr.example." },
		{ "ns2.example.", "q04jkcevqvmu85r014c7dkba38o0ji5r.example." },
		{ "w.example.", "k8udemvp1j2f7eg6jebps17vp3n8i58h.example." },
		{ "*.w.example.", "r53bq7cc2uvmubfu5ocmm6pers9tk9en.example." },
		{ "x.w.example.", "b4um86eghhds6nea196smvmlo4ors995.example." },
		{ "y.w.example.", "ji6neoaepv8b5o6k4ev33abha8ht9fgc.example." },
		{ "x.y.w.example.", "2vptu5timamqttgl4luu9kg21e0aor3s.example." },
		{ "xx.example.", "t644ebqk9bibcna874givr6joj62mlhv.example." },
		{ "2t7b4g4vsa5smi47k61mv5bv1a22bojr.example.", "kohar7mbb8dc2ce8a9qvl8hon4k53uhi.example." },
	};
	static const uint8_t salt[] = { 0xaa, 0xbb, 0xcc, 0xdd };
	struct model *m = calloc(1, sizeof *m);
	memcpy(m->apex, "\7example", 9);
	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		uint8_t hash[NSEC3_HASH_BYTES];
		struct model_name name = model_name(row[i].name);
		zone_nsec3_hash(hash, name.wire, name.bytes, salt, sizeof salt, 12);
		cr_assert(name_equal(model_nsec3_owner(m, hash).wire, model_name(row[i].owner).wire), "%s", row[i].name);
	}
	free(m);
}
