"""The page of a report with 100,000 drifted quotas: its size, and how soon Chromium shows it."""

import time
from collections.abc import Callable, Iterator
from functools import partial

from msgspec.structs import replace
from playwright.sync_api import Page, expect

from quota_ops.model.runs.outcome import Outcome, Status
from quota_ops.report.page.report import as_html
from tests.benchmarks.bench import Bench, Row
from tests.benchmarks.measure import Spread
from tests.browser.chromium import chromium
from tests.browser.drift_sample import KEY, drifted_report

ROWS = 100_000
_INTERACTIVE = "performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd / 1000"


def pages(bench: Bench) -> Iterator[Row]:
    """Measure a page on which all quotas differ, and on which any client can be looked up."""
    stored = [(f"user=user-{at}", KEY, float(at)) for at in range(ROWS)]
    path = bench.home / "report.html"
    report = drifted_report(ROWS)
    accepted = [
        Outcome(at, row.entity, (row.key,), Status.ACCEPTED)
        for at, row in enumerate(report.plan.differences if report.plan else ())
    ]
    began = time.process_time()
    path.write_text(as_html(replace(report, validated=tuple(accepted)), stored), encoding="utf-8")
    seconds, size = time.process_time() - began, path.stat().st_size / 1e6
    what = f"page with {ROWS:,} drifted quotas"
    yield Row(what, f"{size:.1f} MB", "under 25 MB", size < 25)
    yield Row("the same, CPU time to write it", f"{seconds:.1f} s", "under 20 s", seconds < 20)
    opened, found, sorted_ = [], [], []
    with chromium() as browser:
        for _ in range(bench.runs):
            page = browser.new_page()
            page.goto(path.as_uri())
            opened.append(page.evaluate(_INTERACTIVE))
            found.append(_time(partial(_search, page)))
            sorted_.append(_time(page.get_by_role("button", name="current").first.click))
            page.close()
    named = {"interactive in Chromium": opened, "a search": found, "a sort": sorted_}
    for name, times in named.items():
        spread = Spread.of(times)
        yield Row(f"the same, {name}", spread.text(" s"), "under 2 s", spread.median < 2)


def _search(page: Page) -> None:
    page.get_by_role("searchbox").fill(f"user-{ROWS - 1}")
    expect(page.locator("output").first).to_contain_text("1 of")


def _time(act: Callable[[], None]) -> float:
    began = time.monotonic()
    act()
    return time.monotonic() - began
