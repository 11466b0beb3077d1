"""The reports of DAG runs in Airflow's web interface, for users who may see those runs.

Airflow does not check who calls a plug-in: every route here does. A page is shown to users who are
authorized to read the runs of the DAG that wrote it, by the same check as Airflow's own pages.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from urllib.parse import quote, unquote

from airflow.api_fastapi.auth.managers.models.base_user import BaseUser
from airflow.api_fastapi.auth.managers.models.resource_details import DagAccessEntity
from airflow.api_fastapi.common.db.common import SessionDep
from airflow.api_fastapi.core_api.security import GetUserDep, requires_access_dag
from airflow.models.dag import DagTag
from airflow.models.dagrun import DagRun
from airflow.models.hitl import HITLDetail
from airflow.models.taskinstance import TaskInstance
from airflow.utils.state import DagRunState, TaskInstanceState
from fastapi import FastAPI, HTTPException, Request, status
from fastapi.responses import HTMLResponse, PlainTextResponse, RedirectResponse, Response
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from quota_ops.airflow.approve import Approve
from quota_ops.model.errors import InvalidInput
from quota_ops.provider import PAGES
from quota_ops.provider.plugin import BASE
from quota_ops.report.page.now import LaterRun, Link, Waiting, format_links, format_overview
from quota_ops.report.page.template import NOW, describe_policy
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import ENVIRONMENT, RunStore, find_run_store, named_store
from quota_ops.store.run.files import ABOUT, END, PAGE
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.order import runs_latest_first

app = FastAPI(openapi_url=None)
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": describe_policy(),
    "X-Content-Type-Options": "nosniff",
}
_MOUNT = (
    "No run has written to it yet, or it is not mounted for the web server, or the variable "
    f"{ENVIRONMENT} names another one."
)
_LONGEST = 255
"""The most bytes in a name of a file system."""
_NOTHING = (
    "There is no report of all clusters yet, or you are not authorized to see the DAG that writes "
    "it. The DAG drift writes one with every run."
)


@app.get("/")
def show_newest(request: Request, user: GetUserDep) -> Response:
    """Redirect to the newest report of all clusters that the user may see."""
    store = _find_store()
    newest, damaged = _list_newest(store)
    for name in newest:
        with suppress(HTTPException, ValueError):
            _require_access(RunFolder(store.overviews / name), request, user)
            return RedirectResponse(f"fleet/{quote(name)}/{PAGE}", headers=_HEADERS)
    if damaged:
        raise InvalidInput(
            f"{', '.join(damaged)} cannot be read, so the newest report is unknown",
            "The next drift run replaces it. Each drift run has a link to its own report.",
        )
    if not newest and not store.root.entries():
        raise InvalidInput(f"the run store {store.root} is missing or empty", _MOUNT)
    return PlainTextResponse(_NOTHING, status.HTTP_404_NOT_FOUND, _HEADERS)


@app.get("/fleet/{run}/report.html")
def show_overview(run: str, request: Request, user: GetUserDep, session: SessionDep) -> Response:
    """Show the report of all clusters that a drift run wrote, and what happened since."""
    store, may_read = _find_store(), partial(_may_read, request, user)
    page = _read_page(store.overviews, (run,), request, user)
    waiting = list_waiting(session, may_read)
    later = list(list_later_runs(store, run, may_read))
    return _show(page, format_overview(waiting, later, datetime.now(UTC)))


@app.get("/runs/{cluster}/{run}/report.html")
def show_report(
    cluster: str, run: str, request: Request, user: GetUserDep, session: SessionDep
) -> Response:
    """Show the report of a run on a cluster, with links to the run and to its approval."""
    store = _find_store()
    page = _read_page(store.root, ("runs", cluster, run), request, user)
    waiting = list_waiting(session, partial(_may_read, request, user))
    folder = store.root / "runs" / cluster / run
    return _show(page, format_links(list(list_links(session, folder, waiting))))


def _show(page: bytes, now: str) -> Response:
    return HTMLResponse(page.replace(NOW.encode(), now.encode(), 1), headers=_HEADERS)


def _read_page(folder: Place, names: tuple[str, ...], request: Request, user: BaseUser) -> bytes:
    """Return a page that the user may see; raise 404 if there is none."""
    try:
        page = _find_page(folder, names)
        _require_access(RunFolder(page.parent), request, user)
        return page.read()
    except (FileNotFoundError, ValueError) as error:
        raise HTTPException(status.HTTP_404_NOT_FOUND, "There is no such report") from error


def _find_page(folder: Place, names: tuple[str, ...]) -> Place:
    """Return the page of a run.

    Raises FileNotFoundError behind a link, which may leave the store.
    """
    page = folder.resolved()
    for name in (*names, PAGE):
        if len(name.encode()) > _LONGEST:
            raise FileNotFoundError(name)
        page /= name
    if page.resolved() != page:
        raise FileNotFoundError(page)
    return page


def _find_store() -> RunStore:
    if not named_store(None):
        raise InvalidInput(
            "Airflow's web server does not know the run store, so it cannot show reports",
            f"Set {ENVIRONMENT} for the web server too, and let it read the store.",
        )
    return find_run_store(None)


def _list_newest(store: RunStore) -> tuple[list[str], list[str]]:
    """List the newest overview of each drift DAG, the newest first, and the damaged files."""
    folder, newest, damaged = store.newest_overviews, [], []
    for name in folder.list():
        try:
            found = json.loads((folder / name).read())
            newest.append((str(found["started"]), str(found["run"])))
        except FileNotFoundError:
            continue
        except (OSError, KeyError, TypeError, ValueError):
            damaged.append(str(folder / name))
    return [run for _, run in sorted(newest, reverse=True)], damaged


def _require_access(run: RunFolder, request: Request, user: BaseUser) -> None:
    """Raise 403 unless the user may read the runs of the DAG that wrote a run.

    Raises 404 if there is no such run, or it is one of the command line, which has no DAG.
    """
    dag_id = run.read_json(ABOUT).get("dag_id") if run.has(ABOUT) else None
    if dag_id is None:
        raise HTTPException(status.HTTP_404_NOT_FOUND, "There is no such report of a DAG run")
    requires_access_dag("GET", DagAccessEntity.RUN, dag_id)(request, user)


def _may_read(request: Request, user: BaseUser, dag_id: str) -> bool:
    """Return whether the user may read the runs of a DAG."""
    with suppress(HTTPException):
        requires_access_dag("GET", DagAccessEntity.RUN, dag_id)(request, user)
        return True
    return False


@app.exception_handler(InvalidInput)
def _explain(_request: Request, error: InvalidInput) -> Response:
    """Explain why the run store cannot be read, for example that the server does not know it."""
    return PlainTextResponse(f"{error}\n", status.HTTP_503_SERVICE_UNAVAILABLE, _HEADERS)


@app.exception_handler(status.HTTP_401_UNAUTHORIZED)
def _ask_to_log_in(request: Request, error: HTTPException) -> Response:
    """Send a person who is not logged in to the login page, and back afterwards."""
    if "text/html" not in request.headers.get("accept", ""):
        return PlainTextResponse(f"{error.detail}\n", error.status_code, _HEADERS)
    base = request.scope["root_path"].removesuffix(PAGES)
    login = f"{base}/api/v2/auth/login?next={quote(str(request.url), safe='')}"
    return RedirectResponse(login, headers=_HEADERS)


MOST_RUNS = 200
"""How many of the newest runs are read for those after an overview."""
MayRead = Callable[[str], bool]
"""Returns whether the user may read the runs of a DAG."""


def list_waiting(session: Session, may_read: MayRead) -> list[Waiting]:
    """Return the plans that wait for approval, the longest first."""
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
        Waiting(subject, at, _find_form(dag_id, run_id, task_id), queued.get(dag_id, 0))
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
        with suppress(InvalidInput):
            if cluster in found or not folder.has(ABOUT) or not folder.has(END.of(1)):
                continue
            about = folder.about()
            if about.dag_id is None or not may_read(about.dag_id):
                continue
            end = folder.read(END.of(1))
            address = f"../../runs/{quote(cluster)}/{quote(run)}/{PAGE}"
            yield LaterRun(end.answer.sentence, end.finished, address)
            found.add(cluster)


def list_links(session: Session, run: Place, waiting: list[Waiting]) -> Iterator[Link]:
    """Yield the links of a report: all clusters, the run, its approval, and the reconcile DAG."""
    about = RunFolder(run).about()
    yield Link("All clusters", "../../../", in_airflow=False)
    if about.dag_id is None:
        return
    run_id = unquote(run.name.replace("~", "%")).removeprefix(f"{about.dag_id}__")
    if "~~" not in run.name:  # a name that was cut
        page = _find_run(about.dag_id, run_id)
        yield Link("This run in Airflow", page)
        forms = (plan.address for plan in waiting if plan.address.startswith(f"{page}/"))
        yield from (Link("Decide about its plan", form) for form in forms)
    tagged = select(DagTag.dag_id).where(DagTag.name == about.cluster)
    for dag_id in session.scalars(tagged.order_by(DagTag.dag_id)):
        yield Link(f"Trigger {dag_id}", f"{BASE}/dags/{quote(dag_id)}")


def _find_run(dag_id: str, run_id: str) -> str:
    return f"{BASE}/dags/{quote(dag_id)}/runs/{quote(run_id)}"


def _find_form(dag_id: str, run_id: str, task_id: str) -> str:
    return f"{_find_run(dag_id, run_id)}/tasks/{quote(task_id)}/required_actions"
