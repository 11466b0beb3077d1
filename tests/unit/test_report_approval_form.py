"""The question before a plan is applied."""

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

from quota_ops.model.clusters.cluster_facts import Absent, Metadata
from quota_ops.model.commit import Changes, Commit, CommitSource, Provenance, rollback_of
from quota_ops.model.finding import InvalidFile
from quota_ops.model.plans.effect import ClassEffect, Effect, Limit
from quota_ops.model.plans.guard import Guard, GuardFinding
from quota_ops.model.quotas.difference import Action, Kind
from quota_ops.model.quotas.owners import Owner
from quota_ops.model.quotas.rows import OverrideRow, Side
from quota_ops.model.runs.run import Checked
from quota_ops.report.markdown.approval_form import format_body
from quota_ops.report.page.report import as_html
from tests.unit.report_sample import (
    ALICE_RAISED,
    CLUSTER_ID,
    ETL_REMOVED,
    MIB,
    PLAN,
    PLANNED,
    TROUBLED,
    difference,
    many_changes,
)
from tests.unit.test_report_past import ALTERED, report_of

UNTIL = datetime(2026, 11, 21, tzinfo=UTC)
PAGE = "https://airflow.example/quota-ops/runs/demo/one/report.html"


@pytest.mark.parametrize(
    ("commit", "told"),
    [("a1b2c3d4e5f6", "a1b2c3d"), (rollback_of("2026-11-21-7f3a"), "rollback of 2026-11-21-7f3a")],
)
def test_what_the_plan_was_made_from(commit: str, told: str) -> None:
    """A commit is shortened as Git does it; a run that is rolled back is named in full."""
    report = replace(TROUBLED, provenance=Provenance(commit, CommitSource.COMPARED))
    markdown = format_body(report, PLAN, UNTIL, PAGE)

    assert f" · commit `{told}`" in markdown.partition("\n")[0]


def test_what_decides_comes_before_the_changes() -> None:
    """Guards, an invalid file, an absent broker, and who asks, with the commits of a first run."""
    plan = replace(PLAN, guards=(GuardFinding(Guard.CUT, "user=alice would fall"),))
    commit = Commit("a1b2c3d4e5f6", "Anna <anna@example>", "Less for alice")
    report = replace(
        TROUBLED,
        plan=plan,
        provenance=Provenance("a1b2c3d4e5f6", CommitSource.COMPARED),
        changes=Changes(None, (commit,), 1),
        checked=Checked((), (), (InvalidFile("search.yaml", "search", 3, "It is empty.", 1),)),
        metadata=Metadata(absent=(Absent(3, "b:3", "is fenced"),)),
    )
    form = format_body(report, plan, UNTIL, PAGE)
    head = form.partition("\n| ")[0]

    assert (
        "\n⚠ **If you approve, the changes are written and the run fails at verify**, because "
        "broker 3 cannot be queried, unless that has changed by then.\n"
    ) in head
    assert (
        "\n**Approve** writes exactly the 3 changes that this run has not written yet. A row that "
        "changes in the meantime is skipped, and the run fails; if another run writes to the "
        "cluster in the meantime, nothing is written.\n"
    ) in form
    assert "\nWhich clients use these quotas is unknown: there is no inventory.\n" in head
    assert form.count("`written already, by this run`") == 1
    accepted = head.index("The broker")
    guard = head.index("- ⚠ **cut**: `user=alice would fall`\n")
    invalid = head.index("⚠ `search.yaml (owner search) is invalid: line 3: It is empty.`")
    absent = head.index("⚠ Broker 3 at b:3 is fenced: no client is sent to it")
    first = head.index("No commit has been applied to this cluster before. 1 commit of its files:")
    author = head.index("- `a1b2c3d` `Less for alice` by `Anna <anna@example>`")
    assert accepted < guard < invalid < absent < first < author


def test_many_changes_stay_readable() -> None:
    """Of 600 changes the form counts each owner's by kind, lists ten, and links to the others."""
    report = many_changes(600)
    assert report.plan is not None
    owners = ("payments", *(f"team-{at}|" for at in range(20)), None)
    changes = [
        difference._replace(owner=owners[at % 22], kind=Kind.TAKEOVER if at % 3 else Kind.PENDING)
        for at, difference in enumerate(report.plan.differences)
    ]
    plan = replace(report.plan, differences=tuple(changes))
    lines = format_body(replace(report, plan=plan), plan, UNTIL, PAGE).splitlines()

    assert f"[600 changes in the report](<{PAGE}>)" in lines[2]
    assert {
        "| owner | changes | pending | takeover |",
        "| `payments` | 28 | 10 | 18 |",
        "| `team-0\\|` | 28 | 9 | 19 |",
        "| 10 more owners | 270 |  |  |",
    } <= set(lines)
    assert sum(line.startswith("| ↑") for line in lines) == 10
    assert len(lines) < 45


