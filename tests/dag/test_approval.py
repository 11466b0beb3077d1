"""Each decision about a waiting plan: how the run ends, what is written and recorded."""

import dataclasses
import re
from getpass import getuser
from typing import Any

import pytest
from msgspec.structs import replace

from quota_ops.desired.read import read_policy
from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.model.plans.approval import Decision, DecisionKind
from quota_ops.store.ledger import ledger
from quota_ops.store.places.run_store import RunStore, open_place
from tests.dag.answering import approve, lost, nobody, question, reject
from tests.dag.repository import ALICE, DagRun, Quotas, Repository
from tests.dag.test_notify import lines, list_buttons
from tests.dag.test_reconcile import ALICE_HAS_1000, DONE, NOT_APPLIED, said
from tests.places import on_disk
from tests.repositories import commit_all, git, head

pytestmark = pytest.mark.usefixtures("embedded")
NOT_APPROVED = DONE | {"approve": "failed"} | NOT_APPLIED
TAKEN_OVER = {"user=alice producer_byte_rate": 900.0}
RECONCILE = "reconcile_demo"


@pytest.fixture
def taken(demo: Repository, quotas: Quotas) -> Repository:
    """A repository whose plan is blocked by the guard takeover."""
    quotas.set(TAKEN_OVER)
    return demo


def decision(run: DagRun) -> Decision:
    """Return the only decision about a run's plan, with a short digest."""
    (kept,) = run.folder().decisions()
    return replace(kept, digest=kept.digest[:8])


def test_approved(taken: Repository, quotas: Quotas) -> None:
    """Nothing is written before the approval, which is recorded with name, reason and guards."""
    shown: list[str] = []

    def answer(waiting: Any) -> None:
        assert quotas.stored() == TAKEN_OVER
        shown.extend(question(waiting))
        approve("agreed in PLAT-12", by="olga")(waiting)

    run = taken.run(RECONCILE, answer)
    assert (run.state, run.tasks) == ("success", DONE)
    assert quotas.stored() == ALICE_HAS_1000
    kept = decision(run)
    name = on_disk(run.folder()).name
    assert kept.guards == ("takeover",)
    assert kept == Decision(
        DecisionKind.APPROVED,
        kept.digest,
        kept.shown,
        "olga",
        getuser(),
        kept.at,
        "agreed in PLAT-12",
        name,
    )
    subject, body = shown
    assert subject == f"demo: apply plan {kept.digest} (1 change)?"
    reason = "user=alice producer_byte_rate unmanaged, with another value on the cluster"
    assert f"**takeover**: `{reason}`" in body
    (record,) = (taken.store / "approvals").glob(f"*/{kept.digest}*-0001.json")
    assert record.stat().st_size > 0


def test_an_answer_that_airflow_lost(taken: Repository, quotas: Quotas) -> None:
    """The next try of the task waits again, and a script approves again."""
    answers = iter((lost(approve("I am a robot")), approve("I am a robot")))

    def answer(waiting: Any) -> None:
        next(answers)(waiting)

    run = taken.run(RECONCILE, answer)
    assert (run.state, run.tasks, run.tries["approve"]) == ("success", DONE, 2)
    assert decision(run).reason == "I am a robot"
    assert quotas.stored() == ALICE_HAS_1000


