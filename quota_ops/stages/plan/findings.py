"""The findings that plan writes: those about the files, and those that need the cluster."""

import pyarrow as pa

from quota_ops.findings.cluster_rules import Rows, check_cluster, list_decidable_codes
from quota_ops.findings.shares import check_shares
from quota_ops.findings.silences import find_idle_silences, mark_silenced
from quota_ops.model.finding import Finding, Location
from quota_ops.model.plans.plan import Plan
from quota_ops.model.quotas.difference import Action
from quota_ops.model.quotas.tables import DECLARED, DESIRED
from quota_ops.model.runs.run import Findings
from quota_ops.store.places.parquet import to_rows
from quota_ops.store.run.files import CHECKED, DESCRIBED, FACTS, FINDINGS
from quota_ops.store.run.folder import RunFolder

_GONE_AFTER = frozenset({Action.CLEAR, Action.FORGET})


def write_findings(folder: RunFolder, plan: Plan) -> None:
    """Write findings.json: every finding about the files and the cluster, silenced or not.

    A rollback reads no YAML, so it has no findings.json.
    """
    if not folder.has(CHECKED):
        return
    checked, facts = folder.read(CHECKED), folder.find(FACTS)
    known = {finding.identity for finding in checked.findings}
    values, others = folder.read_values(DESIRED), _find_others(plan)
    found_now = check_cluster(values, others, facts, folder.policy())
    more = [finding for finding in found_now if finding.identity not in known]
    files, shares = list(checked.findings), list[Finding]()
    if folder.has(DECLARED.file):  # check did not know the shares of limits of the whole cluster
        divided = tuple(folder.read_rows(DESIRED))
        is_complete = not (checked.invalid or folder.read(DESCRIBED).undivided)
        files, shares = check_shares(
            divided, files, folder.policy(), facts, is_complete=is_complete
        )
    more = [*_add_locations(folder.read_table(DESIRED), more), *shares]
    found = (*files, *mark_silenced(more, checked.silences))
    found += tuple(find_idle_silences(found, checked.silences, list_decidable_codes(facts)))
    folder.write(FINDINGS, Findings(found))


def _find_others(plan: Plan) -> Rows:
    """Return the rows that Git does not declare and that stay on the cluster."""
    return {
        row.id: row.before
        for row in plan.differences
        if row.after is None and row.before is not None and row.action not in _GONE_AFTER
    }


def _add_locations(desired: pa.Table, findings: list[Finding]) -> list[Finding]:
    """Return the findings with the line of their row, or with the first line of their entity."""
    if not findings:
        return []
    lines: dict[tuple[str, str | None], Location] = {}
    for entity, key, file, line in to_rows(desired, "entity", "key", "file", "line"):
        lines[entity, key] = place = Location(file, line)
        lines.setdefault((entity, None), place)
    return [
        finding._replace(place=lines.get((str(finding.entity), finding.key)))
        for finding in findings
    ]
