"""A plug-in of pytest that plays each test within one second, as a very fast machine would.

`python -m pytest -p tests.still_clock tests/broker` finds the tests that rely on two things having
different times. Processes that a test starts have their own clocks.
"""

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
import time_machine


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """Let no time pass but what the test itself sleeps."""
    sleep = time.sleep
    with (
        time_machine.travel(datetime.now(UTC), tick=False) as clock,
        pytest.MonkeyPatch.context() as patch,
    ):

        def sleep_and_move(seconds: float) -> None:
            sleep(seconds)
            if seconds >= 1:
                clock.shift(seconds)

        patch.setattr(time, "sleep", sleep_and_move)
        return (yield)
