"""Hostile names and messages, in every output."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from io import StringIO
from typing import Any

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from msgspec.structs import replace

from quota_ops.model.commit import CommitSource, Provenance
from quota_ops.model.errors import InvalidDesiredState
from quota_ops.model.finding import Problem
from quota_ops.model.plans.approval import Decision, DecisionKind
from quota_ops.model.plans.guard import GuardFinding
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.runs.outcome import Outcome, Status
from quota_ops.model.runs.report import Report
from quota_ops.model.runs.rollback import Rollback, Undone
from quota_ops.model.runs.run import Verification
from quota_ops.model.runs.verification import BrokerResult, RowVerdict, Verdict
from quota_ops.report.markdown import approval_form
from quota_ops.report.outline.formats import escape_text
from quota_ops.report.outline.layout import Screen, plain
from quota_ops.report.page import fleet as fleet_page
from quota_ops.report.page.report import as_html
from quota_ops.report.records.json_report import as_json
from quota_ops.report.screens.plan import plan_screen, problems_screen, verify_screen
from quota_ops.report.text.progress import ProgressText
from quota_ops.report.text.report import as_text, report_screen
from quota_ops.report.text.terminal import show
from tests.unit.report_reader import Page
from tests.unit.report_sample import (
    ALICE_RAISED,
    DEFAULT_RAISED,
    ETL_REMOVED,
    OPERATOR,
    PLAN,
    PLANNED,
    TROUBLED,
    stages,
)

NOW = "2026-11-26T09:00:00Z"
HARM = {
    "script": "<script>alert(1)</script>",
    "attribute": "\" onmouseover=alert(1) x='",
    "end of style": "</style></td><img src=x>",
    "template": "{{ 7 * 7 }}{% raw %}",
    "entity": "&lt;b&gt;&#64;",
    "pipe": "a|b\\|c",
    "backticks": "``` `a` ```",
    "mention": "@org/team",
    "reference": "#1 org/repo#2 GH-3",
    "link": "[a](http://example.org) http://example.org www.example.org a@example.org",
    "markup": "**a** _b_ ~~c~~ ![d](e) # f",
    "newline": "a\r\n\n- b\n# c",
    "escape": "\x1b[2J\x1b]0;title\x07\x9b31m\x7f",
    "bidi": "a\u202eb\u2066c\u2028d",
    "formula": "=cmd|' /C calc'!A0",
    "surrogate": "a\ud800b",
    "nothing": " ",
}


def one_line(name: str) -> str:
    """Return a message of one line: its line ends would stay, and these tests count lines."""
    return name.replace("\n", " ")


def report_of(name: str) -> Report:
    """Return a report with `name` wherever a person, a broker or a file can put text."""
    said: dict[str, Any] = {
        "owner": name,
        "reason": name,
        "file": name,
        "commit": name,
        "run": name,
    }
    row = ALICE_RAISED._replace(**said, since=name)
    rows = (
        row._replace(entity=Entity.of({"user": name}).text, key=name),
        row._replace(entity=Entity.of({"user": None, name: name}).text),
        DEFAULT_RAISED,
        ETL_REMOVED,
        OPERATOR._replace(hands_off=name),
    )
    return replace(
        TROUBLED,
        cluster=name,
        cluster_id=name,
        run=name,
        provenance=Provenance(name, CommitSource.GIVEN, failure=name),
        started=name,
        stages=tuple(
            replace(stage, message=one_line(name))
            for stage in stages(apply="failed", verify="not run")
        ),
        plan=replace(
            PLAN,
            commit=name,
            differences=rows,
            guards=(GuardFinding("cut", name), GuardFinding("conflict", name, allowed=name)),
            ledger=name,
        ),
        applied=(Outcome(1, rows[0].entity, (name,), Status.REFUSED, 44, name, name),),
        verification=Verification(
            brokers=(BrokerResult(1, name, 2, 1), BrokerResult(2, name, 2, None, name)),
            verdicts=(
                RowVerdict(
                    Entity.of({"user": name}).text,
                    f"{name} key",
                    1.0,
                    Verdict.DIFFERS,
                    ((1, None),),
                ),
            ),
        ),
        versions=((name, name),),
        audit=one_line(name),
        rollback=Rollback(
            name, name, name, name, name, (Undone(name, name, 1.0, 2.0, name, True, 3.0, name),)
        ),
        decisions=(Decision(DecisionKind.APPROVED, PLAN.digest, (), name, name, NOW, name, name),),
    )


NAMES = [pytest.param(name, id=kind) for kind, name in HARM.items()]
HARMLESS = report_of("plain")


@pytest.mark.parametrize("name", NAMES)
def test_html(name: str) -> None:
    """The page has the elements and attributes that it has for a plain name, and no more."""
    html = as_html(report_of(name))

    page, plain_page = Page(html), Page(as_html(HARMLESS))
    assert page.elements == plain_page.elements
    assert all(line.isprintable() for line in html.split("\n"))
    assert escape_text(name).split() == [] or " ".join(escape_text(name).split()) in page.said("dd")


@pytest.mark.parametrize("name", NAMES)
def test_fleet_html(name: str) -> None:
    """The overview of clusters has no element that came from a name or an error."""
    page = Page(fleet_page.as_html(((name, report_of(name)), ("b", name))))

    assert page.elements == Page(fleet_page.as_html((("a", HARMLESS), ("b", "plain")))).elements


def tokens(markdown: str) -> Iterator[Token]:
    """Return the tokens of a Markdown text as GitHub parses it."""
    for token in MarkdownIt("gfm-like", {"html": True, "linkify": True}).parse(markdown):
        yield token
        yield from token.children or ()


@pytest.mark.parametrize("name", NAMES)
def test_question(name: str) -> None:
    """The question of an approval is one line, and its Markdown is as harmless."""

    def asked(report: Report) -> str:
        plan = report.plan
        assert plan is not None
        assert approval_form.format_subject(report, plan).isprintable()
        return approval_form.format_body(report, plan, datetime.now(UTC), "report.html")

    markdown = asked(report_of(name))
    outside = [token.content for token in tokens(markdown) if token.type == "text"]
    assert {token.type for token in tokens(markdown)} == {
        token.type for token in tokens(asked(HARMLESS))
    }
    assert not re.search(r"[@#\[\]<>`|]|http|www", "".join(outside))
    quoted = {one.content for one in tokens(markdown) if one.type == "code_inline"}
    assert {escape_text(name)} < quoted


def screens_of(name: str) -> list[Screen]:
    """Return every screen that shows foreign text."""
    report = report_of(name)
    problem = Problem(name, 1, 2, name, name, name * 3, 4)
    return [
        plan_screen(report),
        verify_screen(report),
        report_screen(report),
        problems_screen(InvalidDesiredState([problem], files=1, quotas=1)),
    ]


@pytest.mark.parametrize("name", NAMES)
def test_pipe(name: str) -> None:
    """Plain text contains no character that controls a terminal, and no line made by a name."""
    for screen, harmless in zip(screens_of(name), screens_of("plain"), strict=True):
        lines = plain(screen).split("\n")

        assert all(line.isprintable() for line in lines)
        assert len(lines) == len(plain(harmless).split("\n"))


@pytest.mark.parametrize("name", NAMES)
def test_terminal(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A terminal receives colours and no other control sequence."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    stream = StringIO()
    for screen in screens_of(name):
        show(screen, stream)

    lines = re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue()).split("\n")
    assert all(line.isprintable() for line in lines)
    assert "\x1b[2J" not in stream.getvalue()


@pytest.mark.parametrize("name", NAMES)
def test_progress(name: str) -> None:
    """A broker's message during progress is one harmless line as well."""
    lines: list[str] = []
    told = ProgressText(lambda _, text, *__: lines.append(text))
    told.report_brokers(report_of(name).verification.brokers, 1.0)

    assert all(line.isprintable() for line in lines)


@pytest.mark.parametrize("name", NAMES)
def test_json(name: str) -> None:
    """JSON keeps every name unchanged, and its text is printable ASCII."""
    text = as_json(report_of(name))

    assert text.isascii()
    assert text.replace("\n", "").isprintable()
    assert json.loads(text)["cluster"] == name


@pytest.mark.parametrize("name", NAMES)
def test_long_names_do_not_hide_rows(name: str) -> None:
    """A name of the longest length that Kafka accepts leaves the other rows visible."""
    long = (name * 32_767)[:32_767]

    assert "old-etl" in as_text(replace(PLANNED, cluster=long))
