"""Which commit a desired state is of."""

import subprocess
from pathlib import Path

_STATUS = (
    *("--no-optional-locks", "status", "--porcelain=v2", "--branch", "--no-ahead-behind"),
    *("--no-renames", "--untracked-files=all", "--ignored", "--", "*.yaml", "*.yml"),
)
_COMMIT = "# branch.oid "
_NONE_YET = "(initial)"


def find_commit(folder: Path) -> str | None:
    """The commit of the Git checkout that holds a folder's YAML as it is now; None without Git.

    None too where a file is changed, untracked or ignored: no commit is what will be read.
    """
    try:
        status = subprocess.run(
            ["git", "-C", str(folder), *_STATUS],  # noqa: S607 - the user's own git
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    lines = status.stdout.splitlines()
    if status.returncode or any(not line.startswith("#") for line in lines):
        return None
    commits = (line.removeprefix(_COMMIT) for line in lines if line.startswith(_COMMIT))
    return next((commit for commit in commits if commit != _NONE_YET), None)
