"""What happened to a cluster before a run, as far as its report shows it."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from quota_ops.model.difference import Difference
from quota_ops.model.history import DayHistory, QuotaHistory
from quota_ops.model.quota import json_number, same
from quota_ops.model.rows import Key


@dataclass(frozen=True, slots=True)
class Past:
    """The history of a cluster before a run; `trouble` is why it is not known, or not complete."""

    quotas: Mapping[Key, QuotaHistory] = field(default_factory=dict)
    """The history of the quotas that differ, by entity and key."""
    days: tuple[DayHistory, ...] = ()
    trouble: str | None = None
    previous: str | None = None
    """The folder of the run before, beside that of this run; None if there is none."""
    changes: tuple[tuple[str, ...], ...] = ()
    """The cells of each change of the last days before the run, the newest first."""

    @property
    def is_known(self) -> bool:
        """Whether an earlier run compared the cluster, so that drift can be new."""
        return self.trouble is None and any(day.looks for day in self.days)

    def is_new(self, row: Difference) -> bool | None:
        """Return whether this run is the first that finds a drift; None if it cannot be known."""
        if not self.is_known or not row.is_drift:
            return None
        known = self.quotas.get(row.id)
        return known is None or known.drifted_since is None

    def find_alter(self, row: Difference) -> QuotaHistory | None:
        """Return the history of a row whose value an alter set; None if it did not."""
        known = self.quotas.get(row.id)
        if known is None or known.altered_at is None:
            return None
        is_last = known.set_at is None or known.altered_at >= known.set_at
        return known if is_last and same(known.altered_value, row.before) else None

    def as_json(self) -> dict[str, Any]:
        """Return the values as JSON stores them."""
        return {
            "trouble": self.trouble,
            "previous": self.previous,
            "changes": self.changes,
            "days": [one._asdict() for one in self.days],
            "quotas": [
                {
                    name: json_number(value) if isinstance(value, float) else value
                    for name, value in one._asdict().items()
                }
                for one in self.quotas.values()
            ],
        }

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Self:
        """Parse what `as_json` returned; raises KeyError or TypeError if it is something else."""
        quotas = (QuotaHistory(**_numbers(one)) for one in values["quotas"])
        days = tuple(DayHistory(**one) for one in values["days"])
        found = {Key(one.entity, one.key): one for one in quotas}
        changes = tuple(tuple(map(str, one)) for one in values["changes"])
        return cls(found, days, values["trouble"], values["previous"], changes)


_VALUES = ("desired", "actual", "set_value", "altered_value")


def _numbers(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values with NaN and infinity as numbers, which JSON has as texts."""
    found = {name: values[name] for name in _VALUES}
    return {**values, **{name: one if one is None else float(one) for name, one in found.items()}}


def select_past(
    quotas: Iterable[QuotaHistory],
    days: Iterable[DayHistory],
    rows: Iterable[Difference],
    most: int,
) -> Past:
    """Return the history of the rows that differ, and of the newest `most` days."""
    wanted = {row.id for row in rows}
    found = {Key(one.entity, one.key): one for one in quotas}
    return Past({key: found[key] for key in sorted(wanted & found.keys())}, tuple(days)[-most:])
