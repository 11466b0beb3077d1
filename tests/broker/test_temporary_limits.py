"""Temporary limits on a real broker; the recorded start of a run decides what applies."""

import json
from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from quota_ops.kafka.cluster import Cluster
from quota_ops.model.errors import Refused, Unreachable
from quota_ops.model.plans.hold import Hold
from quota_ops.model.plans.ledger_edits import INTENDED
from quota_ops.model.runs.outcome import Status
from quota_ops.model.stored import to_json
from quota_ops.runs.chain import CHAINS, RESUMED, run_stages
from quota_ops.store.ledger import holds
from quota_ops.store.places.written_by import stamp
from quota_ops.store.run.files import PLAN
from quota_ops.store.run.folder import RunFolder
from tests.broker.stage_runs import KEY, outcomes
from tests.lab import Lab, error_of

SALE = """\
owner: team
quotas:
  - user: alice
    limits: {producer_byte_rate: 1000}
    overrides:
      - {until: 2026-11-01T00:00:00Z, limits: {producer_byte_rate: 9000}, reason: a sale}
      - {from: 2026-11-02T00:00Z, until: 2999-01-01T00:00Z, limits: {producer_byte_rate: 5000}}
  - {user: bob, limits: {producer_byte_rate: 2000}, until: 2999-01-01T00:00:00Z}
  - {user: carol, limits: {producer_byte_rate: 3000}}
"""


def start_at(lab: Lab, time: str | None) -> RunFolder:
    """Return the folder of a run that started at a time, or just now."""
    folder = RunFolder.start(lab.store.new_run("demo"), cluster="demo", commit=None)
    if time is not None:
        folder.change_about(started=time)
    return folder


def test_an_override_that_ends_while_a_run_waits(lab: Lab) -> None:
    """Its row is stale, and nothing of it is written; the next run writes the value that applies.

    When the override and a quota end later, no guard blocks the return to the standing values.
    """
    lab.desire({})
    (lab.folder / "team.yaml").write_text(SALE, "utf-8")
    waiting = lab.resume(start_at(lab, "2026-10-31T12:00:00Z"))
    run_stages(waiting, CHAINS["plan"])
    plan = waiting.folder.plan()

    error = error_of(
        lab.resume(waiting.folder, approve=waiting.folder.read_json(PLAN)["digest"]), RESUMED
    )

    assert {row.entity: (row.target, row.reason) for row in plan.writes} == {
        "user=alice": (9000.0, "a sale"),
        "user=bob": (2000.0, None),
        "user=carol": (3000.0, None),
    }
    assert isinstance(error, Refused)
    assert "Git declares another value since 2026-11-01T00:00:00Z" in str(error)
    assert outcomes(waiting.folder) == {
        "user=alice": Status.STALE,
        "user=bob": Status.ACCEPTED,
        "user=carol": Status.ACCEPTED,
    }
    assert lab.stored() == {"user=bob": {KEY: 2000.0}, "user=carol": {KEY: 3000.0}}
    assert lab.known(INTENDED) == {}

    lab.run("reconcile")
    assert lab.stored()["user=alice"] == {KEY: 5000.0}
    shown = lab.call("resolve", "demo", "--user", "alice", "--key", KEY).stdout
    assert "as team.yaml:7 (team; override until 2999-01-01T00:00:00Z, then 1 kB/s)" in shown

    after = start_at(lab, "2999-01-01T00:00:00Z")
    run_stages(lab.resume(after, allow={}), CHAINS["reconcile"])
    assert lab.stored() == lab.known() == {"user=alice": {KEY: 1000.0}, "user=carol": {KEY: 3000.0}}


def test_a_standing_value_that_changed_is_judged(lab: Lab) -> None:
    """A guard judges the value that follows an override if it is not the one that was planned."""
    lab.desire({})
    (lab.folder / "team.yaml").write_text(SALE, "utf-8")
    lab.run("reconcile")
    (lab.folder / "team.yaml").write_text(SALE.replace(": 1000}", ": 10}"), "utf-8")

    after = lab.resume(start_at(lab, "2999-01-01T00:00:00Z"), allow={})
    error = error_of(after, CHAINS["reconcile"])

    assert "cut" in str(error)
    assert [guard.guard for guard in after.folder.plan().refused] == ["cut"]
    assert lab.stored()["user=alice"] == {KEY: 5000.0}


def test_a_plan_as_of_another_time_is_not_applied(lab: Lab) -> None:
    """The option --as-of of plan shows what a later run would do; apply refuses to write it."""
    lab.desire({})
    (lab.folder / "team.yaml").write_text(SALE, "utf-8")
    lab.run("reconcile")

    shown = lab.call("plan", "demo", "--as-of", "2999-01-01T00:00Z")
    run = lab.runs[-1]
    digest = run.read_json(PLAN)["digest"]
    refused = lab.call("apply", "--run", str(run.place), "--approve", digest)

    assert [row.split()[1:5] for row in shown.stdout.splitlines() if "user=" in row][:2] == [
        ["user=alice", KEY, "5", "kB/s"],
        ["user=bob", KEY, "2", "kB/s"],
    ]
    assert "as of 2999-01-01T00:00:00Z: this plan cannot be applied" in shown.stdout
    assert "next:" not in shown.stdout
    assert refused.returncode == 1
    assert refused.stderr == (
        "this plan shows what a run at 2999-01-01T00:00:00Z would do\n"
        "  Nothing was written. Make a plan without --as-of.\n"
    )
    assert lab.stored()["user=alice"] == {KEY: 5000.0}


