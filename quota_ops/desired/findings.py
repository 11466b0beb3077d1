"""The findings of a cluster's files, each with its place."""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from difflib import get_close_matches
from itertools import chain

from quota_ops.desired.cluster_file import ClusterFile
from quota_ops.desired.owners import Nodes
from quota_ops.desired.profiles import Profile, Profiles
from quota_ops.desired.quotas_file import Group, Limit, Quota, QuotasFile, Terms, quota_rows
from quota_ops.desired.yaml.source import Source, Span
from quota_ops.desired.yaml.values import show
from quota_ops.findings.codes import (
    ABOVE_CEILING,
    CODES,
    DEFAULT_AS_TEXT,
    ENDED,
    ENDS_SOON,
    IDLE_CEILING,
    MISSPELLED,
    MIXED_UNITS,
    NOBODY_APPROVES,
    OTHER_TYPE,
    SLIP,
    SOON_DAYS,
    TWIN,
    UNUSED_PROFILE,
    make_finding,
)
from quota_ops.findings.entity_rules import check_limit, check_names
from quota_ops.findings.shares import check_ceiling, find_overcommitted
from quota_ops.findings.silences import mark_silenced
from quota_ops.model.finding import Finding, Silence
from quota_ops.model.moment import iso_utc
from quota_ops.model.plans.capacity import sum_promises
from quota_ops.model.plans.ceilings import index_ceilings
from quota_ops.model.quotas.entity import CLIENT_ID, IP, USER, Entity
from quota_ops.model.quotas.quota import BYTE_UNITS, QUOTA_KEYS, add_limits, format_limit
from quota_ops.model.quotas.rows import Key
from quota_ops.model.text import plural

_LARGE = ("MB", "MiB", "GB", "GiB")
_UP = {"MB": "GB", "MiB": "GiB"}
_MOST = 1024
"""The largest number that people write before MB or MiB rather than a larger unit."""
_WORDS, _LONG_WORD = re.compile(r"[^\d=]{4,}"), re.compile(r"[^\W_]{5,}")
_SEPARATORS, _MOST_MIXED = str.maketrans("_.", "--"), 3
_BYTES, _DECIMAL, _BINARY = "B", ("kB", "MB", "GB"), ("KiB", "MiB", "GiB")
_SMALL = max(key.starving for key in QUOTA_KEYS.values())
"""No rule finds a higher limit small, whatever its key."""


Names = Mapping[tuple[str, str], str]
"""The place of each name in the files, by its type and itself."""


def check_files(
    files: Sequence[QuotasFile], cluster: ClusterFile, of_terms: Iterable[Finding]
) -> tuple[tuple[Finding, ...], tuple[Silence, ...]]:
    """Return the findings of a cluster's expanded files, silenced ones included, and the silences.

    `of_terms` are those of `check_terms`, which sees the files before they are expanded.
    """
    quotas = tuple(chain.from_iterable(file.quotas for file in files))
    own = (silence for quota in quotas for silence in quota.silences)
    silences = (*cluster.silences, *own)
    found = chain(
        _check_quotas(quotas, _list_owned_names(cluster.source, cluster.owner_nodes)),
        _check_units(files, cluster.profiles.values()),
        of_terms,
        _check_capacity(cluster, quotas),
        _check_ceilings(cluster, quotas),
        _check_named(cluster),
        _find_placeholders(cluster.source, cluster.owner_nodes),
    )
    return tuple(mark_silenced(found, silences)), silences


def _check_quotas(quotas: Sequence[Quota], owned: Names) -> Iterator[Finding]:
    """Yield the findings of all quotas of a cluster, before silences apply.

    `owned` are the users and client ids that cluster.yaml lists under owners.
    """
    for quota in quotas:
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
    yield from _find_slips(quotas)
    if defaults := [quota for quota in quotas if quota.entity.has_default]:
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


