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

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(600)]  # starts an Airflow of its own
DAG_FILE = """\
from pathlib import Path
from quota_ops.airflow import build_dags
globals().update(build_dags(Path(__file__).parents[1] / "desired_state", drift_schedule=None))
"""
QUOTAS = "{owner: payments, quotas: [{user: alice, limits: {producer_byte_rate: 1000}}]}"


@pytest.fixture(scope="module")
def airflow(
    tmp_path_factory: pytest.TempPathFactory, broker: RunningBroker
) -> Iterator[RunningAirflow]:
    """Yield an Airflow in which a drift run of one cluster has ended."""
    home = tmp_path_factory.mktemp("pages")
    folder = home / "repository" / "desired_state" / "demo"
    folder.mkdir(parents=True)
    (folder / "cluster.yaml").write_text(
        f"cluster_id: {broker.config.cluster_id}\nconnection: demo\n"
    )
    (folder / "payments.yaml").write_text(QUOTAS)
    (home / "repository" / "dags").mkdir()
    (home / "repository" / "dags" / "quotas.py").write_text(DAG_FILE)
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
        assert running.api.wait_for_run("drift", run, 300) == "success"
        yield running


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Yield a tab of somebody who is not logged in."""
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    page = context.new_page()
    page.set_default_timeout(60_000)
    yield page
    context.close()


def test_from_the_navigation_to_a_report(page: Page, airflow: RunningAirflow) -> None:
    """Whoever is not logged in has to log in first; Quotas leads to all clusters, and to each.

    The button Report of the task overview leads to the same page as the entry.
    """
    page.goto(f"{airflow.address}{PAGES}/")
    expect(page).to_have_url(re.compile("/auth/login"))
    user, password = airflow.login
    page.get_by_label("Username").fill(user)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("1 cluster: 1 is pending.")
    overview = page.url

    page.goto(airflow.address)
    page.get_by_role("link", name="Quotas").click()
    frame = page.frame_locator("iframe")
    expect(frame.get_by_role("heading", level=1)).to_have_text("1 cluster: 1 is pending.")
    frame.get_by_role("button", name="cluster", exact=True).press("Enter")
    expect(frame.locator("th[aria-sort=ascending]")).to_have_text("cluster")
    frame.get_by_role("link", name="demo").click()
    expect(frame.get_by_role("heading", level=1)).to_contain_text("1 change to make on demo")

    (run,) = airflow.api.wait_for_runs("drift")
    page.goto(f"{airflow.address}/dags/drift/runs/{run}/tasks/overview/details")
    page.get_by_role("link", name="Report", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("1 cluster: 1 is pending.")
    assert unquote(page.url) == unquote(overview)
