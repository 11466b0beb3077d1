"""Invalid input of any command: a clear error, the right exit code, and no effect."""

import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from kafka.admin import (
    ACL,
    ACLOperation,
    ACLPermissionType,
    KafkaAdminClient,
    ResourcePattern,
    ResourceType,
)

from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.store.run.files import PLAN, POLICY
from tests.clock import PROMPTLY
from tests.lab import Lab, open_lab
from tests.places import on_disk
from tests.writing import State
from tests.yaml_cases import load_yaml

CASES = load_yaml(
    (Path(__file__).parents[1] / "cases" / "cli" / "bad_input.yaml").read_text("utf-8")
)
STATE: State = {"user=alice": {"producer_byte_rate": 10.0}}


@pytest.fixture(name="reader", scope="module")
def _reader(secured_broker: RunningBroker) -> Iterator[None]:
    """Let the user reader describe and do nothing else."""
    cluster = ResourcePattern(ResourceType.CLUSTER, "kafka-cluster")
    allow = ACLPermissionType.ALLOW
    right = ACL("User:reader", "*", ACLOperation.DESCRIBE_CONFIGS, allow, cluster)
    admin = KafkaAdminClient(bootstrap_servers=secured_broker.bootstrap())
    assert admin.create_acls([right])["failed"] == []
    yield
    admin.delete_acls([right])
    admin.close()


@pytest.fixture(name="lab", scope="module")
def _lab(secured_broker: RunningBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with open_lab(secured_broker, tmp_path_factory.mktemp("bad")) as lab:
        yield lab


@pytest.fixture(name="places", scope="module")
def _places(lab: Lab, secured_broker: RunningBroker) -> Iterator[dict[str, str]]:
    """Return the values that the cases name in braces."""
    lab.desire(STATE)
    (lab.root / "checkout" / ".git").mkdir(parents=True, exist_ok=True)
    lab.connection_file.write_text(f"bootstrap.servers={lab.bootstrap}\n")
    run, other = lab.run("plan"), lab.run("plan")
    other.write_json(POLICY, other.read_json(POLICY) | {"cluster_id": "MkU3OEVBNTcwNTJENDM2Qg"})
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        yield {
            "ROOT": str(lab.root),
            "RUN": str(on_disk(run)),
            "DIGEST": run.read_json(PLAN)["digest"][:8],
            "WHOLE_DIGEST": run.read_json(PLAN)["digest"],
            "RUN_OF_ANOTHER": str(on_disk(other)),
            "PLAINTEXT": lab.bootstrap,
            "SASL": secured_broker.bootstrap("SASL"),
            "NOBODY": f"127.0.0.1:{closed.getsockname()[1]}",
        }


def filled(text: str, places: Mapping[str, str]) -> str:
    """Return a text with its placeholders filled."""
    for name, place in places.items():
        text = text.replace(f"{{{name}}}", place)
    return text


@pytest.mark.usefixtures("reader")
@pytest.mark.parametrize("case", CASES, ids=[case["case"] for case in CASES])
def test_bad_input(case: Any, lab: Lab, places: dict[str, str]) -> None:
    """The exit code and every word are right, within five seconds, and nothing is done.

    A case that sets the environment or the connection runs in a process of its own.
    """
    lab.desire(STATE)
    lab.connection_file.write_text(f"bootstrap.servers={lab.bootstrap}\n")
    for name, text in case.get("files", {}).items():
        (lab.folder / name).write_text(text)
    if "connection" in case:
        lab.connection_file.write_text(filled(case["connection"], places))
    environment = {
        name: filled(value, places) for name, value in case.get("environment", {}).items()
    }
    arguments = [filled(word, places) for word in case["run"]]
    began = time.monotonic()

    if case.keys() & {"connection", "environment"}:
        ended = lab.cli(*arguments, environment=environment)
    else:
        ended = lab.call(*arguments)

    assert time.monotonic() - began < PROMPTLY
    assert (ended.returncode, ended.stderr) == (case["exit"], filled(case["says"], places))
    assert filled(case.get("shows", ""), places) in ended.stdout
    assert lab.stored() == {}
    assert not lab.records.ledger.exists()
