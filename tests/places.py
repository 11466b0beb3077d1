"""Places of a run store as files on this machine, for tests that look from outside."""

from pathlib import Path

from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import RunStore
from quota_ops.store.run.files import find_pruned
from quota_ops.store.run.folder import RunFolder


def on_disk(kept: RunFolder | Place) -> Path:
    """Return the path of a run's folder, or of any place, in a local store."""
    return Path(str(kept.place if isinstance(kept, RunFolder) else kept))


def delete_all(folder: Place) -> None:
    """Delete every file below a folder of a run store."""
    for file in folder.walk():
        folder.below(file.path).delete()


def copy_all(folder: Place, to: Place) -> None:
    """Copy every file below a folder of a run store to another, which has none of them."""
    for file in folder.walk():
        assert to.below(file.path).create(folder.below(file.path).read())


def list_undeclared_files(store: RunStore) -> list[str]:
    """Return the paths below the folders of runs that no run is declared to write."""
    leaves = (leaf for run in store.runs() for leaf in run.walk() if not leaf.is_folder)
    return [leaf.path for leaf in leaves if not find_pruned(leaf.path)]
