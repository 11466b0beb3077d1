"""A broker that does not offer some calls: a real one behind a proxy that hides them."""

import socket
import socketserver
import struct
import threading
from collections.abc import Sequence
from typing import Self

_HOST = b"127.0.0.1"
_NOBODYS = 20_000
"""What a hidden call's key is raised by: keys that no client knows."""


class Lacking:
    """Forward each request, and each response with itself as the broker's address."""

    def __init__(self, port: int, hidden: Sequence[int]) -> None:
        lacking = self

        class Connection(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                with socket.create_connection(("127.0.0.1", port)) as broker:
                    while request := _frame(self.request):
                        broker.sendall(request)
                        self.request.sendall(lacking.changed(_frame(broker)))

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Connection)
        self._port, self._hidden = port, hidden
        self.address = f"127.0.0.1:{self._server.server_address[1]}"

    def changed(self, answer: bytes) -> bytes:
        """Return a response in which no call is hidden that was offered as version 0 or 1."""
        ours = _HOST + struct.pack(">i", self._server.server_address[1])
        answer = answer.replace(_HOST + struct.pack(">i", self._port), ours)
        for key in self._hidden:
            offered = struct.pack(">hh", 0, 1)
            answer = answer.replace(
                struct.pack(">h", key) + offered, struct.pack(">h", key + _NOBODYS) + offered
            )
        return answer

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}).start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _frame(stream: socket.socket) -> bytes:
    """Return one message with its length, which starts each message of Kafka's protocol."""
    head = stream.recv(4, socket.MSG_WAITALL)
    if len(head) < 4:
        return b""
    return head + stream.recv(struct.unpack(">i", head)[0], socket.MSG_WAITALL)
