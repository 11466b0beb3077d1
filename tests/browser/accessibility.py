"""axe-core: the rules of WCAG 2 that a program can check."""

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

_AXE = Axe()


def list_violations(page: Page) -> list[str]:
    """Return the rules that a page violates, each with its first elements; empty if it is fine."""
    found = _AXE.run(page).response["violations"]
    return [
        f"{one['id']}: {one['help']}: {[node['html'][:200] for node in one['nodes'][:3]]}"
        for one in found
    ]
