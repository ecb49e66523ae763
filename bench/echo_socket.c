/* SPDX-License-Identifier: Apache-2.0 */
/* echo_socket ADDRESS: the ceiling of a kernel socket in one thread: recvmmsg, QR set, sendmmsg, nothing looked at. IPv4, port 53. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/base.h"

#define BATCH 64
#define MESSAGE_BYTES 512

int main(int argc, char **argv)
{
	static uint8_t buffer[BATCH][MESSAGE_BYTES];
	static struct iovec part[BATCH];
	static struct mmsghdr message[BATCH];
	static struct sockaddr_in peer[BATCH];
	struct sockaddr_in here = { .sin_family = AF_INET, .sin_port = htons(53) };
	int fd = socket(AF_INET, SOCK_DGRAM, 0), room = 4 << 20;

	if (argc != 2 || inet_pton(AF_INET, argv[1], &here.sin_addr) != 1) {
		fputs("usage: echo_socket ADDRESS\n", stderr);
		return 2;
	}
	setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
	if (fd < 0 || bind(fd, (struct sockaddr *)&here, sizeof here) != 0) {
		perror("echo_socket");
		return 1;
	}
	for (int i = 0; i < BATCH; i++) {
		part[i].iov_base = buffer[i];
		message[i].msg_hdr = (struct msghdr){ .msg_iov = &part[i], .msg_iovlen = 1, .msg_name = &peer[i] };
	}
	for (;;) {
		for (int i = 0; i < BATCH; i++) {
			part[i].iov_len = MESSAGE_BYTES;
			message[i].msg_hdr.msg_namelen = sizeof peer[i];
		}
		int count = recvmmsg(fd, message, BATCH, MSG_WAITFORONE, NULL);

		for (int i = 0; i < count; i++) {
			buffer[i][2] |= 0x80;
			part[i].iov_len = message[i].msg_len;
		}
		if (count > 0)
			sendmmsg(fd, message, (unsigned)count, 0);
	}
}
