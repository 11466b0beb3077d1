"""The run folder of a DAG run: the same for every task and every try, found by name alone."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from airflow.sdk import get_current_context

from quota_ops.model.errors import InvalidInput
from quota_ops.store.place import Place
from quota_ops.store.run_store import ENVIRONMENT, RunStore, find_run_store, named_store

if TYPE_CHECKING:
    from airflow.sdk import Context

    from quota_ops.desired.git.commit import BundleVersion
    from quota_ops.model.approval import Author
    from quota_ops.runs.run import Run
    from quota_ops.store.run_folder import RunFolder


def store_of(run_store: str | None) -> RunStore:
    """The run store that the DAG file or the environment names.

    Raises InvalidInput when neither does: a worker's home is no place for a ledger.
    """
    if not named_store(run_store):
        raise InvalidInput(
            "no run store is named, so there is no place for runs and ledgers",
            f"Set {ENVIRONMENT} on every worker, or give build_dags(run_store=...): one folder "
            "that all workers share.",
        )
    return find_run_store(run_store)


def run_name(context: "Context") -> str:
    """The name of a DAG run for the run store, of DAG and run id."""
    return f"{context['dag'].dag_id}__{context['run_id']}"


def run_folder(cluster_folder: str, run_store: str | None, *, anew: bool = False) -> "RunFolder":
    """The folder of this DAG run for a cluster, made by whichever task comes first.

    `anew` where the YAML is read: a run that was cleared may find it at another commit.
    """
    from quota_ops.store.run_folder import RunFolder

    place = run_place(get_current_context(), cluster_folder, run_store)
    return RunFolder.start(place, cluster=Path(cluster_folder).name, commit=None, anew=anew)


def run_place(context: "Context", cluster_folder: str, run_store: str | None) -> Place:
    """Where the folder of a DAG run for a cluster is, which is made if it is not there."""
    return store_of(run_store).new_run(Path(cluster_folder).name, run_name(context))


def _bundle(folder: Path) -> "BundleVersion | None":
    """The version of the DAG bundle that this run is pinned to, if the folder is in the bundle.

    A Git bundle has a bare repository beside its versions, whose own `.git` it removes.
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


def _author() -> "Author":
    """Who triggered this DAG run, as Airflow knows it, and the login of this worker."""
    from quota_ops.model.approval import Author, find_login

    run = get_current_context()["dag_run"]
    return Author(getattr(run, "triggering_user_name", None), find_login())


@contextmanager
def this_run(
    cluster_folder: str,
    run_store: str | None,
    allow: Mapping[str, str] | None = None,
    approve: str | None = None,
    *,
    anew: bool = False,
    must_know_commit: bool = False,
) -> Iterator["Run"]:
    """This DAG run as the stages take it; the cluster is connected to when a stage asks for it."""
    from quota_ops.airflow.connection import find_connection
    from quota_ops.runs.run import Run, connect_once

    folder = run_folder(cluster_folder, run_store, anew=anew)
    with connect_once(folder.policy, find_connection) as connect:
        yield Run(
            folder=folder,
            cluster_folder=Path(cluster_folder),
            store=store_of(run_store),
            connect=connect,
            find_connection=find_connection,
            allow=allow or {},
            author=_author() if allow else None,
            approve=approve,
            bundle=_bundle(Path(cluster_folder)) if anew else None,
            must_know_commit=must_know_commit,
        )
