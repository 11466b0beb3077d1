"""The holds in the run store: every entry is kept, in order, and none is ever changed."""

import json
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from quota_ops.model.errors import InvalidInput
from quota_ops.model.plans.policy import Policy
from quota_ops.model.stored import to_json
from quota_ops.store.ledger import holds
from quota_ops.store.places.run_store import open_place
from quota_ops.store.places.written_by import own_version
from quota_ops.store.run.folder import RunFolder
from tests.unit.test_model_hold import ALICE, NOW, hold, user

BOB = hold(user("bob"), 1)


def test_nobody_was_ever_held(tmp_path: Path) -> None:
    """Without a folder there is no hold, and reading creates none."""
    assert holds.read(open_place(tmp_path / "missing")) == ()
    assert list(tmp_path.iterdir()) == []


def test_every_word_is_a_file(tmp_path: Path) -> None:
    """Each hold and each release creates the next file; an existing one is never rewritten."""
    released = hold(user("alice"), 0)
    for word in (ALICE, BOB, released):
        holds.add(open_place(tmp_path), word)
    (tmp_path / "00000003 (copy).json").write_text("a person's")

    assert holds.read(open_place(tmp_path)) == (ALICE, BOB, released)
    assert len(list(tmp_path.iterdir())) == 4


def add_some(folder: Path, writer: int) -> None:
    """Add ten entries, as one of several processes."""
    for number in range(10):
        holds.add(open_place(folder), hold(user(f"{writer}-{number}"), 1, NOW))


def test_people_lose_nothing_to_each_other(tmp_path: Path) -> None:
    """Processes that add entries at once each find their entries kept."""
    with ProcessPoolExecutor(4, get_context("forkserver")) as processes:
        list(processes.map(add_some, [tmp_path] * 4, range(4)))

    kept = {one.who for one in holds.read(open_place(tmp_path))}
    assert kept == {user(f"{writer}-{number}") for writer in range(4) for number in range(10)}


def test_a_file_in_the_place_of_all_holds(tmp_path: Path) -> None:
    """A file in the place of the holds' folder is an error: the held entities are unknown."""
    (tmp_path / "holds").touch()

    with pytest.raises(InvalidInput, match="holds cannot be listed: Not a directory"):
        holds.read(open_place(tmp_path / "holds"))


OTHER = "does not have the format of quota-ops 0.1.0: "


@pytest.mark.parametrize(
    ("content", "how"),
    [
        *[(content, "is damaged: ") for content in ("", "{", "[" * 3000)],
        *[(content, OTHER) for content in ("[]", '{"who": {}}', '{"who": 1, "by": ""}')],
    ],
)
def test_a_damaged_hold_did_not_end(content: str, how: str, tmp_path: Path) -> None:
    """An unreadable hold is an error that names the file, so that no held entity is written.

    Only what does not decode is called damaged: another version may have written the rest.
    """
    holds.add(open_place(tmp_path), ALICE)
    damaged = tmp_path / "00000002.json"
    damaged.write_text(content)

    with pytest.raises(InvalidInput) as refused:
        holds.read(open_place(tmp_path))

    assert refused.value.message.startswith(f"{damaged} {how}")
    remedy = "Move the damaged file elsewhere" if how != OTHER else "The file is not damaged"
    assert remedy in str(refused.value.remedy)


def test_a_hold_of_a_newer_version_is_not_called_damaged(tmp_path: Path) -> None:
    """A field that this version does not know stops it, and the version to install is named."""
    holds.add(open_place(tmp_path), ALICE)
    file = tmp_path / "00000001.json"
    written = json.loads(file.read_text())
    assert written["written_by"] == own_version()
    file.write_text(json.dumps(written | {"written_by": "17.2.0", "except": ["bob"]}))

    with pytest.raises(InvalidInput) as refused:
        holds.read(open_place(tmp_path))

    assert refused.value.message == (
        f"{file} was written by quota-ops 17.2.0, which is newer than this {own_version()}: "
        "Object contains unknown field `except`"
    )
    assert refused.value.remedy == (
        "Nothing was changed. Install quota-ops 17.2.0 or newer; the file is not damaged."
    )


def test_a_run_of_a_newer_version_is_not_called_damaged(tmp_path: Path) -> None:
    """The version in run.json counts for the files of the run; an older one is of another form."""
    folder = RunFolder(open_place(tmp_path))
    policy = to_json(Policy, Policy(cluster="demo", cluster_id="id", connection="demo"))
    folder.write_json("policy.json", policy | {"no_writes": True})
    for version, message in (
        ("17.2.0", "policy.json was written by quota-ops 17.2.0, which is newer"),
        ("0.0.1", "policy.json does not have the format of quota-ops 0.1.0: Object contains"),
    ):
        folder.write_json("run.json", {"written_by": version})
        with pytest.raises(InvalidInput) as refused:
            folder.policy()
        assert message in refused.value.message
