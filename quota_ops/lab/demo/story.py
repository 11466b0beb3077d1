"""The steps of the demo: each performs what its text describes, and checks the result."""

from collections.abc import Iterator, Sequence
from itertools import count
from statistics import mean

from quota_ops.kafka.connection import find_connection
from quota_ops.kafka.load import Load, Second, run_load
from quota_ops.lab.demo import month
from quota_ops.lab.demo.by_hand import AT_NIGHT, BEFORE_GIT, BY_HAND, LAST_MINUTE, by_hand_cells
from quota_ops.lab.demo.lab import WINDOW, Lab, expect
from quota_ops.model.plans.guard import Guard
from quota_ops.model.quotas.difference import Action, Difference, Kind
from quota_ops.report.outline.cells import KIND_MEANING
from quota_ops.report.outline.layout import Line, Span, Tone
from quota_ops.report.outline.row_status import Section, report_rows
from quota_ops.report.outline.row_table import plan_table
from quota_ops.report.outline.summary import SyncStatus, summarize
from quota_ops.report.text.report import as_text

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


_BEFORE, _AFTER = 10 * 2**20, 5 * 2**20
"""The limits of the client in bytes per second: the default of users, and its own."""
_OFFERED = 12 * 2**20
_LONGEST = 20
"""How many seconds the client may take to get its new limit."""
_SECONDS = ("second", "average", "", "throttled by the broker")


def throttle_client(lab: Lab) -> None:
    """Limit a real producer by a commit and a reconcile, and watch its rate fall to the limit."""
    lab.narration.show_text(
        "A producer without authentication sends 12 MiB per second. Kafka gives it the default of "
        "users, 10 MiB/s, until Git declares a limit for user ANONYMOUS, 5 MiB/s."
    )
    servers = find_connection("demo", file=lab.home.connection).properties["bootstrap.servers"]
    with run_load(servers, "load-test", "load", _OFFERED) as load:
        seconds = _watch(lab, load, _BEFORE, 5)
        lab.home.repository.limit_client()
        lab.run_command("reconcile", "demo")
        seconds += _watch(lab, load, _AFTER, _LONGEST)
    rates = [_average(seconds[: end + 1]) for end in range(len(seconds))]
    lab.narration.show_table(_SECONDS, map(_second_cells, count(1), rates, seconds))
    lab.narration.show_text(
        f"Brokers limit the average of some seconds, here of {WINDOW}. A throttled producer gets "
        "no error: the broker just responds later."
    )
    # A slow machine may send less than the limit.
    expect(
        rates[-1] < _AFTER * (1 + _NEAR), f"the producer sends {rates[-1]:,.0f} bytes per second"
    )


def _watch(lab: Lab, load: Load, limit: float, most: int) -> list[Second]:
    """Measure the client until its average rate is the limit, for at least the time of one."""
    seconds: list[Second] = []
    with lab.narration.show_wait("Producing") as update:
        while len(seconds) < most:
            seconds.append(load.measure())
            rate = _average(seconds)
            update(f"{_format_rate(rate)}  {_draw(rate)}")
            if len(seconds) >= WINDOW and abs(rate / limit - 1) < _NEAR:
                break
    return seconds


def _average(seconds: Sequence[Second]) -> float:
    """Return the average rate of the last seconds."""
    return mean(second.rate for second in seconds[-WINDOW:])


_NEAR = 0.2
"""The share by which the average rate may differ from a limit."""


def _second_cells(number: int, rate: float, second: Second) -> Line:
    throttle = f"{1000 * second.throttle:,.0f} ms" if second.throttle else ""
    cells = (str(number), _format_rate(rate), _draw(rate), throttle)
    return tuple(map(Span, cells))


def _format_rate(rate: float) -> str:
    return f"{rate / 2**20:4.1f} MiB/s"


def _draw(rate: float) -> str:
    return "█" * round(2 * rate / 2**20)


def _show_in_sync(lab: Lab) -> None:
    summary = summarize(lab.read_last_run())
    expect(summary.status is SyncStatus.IN_SYNC, summary.sentence)
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
    "A client at its new limit": throttle_client,
}
"""The titles of the steps, in order, and the function of each."""


SHOWN = (
    Kind.PENDING,
    Kind.DRIFTED,
    Kind.TAKEOVER,
    Kind.CONFLICT,
    Kind.REMOVED,
    Kind.CHANGED_SINCE,
    Kind.UNMANAGED,
    Kind.GONE,
)
"""The kinds that the demo shows; others need an unfinished run, a returned value, or a quota by
hand that overrides Git."""

_DOES = {
    Action.SET: "sets it",
    Action.CLEAR: "clears it",
    Action.FORGET: "forgets it",
    Action.REPORT: "leaves it",
}


def missing_kinds(differences: Sequence[Difference]) -> list[str]:
    """Return the kinds that no difference has; new and changed pending rows count as two kinds."""
    seen = {difference.kind for difference in differences}
    new = {
        difference.before is None for difference in differences if difference.kind is Kind.PENDING
    }
    lacking = [kind.value for kind in SHOWN if kind not in seen]
    return lacking if new == {True, False} else [*lacking, "pending, both new and changed"]


KINDS = ("kind", "what it means", "example", "what a run does")
"""The headings above `kinds_cells`."""


def kinds_cells(differences: Sequence[Difference]) -> Iterator[Line]:
    """Yield the cells of each kind: its name, its meaning, an example entity, a run's action."""
    first = {difference.kind: difference for difference in reversed(differences)}
    for kind in filter(first.get, SHOWN):
        approval = " after approval" if kind.value in set(Guard) else ""
        yield (
            Span(kind.replace("_", " "), Tone.CHANGE),
            Span(KIND_MEANING[kind]),
            Span(first[kind].entity, Tone.STRONG),
            Span(_DOES[first[kind].action] + approval),
        )
