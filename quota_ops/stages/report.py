"""report: all that a run left, laid out for people; written also when a stage before it failed."""

from quota_ops.model.report import Report
from quota_ops.report.data import as_json
from quota_ops.report.markdown import as_markdown
from quota_ops.report.page import as_html
from quota_ops.report.text import as_text
from quota_ops.run_folder import RunFolder
from quota_ops.stages.read_report import read_report

PAGES = {
    "report.json": as_json,
    "report.md": as_markdown,
    "report.txt": as_text,
    "report.html": as_html,
}


def run(folder: RunFolder) -> Report:
    """Leave report.json, .md, .txt and .html, whatever the run came to."""
    with folder.stage("report"):
        report = read_report(folder)
        for name, lay_out in PAGES.items():
            folder.write_text(name, lay_out(report))
        return report
