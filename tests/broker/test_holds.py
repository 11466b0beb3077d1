"""Holds on a real broker: a held row is reported, not written, and returns after its end."""

import json
from datetime import UTC, datetime, timedelta

import pytest
import time_machine

from quota_ops.model.plans.hold import Hold
from quota_ops.model.quotas.specification import parse_exactly
from quota_ops.model.runs.outcome import Status
from quota_ops.runs.chain import RESUMED, run_stages
from quota_ops.store.ledger import holds
from quota_ops.store.run.files import PLAN
from quota_ops.store.run.folder import RunFolder
from tests.broker.stage_runs import KEY, outcomes
from tests.lab import Lab, error_of
from tests.writing import State

ALICE: State = {"user=alice": {KEY: 10.0}}
BOB: State = {"user=bob": {KEY: 20.0}}
WHO = ("demo", "--names", "user=alice")
YEARLY = {"cron": "0 0 1 1 *", "zone": "UTC", "duration": "1h", "reason": "New Year"}


def hold(lab: Lab, user: str, hours: float = 1) -> Hold:
    """Hold a user, until some time from now, or until some time ago."""
    now = datetime.now(UTC).replace(microsecond=0)
    who = parse_exactly([f"user={user}"], [], [])
    word = Hold(who, now + timedelta(hours=hours), "anna", "a load test", now - timedelta(days=1))
    holds.add(lab.store.of_cluster(lab.cluster.cluster_id).holds, word)
    return word


def digest(folder: RunFolder) -> str:
    """Return the digest of a run's plan."""
    return str(folder.read_json(PLAN)["digest"])


def test_a_night_on_call(lab: Lab) -> None:
    """A value altered and held at night stays; after a release, the next run sets it back."""
    lab.desire({**ALICE, **BOB})
    lab.run("reconcile")

    held = lab.call("hold", *WHO, "--until", "2h", "--reason", "INC-31", "--by", "anna")
    lab.put({"user=alice": {KEY: 15.0}, "user=bob": {KEY: 25.0}})
    reconciled = lab.call("reconcile", "demo")

    assert held.returncode == reconciled.returncode == 0, reconciled.stderr
    assert lab.stored() == {"user=alice": {KEY: 15.0}, **BOB}
    assert lab.known() == {**ALICE, **BOB}
    (word,) = holds.read(lab.store.of_cluster(lab.cluster.cluster_id).holds)
    assert held.stdout.startswith(
        f"demo ({lab.cluster.cluster_id}): user=alice is {word.text}\nUntil then, runs leave it unc"
    )
    assert "1 to change of 2, 0 in sync, 1 held, 0 unmanaged\n" in reconciled.stdout
    assert f"\n     {word.text}\n" in reconciled.stdout
    assert f"\nuser=alice is {word.text}\n" in reconciled.stdout
    assert lab.call("holds", "demo").stdout.splitlines()[1].split()[0] == "user=alice"

    released = lab.call("release", *WHO, "--by", "bert")
    assert released.stdout.splitlines() == [
        f"demo ({lab.cluster.cluster_id}): user=alice is no longer held",
        "Runs follow Git again. quota-ops plan demo shows what the next one changes.",
    ]
    assert lab.call("holds", "demo").stdout == "Nothing is held.\n"
    history = json.loads(lab.call("holds", "demo", "--all", "--format", "json").stdout)["holds"]
    assert [(one["by"], one["reason"]) for one in history] == [("anna", "INC-31"), ("bert", "")]
    lab.run("reconcile", allow={})
    assert lab.stored() == {**ALICE, **BOB}


def test_a_quota_that_is_given_up(lab: Lab) -> None:
    """A quota that is held, leaves Git and is then released stays on the cluster, unmanaged."""
    lab.desire({**ALICE, **BOB})
    lab.run("reconcile")
    why = ("--reason", "moving out")
    lab.call("hold", *WHO, "--until", "1d", *why)
    lab.run("reconcile")
    lab.desire(BOB)
    lab.run("reconcile")

    assert lab.call("release", *WHO, "--from-ledger", *why).returncode == 0
    lab.call("release", *WHO)
    lab.run("reconcile")

    assert (lab.stored(), lab.known()) == ({**ALICE, **BOB}, BOB)


def test_a_hold_of_somebody_else(lab: Lab) -> None:
    """A new hold says which one it replaces; `alter --until` never shortens one."""
    lab.desire({**ALICE, **BOB})
    lab.run("reconcile")
    why = ("--reason", "INC-70", "--by")
    lab.call("hold", *WHO, "--until", "8h", *why, "anna")
    (night,) = holds.holds_now(lab.records.holds)

    brief = ("alter", *WHO, "--add", f"{KEY}=8", "--until", "1m", *why, "ben")
    assert night.text in lab.call(*brief).stdout
    assert holds.holds_now(lab.records.holds) == (night,)

    shown = lab.call("hold", *WHO, "--until", "9h", *why, "ben").stdout.splitlines()
    assert shown[1] == f"It was {night.text}."


