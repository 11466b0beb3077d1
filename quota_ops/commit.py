"""Which commit a desired state is of."""

import subprocess
from pathlib import Path


def find_commit(folder: Path) -> str | None:
    """The commit of the Git checkout that a folder lies in; None when there is none, or no Git."""
    try:
        found = subprocess.run(
            ["git", "-C", str(folder), "rev-parse", "HEAD"],  # noqa: S607 - the user's own git
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return found.stdout.strip() or None
