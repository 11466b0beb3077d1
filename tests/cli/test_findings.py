"""Findings on the command line: the output of check, its exit code, and each code's explanation."""

import json
import subprocess
from pathlib import Path

import pytest

from quota_ops.findings.codes import CODES
from quota_ops.report.screens.plan import UNTIL_THEN
from tests.preloaded import preloaded

QUOTAS = """\
owner: payments
quotas:
  - user: "User:alice"
    limits: {producer_byte_rate: 10 MiB, consumer_byte_rate: 10}
    silence: [{finding: QO107, reason: a test}]
"""


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    folder = tmp_path / "desired_state" / "demo"
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text("cluster_id: MkU3OEVBNTcwNTJENDM2Qg\nconnection: demo\n")
    (folder / "payments.yaml").write_text(QUOTAS)
    return folder


def quota_ops(folder: Path, *arguments: str) -> tuple[int, str]:
    """Return the exit code of a command without errors, and its output."""
    ended = subprocess.run(
        [preloaded(), *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder.parents[1],
    )
    assert ended.stderr == ""
    return ended.returncode, ended.stdout


PREFIXED = (
    "desired_state/demo/payments.yaml:3:5  QO101 warning  user=User:alice never applies: Kafka "
    "looks up quotas by the name without User:. If you mean user=alice, write that name.\n"
    "quota-ops findings CODE explains a code, and how to silence it.\n"
)


def test_check_says_findings_and_ends_well(folder: Path) -> None:
    """Findings come before the last line, which counts them.

    Only --strict changes the exit code.
    """
    said = f"{PREFIXED}demo: 2 quotas in 2 files, no problems, 1 finding\n"

    assert quota_ops(folder, "check") == (0, said)
    assert quota_ops(folder, "check", "--strict") == (2, said)


def test_check_says_findings_under_problems(folder: Path) -> None:
    """The readable part of a file with problems still has findings."""
    (folder / "payments.yaml").write_text(f"{QUOTAS}  - {{user: bob}}\n")

    code, said = quota_ops(folder, "check")

    assert code == 2
    assert said == (
        "desired_state/demo/payments.yaml:6:5  limits is missing. "
        "Add limits: {producer_byte_rate: 10 MiB}, or profile, or cluster_limits.\n"
        "     6 |   - {user: bob}\n"
        "             ^^^^^^^^^^^\n"
        f"{PREFIXED}"
        "1 problem in 1 of 2 files, 1 finding (2 quotas read)\n"
        f"{UNTIL_THEN}\n"
    )


def test_check_tells_programs_what_is_silenced(folder: Path) -> None:
    """JSON has every finding with its parts, and the reason of each silence."""
    code, said = quota_ops(folder, "check", "--format", "json")

    (checked,) = json.loads(said)["clusters"]
    prefixed, starving = checked["findings"]
    assert (code, checked["problems"]) == (0, [])
    assert prefixed.pop("message").startswith("user=User:alice never applies")
    assert prefixed == {
        "code": "QO101",
        "severity": "warning",
        "entity": "user=User:alice",
        "key": None,
        "file": "desired_state/demo/payments.yaml",
        "line": 3,
        "column": 5,
        "remedy": "If you mean user=alice, write that name.",
        "silenced": None,
    }
    assert (starving["code"], starving["key"], starving["silenced"]) == (
        "QO107",
        "consumer_byte_rate",
        "a test",
    )


def test_silenced_findings_are_not_strict(folder: Path) -> None:
    """A finding silenced with a reason does not fail --strict."""
    (folder / "payments.yaml").write_text(QUOTAS.replace("User:", ""))

    said = "demo: 2 quotas in 2 files, no problems\n"
    assert quota_ops(folder, "check", "--strict") == (0, said)


def test_codes_are_listed_and_explained(folder: Path) -> None:
    """`findings` lists every code, and explains each in full."""
    _, listed = quota_ops(folder, "findings")
    _, told = quota_ops(folder, "findings", "--format", "json")

    assert [line.split()[0] for line in listed.splitlines()[1 : 1 + len(CODES)]] == list(CODES)
    assert [one["code"] for one in json.loads(told)["findings"]] == list(CODES)
    assert quota_ops(folder, "findings", "qo108")[1] == (
        "QO108 warning  a connection limit for the broker's own machine\n"
        "\n"
        "The address is a loopback address: only programs on the broker's machine use it.\n"
        "It limits probes, exporters and tools on that machine, but no client on the network.\n"
        "Write the address from which clients connect, as the broker sees it.\n"
        "\n"
        "  - ip: 127.0.0.1\n"
        "    limits: {connection_creation_rate: 10}\n"
        "\n"
        "Decided by the files.\n"
        "If this is intended, add silence: [{finding: QO108, reason: WHY}] beside the limits, "
        "or in cluster.yaml for the whole cluster.\n"
    )
    assert quota_ops(folder, "findings", "QO100")[1].endswith("It cannot be silenced.\n")
