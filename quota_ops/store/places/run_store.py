"""The run store: all runs and ledgers, outside every checkout; only `prune` removes runs.

docs/reference/run-store.md lists its folders.
"""

import os
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from os import PathLike
from typing import NamedTuple
from uuid import uuid4

from msgspec import Struct

from quota_ops.model.errors import InvalidInput
from quota_ops.model.text import command
from quota_ops.store.places.local import LocalPlace, find_key
from quota_ops.store.places.place import Place

_SCHEMES = ("s3", "gs", "az", "abfs", "abfss")

ENVIRONMENT = "QUOTA_OPS_RUN_STORE"
_FOLDERS = frozenset(
    {"runs", "ledger", "approvals", "holds", "claims", "at_work", "history", "fleet", "use"}
)
"""The folders of a run store in whose folders a person may look."""
_UNSAFE = re.compile(r"[^A-Za-z0-9_.+-]+")
_LONGEST_NAME, _LONGEST_DAG_ID = 100, 25
"""With digests and the name of a draft, no file name is longer than a local folder takes, 255."""


class ClusterStore(Struct, frozen=True):
    """What a run store has of one cluster id, besides runs: each folder is named by the id."""

    root: Place
    name: str
    """The name of the folders: `safe_name` of the cluster id."""

    @property
    def ledger(self) -> Place:
        """The folder of the managed rows."""
        return self.root / "ledger" / self.name

    @property
    def ledger_end(self) -> Place:
        """The file that names the newest file of the ledger, outside its folder."""
        return self.root / "ledger_ends" / self.name

    @property
    def claims(self) -> Place:
        """The folder of the runs that have begun to apply."""
        return self.root / "claims" / self.name

    @property
    def approvals(self) -> Place:
        """The folder of the decisions about plans."""
        return self.root / "approvals" / self.name

    @property
    def holds(self) -> Place:
        """The folder of the holds."""
        return self.root / "holds" / self.name

    @property
    def digests(self) -> Place:
        """The folder of the recorded days of use."""
        return self.root / "use" / self.name


