"""When temporary limits start and end."""

from collections.abc import Iterable, Iterator

from quota_ops.desired.quotas_file import QuotasFile
from quota_ops.desired.terms import Terms


def list_changes(files: Iterable[QuotasFile]) -> set[str]:
    """Return the times (ISO 8601, UTC) at which some limit of the files starts or ends."""
    times: set[str] = set()
    for file in files:
        for terms in (
            *(quota.terms for quota in file.quotas),
            *(group.terms for group in file.groups),
        ):
            if terms is not None:
                times.update(_list_times(terms))
    return times


def _list_times(terms: Terms) -> Iterator[str]:
    if terms.until is not None:
        yield terms.until
    for override in terms.overrides:
        if override.start:
            yield override.start
        yield override.until
