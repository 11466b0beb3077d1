"""The contract of every store: a second store is one more line in STORES."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from quota_ops.store.places.place import Entry, Leaf, Place
from quota_ops.store.places.run_store import open_place

STORES: dict[str, Callable[[Path], Place]] = {"local": lambda folder: open_place(folder / "store")}
"""By name, what makes a place of an empty store; the folder is the test's own."""
RACERS, ROUNDS = 8, 20


@pytest.fixture(name="root", params=STORES)
def _root(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return STORES[request.param](tmp_path)


def test_a_place_is_created_once(root: Place) -> None:
    """The second writer changes nothing, and the call returns False."""
    place = root / "ledger" / "id" / "1.parquet"

    assert (place.exists(), place.create(b"first"), place.create(b"second")) == (False, True, False)
    assert (place.exists(), place.read()) == (True, b"first")


def test_of_many_creators_one_wins(root: Place) -> None:
    """However many writers race, one creates the place, with the bytes of that writer."""
    contents = [bytes([number]) * 50_000 for number in range(16)]

    with ThreadPoolExecutor(16) as writers:
        won = list(writers.map((root / "1.parquet").create, contents))

    assert won.count(True) == 1
    assert (root / "1.parquet").read() == contents[won.index(True)]
    assert root.list() == ("1.parquet",)


def _race(root: Place, racer: int) -> list[bool]:
    return [(root / f"{number:04d}").create(b"%d" % racer) for number in range(ROUNDS)]


def test_of_processes_that_race_one_wins_each_place(root: Place) -> None:
    """Each number is created by one of several processes, and all of them see the same winner."""
    with get_context("forkserver").Pool(RACERS) as racers:
        won = racers.starmap(_race, [(root, racer) for racer in range(RACERS)])

    winners = [[racer for racer in range(RACERS) if won[racer][number]] for number in range(ROUNDS)]
    assert winners == [[int((root / name).read())] for name in root.list()]


def test_a_place_holds_what_was_written_last(root: Place) -> None:
    """Replaced or new, durable or not: the last content is read, complete."""
    place = root / "a" / "b" / "c.json"

    for content, durable in ((b"first", False), (b"second", True), (b"", False), (b"last", False)):
        place.replace(content, durable=durable)
        assert place.read() == content
        assert (root / "a").walk() == (Leaf("b/c.json", len(content), False, True),)
    assert (root / "a" / "b").list() == ("c.json",)


def test_a_reader_sees_the_old_or_the_new(root: Place) -> None:
    """A reader never sees a part of the content, nor its absence, while it is replaced."""
    place, contents = root / "page.html", {bytes([number]) * 300_000 for number in range(2)}
    place.replace(min(contents))

    with ThreadPoolExecutor(2) as pool:
        writes = pool.submit(lambda: all(map(place.replace, [*contents] * 20)))
        seen = set()
        while not writes.done():
            seen.add(place.read())
    assert seen <= contents


def test_a_part_is_read(root: Place) -> None:
    """An open file can be read in parts, from its beginning and from its end."""
    (root / "long").replace(b"one\ntwo\nthree")

    with (root / "long").open() as file:
        assert (file.readline(), file.seek(-5, 2), file.read()) == (b"one\n", 8, b"three")


@pytest.mark.parametrize("reads", ["read", "open", "modified"])
def test_what_is_not_there(root: Place, reads: str) -> None:
    """At an absent place a read raises FileNotFoundError, lists are empty and delete succeeds."""
    absent = root / "never"

    with pytest.raises(FileNotFoundError):
        getattr(absent, reads)()
    absent.delete()
    assert (absent.exists(), absent.list(), absent.walk()) == (False, (), ())


def test_names_are_listed_in_order(root: Place) -> None:
    """Names one level below are listed by code points, on request only those after a given name."""
    names = ["00000010.json", "00000009.json", "B", "a", "b~2E", "\N{GREEK SMALL LETTER ALPHA}"]
    for name in names:
        (root / name).replace(b"x")
    (root / "b" / "below").replace(b"12345")

    ordered = tuple(sorted([*names, "b"]))
    assert root.list() == ordered
    assert root.list(after="00000009.json") == ordered[1:]
    assert root.list(after="a~") == ordered[ordered.index("b") :]
    assert root.folders() == (root / "b",)
    assert root.entries()[4:6] == (Entry("b", True, True), Entry("b~2E", False, True))
    leaves = {leaf.path: leaf.size for leaf in root.walk()}
    assert leaves == dict.fromkeys(sorted(names), 1) | {"b/below": 5}
    assert list(leaves) == sorted(leaves)
    assert root.below("b/below") == root / "b" / "below"


def test_what_is_deleted_is_gone(root: Place) -> None:
    """A deleted place can be created again, and deleting it twice succeeds."""
    place = root / "runs" / "run.json"
    place.create(b"1")

    place.delete()
    place.delete()
    (root / "runs").delete_folder()

    assert (place.exists(), root.folders()) == (False, ())
    assert place.create(b"2")


def test_a_place_is_one_of_its_store(root: Place) -> None:
    """Places of one key are equal, and a name is exactly one level below its place."""
    place = root / "runs" / "demo"

    assert place == root / "runs" / "demo" != root / "runs"
    assert (place.name, place.parent.parent, str(place)) == ("demo", root, f"{root}/runs/demo")
    assert place.resolved() == place.parent.resolved() / "demo"
    for name in ("", ".", "..", "a/b", "../other"):
        with pytest.raises(ValueError, match="is not a name"):
            root / name
