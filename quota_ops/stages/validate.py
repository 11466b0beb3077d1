"""validate: every batch asked of the broker with validate-only, before the first write."""

from collections.abc import Mapping, Sequence

from quota_ops.kafka.cluster import Cluster
from quota_ops.kafka.delivery import send_rows
from quota_ops.kafka.outcomes import format_lines
from quota_ops.model.alteration import Alteration
from quota_ops.model.errors import NotAuthorized, Refused
from quota_ops.model.outcome import EntityResponse, Outcome, Status
from quota_ops.model.rows import BatchRow
from quota_ops.model.text import counted
from quota_ops.store.run_folder import VALIDATED, RunFolder

_UNASKED = (
    "the plan was not validated: Kafka requires the permission to alter even for validate-only."
)


def validate_plan(folder: RunFolder, cluster: Cluster) -> tuple[Outcome, ...]:
    """Leave validated.json; Refused, naming every refusal and its line, when there is one.

    Raises NotAuthorized for a login that may only describe.
    """
    try:
        outcomes = validate_batches(cluster, folder.batches())
    except NotAuthorized as error:
        raise NotAuthorized(f"{_UNASKED}\n{error.message}", error.remedy) from None
    folder.leave_outcomes(VALIDATED, outcomes)
    refusals = [one for one in outcomes if one.status is not Status.ACCEPTED]
    if refusals:
        raise Refused(
            f"the broker refuses {len(refusals):,} of {counted(len(outcomes), 'entity')}:\n"
            + _lines(folder, refusals),
            "Nothing was written. Fix the YAML lines above.",
        )
    return outcomes


def validate_batches(
    cluster: Cluster, batches: Mapping[int, Sequence[BatchRow]]
) -> tuple[Outcome, ...]:
    """What would become of each entity of these batches; nothing is written."""
    return tuple(
        outcome
        for number, rows in batches.items()
        for outcome in send_rows(number, rows, cluster.validate, _at_once)
    )


def _at_once(_alterations: Sequence[Alteration]) -> tuple[EntityResponse, ...]:
    """No controller resigns over what is only validated."""
    return ()


def _lines(folder: RunFolder, refusals: Sequence[Outcome]) -> str:
    asked_by = {row.entity: row.source for row in folder.differences() if row.source}
    return format_lines(
        [
            f"{asked_by.get(one.entity, 'the cluster')}  {one.entity}  "
            f"{one.error or one.status}: {one.message}"
            for one in refusals
        ],
        VALIDATED,
    )
