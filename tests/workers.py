"""Which tests stay together when `make test` runs the suite in two workers."""

from xdist.scheduler import LoadFileScheduling

TOGETHER = (
    ("tests/broker/test_kafka_", "tests/broker/test_ping"),
    ("tests/broker/test_resolve_",),
    ("tests/dag/",),
    ("tests/engines/",),
)
"""What shares a broker with every listener, one with quick quotas, an Airflow, a Spark session."""


class ByPlace(LoadFileScheduling):
    """Hands a worker one file after the other, or at once the files that share what is costly."""

    def _split_scope(self, nodeid: str) -> str:
        """The unit of work of a test."""
        file = super()._split_scope(nodeid)
        return next((" ".join(place) for place in TOGETHER if file.startswith(place)), file)
