"""Alters whose requests may be delayed or lost, as `tests.broker.lossy` does."""

from typing import Any

from quota_ops.desired.read import read_policy
from quota_ops.model.commit import Provenance
from quota_ops.model.quotas.alteration import Alteration
from quota_ops.model.quotas.entity import Entity
from quota_ops.runs.alter import alter_quotas
from quota_ops.runs.command_record import start_command_run
from quota_ops.runs.ownership import Attribution
from quota_ops.store.run.folder import RunFolder
from tests.broker.stage_runs import KEY
from tests.lab import Lab


def alter_user(lab: Lab, network: Any, entity: str, value: float | None) -> RunFolder:
    """Alter the limit of an entity through a network, and return the run."""
    policy = read_policy(lab.folder)
    run = start_command_run(lab.store, policy, Provenance.given(None))
    alter_quotas(
        *(run, network, [Alteration(Entity.parse(entity), ((KEY, value),))]),
        Attribution("anna", "INC-31", "root"),
        records=lab.records,
        policy=policy,
        allow=["raise", "unlimited", "small_limit"],
        validate_only=False,
    )
    return run
