"""The commands of a page: as it shows them, and as they went."""

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import yaml

from tests.docs.markdown import ROOT, Block, Page
from tests.docs.shell import Said, without_moment

UPDATE = os.environ.get("UPDATE_DOCS") == "1"
"""Whether pages are written anew rather than compared."""

NOT_RUN: dict[str, str] = yaml.safe_load((ROOT / "tests/cases/docs/not_run.yaml").read_text())
"""Why a block of commands is not run here, by its first line."""


class Step(NamedTuple):
    """A command, and what the page says that it says; None where the page only gives it."""

    block: Block
    command: str
    said: str | None

    def went_as_shown(self, said: Said) -> bool:
        """Whether the command ended well, or just as the page shows."""
        if self.said is None:
            return said.code == 0
        return without_moment(self.said) == without_moment(str(said))


def steps(page: Page) -> list[Step]:
    """The commands of a page in order, less the blocks in NOT_RUN."""
    return [step for block in page.blocks() for step in _steps(block)]


def first_line(block: Block) -> str:
    """By what a block of commands is known."""
    return block.text.partition("\n")[0]


def _steps(block: Block) -> Iterator[Step]:
    is_script = block.language == "sh" and block.title is None
    if is_script and first_line(block) not in NOT_RUN:
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
    """Write into a page what its commands said; not where only times would change.

    A failure is written only where the page says `[exit code ...]` already, and no traceback ever.
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
        if step.said is not None:
            command = "$ " + step.command.replace("\n", "\n> ")
            lines = [command, str(said)] if str(said) else [command]
            texts[step.block] = texts.get(step.block, "") + "\n".join(lines) + "\n"
    page.replace_blocks(texts)
