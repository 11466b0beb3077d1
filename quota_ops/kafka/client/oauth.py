"""Tokens for SASL OAUTHBEARER, from OAuth's client credentials grant.

The settings are the same as for librdkafka's `sasl.oauthbearer.method=oidc`. quota-ops requests the
token itself, so that both clients share one token, and an error can explain why there is none.

Source: RFC 6749, section 4.4.
"""

import threading
import time
from collections.abc import Mapping
from typing import NamedTuple

from quota_ops.kafka.connection import Connection
from quota_ops.kafka.connection.settings import TOKEN_SETTINGS

TOKEN_SECONDS = 2.0
"""Seconds to wait for a token; they count towards the preflight's limit of five seconds."""
_USED_OF_LIFETIME = 0.8


class _Token(NamedTuple):
    value: str
    renew_at: float

    def __repr__(self) -> str:
        return f"_Token(renew_at={self.renew_at})"


_tokens: dict[frozenset[tuple[str, str]], _Token] = {}
_lock = threading.Lock()


def get_token(connection: Connection) -> str:
    """Return the current token if it is still valid; otherwise request one within TOKEN_SECONDS.

    Raises Unreachable, LoginFailed.
    """
    from quota_ops.kafka.client.token_request import request_token  # few connections need it

    settings = connection.properties.items()
    identity = frozenset(setting for setting in settings if setting[0].startswith(TOKEN_SETTINGS))
    with _lock:
        known = _tokens.get(identity)
        if known is None or known.renew_at < time.monotonic():
            requested = time.monotonic()
            value, lifetime = request_token(connection, TOKEN_SECONDS)
            known = _tokens[identity] = _Token(value, requested + _USED_OF_LIFETIME * lifetime)
    return known.value


def parse_extensions(properties: Mapping[str, str]) -> dict[str, str]:
    """Parse the SASL extensions; the settings write them as `name=value,name=value`."""
    written = properties.get("sasl.oauthbearer.extensions", "")
    pairs = (pair.partition("=") for pair in written.split(",") if pair)
    return {name.strip(): value.strip() for name, _, value in pairs}
