"""The overview of all clusters as text: the worst first, with status and what needs attention."""

from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from quota_ops.model.history.past import Past
from quota_ops.model.runs.report import Report
from quota_ops.model.text import counted, plural
from quota_ops.report.outline.layout import Screen, Table, Tone, line, plain
from quota_ops.report.outline.row_status import (
    ReportRow,
    RowStatus,
    Section,
    count_statuses,
    report_rows,
)
from quota_ops.report.outline.row_table import report_table
from quota_ops.report.outline.summary import Summary, SyncStatus, summarize

Fleet = Sequence[tuple[str, Report | str]]
"""The name of each cluster, and its report or the reason why it has none."""

COUNTED = (
    RowStatus.IN_SYNC,
    RowStatus.PENDING,
    RowStatus.OVERRIDING,
    RowStatus.DRIFTED,
    RowStatus.HELD,
    RowStatus.UNSETTLED,
    RowStatus.UNMANAGED,
)


class FleetCluster(Struct, frozen=True):
    """A cluster in the overview; `rows` are the rows that need attention."""

    name: str
    summary: Summary
    count: Mapping[RowStatus, int]
    rows: tuple[ReportRow, ...] = ()
    past: Past | None = None

    @property
    def numbers(self) -> list[str]:
        """The number of quotas in each status; empty if nothing is known."""
        return [f"{self.count[status]:,}" if self.count else "" for status in COUNTED]


def as_text(fleet: Fleet) -> str:
    """Return the overview as plain text."""
    clusters = rank_clusters(fleet)
    rows = (
        (cluster.name, cluster.summary.status, *cluster.numbers, cluster.summary.reason)
        for cluster in clusters
    )
    overview = Table.of(("cluster", "status", *COUNTED, "why"), rows)
    sections = [block for cluster in clusters for block in _section(cluster)]
    return plain((line(describe_fleet(clusters)), line(), overview, *sections))


def _section(cluster: FleetCluster) -> Screen:
    heading = line(f"{cluster.name}: needs attention ({len(cluster.rows):,})", Tone.STRONG)
    rows = report_table(cluster.rows, cluster.past, applied=False)
    return (line(), heading, *rows) if rows else ()


def rank_clusters(fleet: Fleet) -> list[FleetCluster]:
    """Return the clusters, those that could not be compared first."""
    clusters = [_cluster(name, report) for name, report in fleet]
    return sorted(
        clusters, key=lambda cluster: ([*SyncStatus].index(cluster.summary.status), cluster.name)
    )


def _cluster(name: str, report: Report | str) -> FleetCluster:
    if isinstance(report, str):
        return FleetCluster(name, Summary(SyncStatus.UNKNOWN, " ".join(report.split())), {})
    rows = report_rows(report)
    summary = summarize(report, name)
    person = tuple(row for row in rows if row.section is Section.PERSON)
    count = count_statuses(report) if report.plan or report.verification.brokers else {}
    return FleetCluster(name, summary, count, person, report.past)


def describe_fleet(clusters: Sequence[FleetCluster]) -> str:
    """Return how many clusters have which status, as a sentence."""
    statuses = Counter(cluster.summary.status for cluster in clusters)
    others = [
        f"{number:,} {plural(number, *status.verbs)}"
        for status in SyncStatus
        if (number := statuses[status])
    ]
    return f"{counted(len(clusters), 'cluster')}: {', '.join(others) or 'nothing to compare'}."
