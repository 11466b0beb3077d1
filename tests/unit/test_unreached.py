"""An unreachable cluster ends a run, even one without a plan."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from quota_ops.cli import main
from tests.unit.report_sample import CLUSTER_ID


@pytest.mark.parametrize(
    ("command", "status"),
    [
        (("alter", "demo", "--names", "user=a", "--add", "request_percentage=50"), "Not altered"),
        (("adopt", "demo", "--names", "user=a"), "Unknown"),
    ],
)
def test_a_cluster_that_cannot_be_reached_ends_the_run(
    command: tuple[str, ...], status: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`runs` shows that nothing is altered, or that the state is unknown, and why."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("QUOTA_OPS_RUN_STORE", str(tmp_path / "store"))
    monkeypatch.setenv("QUOTA_OPS_CONNECTION_DEMO", str(tmp_path / "lost.properties"))
    (tmp_path / "lost.properties").write_text("bootstrap.servers=127.0.0.1:1\n")
    folder = tmp_path / "desired_state" / "demo"
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text(f"cluster_id: {CLUSTER_ID}\nconnection: demo\n")

    ended = CliRunner().invoke(main, [*command, "--reason", "INC-31"])

    assert ended.exit_code == 3
    (run,) = json.loads(CliRunner().invoke(main, ["runs", "--format", "json"]).stdout)
    assert (run["status"], run["changes"]) == (status, 0)
    assert run["sentence"].startswith("connection demo: no broker at 127.0.0.1:1: ")
