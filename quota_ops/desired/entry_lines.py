"""The entities that a line of a cluster's files is about."""

from quota_ops.desired.cluster_file import CLUSTER_YAML
from quota_ops.desired.quotas_file import read_entries
from quota_ops.desired.read import Desired
from quota_ops.desired.shared import shared_name
from quota_ops.desired.yaml.nodes import SizeBudget, compose
from quota_ops.desired.yaml.problems import Problems
from quota_ops.desired.yaml.source import Source


def find_entities(desired: Desired, file: str, line: int) -> frozenset[str]:
    """Return the entities of the entry that a line belongs to; of a profile, those that use it.

    `file` is a path below the cluster's folder. None if the line belongs to no entry.
    """
    if file == CLUSTER_YAML or file.startswith(shared_name("")):
        place = f"({file}:{line})"
        return frozenset(row.entity for row in desired.rows if place in (row.derivation or ""))
    content = desired.contents.get(file, b"").decode("utf-8-sig")
    source = Source(file, file, content, Problems())
    root = compose(source, SizeBudget())
    found: frozenset[str] = frozenset()
    for item, entities in () if root is None else read_entries(source, root):
        if item.start_mark.line < line <= max(item.end_mark.line, item.start_mark.line + 1):
            found = frozenset(entity.text for entity in entities)
    return found
