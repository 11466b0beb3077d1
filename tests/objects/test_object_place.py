"""The contract of every store, met by objects of real servers of S3 and of Azure."""

from multiprocessing import get_context

import pytest

from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import open_place
from tests.faults.table import ALL
from tests.objects.racing import create_numbers
from tests.unit import test_place as contract

pytestmark = pytest.mark.each_bucket
_FORKING = {
    "test_of_processes_that_race_one_wins_each_place",
    "test_a_lock_is_seen_where_the_store_can_tell",
}
"""A client of an object store does not survive a fork; these have a twin below."""
RACERS, ROUNDS = (32, 200) if ALL else (4, 25)

globals().update(
    {
        name: test
        for name, test in vars(contract).items()
        if name.startswith("test_") and name not in _FORKING
    }
)


@pytest.fixture(name="root")
def _root(address: str) -> Place:
    return open_place(f"{address}/odd prefix/with + and ~")


@pytest.mark.timeout(3600)
def test_each_number_has_one_winner(root: Place) -> None:
    """Of processes that race for each number, one wins, and all others see its bytes."""
    with get_context("spawn").Pool(RACERS) as racers:
        won = racers.starmap(
            create_numbers, [(str(root), racer, ROUNDS) for racer in range(RACERS)]
        )

    winners = [[racer for racer in range(RACERS) if won[racer][number]] for number in range(ROUNDS)]
    assert winners == [[int((root / name).read())] for name in root.list()]


def test_an_object_of_many_parts_is_read_in_parts(root: Place) -> None:
    """The beginning and the end of a large object are read without the rest of it."""
    place = root / "large"
    content = b"".join(b"%07d\n" % number for number in range(100_000))
    place.replace(content)

    with place.open() as file:
        assert (file.readline(), file.seek(-8, 2), file.read()) == (
            content[:8],
            799_992,
            content[-8:],
        )
        assert (file.seek(300_000), file.read(16)) == (300_000, content[300_000:300_016])