def test_alter_says_who_keeps_it(lab: Lab) -> None:
    """The output names the hold that keeps the change, and until when."""
    lab.desire(ALICE)
    word = hold(lab, "alice")

    altered = lab.call("alter", *WHO, "--add", f"{KEY}=11")

    assert (
        f"\n  team.yaml:4 declares 10 B/s: no reconcile sets it while it is {word.text}\n"
        in altered.stdout
    )


def test_an_owner_a_file_and_a_run_are_held_with_one_command(lab: Lab) -> None:
    """Everything that belongs to it stays as it is, and is released by the same name."""
    lab.desire({**ALICE, **BOB})
    run = lab.run("reconcile")
    lab.desire({"user=alice": {KEY: 11.0}, "user=bob": {KEY: 21.0}})
    groups = (("--owner", "team"), ("--file", "team.yaml"), ("--run", run.place.name))

    for group in groups:
        held = lab.call("hold", "demo", *group, "--until", "2h", "--reason", "INC-31")
        kept = lab.call("reconcile", "demo")
        name = f"{group[0].removeprefix('--')} {group[1]}"
        assert f": {name} (user=alice, user=bob) is held until " in held.stdout, held.stderr
        assert "0 in sync, 2 held, 0 unmanaged\n" in kept.stdout
        assert lab.call("holds", "demo").stdout.splitlines()[1].startswith(name)
        released = lab.call("release", "demo", *group)
        assert f": {name} (user=alice, user=bob) is no longer held\n" in released.stdout, (
            released.stderr
        )

    assert lab.stored() == {**ALICE, **BOB}


def test_it_comes_back_by_itself(lab: Lab) -> None:
    """An expired hold has no effect."""
    lab.desire(ALICE)
    hold(lab, "alice", hours=-0.1)

    lab.run("reconcile")

    assert lab.stored() == ALICE


def test_every_report_tells_of_it(lab: Lab) -> None:
    """Every report shows a hold's end, author and reason, beside the row and in a list."""
    lab.desire({**ALICE, **BOB})
    word = hold(lab, "alice")

    folder = lab.run("reconcile")

    for name in ("report.txt", "report.html"):
        text = (folder.place / name).read().decode()
        # a page also has its rows as data, for a script
        assert text.count(word.text) == (3 if name == "report.html" else 2), name
        assert "1 quota on " in text
    told = folder.read_json("report.json")
    assert told["answer"]["sentence"].startswith("1 quota on demo is held; 1 change made")
    assert told["plan"]["holds"] == [word.as_json()]
    rows = {one["entity"]: one for one in told["rows"]}
    named = ("kind", "action", "held")
    assert {entity: [row.get(one) for one in named] for entity, row in rows.items()} == {
        "user=alice": ["pending", "held", word.text],
        "user=bob": ["pending", "set", None],
    }
    assert (told["counts"]["held"], told["verified"]) == (1, 1)


@pytest.mark.each_store
def test_held_after_the_plan_was_approved(lab: Lab) -> None:
    """The approved digest stays valid; a row held since then is left alone, without a failure."""
    lab.desire({**ALICE, **BOB})
    run = lab.planned()
    word = hold(lab, "alice")

    run_stages(run, RESUMED)

    assert outcomes(run.folder) == {"user=alice": Status.HELD, "user=bob": Status.ACCEPTED}
    assert lab.stored() == lab.known() == BOB
    assert lab.known("intended") == {}
    assert word.text in (run.folder.place / "report.txt").read().decode()


def test_held_after_it_was_written(lab: Lab) -> None:
    """A resumed run reports its earlier writes as written, held or not."""
    lab.desire({**ALICE, **BOB})
    run = lab.planned()
    run_stages(run, ("apply",))
    lab.wait_for({**ALICE, **BOB})
    hold(lab, "alice")

    run_stages(run, RESUMED)

    assert outcomes(run.folder) == dict.fromkeys(("user=alice", "user=bob"), Status.ACCEPTED)
    assert lab.known() == {**ALICE, **BOB}


def test_a_name_that_nobody_has(lab: Lab) -> None:
    """A hold is kept whatever it names, with a warning for an unknown name."""
    lab.desire(ALICE)

    lab.note({"user=gone": {KEY: 1.0}})
    why = ("--until", "1h", "--reason", "\udcff")
    known = lab.call("hold", "demo", "--names", "user=gone", *why)
    held = lab.call("hold", "demo", "--names", "user=alcie", *why)

    nobody = (
        "Neither Git nor the ledger has an entity of that name, and no run has found it on the "
        "cluster: check the spelling.\n"
    )
    assert (nobody in known.stdout, held.stdout.endswith(nobody)) == (False, True)
    assert held.stdout.splitlines()[0].endswith(": \\udcff")
    assert lab.run("plan").differences()[0].action == "set"


