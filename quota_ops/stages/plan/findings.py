"""What plan leaves of findings: those of the files, and those that take the cluster to tell."""

from quota_ops.findings.cluster_rules import Rows, check_cluster, decided
from quota_ops.findings.silences import find_idle_silences, silenced
from quota_ops.model.difference import Action
from quota_ops.model.finding import Finding, Location
from quota_ops.model.plan import Plan
from quota_ops.model.rows import Key
from quota_ops.model.tables import DESIRED
from quota_ops.store.parquet import to_values
from quota_ops.store.run_folder import CHECKED, FINDINGS, RunFolder
from quota_ops.store.run_json import finding_json

_GOES = frozenset({Action.CLEAR, Action.FORGET})


def leave_findings(folder: RunFolder, plan: Plan) -> None:
    """Leave findings.json: every finding of the files and of the cluster, silenced or not.

    A run that rolls back another asks for nothing that files say, and leaves none.
    """
    if not folder.has(CHECKED):
        return
    of_files, silences = folder.checked()
    facts = folder.facts()
    asked, others = _asked(folder), _others(plan)
    known = {one[:3] for one in of_files}
    more = [one for one in check_cluster(asked, others, facts) if one[:3] not in known]
    found = (*of_files, *silenced(_placed(folder, more), silences))
    found += tuple(find_idle_silences(found, silences, decided(facts)))
    folder.write_json(FINDINGS, {"findings": [finding_json(one) for one in found]})


def _asked(folder: RunFolder) -> Rows:
    table = folder.read_table(DESIRED)
    entities, keys, values = (to_values(table[name]) for name in ("entity", "key", "value"))
    return dict(zip(map(Key, entities, keys), values, strict=True))


def _others(plan: Plan) -> Rows:
    """What stays on the cluster though Git does not ask for it."""
    return {
        row.id: row.before
        for row in plan.differences
        if row.after is None and row.before is not None and row.action not in _GOES
    }


def _placed(folder: RunFolder, findings: list[Finding]) -> list[Finding]:
    """The findings with the lines that ask for their rows; an entity's is its first."""
    if not findings:
        return []
    lines: dict[tuple[str, str | None], Location] = {}
    table = folder.read_table(DESIRED)
    columns = (to_values(table[name]) for name in ("entity", "key", "file", "line"))
    for entity, key, file, line in zip(*columns, strict=True):
        lines[entity, key] = place = Location(file, line)
        lines.setdefault((entity, None), place)
    return [one._replace(place=lines.get((str(one.entity), one.key))) for one in findings]
