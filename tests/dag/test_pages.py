"""The pages in Airflow's web interface: who may see which report, and what others get."""

import re
from collections.abc import Callable
from html import unescape
from typing import Any
from urllib.parse import quote, urljoin

import pytest
from fastapi import FastAPI
from starlette.testclient import TestClient

from quota_ops.provider import PAGES
from quota_ops.store.places.run_store import safe_name
from tests.dag.answering import approve
from tests.dag.repository import Repository

Client = Callable[[str | None], TestClient]


@pytest.fixture
def client(airflow: None, monkeypatch: pytest.MonkeyPatch) -> Client:
    """Return a function that returns a client with a user's role, without any, or with no user."""
    del airflow
    from airflow.api_fastapi.app import get_auth_manager, init_auth_manager, init_plugins
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser

    monkeypatch.setenv("AIRFLOW__API_AUTH__JWT_SECRET", "x" * 64)
    server = FastAPI()
    init_auth_manager(server)
    init_plugins(server)  # finds the entry point

    def connect(role: str | None) -> TestClient:
        manager: Any = get_auth_manager()
        user = SimpleAuthManagerUser(username="anna", role=role)
        cookies = None if role is None else {"_token": manager.generate_jwt(user)}
        return TestClient(server, "http://airflow.example", cookies=cookies, follow_redirects=False)

    return connect


@pytest.mark.usefixtures("embedded")
def test_who_sees_a_report(demo: Repository, client: Client) -> None:
    """A user who may see the runs of the DAG that wrote a report sees it, and nobody else.

    The entry of the navigation leads to the newest report of all clusters.
    """
    run = demo.run("drift")
    anna, other, nobody = client("viewer"), client(""), client(None)

    newest = anna.get(f"{PAGES}/")
    assert newest.status_code == 307
    overview = f"{PAGES}/{newest.headers['location']}"
    page = f"{PAGES}/runs/demo/{run.folder().place.name}/report.html"
    (link,) = re.findall('<a href="(.*?)">demo</a>', anna.get(overview).text)
    assert urljoin(overview, link) == page
    for address, title in ((overview, "All clusters"), (page, "demo")):
        shown = anna.get(address)
        assert (shown.status_code, f"<title>{title}" in shown.text) == (200, True)
        policy = shown.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; ")
        (scripts,) = re.findall("script-src (.*?);", policy)
        (own,) = re.findall("script-src (.*?);", shown.text)  # the hash of the page's own script
        assert own in scripts.split()
        assert other.get(address).status_code == 403
        assert nobody.get(address).status_code == 401
    assert other.get(f"{PAGES}/").status_code == 404
    assert nobody.get(f"{PAGES}/").status_code == 401


@pytest.mark.usefixtures("embedded")
def test_what_happened_since_a_comparison(demo: Repository, client: Client) -> None:
    """An overview shows plans that wait for approval, and what runs did since it was written.

    A report leads to all clusters, to its run, to its approval while that waits, and to the DAG
    that reconciles its cluster. Whoever may not read these runs sees none of it.
    """
    demo.add_policy("demo", "approval: always")
    demo.run("drift")
    anna = client("viewer")
    overview = f"{PAGES}/{anna.get(f'{PAGES}/').headers['location']}"
    assert "Since this comparison" not in anna.get(overview).text

    def look(waiting: Any) -> None:
        form = f"/dags/reconcile_demo/runs/{quote(waiting.run_id)}/tasks/approve/required_actions"
        assert list_now(anna.get(overview).text) == [
            (
                "demo: apply plan HEX (1 change)? It has waited for approval since TIME (0 ms).",
                "Decide",
                form,
            )
        ]
        name = safe_name(f"reconcile_demo__{waiting.run_id}")
        page = anna.get(f"{PAGES}/runs/demo/{name}/report.html").text
        links = re.findall(LINK, page.partition("</nav>")[0])
        assert links == [
            ("../../../", "All clusters"),
            (form.partition("/tasks")[0], "This run in Airflow"),
            (form, "Decide about its plan"),
            ("/dags/reconcile_demo", "Trigger reconcile_demo"),
        ]
        approve("checked")(waiting)

    run = demo.run("reconcile_demo", look)
    assert run.state == "success"
    ((words, _, report),) = list_now(anna.get(overview).text)
    assert words == (
        "demo matches the files, whose commit is unknown; 1 change made by this run; "
        "1 of 1 quota in sync; 1 of 1 broker agrees. (TIME, 0 ms ago)"
    )
    assert anna.get(urljoin(overview, report)).status_code == 200


