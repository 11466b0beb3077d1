"""Which tests stay together, which come first if workers share the suite, and when brokers stop.

A plug-in of its own, because the session's fixtures call no hook of a conftest.py below the root.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from xdist.scheduler import LoadFileScheduling

TOGETHER = (
    (
        "tests/broker/test_cluster_facts",
        "tests/broker/test_kafka_",
        "tests/broker/test_ping",
        "tests/broker/test_stages_verify",
        "tests/faults/",
    ),
    ("tests/broker/test_resolve_",),
    ("tests/browser/",),
    ("tests/dag/",),
    ("tests/engines/",),
    ("tests/objects/",),
)
"""What shares costly brokers (three nodes, every listener, quick quotas) or another program."""

FIRST = (
    "tests/broker/test_cluster_facts",
    "tests/cli/test_demo.py",
    "tests/dag/",
    "tests/docs/test_pages.py",
    "tests/engines/",
    "tests/objects/",
)
"""What takes longest in one piece. Begun last, it would leave the other workers idle."""


OF_ONE_UNIT = ("listeners", "mortal", "quick", "three")
"""Fixtures with brokers that only files that stay together need; an idle broker takes CPU too."""


_running: list[Callable[[], None]] = []


class ByPlace(LoadFileScheduling):
    """Give a worker one file after the other, or at once the files that share something costly."""

    def _split_scope(self, nodeid: str) -> str:
        """Return the unit of work of a test."""
        return find_unit(nodeid)


def find_unit(nodeid: str) -> str:
    """Return the unit of work of a test: its file, or the places that stay together."""
    file = nodeid.partition("::")[0]
    return next((" ".join(places) for places in TOGETHER if file.startswith(places)), file)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByPlace:
    """Keep tests together, in two workers, that share something costly."""
    return ByPlace(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests of a unit together, and the slowest units first."""

    def find_place(item: pytest.Item) -> tuple[bool, str]:
        unit = find_unit(item.nodeid)
        return not unit.startswith(FIRST), unit

    items.sort(key=find_place)


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any], request: Any) -> None:
    """Note how a fixture of OF_ONE_UNIT, which is set up now, is torn down."""
    if fixturedef.argname in OF_ONE_UNIT:
        _running.append(partial(fixturedef.finish, request))


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Tear down the fixtures of OF_ONE_UNIT after the last test of a unit."""
    ended, begun = (one and find_unit(one.nodeid) for one in (item, nextitem))
    while ended != begun and _running:
        _running.pop()()
