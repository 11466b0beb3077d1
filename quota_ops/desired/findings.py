"""The findings of a cluster's files, each with its place."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from quota_ops.desired.limits import Limit
from quota_ops.desired.profiles import Profile
from quota_ops.desired.quotas_file import Quota, QuotasFile
from quota_ops.desired.yaml.shapes import DEFAULT
from quota_ops.desired.yaml.source import Source
from quota_ops.findings.codes import CODES, MISSPELLED, MIXED_UNITS, OTHER_TYPE, SLIP, TWIN
from quota_ops.findings.entity_rules import SUSPICIOUS_TEXTS, check_limit, check_names
from quota_ops.model.finding import Finding
from quota_ops.model.quotas.entity import IP, Entity
from quota_ops.model.quotas.quota import BYTE_UNITS, QUOTA_KEYS
from quota_ops.model.text import plural

_ESCAPE = "\\"
"""With an escape, a name may contain characters that the text of the file does not."""
_LARGE = ("MB", "MiB", "GB", "GiB")
_UP = {"MB": "GB", "MiB": "GiB"}
_MOST = 1024
"""The largest number that people write before MB or MiB rather than a larger unit."""
_WORD = re.compile(r"[^\d=]{4,}")
_BYTES, _DECIMAL, _BINARY = "B", ("kB", "MB", "GB"), ("KiB", "MiB", "GiB")
_SMALL = max(key.starving for key in QUOTA_KEYS.values())
"""No rule finds a higher limit small, whatever its key."""


Names = Mapping[tuple[str, str], str]
"""The place of each name in the files, by its type and itself."""


def check_quotas(by_file: Sequence[Sequence[Quota]], owned: Names) -> Iterator[Finding]:
    """Yield the findings of all quotas of a cluster, before silences apply.

    `owned` are the users and client ids that cluster.yaml lists under owners. Most files have no
    finding, and a search of their text shows that quickly.
    """
    quotas = list(chain.from_iterable(by_file))
    for quota in _select_files_with(by_file, *SUSPICIOUS_TEXTS, _ESCAPE, beyond_ascii=True):
        for finding in check_names(quota.entity):
            yield finding._replace(place=quota.source.locate(quota.span))
    small = [
        (quota, limit)
        for quota in quotas
        for limit in quota.limits
        if limit.value < _SMALL or (limit.derivation and limit.derivation.returns_to)
    ]
    yield from _check_small(small)
    yield from _find_twins(quotas)
    yield from _find_other_types(quotas, owned)
    yield from _find_misspelled(quotas, owned)
    if with_units := _select_files_with(by_file, _BYTES):
        yield from _find_slips(with_units)
    if defaults := [
        quota for quota in _select_files_with(by_file, DEFAULT, _ESCAPE) if quota.entity.has_default
    ]:
        yield from _shadowed(quotas, defaults)


def _check_small(small: Iterable[tuple[Quota, Limit]]) -> Iterator[Finding]:
    """Yield a finding for each small limit; of a group, for the smallest share of a budget."""
    shares: dict[tuple[str, str, str], tuple[Quota, Limit]] = {}
    for quota, limit in small:
        if quota.group is None:
            for value, since in _list_values(limit):
                for finding in check_limit(quota.entity.text, limit.key, value, since=since):
                    yield _at(finding, quota, limit)
            continue
        least = shares.setdefault((quota.source.name, quota.group, limit.key), (quota, limit))
        if limit.value < least[1].value:
            shares[quota.source.name, quota.group, limit.key] = quota, limit
    for quota, limit in shares.values():
        for finding in check_limit(quota.entity.text, limit.key, limit.value, is_share=True):
            yield _at(finding, quota, limit)


def _list_values(limit: Limit) -> Iterator[tuple[float, str | None]]:
    """Yield the value of a limit, and the one that it returns to with the time of that."""
    yield limit.value, None
    if limit.derivation and limit.derivation.returns_to:
        yield limit.derivation.returns_to, limit.derivation.until


def _select_files_with(
    by_file: Sequence[Sequence[Quota]], *texts: str, beyond_ascii: bool = False
) -> list[Quota]:
    """Return the quotas of the files that contain one of the texts."""
    found: list[Quota] = []
    for quotas in by_file:
        text = quotas[0].source.text if quotas else ""
        if (beyond_ascii and not text.isascii()) or any(part in text for part in texts):
            found += quotas
    return found


def check_units(files: Iterable[QuotasFile], profiles: Iterable[Profile]) -> Iterator[Finding]:
    """Yield a finding for each limit of a cluster in the less common family of units.

    Limits of profiles, and the budgets and minima of groups, count too.
    """
    with_units = [
        (*written, written[2].text.strip("0123456789. ").removesuffix("/s"))
        for written in _list_written(files, profiles)
        if _BYTES in written[2].text
    ]
    families = [
        [written for written in with_units if written[3] in units] for units in (_DECIMAL, _BINARY)
    ]
    fewer, more = sorted(families, key=len)
    are = plural(len(more), "limit of the cluster is", "limits of the cluster are")
    family = "binary" if fewer is families[0] else "decimal"
    for whose, source, limit, unit in fewer:
        entity = whose.text if isinstance(whose, Entity) else None
        message = f"{limit.key} of {whose} is in {unit}, but {len(more):,} {are} in "
        message += f"{family} units, for example {more[0][3]}."
        place = source.locate(limit.span)
        yield Finding(MIXED_UNITS, entity, limit.key, message, CODES[MIXED_UNITS].remedy, place)


def _list_written(
    files: Iterable[QuotasFile], profiles: Iterable[Profile]
) -> Iterator[tuple[Entity | str, Source, Limit]]:
    """Yield each limit as written: whose it is, its file, and the limit."""
    for file in files:
        for quota in file.quotas if _BYTES in file.source.text else ():
            yield from ((quota.entity, file.source, limit) for limit in quota.limits)
        for group in file.groups:
            for limit in (*group.budget, *group.minimum):
                yield f"the group {group.name}", file.source, limit
    for profile in profiles:
        if profile.factor is None:  # else other clusters have these limits too
            for limit in profile.limits:
                yield f"the profile {profile.name}", profile.source, limit


def _find_twins(quotas: Iterable[Quota]) -> Iterator[Finding]:
    """Yield a finding for each entity whose names differ from those of an earlier one by case.

    The parts of a certificate's name may also be in another order.
    """
    first: dict[str, Quota] = {}
    for quota in quotas:
        known = first.setdefault(_fold(quota.entity.text), quota)
        if known is not quota and known.entity != quota.entity:
            text = quota.entity.text
            is_case = text.casefold() == known.entity.text.casefold()
            how = "only in case" if is_case else "only in the order of its parts"
            message = f"{text} differs {how} from {known.entity} at {_name_place(known)}: "
            message += "Kafka treats them as two."
            yield _of_entity(TWIN, quota, message, CODES[TWIN].remedy)


def _fold(entity: str) -> str:
    folded, start = entity.casefold(), 'user="'
    if not folded.startswith(start) or "=" not in folded[len(start) :]:
        return folded
    return ",".join(sorted(folded.removeprefix(start).removesuffix('"').split(",")))


def _find_other_types(quotas: Iterable[Quota], owned: Names) -> Iterator[Finding]:
    """Yield a finding for each entity whose name an earlier one or an owner has as another type."""
    first = {name: (kind, place) for (kind, name), place in owned.items()}
    for quota in quotas:
        kind, name = _find_only_name(quota.entity)
        if name is None or kind == IP or (kind, name) in owned:
            continue
        other, place = first.setdefault(name, (kind, _name_place(quota)))
        if kind != other:
            message = f"{name} is a {kind} here and a {other} at {place}."
            yield _of_entity(OTHER_TYPE, quota, message, CODES[OTHER_TYPE].remedy)


def _find_misspelled(quotas: Iterable[Quota], owned: Names) -> Iterator[Finding]:
    """Yield a finding for each name that is nearly an owned one, or one of an earlier entity.

    Names with digits are left out: those of a series differ by few characters.
    """
    quota_of: dict[tuple[str, str], Quota | None] = dict.fromkeys(
        part for part in owned if _WORD.fullmatch(part[1])
    )
    for quota in quotas:
        for kind, name in quota.entity.parts:
            if name is not None and kind != IP and _WORD.fullmatch(name):
                quota_of.setdefault((kind, name), quota)
    order = {part: at for at, part in enumerate(quota_of)}
    for kind, name in quota_of:
        for near in _shorten_and_swap(name):
            if (kind, near) not in quota_of or (len(near) == len(name) and near <= name):
                continue  # of two names with swapped letters, each is found from the other
            meant, slip = sorted(((kind, name), (kind, near)), key=order.__getitem__)
            if (wrong := quota_of[slip]) is not None:
                other = quota_of[meant]
                place = owned[meant] if other is None else _name_place(other)
                message = f"{kind} {slip[1]} is nearly {kind} {meant[1]} at {place}."
                doubt = f"Did you mean {meant[1]}?" if other is None else "Either may be the slip."
                yield _of_entity(MISSPELLED, wrong, message, f"{doubt} {CODES[MISSPELLED].remedy}")


def _shorten_and_swap(name: str) -> Iterable[str]:
    """Return a name without each of its inner letters, and with two of them swapped."""
    inner = range(1, len(name) - 1)
    shorter = (name[:at] + name[at + 1 :] for at in inner)
    swapped = (name[:at] + name[at + 1] + name[at] + name[at + 2 :] for at in inner)
    return dict.fromkeys(chain(shorter, swapped))


def _name_place(quota: Quota) -> str:
    return f"{quota.source.name}:{quota.span.line + 1}"


def _of_entity(code: str, quota: Quota, message: str, remedy: str) -> Finding:
    place = quota.source.locate(quota.span)
    return Finding(code, quota.entity.text, None, message, remedy, place)


def _find_only_name(entity: Entity) -> tuple[str, str | None]:
    """Return the type and the name of an entity with one name; a pair may have a default too."""
    named = [part for part in entity.parts if part[1] is not None]
    return named[0] if len(named) == 1 else ("", None)


def _find_slips(quotas: Iterable[Quota]) -> Iterator[Finding]:
    """Yield a finding for each byte rate that looks as if its unit were wrong."""
    for quota in quotas:
        seen: dict[float, Limit] = {}
        for limit in quota.limits:
            number, unit = _split_unit(limit.text)
            if unit not in _LARGE:
                continue
            other = seen.setdefault(number, limit)
            if _split_unit(other.text)[1] != unit:
                what = f"the same number as {other.key}, {other.text}, in another unit"
            elif number > _MOST and unit in _UP:
                what = f"about {limit.value / BYTE_UNITS[_UP[unit]]:.3g} {_UP[unit]}"
            else:
                continue
            message = f"{limit.key} of {quota.entity.text} is {limit.text}, {what}."
            finding = Finding(SLIP, quota.entity.text, limit.key, message, CODES[SLIP].remedy)
            yield _at(finding, quota, limit)


def _split_unit(text: str) -> tuple[float, str]:
    """Return the number and the unit of a limit as written; no unit for a limit in words."""
    unit = text.strip("0123456789. ").removesuffix("/s")
    number = text.strip().removesuffix("/s").removesuffix(unit)
    return (float(number), unit) if unit in BYTE_UNITS else (0.0, "")


def _shadowed(quotas: Iterable[Quota], defaults: Iterable[Quota]) -> Iterator[Finding]:
    from quota_ops.findings.shadowing import Hiding, report_shadow  # noqa: PLC0415 - needs defaults

    stored: dict[str, dict[Entity, Quota]] = {}
    for quota in defaults:
        for limit in quota.limits:
            stored.setdefault(limit.key, {})[quota.entity] = quota
    hiding = {key: Hiding(entities) for key, entities in stored.items()}
    types = {kind for found in hiding.values() for kind in found.types}
    single = [quota for quota in quotas if len(quota.entity.parts) == 1]
    for quota in [quota for quota in single if quota.entity.parts[0][0] in types]:
        for limit in quota.limits:
            among = hiding.get(limit.key)
            shadow = among.shadow(quota.entity) if among else None
            if shadow is not None:
                by = stored[limit.key][shadow.by]
                place = by.source.locate(by.span)
                where = f"{place.file}:{place.line}"
                yield _at(report_shadow(shadow, limit.key, where), quota, limit)


def _at(finding: Finding, quota: Quota, limit: Limit) -> Finding:
    return finding._replace(place=quota.source.locate(limit.span))
