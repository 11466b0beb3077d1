"""What `prune` removes, for people."""

from collections.abc import Iterable, Sequence

from quota_ops.report.screen import Row, Screen, Span, Table, line
from quota_ops.report.wording import file_size, moment, shown
from quota_ops.store.retention import Expired

_HEADINGS = ("cluster", "what", "number", "size")
_NOUNS = {
    "run": "run",
    "overview": "overview of all clusters",
    "ledger": "ledger file",
    "claim": "claim of a run",
}


def expired_screen(store: str, expired: Sequence[Expired], *, before: str, dry_run: bool) -> Screen:
    """A row for each cluster and kind, and what it comes to in all."""
    if not expired:
        return (line(f"Nothing to remove from {store}: no run began before {moment(before)}."),)
    groups: dict[tuple[str, str], list[Expired]] = {}
    for one in expired:
        groups.setdefault((one.cluster, one.what), []).append(one)
    rows = tuple(_row(cluster, what, found) for (cluster, what), found in sorted(groups.items()))
    verb = "would be removed" if dry_run else "removed"
    total = (
        f"{file_size(_size(expired))} {verb} from {store}; kept: what began after {moment(before)}"
    )
    unknown = [path for one in expired for path in one.unknown]
    kept = (
        f"{len(unknown):,} kept that no run recorded, for example {unknown[0]}" if unknown else ""
    )
    return (Table(_HEADINGS, rows), line(), line(total), *([line(kept)] if kept else []))


def _row(cluster: str, what: str, found: Sequence[Expired]) -> Row:
    noun = _NOUNS[what]
    cells = (shown(cluster), noun, f"{len(found):,}", file_size(_size(found)))
    return Row(tuple(map(Span, cells)))


def _size(expired: Iterable[Expired]) -> int:
    return sum(one.size for one in expired)
