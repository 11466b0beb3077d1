"""Findings about temporary limits that end soon or have ended, and profiles that nothing uses."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta

from quota_ops.desired.entries import place_of
from quota_ops.desired.profiles import Profiles
from quota_ops.desired.quotas_file import Quota, QuotasFile
from quota_ops.desired.terms import Terms
from quota_ops.desired.yaml.scalars import show
from quota_ops.desired.yaml.source import Span
from quota_ops.findings.codes import CODES, ENDED, ENDS_SOON, SOON_DAYS, UNUSED_PROFILE
from quota_ops.model.finding import Finding
from quota_ops.model.moment import iso_utc


def check_terms(files: Sequence[QuotasFile], profiles: Profiles, at: str) -> Iterator[Finding]:
    """Yield the findings of a cluster's files at a time, before they are expanded."""
    quotas = [quota for file in files for quota in file.quotas if quota.terms is not None]
    yield from _find_ends(quotas, at)
    yield from _find_unused(quotas, profiles)


def _find_ends(quotas: Iterable[Quota], at: str) -> Iterator[Finding]:
    soon = iso_utc(datetime.fromisoformat(at) + timedelta(days=SOON_DAYS))
    seen: set[tuple[str, Span]] = set()
    for quota in quotas:
        for span, what, until in _list_ends(quota.terms):
            if until > soon or (quota.source.name, span) in seen:  # the other names of a list
                continue
            seen.add((quota.source.name, span))
            code = ENDED if until <= at else ENDS_SOON
            words = f"{'ended' if until <= at else 'ends'} at {until}"
            message = f"{what} of {quota.entity} {words}."
            place = place_of(quota.source, span)
            yield Finding(code, quota.entity.text, None, message, CODES[code].remedy, place)


def _list_ends(terms: Terms | None) -> Iterator[tuple[Span, str, str]]:
    if terms is None:
        return
    if terms.until is not None:
        yield terms.until_span, "The quota", terms.until
    for override in terms.overrides:
        yield override.span, "The override", override.until


def _find_unused(quotas: Iterable[Quota], profiles: Profiles) -> Iterator[Finding]:
    if not profiles:
        return
    used = {quota.terms.profile.name for quota in quotas if quota.terms and quota.terms.profile}
    used |= {profile.extends.name for profile in profiles.values() if profile.extends}
    for profile in profiles.values():
        if profile.name not in used:
            message = f"No quota uses the profile {show(profile.name)}."
            place = place_of(profile.source, profile.span)
            remedy = CODES[UNUSED_PROFILE].remedy
            yield Finding(UNUSED_PROFILE, None, None, message, remedy, place)
