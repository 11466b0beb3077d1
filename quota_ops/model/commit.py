"""What a run was made from, in a word: a commit of Git, or the run that it rolls back."""

_ROLLBACK = "rollback of "


def rollback_of(run: str) -> str:
    """What stands in a commit's place for a run that rolls back another."""
    return f"{_ROLLBACK}{run}"


def short(commit: str) -> str:
    """The first seven characters of a commit, as Git shows it; a rollback by its whole name."""
    return commit if commit.startswith(_ROLLBACK) else commit[:7]


def named(commit: str) -> str:
    """`commit a1b2c3d`, or a rollback by its name."""
    return commit if commit.startswith(_ROLLBACK) else f"commit {short(commit)}"
