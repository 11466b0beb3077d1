"""The page in a real browser: keyboard, print, contrast, no script, no network."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from quota_ops.report.page import fleet as fleet_page
from quota_ops.report.page.report import as_html
from tests.browser.accessibility import list_violations
from tests.browser.chromium import EXECUTABLE
from tests.browser.screenshot import HEIGHTS, PICTURES, make_pages, take
from tests.browser.showcase import SHOWCASE
from tests.browser.watching import CONTRAST, entities, listened
from tests.unit.test_report_hostile import HARM, report_of

pytestmark = pytest.mark.skipif(EXECUTABLE is None, reason="Chromium is not installed")


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The showcase's page as a file."""
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(as_html(SHOWCASE), encoding="utf-8")
    return path


@pytest.fixture
def page(context: BrowserContext, page_file: Path, heard: list[str]) -> Iterator[Page]:
    """The showcase's page, open."""
    tab = listened(context, heard)
    tab.goto(page_file.as_uri())
    heard.remove(page_file.as_uri())
    yield tab
    tab.close()


def test_the_page_asks_nobody_and_complains_of_nothing(page: Page, heard: list[str]) -> None:
    """The page sends no request, and its content security policy blocks nothing it needs."""
    page.get_by_role("searchbox").fill("alice")
    expect(page.locator("output")).to_have_text("2 of 11 rows")

    assert heard == []


def test_search(page: Page) -> None:
    """A search filters all tables at once and unfolds matching rows."""
    search = page.get_by_role("searchbox")

    search.fill("ALICE payments")
    expect(entities(page)).to_have_text(["client-id=<default>,user=alice", "user=alice"])
    expect(page.locator("output")).to_have_text("2 of 11 rows")

    search.fill("grafana")
    expect(entities(page)).to_have_text(["user=grafana"])
    expect(page.locator("output")).to_have_text("1 of 11 rows")

    search.fill("may not exceed")
    expect(entities(page)).to_have_text(["user=clickstream"])
    expect(page.locator("output")).to_have_text("1 of 11 rows")
    assert page.locator(".trouble:visible").count() == 1

    search.fill("")
    expect(page.locator("output")).to_be_empty()
    expect(entities(page)).to_have_count(7)


def test_filters(page: Page) -> None:
    """Owner, kind and key filter the rows, together and with the search."""
    page.get_by_label("owner").select_option("platform")
    expect(page.locator("output")).to_have_text("2 of 11 rows")
    page.get_by_label("kind").select_option("drifted")
    expect(entities(page)).to_have_text(["user=<default>"])
    expect(page.locator("output")).to_have_text("1 of 11 rows")

    page.get_by_role("button", name="Clear").click()
    expect(page.locator("output")).to_be_empty()
    page.get_by_label("key", exact=True).select_option("connection_creation_rate")
    expect(entities(page)).to_have_text(["ip=10.20.0.7"])
    expect(page.locator("output")).to_have_text("1 of 11 rows")


SHARED, GATEWAY, ANY, ALICE, OLD = (
    "user=<default>", "ip=10.20.0.7", "client-id=<default>,user=alice", "user=alice",
    "client-id=old-etl",
)  # fmt: skip
ORDERS = {
    "kind": [SHARED, GATEWAY, ANY, ALICE, OLD],
    "entity": [ANY, OLD, GATEWAY, SHARED, ALICE],
    "key": [GATEWAY, ANY, OLD, ALICE, SHARED],
    "before": [ANY, GATEWAY, SHARED, ALICE, OLD],
    "desired": [OLD, SHARED, GATEWAY, ALICE, ANY],
    "change": [ANY, OLD, SHARED, ALICE, GATEWAY],
    "since": [GATEWAY, ANY, ALICE, OLD, SHARED],
    "source": [OLD, ALICE, ANY, SHARED, GATEWAY],
    "result": [SHARED, GATEWAY, ANY, ALICE, OLD],
}
"""The changed rows of the showcase by the cells of each column."""


def test_each_column_sorts_by_what_its_cells_show(page: Page) -> None:
    """Numbers are sorted by size whatever their unit, and line 8 of a file is before line 12."""
    changed = page.get_by_label("Changed").locator(".rows")
    for heading, order in ORDERS.items():
        changed.get_by_role("button", name=heading, exact=True).click()

        expect(changed.locator("th[aria-sort=ascending]")).to_have_text(heading)
        expect(changed.locator("td:nth-child(2) code")).to_have_text(order)


