"""adopt and release: the managed rows change, and the cluster does not."""

import json
from concurrent.futures import ThreadPoolExecutor
from shutil import copytree
from subprocess import CompletedProcess

import pytest

from quota_ops.store.ledger import ledger
from quota_ops.store.run.files import ADOPTED, PLAN, RELEASED
from quota_ops.store.run.folder import RunFolder
from tests.lab import Lab
from tests.places import delete_all
from tests.writing import State

KEY = "producer_byte_rate"
SAME: State = {"user=same": {KEY: 1.0}}
MOVED: State = {"user=moved": {KEY: 2.0}}
OLD: State = {"user=old": {KEY: 3.0}}
THEIRS: State = {"user=theirs": {KEY: 4.0}}
WHY = ("--reason", "a test", "--by", "anna")

UNLESS = ", unless a guard blocks it or it needs approval"
CLEARED = (
    f"Git does not declare it, and the ledger has this value: the next reconcile clears it{UNLESS}"
)


def begin(lab: Lab) -> None:
    """Create a lost ledger while Git dropped a row and moved another; two rows are unmanaged."""
    lab.desire({**SAME, **OLD, "user=moved": {KEY: 9.0}})
    lab.run("reconcile")
    delete_all(lab.records.ledger)
    lab.put(THEIRS)
    lab.desire({**SAME, **MOVED}, clear_unmanaged=True, protect=[{"user": "kafka-operator"}])


def said(result: CompletedProcess[str]) -> str:
    """Return a command's output, without the line that names its run."""
    assert (result.returncode, result.stderr) == (0, "")
    return result.stdout.rpartition("\n\nrun: ")[0]


def plan(lab: Lab) -> dict[str, tuple[str, str]]:
    """Return kind and action by entity from a plan with every guard overridden."""
    rows = lab.run("plan").differences()
    return {row.entity: (row.kind.value, row.action.value) for row in rows}


def test_a_lost_ledger_is_rebuilt(lab: Lab) -> None:
    """--all takes what Git declares, nothing else; a row that Git dropped has to be named."""
    begin(lab)
    stored = lab.stored()
    where = f"demo ({lab.cluster.cluster_id})"

    assert plan(lab)["user=moved"] == ("takeover", "set")
    assert said(lab.call("adopt", "demo", "--all", *WHY)) == (
        f"{where}: 2 quotas adopted; the cluster was not changed\n"
        "\n"
        "entity      key                 value  next\n"
        "user=moved  producer_byte_rate  9 B/s  "
        f"team.yaml:7 declares 2 B/s: the next reconcile sets it{UNLESS}\n"
        "user=same   producer_byte_rate  1 B/s  as team.yaml:4 declares"
    )
    unmanaged = ("unmanaged", "report")
    assert plan(lab) == {
        "user=moved": ("pending", "set"), "user=old": unmanaged, "user=theirs": unmanaged
    }  # fmt: skip
    assert said(lab.call("adopt", "demo", "--names", "user=old", *WHY)) == (
        f"{where}: 1 quota adopted; the cluster was not changed\n"
        "\n"
        "entity    key                 value  next\n"
        f"user=old  producer_byte_rate  3 B/s  {CLEARED}"
    )
    again = said(lab.call("adopt", "demo", "--any", "user", *WHY)).splitlines()[0]
    assert again == (
        f"{where}: 1 quota adopted, 3 were managed already; the cluster was not changed"
    )
    lab.call("release", "demo", "--from-ledger", "--names", "user=theirs", *WHY)
    assert plan(lab) == {
        "user=moved": ("pending", "set"),
        "user=old": ("removed", "clear"),
        "user=theirs": unmanaged,
    }
    assert lab.stored() == stored
    lab.run("reconcile")
    assert lab.stored() == {**SAME, **MOVED, **THEIRS}
    assert lab.known() == {**SAME, **MOVED}


def test_what_no_plan_writes_is_not_adopted(lab: Lab) -> None:
    """A protected row is left, with the reason; the run records who and why."""
    begin(lab)
    lab.put({"user=kafka-operator": {KEY: 5.0}})

    result = lab.call("adopt", "demo", "--any", "user", "--format", "json", *WHY)

    told = json.loads(result.stdout)
    assert {row["entity"]: (row["adopted"], row["owner"], row["next"]) for row in told["rows"]} == {
        "user=kafka-operator": (False, None, "not adopted: protected"),
        "user=moved": (
            True,
            "team",
            f"team.yaml:7 declares 2 B/s: the next reconcile sets it{UNLESS}",
        ),
        "user=old": (True, None, CLEARED),
        "user=same": (True, "team", "as team.yaml:4 declares"),
        "user=theirs": (True, None, CLEARED),
    }
    kept = RunFolder(lab.store.root / "runs" / "demo" / told["run"].rpartition("/")[2])
    record = kept.read_json(ADOPTED)
    assert (record["by"], record["reason"], record["ledger"]) == (
        "anna",
        "a test",
        "00000001.parquet",
    )
    assert {row["entity"]: row["value"] for row in record["rows"]} == {
        "user=moved": 9.0, "user=old": 3.0, "user=same": 1.0, "user=theirs": 4.0
    }  # fmt: skip
    assert {row.run for row in ledger.read(lab.records).rows} == {kept.place.name}


