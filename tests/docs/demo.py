"""The page that shows what the demo prints.

    quota-ops demo | python -m tests.docs.demo

writes the page's steps again, from a run that has just ended.
"""

import re
import sys

from tests.docs.markdown import ROOT, Block, Page

DEMO = Page(ROOT / "docs" / "tutorial" / "demo.md")
SHOWN = ("What would change now?",)
"""The titles of the steps that the page shows."""

_HEADING = re.compile(r"^(\d+)/(\d+)  (.*)$", re.MULTILINE)


def headings(text: str) -> dict[str, tuple[str, str]]:
    """Return the title of each step in a transcript of the demo, its number and the total."""
    return {match[3]: (match[1], match[2]) for match in _HEADING.finditer(text)}


def shown_block() -> Block:
    """Return the first block of the page that has headings of steps."""
    return next(block for block in DEMO.blocks() if _HEADING.search(block.text))


def main() -> None:
    """Write the shown steps of a transcript on standard input into the page."""
    transcript = sys.stdin.read()
    starts = {match[3]: match.start() for match in _HEADING.finditer(transcript)}
    ends = [*starts.values(), len(transcript)]
    parts = (transcript[starts[one] : min(it for it in ends if it > starts[one])] for one in SHOWN)
    text = "\n\n".join(part.rstrip() for part in parts)
    DEMO.replace_blocks({shown_block(): f"$ quota-ops demo\n{text}\n"})


if __name__ == "__main__":
    main()