def test_keyboard(page: Page) -> None:
    """A slash focuses the search, Escape clears it, Enter unfolds rows."""
    page.keyboard.press("/")
    page.keyboard.type("mirror")
    expect(page.locator("output")).to_have_text("1 of 11 rows")
    page.keyboard.press("Escape")
    expect(page.locator("output")).to_be_empty()

    page.locator("details.rows summary").focus()
    page.keyboard.press("Enter")
    expect(entities(page).last).to_have_text("user=mirror")


def test_without_script(browser: Browser, page_file: Path) -> None:
    """Without script everything is readable, and controls that need it are hidden."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(page_file.as_uri())

    assert page.locator("form").is_visible() is False
    expect(entities(page)).to_have_count(7)
    expect(page.get_by_text("report.json, beside this page")).to_be_visible()
    expect(page.locator("button:visible")).to_have_count(0)
    page.locator("details.rows summary").click()
    expect(entities(page)).to_have_count(11)
    context.close()


def test_on_paper(page: Page) -> None:
    """Print is dark on light, without controls, and unfolded; it names the filter."""
    page.emulate_media(media="print", color_scheme="dark")

    expect(page.locator("form :is(input, select, button, output):visible")).to_have_count(0)
    expect(entities(page)).to_have_count(11)
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == "rgb(255, 255, 255)"
    assert page.pdf().startswith(b"%PDF")

    page.emulate_media(media="screen")
    page.get_by_role("searchbox").fill("payments")
    expect(page.locator("output").first).to_contain_text("rows")
    page.emulate_media(media="print")
    expect(page.locator("output").first).to_be_visible()
    shown = "getComputedStyle(document.querySelector('output'), '::after').content"
    assert page.evaluate(shown) == '" (filter: payments)"'


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast(page: Page, scheme: str) -> None:
    """Every text has a contrast of 4.5 to 1 (WCAG AA), and axe-core finds nothing."""
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")

    assert page.evaluate(CONTRAST) >= 4.5
    assert list_violations(page) == []


def test_no_width_scrolls_sideways(page: Page) -> None:
    """The page fits a phone and a large screen."""
    scrolls = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    for width in (360, 800, 1100, 1600):
        page.set_viewport_size({"width": width, "height": 800})
        assert (width, page.evaluate(scrolls)) == (width, 0)


def test_a_source_stays_on_one_line(page: Page) -> None:
    """A file of 20 characters and its line are not wrapped on a screen of 1,280 pixels."""
    lines = """code => {
        code.textContent = "data-platform-1.yaml:12"
        const text = document.createRange()
        text.selectNodeContents(code)
        return text.getClientRects().length
    }"""

    assert page.locator(".rows td:nth-child(8) code").first.evaluate(lines) == 1


def test_parts_of_the_bar_are_as_long_as_their_counts(page: Page) -> None:
    """The bar is true to scale, and its label has the same numbers."""
    widths = page.locator(".bar i").evaluate_all("all => all.map(one => one.offsetWidth)")

    assert [round(10 * width / widths[0]) for width in widths] == [10, 1, 0, 1]
    assert page.locator(".bar").get_attribute("aria-label") == (
        "54 in sync before, 5 changed by this run, 2 not confirmed, 4 unmanaged"
    )


def test_hostile_names_do_nothing(
    context: BrowserContext, tmp_path: Path, heard: list[str]
) -> None:
    """Hostile names in a page or an overview run no script and send no request."""
    reports = [(name, report_of(name)) for name in HARM.values()]
    pages = [*(as_html(report) for _, report in reports), fleet_page.as_html(reports)]
    path = tmp_path / "hostile.html"
    tab = listened(context, heard)
    for html in pages:
        path.write_text(html, encoding="utf-8")
        tab.goto(path.as_uri())
    tab.close()

    assert heard == [path.as_uri()] * len(pages)


def test_the_pictures_of_the_documentation_can_be_taken(browser: Browser, tmp_path: Path) -> None:
    """Each picture is a small PNG, and a new one has the size of the committed one."""
    assert {path.stem for path in PICTURES.iterdir()} == HEIGHTS.keys()
    for name, html in make_pages().items():
        (tmp_path / f"{name}.html").write_text(html, encoding="utf-8")
        take(browser, tmp_path / f"{name}.html", tmp_path / f"{name}.png", HEIGHTS[name])

        taken, kept = (path / f"{name}.png" for path in (tmp_path, PICTURES))
        assert taken.read_bytes()[:24] == kept.read_bytes()[:24]
        assert kept.stat().st_size < 200_000
