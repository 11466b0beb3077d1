"""One browser for all pages, and the requests and messages of each."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from tests.browser.chromium import chromium


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all pages."""
    with chromium() as running:
        yield running


@pytest.fixture
def heard() -> list[str]:
    """Return the requests of a page and its console messages."""
    return []
