"""The page of a cluster with much drift, in a real browser."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect

from quota_ops.report.page.report import as_html
from quota_ops.report.page.table import FIRST
from tests.browser.accessibility import list_violations
from tests.browser.chromium import EXECUTABLE
from tests.browser.drift_sample import DRIFT, KEY, drifted_report
from tests.browser.watching import CONTRAST, entities, listened
from tests.unit.report_sample import PLANNED

pytestmark = pytest.mark.skipif(EXECUTABLE is None, reason="Chromium is not installed")

DRAWN = """() => {
  const squeezed = () => document.querySelector("main tbody").innerHTML.replace(/\\s+/g, "");
  const before = squeezed();
  location.hash = "sort=entity";
  return new Promise((resolve) => setTimeout(() => {
    location.hash = "words=";
    setTimeout(() => resolve([before, squeezed()]), 100);
  }, 100));
}"""


@pytest.fixture
def drift(context: BrowserContext, tmp_path: Path, heard: list[str]) -> Iterator[Page]:
    """The page of a cluster with 700 drifted quotas and a month of history, open."""
    path = tmp_path / "drift.html"
    path.write_text(as_html(drifted_report(700)), encoding="utf-8")
    tab = listened(context, heard)
    tab.set_viewport_size({"width": 1400, "height": 900})
    tab.goto(path.as_uri())
    yield tab
    tab.close()


def test_a_page_of_many_rows(drift: Page, heard: list[str]) -> None:
    """It draws the first rows, more on request, and the same as without a script.

    A search marks its hits, a column sorts by number, and the address has both.
    """
    assert drift.evaluate("document.documentElement.scrollHeight") < 10_000
    expect(entities(drift)).to_have_count(FIRST)
    before, after = drift.evaluate(DRAWN)
    assert before == after
    drift.get_by_role("button", name="Show 200 more").click()
    expect(entities(drift)).to_have_count(FIRST + 200)

    drift.get_by_role("button", name="current").first.click()
    drift.get_by_role("button", name="current").first.click()
    expect(drift.locator("th[aria-sort=descending]")).to_have_text("current")
    expect(drift.locator("tr[data-kind] td:nth-child(4)").first).to_have_text("40 MiB/s")
    drift.get_by_role("searchbox").fill("user-69")
    expect(drift.locator("output")).to_have_text("11 of 700 rows")
    assert drift.evaluate("CSS.highlights.get('found').size") >= 11
    assert drift.url.endswith("#words=user-69&sort=-current")

    drift.reload()
    expect(drift.locator("output")).to_have_text("11 of 700 rows")
    assert len(set(heard)) == 1


def test_links_in_a_frame(browser: Browser) -> None:
    """In a frame that may not open other sites, as Airflow's, a link shows its address to copy."""
    frame = '<iframe src="/report" sandbox="allow-scripts allow-same-origin"></iframe>'
    bodies = {"/airflow": frame, "/report": as_html(DRIFT)}
    context = browser.new_context()
    for path, body in bodies.items():
        context.route(f"http://quotas.example{path}", partial(fulfill, body))
    tab = context.new_page()
    tab.goto("http://quotas.example/airflow")
    page = tab.frame_locator("iframe")
    link = page.locator("a[href^='https://github.com/']").first
    address = str(link.get_attribute("href"))

    link.click()
    link.click()

    expect(page.locator("a + .command")).to_have_text(address)
    expect(page.get_by_role("button", name=f"Copy: {address}")).to_be_visible()
    context.close()


def fulfill(body: str, route: Route) -> None:
    """Answer a request with a page."""
    route.fulfill(body=body, content_type="text/html; charset=utf-8")


def test_a_filter_that_no_row_has(drift: Page) -> None:
    """A link with an owner who has no row shows no row, not all."""
    drift.evaluate("location.hash = 'owner=nobody'")

    expect(drift.locator("output")).to_have_text("0 of 700 rows")
    expect(drift.locator("select[name=owner]")).to_have_value("nobody")


def test_ways_out_of_drift(drift: Page) -> None:
    """Each drifted row shows its past, and commands that revert, accept or hold it."""
    row = drift.locator("tr.past").nth(1)
    row.locator("summary").focus()
    drift.keyboard.press("Enter")

    expect(row).to_contain_text("Known: first found 2026-11-13 10:00 UTC, 8 days before this run.")
    expect(row.locator("code")).to_have_text(
        [
            "quota-ops reconcile demo",
            f"quota-ops accept demo --names user=user-12 --key {KEY} --run {PLANNED.run}",
            "quota-ops hold demo --names user=user-12 --until 2h --reason TEXT",
        ]
    )


def test_a_command_can_be_copied(browser: Browser, tmp_path: Path, heard: list[str]) -> None:
    """A button copies its command by keyboard: in a file, and on a server without HTTPS."""
    path, html = tmp_path / "drift.html", as_html(drifted_report(2))
    path.write_text(html, encoding="utf-8")
    context = browser.new_context()
    context.route("http://quotas.example/*", lambda one: one.fulfill(body=html, status=200))
    for address in (path.as_uri(), "http://quotas.example/drift.html"):
        tab = listened(context, heard)
        tab.goto(address)
        assert tab.evaluate("'clipboard' in navigator") is address.startswith("file:")
        tab.locator("tr.past summary").last.click()
        tab.get_by_role("button", name="Copy: quota-ops hold demo").press("Enter")
        expect(tab.locator("#said")).to_have_text("Copied")
        search = tab.get_by_role("searchbox")
        search.press("ControlOrMeta+v")
        expect(search).to_have_value(
            "quota-ops hold demo --names user=user-1 --until 2h --reason TEXT"
        )
    context.close()
    assert heard == [path.as_uri(), "http://quotas.example/drift.html"]


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1400, "light")])
def test_drift_is_accessible(drift: Page, scheme: str, width: int) -> None:
    """axe-core finds nothing, every text has contrast, and no width scrolls sideways."""
    drift.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    drift.set_viewport_size({"width": width, "height": 900})
    drift.locator("summary").first.click()
    drift.locator("tr.past summary").first.click()

    assert list_violations(drift) == []
    assert drift.evaluate(CONTRAST) >= 4.5
    scrolls = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert drift.evaluate(scrolls) == 0
