"""The names of entities: any text that the protocol allows, and addresses in canonical form."""

import re
from ipaddress import IPv6Address, ip_address

import yaml

from quota_ops.desired.yaml.shapes import ANY, DEFAULT
from quota_ops.desired.yaml.values import (
    Misread,
    is_empty_scalar,
    is_plain,
    is_text,
    read_text,
    show,
)
from quota_ops.model.quotas.entity import DEFAULT_TEXT, IP, MAX_NAME_BYTES
from quota_ops.model.quotas.filter import FilterPart, Match

_DEFAULT = f"{{{DEFAULT}: true}}"
_HOST = re.compile(r"[g-z]|^[^:]*[a-f][^:]*$", re.IGNORECASE)
"""What has letters that no address has."""
_RANGE = re.compile(r"[-*]|./")


def read_part(kind: str, node: yaml.Node) -> tuple[str, str | None]:
    """Read a part of an entity, with None as the default's name.

    Raises Misread if it is invalid.
    """
    if isinstance(node, yaml.MappingNode):
        _read_default(kind, node)
        return kind, None
    try:
        name = _read_text(kind, node)
    except Misread:
        if kind == IP and is_plain(node) and not (is_text(node.value) or is_empty_scalar(node)):
            require_canonical(node.value)  # in quotes it would be refused again
        raise
    if kind == IP:
        require_canonical(name)
    return kind, name


def read_filter_part(kind: str, node: yaml.Node) -> FilterPart:
    """Read a part of a filter; an address may have the spelling that the cluster stores."""
    if isinstance(node, yaml.MappingNode):
        _read_default(kind, node)
        return FilterPart(kind, Match.DEFAULT)
    name = _read_text(kind, node)
    return FilterPart(kind, Match.ANY) if name == ANY else FilterPart(kind, Match.EXACT, name)


def _read_default(kind: str, node: yaml.MappingNode) -> None:
    pairs = [(name.value, value.value, is_plain(value)) for name, value in node.value]
    if pairs != [(DEFAULT, "true", True)]:
        raise Misread(
            f"{kind} must be a name or {_DEFAULT}.",
            "Write it in lower case, without quotes, with a space after the colon.",
        )


def _read_text(kind: str, node: yaml.Node) -> str:
    try:
        name = read_text(kind, node)
    except Misread as wrong:
        if not is_empty_scalar(node):
            raise
        quote = f"{wrong.remedy} " if wrong.remedy else ""
        raise Misread(wrong.message, f"{quote}For the default, write {kind}: {_DEFAULT}.") from None
    is_block = isinstance(node, yaml.ScalarNode) and node.style in {"|", ">"}
    if is_block and "\n" in name:
        raise Misread(
            f"{kind} would contain the line break of its block.",
            f"Write {kind}: {show(name.rstrip())}. To keep the line break, write it as \\n in "
            "double quotes.",
        )
    # Programs that write YAML fold a distinguished name, and what they quote, at 80 columns.
    is_folded = node.start_mark.line < node.end_mark.line
    if is_folded and is_plain(node) and "=" not in name:
        raise Misread(
            f"YAML reads the name on these lines as {show(name)}.",
            f"Write it on one line, or several names as a list: {kind}: [NAME, NAME].",
        )
    if "," in name and "=" not in name and is_plain(node):  # a distinguished name has both
        names = ", ".join(part.strip() for part in name.split(",") if part.strip())
        raise Misread(
            f"{show(name)} looks like a list.",
            f'Write {kind}: [{names}]. If it is one name, put it in quotes: "{name}".',
        )
    if name == DEFAULT_TEXT and is_plain(node):
        raise Misread(
            f"{name} is how Kafka's tools print the default.",
            f'Write {kind}: {_DEFAULT}. If it is a name, put it in quotes: "{name}".',
        )
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        raise Misread(
            f"{kind} contains half of a surrogate pair.", "Write the whole character."
        ) from None
    if size > MAX_NAME_BYTES:
        raise Misread(
            f"{kind} {show(name)} is {size:,} bytes long; Kafka allows {MAX_NAME_BYTES:,}."
        )
    return name


def require_canonical(name: str) -> None:
    """Raise Misread for a name that Kafka would resolve or store as a second entity of an address.

    Source: ClientQuotaControlManager.validateEntity calls InetAddress.getByName and stores the
    name as it came, so `::1` and `0:0:0:0:0:0:0:1` are two entities that overwrite each other.
    """
    try:
        address = ip_address(name)
    except ValueError:
        raise Misread(f"{show(name)} is not an IP address.", _instead(name)) from None
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            raise Misread(
                f"{name} has a zone, which only its own machine knows.", "Remove the zone."
            )
        if address.ipv4_mapped is not None:
            raise Misread(
                f"{name} is an IPv4 address written as IPv6.", f"Write {address.ipv4_mapped}."
            )
    if str(address) != name:
        raise Misread(f"{name} is not the shortest form of this address.", f"Write {address}.")


def _instead(name: str) -> str:
    if name == "*":
        return f"To limit every address without its own quota, write {IP}: {_DEFAULT}."
    if _HOST.search(name):
        return "Write it in digits: brokers may resolve a host name differently, or not at all."
    if _RANGE.search(name):
        return "Kafka limits single addresses and the default, not ranges."
    return (
        "Write four numbers up to 255, as in 10.20.0.7, or an IPv6 address: without leading zeros, "
        "port, brackets and spaces."
    )
