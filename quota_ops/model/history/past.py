"""The past of a cluster before a run, as its report shows it."""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from quota_ops.model.history.history import DayHistory, QuotaHistory
from quota_ops.model.quotas.difference import Difference
from quota_ops.model.quotas.quota import same
from quota_ops.model.quotas.rows import Key


class Past(Struct, frozen=True):
    """The history of a cluster before a run; `trouble` is why it is not known, or not complete."""

    quotas: Mapping[Key, QuotaHistory] = {}
    """The history of the quotas that differ, by entity and key."""
    days: tuple[DayHistory, ...] = ()
    trouble: str | None = None
    previous: str | None = None
    """The folder of the previous run, beside this run's folder; None if there is none."""
    compared: str | None = None
    """When the run before read the cluster to compare it; None if it did not, or is not known."""
    changes: tuple[tuple[str, ...], ...] = ()
    """The cells of each change of the last days before the run, the newest first."""

    @property
    def is_known(self) -> bool:
        """Whether an earlier run compared the cluster, so that drift can be new."""
        return self.trouble is None and any(day.looks for day in self.days)

    def find(self, row: Difference) -> QuotaHistory | None:
        """Return the history of a row; None if it has none."""
        return self.quotas.get(row.id) if self.quotas else None

    def is_new(self, row: Difference) -> bool | None:
        """Return whether this run is the first that finds a drift; None if it cannot be known."""
        if not row.is_drift or not self.is_known:
            return None
        known = self.find(row)
        return known is None or known.drifted_since is None

    def find_last_agreement(self, row: Difference) -> str | None:
        """Return when a run last found a quota of Git as it should be; None if that is not known.

        The run before did, if it compared the cluster and this run is the first that finds the
        drift.
        """
        is_declared = row.after is not None
        agreed = self.compared if is_declared and self.is_new(row) else None
        return max(filter(None, (agreed, row.since)), default=None)

    def find_alter(self, row: Difference) -> QuotaHistory | None:
        """Return the history of a row whose value an alter set; None if it did not."""
        known = self.find(row)
        if known is None or known.altered_at is None:
            return None
        is_last = known.set_at is None or known.altered_at >= known.set_at
        return known if is_last and same(known.altered_value, row.before) else None


def select_past(
    quotas: Iterable[QuotaHistory],
    days: Iterable[DayHistory],
    rows: Iterable[Difference],
    most: int,
) -> Past:
    """Return the history of the rows that differ, and of the newest `most` days."""
    wanted = {row.id for row in rows}
    found = {Key(quota.entity, quota.key): quota for quota in quotas}
    return Past({key: found[key] for key in sorted(wanted & found.keys())}, tuple(days)[-most:])
