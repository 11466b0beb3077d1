"""Every command of every page prints what the page shows, on a real broker.

`UPDATE_DOCS=1 python -m pytest tests/docs` writes the current output into the pages.
"""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from quota_ops.lab.demo.run import LAST_STEP
from quota_ops.lab.demo.story import STEPS
from tests.docs.demo import SHOWN, headings, shown_block
from tests.docs.markdown import PAGES, ROOT, Page
from tests.docs.shell import Shell, without_moment
from tests.docs.transcript import NOT_RUN, SETUPS, UPDATE, as_it_went, first_line, steps

WITH_COMMANDS = [path for path in PAGES if steps(Page(path))]


@pytest.mark.parametrize("path", WITH_COMMANDS, ids=lambda path: Page(path).name)
def test_a_page_shows_what_happens(path: Path, shell: Callable[[str], Shell]) -> None:
    """The commands of a page succeed and print what the page shows."""
    page = Page(path)
    shown = steps(page)
    went = list(zip(shown, shell(page.text).run([step.command for step in shown]), strict=True))
    if UPDATE:
        as_it_went(page, went)
        went = [(step, said) for step, said in went if step.said is None]
    wrong = [(step, said) for step, said in went if not step.went_as_shown(said)]
    assert [(step.command, str(said)) for step, said in wrong] == [
        (step.command, step.said) for step, _ in wrong
    ]


@pytest.mark.parametrize(
    "around", ["demo (id) at {}, plan", "was of commit {}). Until", "a  {}  Yes"]
)
def test_a_commit_may_have_digits_alone(around: str) -> None:
    """A commit of digits alone counts as a commit; another number does not."""
    words = [without_moment(around.format(commit)) for commit in ("8237843", "049b715")]
    assert words[0] == words[1] != without_moment(around.format("1 MiB/s"))
    assert without_moment("producer_byte_rate: 1048576") == "producer_byte_rate: 1048576"


@pytest.mark.parametrize("path", PAGES, ids=lambda path: Page(path).name)
def test_a_page_hides_no_step(path: Path) -> None:
    """No comment of a page has a command or a text that readers do not see."""
    assert Page(path).comments() == []


def test_each_setup_is_of_a_page() -> None:
    """Each set-up is of a page with commands, and of a section that the page has."""
    found = {path.relative_to(SETUPS).with_suffix("").as_posix() for path in SETUPS.rglob("*.sh")}
    assert found - {Page(path).name[5:-3] for path in WITH_COMMANDS} == set()


def test_what_is_not_run_is_still_shown() -> None:
    """Each block that the tests do not run is on a page and has a reason."""
    shown = {first_line(block) for path in PAGES for block in Page(path).blocks()}
    assert set(NOT_RUN) - shown == set()
    assert all(NOT_RUN.values())


def test_a_page_shows_steps_of_the_demo() -> None:
    """The steps of the demo that its page shows exist, under the numbers shown."""
    titles = ["Start Kafka", *STEPS, LAST_STEP]
    steps = {title: (str(titles.index(title) + 1), str(len(titles))) for title in SHOWN}
    assert headings(shown_block().text) == steps


def test_the_readme_opens_with_a_real_plan() -> None:
    """The plan at the top of the README is what the tutorial's plan prints, line by line."""
    tutorial = Page(ROOT / "docs" / "tutorial" / "first-change.md").blocks()
    printed = {without_moment(line) for block in tutorial for line in block.text.splitlines()}
    opening = next(block for block in Page(ROOT / "README.md").blocks() if block.language == "text")
    shown = {without_moment(line) for line in opening.text.splitlines()}
    assert shown - printed == set()


def test_the_pages_stay_short() -> None:
    """What people wrote on the pages, without decisions, is read in a day: 45,500 words at most."""
    pages = [path for path in (ROOT / "docs").rglob("*.md") if path.parent.name != "adr"]
    written = (
        re.sub(r"<!-- generated.*?<!-- end -->", "", Page(path).text, flags=re.DOTALL)
        for path in pages
    )
    assert sum(len(text.split()) for text in written) <= 45_500
