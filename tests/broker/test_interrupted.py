"""Ctrl-C while a command writes to a real broker: it ends at once, and its end is kept."""

import json
import signal
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from quota_ops.cli import INTERRUPTED, main
from quota_ops.frames import text
from quota_ops.kafka.cluster import Cluster
from quota_ops.model.alteration import Alteration
from quota_ops.model.entity import Entity
from quota_ops.model.outcome import EntityAnswer
from quota_ops.stages import alter
from tests.broker.stage_runs import KEY

NAMES = ("u0", "u1", "u2")
ALTER = [json.dumps({"entity": {"user": name}, "key": KEY, "value": 1}) for name in NAMES]
QUOTAS = [f"{{user: {name}, limits: {{{KEY}: 1}}}}" for name in NAMES]


@pytest.fixture(name="run_store")
def _run_store(demo: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Three quotas for the shared broker in three requests; Ctrl-C when the second has arrived."""
    folder = tmp_path / "desired_state" / "demo"
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text(f"cluster_id: {demo.cluster_id}\nconnection: demo\n")
    (folder / "team.yaml").write_text(f"owner: team\nquotas: [{', '.join(QUOTAS)}]\n")
    (tmp_path / "changes.jsonl").write_text("\n".join(ALTER))
    monkeypatch.setattr(alter, "MAX_KEYS", 1)
    monkeypatch.setattr(text, "batches_text", partial(text.batches_text, max_keys=1))
    write = Cluster.apply

    def interrupted(self: Cluster, asked: Sequence[Alteration]) -> tuple[EntityAnswer, ...]:
        answers = write(self, asked)
        if asked[0].entity.text == "user=u1":
            signal.raise_signal(signal.SIGINT)
        return answers

    monkeypatch.setattr(Cluster, "apply", interrupted)
    # A suite in the background may ignore the signal.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield tmp_path / "store"
    signal.signal(signal.SIGINT, before)
    write(demo, [Alteration(Entity.of({"user": name}), ((KEY, None),)) for name in NAMES])
    while demo.stored():
        time.sleep(0.01)


@pytest.mark.parametrize(
    "command", ["alter demo --from changes.jsonl", "apply demo", "reconcile demo"]
)
def test_interrupted(command: str, run_store: Path) -> None:
    """What was answered is told, what was on its way is unknown, and the rest was not sent."""
    ended = CliRunner().invoke(main, command.split())

    [run] = (run_store / "runs" / "demo").iterdir()
    assert (ended.exit_code, ended.stderr) == (INTERRUPTED, f"interrupted; the run is in {run}\n")
    changes = json.loads((run / "end-0001.json").read_bytes())["changes"]
    outcomes = {one["entity"]: one["outcome"] for one in changes}
    assert outcomes == {"user=u0": "accepted", "user=u1": "unknown", "user=u2": "not_sent"}
