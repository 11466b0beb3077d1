"""The demo's desired state shows the whole format, and its schemas are those of this version."""

import json
from pathlib import Path
from typing import Any

import pytest

from quota_ops.desired.clusters import find_clusters
from quota_ops.desired.read import read_cluster
from quota_ops.desired.schema import cluster_schema, quotas_schema
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.quota import QUOTA_KEYS

DESIRED_STATE = Path(__file__).parents[2] / "desired_state"


def test_the_demo_shows_all_shapes_and_keys() -> None:
    """The demo contains each of the ten entity shapes and each of the five keys."""
    rows = read_cluster(DESIRED_STATE / "demo").rows

    shapes = {
        tuple((kind, name is None) for kind, name in Entity.parse(row.entity).parts) for row in rows
    }
    assert len(shapes) == 10
    assert {row.key for row in rows} == set(QUOTA_KEYS)


def test_the_demo_is_the_only_cluster() -> None:
    """The folder of the schemas is not a cluster."""
    assert find_clusters(DESIRED_STATE) == (DESIRED_STATE / "demo",)


@pytest.mark.parametrize(
    ("file", "schema"), [("quotas.json", quotas_schema()), ("cluster.json", cluster_schema())]
)
def test_the_schemas_beside_the_demo_are_current(file: str, schema: dict[str, Any]) -> None:
    """The schema files for editors equal the output of quota-ops schema."""
    text = (DESIRED_STATE / "schema" / file).read_text("utf-8")

    assert text == json.dumps(schema, indent=2, ensure_ascii=False) + "\n"
