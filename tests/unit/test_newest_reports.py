"""The newest report of a cluster, which the overview and metrics read."""

import json
from pathlib import Path
from typing import Any

import pytest

from quota_ops.store.places.run_store import RunStore, open_place
from quota_ops.store.run.newest_reports import read_newest_reports

FAILED: dict[str, Any] = {
    "stages": [{"stage": "describe", "status": "failed"}],
    "plan": None,
    "rollback": None,
}
COMPARED = FAILED | {"stages": [{"stage": "plan", "status": "done"}], "plan": {"desired": 1}}


def store_with(root: Path, *reports: Any) -> RunStore:
    """Return a store whose cluster demo has these reports, the oldest first."""
    for number, report in enumerate(reports):
        run = root / "runs" / "demo" / f"run-{number}"
        run.mkdir(parents=True)
        (run / "run.json").write_text("{}")
        (run / "report.json").write_text(json.dumps(report))
    return RunStore(open_place(root))


def test_the_newest_report_of_a_run_that_compared(tmp_path: Path) -> None:
    """A run that only tried to compare is left out where a comparison is asked for."""
    store = store_with(tmp_path, COMPARED, FAILED)

    assert read_newest_reports(store, ["demo"]) == {"demo": FAILED}
    assert read_newest_reports(store, ["demo"], compared=True) == {"demo": COMPARED}


@pytest.mark.parametrize("report", [{}, [], {"stages": []}, {**COMPARED, "stages": None}])
@pytest.mark.parametrize("compared", [False, True])
def test_a_damaged_report_is_none(tmp_path: Path, report: Any, *, compared: bool) -> None:
    """A report that is JSON and lacks a field does not end the overview of all clusters."""
    store = store_with(tmp_path, report)

    assert read_newest_reports(store, ["demo"], compared=compared) == {"demo": None}
