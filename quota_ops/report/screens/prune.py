"""The screen of `prune`."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from quota_ops.model.moment import iso_utc
from quota_ops.model.text import counted
from quota_ops.report.outline.formats import escape_text, file_size, moment
from quota_ops.report.outline.layout import Screen, Table, line
from quota_ops.store.retention import Expired

_HEADINGS = ("cluster", "what", "number", "size")
_NOUNS = {
    "run": "run",
    "overview": "overview of all clusters",
    "ledger": "ledger file",
    "claim": "claim of a run",
    "hold": "hold that has ended",
    "digest": "recorded day of use",
}


def expired_screen(store: str, expired: Sequence[Expired], *, before: str, dry_run: bool) -> Screen:
    """Return a row for each cluster and kind, and the total."""
    if not expired:
        return (line(f"Nothing to remove from {store}: no run began before {moment(before)}."),)
    groups: dict[tuple[str, str], list[Expired]] = {}
    for run in expired:
        groups.setdefault((run.cluster, run.what), []).append(run)
    rows = (
        (escape_text(cluster), _NOUNS[what], f"{len(found):,}", file_size(_size(found)))
        for (cluster, what), found in sorted(groups.items())
    )
    verb = "would be removed" if dry_run else "removed"
    size = file_size(_size(expired))
    total = f"{size} {verb} from {store}; kept: all that began after {moment(before)}"
    unknown = [path for run in expired for path in run.unknown]
    kept = f"kept, because no run recorded them: {counted(len(unknown), 'file')}"
    more = [line(f"{kept}, for example {unknown[0]}")] if unknown else []
    return (Table.of(_HEADINGS, rows), line(), line(total), *more)


def describe_newest_run(newest: datetime, now: datetime) -> str:
    """Return a warning that the run from which time counts is old, with possible causes."""
    return (
        f"The time to keep counts back from the run that began at {moment(iso_utc(newest))}, "
        f"{(now - newest).days:,} d before this machine's clock. If runs began since, a clock is "
        "or was wrong: synchronize it, and prune again after a few more runs."
    )


def _size(expired: Iterable[Expired]) -> int:
    return sum(run.size for run in expired)
