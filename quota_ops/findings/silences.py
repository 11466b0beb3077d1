"""Silences: they mark findings with a reason, and one that matches none is a finding itself."""

from collections.abc import Collection, Iterable, Iterator

from quota_ops.findings.codes import IDLE_SILENCE, make_finding
from quota_ops.model.finding import Finding, Location, Silence


def mark_silenced(findings: Iterable[Finding], silences: Iterable[Silence]) -> Iterator[Finding]:
    """Mark the findings that a silence covers with its reason; an entity's own silence wins."""
    reasons = {(silence.code, silence.entity): silence.reason for silence in silences}
    for finding in findings:
        wide = reasons.get((finding.code, None))
        yield finding._replace(silenced=reasons.get((finding.code, finding.entity), wide))


def find_idle_silences(
    findings: Iterable[Finding], silences: Iterable[Silence], decided: Collection[str]
) -> Iterator[Finding]:
    """Yield a finding for each silence that matches none, if its code is in `decided`."""
    found = {(finding.code, entity) for finding in findings for entity in (finding.entity, None)}
    for silence in silences:
        if silence.code in decided and (silence.code, silence.entity) not in found:
            whom = silence.entity or "the cluster"
            message = f"{silence.code} is silenced for {whom}, but nothing triggers it."
            subject, place = silence.code, silence.place
            yield make_finding(
                IDLE_SILENCE, message, entity=silence.entity, place=place, subject=subject
            )


def list_unsilenced(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings that are not silenced, sorted by place; those without a file last."""
    left = (finding for finding in findings if finding.silenced is None)
    return tuple(
        sorted(
            left, key=lambda finding: (finding.place is None, _order(finding.place), finding.code)
        )
    )


def _order(place: Location | None) -> tuple[str, int, int]:
    return ("", 0, 0) if place is None else (place.file, place.line, place.column or 0)
