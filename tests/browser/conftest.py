"""One browser for all pages, and the requests and messages of each."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from tests.browser.chromium import chromium

expect.set_options(timeout=60_000)  # a busy machine is not a failure


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all pages."""
    with chromium() as running:
        yield running


@pytest.fixture(scope="session")
def context(browser: Browser) -> BrowserContext:
    """One context for tabs without settings: a new one takes half a second of CPU for each tab."""
    return browser.new_context()


@pytest.fixture
def heard() -> list[str]:
    """Return the requests of a page and its console messages."""
    return []
