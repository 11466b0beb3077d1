"""The site of the documentation, which `make docs` builds."""

import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

from tests.docs.markdown import ROOT
from tests.docs.messages import Message, add_messages, list_messages

PAGES = ("tutorial", "how-to", "reference", "explanation")


def test_the_site_has_every_page_and_no_link_that_leads_nowhere(tmp_path: Path) -> None:
    """A strict build finds no issue, and the navigation leads to each page but the decisions."""
    shutil.copytree(ROOT / "docs", tmp_path / "build" / "docs")
    add_messages(tmp_path / "build" / "docs")
    shutil.copy(ROOT / "zensical.toml", tmp_path)
    command = [str(Path(sys.executable).with_name("zensical")), "build", "--strict"]
    built = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr

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
