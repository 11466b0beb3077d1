"""The finding about more promises than a broker can serve."""

import json
from collections.abc import Iterable, Iterator, Mapping

from quota_ops.findings.codes import CODES, OVERCOMMITTED
from quota_ops.model.finding import Finding
from quota_ops.model.plans.capacity import Promises
from quota_ops.model.quotas.quota import format_limit
from quota_ops.model.text import counted, is_visible, plural

_NAMED = 3
"""How many owners a finding names."""


def find_overcommitted(
    promises: Iterable[Promises], uncounted: Mapping[str, int] | None = None
) -> Iterator[Finding]:
    """Yield a finding for each key of which more is promised than the factor allows.

    `uncounted` is how many limits of the whole cluster a key has beside its promises.
    """
    for promise in promises:
        if not promise.is_beyond:
            continue
        key = promise.key
        most = ", ".join(
            f"{_show_owner(owner)} {format_limit(key, value)}"
            for owner, value in promise.owners[:_NAMED]
        )
        message = (
            f"{format_limit(key, promise.total)} of {key} are promised on each broker,"
            f" {promise.times:.3g} times the capacity of {format_limit(key, promise.capacity)};"
            f" most by {most}."
        )
        if others := (uncounted or {}).get(key):
            verb = plural(others, "is", "are")
            message += f" {counted(others, 'limit')} of the whole cluster {verb} not counted here."
        yield Finding(OVERCOMMITTED, None, key, message, CODES[OVERCOMMITTED].remedy)


def _show_owner(owner: str | None) -> str:
    return "no owner" if owner is None else owner if is_visible(owner) else json.dumps(owner)