LINK = r'<a href="([^"]*)"(?: data-airflow)?>([^<]*)</a>'


def list_now(page: str) -> list[tuple[str, str, str]]:
    """Return each line since the comparison with its link, without digests and times."""
    lines = re.findall(rf"<li>([^<]*) {LINK}</li>", page)
    replaced = (
        (r"plan \w{8}", "plan HEX"),
        (r"\d{4}-\S+ \S+ UTC", "TIME"),
        (r"\d[\d.]* m?s\b", "0 ms"),
    )
    found = []
    for line, address, link in lines:
        words = unescape(line)
        for pattern, text in replaced:
            words = re.sub(pattern, text, words)
        found.append((words, link, address))
    return found


def test_a_person_who_is_not_logged_in(client: Client) -> None:
    """A browser is sent to the login of Airflow, and back to the page afterwards."""
    page = f"{PAGES}/runs/demo/run/report.html"
    sent = client(None).get(page, headers={"accept": "text/html,*/*"})

    assert sent.status_code == 307
    back = "http%3A%2F%2Fairflow.example%2Fquota-ops%2Fruns%2Fdemo%2Frun%2Freport.html"
    assert sent.headers["location"] == f"/api/v2/auth/login?next={back}"


@pytest.mark.parametrize(
    "path",
    [
        "runs/demo/nothing/report.html",
        "runs/demo/nothing/run.json",
        "runs/demo/%2e%2e/report.html",
        "runs/%2e%2e/%2e%2e/report.html",
        "runs/demo/..%2f..%2fledger/report.html",
        "runs/demo/by_hand/report.html",
        "runs/demo/linked/report.html",
        f"runs/demo/{'x' * 300}/report.html",
        "fleet/nothing/report.html",
        "",
    ],
)
def test_what_is_not_shown(path: str, client: Client, repository: Repository) -> None:
    """Only reports of DAG runs are shown: nothing else of the store, and no run without a DAG."""
    run = repository.root / "store" / "runs" / "demo" / "by_hand"
    run.mkdir(parents=True)
    (run / "run.json").write_text("{}")
    (run / "report.html").write_text("a report")
    (repository.root / "secret").write_text("no report")
    (run.parent / "linked").mkdir()
    (run.parent / "linked" / "run.json").write_text('{"dag_id": "reconcile_demo"}')
    (run.parent / "linked" / "report.html").symlink_to(repository.root / "secret")

    assert client("admin").get(f"{PAGES}/{path}").status_code == 404


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"run": "..", "started": "2026"}'])
def test_a_damaged_name_of_the_newest_overview(
    content: str, client: Client, repository: Repository
) -> None:
    """The page names it, instead of saying that there is no report."""
    folder = repository.root / "store" / "newest_fleet"
    folder.mkdir(parents=True)
    (folder / "drift").write_text(content)

    shown = client("admin").get(f"{PAGES}/")

    damaged = content != '{"run": "..", "started": "2026"}'
    assert (shown.status_code, shown.text.split(",")[0]) == (
        (503, f"{folder / 'drift'} cannot be read")
        if damaged
        else (404, "There is no report of all clusters yet")
    )


def test_a_server_without_the_store(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """A web server that does not know the run store says so, and what to set."""
    monkeypatch.delenv("QUOTA_OPS_RUN_STORE", raising=False)
    shown = client("admin").get(f"{PAGES}/")

    said = "Airflow's web server does not know the run store, so it cannot show reports"
    assert (shown.status_code, shown.text) == (
        503,
        f"{said}\n  Set QUOTA_OPS_RUN_STORE for the web server too, and let it read the store.\n",
    )


def test_a_missing_store_is_not_taken_for_one_without_reports(
    client: Client, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mount that is lost is named."""
    monkeypatch.setenv("QUOTA_OPS_RUN_STORE", str(repository.root / "lost"))

    shown = client("admin").get(f"{PAGES}/")

    said = f"the run store {repository.root / 'lost'} is missing or empty"
    assert (shown.status_code, shown.text.split("\n")[0]) == (503, said)
