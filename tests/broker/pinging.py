"""A folder from which a cluster is pinged as by a user, and the output."""

import re
from dataclasses import dataclass
from pathlib import Path

from click.testing import CliRunner

from quota_ops.cli import main


@dataclass(frozen=True)
class Pinged:
    """The exit code, and the text of the two streams, times as `N ms`."""

    exit_code: int
    stdout: str
    stderr: str


def ping(folder: Path, properties: str, cluster_id: str, *arguments: str) -> Pinged:
    """Ping the cluster demo by a connection file in the folder."""
    desired_state, connection = folder / "desired_state", folder / "demo.properties"
    (desired_state / "demo").mkdir(parents=True, exist_ok=True)
    (desired_state / "demo" / "cluster.yaml").write_text(
        f"cluster_id: {cluster_id}\nconnection: demo\n"
    )
    connection.write_text(properties)
    given = ("--connection", str(connection), "--desired-state", str(desired_state))
    result = CliRunner().invoke(main, ["ping", "demo", *given, *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    stdout = re.sub(r"\b\d+ ms$", "N ms", result.stdout, flags=re.MULTILINE)
    return Pinged(result.exit_code, stdout, result.stderr.replace(f"{folder}/", ""))