def _check_units(files: Iterable[QuotasFile], profiles: Iterable[Profile]) -> Iterator[Finding]:
    """Yield a finding for each limit of a cluster in the less common family of units.

    Limits of profiles, and the budgets and minima of groups, count too.
    """
    with_units = [
        (*written, _split_unit(written[2].text)[1])
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
        yield make_finding(MIXED_UNITS, message, entity=entity, key=limit.key, place=place)


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
            yield _of_entity(TWIN, quota, message)


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
            yield _of_entity(OTHER_TYPE, quota, message)


def _find_misspelled(quotas: Iterable[Quota], owned: Names) -> Iterator[Finding]:
    """Yield a finding for each name that is nearly an owned one, or one of an earlier entity."""
    quota_of: dict[tuple[str, str], Quota | None] = dict.fromkeys(owned)
    for quota in quotas:
        for kind, name in quota.entity.parts:
            if name is not None and kind != IP:
                quota_of.setdefault((kind, name), quota)
    order = {part: at for at, part in enumerate(quota_of)}
    pairs = (tuple(sorted(pair, key=order.__getitem__)) for pair in find_near(quota_of))
    for meant, slip in dict.fromkeys(pairs):
        if (wrong := quota_of[slip]) is not None:
            other = quota_of[meant]
            place = owned[meant] if other is None else _name_place(other)
            message = f"{slip[0]} {slip[1]} is nearly {meant[0]} {meant[1]} at {place}."
            doubt = f"Did you mean {meant[1]}?" if other is None else "Either may be the slip."
            yield _of_entity(MISSPELLED, wrong, message, f"{doubt} {CODES[MISSPELLED].remedy}")


def find_near(
    parts: Collection[tuple[str, str]],
) -> Iterator[tuple[tuple[str, str], tuple[str, str]]]:
    """Yield the pairs of names of one type that differ as if one of them were misspelled.

    They differ in separators alone; or, without digits, in an inner letter that one of them lacks,
    in one of a long word that is replaced, or in the order of up to three letters. Names with
    digits, and those like `svc-a` and `svc-b`, are of a series. Each name is compared by keys, so
    the time grows with the letters of all names.
    """
    first: dict[tuple[str, str | int, str], tuple[str, str]] = {}
    mixed: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for kind, name in parts:
        keys: list[tuple[str, str | int, str]] = []
        if "_" in name or "." in name:
            plain = (kind, name.translate(_SEPARATORS))
            if plain in parts:
                yield (kind, name), plain
            else:
                keys.append((kind, "", plain[1]))
        if _WORDS.fullmatch(name):
            words = _LONG_WORD.finditer(name)
            in_long = {at for word in words for at in range(word.start() + 1, word.end() - 1)}
            for at in range(1, len(name) - 1):
                shorter = name[:at] + name[at + 1 :]
                if (kind, shorter) in parts:
                    yield (kind, name), (kind, shorter)
                if at in in_long:
                    keys.append((kind, at, shorter))
            alike = mixed[kind, "".join(sorted(name))]
            yield from (((kind, name), (kind, other)) for other in alike if _is_mixed(name, other))
            alike.append(name)
        for key in keys:
            other = first.setdefault(key, (kind, name))
            if other != (kind, name):
                yield (kind, name), other


def _is_mixed(name: str, other: str) -> bool:
    """Whether names with equal letters have up to three of them in another order, not the first."""
    differing = [at for at, pair in enumerate(zip(name, other, strict=True)) if len({*pair}) > 1]
    return differing[0] > 0 and differing[-1] - differing[0] < _MOST_MIXED


def _name_place(quota: Quota) -> str:
    return f"{quota.source.name}:{quota.span.line + 1}"


def _of_entity(code: str, quota: Quota, message: str, remedy: str = "") -> Finding:
    place = quota.source.locate(quota.span)
    return make_finding(code, message, remedy, entity=quota.entity.text, place=place)


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
            found = make_finding(SLIP, message, entity=quota.entity.text, key=limit.key)
            yield _at(found, quota, limit)


def _split_unit(text: str) -> tuple[float, str]:
    """Return the number and the unit of a limit as written; no unit for a limit in words."""
    unit = text.strip("0123456789. ").removesuffix("/s")
    number = text.strip().removesuffix("/s").removesuffix(unit)
    return (float(number), unit) if unit in BYTE_UNITS else (0.0, "")


def _shadowed(quotas: Iterable[Quota], defaults: Iterable[Quota]) -> Iterator[Finding]:
    from quota_ops.findings.shadowing import Hiding, report_shadow  # needs defaults

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


def _check_capacity(cluster: ClusterFile, quotas: Iterable[Quota]) -> Iterator[Finding]:
    """Yield a finding for each key that is promised beyond the factor.

    Limits of the whole cluster do not count: each broker's share is known when the cluster is read.
    """
    if cluster.policy.capacity is None:
        return
    rows = list(quota_rows(quotas, cluster.policy.cluster))
    uncounted = Counter(row.key for row in rows if row.whole is not None)
    promises = sum_promises(cluster.policy.capacity, [row for row in rows if row.whole is None])
    for finding in find_overcommitted(promises, uncounted):
        yield finding._replace(place=cluster.locate("capacity", finding.key))


def _check_ceilings(cluster: ClusterFile, quotas: Iterable[Quota]) -> Iterator[Finding]:
    """Yield a finding for each ceiling that no quota has, and for each limit above a ceiling.

    The guard `above_ceiling` blocks the plans that set these limits. It also compares the shares of
    limits of the whole cluster, which are known when the cluster is read.
    """
    ceilings = cluster.policy.ceilings
    if not ceilings:
        return
    values = defaultdict[tuple[str, str], list[float]](list)
    owners, highest = set[str](), index_ceilings(ceilings)
    for quota in quotas:
        if quota.owner is None:
            continue
        owners.add(quota.owner)
        for limit in (limit for limit in quota.limits if not limit.is_whole):
            values[quota.owner, limit.key].append(limit.value)
            yield from _compare_with_ceiling(quota, limit, highest)
    for ceiling in ceilings:
        owner, place = ceiling.owner, cluster.locate("ceilings", ceiling.owner)
        if owner not in owners:
            message = f"No quota of this cluster has the owner {show(owner)}."
            close = get_close_matches(owner, owners, 1)
            meant = f"Did you mean {show(close[0])}? " if close else ""
            idle = f"{meant}{CODES[IDLE_CEILING].remedy}"
            yield make_finding(IDLE_CEILING, message, idle, place=place, subject=owner)
        for key, most in ceiling.total:
            if (total := min(add_limits(values[owner, key]), QUOTA_KEYS[key].unlimited)) > most:
                message = f"{owner} declares {format_limit(key, total)} of {key} together, "
                message += f"above its {format_limit(key, most)}."
                yield make_finding(ABOVE_CEILING, message, key=key, place=place, subject=owner)


def _compare_with_ceiling(
    quota: Quota, limit: Limit, most: Mapping[tuple[str | None, str], float], how: str = ""
) -> Iterator[Finding]:
    """Yield a finding if a limit of one broker is above the ceiling of its owner."""
    if (quota.owner, limit.key) in most and not limit.is_whole:
        row = Key(quota.entity.text, limit.key)
        for finding in check_ceiling(row, limit.value, quota.owner, most, how):
            yield _at(finding, quota, limit)


_PLACEHOLDER = "@OWNER/"
"""What the code owners begin with that `quota-ops init` writes."""


_EXACT = {"users": USER, "client_ids": CLIENT_ID}
_NAMED = {**_EXACT, "user_prefixes": USER, "client_id_prefixes": CLIENT_ID}
"""The fields of an owner that have names, and the type of these."""


def _list_owned_names(source: Source, nodes: Nodes) -> dict[tuple[str, str], str]:
    """Return the place of each user and client id that is listed by its exact name."""
    return {
        (_EXACT[claim.field], claim.text): f"{source.name}:{node.start_mark.line + 1}"
        for (_, claim), node in nodes.items()
        if claim and claim.field in _EXACT
    }


def _check_named(cluster: ClusterFile) -> Iterator[Finding]:
    """Yield the findings about names under owners and protect: they would match no client.

    A prefix such as `all` is no name that is meant for the default.
    """
    owned = (
        (_NAMED[claim.field], claim.text, node, claim.field in _EXACT)
        for (_, claim), node in cluster.owner_nodes.items()
        if claim and claim.field in _NAMED
    )
    protected = (
        (part.type, part.name, node, True)
        for entry, node in cluster.protect.items()
        for part in entry.parts
        if part.name is not None and part.type != IP
    )
    for kind, name, node, is_whole in chain(owned, protected):
        for finding in check_names(Entity.of({kind: name})):
            if finding.code == DEFAULT_AS_TEXT and not is_whole:
                continue
            yield finding._replace(place=cluster.source.locate(cluster.source.find_span(node)))


def _find_placeholders(source: Source, nodes: Nodes) -> Iterator[Finding]:
    """Yield a finding for each code owner that nobody has replaced since `quota-ops init`."""
    for (_, claim), node in nodes.items():
        if claim and claim.field == "code_owners" and claim.text.startswith(_PLACEHOLDER):
            message = f"{claim.text} is a placeholder: no team of the code host has this name."
            place = source.locate(source.find_span(node))
            yield make_finding(NOBODY_APPROVES, message, place=place, subject=claim.text)


def check_terms(files: Sequence[QuotasFile], cluster: ClusterFile, at: str) -> Iterator[Finding]:
    """Yield the findings of a cluster's files at a time, before they are expanded."""
    declared = [
        (file.source, named.terms, named)
        for file in files
        for named in chain[Quota | Group](file.quotas, file.groups)
        if named.terms is not None
    ]
    yield from _find_ends(declared, at)
    yield from _find_unused((terms for _, terms, _ in declared), cluster.profiles)
    highest = index_ceilings(cluster.policy.ceilings)
    for quota in (quota for file in files for quota in file.quotas):
        for override in quota.terms.overrides if quota.terms else ():
            for limit in override.limits if override.start > at else ():
                since = f" from {override.start}"
                yield from _compare_with_ceiling(quota, limit, highest, since)


def _find_ends(
    declared: Iterable[tuple[Source, Terms, Quota | Group]], at: str
) -> Iterator[Finding]:
    soon = iso_utc(datetime.fromisoformat(at) + timedelta(days=SOON_DAYS))
    seen: set[tuple[str, Span]] = set()
    for source, terms, quota in declared:
        for span, what, until in _list_ends(terms):
            if until > soon or (source.name, span) in seen:  # reported once for all names of a list
                continue
            seen.add((source.name, span))
            code = ENDED if until <= at else ENDS_SOON
            words = f"{'ended' if until <= at else 'ends'} at {until}"
            entity = quota.entity.text if isinstance(quota, Quota) else None
            name = f"group {show(quota.name)}" if isinstance(quota, Group) else entity
            place = source.locate(span)
            subject = f"{what} of {name}"
            message = f"{subject} {words}."
            yield make_finding(code, message, entity=entity, place=place, subject=subject)


def _list_ends(terms: Terms) -> Iterator[tuple[Span, str, str]]:
    if terms.until is not None:
        yield terms.until_span, "The quota", terms.until
    for override in terms.overrides:
        yield override.span, "The override", override.until


def _find_unused(declared: Iterable[Terms], profiles: Profiles) -> Iterator[Finding]:
    used = {terms.profile.name for terms in declared if terms.profile is not None}
    used |= {profile.extends.name for profile in profiles.values() if profile.extends}
    for profile in profiles.values():
        if profile.name not in used:
            message = f"No quota uses the profile {show(profile.name)}."
            place = profile.source.locate(profile.span)
            yield make_finding(UNUSED_PROFILE, message, place=place, subject=profile.name)