def test_a_clock_that_differs_from_the_stores_is_named(lab: Lab) -> None:
    """A machine that would end a hold or a freeze early or late shows that, and by how much."""
    lab.desire(ALICE, freeze=[YEARLY])
    for minutes, side, end in ((5.5, "ahead of", "early"), (-5.5, "behind", "late")):
        with time_machine.travel(datetime.now(UTC) + timedelta(minutes=minutes)):
            planned = lab.call("plan", "demo")
            held = lab.call("hold", *WHO, "--until", "2h", "--reason", "INC-31")
        assert held.stderr.startswith("The clock of this machine is 5 min ")
        assert f"{side} that of the run store: holds and freezes end that much too {end} " in (
            planned.stdout
        )
    assert "of this machine is" not in lab.call("plan", "demo").stdout


def test_a_hold_makes_another_plan(lab: Lab) -> None:
    """A hold changes the digest: an approval does not cover the plan without the held row."""
    lab.desire({**ALICE, **BOB})
    whole = digest(lab.run("plan"))
    hold(lab, "alice")

    rest = digest(lab.run("plan"))

    assert rest != whole
    lab.desire(BOB)
    assert digest(lab.run("plan")) == rest


def test_guards_do_not_speak_of_what_is_held(lab: Lab) -> None:
    """A takeover of a held row is not blocked, and is not written."""
    lab.put({"user=alice": {KEY: 99.0}})
    lab.desire(ALICE)
    hold(lab, "alice")

    lab.run("reconcile", allow={})

    assert lab.stored() == {"user=alice": {KEY: 99.0}}


def test_verify_does_not_ask_for_what_is_held(lab: Lab) -> None:
    """Verify skips a held row, which may be changed by hand at any time, and shows its hold."""
    lab.desire({**ALICE, **BOB})
    lab.run("reconcile")
    held = hold(lab, "alice")
    lab.put({"user=alice": {KEY: 99.0}})

    assert lab.call("verify", "demo").stdout == (
        "broker 1 agrees on 1 of 2 keys (1 was skipped)\n"
        f"user=alice is {held.text}\n"
        "1 of 1 quota verified on every broker: stored and in force. 1 was skipped.\n"
    )


def test_verify_and_report_count_a_held_row_alike(lab: Lab) -> None:
    """A held row that the cluster stores as in Git is in sync; overridden, it is not in force."""
    lab.desire({**ALICE, **BOB})
    lab.run("reconcile")
    hold(lab, "alice")

    def list_statuses() -> list[tuple[str, bool]]:
        for command in ("report", "verify"):
            lab.call(command, "demo")
        runs = json.loads(lab.call("runs", "--last", "2", "--format", "json").stdout)
        return [(run["status"], "2 of 2 quotas in sync" in run["sentence"]) for run in runs]

    assert list_statuses() == [("In sync", True)] * 2

    lab.put({"client-id=<default>,user=alice": {KEY: 1.0}})
    assert list_statuses() == [("Needs attention", False)] * 2
    assert lab.call("verify", "demo").stdout.endswith(
        "\n1 of 1 quota verified on every broker: stored and in force. 1 was skipped, 1 of which "
        "is not in force for all clients.\n"
    )


def test_a_damaged_hold_stops_every_write(lab: Lab) -> None:
    """A damaged hold ends a run before its plan; after the plan, apply sends nothing."""
    lab.desire(ALICE)
    run = lab.planned()
    hold(lab, "alice")
    holds = lab.store.of_cluster(lab.cluster.cluster_id).holds
    damaged = holds / holds.list()[0]
    damaged.replace(b"{")

    error = error_of(run, RESUMED)
    _, before = lab.refused("plan")

    assert error.message.startswith(f"0 of 1 entity done: {damaged} is damaged")
    assert before.message.startswith(f"{damaged} is damaged")
    assert lab.stored() == {}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("hold", *WHO, "--until", "noon", "--reason", "x"),
            "--until 'noon' is neither a duration",
        ),
        (
            ("hold", *WHO, "--until", "2h", "--reason", " "),
            "--reason is blank; it is recorded, so it needs a text",
        ),
        (("hold", "demo", "--until", "2h", "--reason", "x"), "no entity is specified"),
        (
            ("hold", *WHO, "--owner", "team", "--until", "2h", "--reason", "x"),
            "--owner, --file and --run already select entities",
        ),
        (
            ("hold", "demo", "--owner", "nobody", "--until", "2h", "--reason", "x"),
            "there is no quota of --owner nobody",
        ),
        (("release", "demo", "--file", "team.yaml"), "file team.yaml is not held"),
        (("release", *WHO), "user=alice is not held"),
    ],
)
def test_mistakes(arguments: tuple[str, ...], message: str, lab: Lab) -> None:
    """Invalid arguments of hold and release are named, and no hold is stored."""
    lab.desire(ALICE)

    result = lab.call(*arguments)

    assert (result.returncode, result.stderr[: len(message)]) == (2, message)
    assert holds.read(lab.store.of_cluster(lab.cluster.cluster_id).holds) == ()
