"""Who ran a command that has no plan: `alter`, `adopt` or `release`."""

from typing import Any

from quota_ops.model.errors import InvalidInput
from quota_ops.store.run_folder import ADOPTED, ALTER, RELEASED, RunFolder
from quota_ops.store.run_json import typed


def read_author(folder: RunFolder) -> str | None:
    """Return who ran it; None for a run with a plan, and where the record is damaged."""
    for name in (ALTER, ADOPTED, RELEASED):
        if folder.has(name):
            try:
                return folder.read_as(name, _by)
            except InvalidInput:
                return None
    return None


def _by(values: dict[str, Any]) -> str | None:
    author: str | None = typed(values.get("by"), str | None)
    return author
