"""Alters whose requests may be delayed or lost, as `tests.broker.lossy` does."""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from quota_ops.desired.read import read_policy
from quota_ops.model.commit import Provenance
from quota_ops.model.errors import QuotaOpsError
from quota_ops.model.quotas.alteration import Alteration
from quota_ops.model.quotas.entity import Entity
from quota_ops.model.runs.run import Alter
from quota_ops.runs.chain import CHAINS, run_stages
from quota_ops.runs.run import start_command_run
from quota_ops.store.run.files import ALTER
from quota_ops.store.run.folder import RunFolder
from tests.broker.stage_runs import KEY
from tests.lab import Lab


def alter_users(lab: Lab, network: Any, values: Mapping[str, float | None]) -> RunFolder:
    """Alter the limits of entities through a network, and return the run, however it ended."""
    run = start_command_run(lab.store, read_policy(lab.folder), Provenance.given(None))
    typed = tuple(Alteration(Entity.parse(name), ((KEY, values[name]),)) for name in values)
    run.write(ALTER, Alter("anna", "root", "INC-31"))
    with suppress(QuotaOpsError):
        run_stages(lab.resume(run, connect=lambda: network, typed=lambda _: typed), CHAINS["alter"])
    return run
