"""What a run store need not keep any longer."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Expired:
    """Something that need not be kept: what it is, where, its bytes, and what of it stays."""

    what: str
    """`run`, `overview`, `ledger` or `claim`."""
    cluster: str
    path: Path
    size: int
    stays: bool
    """Whether its folder stays with the records of how it ended, and the rest goes."""
    unknown: tuple[Path, ...] = ()
    """Files and folders in it that no run recorded; they stay."""
