"""The step between reading the files and their rows: each quota gets its limits at a time.

Files that declare plain limits alone pass unchanged.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from quota_ops.desired.expand.groups import expand_groups, list_used_names
from quota_ops.desired.expand.overrides import apply_terms
from quota_ops.desired.expand.profiles import ProfileLimits, refuse_invalid_profiles
from quota_ops.desired.expand.rates import add_cluster_limits
from quota_ops.desired.groups import Group
from quota_ops.desired.limits import Limit
from quota_ops.desired.profiles import Profiles
from quota_ops.desired.quotas_file import Quota, QuotasFile
from quota_ops.desired.terms import Terms
from quota_ops.desired.yaml.scalars import show
from quota_ops.desired.yaml.source import Source, Span
from quota_ops.findings.codes import CODES, ENDED, ENDS_SOON, SOON_DAYS, UNUSED_PROFILE
from quota_ops.model.finding import Finding
from quota_ops.model.moment import iso_utc
from quota_ops.model.usage.recorded import GroupUse
from quota_ops.model.usage.series import SeriesNames


class Expansion(NamedTuple):
    """The files with plain limits, and the findings about what was expanded."""

    files: Sequence[QuotasFile]
    findings: tuple[Finding, ...] = ()


def expand(
    files: Sequence[QuotasFile],
    profiles: Profiles,
    at: str,
    find_use: Callable[[Collection[SeriesNames]], GroupUse] | None = None,
) -> Expansion:
    """Return the files with the limits that apply at a time (ISO 8601, UTC).

    Limits of the whole cluster are not divided yet. A quota that has ended has none. Adds a problem
    for each profile that does not exist, or that does not fit its quota. `find_use` is called for
    the members of groups whose shares follow use; without it, their weights alone count.
    """
    if not profiles and not any(map(_is_expanded, files)):
        return Expansion(files)
    refuse_invalid_profiles(profiles)
    of_profiles = ProfileLimits(profiles)
    names = list_used_names(files) if find_use else set()
    use = find_use(names) if find_use and names else None
    expanded = [_expand_file(file, of_profiles, at, use) for file in files]
    return Expansion(expanded, tuple(check_terms(files, profiles, at)))


def _is_expanded(file: QuotasFile) -> bool:
    """Whether the file declares anything but plain limits."""
    return bool(file.groups) or any(quota.terms is not None for quota in file.quotas)


def _expand_file(
    file: QuotasFile, of_profiles: ProfileLimits, at: str, use: GroupUse | None
) -> QuotasFile:
    if not _is_expanded(file):
        return file
    quotas = _expand_quotas(file.quotas, of_profiles, at)
    return file._replace(quotas=(*quotas, *expand_groups(file, at, use)))


def _expand_quotas(quotas: Iterable[Quota], of_profiles: ProfileLimits, at: str) -> Iterator[Quota]:
    last: Quota | None = None
    limits: tuple[Limit, ...] = ()
    for quota in quotas:
        terms = quota.terms
        if terms is None:
            yield quota
            continue
        is_of_same_list = last is not None and last.terms is terms  # each name has the same limits
        if not is_of_same_list:
            standing = {limit.key: limit for limit in quota.limits}
            add_cluster_limits(standing, quota, terms.cluster_limits)
            if terms.profile is not None:
                standing = of_profiles.find(quota, terms.profile) | standing
            limits, last = apply_terms(terms, standing, at, quota.source.name), quota
        yield quota._replace(limits=limits, terms=None, topics=terms.topics)


_Declared = tuple[Source, Terms, Quota | Group]
"""What has terms, in its file."""


def check_terms(files: Sequence[QuotasFile], profiles: Profiles, at: str) -> Iterator[Finding]:
    """Yield the findings of a cluster's files at a time, before they are expanded."""
    declared = [found for file in files for found in _list_terms(file)]
    yield from _find_ends(declared, at)
    yield from _find_unused((terms for _, terms, _ in declared), profiles)


def _list_terms(file: QuotasFile) -> Iterator[_Declared]:
    for quota in file.quotas:
        if quota.terms is not None:
            yield file.source, quota.terms, quota
    for group in file.groups:
        if group.terms is not None:
            yield file.source, group.terms, group


def _find_ends(declared: Iterable[_Declared], at: str) -> Iterator[Finding]:
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
            message = f"{what} of {name} {words}."
            yield Finding(code, entity, None, message, CODES[code].remedy, place)


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
            remedy = CODES[UNUSED_PROFILE].remedy
            yield Finding(UNUSED_PROFILE, None, None, message, remedy, place)
