"""The end of what is done without a plan, kept and sent as the end of a run is."""

from collections.abc import Callable
from functools import partial

from quota_ops.kafka.connection import Connection, find_connection
from quota_ops.model.moment import iso_utc
from quota_ops.model.report import StageStatus
from quota_ops.report.audit_verb import Verb, VerbEnd, verb_record
from quota_ops.run_folder import ADOPTED, ALTER, APPLIED, RELEASED, RunFolder
from quota_ops.stages import audit

_LEFT = {
    Verb.ALTER: (ALTER, ("validate", "apply")),
    Verb.ADOPT: (ADOPTED, ("adopt",)),
    Verb.RELEASE: (RELEASED, ("release",)),
}
"""The artefact and the stages of each."""


def run(
    folder: RunFolder, verb: Verb, find: Callable[[str], Connection] = find_connection
) -> str | None:
    """Leave the record of a verb's end, and produce it to the audit topic; why that misses it."""
    name, stages = _LEFT[verb]
    results = map(folder.stage_result, stages)
    end = VerbEnd(
        verb,
        folder.about(),
        folder.policy().cluster_id,
        iso_utc(),
        tuple(one for one in results if one.status is not StageStatus.NOT_RUN),
        folder.read_json(name),
        folder.outcomes(APPLIED),
    )
    return audit.run(folder, partial(verb_record, end), find)