def test_rejected(taken: Repository, quotas: Quotas, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run fails at once with the reason of the rejection, and nothing is written.

    One notification is sent when the plan needs approval, one when the run has failed. The second
    and the button Report have the address of the report on the web server of the run store.
    """
    monkeypatch.setenv("QUOTA_OPS_REPORT_URL", "https://quotas.example/store/")
    run = taken.run(RECONCILE, reject("not on a Friday", by="olga"))
    assert (run.state, run.tasks, run.tries["approve"]) == ("failed", NOT_APPROVED, 1)
    assert f"olga rejected plan {decision(run).digest}: not on a Friday" in said(run, "apply")
    assert (decision(run).said, decision(run).by) == (DecisionKind.REJECTED, "olga")
    assert "not on a Friday" in (on_disk(run.folder()) / "report.txt").read_text()
    assert quotas.stored() == TAKEN_OVER
    waiting, refused = lines(taken, run)
    page = f"https://quotas.example/store/runs/demo/{run.folder().place.name}/report.html"
    waits = f"waiting demo: demo: apply plan {decision(run).digest} (1 change)? "
    assert waiting.startswith(waits)
    assert refused.startswith("refused demo: 1 change to make on demo; apply was refused")
    assert refused.endswith(f" {page}")
    assert list_buttons("report") == {"Report": page}

    assert taken.run(RECONCILE, approve()).state == "success", "a rejected plan is asked again"

    bob = {"user=bob producer_byte_rate": 5.0}
    new = "{owner: new, quotas: [{user: bob, limits: {producer_byte_rate: 9}}]}"
    (taken.root / "desired_state/demo/new.yaml").write_text(new)
    quotas.set({"user=alice producer_byte_rate": 10.0, **bob})

    def look(waiting: Any) -> None:
        assert quotas.stored() == ALICE_HAS_1000 | bob, "the drift is repaired before the approval"
        _, body = question(waiting)
        waits = "1 other change waits: `user=bob producer_byte_rate`."
        assert f"`user=alice producer_byte_rate`. {waits}" in body
        reject("not on a Friday")(waiting)

    run = taken.run(RECONCILE, look)
    assert quotas.stored() == ALICE_HAS_1000 | bob
    assert run.state == "failed"
    ends = [path.read_text() for path in taken.store.glob("runs/demo/*/stage-apply.json")]
    assert sum("Nothing more was written." in text for text in ends) == 1


def test_nobody_answers(taken: Repository, quotas: Quotas, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the timeout, Airflow's scheduler rejects the plan without a name.

    The form of 600 changes shows ten, and links to a report that exists while the plan waits.
    """
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "https://airflow.example")
    user = "{{user: user-{}, limits: {{producer_byte_rate: 1000}}}}"
    users = ", ".join(map(user.format, range(599)))
    (taken.root / "desired_state/demo/many.yaml").write_text(f"{{owner: many, quotas: [{users}]}}")

    def look(waiting: Any) -> None:
        _, body = question(waiting)
        (page,) = taken.store.glob("runs/demo/*/report.html")
        path = page.relative_to(taken.store).as_posix()
        assert f"[600 changes in the report](<https://airflow.example/quota-ops/{path}>)" in body
        assert "user-598" in page.read_text()
        shown = sum(" → " in line for line in body.splitlines()[:-1])
        assert (shown, body.count("| `many` | 599 |"), len(body) < 5000) == (11, 1, True)
        nobody(waiting)

    run = dataclasses.replace(taken, approval_seconds=0.001).run(RECONCILE, look)
    assert (run.state, run.tasks, run.tries["approve"]) == ("failed", NOT_APPROVED, 1)
    assert f"plan {decision(run).digest[:8]} was not approved in time" in said(run, "apply")
    assert (decision(run).said, decision(run).by) == (DecisionKind.NOTHING, None)
    assert quotas.stored() == TAKEN_OVER


@pytest.mark.parametrize(
    "reason",
    [None, *(pytest.param(other, marks=pytest.mark.matrix) for other in (" \n", 7, {"a": "b"}))],
    ids=repr,
)
def test_approved_without_a_reason(
    taken: Repository, quotas: Quotas, reason: object, caplog: pytest.LogCaptureFixture
) -> None:
    """An approval without a reason, which Airflow's API accepts, fails; nothing is written."""
    run = taken.run(RECONCILE, approve(reason, by="a robot"))
    assert (run.state, run.tasks) == ("failed", NOT_APPROVED)
    assert "a robot approved plan" in said(run, "apply")
    assert "without a reason" in said(run, "apply")
    assert "clear the task approve or trigger a new run, and approve with a reason" in caplog.text
    assert run.folder().decisions() == ()
    assert quotas.stored() == TAKEN_OVER


def test_approved_after_the_cluster_moved(taken: Repository, quotas: Quotas) -> None:
    """A row that changed after the plan is skipped; the others are written and verified."""
    bob = ALICE.replace("alice", "bob")
    (taken.root / "desired_state" / "demo" / "search.yaml").write_text(bob)

    def answer(waiting: Any) -> None:
        quotas.set({"user=bob producer_byte_rate": 5})
        approve()(waiting)

    run = taken.run(RECONCILE, answer)
    assert (run.state, run.tasks) == ("failed", DONE | {"apply": "failed", "report": "failed"})
    assert "user=bob  stale" in said(run, "apply")
    assert quotas.stored() == ALICE_HAS_1000 | {"user=bob producer_byte_rate": 5.0}
    assert run.folder().read_json("verification.json")["verified"] == 1


