"""The field `ceilings` of cluster.yaml: what each owner may declare, and what is above it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from difflib import get_close_matches
from typing import NamedTuple

import yaml

from quota_ops.desired.limits import read_limits
from quota_ops.desired.quotas_file import Quota
from quota_ops.desired.yaml.fields import FieldNodes, read_value
from quota_ops.desired.yaml.scalars import read_note, show
from quota_ops.desired.yaml.shapes import CEILING
from quota_ops.desired.yaml.source import Source, Span
from quota_ops.findings.codes import ABOVE_CEILING, CODES, IDLE_CEILING
from quota_ops.model.finding import Finding
from quota_ops.model.plans.ceilings import Ceiling, Limits
from quota_ops.model.quotas.quota import QUOTA_KEYS, format_limit


class DeclaredCeilings(NamedTuple):
    """The ceilings by owner, and where cluster.yaml names each owner."""

    ceilings: tuple[Ceiling, ...] = ()
    source: Source | None = None
    places: Mapping[str, Span] = {}


def read_ceilings(source: Source, field: FieldNodes) -> DeclaredCeilings:
    """Read the ceilings of a `ceilings` field by owner; adds problems for invalid ones."""
    ceilings: dict[str, Ceiling] = {}
    places: dict[str, Span] = {}
    if not isinstance(field.value, yaml.MappingNode):
        remedy = "For example ceilings: {payments: {producer_byte_rate: 200 MiB}}."
        source.refuse(field.place, "ceilings must map each owner to limits.", remedy)
        return DeclaredCeilings()
    for key, value in field.value.value:
        owner = read_value(source, FieldNodes(field.name, key), read_note)
        if owner is None:
            continue
        if owner in ceilings:
            source.refuse(key, f"The owner {show(owner)} is listed twice.", "Merge the two.")
        limits = read_limits(source, FieldNodes(key, value), (), CEILING)
        nodes = value.value if isinstance(value, yaml.MappingNode) else ()
        total = next(
            (FieldNodes(name, node) for name, node in nodes if name.value == "total"), None
        )
        each = tuple(sorted((limit.key, limit.value) for limit in limits))
        ceilings[owner] = Ceiling(owner, each, _read_total(source, total))
        places[owner] = source.find_span(key)
    return DeclaredCeilings(tuple(ceilings[owner] for owner in sorted(ceilings)), source, places)


def check_ceilings(declared: DeclaredCeilings, quotas: Iterable[Quota]) -> Iterator[Finding]:
    """Yield a finding for each ceiling that no quota has, and for each limit above a ceiling.

    The guard `above_ceiling` blocks the plans that set these limits. It also compares the shares of
    limits of the whole cluster, which are known when the cluster is read.
    """
    if declared.source is None:
        return
    each = {ceiling.owner: dict(ceiling.each) for ceiling in declared.ceilings}
    remedy, sums = CODES[ABOVE_CEILING].remedy, defaultdict[tuple[str, str], float](float)
    owners: set[str] = set()
    for quota in quotas:
        if quota.owner is None:
            continue
        owners.add(quota.owner)
        for limit in (limit for limit in quota.limits if not limit.is_whole):
            sums[quota.owner, limit.key] += limit.value
            most = each.get(quota.owner, {}).get(limit.key)
            if most is not None and limit.value > most:
                entity, value = quota.entity.text, format_limit(limit.key, limit.value)
                message = f"{limit.key} of {entity} is {value}, above the "
                message += f"{format_limit(limit.key, most)} that {quota.owner} may declare."
                place = quota.source.locate(limit.span)
                yield Finding(ABOVE_CEILING, entity, limit.key, message, remedy, place)
    for ceiling in declared.ceilings:
        place = declared.source.locate(declared.places[ceiling.owner])
        if ceiling.owner not in owners:
            message = f"No quota of this cluster has the owner {show(ceiling.owner)}."
            close = get_close_matches(ceiling.owner, owners, 1)
            meant = f"Did you mean {show(close[0])}? " if close else ""
            idle = f"{meant}{CODES[IDLE_CEILING].remedy}"
            yield Finding(IDLE_CEILING, None, None, message, idle, place)
        for key, most in ceiling.total:
            if (total := min(sums[ceiling.owner, key], QUOTA_KEYS[key].unlimited)) > most:
                message = f"{ceiling.owner} declares {format_limit(key, total)} of {key} together, "
                message += f"above its {format_limit(key, most)}."
                yield Finding(ABOVE_CEILING, None, key, message, remedy, place)


def _read_total(source: Source, field: FieldNodes | None) -> Limits:
    limits = () if field is None else read_limits(source, field, ())
    return tuple(sorted((limit.key, limit.value) for limit in limits))
