"""The steps of the demo: each performs what its text describes, and checks the result."""

from quota_ops.lab.demo import month
from quota_ops.lab.demo.by_hand import AT_NIGHT, BEFORE_GIT, BY_HAND, LAST_MINUTE, by_hand_cells
from quota_ops.lab.demo.kinds import KINDS, kinds_cells, missing_kinds
from quota_ops.lab.demo.lab import Lab, expect
from quota_ops.report.layout import Tone
from quota_ops.report.row_status import Section, report_rows
from quota_ops.report.row_table import plan_table
from quota_ops.report.summary import SyncStatus, summarize
from quota_ops.report.text_report import as_text

GUARDS = ("takeover", "conflict", "changed_since")
REASON = "agreed with payments and platform"


def reconcile_first(lab: Lab) -> None:
    """Bring a cluster with two quotas set by hand to the desired state of a month ago.

    Then a month passes: the clocks of its daily runs are moved back, if that is possible here.
    """
    lab.narration.show_text(
        "Two quotas were once set by hand. Then the quotas moved to Git, and a first run applied "
        "them to the cluster. Since then a ledger records which quotas Git manages."
    )
    lab.set_by_hand(*BEFORE_GIT)
    if month.can_play():
        lab.narration.show_text(
            "A run looked every morning since then; once or twice a week one repaired what had "
            "drifted. The demo plays that month with real runs, whose clocks it moves back: the "
            "reports show it."
        )
        lab.play_month()
    else:
        lab.narration.show_text("Without the library time-machine, the demo has no past month.")
        lab.run_command(*month.FIRST, shown=False)
    _show_in_sync(lab)


def change_both(lab: Lab) -> None:
    """Change Git and the cluster independently."""
    lab.narration.show_text(
        "In Git: higher limits for alice and bob, a new client of alice, and a limit for the "
        "tills. The team etl has left, and its file is removed."
    )
    lab.narration.show_text("On the cluster, by kafka-configs.sh at night, and not in Git:")
    lab.home.repository.catch_up()
    lab.set_by_hand(*AT_NIGHT)
    lab.narration.show_table(BY_HAND, map(by_hand_cells, AT_NIGHT))


def plan(lab: Lab) -> None:
    """Make a plan with every kind of difference, and with guards that block it."""
    lab.run_command("plan", "demo", exit_code=1)
    report = lab.read_last_run()
    differences = report.plan.differences if report.plan else ()
    lab.narration.show_text("Nothing was written. The ledger distinguishes these differences:")
    lab.narration.show_table(KINDS, kinds_cells(differences))
    lacking = missing_kinds(differences)
    expect(not lacking, f"no row of the plan is {', '.join(lacking)}")
    blocking = {guard.guard for guard in report.plan.refused} if report.plan else set()
    expect(blocking == set(GUARDS), f"the blocking guards were {', '.join(sorted(blocking))}")


def wait_for_airflow(lab: Lab) -> None:
    """Wait for the Airflow that was started at the beginning."""
    with lab.narration.show_wait("Starting Airflow"):
        airflow = lab.airflow.result()
    user, password = airflow.login
    lab.narration.show_text(
        f"Airflow runs at {airflow.address} (user {user}, password {password})."
    )


def override_guards(lab: Lab) -> None:
    """Override the guards in a run of the reconcile DAG."""
    lab.narration.show_text(
        "A person has reviewed the plan, and triggers the DAG with the guards to override and a "
        "reason. Each stage is a task. The diff runs on the Spark Connect server that started with "
        "Airflow: Spark is warm, so no JVM starts in a run."
    )
    lab.narration.show_text(f"  allow   {', '.join(GUARDS)}")
    lab.narration.show_text(f"  reason  {REASON}")
    lab.run_dag("reconcile_demo", allow=GUARDS, reason=REASON)
    expect(lab.read_last_run().applied, "the run wrote nothing")
    _show_in_sync(lab)


def report_drift(lab: Lab) -> None:
    """Change a quota outside Git, and let the drift DAG report it."""
    lab.narration.show_text("The cluster matches Git. Then a quota changes outside Git:")
    lab.set_by_hand(LAST_MINUTE)
    lab.narration.show_table(BY_HAND, [by_hand_cells(LAST_MINUTE)])
    lab.narration.show_text("The drift DAG compares every cluster with Git, in one Spark job:")
    lab.run_dag("drift")
    (overview,) = (lab.home.store / "fleet").glob("*/report.txt")
    report = lab.read_last_run()
    days = len(report.past.days) if report.past else 0
    expect(days >= month.DAYS or not month.can_play(), f"the drift report shows {days} days")
    entity, key = LAST_MINUTE.entity, LAST_MINUTE.key
    for text in (overview.read_text(encoding="utf-8"), as_text(report)):
        is_reported = any(entity in line and key in line for line in text.splitlines())
        expect(is_reported, f"a drift report does not list {entity} {key}")
    lab.narration.show_text(f"The report: {summarize(report).sentence}", Tone.CHANGE)
    for table in plan_table([row for row in report_rows(report) if row.section is Section.PERSON]):
        lab.narration.show_table(table.headings, (row.cells for row in table.rows))


def repair_drift(lab: Lab) -> None:
    """Repair the drift from the command line."""
    lab.narration.show_text("The command line uses the same run store and ledger as the DAGs.")
    lab.run_command("reconcile", "demo")


def verify(lab: Lab) -> None:
    """Read every quota back from the broker."""
    lab.run_command("verify", "demo")
    _show_in_sync(lab)


def _show_in_sync(lab: Lab) -> None:
    summary = summarize(lab.read_last_run())
    expect(summary.word is SyncStatus.IN_SYNC, summary.sentence)
    lab.narration.show_text(summary.sentence, Tone.OK)


STEPS = {
    "A month ago: the first reconcile": reconcile_first,
    "Since then: changes in Git and on the cluster": change_both,
    "What would change now?": plan,
    "Wait for Airflow": wait_for_airflow,
    "Reconcile with Airflow and Spark": override_guards,
    "Drift, and the DAG that reports it": report_drift,
    "Repair the drift": repair_drift,
    "Verify the cluster": verify,
}
"""The titles of the steps, in order, and the function of each."""
