"""The recorded Prometheus of the tests of use."""

import json
import os
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from quota_ops.model.usage.usage import UsagePolicy
from quota_ops.usage.connection import PrometheusConnection
from quota_ops.usage.source import UsageSource
from tests.usage.lab import start_prometheus
from tests.usage.recording import TIMES, record, replay

POLICY = UsagePolicy("monitoring", match=(("cluster", "orders"),), step=5)
FOLDER = os.environ.get("RECORD_USAGE")
if FOLDER:  # before the tests are imported, which read it
    shutil.copy(Path(FOLDER) / "times.json", TIMES)


@pytest.fixture(scope="session")
def prometheus() -> Iterator[str]:
    """Return the address of the recorded Prometheus; with RECORD_USAGE, record it."""
    if FOLDER:
        with (
            start_prometheus(Path(FOLDER) / "prometheus", {}) as running,
            record(running.url) as url,
        ):
            yield url
    else:
        with replay() as url:
            yield url


@pytest.fixture
def source(prometheus: str) -> UsageSource:
    """Return the recorded cluster."""
    return UsageSource.of(POLICY, connect(prometheus))


def connect(url: str, *lines: str) -> PrometheusConnection:
    """Return a connection to an address, with further settings."""
    text = "\n".join([f"url={url}", *lines])
    return PrometheusConnection.parse(text, name="monitoring", source="a test", folder=Path())


def read_times() -> dict[str, datetime]:
    """Return when what happened in the recording."""
    times = json.loads(TIMES.read_text(encoding="utf-8"))
    return {name: datetime.fromtimestamp(round(at), UTC) for name, at in times.items()}
