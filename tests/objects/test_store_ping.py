"""ping --run-store: a real S3 server, alone and behind a proxy that breaks its promise."""

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
import pytest
import time_machine
from click.testing import CliRunner, Result

from quota_ops.cli import main
from quota_ops.model.errors import InvalidInput
from quota_ops.report.outline.layout import plain
from quota_ops.report.screens.ping import store_ping_screen
from quota_ops.store.places import ping as store_ping
from quota_ops.store.places.ping import RACERS, ping_store
from quota_ops.store.places.run_store import ENVIRONMENT, find_run_store
from tests.objects.proxy import Faults

OPERATIONS = ("list", "read", "create", "replace", "delete")
DENIED = "these credentials lack the permission"


@pytest.fixture(autouse=True)
def _few_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_ping, "NUMBERS", 4)


def ping(*arguments: str) -> Result:
    """Run the command, which must not end in a traceback."""
    ended = CliRunner().invoke(main, ["ping", *arguments])
    assert isinstance(ended.exception, SystemExit | click.exceptions.Exit | None)
    return ended


def authorized(shown: str) -> dict[str, bool | None]:
    """Return which operations are authorized, from JSON."""
    return {one["operation"]: one["authorized"] for one in json.loads(shown)["operations"]}


@pytest.mark.each_bucket
def test_a_good_store_passes(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every number has one winner, every operation has times, and nothing is left."""
    for place in (address, str(tmp_path / "deep" / "store")):
        monkeypatch.setenv(ENVIRONMENT, place)
        ended = ping("--run-store", "--format", "json")

        assert (ended.exit_code, ended.stderr) == (0, "")
        shown = json.loads(ended.stdout)
        assert (shown["address"], shown["safe"], shown["left"]) == (place, True, None)
        assert (shown["racers"], shown["winners"]) == (RACERS, [1, 1, 1, 1])
        assert authorized(ended.stdout) == dict.fromkeys(OPERATIONS, True)
        assert all(0 < one["median"] <= one["highest"] for one in shown["operations"])
        assert find_run_store(place).root.walk() == ()
        assert (shown["empty"], shown["clock_lead"]) == (True, 0.0)
    assert list(tmp_path.iterdir()) == []
    with time_machine.travel(datetime.now(UTC) - timedelta(minutes=5.5)):
        assert "\nThe clock of this machine is 5 min " in ping("--run-store", address).stdout


def test_a_store_with_runs_is_not_called_empty(tmp_path: Path) -> None:
    """A folder that exists stays after a ping, and a store that has files is not called empty."""
    store = tmp_path / "store"
    for content in ((), ("x",)):
        store.mkdir(exist_ok=True)
        for name in content:
            (store / name).touch()
        ended = ping("--run-store", str(store))
        assert ended.exit_code == 0
        assert ("This store is empty or does not exist" in ended.stdout) is (content == ())
        assert {path.name for path in store.iterdir()} == {*content}


def test_a_missing_store_is_not_taken_for_one_without_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lists of runs and holds name a store that is empty, because its address may be wrong."""
    (tmp_path / "desired_state" / "demo").mkdir(parents=True)
    policy = "cluster_id: id\nconnection: nowhere\n"
    (tmp_path / "desired_state" / "demo" / "cluster.yaml").write_text(policy)
    monkeypatch.chdir(tmp_path)
    store = tmp_path / "store"

    for command in (("runs",), ("holds", "demo", "--format", "json")):
        ended = CliRunner().invoke(main, [*command, "--run-store", str(store)])
        assert (ended.exit_code, ended.stderr) == (
            0,
            (
                f"The run store {store} is empty or does not exist. If there were runs or holds, "
                "correct --run-store or QUOTA_OPS_RUN_STORE.\n"
            ),
        )
        assert not store.exists()


def test_a_reader_may_only_list_and_read(address: str, login: Callable[[str], None]) -> None:
    """With credentials that may only read, ping shows that and ends with 1; it leaves nothing."""
    login("reader")
    ended = ping("--run-store", address)

    assert ended.exit_code == 1
    words = {one.split()[0]: " ".join(one.split()[1:]) for one in ended.stdout.splitlines()[3:8]}
    assert [words[one].startswith("yes ") for one in ("list", "read")] == [True, True]
    assert [words[one] for one in ("create", "replace", "delete")] == [
        f"no: {DENIED}",
        f"no: {DENIED}",
        "not tried",
    ]
    assert find_run_store(address).root.walk() == ()


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--run-store", "s3://no-such/a"), "the bucket does not exist"),
        ((), "ping needs a CLUSTER or --run-store"),
    ],
)
def test_a_store_that_cannot_be_used(arguments: tuple[str, ...], why: str, address: str) -> None:
    """Without a bucket, or without an argument, ping ends with 2."""
    del address
    ended = ping(*arguments)

    assert (ended.exit_code, ended.stdout) == (2, "")
    assert why in ended.stderr


def test_a_store_that_lets_many_win_is_refused(
    address: str, faults: Faults, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run does not begin where creates overwrite; after a failed ping, not even later."""
    monkeypatch.setenv("AWS_SKIP_SIGNATURE", "true")  # a signature would notice the proxy
    store = find_run_store(address)
    store.new_run("demo")
    faults.removed = ("if-none-match",)

    with pytest.raises(InvalidInput, match="the store ignores If-None-Match"):
        store.new_run("demo")

    pinged = ping_store(store)
    assert (min(pinged.winners) > 1, len(pinged.winners), pinged.exit_code) == (True, 4, 2)
    assert "4 of 4 numbers had more than one winner" in plain(store_ping_screen(pinged))

    faults.removed = ()
    with pytest.raises(InvalidInput, match="several writers created the same file") as refused:
        store.new_run("demo")
    assert f"quota-ops ping --run-store {address}" in str(refused.value.remedy)

    assert ping("--run-store", address).exit_code == 0
    store.new_run("demo")
