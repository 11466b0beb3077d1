"""Places of a run store as a test looks at them from outside: as files on this machine."""

from pathlib import Path

from quota_ops.store.place import Place
from quota_ops.store.run_folder import RunFolder


def on_disk(kept: RunFolder | Place) -> Path:
    """The path of a run's folder, or of any place, in a local store."""
    return Path(str(kept.place if isinstance(kept, RunFolder) else kept))
