"""check: YAML to desired rows; the only stage that reads YAML."""

from pathlib import Path

from quota_ops.desired.read import Desired, read_cluster, refuse_twins
from quota_ops.model.errors import InvalidInput
from quota_ops.model.tables import DESIRED
from quota_ops.run_folder import CHECKED, POLICY, ROLLBACK, RunFolder
from quota_ops.run_json import checked_json
from quota_ops.stages.anew import set_aside


def run(folder: RunFolder, cluster_folder: Path) -> Desired:
    """Leave policy.json, checked.json (findings and silences) and desired.parquet.

    Raises InvalidDesiredState with every problem; also when a folder beside it is the same
    cluster, because each of the two would clear what the other asks for.
    """
    if folder.has(ROLLBACK):
        raise InvalidInput(f"{folder.path} rolls back a run: it does not go by YAML")
    set_aside(folder, "check")
    refuse_twins(cluster_folder)
    desired = read_cluster(cluster_folder)
    folder.write_json(POLICY, desired.policy.as_json())
    folder.write_json(CHECKED, checked_json(desired.findings, desired.silences))
    folder.write_table(DESIRED, desired.rows)
    return desired
