"""One browser for all pages, and what they are heard to do."""

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
    """What the page asked of the network and said to the console."""
    return []
