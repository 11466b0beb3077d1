"""An overview of many clusters: the worst first, each with its answer and what needs a person."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from quota_ops.model.report import Report
from quota_ops.model.text import counted
from quota_ops.report.markdown import cell, fitting
from quota_ops.report.page import LONG
from quota_ops.report.page_parts import bar, choices, headings, page_row
from quota_ops.report.row_table import report_table
from quota_ops.report.screen import Row, Screen, Span, Table, Tone, line, plain
from quota_ops.report.standing import ReportRow, Section, Standing, report_rows, standings
from quota_ops.report.summary import Answer, SyncStatus, answer
from quota_ops.report.template import rendered
from quota_ops.report.wording import moment

Fleet = Sequence[tuple[str, Report | str]]
"""Each cluster's name, and its report or why there is none."""

WORST_FIRST = (SyncStatus.ATTENTION, SyncStatus.UNKNOWN, SyncStatus.PENDING, SyncStatus.IN_SYNC)
COUNTED = (
    Standing.IN_SYNC,
    Standing.PENDING,
    Standing.DRIFTED,
    Standing.HELD,
    Standing.UNSETTLED,
    Standing.UNMANAGED,
)


@dataclass(frozen=True, slots=True)
class FleetCluster:
    """What the overview says of one cluster; `rows` are those that need attention."""

    name: str
    said: Answer
    count: Mapping[Standing, int]
    rows: tuple[ReportRow, ...] = ()

    @property
    def numbers(self) -> list[str]:
        """How many quotas stand where; empty where nothing is known."""
        return [f"{self.count[one]:,}" if self.count else "" for one in COUNTED]


def as_text(fleet: Fleet) -> str:
    """The overview as plain text."""
    clusters = _clusters(fleet)
    rows = [(one.name, one.said.word, *one.numbers, one.said.reason) for one in clusters]
    table = Table(
        ("cluster", "status", *COUNTED, "why"),
        tuple(Row(tuple(Span(text) for text in row)) for row in rows),
    )
    sections = [block for one in clusters for block in _section(one)]
    return plain((line(_sentence(clusters)), line(), table, *sections))


def _section(cluster: FleetCluster) -> Screen:
    heading = line(f"{cluster.name}: needs attention ({len(cluster.rows):,})", Tone.STRONG)
    table = report_table(cluster.rows, read_back=False)
    return (line(), heading, *table) if table else ()


def as_markdown(fleet: Fleet) -> str:
    """The overview as Markdown, safe to paste; says how many clusters it left out."""
    clusters = _clusters(fleet)
    head = [
        f"**quota-ops · {_sentence(clusters)}**",
        "",
        f"| cluster | status | {' | '.join(COUNTED)} | why |",
        "|-" * (len(COUNTED) + 3) + "|",
    ]
    rows = [
        f"| {' | '.join((cell(one.name), one.said.word, *one.numbers, cell(one.said.reason)))} |"
        for one in clusters
    ]
    return "\n".join([*head, *fitting(rows, len(rows), head)]) + "\n"


def as_html(fleet: Fleet) -> str:
    """The overview as one page that needs no network, no script and no second file."""
    clusters = _clusters(fleet)
    shown = [
        (one, bar(one.count), [page_row(row, read_back=False) for row in one.rows])
        for one in clusters
    ]
    finished = max((one.finished for _, one in fleet if isinstance(one, Report)), default=None)
    return rendered(
        "fleet.html",
        {
            f"#bar{number} .{part.style}": part.quotas
            for number, (_, parts, _) in enumerate(shown)
            for part in parts
        },
        sentence=_sentence(clusters),
        finished=moment(finished),
        clusters=shown,
        choices=choices([row for _, _, rows in shown for row in rows]),
        headings=headings(applied=False),
        long=LONG,
    )


def _clusters(fleet: Fleet) -> list[FleetCluster]:
    clusters = [_cluster(name, report) for name, report in fleet]
    return sorted(clusters, key=lambda one: (WORST_FIRST.index(one.said.word), one.name))


def _cluster(name: str, report: Report | str) -> FleetCluster:
    if isinstance(report, str):
        return FleetCluster(name, Answer(SyncStatus.UNKNOWN, " ".join(report.split())), {})
    rows = report_rows(report)
    said = answer(report, name)
    person = tuple(row for row in rows if row.section is Section.PERSON)
    count = standings(report) if report.plan or report.brokers else {}
    return FleetCluster(name, said, count, person)


def _sentence(clusters: Sequence[FleetCluster]) -> str:
    words = Counter(one.said.word for one in clusters)
    others = [f"{words[word]:,} {_SAID[word]}" for word in WORST_FIRST if words[word]]
    return f"{counted(len(clusters), 'cluster')}: {', '.join(others) or 'nothing to compare'}."


_SAID = {
    SyncStatus.ATTENTION: "needing attention",
    SyncStatus.UNKNOWN: "unknown",
    SyncStatus.PENDING: "pending",
    SyncStatus.IN_SYNC: "in sync",
}