class RunStore(Struct, frozen=True):
    """A place for runs and ledgers."""

    root: Place

    def new_run(self, cluster: str, run: str | None = None) -> Place:
        """Return the folder of a new run, or that of the run with this name.

        `run` may be any text, for example Airflow's run id: see `safe_name`. Raises InvalidInput
        as `prepare`.
        """
        self.prepare()
        return self.runs_of(cluster) / (safe_name(run) if run else name_run())

    def prepare(self) -> None:
        """Raise InvalidInput if this process cannot write here, or two writers could both win."""
        try:
            self.root.prepare()
        except InvalidInput as error:
            usual = f"Set --run-store or {ENVIRONMENT} to the run store that all runs use."
            raise type(error)(f"the run store {error.message}", error.remedy or usual) from error
        if self.failed_race.exists():
            raise InvalidInput(
                f"the run store {self.root} is not safe to write to: in a test by quota-ops ping, "
                "several writers created the same file",
                "Move the run store elsewhere. If the store was repaired, test it again: "
                f"{command('ping', run_store=self.root)}",
            )

    @property
    def failed_race(self) -> Place:
        """The file that `quota-ops ping` leaves in a store that lets two writers win."""
        return self.root / "failed_race.json"

    def runs_of(self, cluster: str) -> Place:
        """Return the folder of a cluster's runs."""
        return self.root / "runs" / safe_name(cluster)

    def runs(self, cluster: str | None = None) -> tuple[Place, ...]:
        """Return the folders of all runs, or of one cluster's, by cluster and name.

        Raises InvalidInput if the store has no run of that cluster or cannot be listed.
        """
        clusters = (self.root / "runs").folders()
        wanted = None if cluster is None else safe_name(cluster)
        with ThreadPoolExecutor() as pool:  # a listing of an object store takes a while
            of_each = pool.map(
                Place.folders, (cluster for cluster in clusters if wanted in {None, cluster.name})
            )
            found = [run for runs in of_each for run in runs]
        if cluster and not found:
            names = ", ".join(cluster.name for cluster in clusters)
            raise InvalidInput(
                f"the run store {self.root} has no run of a cluster {cluster!r}",
                f"It has runs of: {names or 'none'}.",
            )
        return tuple(found)

    @property
    def sequence(self) -> Place:
        """The folder of the numbers of runs."""
        return self.root / "sequence"

    @property
    def history(self) -> Place:
        """The folder of the history of all clusters."""
        return self.root / "history"

    @property
    def overviews(self) -> Place:
        """The folder of the overviews of all clusters that drift runs write."""
        return self.root / "fleet"

    @property
    def newest_overviews(self) -> Place:
        """The folder of files that name the newest overview of each drift DAG."""
        return self.root / "newest_fleet"

    def newest_run(self, cluster: str, cluster_id: str, dag_id: str | None) -> Place:
        """Return the file that points to a cluster's newest report, by a DAG or without one."""
        of_dag = [safe_name(dag_id, _LONGEST_DAG_ID)] if dag_id else []
        parts = (safe_name(cluster), safe_name(cluster_id), *of_dag)
        return self.root / "newest_runs" / "@".join(parts)

    def list_names(self) -> set[tuple[str, str]]:
        """Return the folder of runs of each cluster name, with each cluster id that its runs read.

        Raises InvalidInput like `Place.list`.
        """
        parts = (name.split("@") for name in (self.root / "newest_runs").list())
        return {(name, cluster_id) for name, cluster_id, *_ in parts}

    def overview(self, run: str) -> Place:
        """Return the folder of a drift run's overview; `run` as in `new_run`."""
        return self.overviews / safe_name(run)

    def of_cluster(self, cluster_id: str) -> ClusterStore:
        """Return what the store has of a cluster id."""
        return ClusterStore(self.root, safe_name(cluster_id))

    def with_ledgers(self) -> tuple[ClusterStore, ...]:
        """Return each cluster id that has a ledger.

        Raises InvalidInput if they cannot be listed.
        """
        names = (folder.name for folder in (self.root / "ledger").folders())
        return tuple(ClusterStore(self.root, name) for name in names)


def open_place(address: str | PathLike[str]) -> Place:
    """Return the place of an address: a path (absolute, relative, or from `~`) or s3://BUCKET/KEY.

    Raises InvalidInput if it is neither, or if the library for object stores is not installed.
    """
    found = parse_address(str(address))
    if found is None:
        return LocalPlace(find_key(address))
    from quota_ops.store.places.object_client import open_client  # for buckets only
    from quota_ops.store.places.objects import ObjectPlace  # as above

    open_client(found.bucket)
    return ObjectPlace(found.key, found.bucket)


def named_store(place: str | None) -> str | None:
    """Return the address in an option, or else in the environment; None if neither has one."""
    return place or os.environ.get(ENVIRONMENT) or None


def find_run_store(place: str | None = None) -> RunStore:
    """Return the run store in an option, in the environment, or else in the user's own folder.

    Raises InvalidInput for a place inside a Git checkout, where a clean-up could delete it, for one
    inside another run store, and as `open_place`.
    """
    return _open_store(open_place(named_store(place) or _usual()))


def _open_store(root: Place) -> RunStore:
    if checkout := root.find_checkout():
        raise InvalidInput(
            f"the run store {root} is inside the Git checkout {checkout}",
            "Runs and ledgers must outlive a checkout: choose a folder elsewhere, "
            f"with --run-store or {ENVIRONMENT}.",
        )
    if outer := find_outer_store(root):
        raise InvalidInput(
            f"the run store {root} is inside the run store {outer}",
            f"Pass the run store itself, with --run-store or {ENVIRONMENT}: {outer}",
        )
    root.watch()
    return RunStore(root)