def test_released_rows_are_left_alone(lab: Lab) -> None:
    """A released row becomes unmanaged; a row that Git declares becomes managed again."""
    lab.desire({**SAME, **OLD})
    lab.run("reconcile")
    lab.desire(SAME)

    assert said(lab.call("release", "demo", "--from-ledger", "--all", *WHY)) == (
        f"demo ({lab.cluster.cluster_id}): 2 quotas released; the cluster was not changed\n"
        "\n"
        "entity     key                 value  state     next\n"
        "user=old   producer_byte_rate  3 B/s  verified  "
        "Git does not declare it; runs leave it alone\n"
        "user=same  producer_byte_rate  1 B/s  verified  "
        "as team.yaml:4 declares: the next reconcile manages it"
    )
    assert (lab.stored(), lab.known()) == ({**SAME, **OLD}, {})
    lab.run("reconcile")
    assert (lab.stored(), lab.known()) == ({**SAME, **OLD}, SAME)


def test_adopting_is_no_verified_run(lab: Lab) -> None:
    """clear_unmanaged waits for a verified run, however much was adopted before."""
    begin(lab)
    assert said(lab.call("adopt", "demo", "--all", *WHY))

    first = lab.run("reconcile", allow={"cut": "a test"})

    assert {**OLD, **THEIRS}.items() <= lab.stored().items()
    assert [one["guard"] for one in first.read_json(PLAN)["guards"]] == ["cut"]
    lab.run("reconcile")
    assert lab.stored() == {**SAME, **MOVED}


def test_everybody_at_once(lab: Lab) -> None:
    """Adopt and release as concurrent processes: each has the result that it reported."""
    users = [f"user=u{number}" for number in range(3)]
    lab.put({user: {KEY: 1.0} for user in users})
    lab.note({f"user=old{number}": {KEY: 1.0} for number in range(3)})
    lab.desire(SAME)
    commands = [
        *(("adopt", "demo", "--names", user, *WHY) for user in users),
        *(
            ("release", "demo", "--from-ledger", "--names", f"user=old{number}", *WHY)
            for number in range(2)
        ),
    ]

    with ThreadPoolExecutor(len(commands)) as at_once:
        ended = list(at_once.map(lambda command: lab.cli(*command), commands))

    assert [completed.returncode for completed in ended] == [0] * len(commands), [
        completed.stderr for completed in ended
    ]
    assert lab.known() == {user: {KEY: 1.0} for user in (*users, "user=old2")}


def test_a_name_that_nobody_has(lab: Lab) -> None:
    """An adopt or release of an unknown name is refused, and the ledger stays as it was."""
    lab.desire(SAME)
    lab.run("reconcile")
    names = ("--names", "user=nosuch", *WHY)

    for command, place in (
        (("adopt", "demo"), "the cluster stores"),
        (("release", "demo", "--from-ledger"), "the ledger has"),
    ):
        ended = lab.call(*command, *names)
        assert (ended.returncode, ended.stdout) == (2, "")
        assert ended.stderr.startswith(f"{place} no quota of user=nosuch\n  Nothing was changed.")
    assert lab.known() == SAME


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("adopt", "demo", *WHY), "no entity is specified"),
        (
            ("adopt", "demo", "--all", "--names", "user=a", *WHY),
            "--all already selects every quota",
        ),
        (
            ("adopt", "demo", "--all", "--reason", " "),
            "--reason is blank; it is recorded, so it needs a text",
        ),
        (("release", "demo", "--all", *WHY), "--all needs --from-ledger"),
    ],
)
def test_mistakes(arguments: tuple[str, ...], message: str, lab: Lab) -> None:
    """Invalid arguments of adopt and release are named, and the ledger stays empty."""
    lab.desire(SAME)

    result = lab.call(*arguments)

    assert (result.returncode, result.stderr.splitlines()[0]) == (2, message)
    assert lab.known() == {}


def test_a_row_that_was_released_by_mistake_is_adopted_again(lab: Lab) -> None:
    """Adopting a released row again restores the plan; both runs keep their records."""
    lab.desire({**SAME, **OLD})
    lab.run("reconcile")
    lab.desire(SAME)
    before = plan(lab)

    said(lab.call("release", "demo", "--from-ledger", "--names", "user=old", *WHY))
    assert plan(lab) == {"user=old": ("unmanaged", "report")}
    said(lab.call("adopt", "demo", "--names", "user=old", *WHY))

    assert plan(lab) == before == {"user=old": ("removed", "clear")}
    runs = lab.store.runs("demo")
    records = [name for run in runs for name in (ADOPTED, RELEASED) if (run / name).exists()]
    assert sorted(records) == [ADOPTED, RELEASED]


def test_a_second_folder_of_a_cluster_clears_nothing_of_the_first(lab: Lab) -> None:
    """A plan of another folder name than the last applied one needs approval, and names it."""
    lab.desire({**SAME, **OLD})
    lab.run("reconcile")
    lab.desire(SAME)
    copytree(lab.folder, lab.root / "other" / "second")

    ended = lab.call("reconcile", "second", "--desired-state", "other")

    assert ended.returncode == 1
    assert "policy_changed: the runs before were of the folder demo: if it still" in ended.stdout
    assert {**SAME, **OLD}.items() <= lab.stored().items()
