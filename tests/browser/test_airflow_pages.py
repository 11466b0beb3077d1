"""The entry Quotas in Airflow's navigation, and the reports behind it and behind each run."""

import json
import re
from collections.abc import Iterator
from urllib.parse import unquote

import pytest
from playwright.sync_api import Browser, Page, expect

from quota_ops.lab.airflow.server import RunningAirflow, local_bundle, start_airflow
from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.provider import PAGES
from tests.airflow_runs import list_waiting_runs, wait_for_run, wait_for_runs
from tests.browser.accessibility import list_violations
from tests.looking import seen_in_time
from tests.repositories import commit_all, git

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(600)]  # starts an Airflow of its own
DAG_FILE = """\
from pathlib import Path
from quota_ops.airflow import build_dags
globals().update(build_dags(Path(__file__).parents[1] / "desired_state", drift_schedule=None))
"""
USER = "{{user: user-{}, limits: {{producer_byte_rate: 1000}}}}"
CODE_HOST = "https://github.example/acme/quotas"


@pytest.fixture(scope="module")
def airflow(
    tmp_path_factory: pytest.TempPathFactory, broker: RunningBroker
) -> Iterator[RunningAirflow]:
    """Yield an Airflow in which a drift run of one cluster has ended."""
    home = tmp_path_factory.mktemp("pages")
    folder = home / "repository" / "desired_state" / "demo"
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text(
        f"cluster_id: {broker.config.cluster_id}\nconnection: demo\napproval: always\n"
        f"repository: {CODE_HOST}\n"
    )
    users = ", ".join(map(USER.format, range(600)))
    (folder / "many.yaml").write_text(f"{{owner: many, quotas: [{users}]}}")
    git(folder.parents[1], "init", "--quiet")
    (home / "repository" / "dags").mkdir()
    (home / "repository" / "dags" / "quotas.py").write_text(DAG_FILE)
    commit_all(home / "repository")
    host, port = broker.bootstrap().split(":")
    connection = {"conn_type": "quota_ops", "host": host, "port": int(port)}
    environment = {
        "QUOTA_OPS_RUN_STORE": str(home / "store"),
        "AIRFLOW_CONN_QUOTA_OPS_DEMO": json.dumps(connection),
    }
    bundle = local_bundle(home / "repository")
    with start_airflow(home / "airflow", bundle, environment=environment) as running:
        running.api.wait_for_dag("drift", 120)
        run = running.api.trigger("drift")
        assert wait_for_run(running.api, "drift", run, 300) == "success"
        yield running


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Yield a tab of somebody who is not logged in."""
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    page = context.new_page()
    page.set_default_timeout(60_000)
    yield page
    context.close()


def log_in(page: Page, airflow: RunningAirflow) -> None:
    """Fill in the login page, and wait until it has led on."""
    user, password = airflow.login
    page.get_by_label("Username").fill(user)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    page.wait_for_url(re.compile(r"^((?!/auth/login).)*$"))


def test_from_the_navigation_to_a_report(page: Page, airflow: RunningAirflow) -> None:
    """Whoever is not logged in has to log in first; Quotas leads to all clusters, and to each.

    The button Report of the task overview leads to the same page as the entry.
    """
    page.goto(f"{airflow.address}{PAGES}/")
    expect(page).to_have_url(re.compile("/auth/login"))
    log_in(page, airflow)
    expect(page.get_by_role("heading", level=1)).to_have_text("1 cluster: 1 is pending.")
    overview = page.url

    page.goto(airflow.address)
    page.get_by_role("link", name="Quotas").click()
    frame = page.frame_locator("iframe")
    expect(frame.get_by_role("heading", level=1)).to_have_text("1 cluster: 1 is pending.")
    frame.get_by_role("button", name="cluster", exact=True).press("Enter")
    expect(frame.locator("th[aria-sort=ascending]")).to_have_text("cluster")
    frame.get_by_role("link", name="demo").click()
    expect(frame.get_by_role("heading", level=1)).to_contain_text("600 changes to make on demo")

    (run,) = wait_for_runs(airflow.api, "drift")
    page.goto(f"{airflow.address}/dags/drift/runs/{run}/tasks/overview/details")
    page.get_by_role("link", name="Report", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("1 cluster: 1 is pending.")
    assert unquote(page.url) == unquote(overview)


def test_the_approval_form_of_600_changes(page: Page, airflow: RunningAirflow) -> None:
    """The form shows counts and the ten riskiest changes, and its link opens the report.

    Both are there before anybody approves, and the form is no longer than three screens. Quotas
    shows since when the plan waits and what is queued behind it, in Airflow's colors, and leads to
    the form.
    """
    airflow.api.wait_for_dag("reconcile_demo", 120)
    run = airflow.api.trigger("reconcile_demo")
    waiting = seen_in_time(lambda: list_waiting_runs(airflow.api, "reconcile_demo"), [run], 240)
    assert waiting == [run]
    form = f"{airflow.address}/dags/reconcile_demo/runs/{run}/tasks/approve/required_actions"
    page.goto(form)
    log_in(page, airflow)
    page.goto(form)

    expect(page.get_by_role("row", name="many 600 600")).to_be_visible()
    expect(page.get_by_role("cell", name="producer_byte_rate")).to_have_count(10)
    box = page.get_by_role("button", name="Approve").bounding_box()
    assert box is not None
    assert box["y"] < 3 * 900
    with page.expect_popup() as opened:
        page.get_by_role("link", name="600 changes in the report").click()
    report = opened.value
    expect(report.get_by_role("heading", level=1)).to_contain_text("600 changes to make on demo")
    assert list_violations(report) == []
    assert run in list_waiting_runs(airflow.api, "reconcile_demo")

    airflow.api.trigger("reconcile_demo")
    for theme in ("dark", "light"):
        page.evaluate("theme => localStorage.setItem('theme', theme)", theme)
        page.goto(f"{airflow.address}/plugin/quotas")
        frame = page.frame_locator("iframe")
        expect(frame.locator("html")).to_have_css("color-scheme", theme)
    waits = frame.get_by_role("listitem").filter(has_text="demo: apply plan")
    expect(waits).to_contain_text("1 queued run of this DAG waits for that decision.")
    waits.get_by_role("link", name="Decide").click()
    page.wait_for_url(lambda address: unquote(address) == form)
    expect(page.get_by_role("button", name="Approve")).to_be_visible()
    airflow.api.decide("reconcile_demo", run, "Reject", "only a test")
