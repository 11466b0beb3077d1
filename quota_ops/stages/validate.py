"""validate: send every batch to the broker with validate-only, before the first write."""

from collections.abc import Sequence

from quota_ops.kafka.cluster import Cluster
from quota_ops.kafka.delivery import WHOLE, send_rows
from quota_ops.model.errors import NotAuthorized, Refused
from quota_ops.model.quotas.alteration import Alteration
from quota_ops.model.quotas.difference import Batches
from quota_ops.model.runs.outcome import UNSETTLED, EntityResponse, Outcome, Status, format_lines
from quota_ops.model.text import counted
from quota_ops.store.run.files import ALTER, VALIDATED
from quota_ops.store.run.folder import RunFolder

_NOT_VALIDATED = (
    "the plan was not validated: Kafka requires the permission to alter even for validate-only."
)


def validate_plan(folder: RunFolder, cluster: Cluster) -> tuple[Outcome, ...]:
    """Write validated.json and return the outcome of each entity, of a plan or an alter.

    Raises Refused with every entity that the broker rejects and its line in YAML; NotAuthorized
    when the user is authorized only to describe.
    """
    try:
        outcomes = validate_batches(cluster, folder.batches())
    except NotAuthorized as error:
        raise NotAuthorized(f"{_NOT_VALIDATED}\n{error.message}", error.remedy) from None
    folder.leave_outcomes(VALIDATED, outcomes)
    rejected = [outcome for outcome in outcomes if outcome.status is not Status.ACCEPTED]
    if rejected:
        raise Refused(
            f"the broker rejects {len(rejected):,} of {counted(len(outcomes), 'entity')}:\n"
            + _list_rejected(folder, rejected),
            f"Nothing was written. {find_remedy(rejected)}",
        )
    return outcomes


def find_remedy(rejected: Sequence[Outcome]) -> str:
    """Return what to do; an error of the controller, or no response, is the fault of no line."""
    if {outcome.error for outcome in rejected} <= {None, *(UNSETTLED - WHOLE)}:
        return "The controller did not decide: run again."
    return "Fix the lines above."


def validate_batches(cluster: Cluster, batches: Batches) -> tuple[Outcome, ...]:
    """Return whether the broker would accept each entity, without writing anything."""
    return tuple(
        outcome
        for number, rows in batches.items()
        for outcome in send_rows(number, rows, cluster.validate, _skip_probe)
    )


def _skip_probe(_alterations: Sequence[Alteration]) -> tuple[EntityResponse, ...]:
    """Send nothing, because a request with validate-only never makes a controller resign."""
    return ()


def _list_rejected(folder: RunFolder, rejected: Sequence[Outcome]) -> str:
    other = "typed" if folder.has(ALTER) else "the cluster"
    sources = {row.entity: row.source for row in folder.differences() if row.source}
    return format_lines(
        [
            f"{sources.get(outcome.entity, other)}  {outcome.entity}  "
            f"{outcome.error or outcome.status}: {outcome.message}"
            for outcome in rejected
        ],
        VALIDATED,
    )
