"""The tests of the stages, with the run store in a bucket; `make matrix` runs them all.

A test that looks at the files of a local store, from outside quota-ops, stays with local stores.
"""

import inspect
from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from quota_ops.lab.kafka.broker import RunningBroker
from tests.broker.conftest import small_batches
from tests.lab import Lab, open_lab

__all__ = ["small_batches"]

MODULES = (
    "test_concurrent_writes",
    "test_decisions",
    "test_holds",
    "test_ownership",
    "test_rollback",
    "test_stages_apply",
    "test_stages_ledger",
    "test_stages_released",
    "test_stages_resumed",
    "test_stages_verified_again",
    "test_stages_waited",
)
LOCAL = (
    "on_disk",
    '"store"',
    "begin(lab)",
    "record(lab)",
    "adopting_is_no_verified_run",
    "an_approval_does_not_outlive_a_rollback",
)
"""What a test contains that looks at the files of a local store, itself or in a function."""

for _module in MODULES:
    _tests = import_module(f"tests.broker.{_module}")
    for _name, _test in vars(_tests).items():
        if not _name.startswith("test_") or not inspect.isfunction(_test):
            continue
        if "lab" in inspect.signature(_test).parameters and not any(
            one in inspect.getsource(_test) for one in LOCAL
        ):
            globals()[f"{_module}_{_name.removeprefix('test_')}"] = pytest.mark.matrix(_test)


@pytest.fixture(name="lab")
def _lab(broker: RunningBroker, tmp_path: Path, address: str) -> Iterator[Lab]:
    with open_lab(broker, tmp_path) as lab:
        yield replace(lab, address=address)
