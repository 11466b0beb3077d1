"""A page of the documentation: its blocks, links and generated sections."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
_TITLE = re.compile(r'title="([^"]*)"')
_COMMENT = re.compile(r"<!--(?! generated: [a-z-]+ -->| end -->).*?-->", re.DOTALL)
_GENERATED = re.compile(r"(<!-- generated: ([a-z-]+) -->\n).*?(<!-- end -->\n)", re.DOTALL)


class Block(NamedTuple):
    """A fenced block: its language, the file that it shows, its text and the text's lines."""

    language: str
    title: str | None
    text: str
    first: int
    last: int


@dataclass(frozen=True)
class Page:
    """A Markdown file; every property reads it again, for a test may write it."""

    path: Path

    @property
    def name(self) -> str:
        """Return the path relative to the repository."""
        return self.path.relative_to(ROOT).as_posix()

    @property
    def text(self) -> str:
        """The file's text."""
        return self.path.read_text(encoding="utf-8")

    def blocks(self) -> tuple[Block, ...]:
        """The fenced blocks in order."""
        return _blocks(self.text)

    def comments(self) -> list[str]:
        """Return the comments of the page, without the marks of generated sections."""
        return _COMMENT.findall(self.text)

    def links(self) -> list[str]:
        """Return the targets of links and pictures."""
        return [
            str(child.attrs["href" if child.type == "link_open" else "src"])
            for child in self._inline()
            if child.type in {"link_open", "image"}
        ]

    def code(self) -> list[str]:
        """The texts in backticks."""
        return [child.content for child in self._inline() if child.type == "code_inline"]

    def anchors(self) -> set[str]:
        """Return the anchors of the page's headings, as GitHub makes them."""
        tokens = MarkdownIt().parse(self.text)
        headings = (
            tokens[number + 1].content
            for number, token in enumerate(tokens)
            if token.type == "heading_open"
        )
        return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}

    def replace_blocks(self, texts: dict[Block, str]) -> None:
        """Replace the texts of blocks."""
        lines = self.text.splitlines(keepends=True)
        for block in sorted(texts, key=lambda one: one.first, reverse=True):
            lines[block.first : block.last] = [texts[block]]
        self.path.write_text("".join(lines), encoding="utf-8")

    def sections(self) -> dict[str, str]:
        """Return the generated sections by name."""
        return {match[2]: match[0] for match in _GENERATED.finditer(self.text)}

    def replace_section(self, name: str, content: str) -> str:
        """Return the page with another content of a generated section."""

        def section(match: re.Match[str]) -> str:
            return match[1] + content + match[3] if match[2] == name else match[0]

        return _GENERATED.sub(section, self.text)

    def _inline(self) -> Iterator[Token]:
        for token in MarkdownIt().enable("table").parse(self.text):
            yield from token.children or ()


@cache
def _blocks(text: str) -> tuple[Block, ...]:
    fences = [token for token in MarkdownIt().parse(text) if token.type == "fence"]
    return tuple(_read_block(fence) for fence in fences)


def _read_block(fence: Token) -> Block:
    first, last = fence.map or (0, 0)
    title = _TITLE.search(fence.info)
    language = fence.info.split()[0] if fence.info else ""
    return Block(language, title[1] if title else None, fence.content, first + 1, last - 1)
