"""The limit of a client on the page of a report: the page looks up what the resolver does."""

from itertools import product
from pathlib import Path
from random import Random

import pytest
from playwright.sync_api import Browser

from quota_ops.model.quota import format_limit
from quota_ops.model.rows import StoredQuota
from quota_ops.precedence.resolution import CLIENT_KEYS, LEVELS, Limits, Resolution
from quota_ops.report.page import as_html
from tests.browser.accessibility import list_violations
from tests.browser.chromium import EXECUTABLE
from tests.browser.watching import listened
from tests.unit.report_sample import PLANNED

pytestmark = pytest.mark.skipif(EXECUTABLE is None, reason="Chromium is not installed")

USERS = ("alice", "<default>", 'say "hi" & <b>', "ANONYMOUS", "nobody")
CLIENTS = ("app", "constructor", "")
NAMES = {"user": ("alice", "<default>", 'say "hi" & <b>', "ANONYMOUS"), "client-id": CLIENTS[:2]}


def stored_quotas() -> list[StoredQuota]:
    """Return about a third of all limits that these names can have."""
    chance = Random(1)  # noqa: S311 - a sample
    entities = {level.entity(dict(zip(NAMES, names, strict=True))) for level in LEVELS
                for names in product(*NAMES.values())}  # fmt: skip
    return [
        StoredQuota(entity, key, float(chance.randrange(1, 10**6)))
        for entity, key in product(sorted(entities, key=lambda one: one.text), CLIENT_KEYS)
        if chance.random() < 0.35
    ]


def cells_of(found: Resolution) -> list[str]:
    """Return what the page shows for each level of one key."""
    fates = {one.level: "overridden" for one in found.overridden}
    fates |= {one.level: "sends no client id" for one in found.escaped}
    fates |= {found.applied.level: "applies"} if found.applied else {}
    return [
        "none" if one.value is None else f"{format_limit(found.key, one.value)} {fates[one.level]}"
        for one in found.rungs
    ]


def test_the_page_agrees_with_the_resolver(
    browser: Browser, tmp_path: Path, heard: list[str]
) -> None:
    """For clients with and without a name, each level has the limit and the result of resolve."""
    stored, path = stored_quotas(), tmp_path / "report.html"
    path.write_text(
        as_html(PLANNED, [(one.text, key, value) for one, key, value in stored]), encoding="utf-8"
    )
    limits, tab = Limits(stored), listened(browser.new_context(), heard)
    tab.goto(path.as_uri())
    for user, client in product(("", *USERS), CLIENTS):
        tab.get_by_label("User", exact=True).fill(user)
        tab.get_by_label("Client id").fill(client)
        tab.get_by_role("button", name="Look up").click()
        shown = f"User {user or 'ANONYMOUS'}, {f'client id {client}' if client else 'no client id'}"
        tab.get_by_text(shown).wait_for()

        rows = tab.locator("#levels tbody tr").evaluate_all(
            "all => all.map(row => [...row.cells].slice(1).map(one => one.textContent))"
        )

        expected = [
            cells_of(limits.resolve(key, user=user or None, client_id=client or None))
            for key in CLIENT_KEYS
        ]
        assert rows == [list(row) for row in zip(*expected, strict=True)]
    tab.set_viewport_size({"width": 360, "height": 800})
    assert list_violations(tab) == []
    assert heard == [path.as_uri()]
    tab.context.close()
