"""The cases of tests/cases/diff as rows of tables; their README explains the format."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quota_ops.model.quotas.rows import ActualRow, DesiredRow, LedgerRow
from tests.yaml_cases import load_yaml

FOLDER = Path(__file__).parents[1] / "cases" / "diff"
KEY = "producer_byte_rate"
STATES = {"verified": 2, "intended": 3, "late": 1, "cleared": 2, "altered": 3, "altered-earlier": 1}
"""The word of a ledger row, and the number of the run that noted it: a late one is an earlier
run's intent."""


@dataclass(frozen=True)
class Case:
    """One case under the cluster id `cluster`; `expected` is (entity, key, kind, action)."""

    name: str
    cluster: str
    desired: tuple[DesiredRow, ...] = ()
    actual: tuple[ActualRow, ...] = ()
    ledger: tuple[LedgerRow, ...] = ()
    drift: str = "repair"
    clear_unmanaged: bool = False
    held: Mapping[str, str] = field(default_factory=dict)
    invalid_files: str | None = None
    expected: tuple[tuple[str, str, str, str], ...] = ()
    broker: str | None = field(default=None)


def cases() -> list[Case]:
    """Return every case, each as a cluster of its own."""
    return [
        _case(f"{path.stem}-{number}", values)
        for path in sorted(FOLDER.glob("*.yaml"))
        for number, values in enumerate(load_yaml(path.read_text()), start=1)
    ]


def _case(cluster: str, values: Mapping[str, Any]) -> Case:
    hands_off = {_entity(who): why for who, why in values.get("hands_off", {}).items()}
    outside = {_entity(who) for who in values.get("out_of_scope", [])}
    return Case(
        name=values["name"],
        cluster=cluster,
        desired=tuple(
            DesiredRow(cluster, entity, key, float(value), "team", None, "team.yaml", line)
            for line, (entity, key, value, _) in enumerate(_rows(values, "desired"), start=1)
        ),
        actual=tuple(
            ActualRow(
                cluster, entity, key, float(value), entity not in outside, hands_off.get(entity)
            )
            for entity, key, value, _ in _rows(values, "actual")
        ),
        ledger=tuple(
            LedgerRow(
                cluster,
                entity,
                key,
                None if value == "none" else float(value),
                "intended" if word == "late" else word.removesuffix("-earlier"),
                "team",
                "team.yaml",
                "c0ffee",
                f"run-{STATES[word]}",
                "2026-11-01T00:00:00Z",
                STATES[word],
            )
            for entity, key, value, word in _rows(values, "ledger")
        ),
        drift=values.get("drift", "repair"),
        clear_unmanaged=values.get("clear_unmanaged", False),
        held={_entity(who): why for who, why in values.get("held", {}).items()},
        invalid_files="".join(f"\n{name}" for name in values.get("invalid", [])) + "\n"
        if "invalid" in values
        else None,
        expected=tuple(sorted(_expected(text) for text in values["expected"])),
        broker=values.get("broker"),
    )


def _rows(values: Mapping[str, Any], side: str) -> Iterator[tuple[str, str, str, str]]:
    for text in values.get(side, []):
        words = text.split()
        state = words.pop() if words[-1] in STATES else "verified"
        who, *key, value = words
        yield _entity(who), key[0] if key else KEY, value, state


def _expected(text: str) -> tuple[str, str, str, str]:
    who, *key, kind, action = text.split()
    return _entity(who), key[0] if key else KEY, kind, action


def _entity(who: str) -> str:
    return who if "=" in who else f"user={who}"
