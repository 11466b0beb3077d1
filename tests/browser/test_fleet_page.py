"""The overview of all clusters in a real browser: keyboard, any screen, no script, no network."""

from pathlib import Path
from typing import Any, cast

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from quota_ops.report.page import fleet as fleet_page
from tests.browser.accessibility import list_violations
from tests.browser.chromium import EXECUTABLE
from tests.browser.watching import listened
from tests.unit.fleet_sample import FLEET, HISTORY

pytestmark = pytest.mark.skipif(EXECUTABLE is None, reason="Chromium is not installed")


def test_overview_of_clusters(context: BrowserContext, tmp_path: Path, heard: list[str]) -> None:
    """The overview is sorted and searched by keyboard, accessible, and fits any screen."""
    path = tmp_path / "fleet.html"
    many = (*FLEET, *((f"more-{at:02}", "no broker responds") for at in range(20)))
    path.write_text(fleet_page.as_html(many, {"demo": "demo.html"}, HISTORY), encoding="utf-8")
    wanted = {"cluster": "demo", "in sync": "lab", "drifted": "lab"}
    for width, colors in ((360, "dark"), (1400, "light")):
        page = listened(context, heard)
        page.set_viewport_size({"width": width, "height": 900})
        page.emulate_media(color_scheme=cast("Any", colors))
        page.goto(path.as_uri())
        for each in (600, 1000, 1150, 1280, width):
            page.set_viewport_size({"width": each, "height": 900})
            assert page.evaluate("document.documentElement.scrollWidth") == each
        assert list_violations(page) == []

        first = page.locator(".clusters tbody th:visible").first
        expect(first).to_contain_text("lab")
        for name, cluster in wanted.items():
            page.get_by_role("button", name=name, exact=True).press("Enter")
            expect(first).to_contain_text(cluster)
        page.get_by_role("button", name="drifted").press("Enter")
        expect(first).to_contain_text("demo")
        expect(page.locator("th[aria-sort=descending]")).to_contain_text("drifted")

        page.keyboard.press("/")
        page.keyboard.type("CHANGED outside")
        expect(page.locator(".clusters tbody th:visible")).to_have_count(1)
        expect(page.locator("output")).to_have_text("1 of 25 clusters")
        page.close()
    assert heard == [path.as_uri()] * 2


def test_overview_without_script(browser: Browser, tmp_path: Path) -> None:
    """Without script, the overview has all rows and links, and no control that does nothing."""
    path = tmp_path / "fleet.html"
    path.write_text(fleet_page.as_html(FLEET, {"demo": "demo.html"}, HISTORY), encoding="utf-8")
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())

    expect(page.locator(".clusters tbody tr:visible")).to_have_count(len(FLEET))
    expect(page.get_by_role("link", name="demo")).to_have_attribute("href", "demo.html")
    expect(page.locator("button:visible, input:visible")).to_have_count(0)
    context.close()
