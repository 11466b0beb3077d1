"""Every fault, in the order of the page: by stage, then by definition."""

from quota_ops.model.runs.stages import STAGES
from tests.faults import (
    absences,
    images,
    late_writes,
    network,
    quorum,
    recreated,
    refusals,
    run_stores,
    runs_at_once,
    signals,
    silences,
    stopped,
    workers,
    writers,
)
from tests.faults.table import FAULTS, Fault

PLAYS = (
    workers,
    signals,
    silences,
    network,
    images,
    quorum,
    absences,
    recreated,
    refusals,
    run_stores,
    writers,
    runs_at_once,
    stopped,
    late_writes,
)
EVERY: tuple[Fault, ...] = tuple(sorted(FAULTS, key=lambda fault: STAGES.index(fault.stage)))
