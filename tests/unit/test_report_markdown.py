"""The comment on a pull request."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from quota_ops.model.runs.outcome import Status
from quota_ops.report.markdown.report import LIMIT, as_markdown, cell, code
from quota_ops.report.outline.formats import escape_text
from tests.unit.report_sample import (
    ALICE_RAISED,
    APPLIED,
    FAILED,
    PLAN,
    PLANNED,
    REFUSED,
    TROUBLED,
    answered,
)

GITHUB = MarkdownIt("gfm-like")


def test_comment_on_a_plan() -> None:
    """A reviewer sees the changes, what needs approval and how, and the broker's responses."""
    assert (
        as_markdown(PLANNED)
        == """\
**quota-ops · 1 quota on `demo` was changed outside Git** · plan `b998bfb3` · \
commit `a1b2c3d`

3 pending; 1 guard blocks the plan; 409 of 412 quotas in sync; 2 unmanaged.

| | entity | key | current → desired | owner, reason, source |
|-|-|-|-|-|
| ⚠ | user `alice`, any other client | `consumer_byte_rate` | none → **20 MB/s** | \
`payments`<br>`payments.yaml:12` |
| ⚠ | every user | `request_percentage` | 100 % → **25 %** (\N{MINUS SIGN}75 %) | \
`platform`<br>`fair share`<br>`platform.yaml:5` |
| ✂ | client `old-etl` | `consumer_byte_rate` | 20 MiB/s → **none** | \
`etl`<br>`(was etl.yaml, at 9c0ffee)` |
| ↑ | user `alice` | `producer_byte_rate` | 10 MiB/s → **15 MiB/s** (+50 %) | \
`payments`<br>`card settlement`<br>`payments.yaml:8` |

The broker accepts all 4 changes (validate-only, 1 request, 31 ms).

⚠ **default_touched**: `user=<default> request_percentage would change; a default applies to \
many clients`

⚠ 1 guard blocks this plan. A run nevertheless restores 1 quota to the last verified value: \
`user=<default> request_percentage`. 3 other changes wait: \
`client-id=<default>,user=alice consumer_byte_rate`, `client-id=old-etl consumer_byte_rate`, \
`user=alice producer_byte_rate`. Override it with `--allow default_touched --reason TEXT` \
(in Airflow, approve the plan).
"""
    )


def test_comment_on_a_troubled_run() -> None:
    """Refusals are in their rows; stopped stages and lagging brokers have lines."""
    lines = as_markdown(TROUBLED).splitlines()

    assert [line for line in lines if line.startswith(("| ⚠", "⚠"))] == [
        (
            "| ⚠ | user `alice`, any other client | `consumer_byte_rate` | none → **20 MB/s**<br>"
            "`unknown: no response recorded [payments.yaml:12]` | "
            "`payments`<br>`payments.yaml:12` |"
        ),
        (
            "| ⚠ | client `old-etl` | `consumer_byte_rate` | 20 MiB/s → **none**<br>"
            "`refused: Quotas of etl are frozen. (POLICY_VIOLATION) [etl.yaml]` | "
            "`etl`<br>`(was etl.yaml, at 9c0ffee)` |"
        ),
        (
            "| ⚠ | user `alice` | `producer_byte_rate` | 10 MiB/s → **15 MiB/s** (+50 %)<br>"
            "`broker 3 stores 10 MiB/s [payments.yaml:8]` | "
            "`payments`<br>`card settlement`<br>`payments.yaml:8` |"
        ),
        "⚠ **apply incomplete**: `no reason was given`",
        "⚠ **verify failed**: `no reason was given`",
        "⚠ `broker 3 differs in 1 key (queried 6 times)`",
        "⚠ `broker 4 at kafka-4:9094 does not respond (queried 6 times): timed out`",
    ]


def test_comment_on_a_failed_run() -> None:
    """A run that did not reach the cluster is not shown as one with nothing to do."""
    assert as_markdown(FAILED).splitlines() == [
        ("**quota-ops · describe failed, so the state of `demo` is unknown** · commit `a1b2c3d`"),
        "",
        "",
        (
            "⚠ **describe failed**: `cluster demo: no broker responds at kafka-1:9094 "
            "(timed out after 5 s).`<br>`Check bootstrap.servers and the network.`"
        ),
        "",
        "⚠ **not run**: diff, plan, validate, apply, verify",
    ]


def test_comment_on_a_refused_plan() -> None:
    """A reviewer sees what the broker would reject, and that a first plan clears nothing."""
    assert as_markdown(REFUSED).splitlines()[-7:] == [
        "⚠ **validate refused**: `no reason was given`",
        "",
        "⚠ **not run**: apply, verify",
        "",
        "⚠ The broker rejects 1 of 4 changes (validate-only, 1 request, 31 ms).",
        "",
        "No ledger of this cluster yet: nothing is cleared until a run has been verified.",
    ]


@pytest.mark.parametrize("rows", [5, 20_000])
def test_a_comment_fits(rows: int) -> None:
    """GitHub accepts the comment of any run; the comment counts the rows that it leaves out."""
    changes = tuple(
        ALICE_RAISED._replace(entity=f"user=user-{number}", owner="x" * 40_000)
        for number in range(rows)
    )
    report = replace(
        APPLIED,
        plan=replace(PLAN, differences=changes),
        applied=answered(Status.ACCEPTED, *changes),
    )

    lines = as_markdown(report).splitlines()

    listed = sum(line.startswith("| ↑") for line in lines)
    assert sum(len(line) + 1 for line in lines) <= LIMIT
    left_out = [f"… and {rows - listed:,} more; the report has them all."]
    assert [line for line in lines if "more;" in line] == (left_out if rows > listed else [])


@given(st.text(max_size=200) | st.text("`|\\ a\n<@#*_[]!&:/.", max_size=50))
def test_a_code_span_holds_any_text(text: str) -> None:
    """Any text in a cell comes out of GitHub's Markdown as that text and nothing else."""
    document = f"|a|b|\n|-|-|\n|{cell(text)}|{code('b')}|\n"

    inlines = [token.children or [] for token in GITHUB.parse(document) if token.type == "inline"]

    expected = [[("code_inline", escape_text(text))]] if text else [[]]
    assert [[(token.type, token.content) for token in children] for children in inlines[2:]] == [
        *expected,
        [("code_inline", "b")],
    ]
