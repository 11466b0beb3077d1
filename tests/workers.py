"""Which tests stay together, and which come first, when workers share the suite."""

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
    ("tests/dag/",),
    ("tests/engines/",),
    ("tests/objects/",),
)
"""What shares costly brokers (three nodes, every listener, quick quotas), Airflow, Spark, S3."""

FIRST = (
    "tests/broker/test_kafka_",
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
        return find_unit(super()._split_scope(nodeid))


def find_unit(file: str) -> str:
    """Return the unit of work of a file."""
    return next((" ".join(place) for place in TOGETHER if file.startswith(place)), file)


def note_broker(fixture: pytest.FixtureDef[Any], request: Any) -> None:
    """Note how a fixture of OF_ONE_UNIT, which is set up now, is torn down."""
    if fixture.argname in OF_ONE_UNIT:
        _running.append(partial(fixture.finish, request))


def stop_brokers(item: pytest.Item, following: pytest.Item | None) -> None:
    """Tear down the fixtures of OF_ONE_UNIT after the last test of a unit."""
    ended, begun = (one and find_unit(one.nodeid.partition("::")[0]) for one in (item, following))
    while ended != begun and _running:
        _running.pop()()


def order_by_length(items: list[pytest.Item]) -> None:
    """Put the slowest pieces first; all others keep their order."""
    items.sort(key=lambda item: not item.nodeid.startswith(FIRST))
