"""The machines on which faults are played, and the page with their results."""

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from quota_ops.lab.kafka.broker import RunningBroker
from tests.docs.markdown import Page
from tests.faults.every import EVERY
from tests.faults.machine import Machine, start_machine
from tests.faults.scene import Scene
from tests.faults.table import ALL, PAGE, SEEN, on_the_page, section
from tests.lab import open_lab


@pytest.fixture(scope="session", autouse=True)
def page() -> Iterator[None]:
    """Write the results to the page; rows that were not played stay."""
    yield
    if ALL:
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


@pytest.fixture
def leftovers(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Collect the sockets that kafka-python leaves and pytest's log records reference."""
    yield
    caplog.get_records("call").clear()
    gc.collect()


@pytest.fixture
def scene(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    leftovers: None,
) -> Iterator[Scene]:
    """Return the scene of a fault, restored at the end."""
    del leftovers
    machine: Machine = request.getfixturevalue(request.param.broker)
    with (
        open_lab(machine.broker, tmp_path, timeout=request.param.timeout) as lab,
        machine.healed(),
    ):
        scene = Scene(lab, machine, monkeypatch)
        scene.begin()
        yield scene
