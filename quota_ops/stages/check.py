"""check: read the YAML files into desired rows; no other stage reads YAML."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from quota_ops.desired.clusters import refuse_duplicate_clusters
from quota_ops.desired.code_owners import find_disagreements
from quota_ops.desired.git.commit import BundleVersion, find_path, read_with_commit
from quota_ops.desired.read import Desired
from quota_ops.model.commit import CommitSource
from quota_ops.model.errors import InvalidInput
from quota_ops.model.plans.client_effects import INVENTORY
from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.tables import DECLARED, DESIRED
from quota_ops.model.runs.run import Checked
from quota_ops.stages.use.recorded import read_group_use
from quota_ops.store.places.run_store import open_place
from quota_ops.store.run.files import CHECKED, ROLLBACK
from quota_ops.store.run.folder import RunFolder
from quota_ops.store.run.restart import move_attempt

if TYPE_CHECKING:
    import pyarrow as pa


def read_clients(policy: Policy, cluster_folder: Path) -> "pa.Table | None":
    """Return the clients of an inventory in Git as INVENTORY; None if there is none.

    Raises InvalidInput with file and line for the first line that is not a client.
    """
    if not policy.inventory_in_git:
        return None
    from quota_ops.sql.embedded_effects import read_inventory  # DuckDB
    from quota_ops.sql.inventory import find_inventory  # rarely needed

    place = open_place(cluster_folder.absolute())
    return read_inventory(find_inventory(place.below(policy.inventory_in_git)))


def check_desired_state(
    folder: RunFolder,
    cluster_folder: Path,
    *,
    bundle: BundleVersion | None = None,
    must_know_commit: bool = False,
    skip_invalid: bool = False,
) -> Desired:
    """Write policy.json, checked.json (findings and silences) and desired.parquet.

    With limits of the whole cluster, it writes declared.parquet instead: describe divides them.
    An inventory in Git becomes inventory.parquet. Temporary limits are those at the start of the
    run, even if the run checks again later, or at the time that its plan is made for.

    With `skip_invalid`, quotas files with problems are left out, and checked.json lists them.

    Records the commit of the files in run.json. Raises InvalidDesiredState with every problem, or
    if another folder next to this one declares the same cluster, because each would clear the
    quotas of the other. Also raises the errors of `read_with_commit`.
    """
    if folder.has(ROLLBACK):
        raise InvalidInput(f"{folder.place} rolls back a run, so it does not read YAML")
    move_attempt(folder, "check")
    refuse_duplicate_clusters(cluster_folder)  # parses cluster.yaml alone, before all quotas
    about = folder.about()
    before = about.provenance
    desired, provenance = read_with_commit(
        cluster_folder,
        given=before.commit if before.source is CommitSource.GIVEN else None,
        bundle=bundle,
        must_know=must_know_commit,
        at=about.as_of or about.started,
        skip_invalid=skip_invalid,
        find_use=partial(read_group_use, folder.store),
    )
    path = find_path(cluster_folder, bundle)
    folder.change_about(provenance=provenance, path=path)
    folder.leave_policy(desired.policy)
    owners = tuple(map(str, find_disagreements(cluster_folder, path, desired.policy)))
    of_files = desired.findings, desired.silences, desired.invalid, owners, desired.coming
    folder.write(CHECKED, Checked(*of_files))
    folder.write_table(DECLARED if desired.needs_brokers else DESIRED, desired.rows)
    if (clients := read_clients(desired.policy, cluster_folder)) is not None:
        folder.write_arrow(INVENTORY, clients)
    return desired
