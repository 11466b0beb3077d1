"""The commands of a page, with the output on the page and the real one."""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.docs.markdown import ROOT, Block, Page
from tests.docs.shell import Said, without_moment
from tests.yaml_cases import load_yaml

UPDATE = os.environ.get("UPDATE_DOCS") == "1"
"""Whether pages are rewritten rather than compared."""

NOT_RUN: dict[str, str] = load_yaml((ROOT / "tests/cases/docs/not_run.yaml").read_text())
"""The reason why a block of commands is not run, by its first line."""


SETUPS = ROOT / "tests" / "docs" / "setups"
"""What is there before the first command of a page, or of one of its sections, by the page's path.

A line `# before: HEADING` begins the commands of a section.
"""


class Step(NamedTuple):
    """A command and its output on the page; None where the page shows none.

    `block` is None for the set-up, which is not on the page.
    """

    block: Block | None
    command: str
    said: str | None

    def went_as_shown(self, said: Said) -> bool:
        """Return whether the command succeeded, or ended as the page shows."""
        if self.said is None:
            return said.code == 0
        return without_moment(self.said) == without_moment(str(said))


def steps(page: Page) -> list[Step]:
    """Return the set-up and the commands of a page in order, without the blocks in NOT_RUN."""
    blocks = [block for block in page.blocks() if first_line(block) not in NOT_RUN]
    shown = [step for block in blocks for step in _steps(block)]
    for heading, commands in reversed(_setups(page)):
        line = page.text.splitlines().index(heading) if heading else 0
        below = (number for number, step in enumerate(shown) if _line(step) >= line)
        shown.insert(next(below, len(shown)), Step(None, commands, None))
    return shown


def shown_output(page: str, command: str) -> str:
    """Return the output that a page shows for a command, without what differs between machines.

    For a command that only a test elsewhere runs; that test masks the real output in this way too.
    """
    blocks = Page(ROOT / "docs" / page).blocks()
    (said,) = (step.said for block in blocks for step in _steps(block) if step.command == command)
    assert said is not None
    return mask_machine(said)


def mask_machine(text: str) -> str:
    """Return a text without ports, process ids, paths and passwords."""
    text = re.sub(r"(127\.0\.0\.1|localhost):\d+", "ADDRESS", text)
    text = re.sub(r"(?<=pid)( +)\d+|(?<=admin / )\S+", "NUMBER", text)
    folders = r"(?<!\S)[~/]\S+/(?=[\w-]+(/node-1/broker\.log|\.properties)?$)"
    return re.sub(folders, "", text, flags=re.MULTILINE).rstrip()


def first_line(block: Block) -> str:
    """Return the name of a block of commands."""
    return block.text.partition("\n")[0]


def _setups(page: Page) -> list[tuple[str, str]]:
    """Return the headings of a page and the commands to run before those under each."""
    path = SETUPS / Path(page.name.removeprefix("docs/")).with_suffix(".sh")
    text = f"# before: \n{path.read_text('utf-8')}" if path.exists() else ""
    parts = re.split(r"^# before: (.*)\n", text, flags=re.MULTILINE)[1:]
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return [(heading and f"## {heading}", commands) for heading, commands in pairs if commands]


def _line(step: Step) -> int:
    return step.block.first if step.block else 0


def _steps(block: Block) -> Iterator[Step]:
    is_script = block.language == "sh" and block.title is None
    if is_script:
        yield Step(block, block.text, None)
    if block.language != "console":
        return
    for part in f"\n{block.text}".split("\n$ ")[1:]:
        lines = part.rstrip("\n").split("\n")
        said = 1
        while said < len(lines) and lines[said].startswith("> "):
            said += 1
        command = "\n".join(line.removeprefix("> ") for line in lines[:said])
        yield Step(block, command, "\n".join(lines[said:]).rstrip())


def as_it_went(page: Page, went: Sequence[tuple[Step, Said]]) -> None:
    """Write the output of its commands into a page, unless only times would change.

    A failure is written only where the page has `[exit code ...]` already; a traceback never is.
    """
    broken = [
        (step.command, said.output)
        for step, said in went
        if "Traceback" in said.output or (said.code and "[exit code" not in str(step.said))
    ]
    assert not broken, broken
    if all(step.went_as_shown(said) for step, said in went):
        return
    texts: dict[Block, str] = {}
    for step, said in went:
        if step.said is not None and step.block:
            command = "$ " + step.command.replace("\n", "\n> ")
            lines = [command, str(said)] if str(said) else [command]
            texts[step.block] = texts.get(step.block, "") + "\n".join(lines) + "\n"
    page.replace_blocks(texts)
