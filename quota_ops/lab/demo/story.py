"""The story that the demo tells: each step does what it says, and is held to what happened."""

from quota_ops.lab.demo.by_hand import AT_NIGHT, BEFORE_US, BY_HAND, IN_A_HURRY, by_hand_cells
from quota_ops.lab.demo.kinds import KINDS, kinds_cells, missing_kinds
from quota_ops.lab.demo.lab import Lab, expect
from quota_ops.report.row_status import Section, report_rows
from quota_ops.report.row_table import plan_table
from quota_ops.report.screen import Tone
from quota_ops.report.summary import SyncStatus, summarize
from quota_ops.report.text import as_text

GUARDS = ("takeover", "conflict", "changed_since", "default_touched")
REASON = "agreed with payments and platform"


def a_month_ago(lab: Lab) -> None:
    """Bring a cluster, on which two quotas were set by hand, to what Git said a month ago."""
    lab.narration.say(
        "Somebody once set two quotas by hand. Then quotas went into Git, and a first run made the "
        "cluster so. Since then a ledger knows which rows are Git's."
    )
    lab.set_by_hand(*BEFORE_US)
    allow = ("--allow", "default_touched", "--reason", "first rollout")
    lab.command("reconcile", "demo", *allow, shown=False)
    _say_agreed(lab)


def since_then(lab: Lab) -> None:
    """Let Git and the cluster move, each on its own."""
    lab.narration.say(
        "In Git: more for alice and bob, a new client of alice's, a limit for the tills; the team "
        "etl is gone, and its file with it."
    )
    lab.narration.say("On the cluster: kafka-configs.sh, at night, and Git knows nothing of it:")
    lab.home.repository.catch_up()
    lab.set_by_hand(*AT_NIGHT)
    lab.narration.table(BY_HAND, map(by_hand_cells, AT_NIGHT))


def plan(lab: Lab) -> None:
    """Show what would change: every kind of difference, and guards that want a person's word."""
    lab.command("plan", "demo", exit_code=1)
    report = lab.last_run()
    differences = report.plan.differences if report.plan else ()
    lab.narration.say("Nothing was written. What these words mean, which the ledger tells apart:")
    lab.narration.table(KINDS, kinds_cells(differences))
    lacking = missing_kinds(differences)
    expect(not lacking, f"no row of the plan is {', '.join(lacking)}")
    asked = {one.guard for one in report.plan.refused} if report.plan else set()
    expect(asked == set(GUARDS), f"the guards that asked were {', '.join(sorted(asked))}")


def wait_for_airflow(lab: Lab) -> None:
    """Wait for the Airflow that was started at the beginning."""
    with lab.narration.waiting("Airflow starts"):
        airflow = lab.airflow.result()
    user, password = airflow.login
    lab.narration.say(f"It answers at {airflow.address} (user {user}, password {password}).")


def adopt(lab: Lab) -> None:
    """Let the guards pass by a person's word, in a run of the reconcile DAG."""
    lab.narration.say(
        "A person has read the plan, and triggers the DAG with the guards to let pass and why; "
        "each stage is a task, the diff is a Spark job."
    )
    lab.narration.say(f"  allow   {', '.join(GUARDS)}")
    lab.narration.say(f"  reason  {REASON}")
    lab.run_dag("reconcile_demo", allow=GUARDS, reason=REASON)
    expect(lab.last_run().applied, "the run wrote nothing")
    _say_agreed(lab)


def drift(lab: Lab) -> None:
    """Change a quota outside Git, and let the drift DAG name it."""
    lab.narration.say("All is as agreed. Then, outside Git:")
    lab.set_by_hand(IN_A_HURRY)
    lab.narration.table(BY_HAND, [by_hand_cells(IN_A_HURRY)])
    lab.narration.say("The drift DAG compares every cluster with Git, in one Spark job:")
    lab.run_dag("drift")
    (overview,) = (lab.home.store / "fleet").glob("*/report.txt")
    report = lab.last_run()
    for said in (overview.read_text(encoding="utf-8"), as_text(report)):
        named = any(IN_A_HURRY.entity in one and IN_A_HURRY.key in one for one in said.splitlines())
        expect(named, f"a drift report does not name {IN_A_HURRY.entity} {IN_A_HURRY.key}")
    lab.narration.say(f"Its report says: {summarize(report).sentence}", Tone.CHANGE)
    for table in plan_table([one for one in report_rows(report) if one.section is Section.PERSON]):
        lab.narration.table(table.headings, (row.cells for row in table.rows))


def reconcile(lab: Lab) -> None:
    """Repair it, from the command line this time."""
    lab.narration.say("From the command line this time: it shares the DAGs' run store and ledger.")
    lab.command("reconcile", "demo")


def verify(lab: Lab) -> None:
    """Ask the broker, and say whether the cluster is as agreed."""
    lab.command("verify", "demo")
    _say_agreed(lab)


def _say_agreed(lab: Lab) -> None:
    sentence = summarize(lab.last_run()).sentence
    expect(summarize(lab.last_run()).word is SyncStatus.IN_SYNC, sentence)
    lab.narration.say(sentence, Tone.OK)


STEPS = {
    "A month ago: the first reconcile": a_month_ago,
    "Since then, Git and the cluster went their own ways": since_then,
    "What would change now?": plan,
    "Wait for Airflow": wait_for_airflow,
    "Reconcile, by Airflow and Spark": adopt,
    "Drift, and the DAG that reports it": drift,
    "Reconcile again": reconcile,
    "Is it as agreed?": verify,
}
"""The titles of the steps, in order, and what each does."""
