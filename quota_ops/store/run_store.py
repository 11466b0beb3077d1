"""Where runs and ledgers live: outside every checkout; only `prune` removes anything from it.

ROOT/runs/CLUSTER/RUN/      one run's artefacts
ROOT/fleet/RUN/             a drift run's overview of all clusters
ROOT/ledger/CLUSTER_ID/     the rows that are ours, as numbered files
ROOT/ledger_ends/CLUSTER_ID  the name of the file that its ledger ended with
ROOT/claims/CLUSTER_ID/     which runs have begun to apply, a file each, by their numbers
ROOT/at_work/CLUSTER/RUN    the mark of a run that writes, or died while it wrote
ROOT/approvals/CLUSTER_ID/  what people said of plans, a file each, by digest
ROOT/holds/CLUSTER_ID/      who held what until when, as numbered files
ROOT/sequence/              the number of each run, in the order in which they began
"""

import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from os import PathLike
from uuid import uuid4

from quota_ops.model.errors import InvalidInput
from quota_ops.store.local import LocalStore, find_key
from quota_ops.store.place import Place

ENVIRONMENT = "QUOTA_OPS_RUN_STORE"
_UNSAFE = re.compile(r"[^A-Za-z0-9_.+-]+")
_LONGEST_NAME = 150


@dataclass(frozen=True, slots=True)
class RunStore:
    """A folder for runs and ledgers; private to whom it belongs."""

    root: Place

    def new_run(self, cluster: str, run: str | None = None) -> Place:
        """Make the folder of a run; given the name of an earlier one, that run's folder again.

        `run` may be any text, such as Airflow's run id: see `safe_name`.
        """
        folder = self.runs_of(cluster) / (safe_name(run) if run else _run_name())
        try:
            self.root.prepare()
        except InvalidInput as error:
            raise InvalidInput(
                f"the run store {error.message}",
                f"By --run-store or {ENVIRONMENT}, name the folder that all runs use.",
            ) from error
        folder.prepare()
        return folder

    def runs_of(self, cluster: str) -> Place:
        """The folder of a cluster's runs."""
        return self.root / "runs" / safe_name(cluster)

    def runs(self, cluster: str | None = None) -> tuple[Place, ...]:
        """The folders of all runs, or of one cluster's, by cluster and name.

        Raises InvalidInput when the store has no run of that cluster, or cannot be listed.
        """
        clusters = (self.root / "runs").folders()
        wanted = None if cluster is None else safe_name(cluster)
        found = [run for one in clusters if wanted in {None, one.name} for run in one.folders()]
        if cluster and not found:
            names = ", ".join(one.name for one in clusters)
            raise InvalidInput(
                f"the run store {self.root} has no run of a cluster {cluster!r}",
                f"It has runs of: {names or 'none'}.",
            )
        return tuple(found)

    @property
    def sequence(self) -> Place:
        """The folder of the numbers that runs have taken."""
        return self.root / "sequence"

    @property
    def overviews(self) -> Place:
        """The folder of the overviews that drift runs leave, of all clusters."""
        return self.root / "fleet"

    def overview(self, run: str) -> Place:
        """The folder of a drift run's overview of all clusters; `run` as `new_run` takes it."""
        return self.overviews / safe_name(run)

    def ledgers(self) -> tuple[Place, ...]:
        """The folders of all ledgers; InvalidInput when they cannot be listed."""
        return (self.root / "ledger").folders()

    def ledger(self, cluster_id: str) -> Place:
        """The folder of a cluster's ledger."""
        return self.root / "ledger" / safe_name(cluster_id)

    def approvals(self, cluster_id: str) -> Place:
        """The folder of what people said of a cluster's plans."""
        return self.root / "approvals" / safe_name(cluster_id)

    def holds(self, cluster_id: str) -> Place:
        """The folder of a cluster's holds."""
        return self.root / "holds" / safe_name(cluster_id)


def open_place(address: str | PathLike[str]) -> Place:
    """Return the place of an address: a local path, from the root, from here or from `~`."""
    return Place(LocalStore(), find_key(address))


def named_store(place: str | None = None) -> str | None:
    """The address that an option or else the environment gives; None where neither does."""
    return place or os.environ.get(ENVIRONMENT) or None


def find_run_store(place: str | None = None) -> RunStore:
    """The run store that an option, the environment or the user's own folder names, in this order.

    Raises InvalidInput for a place inside a Git checkout, where a clean-up could take it away, and
    for an address, which would be made a folder of that name.
    """
    named = named_store(place)
    if named and "://" in named:
        raise InvalidInput(
            f"the run store {named} is an address",
            f"Give a local folder, by --run-store or {ENVIRONMENT}: object stores are not offered.",
        )
    return _open_store(open_place(named or _usual()))


def _open_store(root: Place) -> RunStore:
    if checkout := root.find_checkout():
        raise InvalidInput(
            f"the run store {root} lies inside the Git checkout {checkout}",
            "Runs and ledgers must outlive a checkout: give a folder elsewhere, "
            f"by --run-store or {ENVIRONMENT}.",
        )
    return RunStore(root)


def store_of(run: Place, named: str | None = None) -> RunStore:
    """The run store that a run's folder lies in, whose ledger, approvals and holds are the run's.

    Raises InvalidInput when it lies in none, as a copy does, or in another one than `named`.
    """
    runs = run.parent.parent
    if runs.name != "runs":
        raise InvalidInput(
            f"{run} lies in no run store, where the ledger, approvals and holds of its run are",
            "Name the run as `quota-ops runs` lists it; a copy can be read by quota-ops show.",
        )
    store = _open_store(runs.parent)
    if named and (other := find_run_store(named)).root.resolved() != store.root.resolved():
        raise InvalidInput(
            f"{run} lies in the run store {store.root}, and --run-store names {other.root}",
            "Leave out --run-store.",
        )
    return store


def _usual() -> PathLike[str]:
    from platformdirs import user_state_path  # noqa: PLC0415 - only where no place was named

    return user_state_path("quota-ops") / "store"


def safe_name(name: str) -> str:
    """The name of the folder that any text has to itself: `a:b` is `a~3Ab`, and `a_b` stays.

    Each byte of UTF-8 that is no letter, digit or one of `_.+-` is written as `~` and two hex
    digits. Of a name too long for a folder the beginning is kept, and 128 bits of its SHA-256.
    """
    safe = _UNSAFE.sub(_escaped, name) if name.strip(".") else "~2E" * len(name) or "~"
    if len(safe) <= _LONGEST_NAME:
        return safe
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"{safe[:_LONGEST_NAME]}~~{digest}"


def _escaped(found: re.Match[str]) -> str:
    return "".join(f"~{byte:02X}" for byte in found[0].encode("utf-8", "surrogatepass"))


def _run_name() -> str:
    return f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%SZ}-{uuid4().hex[:4]}"