def test_a_change_outside_git_shows_who_made_it() -> None:
    """A drifted row has who set the value, when and why; the form has the way to keep it."""
    report = replace(report_of(ALTERED), dag_id="reconcile_demo")
    assert report.plan is not None
    alice, bob, _, approve, _, rejects = _read_rows(format_body(report, report.plan, UNTIL, PAGE))

    assert (
        "`changed outside Git 2026-11-21 09:00 UTC. New: no earlier run found it. Changed by anna "
        "with alter on 2026-11-21 09:00 UTC: INC-31 (run r7).`"
    ) in alice
    assert "`changed outside Git. New: no earlier run found it. " in bob
    assert "No alter in the history did it, and Kafka does not record who did.`" in bob
    assert approve == (
        "**Approve** writes exactly these changes and overwrites 2 changes made outside Git. A "
        "row that changes in the meantime is skipped, and the run fails; if another run writes to "
        "the cluster in the meantime, nothing is written."
    )
    assert rejects == (
        "**Reject**, or no decision until 2026-11-21 00:00 UTC, writes nothing. To keep a change "
        "made outside Git, reject, and accept it into Git, in a checkout and with the run store of "
        "Airflow (`QUOTA_OPS_RUN_STORE`): `quota-ops accept demo --names user=alice --key "
        "producer_byte_rate --run 2026-11-21T10-15-00Z`"
    )


def test_each_guard_is_in_the_first_rows() -> None:
    """A row of each guard comes before all others, and an effect of two rows is shown once."""
    taken = tuple(ETL_REMOVED._replace(entity=f"user={at}", kind=Kind.TAKEOVER) for at in range(11))
    conflict = ALICE_RAISED._replace(kind=Kind.CONFLICT)
    guards = (GuardFinding(Guard.TAKEOVER, "11 rows"), GuardFinding(Guard.CONFLICT, "1 row"))
    plan = replace(PLAN, differences=(*taken, conflict), guards=guards)
    before, after = (Limit(value, "user=alice", ("user",)) for value in (10 * MIB, 15 * MIB))
    effect = Effect((ClassEffect(before, after, "user=alice"),))
    effects = {taken[0].id: effect, taken[1].id: effect}
    form = format_body(replace(PLANNED, plan=plan, effects=effects), plan, UNTIL, PAGE)

    first, second, third = _read_rows(form)[:3]
    raised = "`raised: user alice, from 10 MiB/s (user=alice) to 15 MiB/s (user=alice)`"
    assert f"`blocked by takeover` · {raised}" in first
    assert "`blocked by conflict`" in second
    assert "`blocked by takeover` · `other effects as in a row above`" in third
    assert form.count(raised) == 1


def _read_rows(form: str) -> list[str]:
    """Return the lines from the first row of the table."""
    return form.partition("\n|-|-|-|-|-|\n")[2].splitlines()


def test_limits_that_the_plan_does_not_bring_into_force() -> None:
    """The form tells before the changes which unmanaged quotas override quotas of Git."""
    key, names = "producer_byte_rate", [f"user-{at}" for at in range(7)]
    rows = [
        difference(
            {"user": name, "client-id": None}, key, (Kind.OVERRIDING, Action.REPORT), 1e3, None
        )
        for name in names
    ]
    plan = replace(PLAN, differences=(*PLAN.differences, *rows))
    unmanaged = Side.UNMANAGED
    overrides = tuple(
        OverrideRow(
            CLUSTER_ID,
            row.entity,
            key,
            1e3,
            None,
            f"user={name}",
            1e7,
            "a",
            "a.yaml",
            at,
            unmanaged,
        )
        for at, (name, row) in enumerate(zip(names, rows, strict=True))
    )
    form = format_body(replace(TROUBLED, plan=plan, overrides=overrides), plan, UNTIL, PAGE)

    head = form.partition("\n| ")[0]
    assert (
        "\n⚠ **7 unmanaged quotas on `demo` override 7 quotas of Git.** This plan does not change "
        "it:\n"
        "\n- `client-id=<default>,user=user-0` producer_byte_rate: `user user-0, every client "
        "id without a limit of its own: 1 kB/s in force, lower than "
        "10 MB/s declared by user=user-0 (a.yaml:0)`\n"
    ) in head
    assert head.count("in force") == 5
    assert "\n- and 2 more" in head


def test_changed_settings_are_shown_to_who_approves_them() -> None:
    """The form and the page list what an owner gains, and what else is changed."""
    old = replace(PLAN.policy, owners=(Owner("search", user_prefixes=("search-",)),))
    new = replace(old, owners=(Owner("search", user_prefixes=("admin-", "search-", "svc-")),))
    guard = GuardFinding(Guard.POLICY_CHANGED, "cluster.yaml changed: owners")
    plan = replace(PLAN, policy=new, applied_policy=old, guards=(guard,))
    report = replace(PLANNED, plan=plan)

    form = format_body(report, plan, UNTIL, PAGE)
    assert (
        "\n- ⚠ **policy_changed**: `cluster.yaml changed: owners`\n"
        "  - `owners.search.user_prefixes`: + `admin-`, `svc-`\n"
    ) in form
    assert "1 change made outside Git and applies the changed settings of cluster.yaml. A" in form
    assert " UTC, writes nothing, and settings stay as last applied. To keep" in form
    assert "<p>owners.search.user_prefixes: + admin-, svc-</p>" in as_html(report)
