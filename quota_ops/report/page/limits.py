"""The stored quotas, small enough for a page that looks up which one limits a client."""

import gzip
from base64 import b64encode
from collections.abc import Iterable
from typing import Any

from quota_ops.model.quotas.entity import CLIENT_ID, DEFAULT_TEXT, IP, USER, Entity
from quota_ops.model.quotas.quota import CLIENT_KEYS, IP_KEYS, format_limit
from quota_ops.precedence.resolution import ANONYMOUS, LEVELS, normalize_address
from quota_ops.report.outline.formats import escape_text
from quota_ops.report.screens.resolve import WHO_SHARES
from quota_ops.store.places.json_text import line

Stored = Iterable[tuple[str, str, float]]
"""The entity, as text, the key and the value of each quota on a cluster."""
_TYPES = {USER, CLIENT_ID}
_OF_KEY = {key: number for number, key in enumerate(CLIENT_KEYS)}


def format_limits(stored: Stored) -> dict[str, Any]:
    """Return the data of the lookup: `levels` in the order of a broker, `keys`, and `stored`.

    levels   words, for user and client id: true for a name, false for the default, null; and who
             shares a limit of the level
    stored   base64 of gzipped JSON: `texts`, and rows of user, client id, the number of a key, and
             that of a text. An empty name is the default, which Kafka cannot confuse with a name.
             `addresses` has the limits of new connections, several for spellings of one address,
             and `named` is how many are stored by a host name
    """
    texts: dict[tuple[str, float], int] = {}
    rows = []
    addresses: dict[str, list[str]] = {}
    named = 0
    for entity, key, value in stored:
        if key in IP_KEYS and (names := _read_names(entity)).keys() == {IP}:
            address = names[IP] and normalize_address(names[IP])
            if address is None:
                named += 1
            else:
                addresses.setdefault(address, []).append(format_limit(key, value))
        number = _OF_KEY.get(key)
        if number is not None and (names := _read_names(entity)).keys() <= _TYPES:
            text = texts.setdefault((key, value), len(texts))
            rows.append([names.get(USER), names.get(CLIENT_ID), number, text])
    formatted = [escape_text(format_limit(*limit)) for limit in texts]
    values = {"texts": formatted, "rows": rows, "addresses": addresses, "named": named}
    packed = gzip.compress(line(values).encode(), compresslevel=4, mtime=0)
    levels = [
        [
            level.words,
            *(dict(level.own).get(kind) for kind in (USER, CLIENT_ID)),
            WHO_SHARES[level.rank or 0],
        ]
        for level in LEVELS
    ]
    return {
        "levels": levels,
        "keys": CLIENT_KEYS,
        "anonymous": ANONYMOUS,
        "ip_key": IP_KEYS[0],
        "stored": b64encode(packed).decode(),
    }


def _read_names(entity: str) -> dict[str, str]:
    """Return the names of an entity by type, "" for a default; ten times as fast as its parts."""
    if '"' in entity:
        return {kind: name or "" for kind, name in Entity.parse(entity).parts}
    parts = (part.split("=", 1) for part in entity.split(","))
    return {kind: "" if name == DEFAULT_TEXT else name for kind, name in parts}
