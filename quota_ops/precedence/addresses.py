"""IP addresses as brokers read them, and as people type them."""

import re
from ipaddress import IPv6Address, ip_address

from quota_ops.model.quotas.entity import IP, Entity

_DECIMALS = re.compile(r"[0-9]{1,99}(?:\.[0-9]{1,99}){0,3}")
_BYTE = 256
_LAST = (
    "each broker applies the one that was changed last, and "
    "after only one is cleared, none until the other is cleared and set again"
)


def explain_same_address(entity: str) -> str:
    """Explain what two stored names of one address mean, of which `entity` is not the declared one.

    Source: measured on brokers.
    """
    how = "if the broker resolves the name to it"
    if find_shortest(entity) is not None:
        how = "in another spelling"
    return f"the same address {how}: {_LAST}"


def normalize_address(name: str) -> str | None:
    """Return the shortest spelling of an IP address; None for a host name or an empty name.

    `10` is 0.0.0.10, `010.0.0.1` is 10.0.0.1, `[::1]` is ::1, `::ffff:10.0.0.1` is 10.0.0.1, and a
    zone is ignored. Source: java.net.InetAddress.getByName and Inet6Address.equals.
    """
    if _DECIMALS.fullmatch(name):
        return _parse_decimals(name)
    is_bracketed = name.startswith("[") and name.endswith("]")
    try:
        read = ip_address(name[1:-1] if is_bracketed else name)
    except ValueError:
        return None
    if not isinstance(read, IPv6Address):  # an IPv4 address in brackets
        return None
    return str(read.ipv4_mapped or IPv6Address(int(read)))


def find_shortest(entity: str) -> str | None:
    """Return the entity of an address in its shortest spelling, the one that Git may have.

    None for a host name, and for an entity that is not a single address.
    """
    name = Entity.parse(entity).as_dict().get(IP)
    shortest = normalize_address(name) if name else None
    return None if shortest is None else Entity.of({IP: shortest}).text


def read_address(typed: str) -> str | None:
    """Return the shortest spelling of an IP address that a person typed; None for other text.

    As in YAML, and unlike a broker, it reads neither `010.0.0.1`, which is 8.0.0.1 in some
    programs, nor `10`, nor brackets, nor a zone.
    """
    try:
        ip_address(typed)
    except ValueError:
        return None
    return None if "%" in typed else normalize_address(typed)


def _parse_decimals(name: str) -> str | None:
    """Parse numbers as bytes; the last number fills the rest of the address."""
    *first, last = map(int, name.split("."))
    room = 4 - len(first)
    if any(byte >= _BYTE for byte in first) or last >= _BYTE**room:
        return None
    return ".".join(map(str, (*first, *last.to_bytes(room, "big"))))
