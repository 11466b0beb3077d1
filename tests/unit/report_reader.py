"""Parse a page as a browser does: its elements and their text."""

from collections import Counter
from html.parser import HTMLParser


class Page(HTMLParser):
    """The elements of a page with the names of their attributes, and the text of each element."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.elements: Counter[tuple[str, ...]] = Counter()
        self.texts: list[tuple[str, str]] = []
        self._open: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Count the element."""
        self.elements[tag, *(name for name, _ in attrs)] += 1
        if tag not in {"meta", "link", "input"}:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close the element; the templates close each that they open."""
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Keep the text outside style and script."""
        if data.strip() and self._open[-1] not in {"style", "script"}:
            self.texts.append((self._open[-1], " ".join(data.split())))

    def said(self, *tags: str) -> list[str]:
        """Return the texts of the named elements, in order."""
        return [text for tag, text in self.texts if tag in tags]
