"""The step between reading the files and their rows: each quota gets its limits at a time.

Files that declare plain limits alone pass unchanged.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

from quota_ops.desired.expand.groups import expand_groups, list_used_names
from quota_ops.desired.expand.overrides import apply_terms
from quota_ops.desired.expand.profiles import ProfileLimits, refuse_invalid_profiles
from quota_ops.desired.expand.rates import add_cluster_limits
from quota_ops.desired.profiles import Profiles
from quota_ops.desired.quotas_file import Limit, Quota, QuotasFile
from quota_ops.model.usage.recorded import GroupUse
from quota_ops.model.usage.series import SeriesNames


def expand(
    files: Sequence[QuotasFile],
    profiles: Profiles,
    at: str,
    find_use: Callable[[Collection[SeriesNames]], GroupUse] | None = None,
) -> Sequence[QuotasFile]:
    """Return the files with the limits that apply at a time (ISO 8601, UTC).

    Limits of the whole cluster are not divided yet. A quota that has ended has none. Adds a problem
    for each profile that does not exist, or that does not fit its quota. `find_use` is called for
    the members of groups whose shares follow use; without it, their weights alone count.
    """
    if not profiles and not any(map(_is_expanded, files)):
        return files
    refuse_invalid_profiles(profiles)
    of_profiles = ProfileLimits(profiles)
    names = list_used_names(files) if find_use else set()
    use = find_use(names) if find_use and names else None
    return [_expand_file(file, of_profiles, at, use) for file in files]


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
