"""The field `owners` of cluster.yaml, and the quotas and files that contradict it."""

import re
from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from ipaddress import ip_network

import yaml

from quota_ops.desired.quotas_file import Quota, QuotasFile
from quota_ops.desired.yaml.fields import (
    FieldNodes,
    read_fields,
    read_items,
    read_named,
    read_value,
)
from quota_ops.desired.yaml.shapes import OWNER
from quota_ops.desired.yaml.source import Source
from quota_ops.desired.yaml.values import Misread, read_flag, read_note, read_text, show, text_that
from quota_ops.model.plans.policy import INVENTORY
from quota_ops.model.quotas.owners import Claim, Owner, OwnerIndex

Nodes = Mapping[tuple[str, Claim | None], yaml.Node]
"""The node of each claim of an owner, and of the name of each owner (None)."""


def read_owners(source: Source, field: FieldNodes) -> tuple[tuple[Owner, ...], Nodes]:
    """Read the owners, by name; add a problem for each entity or file that two of them have."""
    nodes: dict[tuple[str, Claim | None], yaml.Node] = {}
    example = "{payments: {user_prefixes: [payments-]}}; or remove it"
    owners = {
        name: _read_owner(source, found, name, nodes)
        for name, found in read_named(source, field, "owner", example)
    }
    if isinstance(field.value, yaml.MappingNode) and not field.value.value:
        source.refuse(field.place, "owners is empty.", f"For example owners: {example}.")
    _refuse_shared(source, owners.values(), nodes)
    return tuple(owners[name] for name in sorted(owners)), nodes


def _read_owner(
    source: Source, field: FieldNodes, name: str, nodes: dict[tuple[str, Claim | None], yaml.Node]
) -> Owner:
    nodes[name, None] = field.name
    fields = read_fields(source, field.value, OWNER, field) or {}
    lists: dict[str, tuple[str, ...]] = {}
    for list_name, read in _READERS.items():
        texts = []
        for item in read_items(source, fields.get(list_name)):
            text = read_value(source, FieldNodes(fields[list_name].name, item), read)
            if text is not None:
                texts.append(text)
                text = str(ip_network(text)) if list_name == "ips" else text
                nodes[name, Claim(list_name, text)] = item
        lists[list_name] = tuple(sorted(texts))
    defaults = read_value(source, fields.get("defaults"), read_flag) or False
    if defaults:
        nodes[name, Claim("defaults", "")] = fields["defaults"].value
    return Owner(name, defaults=defaults, **lists)


def _refuse_shared(source: Source, owners: Iterable[Owner], nodes: Nodes) -> None:
    first: dict[Claim, str] = {}
    for owner in owners:
        for claim in owner.claims():
            other = first.setdefault(claim, owner.name)
            if other != owner.name:
                place = source.place(nodes[other, claim])
                message = f"{claim} belongs to {show(other)} already, at {place}."
                source.refuse(nodes[owner.name, claim], message, "Remove one of the two.")


def _read_address(field: str, node: yaml.Node) -> str:
    text = read_text(field, node)
    try:
        network = ip_network(text)
    except ValueError:
        raise Misread(
            f"{show(text)} is neither an IP address nor a network.",
            "Write 10.20.0.7 or 10.20.0.0/16; the bits after the / are 0 in the address.",
        ) from None
    canonical = str(network) if "/" in text else str(network.network_address)
    if canonical != text:
        raise Misread(f"{text} is not the shortest form of this address.", f"Write {canonical}.")
    return text


def _read_name(field: str, node: yaml.Node) -> str:
    text = read_text(field, node)
    if text.endswith("*"):
        singular = field.removesuffix("s")
        raise Misread(
            f"{show(text)} would be a name with a *: names in {field} are exact.",
            f"Write {singular}_prefixes: [{text.rstrip('*')}].",
        )
    return text


def _read_prefix(field: str, node: yaml.Node) -> str:
    text = read_text(field, node)
    if text.endswith("*"):
        raise Misread(f"{show(text)} would match a * in names.", f"Write {text.rstrip('*')}.")
    return text


