"""Temporary limits: what applies at a time, until when, and what applies then."""

from collections.abc import Mapping

from quota_ops.desired.quotas_file import Derivation, Limit, Terms
from quota_ops.model.quotas.quota import format_limit


def apply_terms(
    terms: Terms, standing: Mapping[str, Limit], at: str, file: str
) -> tuple[Limit, ...]:
    """Return the limits of a quota at a time, given those that apply without an override."""
    if terms.until is not None and terms.until <= at:
        return ()
    overridden = {limit.key for override in terms.overrides for limit in override.limits}
    if not overridden and terms.until is None:
        return tuple(standing.values())
    keys = dict.fromkeys((*standing, *sorted(overridden)))
    limits = (_find_limit(key, terms, standing.get(key), at, file) for key in keys)
    return tuple(limit for limit in limits if limit is not None)


def _find_limit(key: str, terms: Terms, standing: Limit | None, at: str, file: str) -> Limit | None:
    """Return the limit of a key at a time, and when it ends or changes."""
    overrides = [
        (override, limit)
        for override in terms.overrides
        for limit in override.limits
        if limit.key == key and override.until > at
    ]
    running = next((found for found in overrides if found[0].start <= at), None)
    if running is not None:
        override, limit = running
        ends = min(filter(None, (override.until, terms.until)))
        stays = standing is not None and (terms.until is None or override.until < terms.until)
        after = standing if standing is not None and stays else None
        known = limit.derivation.text if limit.derivation else ""
        following = next((found for start, found in overrides if start.start == ends), None)
        if following is not None:  # it ends too, so the guards judge it then, with what comes after
            words = f"{following.words} ({file}:{following.span.line + 1})"
            text = _join(known, f"override until {ends}, then {words}")
            return limit._replace(derivation=Derivation(text, ends, reason=override.reason))
        words = after.words if after else format_limit(key, None)
        text = _join(known, f"override until {ends}, then {words}")
        value, is_whole = (after.value, after.is_whole) if after else (0.0, False)
        derivation = Derivation(text, ends, value, override.reason, is_whole)
        return limit._replace(derivation=derivation)
    if standing is None:
        return None
    known = standing.derivation.text if standing.derivation else ""
    coming = overrides[0] if overrides else None
    if coming is not None and (terms.until is None or coming[0].start < terms.until):
        start, limit = coming[0].start, coming[1]
        words = f"until {start}, then {limit.words} ({file}:{limit.span.line + 1})"
        return standing._replace(derivation=Derivation(_join(known, words), start))
    if terms.until is None:
        return standing
    words = f"until {terms.until}, then none"
    return standing._replace(derivation=Derivation(_join(known, words), terms.until, 0.0))


def _join(*texts: str) -> str:
    return ", ".join(filter(None, texts))
