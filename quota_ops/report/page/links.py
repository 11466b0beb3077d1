"""Links of a page: to lines and commits on a code host, and to the report before."""

from typing import Self
from urllib.parse import quote

from msgspec import Struct

from quota_ops.model.code_host import Repository, is_commit_id
from quota_ops.model.history.past import Past
from quota_ops.model.plans.ledger_edits import was_cleared
from quota_ops.model.runs.report import Report
from quota_ops.report.outline.row_status import ReportRow


class PageLinks(Struct, frozen=True):
    """The links of a report; each is empty where the address or the commit is not known.

    `start` is how the addresses of the files of this run begin: rows leave it out, because a page
    may have 100,000 of them.
    """

    repository: Repository | None
    commit: str
    folder: str | None
    start: str = ""

    @classmethod
    def of(cls, report: Report) -> Self:
        """Return the links of a report."""
        repository, commit = report.repository, report.commit or ""
        folder = None if report.path is None else f"{report.path}/".removeprefix("/")
        start = ""
        if repository and folder is not None and is_commit_id(commit):
            start = repository.find_start(commit, folder)
        return cls(repository, commit, folder, start)

    def find_line(self, row: ReportRow) -> tuple[str, str]:
        """Return the link to the line that declares or declared a row, in two parts.

        The first is `start`, or empty for a line of another commit.
        """
        difference = row.difference
        if self.repository is None or self.folder is None or not difference.file:
            return "", ""
        commit = self.commit if difference.after is not None else difference.commit or ""
        if not is_commit_id(commit) or was_cleared(difference):
            return "", ""
        address = self.repository.find_line(commit, self.folder + difference.file, difference.line)
        start = self.start if address.startswith(self.start) else ""
        return start, address.removeprefix(start)

    def find_commit(self, commit: str | None) -> str:
        """Return the link to a commit."""
        return self.repository.find_commit(commit) if self.repository else ""


def find_previous(past: Past | None) -> str:
    """Return the link to the report of the previous run, beside this one in the run store."""
    return f"../{quote(past.previous, safe='')}/report.html" if past and past.previous else ""
