"""Facts that are added to a stored page when it is opened, from Airflow and the run store."""

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import islice
from urllib.parse import quote, unquote

from airflow.models.dag import DagTag
from airflow.models.dagrun import DagRun
from airflow.models.hitl import HITLDetail
from airflow.models.taskinstance import TaskInstance
from airflow.utils.state import DagRunState, TaskInstanceState
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from quota_ops.airflow.approve import Approve
from quota_ops.model.errors import InvalidInput
from quota_ops.report.page.now import LaterRun, Link, Waiting
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import RunStore
from quota_ops.store.run.files import ABOUT, END, PAGE
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.order import runs_latest_first

MOST_RUNS = 200
"""How many of the newest runs are read for those after an overview."""
MayRead = Callable[[str], bool]
"""Returns whether the user may read the runs of a DAG."""


def list_waiting(session: Session, base: str, may_read: MayRead) -> list[Waiting]:
    """Return the plans that wait for approval, the longest first; `base` begins all addresses."""
    found = session.execute(
        select(
            HITLDetail.subject,
            HITLDetail.created_at,
            TaskInstance.dag_id,
            TaskInstance.run_id,
            TaskInstance.task_id,
        )
        .join(TaskInstance, TaskInstance.id == HITLDetail.ti_id)
        .where(HITLDetail.responded_at.is_(None), TaskInstance.operator == Approve.__name__)
        .where(TaskInstance.state == TaskInstanceState.AWAITING_INPUT)
        .order_by(HITLDetail.created_at)
    )
    counts = session.execute(
        select(DagRun.dag_id, func.count().label("number"))
        .where(DagRun.state == DagRunState.QUEUED)
        .group_by(DagRun.dag_id)
    )
    queued = {row.dag_id: row.number for row in counts}
    return [
        Waiting(subject, at, _find_form(base, dag_id, run_id, task_id), queued.get(dag_id, 0))
        for subject, at, dag_id, run_id, task_id in found
        if may_read(dag_id)
    ]


def list_later_runs(store: RunStore, overview: str, may_read: MayRead) -> Iterator[LaterRun]:
    """Yield the newest ended run of each cluster after an overview, by any DAG one may read."""
    found: set[str] = set()
    for name in islice(runs_latest_first(store.sequence), MOST_RUNS):
        cluster, _, run = name.partition("/")
        if run == overview:
            return
        folder = RunFolder(store.root / "runs" / cluster / run)
        with suppress(InvalidInput, KeyError, TypeError):
            if cluster in found or not folder.has(ABOUT) or not folder.has(END.of(1)):
                continue
            about = folder.about()
            if about.dag_id is None or not may_read(about.dag_id):
                continue
            end = folder.read_json(END.of(1))
            address = f"../../runs/{quote(cluster)}/{quote(run)}/{PAGE}"
            yield LaterRun(end["answer"]["sentence"], end["finished"], address)
            found.add(cluster)


def list_links(session: Session, base: str, run: Place, waiting: list[Waiting]) -> Iterator[Link]:
    """Yield the links of a report: all clusters, the run, its approval, and the reconcile DAG."""
    about = RunFolder(run).about()
    yield Link("All clusters", "../../../", in_airflow=False)
    if about.dag_id is None:
        return
    run_id = unquote(run.name.replace("~", "%")).removeprefix(f"{about.dag_id}__")
    if "~~" not in run.name:  # a name that was cut
        page = _find_run(base, about.dag_id, run_id)
        yield Link("This run in Airflow", page)
        forms = (plan.address for plan in waiting if plan.address.startswith(f"{page}/"))
        yield from (Link("Decide about its plan", form) for form in forms)
    tagged = select(DagTag.dag_id).where(DagTag.name == about.cluster)
    for dag_id in session.scalars(tagged.order_by(DagTag.dag_id)):
        yield Link(f"Trigger {dag_id}", f"{base}/dags/{quote(dag_id)}")


def _find_run(base: str, dag_id: str, run_id: str) -> str:
    return f"{base}/dags/{quote(dag_id)}/runs/{quote(run_id)}"


def _find_form(base: str, dag_id: str, run_id: str, task_id: str) -> str:
    return f"{_find_run(base, dag_id, run_id)}/tasks/{quote(task_id)}/required_actions"
