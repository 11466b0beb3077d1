"""Places of a run store as files on this machine, for tests that look from outside."""

from pathlib import Path

from quota_ops.store.place import Place
from quota_ops.store.run_folder import RunFolder


def on_disk(kept: RunFolder | Place) -> Path:
    """Return the path of a run's folder, or of any place, in a local store."""
    return Path(str(kept.place if isinstance(kept, RunFolder) else kept))
