"""Colour and progress on a terminal."""

import re
from io import StringIO

import pytest
from msgspec.structs import replace

from quota_ops.model.runs.outcome import Status
from quota_ops.report.outline.layout import Span, Tone, plain
from quota_ops.report.screens.plan import plan_screen
from quota_ops.report.text.progress import ProgressText
from quota_ops.report.text.terminal import fitted, progress, show
from tests.unit.report_sample import APPLIED, DIFFERENCES, PLANNED, TROUBLED, answered


class Terminal(StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        """Return True."""
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Return a terminal of 200 columns with colours."""
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "200")
    return Terminal()


def uncoloured(text: str) -> list[str]:
    """Return the lines without colours and trailing blanks."""
    return [line.rstrip() for line in re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()]


def test_a_terminal_shows_what_a_pipe_shows(terminal: Terminal) -> None:
    """Colour adds nothing that the text does not have."""
    screen = plan_screen(PLANNED)

    show(screen, terminal)

    assert uncoloured(terminal.getvalue()) == plain(screen).splitlines()


def test_tones(terminal: Terminal) -> None:
    """Green is in sync, yellow is change, red is refusal, dim is context."""
    show([(Span("a", Tone.OK), Span("b", Tone.CHANGE))], terminal)
    show([(Span("c", Tone.REFUSAL), Span("d", Tone.CONTEXT))], terminal)

    assert terminal.getvalue() == (
        "\x1b[32ma\x1b[0m\x1b[33mb\x1b[0m\n\x1b[1;31mc\x1b[0m\x1b[2md\x1b[0m\n"
    )


def test_no_color_is_obeyed(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    """NO_COLOR removes all colours."""
    monkeypatch.setenv("NO_COLOR", "1")

    show([(Span("a", Tone.OK), Span("b", Tone.CHANGE))], terminal)

    assert terminal.getvalue() == "ab\n"


def test_a_narrow_terminal_folds_within_columns(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No line is wider than the terminal, and no character is lost."""
    monkeypatch.setenv("COLUMNS", "120")

    show(plan_screen(PLANNED)[2:3], terminal)

    lines = uncoloured(terminal.getvalue())
    assert max(map(len, lines)) <= 120
    assert sorted("".join("".join(lines).split())) == sorted(
        "".join(plain(plan_screen(PLANNED)[2:3]).split())
    )


def test_columns_give_way_from_the_widest() -> None:
    """Short columns stay whole as long as a long one can be folded."""
    assert fitted((3, 60, 40, 8), 80) == (3, 34, 35, 8)
    assert fitted((60, 60), 10) == (12, 12)


def test_progress_on_a_terminal(terminal: Terminal) -> None:
    """A terminal shows the progress of apply and verify while they run, and nothing afterwards."""
    with progress(terminal) as told:
        told.report_batch(1, 2, APPLIED.applied)
        told.report_brokers(TROUBLED.verification.brokers, 72.0)

    lines = [line.strip() for line in terminal.getvalue().replace("\r", "\n").splitlines()]
    assert any("batch 1 of 2  accepted 4  refused 0  unknown 0" in line for line in lines)
    assert any("2 of 4 brokers agree  broker 3 differs in 1 key" in line for line in lines)
    assert lines[-1].endswith("\x1b[2K")


def test_progress_in_words() -> None:
    """Each step is reported in words, with how many of how many are done."""
    said: list[tuple[str, str, int, int]] = []
    told = ProgressText(lambda *words: said.append(words))

    told.report_batch(1, 3, answered(Status.ACCEPTED, *DIFFERENCES[:3]))
    told.report_batch(2, 3, answered(Status.STALE, DIFFERENCES[3]))
    told.report_batch(3, 3, answered(Status.UNKNOWN, DIFFERENCES[4]))
    told.report_brokers(TROUBLED.verification.brokers[:3], 72.0)
    told.report_brokers(
        tuple(replace(broker, lagging=0) for broker in TROUBLED.verification.brokers[:3]), 71.0
    )

    behind = "2 of 3 brokers agree  broker 3 differs in 1 key (queried 6 times)  01:12 left"
    assert said == [
        ("apply", "batch 1 of 3  accepted 3  refused 0  unknown 0", 1, 3),
        ("apply", "batch 2 of 3  accepted 3  refused 1  unknown 0", 2, 3),
        ("apply", "batch 3 of 3  accepted 3  refused 1  unknown 1", 3, 3),
        ("verify", behind, 2, 3),
        ("verify", "3 of 3 brokers agree", 3, 3),
    ]
