/* SPDX-License-Identifier: Apache-2.0 */
/* bytes.h: byte order. Wire integers are one-field structs, so arithmetic on them does not compile:
 * convert, calculate, convert back. */
#pragma once
#include "base/base.h"

/* clang-format off */
typedef struct be16 { uint16_t wire_; } be16; /* the three typedefs are our only ones: they stand for integers */
typedef struct be32 { uint32_t wire_; } be32;
typedef struct be64 { uint64_t wire_; } be64;

ALWAYS_INLINE be16 be16_from(uint16_t host) { return (be16){ __builtin_bswap16(host) }; }
ALWAYS_INLINE be32 be32_from(uint32_t host) { return (be32){ __builtin_bswap32(host) }; }
ALWAYS_INLINE be64 be64_from(uint64_t host) { return (be64){ __builtin_bswap64(host) }; }
ALWAYS_INLINE uint16_t be16_host(be16 v) { return __builtin_bswap16(v.wire_); }
ALWAYS_INLINE uint32_t be32_host(be32 v) { return __builtin_bswap32(v.wire_); }
ALWAYS_INLINE uint64_t be64_host(be64 v) { return __builtin_bswap64(v.wire_); }
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the conversions above swap");

/* Unaligned loads and stores of big-endian integers at p. */
ALWAYS_INLINE uint16_t load_be16(const void *p) { be16 v; memcpy(&v, p, 2); return be16_host(v); }
ALWAYS_INLINE uint32_t load_be32(const void *p) { be32 v; memcpy(&v, p, 4); return be32_host(v); }
ALWAYS_INLINE uint64_t load_be64(const void *p) { be64 v; memcpy(&v, p, 8); return be64_host(v); }
ALWAYS_INLINE void store_be16(void *p, uint16_t host) { be16 v = be16_from(host); memcpy(p, &v, 2); }
ALWAYS_INLINE void store_be32(void *p, uint32_t host) { be32 v = be32_from(host); memcpy(p, &v, 4); }
ALWAYS_INLINE void store_be64(void *p, uint64_t host) { be64 v = be64_from(host); memcpy(p, &v, 8); }
