"""The form of a connection in Airflow's web interface, and its button Test, on a real broker."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Response

from quota_ops.lab.airflow.server import RunningAirflow, local_bundle, start_airflow
from quota_ops.lab.kafka.broker import RunningBroker
from tests.broker_config import password_of

pytestmark = [pytest.mark.matrix, pytest.mark.timeout(600)]  # starts an Airflow of its own


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningAirflow]:
    """Yield an Airflow without DAGs, which tests connections."""
    home = tmp_path_factory.mktemp("airflow")
    (home / "dags").mkdir()
    settings = {"AIRFLOW__CORE__TEST_CONNECTION": "Enabled"}
    with start_airflow(home, local_bundle(home / "dags"), environment=settings) as running:
        yield running


@pytest.fixture
def page(airflow: RunningAirflow, browser: Browser) -> Iterator[Page]:
    """Yield the list of connections, as its admin sees it."""
    user, password = airflow.login
    context = browser.new_context(viewport={"width": 1280, "height": 1600})
    login = {"username": user, "password": password}
    token = context.request.post(f"{airflow.address}/auth/token", data=login).json()
    context.add_cookies(
        [{"name": "_token", "value": token["access_token"], "url": airflow.address}]
    )
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.goto(f"{airflow.address}/connections")
    yield page
    context.close()


def fill_in(page: Page, fields: dict[str, str], choices: list[str]) -> None:
    """Add the connection quota_ops_demo by its form."""
    page.get_by_role("button", name="Add Connection").first.click()
    form = page.get_by_role("dialog")
    form.locator("input[name=connection_id]").fill("quota_ops_demo")
    lists = form.locator("input[role=combobox]")
    lists.first.fill("quota-ops")
    page.get_by_role("option", name="quota-ops (Kafka cluster)").click()
    for name, value in fields.items():
        form.locator(f"input[name={name}]").fill(value)
    form.get_by_role("button", name="Extra Fields", exact=True).click()
    for number, choice in enumerate(choices, start=1):
        lists.nth(number).fill(choice)
        page.get_by_role("option", name=choice, exact=True).click()
    form.get_by_role("button", name="Save").click()
    form.wait_for(state="detached")


def press_test(page: Page) -> Any:
    """Press the button Test; return what Airflow responds once the page shows it."""

    def is_test(response: Response) -> bool:
        return response.url.endswith("/connections/test")

    with page.expect_response(is_test) as found:
        page.get_by_role("button", name="Test Connection").click()
    result = found.value.json()
    page.get_by_text(result["message"]).wait_for()
    return result


def test_the_form_of_a_connection(
    page: Page, airflow: RunningAirflow, secured_broker: RunningBroker
) -> None:
    """A connection that was filled in by its form works, and the button Test says so.

    With a wrong password it says what the broker rejected.
    """
    host, port = secured_broker.bootstrap("SASL").split(":")
    login = {"login": "admin", "password": password_of("admin")}
    fill_in(page, {"host": host, "port": port, **login}, ["sasl_plaintext", "PLAIN"])
    works = (
        f"Connected to cluster {secured_broker.config.cluster_id} as User:admin. 1 of 1 broker "
        "responds. Authorized to describe quotas and alter quotas."
    )
    assert press_test(page) == {"status": True, "message": works}

    (token,) = [one for one in page.context.cookies() if one.get("name") == "_token"]
    page.context.request.patch(
        f"{airflow.address}/api/v2/connections/quota_ops_demo?update_mask=password",
        data={"connection_id": "quota_ops_demo", "conn_type": "quota_ops", "password": "wr0ng"},
        headers={"Authorization": f"Bearer {token.get('value')}"},
    )
    result = press_test(page)
    assert result["status"] is False
    assert "rejected the credentials of user 'admin'" in result["message"]
    assert "wr0ng" not in json.dumps(result)
