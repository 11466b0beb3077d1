"""Which tests stay together, and which come first, when workers share the suite."""

import pytest
from xdist.scheduler import LoadFileScheduling

TOGETHER = (
    (
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


class ByPlace(LoadFileScheduling):
    """Give a worker one file after the other, or at once the files that share something costly."""

    def _split_scope(self, nodeid: str) -> str:
        """Return the unit of work of a test."""
        file = super()._split_scope(nodeid)
        return next((" ".join(place) for place in TOGETHER if file.startswith(place)), file)


def order_by_length(items: list[pytest.Item]) -> None:
    """Put the slowest pieces first; all others keep their order."""
    items.sort(key=lambda item: not item.nodeid.startswith(FIRST))