def find_outer_store(place: Place) -> Place | None:
    """Return the run store that contains a place; None if none does."""
    above = place
    while above.key:
        name, above = above.name, above.parent
        if name in _FOLDERS:
            with suppress(InvalidInput):  # these credentials cannot list what is above
                if (above / "sequence").list():
                    return above
    return None


def store_of(run: Place, named: str | None = None) -> RunStore:
    """Return the run store of a run's folder, with the run's ledger, approvals and holds.

    Raises InvalidInput if the folder is in none, for example a copy, or not in `named`.
    """
    runs = run.parent.parent
    if runs.name != "runs":
        raise InvalidInput(
            f"{run} is not in a run store, which has the ledger, approvals and holds of a run",
            "quota-ops show reads it. For other commands, make a plan without --out, or pass a run "
            "that quota-ops runs lists.",
        )
    store = _open_store(runs.parent)
    if named and (other := find_run_store(named)).root.resolved() != store.root.resolved():
        raise InvalidInput(
            f"{run} is in the run store {store.root}, but --run-store or {ENVIRONMENT} names "
            f"{other.root}",
            "Holds, approvals and the ledger of another run store would not count. Pass a run of "
            f"this one, or --run-store {store.root} if that is the one that all runs use.",
        )
    return store


def _usual() -> PathLike[str]:
    from platformdirs import user_state_path  # only where no place was named

    return user_state_path("quota-ops") / "store"


def safe_name(name: str, longest: int = _LONGEST_NAME) -> str:
    """Return a folder name that is unique for a text: `a:b` becomes `a~3Ab`, `a_b` stays.

    Each UTF-8 byte that is not an ASCII letter, a digit or one of `_.+-` becomes `~` and two hex
    digits. A name that is longer than `longest` is cut, and ends with 128 bits of its SHA-256.
    """
    safe = _UNSAFE.sub(_escaped, name) if name.strip(".") else "~2E" * len(name) or "~"
    if len(safe) <= longest:
        return safe
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    return f"{safe[:longest]}~~{digest}"


def _escaped(found: re.Match[str]) -> str:
    return "".join(f"~{byte:02X}" for byte in found[0].encode("utf-8", "surrogatepass"))


def name_run() -> str:
    """Return a new name of a run: when it began, and a random part."""
    return f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%SZ}-{uuid4().hex[:4]}"


class Address(NamedTuple):
    """A bucket and the key of a place in it, which is empty for the whole bucket."""

    bucket: str
    """With its scheme, `s3://bucket`."""
    key: str


def parse_address(text: str) -> Address | None:
    """Return the address in a text; None for a path.

    Raises InvalidInput if it is neither. The error does not repeat text that may be a secret.
    """
    scheme, is_address, rest = text.partition("://")
    if not is_address:
        if scheme.partition(":/")[0] in _SCHEMES and ":/" in scheme:
            raise InvalidInput(
                f"{scheme} is neither a folder nor the address of a run store",
                "An address has two slashes after the colon, for example s3://BUCKET/PREFIX.",
            )
        return None
    bucket, _, key = rest.rstrip("/").partition("/")
    if scheme not in _SCHEMES:
        raise InvalidInput(
            f"{scheme}:// is not the address of a run store",
            f"Use a local folder, or an address that begins with {', '.join(_SCHEMES)}.",
        )
    if why := _find_mistake(bucket, key):
        form = (
            f"the run store address {scheme}://... does not have the form {scheme}://BUCKET/PREFIX"
        )
        raise InvalidInput(
            f"{form}: {why}",
            "Use a bucket and the names of folders. Credentials belong in the environment.",
        )
    return Address(f"{scheme}://{bucket}", key)


def _find_mistake(bucket: str, key: str) -> str | None:
    names = key.split("/") if key else []
    if not bucket:
        return "it has no bucket"
    if ":" in bucket:
        return "there is a colon in the name of the bucket"
    if not key.isprintable():
        return "it contains a control character"
    if "" in names:
        return "there are two slashes in a row"
    return "a folder cannot be named . or .." if {".", ".."} & {*names} else None
