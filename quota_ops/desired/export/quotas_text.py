"""The text of quotas files, of their entries and of `protect`: what a file can declare, as YAML.

It is the reverse of `desired/yaml`.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import groupby
from types import MappingProxyType
from typing import NamedTuple

from quota_ops.desired.names import require_canonical
from quota_ops.desired.yaml.shapes import ANY
from quota_ops.desired.yaml.values import Misread, is_text, show
from quota_ops.model.quotas.entity import IP, Entity
from quota_ops.model.quotas.quota import (
    BYTES,
    QUOTA_KEYS,
    UNLIMITED,
    QuotaKey,
    explain_unalterable,
    format_limit,
    in_byte_unit,
    parse_limit,
)
from quota_ops.model.quotas.rows import StoredQuota
from quota_ops.model.text import is_visible
from quota_ops.precedence.resolution import normalize_address

_PLAIN = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./@+-]*")
_TWO_DIGITS, _FOUR_DIGITS = 0x100, 0x10000


def spell_text(text: str) -> str:
    """Format a text as a YAML scalar on one line, in quotes if any YAML parser needs them."""
    if _PLAIN.fullmatch(text) and is_text(text):
        return text
    return f'"{"".join(map(_escaped, text))}"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return f"\\{char}"
    if is_visible(char):
        return char
    code = ord(char)
    if code < _TWO_DIGITS:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < _FOUR_DIGITS else f"\\U{code:08x}"


def spell_name(name: str | None) -> str:
    """Format the name of an entity part; None is the default."""
    return "{default: true}" if name is None else spell_text(name)


def spell_entity(entity: Entity) -> str:
    """Format an entity as a mapping on one line: `{user: alice}`."""
    return f"{{{', '.join(f'{kind}: {spell_name(name)}' for kind, name in entity.user_first)}}}"


def spell_limit(key: QuotaKey, value: float) -> str | None:
    """Format a value as a limit in the shortest unit; None if no limit has this value."""
    if value == key.unlimited:
        return UNLIMITED
    for text in _list_texts(key, value):
        try:
            if parse_limit(key, text) == value:
                return text
        except ValueError:
            continue
    return None


def _list_texts(key: QuotaKey, value: float) -> tuple[str, ...]:
    try:
        whole = int(value)
    except (OverflowError, ValueError):  # an infinity, NaN
        return ()
    plain = str(whole) if value == whole else format(Decimal(repr(value)), "f")
    if key.unit != BYTES:
        return (plain,)
    number, unit = in_byte_unit(value)
    return (plain,) if unit == "B" else (f"{number.replace(',', '')} {unit}", plain)


class Writable(NamedTuple):
    """What a file can declare for an entity: keys, and their limits as YAML."""

    entity: Entity
    limits: tuple[tuple[str, str], ...]


class LeftOut(NamedTuple):
    """A quota that a file cannot declare, and why; `protect` covers the whole entity."""

    entity: Entity
    reason: str
    protect: bool


def split_writable(
    stored: Iterable[StoredQuota],
) -> tuple[tuple[Writable, ...], tuple[LeftOut, ...]]:
    """Split stored quotas, sorted by entity, into those that a file can declare and the others.

    An entity with a value that YAML cannot declare is left out whole; a row that brokers do not
    accept changes to (an unknown type or key) is left out by itself.
    """
    rows = sorted(stored, key=lambda row: (row.entity.text, row.key))
    spellings = _group_spellings(row.entity for row in rows)
    writable, left_out = [], []
    for entity, group in groupby(rows, key=lambda row: row.entity):
        known = []
        for row in group:
            if reason := explain_unalterable(entity.types, row.key):
                left_out.append(LeftOut(entity, f"{row.key}: {reason}", protect=False))
            else:
                known.append(row)
        if not known:
            continue
        limits = {row.key: spell_limit(QUOTA_KEYS[row.key], row.value) for row in known}
        wrong = _wrong_address(entity, spellings) or next(
            (
                f"{row.key} is {format_limit(row.key, row.value)}, which YAML cannot declare"
                for row in known
                if limits[row.key] is None
            ),
            None,
        )
        if wrong is None:
            texts = ((name, text) for name in QUOTA_KEYS if (text := limits.get(name)))
            writable.append(Writable(entity, tuple(texts)))
        elif ANY in entity.as_dict().values():
            why = f"{wrong}; protect cannot name it, because {ANY} means every name"
            left_out.append(LeftOut(entity, why, protect=False))
        else:
            left_out.append(LeftOut(entity, wrong, protect=True))
    return tuple(writable), tuple(left_out)


def _wrong_address(entity: Entity, spellings: Mapping[str, list[str]]) -> str | None:
    name = entity.as_dict().get(IP)
    if name is None:
        return None
    others = [
        show(spelling)
        for spelling in spellings[normalize_address(name) or name]
        if spelling != name
    ]
    if others:
        return f"the same address as {', '.join(others)}: brokers apply the one changed last"
    try:
        require_canonical(name)
    except Misread as wrong:
        return f"{wrong.message} {wrong.remedy}"
    return None


def _group_spellings(entities: Iterable[Entity]) -> dict[str, list[str]]:
    """Group the spellings of each address."""
    spelled: dict[str, dict[str, None]] = {}
    for entity in entities:
        name = entity.as_dict().get(IP)
        if name is not None and len(entity.parts) == 1:
            spelled.setdefault(normalize_address(name) or name, {})[name] = None
    return {meant: list(names) for meant, names in spelled.items()}


Limits = tuple[tuple[str, str], ...]
"""Keys, and their limits as YAML."""
Profiles = Mapping[Limits, str]
"""The names of profiles by their limits."""

_COMMON, _MOST_PROFILES = 3, 10
"""How many entities have the limits of a proposal at least, and how many profiles are proposed."""


class ProposedGroup(NamedTuple):
    """A group with a budget that gives each member its present limit."""

    name: str
    members: tuple[Entity, ...]
    budget: Limits


def propose_profiles(quotas: Iterable[Writable]) -> Profiles:
    """Return the limits that several entities share, most common first, with names to replace."""
    counts = Counter(quota.limits for quota in quotas)
    common = [limits for limits, count in counts.most_common(_MOST_PROFILES) if count >= _COMMON]
    return {limits: f"profile-{number}" for number, limits in enumerate(common, 1)}


def propose_groups(name: str, quotas: Iterable[Writable]) -> Iterator[ProposedGroup]:
    """Yield a group for each set of limits that several named entities of a file share.

    The budget is exactly the sum of their limits. Names follow that of the file.
    """
    alike: defaultdict[Limits, list[Entity]] = defaultdict(list)
    for quota in quotas:
        if not quota.entity.has_default and IP not in quota.entity.types:
            alike[quota.limits].append(quota.entity)
    number = 0
    for limits, members in alike.items():
        if len(members) >= _COMMON and (budget := _multiply(limits, len(members))):
            number += 1
            title = name if number == 1 else f"{name}-{number}"
            yield ProposedGroup(title, tuple(members), budget)


def _multiply(limits: Limits, times: int) -> Limits | None:
    """Return the limits so many times; None if a budget cannot have that value and share it."""
    budget = []
    for name, text in limits:
        key = QUOTA_KEYS[name]
        value = parse_limit(key, text)
        total = spell_limit(key, value * times)
        if value == key.unlimited or not value.is_integer() or total is None:
            return None
        budget.append((name, total))
    return tuple(budget)


UNASSIGNED = "unassigned"
"""The owner until a team takes over the quotas."""


def quotas_file(
    quotas: Iterable[Writable],
    owner: str = UNASSIGNED,
    profiles: Profiles = MappingProxyType({}),
    groups: Sequence[ProposedGroup] = (),
) -> str:
    """Format the text of a quotas file.

    Quotas with exactly the limits of a profile refer to it; members of a group are in it alone.
    """
    grouped = {entity for group in groups for entity in group.members}
    entries = "".join(
        quota_entry(quota, None, profiles.get(quota.limits))
        for quota in quotas
        if quota.entity not in grouped
    )
    listed = f"\n{entries}" if entries else " []\n"
    text = "".join(map(_group_entry, groups))
    return f"owner: {spell_text(owner)}\n\nquotas:{listed}" + (f"\ngroups:\n{text}" if text else "")


def _group_entry(group: ProposedGroup) -> str:
    members = "".join(f"      - {spell_entity(entity)}\n" for entity in group.members)
    budget = "".join(f"      {key}: {limit}\n" for key, limit in group.budget)
    return f"  - name: {spell_text(group.name)}\n    members:\n{members}    budget:\n{budget}"


def profile_lines(profiles: Profiles) -> str:
    """Format the field `profiles` of cluster.yaml."""
    lines = ["profiles:\n"]
    for limits, name in profiles.items():
        lines += [f"  {name}:\n", *(f"    {key}: {limit}\n" for key, limit in limits)]
    return "".join(lines)


def quota_entry(quota: Writable, reason: str | None = None, profile: str | None = None) -> str:
    """Format one entry of `quotas`: one limit per line, or the profile, and the reason."""
    first, *others = (f"{kind}: {spell_name(name)}\n" for kind, name in quota.entity.user_first)
    parts = f"  - {first}{''.join(f'    {part}' for part in others)}"
    limits = "".join(f"      {key}: {limit}\n" for key, limit in quota.limits)
    why = f"    reason: {spell_text(reason)}\n" if reason else ""
    declared = f"    limits:\n{limits}" if profile is None else f"    profile: {profile}\n"
    return f"{parts}{declared}{why}"


def protect_lines(left_out: Iterable[LeftOut]) -> Iterator[str]:
    """Yield entries of `protect`, each after its reason; quotas without an entry are a comment."""
    seen: set[Entity] = set()
    for quota in left_out:
        yield f"  # {_format_left_out(quota)}\n"
        if quota.protect and quota.entity not in seen:
            seen.add(quota.entity)
            yield f"  - {spell_entity(quota.entity)}\n"


def left_out_comments(left_out: Iterable[LeftOut]) -> str:
    """Format the quotas that a file leaves out, as comments at its end."""
    return "".join(f"# left out: {_format_left_out(quota)}\n" for quota in left_out)


def _format_left_out(quota: LeftOut) -> str:
    text = f"{quota.entity.text}  {quota.reason}"
    return "".join(char if char.isprintable() else _escaped(char) for char in text)
