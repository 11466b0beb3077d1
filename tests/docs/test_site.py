"""The site of the documentation, which `make docs` builds."""

import json
import re
import tomllib
from importlib.metadata import version
from pathlib import Path

from tests.docs.markdown import ROOT
from tests.docs.messages import Message, list_messages
from tests.docs.site import build_site

PAGES = ("tutorial", "how-to", "reference", "explanation")


def test_the_site_has_every_page_and_no_link_that_leads_nowhere(tmp_path: Path) -> None:
    """A strict build finds no issue, and the navigation leads to each page but the decisions.

    Each version is in a folder of its own, the newest one is the default, and each message has an
    address of its own.
    """
    older = tmp_path / "0.0.9" / "index.html"
    older.parent.mkdir()
    older.touch()
    build_site(tmp_path)

    versions = json.loads((tmp_path / "versions.json").read_text())
    newest = version("quota-ops")
    assert [(each["version"], each["aliases"]) for each in versions] == [
        (newest, ["latest"]),
        ("0.0.9", []),
    ]
    assert f"url={newest}/" in (tmp_path / "index.html").read_text()
    messages = tmp_path / newest / "reference" / "messages" / "index.html"
    anchors = re.findall(r'<h2 id="([^"]+)">', messages.read_text())
    assert len(anchors) == len(list_messages())
    assert "the-ledger-does-not-parse" in anchors

    sections = tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"]
    listed = [page for section in sections for pages in section.values() for page in pages]
    pages = {page for folder in PAGES for page in (ROOT / "docs" / folder).rglob("*.md")}
    assert sorted(page for page in listed if len(page) > 1) == sorted(
        str(page.relative_to(ROOT / "docs")) for page in pages
    )


def test_the_messages_are_those_of_the_source_code() -> None:
    """The site lists messages with their remedies and exit codes, without the values in them."""
    messages = list_messages()

    assert len(messages) > 200
    remedy = (
        "Nothing was changed. Move the damaged file elsewhere to continue from the file before it."
    )
    assert Message("the ledger does not parse: …", remedy, 2) in messages
