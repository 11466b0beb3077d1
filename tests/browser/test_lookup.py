"""The limit of a client on the page of a report: the page looks up what the resolver does."""

from itertools import product
from pathlib import Path
from random import Random

import pytest
from playwright.sync_api import BrowserContext, expect

from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.quota import CLIENT_KEYS, IP_KEYS, format_limit
from quota_ops.model.quotas.rows import StoredQuota
from quota_ops.precedence.resolution import LEVELS, Limits, Resolution, normalize_address
from quota_ops.report.page.report import as_html
from quota_ops.report.screens.resolve import notes
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
    fates = {rung.level: "overridden" for rung in found.overridden}
    fates |= {rung.level: "sends no client id" for rung in found.escaped}
    fates |= {found.applied.level: "applies"} if found.applied else {}
    return [
        "none"
        if rung.value is None
        else f"{format_limit(found.key, rung.value)} {fates[rung.level]}"
        for rung in found.rungs
    ]


def says_the_same(found: Resolution, shown: str) -> bool:
    """Whether the page names those who share a limit as resolve does."""
    note = next(notes(found, None))
    if found.applied is None or found.applied.value == float("inf"):
        return shown == f"{found.key}: nothing limits it"
    return shown.removeprefix(f"{found.key}: ") in note


def test_the_page_agrees_with_the_resolver(
    context: BrowserContext, tmp_path: Path, heard: list[str]
) -> None:
    """For clients with and without a name, each level has the limit and the result of resolve.

    So has who shares the limit.
    """
    stored, path = stored_quotas(), tmp_path / "report.html"
    path.write_text(
        as_html(PLANNED, [(entity.text, key, value) for entity, key, value in stored]),
        encoding="utf-8",
    )
    limits, tab = Limits(stored), listened(context, heard)
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
        found = [
            limits.resolve(key, user=user or None, client_id=client or None) for key in CLIENT_KEYS
        ]
        shared = tab.locator("#levels li").all_text_contents()
        assert all(map(says_the_same, found, shared)), shared
    tab.get_by_label("User", exact=True).fill("User:alice ")
    tab.get_by_role("button", name="Look up").click()
    tab.get_by_text("Brokers compare only the name: look up alice .").wait_for()
    expect(tab.locator("#lookup output")).to_contain_text("begins or ends with a blank")
    tab.set_viewport_size({"width": 360, "height": 800})
    assert list_violations(tab) == []
    assert heard == [path.as_uri()]
    tab.close()


def test_addresses_agree_with_the_resolver(context: BrowserContext, tmp_path: Path) -> None:
    """An address has its own limit, in any spelling, or else that of any address, as in resolve."""
    (key,) = IP_KEYS
    names = ("10.0.0.7", "0010.0.0.7", "2001:db8::1", "::ffff:10.0.0.9", "kafka.example", None)
    stored = [StoredQuota(Entity.of({"ip": name}), key, at + 1.0) for at, name in enumerate(names)]
    path = tmp_path / "report.html"
    path.write_text(as_html(PLANNED, [(entity.text, key, value) for entity, _, value in stored]))
    limits, tab = Limits(stored), context.new_page()
    tab.goto(path.as_uri())
    for ip in ("10.0.0.7", "2001:DB8:0::1", "10.0.0.9", "::ffff:a00:9", "192.0.2.1"):
        tab.get_by_label("Address", exact=True).fill(ip)
        tab.get_by_role("button", name="Look up").click()
        tab.get_by_text(f"Address {normalize_address(ip)}:").wait_for()
        found = limits.resolve_address(key, ip=ip)
        own = [format_limit(key, rung.value) for rung in found.rungs[:-1] if rung.value is not None]
        fate = "one of these applies: they are spellings of one address" if own[1:] else "applies"

        shown = tab.locator("#levels td").all_text_contents()
        assert shown == [
            f"{' or '.join(sorted(own))} {fate}" if own else "none",
            "6 connections/s " + ("overridden" if own else "applies"),
        ]
        assert found.applied == (found.rungs[0] if own else found.rungs[-1])
    tab.get_by_label("Address", exact=True).fill("010.0.0.1")
    tab.get_by_role("button", name="Look up").click()
    tab.get_by_text("010.0.0.1 is not an IP address: write it in digits").wait_for()
    assert list_violations(tab) == []
    tab.close()