def test_a_temporary_limit_above_the_ceiling_of_its_owner(lab: Lab) -> None:
    """An override counts like a limit: a guard blocks what its owner may not declare."""
    lab.desire({}, ceilings={"team": {KEY: 4000, "total": {KEY: 9000}}})
    (lab.folder / "team.yaml").write_text(SALE, "utf-8")

    error = error_of(lab.start(allow={}), CHAINS["reconcile"])

    assert "above_ceiling: user=alice producer_byte_rate would be 5 kB/s" in str(error)
    assert "team would have 10 kB/s of producer_byte_rate together, above its 9 kB/s" in str(error)
    assert lab.stored() == {}


def test_a_one_off_change_until_a_time(lab: Lab) -> None:
    """Until then no run reverts it, and plans show it; the first run after it does by itself.

    A change that no run would revert is refused, and nothing is written.
    """
    lab.desire({"user=alice": {KEY: 1000.0}, "user=new": {KEY: 1.0}})
    lab.put({"user=bob": {KEY: 7.0}})
    lab.run("reconcile")
    lab.desire({"user=alice": {KEY: 1000.0}, "user=new": {KEY: 2.0}})
    until = ("--until", "3999-01-01T00:00Z", "--by", "anna")
    why = ("--reason", "INC-7")

    def alter(user: str, *more: str) -> tuple[int, str]:
        ended = lab.call("alter", "demo", "--names", f"user={user}", "--add", f"{KEY}=5000", *more)
        return ended.returncode, ended.stdout + ended.stderr

    refusals = {
        ("bob", *until, *why): f"Git declares no {KEY} of user=bob",
        ("new", *until, *why): "was not verified as team.yaml:",
        ("alice", *until): "--until needs a reason",
        ("alice", "--until", "noon", *why): "--until 'noon' is neither a duration",
    }
    for (user, *more), text in refusals.items():
        code, shown = alter(user, *more)
        assert (code, text in shown) == (2, True), shown
    assert lab.stored()["user=alice"] == {KEY: 1000.0}

    code, shown = alter("alice", *until, *why)
    assert (code, "held until 3999-01-01 00:00 UTC by anna: INC-7" in shown) == (0, True)
    lab.run("reconcile")
    assert lab.stored()["user=alice"] == {KEY: 5000.0}
    assert "held until 3999-01-01 00:00 UTC by anna: INC-7" in lab.call("plan", "demo").stdout
    folder = lab.store.of_cluster(lab.cluster.cluster_id).holds
    (held,) = holds.read(folder)
    passed = datetime(2026, 11, 1, tzinfo=UTC)
    (file,) = folder.list()
    ended = stamp(to_json(Hold, replace(held, at=passed, until=passed)))
    (folder / file).replace(json.dumps(ended).encode())
    lab.run("reconcile", allow={})
    assert lab.stored()["user=alice"] == {KEY: 1000.0}
    lab.desire({"user=alice": {KEY: 1000.0}}, drift="ask")
    assert "sets drift: ask, so no run returns it" in alter("alice", *until, *why)[1]
    lab.desire({"user=alice": {KEY: 1000.0}})
    (lab.records.ledger / max(lab.records.ledger.list())).replace(b"PAR1damaged")
    code, shown = alter("alice", *until, *why, "--allow", "unprotected")
    assert code == 2
    assert "so it is unknown whether a run returns the change\n" in shown
    assert "Leave out --until, and hold the entities after the change" in shown


def test_the_hold_of_an_alter_that_was_not_sent_is_told(lab: Lab) -> None:
    """The hold is recorded first: if nothing can be sent then, the command tells how to end it."""

    def fail(*_: object) -> None:
        raise Unreachable("the controller cannot be reached")

    lab.desire({"user=alice": {KEY: 10.0}})
    lab.run("reconcile")
    change = ("alter", "demo", "--names", "user=alice", "--add", f"{KEY}=11", "--until", "8h")

    with pytest.MonkeyPatch.context() as broken:  # the lab needs it again when the test ends
        broken.setattr(Cluster, "apply", fail)
        ended = lab.call(*change, "--reason", "INC-31", "--by", "anna")

    assert ended.returncode == 3
    told = ended.stderr.splitlines()[0]
    assert told.startswith("user=alice is still held until ")
    assert told.endswith(
        " by anna: INC-31. To end the hold: quota-ops release demo --names user=alice --reason TEXT"
    )
