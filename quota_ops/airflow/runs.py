"""The run folder of a DAG run: the same for every task and every try, found by its name alone."""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from airflow.dag_processing.bundles.base import get_bundle_storage_root_path
from airflow.sdk import get_current_context

from quota_ops.model.errors import InvalidInput, QuotaOpsError, Unexpected
from quota_ops.store.places.place import Place
from quota_ops.store.places.run_store import ENVIRONMENT, RunStore, find_run_store, named_store

if TYPE_CHECKING:
    from airflow.sdk import Context

    from quota_ops.desired.git.commit import BundleVersion
    from quota_ops.model.plans.approval import Author
    from quota_ops.runs.run import Run
    from quota_ops.store.run.folder import RunFolder


@dataclass(frozen=True, slots=True)
class ClusterFolder:
    """A cluster's folder on this host, as an argument of tasks: Airflow stores only its name.

    Each host has its own checkout, and git-sync gives each commit its own path. With the path
    among its arguments, a DAG would get a new version with each commit.
    """

    path: Path

    @property
    def name(self) -> str:
        """The name of the cluster."""
        return self.path.name

    def __str__(self) -> str:
        """Return the name, which is what Airflow stores and shows."""
        return self.name


def find_store(run_store: str | None) -> RunStore:
    """Return the run store that the DAG file or the environment names.

    Raises InvalidInput if neither names one: a ledger in the home of a worker would be lost.
    """
    if not named_store(run_store):
        raise InvalidInput(
            "no run store is specified, so there is no place for runs and ledgers",
            f"Set {ENVIRONMENT} on every worker, or call build_dags(run_store=...), to one folder "
            "that all workers share.",
        )
    return find_run_store(run_store)


def name_run(context: "Context") -> str:
    """Return the name of a DAG run in the run store: its DAG id and its run id."""
    return f"{context['dag'].dag_id}__{context['run_id']}"


def find_run_place(context: "Context", cluster: ClusterFolder, run_store: str | None) -> Place:
    """Return the place of a DAG run's folder for a cluster; create it if it does not exist."""
    return find_store(run_store).new_run(cluster.name, name_run(context))


def start_folder(
    cluster: ClusterFolder, run_store: str | None, *, reads_files: bool = False
) -> "RunFolder":
    """Return the folder of this DAG run for a cluster; the first task creates it.

    Set `reads_files` for a task that reads the YAML: a cleared run may find it at another commit.
    """
    from quota_ops.store.run.folder import RunFolder

    context = get_current_context()
    place, dag_id = find_run_place(context, cluster, run_store), context["dag"].dag_id
    return RunFolder.start(
        place,
        cluster=cluster.name,
        commit=None,
        redo=reads_files,
        dag_id=dag_id,
        author=_find_author(),
    )


@contextmanager
def open_run(
    cluster: ClusterFolder,
    run_store: str | None,
    allow: Mapping[str, str] | None = None,
    approve: str | None = None,
    *,
    reads_files: bool = False,
    must_know_commit: bool = False,
) -> Iterator["Run"]:
    """Yield this DAG run as the stages take it; the first stage that needs the cluster connects."""
    from quota_ops.airflow.connection import find_connection, find_prometheus
    from quota_ops.runs.run import Run, connect_once

    folder = start_folder(cluster, run_store, reads_files=reads_files).with_cache()
    with connect_once(folder.policy, find_connection) as connect:
        yield Run(
            folder=folder,
            cluster_folder=cluster.path,
            connect=connect,
            find_audit=find_connection,
            find_use=find_prometheus,
            allow=allow or {},
            author=_find_author() if allow else None,
            approve=approve,
            bundle=_find_bundle_version(cluster.path),
            must_know_commit=must_know_commit,
        )


def _find_author() -> "Author":
    """Return the user who triggered this DAG run, as Airflow knows it, and this worker's login."""
    from quota_ops.model.plans.approval import Author, find_login

    run = get_current_context()["dag_run"]
    return Author(getattr(run, "triggering_user_name", None), find_login())


def find_bundle_folder(folder: Path) -> Path | None:
    """Return the folder of the DAG bundle that contains `folder`; None outside all bundles.

    It is in Airflow's `dag_bundle_storage_path` and has the bundle's name. Everything in it comes
    from a commit, and Airflow removes its `.git`.
    """
    # Airflow's function has no types.
    storage = Path(get_bundle_storage_root_path()).absolute()  # type: ignore[no-untyped-call]
    if not (whole := folder.absolute()).is_relative_to(storage):
        return None
    return storage.joinpath(*whole.relative_to(storage).parts[:1])


def _find_bundle_version(folder: Path) -> "BundleVersion | None":
    """Return the version of the DAG bundle that pins this run, if the bundle contains `folder`.

    A Git bundle has a bare repository beside the folders of its versions.
    """
    from quota_ops.desired.git.commit import BundleVersion

    bundle = getattr(get_current_context()["ti"], "bundle_instance", None)
    version = getattr(bundle, "version", None)
    if bundle is None or version is None:
        return None
    root = Path(getattr(bundle, "repo_path", bundle.path)).resolve()
    if not folder.resolve().is_relative_to(root):
        return None
    bare = getattr(bundle, "bare_repo_path", None)
    return BundleVersion(version, root, None if bare is None else Path(bare))


Result = TypeVar("Result")
AT_ONCE = 8
"""How many clusters a task works on at the same time: it mostly waits for brokers or the store."""
_log = logging.getLogger(__name__)


def work_on_each(
    clusters: Sequence[ClusterFolder], work: Callable[[ClusterFolder], Result]
) -> tuple[Mapping[str, Result], Mapping[str, QuotaOpsError]]:
    """Return the results of `work`, and the errors of the other clusters, by the cluster's name.

    Each error is logged with the name of its cluster.
    """

    def work_on(cluster: ClusterFolder) -> Result | QuotaOpsError:
        try:
            return work(cluster)
        except QuotaOpsError as error:
            for line in str(error).splitlines():
                _log.error("%s: %s", cluster.name, line)
            return error
        except Exception as error:  # noqa: BLE001 - a defect costs one cluster too
            _log.exception("%s: %s", cluster.name, type(error).__name__)
            return Unexpected(error)

    results: dict[str, Result] = {}
    errors: dict[str, QuotaOpsError] = {}
    with ThreadPoolExecutor(AT_ONCE) as threads:
        for cluster, result in zip(clusters, threads.map(work_on, clusters), strict=True):
            if isinstance(result, QuotaOpsError):
                errors[cluster.name] = result
            else:
                results[cluster.name] = result
    return results, errors
