"""The generated sections of the documentation are current."""

import re
from pathlib import Path

import pytest

from quota_ops.cli.stage_run import DIFFERENCES_EXIST, OVERRIDDEN
from quota_ops.lab.kafka.jars import pinned_versions
from quota_ops.model.errors import QuotaOpsError
from tests.docs.generated import COMMANDS, SECTIONS, commands
from tests.docs.markdown import PAGES, ROOT, Page
from tests.docs.transcript import UPDATE

COMMAND_PAGE = """\
# quota-ops {name}

<!-- generated: cli-{name} -->
<!-- end -->

All [commands](../cli.md) and [exit codes](../exit-codes.md).
"""
WITH_SECTIONS = [path for path in PAGES if Page(path).sections()]


def test_every_command_has_a_page() -> None:
    """Each command has a page below docs/reference/cli, and no other page is there."""
    folder = ROOT / "docs" / "reference" / "cli"
    if UPDATE:
        for name in COMMANDS:
            if not (page := folder / f"{name}.md").exists():
                page.write_text(COMMAND_PAGE.format(name=name), encoding="utf-8")
    assert {page.stem for page in folder.iterdir()} == set(COMMANDS)


@pytest.mark.parametrize("path", WITH_SECTIONS, ids=lambda path: Page(path).name)
def test_generated_sections_are_fresh(path: Path) -> None:
    """A section between `generated` and `end` has the current content."""
    page = Page(path)
    for name in page.sections():
        fresh = page.replace_section(name, SECTIONS[name]())
        if UPDATE:
            path.write_text(fresh, encoding="utf-8")
        assert page.text == fresh, name


def test_every_section_is_somewhere() -> None:
    """Each generated section is on exactly one page."""
    names = [name for path in PAGES for name in Page(path).sections()]
    assert sorted(names) == sorted(SECTIONS)


def test_the_readme_names_each_kafka() -> None:
    """The README names every version of Kafka that the suite starts, and no other."""
    (row,) = re.findall(r"^Tested with .*$", Page(ROOT / "README.md").text, re.MULTILINE)
    assert set(re.findall(r"\d+\.\d+\.\d+", row)) == set(pinned_versions())


@pytest.mark.parametrize("command", [name for name, _ in commands()])
def test_every_command_is_told_about(command: str) -> None:
    """Each command is used on a written page, not only in the reference."""
    written = [path for path in PAGES if path.parent.name != "cli"]
    pages = [Page(path).text for path in written if path.name not in {"cli.md", "CHANGELOG.md"}]
    makes = {"demo", "up", "down"}
    called = {command} | {f"make {make}" for make in makes if command == f"quota-ops {make}"}
    assert any(one in text for text in pages for one in called)


def test_every_exit_code_is_explained() -> None:
    """The table has exactly the exit codes of the commands."""
    page = Page(ROOT / "docs" / "reference" / "exit-codes.md").text
    told = {int(code) for code in re.findall(r"^\| (\d) \|", page, re.MULTILINE)}
    assert told == {0, DIFFERENCES_EXIST, OVERRIDDEN} | set(exit_codes(QuotaOpsError))


def exit_codes(error: type[QuotaOpsError]) -> set[int]:
    """The exit codes of a class of errors and of those under it."""
    return {error.exit_code}.union(*map(exit_codes, error.__subclasses__()))
