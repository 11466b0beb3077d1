"""Take the picture of a report for the README.

python -m tests.browser.screenshot [REPORT.html [PICTURE.png]]
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser

from quota_ops.report.page import as_html
from tests.browser.chromium import chromium
from tests.browser.showcase import SHOWCASE

PICTURE = Path(__file__).parents[2] / "docs" / "images" / "report.png"


def take(browser: Browser, page: Path, picture: Path) -> None:
    """Take a picture of a page at the size of a desktop screen."""
    picture.parent.mkdir(parents=True, exist_ok=True)
    tab = browser.new_page(viewport={"width": 1280, "height": 1190})
    tab.goto(page.as_uri())
    tab.screenshot(path=picture)
    tab.close()


def main(arguments: list[str]) -> None:
    """Take a picture of the named report, or of the showcase."""
    picture = Path(arguments[1]) if arguments[1:] else PICTURE
    with chromium() as browser, TemporaryDirectory() as folder:
        page = Path(folder) / "report.html"
        page.write_text(as_html(SHOWCASE), encoding="utf-8")
        take(browser, Path(arguments[0]).absolute() if arguments else page, picture)


if __name__ == "__main__":
    main(sys.argv[1:])
