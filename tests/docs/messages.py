"""The messages that have a remedy, read from the source code, for the site of the documentation."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from quota_ops.model import errors
from tests.docs.markdown import ROOT

PAGE = "reference/messages.md"
EXIT_CODES = {
    name: error.exit_code
    for name, error in vars(errors).items()
    if isinstance(error, type) and issubclass(error, errors.QuotaOpsError)
}


class Message(NamedTuple):
    """A message, its remedy and the exit code, with … for each value."""

    text: str
    remedy: str
    exit_code: int


def list_messages() -> list[Message]:
    """Return each error that the source code raises with a remedy, by the words of the message."""
    found = {message for path in (ROOT / "quota_ops").rglob("*.py") for message in _read(path)}
    return sorted(found, key=lambda message: message.text.lower().lstrip("… '\"-,.:"))


def add_messages(docs: Path) -> None:
    """Add a section for each message to the page in a copy of docs, so that a search finds it."""
    sections = (
        f"\n## {_escape(message.text)}\n\n{_escape(message.remedy)}\n\n"
        f"[Exit code](exit-codes.md) {message.exit_code}.\n"
        for message in list_messages()
    )
    with (docs / PAGE).open("a", encoding="utf-8") as page:
        page.write("".join(sections))


def _read(path: Path) -> Iterator[Message]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and len(node.args) > 1:
            text, remedy = map(_spell, node.args[:2])
            if text and remedy and node.func.id in EXIT_CODES:
                yield Message(text, remedy, EXIT_CODES[node.func.id])


def _spell(node: ast.expr) -> str | None:
    """Return a text with … for each value in it; None for anything else."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        parts = (part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
        return "".join(map(str, parts))
    return None


def _escape(text: str) -> str:
    for sign in "\\`*_<|[":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())
