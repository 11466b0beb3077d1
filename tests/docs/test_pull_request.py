"""The script for pull requests, with more clusters than on its page."""

import os
import re
import subprocess
from pathlib import Path

from tests.docs.markdown import ROOT

SCRIPT = ROOT / "docs" / "examples" / "pull-request.sh"
TAKEN = 65_536
"""The characters of a comment on GitHub."""
PROGRAM = """#!/bin/sh
[ "$1" = report ] || exit 2
[ "$2" = --out ] || exit 2
mkdir -p "$3"
[ ! -f "desired_state/$5/report.md" ] || cp "desired_state/$5/report.md" "$3"
exit "$(cat "desired_state/$5/code")"
"""


def test_a_fleet_is_one_comment(tmp_path: Path) -> None:
    """The comment fits GitHub's limit and names every cluster; the exit code is the highest."""
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
        + "\n**quota-ops · b**\n\nToo long for this comment; see the log of this job.\n\n"
        + "**quota-ops · c**\n\nshort\n\n"
        + "d: no report; see the log of this job.\n\n"
    )


LINKS, PARSE = "unit/test_check_links.py", "dag/test_parse.py"
BOUNDS, FILES = "unit/test_check_bounds.py", "unit/test_check_files.py"
CASES = "unit/test_check_cases.py"
PROMISES = {
    "From the top of the checkout": (LINKS, "a_link_is_named_and_nothing_behind_it_is_read"),
    "A link ends `check`": (LINKS, "a_link_is_named_and_nothing_behind_it_is_read"),
    "No other command": (LINKS, "no_command_reads_what_a_link_leads_to"),
    "A file or folder that is replaced": (LINKS, "what_becomes_a_link_while_it_is_read_is_refused"),
    "A pipe, device or socket": (LINKS, "pipes_sockets_and_devices_are_refused_at_once"),
    "A link above the checkout": (LINKS, "links_above_the_checkout_are_followed"),
    "git-sync's link": (LINKS, "the_link_of_git_sync_is_followed"),
    "Without a `.git`": (LINKS, "without_git_no_link_is_followed_from_the_desired_state_down"),
    "The same rules apply": (PARSE, "no_link_is_followed_when_a_dag_file_is_parsed"),
    "`check` reads up to": (BOUNDS, "a_megabyte_of_problems_takes_little_memory"),
    "`check` lists up to 100 problems": (
        BOUNDS,
        "the_problems_of_a_cluster_are_listed_up_to_a_thousand",
    ),
    "YAML is read up to 20 levels": (FILES, "a_file_that_is_no_yaml_text_is_refused"),
    "An alias is rejected": (CASES, "a_folder_gives_its_rows_or_every_problem"),
    "An owner or a reason": (BOUNDS, "what_is_longer_than_anybody_needs_is_refused"),
    "If you keep a link": (LINKS, "the_folder_that_a_link_leads_to_may_be_named"),
}
"""The promises of the page about links, by their beginning, and the test of each."""


def test_every_promise_about_links_has_a_test() -> None:
    """Every item of the section on what a pull request cannot read has a test."""
    page = (ROOT / "docs" / "how-to" / "pull-requests.md").read_text(encoding="utf-8")
    section = page.partition("## What a pull request cannot read\n")[2]
    _, *lines = re.split(r"\n(?=- |\n\w)", section)
    said = [line.strip().removeprefix("- ") for line in lines]
    unheld = [line for line in said if not line.startswith(tuple(PROMISES))]
    missing = [start for start in PROMISES if not any(line.startswith(start) for line in said)]
    assert (unheld, missing) == ([], [])
    for file, name in PROMISES.values():
        assert f"def test_{name}(" in (ROOT / "tests" / file).read_text(encoding="utf-8")
