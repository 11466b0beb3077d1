"""Hostile names, from YAML through the broker to every page: shown, and harmless."""

import json
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.model.quotas.entity import Entity
from tests.cli.test_screens import on_a_terminal
from tests.lab import Lab, open_lab
from tests.writing import State

KEY = "producer_byte_rate"
NAMES = (
    "two\nlines",
    "<script>alert(1)</script>",
    '=cmd|"/C calc"!A0',
    "\x1b[2J\x1b]0;title\x07\x1b[31mred",
    'it\'s "quoted" `code` | pipe',
    "a\u202egnp.exe",
    "--help",
    "@everyone [x](javascript:alert(1))",
    "%s {0} ${HOME} {{7*7}} {% raw %}",
    "\x00\x7f\x85\u2028",
    "日本 🚀 zoë",
    "[red]rich[/red] :bomb:",
    "../../etc/passwd",
    "user=x,client-id=<default>",
)
STATE: State = {Entity.of({"user": name}).text: {KEY: 1024.0} for name in NAMES}


@pytest.fixture(name="lab", scope="module")
def _lab(broker: RunningBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with open_lab(broker, tmp_path_factory.mktemp("hostile")) as lab:
        lab.desire(STATE)
        yield lab


def is_harmless(text: str) -> bool:
    """Whether a text contains nothing that controls a terminal or hides a part of it."""
    return all(char.isprintable() or char == "\n" for char in text)


def test_from_yaml_to_the_broker(lab: Lab) -> None:
    """Each name is its own entity and is read back byte for byte; each screen is harmless."""
    for command in ("check", "plan", "diff", "reconcile", "describe", "verify", "plan"):
        ended = lab.call(command, "demo")
        assert (ended.returncode, ended.stderr) == (0, "")
        assert is_harmless(ended.stdout)
    assert lab.stored() == lab.known() == STATE
    described = json.loads(lab.cli("describe", "demo", "--format", "json").stdout)
    assert {row["entity"]["user"] for row in described} == set(NAMES)


def test_on_a_terminal(lab: Lab) -> None:
    """A terminal receives quota-ops' own colours alone."""
    _, shown = on_a_terminal(lab, "plan", "demo")
    _, described = on_a_terminal(lab, "describe", "demo")
    for text in (shown, described):
        assert "\x1b[2J" not in text
        assert "\x1b]" not in text
        assert "\x07" not in text
        assert "\u202e" not in text


class Tags(HTMLParser):
    """The elements and attributes of a page, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts: list[str] = []
        self.handlers: list[str] = []
        self.text: list[str] = []
        self._in_script = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Record scripts, event handlers and addresses."""
        self._in_script = tag == "script" and ("type", "application/json") not in attrs
        self.handlers += [name for name, _ in attrs if name.startswith("on")]
        addresses = (str(value) for name, value in attrs if name != "aria-label")
        self.handlers += [address for address in addresses if "javascript:" in address]

    def handle_data(self, data: str) -> None:
        """Record the text, and the scripts; data that the page's script reads is text too."""
        (self.scripts if self._in_script else self.text).append(data)
        self._in_script = False


def test_every_page(lab: Lab) -> None:
    """Screen, text, HTML and JSON show each entity harmlessly, and run none of it."""
    lab.put({entity: {KEY: 99.0} for entity in STATE})
    lab.desire({**STATE, "user=<default>": {KEY: 5.0}})
    ended = lab.call("report", "demo")
    assert ended.returncode == 1
    [page] = [word for word in ended.stdout.split() if word.endswith("report.html")]
    pages = {path.suffix: path.read_text("utf-8") for path in Path(page).parent.glob("report.*")}
    assert pages.keys() == {".txt", ".html", ".json"}
    assert all(is_harmless(text) for text in (ended.stdout, *pages.values()))
    for text in (ended.stdout, pages[".txt"]):
        assert {entity for entity in STATE if entity in text} == STATE.keys()
    rows = json.loads(pages[".json"])["rows"]
    assert {row["entity"] for row in rows} == {*STATE, "user=<default>"}
    parsed = Tags()
    parsed.feed(pages[".html"])
    shown = " ".join("".join(parsed.text).split())
    assert all(name in shown for name in ("<script>alert(1)</script>", "{{7*7}}"))
    assert not any("alert(1)" in script for script in parsed.scripts)
    [data] = re.findall(r'id="data">(.*?)</script>', pages[".html"], re.DOTALL)
    assert not set(data) & {"<", ">", "&"}
    assert parsed.handlers == []
