"""A network between a client and a broker, which a test can cut, or let repeat what it carries."""

import socket
import threading
import time
from contextlib import suppress


class Wire:
    """TCP connections to a broker that a test can cut.

    At `cut_at`, `request` or `answer`, the next bytes that way are lost and the connection with
    them; `once` lets those after it through. At `double_at`, all bytes that way arrive twice.
    All bytes arrive `delay` seconds late.
    """

    def __init__(self, target: str, delay: float = 0.0) -> None:
        self._delay = delay
        self.lead_to(target)
        self._server = socket.create_server(("127.0.0.1", 0))
        self._ends: list[socket.socket] = []
        self._carriers = [threading.Thread(target=self._accept)]
        self._carriers[0].start()
        self.port: int = self._server.getsockname()[1]
        self.cut_at: str | None = None
        self.double_at: str | None = None
        self.once = False

    def lead_to(self, target: str) -> None:
        """Route further connections to this broker."""
        host, _, port = target.partition(":")
        self._target = (host, int(port))

    def cut(self) -> None:
        """Hang up, on both sides."""
        for end in self._ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def remove(self) -> None:
        """Hang up, and accept no more connections."""
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self.cut()
        for carrier in self._carriers:
            carrier.join()
        for end in (self._server, *self._ends):
            end.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._server.accept()
                self._ends.append(near)
                far = socket.create_connection(self._target)
                self._ends.append(far)
                for ends in (("request", near, far), ("answer", far, near)):
                    self._carriers.append(threading.Thread(target=self._carry, args=ends))
                    self._carriers[-1].start()

    def _carry(self, what: str, source: socket.socket, to: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                if self.cut_at == what:
                    self.cut_at = None if self.once else what
                    self.cut()
                time.sleep(self._delay)
                to.sendall(data * 2 if self.double_at == what else data)
