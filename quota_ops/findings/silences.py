"""What silences do: findings bear their reasons, and a silence without a finding is one itself."""

from collections.abc import Collection, Iterable, Iterator

from quota_ops.findings.codes import CODES, IDLE_SILENCE
from quota_ops.model.finding import Finding, Location, Silence


def silenced(findings: Iterable[Finding], silences: Iterable[Silence]) -> Iterator[Finding]:
    """The findings; those that a silence covers bear its reason, an entity's own before others."""
    reasons = {(one.code, one.entity): one.reason for one in silences}
    for finding in findings:
        wide = reasons.get((finding.code, None))
        yield finding._replace(silenced=reasons.get((finding.code, finding.entity), wide))


def find_idle_silences(
    findings: Iterable[Finding], silences: Iterable[Silence], decided: Collection[str]
) -> Iterator[Finding]:
    """A finding for each silence that covers none, of those whose codes are decided."""
    found = {(one.code, entity) for one in findings for entity in (one.entity, None)}
    for silence in silences:
        if silence.code in decided and (silence.code, silence.entity) not in found:
            whom = silence.entity or "the cluster"
            message = f"{silence.code} is silenced for {whom}, but nothing triggers it."
            remedy = CODES[IDLE_SILENCE].remedy
            yield Finding(IDLE_SILENCE, silence.entity, None, message, remedy, silence.place)


def list_unsilenced(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings that nobody silenced, by place, those in no file last."""
    heard = (one for one in findings if one.silenced is None)
    return tuple(sorted(heard, key=lambda one: (one.place is None, _order(one.place), one.code)))


def _order(place: Location | None) -> tuple[str, int, int]:
    return ("", 0, 0) if place is None else (place.file, place.line, place.column or 0)