_READERS: dict[str, Callable[[str, yaml.Node], str]] = {
    "users": _read_name,
    "user_prefixes": _read_prefix,
    "client_ids": _read_name,
    "client_id_prefixes": _read_prefix,
    "ips": _read_address,
    "files": text_that(
        lambda text: INVENTORY.fullmatch(text) and "://" not in text,
        "is not a path below the cluster's folder.",
        "For example payments.yaml, or payments/ for every file in that folder.",
    ),
    "code_owners": read_note,
}


_NEAR = 0.85
"""How similar an owner that is not listed has to be to a listed one to count as misspelled."""


_OWNER = re.compile(rb"^owner: *[\"']?([\w][^\"'#\n]*)", re.MULTILINE)


def find_file_owner(owners: Iterable[Owner], path: str, content: bytes) -> str | None:
    """Return who owns a file that need not be valid: by cluster.yaml, or else by its own line."""
    listed = next((owner.name for owner in owners if owner.has_file(path)), None)
    found = _OWNER.search(content)
    return listed or (found[1].decode(errors="replace").strip() if found else None) or None


def refuse_foreign(
    files: Iterable[QuotasFile], owners: tuple[Owner, ...], source: Source, nodes: Nodes
) -> None:
    """Add a problem for each quota of another owner's entity, and each file of another owner.

    An entity that belongs to nobody may be declared in any file.
    """
    if not owners:
        return
    index, by_name = OwnerIndex(owners), {owner.name: owner for owner in owners}
    for file in files:
        declared = file.owner if file.quotas else None
        meant = declared and _refuse_owner(file, declared, by_name, source, nodes)
        for quota in file.quotas:
            claim = index.find_claim(quota.entity)
            owner = index.find_owner(quota.entity)
            if claim and owner and quota.owner and owner not in {quota.owner, meant}:
                _refuse_quota(quota, owner, claim, source, nodes[owner, claim])


def _refuse_quota(quota: Quota, owner: str, claim: Claim, source: Source, node: yaml.Node) -> None:
    words = f"{quota.entity} belongs to {show(owner)}"
    remedy = f"Move this quota to a file of {show(owner)}, which must approve it."
    other = source.problem_at(
        source.find_span(node),
        f"{words}, but {show(str(quota.owner))} has a quota of it at {quota.place}.",
        remedy,
    )
    quota.refuse(
        f"{words} ({claim} at {source.place(node)}), and this file to {show(str(quota.owner))}.",
        remedy,
        other,
    )


def _refuse_owner(
    file: QuotasFile, declared: str, owners: Mapping[str, Owner], source: Source, nodes: Nodes
) -> str | None:
    """Add a problem if the owner of a file may not write it, and return who is meant if known."""
    path = file.source.name
    listed = next((owner.name for owner in owners.values() if owner.has_file(path)), None)
    meant = None if declared in owners else _find_near(declared, owners)
    if listed is not None and listed != declared:
        meant = listed
        message = f"cluster.yaml lists this file for {show(listed)} "
        message += f"({source.place(nodes[listed, None])}), but its owner is {show(declared)}."
        remedy = f"or move the quotas to a file of {show(declared)}."
    elif meant is not None:
        message = f"{show(declared)}, the owner of this file, is not among the owners of "
        message += f"cluster.yaml, which have {show(meant)}."
        remedy = f"or add the other one: {declared}: {{}}."
    elif declared in owners and listed is None and owners[declared].files:
        at = source.place(nodes[declared, None])
        message = f"The files of {show(declared)} are listed at {at}, without this one."
        remedy = f"Add {path} to its files there, or write the owner that this file belongs to."
    else:
        return None
    remedy = f"Write owner: {show(meant)}, {remedy}" if meant else remedy
    file.source.refuse_at(file.owner_span, message, remedy)
    return meant


def _find_near(declared: str, owners: Iterable[str]) -> str | None:
    """Return the owner of whose name this is a slip, whatever its case and order of letters."""
    by_folded = {name.casefold(): name for name in owners}
    folded = declared.casefold()
    near = get_close_matches(folded, by_folded, n=1, cutoff=_NEAR)
    mixed = (name for name in by_folded if sorted(name) == sorted(folded))
    return next((by_folded[name] for name in (*near, *mixed)), None)
