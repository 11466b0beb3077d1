"""The texts that every output shares."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quota_ops.model.commit import MOST_UNCOMMITTED, CommitSource, Provenance, rollback_of
from quota_ops.report.outline.formats import (
    at_commit,
    duration,
    escape_text,
    file_size,
    format_rate,
    moment,
    short_commit,
    shortened,
)


@given(st.text())
def test_shown_text_is_one_printable_line(text: str) -> None:
    """No control sequence remains, and a second pass changes nothing."""
    assert escape_text(text).isprintable()
    assert escape_text(escape_text(text)) == escape_text(text)


def test_shown_text_says_what_it_escaped() -> None:
    """A reader can tell which characters were there."""
    assert escape_text("a\x1b[31m\n\u202eb\u200bé日本") == "a\\u001b[31m\\n\\u202eb\\u200bé日本"


def test_two_names_that_look_alike() -> None:
    """A name with a decomposed letter or syllable does not look like the composed one."""
    names = ("user=\u00e9", "user=e\u0301", "\ud55c", "\u1112\u1161\u11ab")
    shown = ["user=\u00e9", "user=e\\u0301", "\ud55c", "\\u1112\\u1161\\u11ab"]
    assert [escape_text(name) for name in names] == shown


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.031, "31 ms"),
        (-3.0, "0 ms"),
        (11_100.0, "3 h 05 min"),
        (3_600_000.0, "1,000 h 00 min"),
        (0.9996, "1.0 s"),
        (9.84, "9.8 s"),
        (59.97, "1 min 00 s"),
        (124.0, "2 min 04 s"),
    ],
)
def test_durations_carry_a_unit(seconds: float, words: str) -> None:
    """A duration is shown in the unit that fits."""
    assert duration(seconds) == words


@pytest.mark.parametrize(
    ("key", "rate", "words"),
    [
        ("producer_byte_rate", 0.0, "0 B/s"),
        ("producer_byte_rate", 0.4, "0.4 B/s"),
        ("producer_byte_rate", 999.6, "1,000 B/s"),
        ("producer_byte_rate", 999_600.0, "1,000 kB/s"),
        ("producer_byte_rate", 1_043_456.78, "1.04 MB/s"),
        ("producer_byte_rate", 1.2e13, "12,000 GB/s"),
        ("request_percentage", 12.5, "12.5 %"),
        ("request_percentage", 1049.6, "1,050 %"),
        ("controller_mutation_rate", 0.1 + 0.2, "0.3 mutations/s"),
    ],
)
def test_measured_rates_have_three_digits(key: str, rate: float, words: str) -> None:
    """A rate of any size is shown as people write it, without an exponent."""
    assert format_rate(key, rate) == words


@pytest.mark.parametrize(
    ("at", "words"),
    [
        ("2026-11-21T10:15:09Z", "2026-11-21 10:15 UTC"),
        ("2026-11-21T12:15:09+02:00", "2026-11-21 10:15 UTC"),
        ("2026-11-21T10:15:09", "2026-11-21 10:15 UTC"),
        ("yesterday\n", "yesterday\\n"),
        ("0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00+14:00"),
        (None, ""),
    ],
)
def test_times_carry_a_zone(at: str | None, words: str) -> None:
    """A time is shown in UTC; any other text unchanged."""
    assert moment(at) == words


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, "0 B"), (999, "999 B"), (1_000, "1.0 kB"), (999_499, "999 kB"), (999_999, "1.0 MB")],
)
def test_sizes_carry_a_unit(size: int, words: str) -> None:
    """A thousand of a unit is one of the next."""
    assert file_size(size) == words


def test_cuts_are_marked() -> None:
    """A shortened text is marked, one that fits is unchanged."""
    assert [shortened(text, 5) for text in ("alice", "alicia")] == ["alice", "alic…"]
    assert [short_commit(commit) for commit in ("a1b2c3d4", None)] == ["a1b2c3d", "unknown commit"]


@pytest.mark.parametrize(
    ("provenance", "words"),
    [
        (Provenance("a1b2c3d4", CommitSource.COMPARED), "at a1b2c3d"),
        (Provenance("a1b2c3d4", CommitSource.GIVEN), "at a1b2c3d (as given, not compared)"),
        (
            Provenance("a1b2c3d4", CommitSource.AIRFLOW),
            "at a1b2c3d (as Airflow states, not compared)",
        ),
        (Provenance.given(rollback_of("7f3a")), "at rollback of 7f3a"),
        (Provenance("a1b2c3d4"), "at a1b2c3d"),
        (Provenance(), "at unknown commit"),
        (Provenance(failure="Git refuses"), "at unknown commit"),
        (Provenance(uncommitted=("a\n.yaml",)), "with uncommitted changes in a\\n.yaml"),
        (
            Provenance(uncommitted=("a.yaml", "b.yaml"), base="a1b2c3d4"),
            "with uncommitted changes in a.yaml and 1 more since a1b2c3d",
        ),
        (
            Provenance(uncommitted=("a.yaml",) * MOST_UNCOMMITTED),
            "with uncommitted changes in a.yaml and at least 19 more",
        ),
    ],
)
def test_a_run_says_what_it_read(provenance: Provenance, words: str) -> None:
    """The commit, its origin if it was not compared, or why a run has none."""
    assert at_commit(provenance) == words
