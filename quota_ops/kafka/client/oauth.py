"""Tokens for SASL OAUTHBEARER, by OAuth's client credentials.

The settings are those of librdkafka's `sasl.oauthbearer.method=oidc`, but it is not librdkafka that
asks: one token is for both clients, and who asks here can say why there is none.

Source: RFC 6749, section 4.4.
"""

import threading
import time
from collections.abc import Mapping
from typing import NamedTuple

from quota_ops.kafka.connection import Connection
from quota_ops.kafka.connection.settings import TOKEN_SETTINGS

TOKEN_SECONDS = 2.0
"""How long to wait for one: what is left of the five in which every failure is told is enough."""
_USED_OF_LIFETIME = 0.8


class _Token(NamedTuple):
    value: str
    renew_at: float

    def __repr__(self) -> str:
        return f"_Token(renew_at={self.renew_at})"


_tokens: dict[frozenset[tuple[str, str]], _Token] = {}
_asking = threading.Lock()


def token_of(connection: Connection) -> str:
    """A valid token; a new one, asked for within TOKEN_SECONDS, when there is none or it ages.

    Raises Unreachable, LoginFailed.
    """
    from quota_ops.kafka.client.token_request import ask_for_token  # noqa: PLC0415 - few connections need it

    settings = connection.properties.items()
    identity = frozenset(one for one in settings if one[0].startswith(TOKEN_SETTINGS))
    with _asking:
        known = _tokens.get(identity)
        if known is None or known.renew_at < time.monotonic():
            asked = time.monotonic()
            value, lifetime = ask_for_token(connection, TOKEN_SECONDS)
            known = _tokens[identity] = _Token(value, asked + _USED_OF_LIFETIME * lifetime)
    return known.value


def extensions_of(properties: Mapping[str, str]) -> dict[str, str]:
    """The SASL extensions of the settings, written `name=value,name=value`."""
    written = properties.get("sasl.oauthbearer.extensions", "")
    pairs = (pair.partition("=") for pair in written.split(",") if pair)
    return {name.strip(): value.strip() for name, _, value in pairs}
