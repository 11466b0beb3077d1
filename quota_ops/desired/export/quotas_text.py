"""The text of quotas files and of entries of `protect`, formatted as people write them."""

from collections.abc import Iterable, Iterator, Sequence
from types import MappingProxyType

from quota_ops.desired.export.proposals import Profiles, ProposedGroup
from quota_ops.desired.export.spelling import spell_comment, spell_filter, spell_name, spell_text
from quota_ops.desired.export.writable import LeftOut, Writable
from quota_ops.model.quotas.entity import Entity

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
    members = "".join(f"      - {{{_name_parts(entity)}}}\n" for entity in group.members)
    budget = "".join(f"      {key}: {limit}\n" for key, limit in group.budget)
    return f"  - name: {spell_text(group.name)}\n    members:\n{members}    budget:\n{budget}"


def _name_parts(entity: Entity) -> str:
    return ", ".join(f"{kind}: {spell_name(name)}" for kind, name in entity.user_first)


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
            yield f"  - {spell_filter(quota.entity)}\n"


def left_out_comments(left_out: Iterable[LeftOut]) -> str:
    """Format the quotas that a file leaves out, as comments at its end."""
    return "".join(f"# left out: {_format_left_out(quota)}\n" for quota in left_out)


def _format_left_out(quota: LeftOut) -> str:
    return spell_comment(f"{quota.entity.text}  {quota.reason}")
