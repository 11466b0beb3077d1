"""A folder of desired state, a run store and a connection, on a real broker."""

import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quota_ops.desired.read import read_policy
from quota_ops.kafka.cluster import Cluster, open_cluster
from quota_ops.kafka.connection import Connection
from quota_ops.lab.kafka.broker import RunningBroker
from quota_ops.model.errors import QuotaOpsError
from quota_ops.model.moment import iso_utc
from quota_ops.model.plans import ledger_edits
from quota_ops.model.plans.guard import Guard
from quota_ops.model.plans.ledger_edits import LedgerKey, ledger_key
from quota_ops.model.plans.plan import exact
from quota_ops.model.quotas.rows import LedgerRow
from quota_ops.runs.chain import CHAINS, run_stages
from quota_ops.runs.run import Run
from quota_ops.store.ledger import ledger
from quota_ops.store.places.run_store import ClusterStore, RunStore, open_place
from quota_ops.store.run.files import PLAN
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.order import last_number, runs_latest_first
from tests.calling import call_cli
from tests.looking import seen_in_time
from tests.preloaded import preloaded
from tests.quotas_yaml import quota_entry, to_yaml
from tests.writing import State, empty, write

SMALL_AND_LARGE = {"small_byte_rate": 0, "small_percentage": 0, "raise_factor": 1_000_000}
"""Numbers with which no guard minds the small values that tests set, nor how far they rise."""
EVERY_GUARD = dict.fromkeys((guard.value for guard in Guard), "a test")


