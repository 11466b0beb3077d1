"""For every fault: only approved states, a true report, and a next run that completes the work.

The quick ones are compared with docs/explanation/reliability.md; `make faults` plays all and writes
that page.
"""

import pytest

from tests.faults import schedules
from tests.faults.every import EVERY
from tests.faults.scene import Scene
from tests.faults.table import ALL, IN_BUCKET, SEEN, Fault, Ground, on_the_page
from tests.faults.weather import FEW, RUNS, play

OF_A_DISK = {"damaged_ledger", "store_restored", "full_in_plan", "full_in_intent"}
"""Faults of a local folder: no bucket has them."""
PLAYED = [
    one
    for one in EVERY
    if (ALL or one.quick) and not (IN_BUCKET and one.play.__name__ in OF_A_DISK)
]


@pytest.mark.parametrize(
    ("scene", "fault"),
    [pytest.param(one.ground, one, id=one.name) for one in PLAYED],
    indirect=["scene"],
)
def test_fault(scene: Scene, fault: Fault) -> None:
    """The results are those on the page, word for word."""
    seen = SEEN[fault.stage, fault.what] = fault.play(scene)
    if IN_BUCKET or not ALL:
        assert on_the_page()[fault.stage, fault.what] == seen


@pytest.mark.timeout(900)
@pytest.mark.parametrize("scene", [Ground("machine", 1.0)], indirect=True)
def test_any_schedule(scene: Scene) -> None:
    """Whatever arrives late, each stored value is declared or shown as one that a run wrote."""
    for number in range(schedules.SCHEDULES if ALL else schedules.FEW):
        schedules.play_schedule(scene, number)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("scene", [Ground("machine", 1.0)], indirect=True)
def test_any_weather(scene: Scene) -> None:
    """Run after run, for any random fault: approved states alone, and no false success."""
    for run in range(RUNS if ALL else FEW):
        play(scene, run)
