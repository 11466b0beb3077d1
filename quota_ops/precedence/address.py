"""What a broker takes the name of an IP entity for."""

import re
from functools import cache
from ipaddress import IPv6Address, ip_address

_DECIMALS = re.compile(r"[0-9]{1,99}(?:\.[0-9]{1,99}){0,3}")
_BYTE = 256


@cache
def address(name: str) -> str | None:
    """The shortest spelling of the address that a name spells; None for a host name or no name.

    `10` is 0.0.0.10, `010.0.0.1` is 10.0.0.1, `[::1]` is ::1, `::ffff:10.0.0.1` is 10.0.0.1, and a
    zone makes no other address. Source: java.net.InetAddress.getByName and Inet6Address.equals.
    """
    if _DECIMALS.fullmatch(name):
        return _of_decimals(name)
    is_bracketed = name.startswith("[") and name.endswith("]")
    try:
        read = ip_address(name[1:-1] if is_bracketed else name)
    except ValueError:
        return None
    if not isinstance(read, IPv6Address):  # in brackets, as others are decimals
        return None
    return str(read.ipv4_mapped or IPv6Address(int(read)))


def _of_decimals(name: str) -> str | None:
    """Numbers are bytes, but the last fills whatever the address has left."""
    *first, last = map(int, name.split("."))
    room = 4 - len(first)
    if any(one >= _BYTE for one in first) or last >= _BYTE**room:
        return None
    return ".".join(map(str, (*first, *last.to_bytes(room, "big"))))