@dataclass(frozen=True)
class Lab:
    """The files of one test, and the run store: a folder in `root`, or else `address`."""

    root: Path
    cluster: Cluster
    bootstrap: str
    address: str | None = None

    @property
    def folder(self) -> Path:
        """The cluster's folder of desired state."""
        return self.root / "desired_state" / "demo"

    @property
    def store(self) -> RunStore:
        """The store of the runs and the ledger."""
        return RunStore(open_place(self.address or self.root / "store"))

    @property
    def records(self) -> ClusterStore:
        """Return the ledger, claims, holds and approvals."""
        return self.store.of_cluster(self.cluster.cluster_id)

    @property
    def runs(self) -> list[RunFolder]:
        """The runs on the cluster, oldest first."""
        names = reversed(list(runs_latest_first(self.store.sequence)))
        return [RunFolder(self.store.runs_of("demo") / name.split("/")[1]) for name in names]

    @property
    def connection_file(self) -> Path:
        """The file for the connection name demo."""
        return self.root / "demo.properties"

    def desire(self, state: State, **policy: Any) -> None:
        """Write the state in Git: one quotas file, and further fields of cluster.yaml."""
        self.folder.mkdir(parents=True, exist_ok=True)
        guards = SMALL_AND_LARGE | policy.pop("guards", {})
        cluster = {"cluster_id": self.cluster.cluster_id, "connection": "demo", **policy}
        cluster["guards"] = guards
        quotas = [quota_entry(entity, limits) for entity, limits in state.items() if limits]
        for name, value in (
            ("cluster.yaml", cluster),
            ("team.yaml", {"owner": "team", "quotas": quotas}),
        ):
            (self.folder / name).write_text(to_yaml(value), "utf-8")

    def put(self, state: State) -> None:
        """Set and clear outside Git, and wait until describe shows it."""
        write(self.cluster, state)

    def stored(self) -> State:
        """Return everything that the cluster stores."""
        state: dict[str, dict[str, float | None]] = {}
        for (entity, key), value in self.cluster.describe_values().items():
            state.setdefault(entity, {})[key] = value
        return state

    def wait_for(self, state: State) -> None:
        """Describe until the cluster stores exactly this; an assertion fails after a minute."""
        wanted = _exact(state)
        assert seen_in_time(lambda: _exact(self.stored()), wanted) == wanted

    def note(self, state: State, word: str = ledger_edits.VERIFIED, **columns: Any) -> None:
        """Write rows, and the current policy if there is one, as an earlier run would have."""
        when: dict[str, Any] = {
            "owner": "team",
            "file": "team.yaml",
            "commit": None,
            "run": "earlier",
            "at": iso_utc(),
        }
        if word == ledger_edits.INTENDED:  # of a run that began last, and was killed
            when["sequence"] = last_number(self.store.sequence) + 1

        def edit(rows: dict[LedgerKey, LedgerRow]) -> None:
            for entity, limits in state.items():
                for key, value in limits.items():
                    row = LedgerRow(
                        self.cluster.cluster_id, entity, key, value, word, **when | columns
                    )
                    rows[ledger_key(row)] = row

        said = read_policy(self.folder) if self.folder.exists() else None
        ledger.change(self.records, edit, policy=said)

    def known(self, word: str = ledger_edits.VERIFIED) -> State:
        """Return the ledger's rows of one state: managed values, current intents or clears."""
        rows = ledger.read(self.records).rows
        found: Iterable[LedgerRow] = (row for row in rows if row.state == word)
        if word == ledger_edits.VERIFIED:
            found = (row for row in found if row.value is not None)
        elif word == ledger_edits.INTENDED:
            current = ledger_edits.find_current(rows).values()
            found = (row for row in current if row.state == word)
        state: dict[str, dict[str, float | None]] = {}
        for row in found:
            state.setdefault(row.entity, {})[row.key] = row.value
        return state

    def start(self, **options: Any) -> Run:
        """Return a new run, with every guard overridden."""
        folder = RunFolder.start(self.store.new_run("demo"), cluster="demo", commit=None)
        return self.resume(folder, **options)

    def resume(self, folder: RunFolder, **options: Any) -> Run:
        """Return a run that continues in an earlier folder."""
        defaults: dict[str, Any] = {"cluster_folder": self.folder}
        defaults["allow"] = EVERY_GUARD
        return Run(**{"folder": folder, "connect": lambda: self.cluster, **defaults, **options})

    def run(self, command: str, **options: Any) -> RunFolder:
        """Run a command's stages in a new run folder; their exceptions are raised."""
        run = self.start(**options)
        run_stages(run, CHAINS[command])
        return run.folder

    def planned(self, **options: Any) -> Run:
        """Return an approved plan."""
        folder = self.run("plan")
        return self.resume(folder, approve=folder.read_json(PLAN)["digest"], **options)

    def refused(self, command: str, **options: Any) -> tuple[RunFolder, QuotaOpsError]:
        """Run a command's stages, which must end in an error."""
        run = self.start(**options)
        return run.folder, error_of(run, CHAINS[command])

    def cli(self, *arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        """Run the command line as a process of its own, its output in pipes."""
        return subprocess.run(
            [preloaded(), *arguments],
            env=self.environment | options.pop("environment", {}),
            cwd=self.root,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            **options,
        )

    def call(
        self, *arguments: str, environment: Mapping[str, str] = {}
    ) -> subprocess.CompletedProcess[str]:
        """Run the command line in this process, which saves the second that a process takes."""
        return call_cli(arguments, {**self.environment, **environment}, self.root)

    @property
    def environment(self) -> dict[str, str]:
        """Return the environment of a process that finds this lab and nothing of the user's."""
        return {name: value for name, value in os.environ.items() if not _is_ours(name)} | {
            "HOME": str(self.root),
            "PYTHONPATH": str(Path(__file__).parents[1]),
            # kafka-python reads schemas by a function that Python 3.11 and 3.12 call deprecated.
            "PYTHONWARNINGS": "error,ignore::DeprecationWarning",
            "QUOTA_OPS_DESIRED_STATE": str(self.folder.parent),
            "QUOTA_OPS_RUN_STORE": str(self.store.root),
            "QUOTA_OPS_CONNECTION_DEMO": str(self.connection_file),
        }


def error_of(run: Run, stages: tuple[str, ...]) -> QuotaOpsError:
    """Return the error of the stages; an assertion fails when there is none."""
    try:
        run_stages(run, stages)
    except QuotaOpsError as error:
        return error
    raise AssertionError(f"{stages} ended well")


@contextmanager
def open_lab(broker: RunningBroker, root: Path, timeout: float = 30.0) -> Iterator[Lab]:
    """Open a lab on a broker; at the end its quotas are cleared, with patience."""
    text = f"bootstrap.servers={broker.bootstrap()}\n"
    connection = Connection.parse(text, name="demo", source="a test")
    with open_cluster(connection, cluster_id=None, timeout=timeout) as cluster:
        lab = Lab(root, cluster, broker.bootstrap())
        lab.connection_file.write_text(text, "ascii")
        try:
            yield lab
        finally:
            # Brokers that calls were not to wait for may have been frozen a moment ago.
            with open_lab(broker, root) if timeout < 30.0 else nullcontext(lab) as lab:
                empty(lab.cluster)


def _exact(state: State) -> set[tuple[str, str, str]]:
    """Return the rows with values that equal themselves, NaN too."""
    return {(one, key, exact(value)) for one, keys in state.items() for key, value in keys.items()}


def _is_ours(name: str) -> bool:
    return name.startswith("QUOTA_OPS_") or name in {"XDG_CONFIG_HOME", "XDG_STATE_HOME"}