def test_approved_after_another_commit(
    taken: Repository, quotas: Quotas, broker: RunningBroker
) -> None:
    """A plan is not applied if another commit was applied while it waited: it would undo that."""
    records = RunStore(open_place(taken.store)).of_cluster(broker.config.cluster_id)

    def answer(waiting: Any) -> None:
        policy = read_policy(taken.root / "desired_state" / "demo")
        ledger.change(records, lambda _rows: None, policy=policy, commit="c2")
        approve()(waiting)

    run = taken.run(RECONCILE, answer)
    assert (run.state, run.tasks) == ("failed", DONE | {"apply": "failed"} | _UNVERIFIED)
    assert "commit c2 was applied since this plan was made" in said(run, "apply")
    assert quotas.stored() == TAKEN_OVER


_UNVERIFIED = {"verify": "skipped", "report": "failed"}


def test_always(demo: Repository, quotas: Quotas) -> None:
    """With `approval: always` every plan that writes waits, even if no guard blocks it.

    Airflow accepts a decision only from one of the approvers, where the DAG file names them. The
    form shows who changed the files since the last applied commit, and their reason, and what is
    known of a change outside Git. If the cluster changes and returns to its earlier state, the same
    digest needs a new approval. A cluster whose plan waits is still in the drift report. The commit
    that sets `never` waits for approval like any other.
    """
    from fastapi import HTTPException

    demo.add_policy("demo", "approval: always\nrepository: https://github.example/acme/quotas")
    root = demo.root / "desired_state"
    git(root, "init", "--quiet")
    since = commit_all(root)

    def answer(waiting: Any) -> None:
        first = "No commit has been applied to this cluster before. 1 commit of its files:"
        who = f"- `{since[:7]}` `Quotas` by `test <test@localhost>`"
        assert f"\n{first}\n\n{who}\n" in question(waiting)[1]
        with pytest.raises(HTTPException, match="User=mallory"):
            approve("trust me", by="mallory")(waiting)
        with pytest.raises(HTTPException, match="User=mallory"):
            reject("stop", by="mallory")(waiting)
        approve("checked", by="olga")(waiting)

    first = dataclasses.replace(demo, approvers=["olga"]).run(RECONCILE, answer)
    assert (first.state, first.tasks) == ("success", DONE)
    assert (decision(first).guards, decision(first).by) == ((), "olga")
    assert demo.run(RECONCILE).state == "success", "nothing to write"

    quotas.set({"user=alice producer_byte_rate": None})

    def look_at_drift(waiting: Any) -> None:
        outside = (
            r"`changed outside Git after [^.]+ UTC\. New: no earlier run found it\. No alter in"
        )
        body = question(waiting)[1]
        assert re.search(outside, body)
        assert "writes exactly these changes and overwrites 1 change made outside Git." in body
        approve("checked again", by="olga")(waiting)

    again = demo.run(RECONCILE, look_at_drift)
    assert (again.state, again.tasks) == ("success", DONE)
    assert quotas.stored() == ALICE_HAS_1000

    (root / "README.md").write_text("Not of a cluster")
    commit_all(root)
    (root / "demo/payments.yaml").write_text(ALICE.replace("1000", "2000"))
    policy = root / "demo/cluster.yaml"
    policy.write_text(policy.read_text().replace("approval: always", "approval: never"))
    git(root, "commit", "--quiet", "--all", "--message", "Double alice: PLAT-7 |")

    def look(waiting: Any) -> None:
        page = f"https://github.example/acme/quotas/compare/{since}...{head(root)}"
        asks = f"`commit {since[:7]}` was applied last ([compare](<{page}>)). 1 commit since then:"
        who = f"- `{head(root)[:7]}` `Double alice: PLAT-7 |` by `test <test@localhost>`"
        assert f"\n{asks}\n\n{who}\n" in question(waiting)[1]
        assert demo.run("drift").state == "success"
        approve("checked", by="olga")(waiting)

    assert demo.run(RECONCILE, look).state == "success"
