# SPDX-License-Identifier: Apache-2.0
"""What owns a socket, and closes it at the end of a `with`."""


class SocketOwner:
    socket = None   # set by the subclass

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()
