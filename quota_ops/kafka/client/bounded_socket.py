"""Teaches kafka-python to look up hosts within a deadline; by itself it waits as long as it takes.

It opens a connection by the class that is registered for the scheme of its `proxy_url`.
"""

from typing import Any

from kafka.errors import KafkaConnectionError
from kafka.net.inet import KafkaNetSocket

from quota_ops.kafka.client.lookup import addresses_of


def bounded(seconds: float) -> str:
    """The `proxy_url` by which no proxy is used, and a lookup takes so many seconds at most."""
    return f"{_BoundedSocket.SCHEMES[0]}:{seconds}"


class _BoundedSocket(KafkaNetSocket):  # type: ignore[misc]
    SCHEMES = ("bounded",)

    def __init__(self, proxy_url: str) -> None:
        self._seconds = float(proxy_url.partition(":")[2])

    def dns_lookup(self, host: str, port: int) -> list[Any]:
        """The addresses of a host; the causes of a KafkaConnectionError are told to people."""
        try:
            return addresses_of(host, port, self._seconds)
        except TimeoutError:
            words = f"no name server answered for {host} within {self._seconds:.3g} s"
        except OSError as error:
            words = f"the host {host} is not known: {error.strerror}"
        raise KafkaConnectionError(words)
