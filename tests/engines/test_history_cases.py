"""What a history says of a quota, as a table of cases."""

from pathlib import Path
from typing import Any

import pytest

from quota_ops.model.history.history import HISTORY, QUOTAS, HistoryRow
from quota_ops.sql.embedded import fold_history
from quota_ops.store.places import parquet
from tests.yaml_cases import load_yaml

CASES: tuple[Any, ...] = tuple(
    pytest.param(case, id=case["case"])
    for case in load_yaml(
        (Path(__file__).parents[1] / "cases" / "history" / "drifts.yaml").read_text("utf-8")
    )
)
NOTHING: dict[str, Any] = dict.fromkeys(HistoryRow._fields)
QUOTA = {"entity": "user=a", "key": "producer_byte_rate", "owner": "team"}
OUTCOMES = {
    "changed": "accepted",
    "refused": "refused",
    "altered": "accepted",
    "restored": "accepted",
}
BY = {"author": "anna", "run_reason": "INC-31"}


def moment(text: str) -> str:
    """Return the ISO time of a day and an hour."""
    day, hour = text.split()
    return f"2026-11-{int(day):02}T{hour}:00:00Z"


def rows_of(number: int, when: str, mode: str, kind: str = "", state: str = "") -> list[HistoryRow]:
    """Return the rows of an end of a run."""
    at = moment(when)
    run = NOTHING | {"cluster": "demo", "run": f"run {number}", "sequence": number, "revision": 1}
    run |= {"started": at, "ended": at, "mode": "look" if mode == "failed" else mode, "status": ""}
    run |= BY if mode == "alter" else {}
    if mode == "died":
        run |= {"mode": "apply", "stopped": "killed", "started": moment("1 09")}
    if mode == "late":
        run |= {"mode": "apply", "changed": 0, "started": moment("1 09")}
    compared = {} if mode in {"failed", "alter"} else {"declared": 1}
    quota: dict[str, Any] = {"kind": kind, "state": state or kind}
    quota["outcome"] = OUTCOMES.get(state or kind)
    quota |= {"requested": 1.0} if kind == "altered" and not state else {}
    quota |= {"actual": 1.0} if kind == "restored" else {}
    return [HistoryRow(**run | compared), *([HistoryRow(**run | QUOTA | quota)] if kind else [])]


@pytest.mark.parametrize("case", CASES)
def test_the_history_of_a_quota(case: Any) -> None:
    """The quota has the drifts, the repairs and the authors that a person would expect."""
    rows = [
        row for number, end in enumerate(case["ends"], start=1) for row in rows_of(number, *end)
    ]

    found = fold_history(parquet.from_rows(HISTORY, rows), ["quotas"])
    quotas = [quota._asdict() for quota in parquet.read_rows(QUOTAS, found["quotas"])]

    expected = case["says"] and {
        name: moment(value) if isinstance(value, str) and value[0].isdigit() else value
        for name, value in case["says"].items()
    }
    said = [{name: quota[name] for name in expected or {}} for quota in quotas]
    assert said == ([expected] if expected else [])
