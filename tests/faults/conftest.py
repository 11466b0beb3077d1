"""The machines on which faults are played, and the page with their results."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.store.places.object_client import open_client
from tests.docs.markdown import Page
from tests.faults.every import EVERY
from tests.faults.machine import Machine, start_machine
from tests.faults.scene import Scene
from tests.faults.table import ALL, IN_BUCKET, PAGE, SEEN, on_the_page, section
from tests.lab import open_lab
from tests.objects.server import S3Server, start_s3


@pytest.fixture(autouse=True)
def page() -> Iterator[None]:
    """Write the result of each fault to the page; rows that were not played stay."""
    yield
    if ALL and not IN_BUCKET:
        fresh = Page(PAGE).replace_section("faults", section(EVERY, on_the_page() | SEEN))
        PAGE.write_text(fresh, encoding="utf-8")


@pytest.fixture(scope="session")
def machine(broker: RunningBroker) -> Machine:
    """Return the suite's broker: it may be frozen, never killed."""
    return Machine(broker)


@pytest.fixture(scope="session")
def mortal(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """Return a broker that may be killed."""
    with start_machine(1, tmp_path_factory.mktemp("mortal")) as machine:
        yield machine


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """Start an S3 server with the bucket `runs`, and use it in this process."""
    with start_s3(tmp_path_factory.mktemp("s3")) as server, pytest.MonkeyPatch.context() as patch:
        server.create_bucket("runs")
        for name, value in server.environment().items():
            patch.setenv(name, value)
        yield server
        open_client.cache_clear()


@pytest.fixture
def scene(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Scene]:
    """Return the scene of a fault, restored at the end."""
    machine: Machine = request.getfixturevalue(request.param.broker)
    with open_lab(machine.broker, tmp_path, timeout=request.param.timeout) as lab, machine.healed():
        if IN_BUCKET:
            request.getfixturevalue("s3")
            lab = replace(lab, address=f"s3://runs/{uuid4().hex}")  # noqa: PLW2901 - its twin
        scene = Scene(lab, machine, monkeypatch)
        scene.begin()
        yield scene
