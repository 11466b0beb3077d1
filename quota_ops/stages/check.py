"""check: YAML to desired rows; the only stage that reads YAML."""

from pathlib import Path

from quota_ops.desired.read import Desired, read_cluster
from quota_ops.model.tables import DESIRED
from quota_ops.run_folder import POLICY, RunFolder


def run(folder: RunFolder, cluster_folder: Path) -> Desired:
    """Leave policy.json and desired.parquet; InvalidDesiredState carries every problem."""
    with folder.stage("check"):
        desired = read_cluster(cluster_folder)
        folder.write_json(POLICY, desired.policy.as_json())
        folder.write_table(DESIRED, desired.rows)
        return desired
