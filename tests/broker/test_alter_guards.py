"""Guards and the broker reject an alter: what is written, shown and recorded."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from quota_ops.cli import main
from quota_ops.kafka.cluster import Cluster
from tests.looking import seen_in_time
from tests.writing import empty

P, C = "producer_byte_rate", "consumer_byte_rate"


@pytest.fixture(name="cluster")
def _cluster(demo: Cluster, tmp_path: Path) -> Iterator[Cluster]:
    """Create a desired state with the default thresholds; its quotas are cleared at the end."""
    folder = tmp_path / "desired_state" / "demo"
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text(f"cluster_id: {demo.cluster_id}\nconnection: demo\n")
    yield demo
    empty(demo)


def alter(*arguments: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(main, ["alter", "demo", *arguments])


@pytest.mark.usefixtures("cluster")
def test_guards_of_a_one_off_change() -> None:
    """A tiny limit is blocked unless its guard is overridden by name, with who and why."""
    tiny = ("--names", "user=alice", "--add", f"{P}=1")
    why = ("--reason", "INC-31", "--by", "anna")

    refused = alter(*tiny, *why)
    runs = CliRunner().invoke(main, ["runs"]).stdout
    shown = CliRunner().invoke(main, ["show", "last"]).stdout
    (end,) = (json.loads(path.read_text()) for path in Path().glob("**/end-0001.json"))
    found = "user=alice producer_byte_rate would be set below 16 KiB/s"
    assert (refused.exit_code, end["stages"][0]["status"]) == (1, "refused")
    assert "To override: --allow small_limit --reason TEXT" in refused.stderr
    assert (end["verb"], end["by"], end["reason"]) == ("alter", "anna", "INC-31")
    assert end["stages"][0]["message"].startswith(f"guards block this plan: small_limit: {found}")
    assert "Not altered, blocked by guards  " in runs
    assert runs.splitlines()[1].endswith("anna")
    assert shown.partition("\n")[0] == (
        "Not altered: nothing was written on demo, by anna, blocked by guard small_limit "
        f"({found}): the broker would accept all of it."
    )

    told = alter(*tiny, "--allow", "small_limit", "--allow", "raise", *why)
    assert (told.exit_code, told.stderr) == (
        0,
        "--allow raise: that guard did not block anything, so no override is recorded\n",
    )
    assert "QO107" in told.stdout
    assert f"\nsmall_limit: {found} (overridden: INC-31)\n" in told.stdout
    ends = [json.loads(path.read_text()) for path in Path().glob("**/end-0001.json")]
    (decision,) = next(one["decisions"] for one in ends if one["decisions"])
    assert (decision["by"], decision["reason"], decision["said"]) == (
        "anna",
        "INC-31",
        "overridden",
    )
    assert [one["message"] for one in decision["shown"]] == [found]
    assert decision["login"] == end["login"]
    shown = CliRunner().invoke(main, ["show", "last"]).stdout
    assert shown.startswith(
        "Altered: 1 of 1 change on demo was written, by anna, overriding guard small_limit "
        f"({found}); 1 of 1 broker agrees."
    )
    assert "anna (--allow small_limit)" in CliRunner().invoke(main, ["runs"]).stdout
    names = ("--names", 'user="u3, u4"', "--add", "request_percentage=5")
    assert 'QO117 warning  user="u3, u4" is for one user' in alter(*names).stdout


@pytest.mark.usefixtures("cluster")
def test_validate_only_names_the_guard_that_would_block() -> None:
    """Validate-only is refused too if a guard blocks the change, and leaves no end record."""
    tiny = ("--names", "user=alice", "--add", f"{P}=1", "--validate-only")

    blocked = alter(*tiny)
    allowed = alter(*tiny, "--allow", "small_limit", "--reason", "INC-31")

    assert (blocked.exit_code, allowed.exit_code) == (1, 0)
    assert blocked.stderr.startswith(
        "guards block this plan: small_limit: user=alice producer_byte_rate would be set below"
    )
    assert "would be accepted" in blocked.stdout
    assert not list(Path().glob("**/end-0001.json"))


@pytest.mark.usefixtures("cluster")
def test_what_the_broker_refuses_has_an_end() -> None:
    """An alter without --validate-only that the broker rejects is recorded as refused."""
    refused = alter("--names", "user=alice", "--add", "future_key=1")

    (end,) = (json.loads(path.read_text()) for path in Path().glob("**/end-0001.json"))
    assert refused.exit_code == 1
    assert end["stages"][-1]["message"].startswith("the broker rejects 1 of 1 entity:\n  typed  ")
    assert "Not altered" in CliRunner().invoke(main, ["runs"]).stdout
    shown = CliRunner().invoke(main, ["show", "last"]).stdout
    assert "\nRequested changes\n" in shown
    assert "INVALID_REQUEST" in shown
    assert "Altered\n" not in shown


def test_what_changes_nothing_is_no_change(cluster: Cluster) -> None:
    """Setting an equal value or deleting a missing key counts as no change; a rollback skips it."""
    same = ("--names", "user=alice", "--add", f"{P}=3 MiB", "--delete", C)
    assert alter("--names", "user=alice", "--add", f"{P}=3 MiB").exit_code == 0
    wanted = {("user=alice", P): 3 * 2.0**20}
    assert seen_in_time(lambda: dict(cluster.describe_values()), wanted) == wanted

    result = alter(*same, "--by", "anna")
    changed = [
        json.loads(alter(*one, "--format", "json").stdout)["changed"]
        for one in (same, (*same, "--add", "request_percentage=50"), (*same, "--validate-only"))
    ]
    run = next(line for line in result.stdout.splitlines() if line.startswith("run: "))[5:]
    shown = CliRunner().invoke(main, ["show", run]).stdout
    runs = CliRunner().invoke(main, ["runs"]).stdout.splitlines()

    heading, _, _, *table = result.stdout.splitlines()
    assert heading == (
        f"demo ({cluster.cluster_id}): nothing changed, the cluster already stored these values"
    )
    assert [one.split("  ")[-1].strip() for one in table if one.startswith("user=")] == [
        "accepted, no change",
        "accepted, no change",
    ]
    assert changed == [0, 1, 0]
    assert shown.startswith(
        "Not altered: there was nothing to change, by anna: demo already stored these values; "
        "1 of 1 broker agrees.\n"
    )
    came_to = r"Altered(?= +1 )|Not altered"
    assert [re.findall(came_to, one) for one in runs[1:]] == [
        ["Not altered"],
        ["Altered"],
        ["Not altered"],
        ["Not altered"],
        ["Altered"],
    ]


def test_which_limit_applies_then(cluster: Cluster) -> None:
    """An alter that deletes a limit shows the default that applies without it."""
    wanted = {("user=<default>", P): 2.0**20, ("user=alice", P): 3 * 2.0**20}
    overrides = ("--allow", "default_touched", "--reason", "why")
    assert alter("--defaults", "user", "--add", f"{P}=1 MiB", *overrides).exit_code == 0
    assert alter("--names", "user=alice", "--add", f"{P}=3 MiB").exit_code == 0
    assert seen_in_time(lambda: dict(cluster.describe_values()), wanted) == wanted
    delete = ("--names", "user=alice", "--delete", P, "--validate-only")

    lines = alter(*delete).stdout.splitlines()
    (found,) = json.loads(alter(*delete, "--format", "json").stdout)["changes"]

    assert lines[4] == "  cut: user alice, from 3 MiB/s to 1 MiB/s (user=<default>)"
    assert [one["change"] for one in found["effect"]["classes"]] == ["cut"]
