"""The step between reading the files and their rows: each quota gets its limits at a time.

Files that declare plain limits alone pass unchanged.
"""

from collections.abc import Sequence
from typing import NamedTuple

from quota_ops.desired.expand.findings import check_terms
from quota_ops.desired.expand.groups import expand_groups
from quota_ops.desired.expand.overrides import apply_terms
from quota_ops.desired.expand.profiles import find_profile, refuse_invalid_profiles
from quota_ops.desired.profiles import Profiles
from quota_ops.desired.quotas_file import Quota, QuotasFile
from quota_ops.desired.terms import Terms
from quota_ops.model.finding import Finding


class Expansion(NamedTuple):
    """The files with plain limits, and the findings about what was expanded."""

    files: Sequence[QuotasFile]
    findings: tuple[Finding, ...] = ()


def expand(files: Sequence[QuotasFile], profiles: Profiles, at: str) -> Expansion:
    """Return the files with the limits that apply at a time (ISO 8601, UTC).

    A quota that has ended has none. Adds a problem for each profile that does not exist, or that
    does not fit its quota.
    """
    if not profiles and not any(map(_is_expanded, files)):
        return Expansion(files)
    refuse_invalid_profiles(profiles)
    expanded = [_expand_file(file, profiles, at) for file in files]
    return Expansion(expanded, tuple(check_terms(files, profiles, at)))


def _is_expanded(file: QuotasFile) -> bool:
    """Whether the file declares anything but plain limits."""
    return bool(file.groups) or any(quota.terms is not None for quota in file.quotas)


def _expand_file(file: QuotasFile, profiles: Profiles, at: str) -> QuotasFile:
    if not _is_expanded(file):
        return file
    quotas = (
        quota if quota.terms is None else _expand_quota(quota, quota.terms, profiles, at)
        for quota in file.quotas
    )
    return file._replace(quotas=(*quotas, *expand_groups(file, at)), groups=())


def _expand_quota(quota: Quota, terms: Terms, profiles: Profiles, at: str) -> Quota:
    standing = {limit.key: limit for limit in quota.limits}
    if terms.profile is not None:
        standing = find_profile(quota, terms.profile, profiles) | standing
    limits = apply_terms(terms, standing, at, quota.source.name)
    return quota._replace(limits=limits, terms=None)
