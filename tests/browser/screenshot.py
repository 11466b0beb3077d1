"""Take the pictures of the README and of docs/images.

python -m tests.browser.screenshot [REPORT.html PICTURE.png]
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser

from quota_ops.report.page import fleet as fleet_page
from quota_ops.report.page.report import as_html
from tests.browser.chromium import chromium
from tests.browser.drift_sample import DRIFT
from tests.browser.showcase import SHOWCASE
from tests.unit.fleet_sample import FLEET, HISTORY

PICTURES = Path(__file__).parents[2] / "docs" / "images"
HEIGHTS: Mapping[str, int] = {"report": 1190, "drift": 1010, "overview": 930}
"""The height of each picture, which shows the page to the end of a paragraph."""


def make_pages() -> dict[str, str]:
    """Return the page of each picture: of a run, of drift, and of all clusters."""
    links = dict.fromkeys(("demo", "prod-eu", "prod-us"), "report.html")
    overview = fleet_page.as_html(FLEET, links, HISTORY)
    return {"report": as_html(SHOWCASE), "drift": as_html(DRIFT), "overview": overview}


def take(browser: Browser, page: Path, picture: Path, height: int = 1190) -> None:
    """Take a picture of a page at the width of a desktop screen, its first row unfolded."""
    picture.parent.mkdir(parents=True, exist_ok=True)
    tab = browser.new_page(viewport={"width": 1280, "height": height})
    tab.goto(page.as_uri())
    if (ways := tab.locator(".ways summary")).count():
        ways.first.click()
    tab.screenshot(path=picture)
    tab.close()


def main(arguments: list[str]) -> None:
    """Take a picture of the named report, or all pictures of the documentation."""
    with chromium() as browser, TemporaryDirectory() as folder:
        if arguments:
            take(browser, Path(arguments[0]).absolute(), Path(arguments[1]))
            return
        for name, html in make_pages().items():
            page = Path(folder) / f"{name}.html"
            page.write_text(html, encoding="utf-8")
            take(browser, page, PICTURES / f"{name}.png", HEIGHTS[name])


if __name__ == "__main__":
    main(sys.argv[1:])
