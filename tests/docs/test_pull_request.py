"""The script for pull requests, on more clusters than the page about it has."""

import os
import subprocess
from pathlib import Path

from tests.docs.markdown import ROOT

SCRIPT = ROOT / "docs" / "examples" / "pull-request.sh"
TAKEN = 65_536
"""The characters of a comment on GitHub."""
PROGRAM = """#!/bin/sh
folder="$QUOTA_OPS_RUN_STORE/runs/$2/run"
mkdir -p "$folder"
[ ! -f "desired_state/$2/report.md" ] || cp "desired_state/$2/report.md" "$folder"
exit "$(cat "desired_state/$2/code")"
"""


def test_a_fleet_is_one_comment(tmp_path: Path) -> None:
    """It stays below what GitHub takes, names every cluster, and ends with the highest code."""
    text = "**quota-ops · {}**\n\n" + "· a row\n" * 7_000
    reports = {
        "a": (1, text.format("a")),
        "b": (3, text.format("b")),
        "c": (1, "**quota-ops · c**\n\nshort\n"),
        "d": (2, None),
    }
    for cluster, (code, report) in reports.items():
        folder = tmp_path / "desired_state" / cluster
        folder.mkdir(parents=True)
        (folder / "cluster.yaml").touch()
        (folder / "code").write_text(str(code))
        if report is not None:
            (folder / "report.md").write_text(report, encoding="utf-8")
    program = tmp_path / "quota-ops"
    program.write_text(PROGRAM)
    program.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"

    ended = subprocess.run(
        ["/bin/sh", SCRIPT], cwd=tmp_path, env={"PATH": path}, capture_output=True, check=False
    )

    comment = (tmp_path / "comment.md").read_text(encoding="utf-8")
    assert (ended.returncode, ended.stderr) == (3, b"")
    assert len(comment) < TAKEN
    assert comment == (
        text.format("a")
        + "\n**quota-ops · b**\n\nToo long for this comment; the log of this job says more.\n\n"
        + "**quota-ops · c**\n\nshort\n\n"
        + "d: no report; the log of this job says why.\n\n"
    )
