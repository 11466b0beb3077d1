"""The inventory of a cluster's clients in cluster.yaml, and its files if they are in Git."""

from quota_ops.desired.yaml.checkout import Folder, Kind
from quota_ops.desired.yaml.source import Problems, not_opened

MAX_INVENTORY_BYTES = 256 * 2**20
"""The largest file of an inventory in Git: millions of clients. Engines limit what they decode."""


def list_inventory_files(folder: Folder, inventory: str) -> tuple[str, ...]:
    """List the files of an inventory below a cluster's folder: a file, or the files in a folder.

    OSError if it does not exist or has a link.
    """
    try:
        entries = folder.entries(inventory)
    except NotADirectoryError:
        return (inventory,)
    below = [(entry, f"{inventory}/{entry.name}") for entry in entries]
    inner = [name for entry, name in below if entry.kind is Kind.FOLDER]
    files = [name for entry, name in below if entry.kind is not Kind.FOLDER]
    return (*files, *(file for name in inner for file in list_inventory_files(folder, name)))


def read_inventory_files(folder: Folder, inventory: str, problems: Problems) -> dict[str, bytes]:
    """Read the files of an inventory in Git, which are part of the commit like all others."""
    try:
        names = list_inventory_files(folder, inventory)
        return {name: folder.read(name, MAX_INVENTORY_BYTES) for name in names}
    except OSError as error:
        problems.add(not_opened(error, str(folder.path / inventory), "inventory"))
        return {}
