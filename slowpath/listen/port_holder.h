/* SPDX-License-Identifier: Apache-2.0 */
/* port_holder.h: who has a port, from /proc: only for an error message, so it gives up rather than fail. */
#pragma once
#include "base/base.h"

/* Writes "named (pid 812)" for the first socket of this network namespace that conflicts with the address (family 4 or 6, network
 * order) and port. False if none is found or its process cannot be seen. Reads at most PORT_HOLDER_MAX_PROCESSES processes. */
bool port_holder_find(char *out, size_t out_bytes, bool is_udp, uint8_t family, const uint8_t *address, uint16_t port);

#define PORT_HOLDER_MAX_PROCESSES 65536
#define PORT_HOLDER_MAX_FILES 65536 /* per process */
