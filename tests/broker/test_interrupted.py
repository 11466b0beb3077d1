"""Ctrl-C or SIGTERM during a write: the command ends at once, and its end is recorded."""

import json
import signal
from collections.abc import Iterator
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyarrow.parquet import read_table

from quota_ops.cli import main
from quota_ops.kafka.cluster import Cluster
from quota_ops.sql import text
from quota_ops.stages import apply
from tests.broker.stage_runs import KEY
from tests.signals import signals_taken
from tests.writing import empty

NAMES = ("u0", "u1", "u2")
ALTER = [json.dumps({"entity": {"user": name}, "key": KEY, "value": 1}) for name in NAMES]
QUOTAS = [f"{{user: {name}, limits: {{{KEY}: 1}}}}" for name in NAMES]


@pytest.fixture(name="run_store")
def _run_store(demo: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Declare three quotas for the shared broker, each in a request of its own."""
    folder = tmp_path / "desired_state" / "demo"
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text(
        f"cluster_id: {demo.cluster_id}\nconnection: demo\nguards: {{small_byte_rate: 0}}\n"
    )
    (folder / "team.yaml").write_text(f"owner: team\nquotas: [{', '.join(QUOTAS)}]\n")
    (tmp_path / "changes.jsonl").write_text("\n".join(ALTER))
    monkeypatch.setattr(text, "batches_text", partial(text.batches_text, max_keys=1))
    with signals_taken():
        yield tmp_path / "store"
    monkeypatch.undo()
    empty(demo)


def signal_after(
    owner: object,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    at: int = 1,
    number: int = signal.SIGINT,
) -> None:
    """Send a signal as soon as a call, the first or a later one, has returned."""
    call, calls = getattr(owner, name), count(1)

    def interrupted(*arguments: Any) -> Any:
        answer = call(*arguments)
        if next(calls) == at:
            signal.raise_signal(number)
        return answer

    monkeypatch.setattr(owner, name, interrupted)


def outcomes_told(run: Path) -> dict[str, str | None]:
    """Return the outcome of each entity in the history of a run that recorded its end."""
    assert (run / "end-0001.json").exists()
    [ended] = (run.parents[2] / "history").rglob("*.parquet")
    rows = read_table(ended).to_pylist()
    return {row["entity"]: row["outcome"] for row in rows if row["entity"]}


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (signal.SIGINT, "interrupted"),
        (signal.SIGTERM, "interrupted by SIGTERM"),
        (signal.SIGHUP, "interrupted by SIGHUP"),
    ],
)
@pytest.mark.parametrize(
    "command", ["alter demo --from changes.jsonl", "apply demo", "reconcile demo"]
)
def test_interrupted(
    command: str, number: int, words: str, run_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows with a response have it, those in flight are unknown, and the rest was not sent."""
    signal_after(Cluster, "apply", monkeypatch, at=2, number=number)
    ended = CliRunner().invoke(main, command.split())

    [run] = (run_store / "runs" / "demo").iterdir()
    assert (ended.exit_code, ended.stderr) == (128 + number, f"{words}; the run is in {run}\n")
    told = {"user=u0": "accepted", "user=u1": "unknown", "user=u2": "not_sent"}
    assert outcomes_told(run) == told


def test_after_the_last_answer(run_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Written rows are reported as written, even if nothing was left to send."""
    signal_after(apply, "withdraw_intents", monkeypatch)
    ended = CliRunner().invoke(main, ["apply", "demo"])

    [run] = (run_store / "runs" / "demo").iterdir()
    assert (ended.exit_code, ended.stderr) == (130, f"interrupted; the run is in {run}\n")
    assert outcomes_told(run) == dict.fromkeys(["user=u0", "user=u1", "user=u2"], "accepted")


def test_adopt(run_store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An interrupted adopt that changed nothing names its run, and records no end."""
    signal_after(Cluster, "describe", monkeypatch)
    ended = CliRunner().invoke(main, ["adopt", "demo", "--all", "--reason", "a test"])

    [run] = (run_store / "runs" / "demo").iterdir()
    assert (ended.exit_code, ended.stderr) == (130, f"interrupted; the run is in {run}\n")
    assert not (run / "end-0001.json").exists()
