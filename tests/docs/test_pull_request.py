"""The page on trust: what it promises about the files that a pull request can make us read."""

import re

from tests.docs.markdown import ROOT

LINKS, PARSE = "unit/test_check_links.py", "dag/test_parse.py"
BOUNDS, FILES = "unit/test_check_bounds.py", "unit/test_check_files.py"
REVIEW = "broker/test_review.py"
CASES, BUCKET = "unit/test_check_cases.py", "broker/test_rollback_inventory.py"
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
    "An inventory in a bucket": (BUCKET, "an_inventory_that_cannot_be_reached"),
    "`review` queries a cluster": (REVIEW, "a_branch_does_not_choose_the_connection"),
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
"""The promises of the section, by their beginning, and the test of each."""


def test_every_promise_about_links_has_a_test() -> None:
    """Every item of the section on what a pull request cannot read has a test."""
    page = (ROOT / "docs" / "explanation" / "trust.md").read_text(encoding="utf-8")
    section = page.partition("## What a pull request cannot read\n")[2]
    _, *lines = re.split(r"\n(?=- |\n\w)", section)
    said = [line.strip().removeprefix("- ") for line in lines]
    unheld = [line for line in said if not line.startswith(tuple(PROMISES))]
    missing = [start for start in PROMISES if not any(line.startswith(start) for line in said)]
    assert (unheld, missing) == ([], [])
    for file, name in PROMISES.values():
        assert f"def test_{name}(" in (ROOT / "tests" / file).read_text(encoding="utf-8")
