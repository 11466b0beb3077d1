"""The DAG bundle that a folder is in: what Airflow downloads, and of which it removes `.git`."""

from pathlib import Path

from airflow.dag_processing.bundles.base import get_bundle_storage_root_path


def find_bundle_folder(folder: Path) -> Path | None:
    """Return the bundle's folder, from which on a commit decides; None outside all bundles.

    The folder of a bundle is in Airflow's `dag_bundle_storage_path` and has the bundle's name.
    """
    # Airflow's function has no types.
    storage = Path(get_bundle_storage_root_path()).absolute()  # type: ignore[no-untyped-call]
    if not (whole := folder.absolute()).is_relative_to(storage):
        return None
    return storage.joinpath(*whole.relative_to(storage).parts[:1])
