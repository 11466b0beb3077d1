"""--verbose: the actions of a command, for troubleshooting, and no secret."""

import base64
import json
import logging
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from quota_ops.lab.kafka.broker import RunningBroker
from tests.broker.rights import properties_of
from tests.lab import Lab, open_lab

HOSTILE = 'x"\x1b[31m;${not-a-reference %s'
"""A password that steers a terminal, ends a quote and looks like a reference and a format."""
LINE = re.compile(r"\d\d:\d\d:\d\d\.\d\d\d [ -~]+")


pytestmark = pytest.mark.local_store


@pytest.fixture(name="lab")
def _lab(secured_broker: RunningBroker, tmp_path: Path) -> Iterator[Lab]:
    """Create a lab whose connection authenticates with a password."""
    with open_lab(secured_broker, tmp_path) as lab:
        lab.desire({"user=alice": {"producer_byte_rate": 1024}})
        lab.connection_file.write_text(properties_of(secured_broker, "admin"), "utf-8")
        yield lab


def test_what_a_command_does_is_on_stderr(lab: Lab, secured_broker: RunningBroker) -> None:
    """Connections, requests, files, SQL and stages, with times; stdout is unchanged."""
    quiet = lab.call("plan", "demo", "--format", "json")
    loud = lab.call("plan", "demo", "--format", "json", "--verbose")

    assert (quiet.returncode, quiet.stderr) == (0, "")
    assert loud.returncode == 0
    assert json.loads(loud.stdout).keys() == json.loads(quiet.stdout).keys()
    assert [line for line in loud.stderr.splitlines() if not LINE.fullmatch(line)] == []
    address = secured_broker.bootstrap("SASL")
    for what in (
        f"connection demo: read {lab.connection_file}",
        f"connection demo: cluster {lab.cluster.cluster_id}, broker 1 at {address}",
        r"stage diff, \d+ ms",
        r"diff\.sql in DuckDB, \d+ ms",
        f"{address}, connected, " + r"\d+ ms",
        f"{address}, DescribeClientQuotas, " + r"\d+ ms",
        f"{address}, AlterClientQuotas, " + r"\d+ ms",
        f"read {lab.folder}/team.yaml, " + r"\d+ bytes",
        rf"wrote {lab.root}/store/runs/demo/\S+/plan\.json, \d+ bytes",
    ):
        assert len(re.findall(rf"^\S+ {what}$", loud.stderr, re.MULTILINE)) >= 1, what
    assert logging.getLogger("quota_ops").handlers == []
    assert logging.getLogger("quota_ops").propagate


def test_no_secret_is_logged(lab: Lab) -> None:
    """Neither a valid password nor a rejected one is logged, in any encoding."""
    good = lab.connection_file.read_text("utf-8")
    bad = good.replace("admin-secret", HOSTILE.replace("${", "$ {"))
    shown = ""
    for text, arguments, code in (
        (good, ("ping", "demo"), 0),
        (good, ("reconcile", "demo"), 0),
        (good, ("alter", "demo", "--names", "user=bob", "--add", "request_percentage=20"), 0),
        (bad, ("plan", "demo"), 3),
        (good.replace("admin-secret", HOSTILE), ("plan", "demo"), 2),
    ):
        lab.connection_file.write_text(text, "utf-8")
        ended = lab.call(*arguments, "--verbose")
        assert ended.returncode == code, ended
        assert re.search(LINE, ended.stderr)
        shown += ended.stdout + ended.stderr

    plain = b"\0admin\0admin-secret"
    for secret in (
        "admin-secret",
        "x1b[31m",
        "[31m",
        base64.b64encode(plain).decode(),
        plain.hex(),
    ):
        assert secret not in shown
