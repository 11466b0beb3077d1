"""The limits of a profile, with those of the profiles that it extends."""

from collections.abc import Iterator

from quota_ops.desired.limits import Derivation, Limit
from quota_ops.desired.profiles import Profile, Profiles
from quota_ops.desired.quotas_file import Quota
from quota_ops.desired.terms import Reference
from quota_ops.desired.yaml.scalars import show
from quota_ops.desired.yaml.source import Source
from quota_ops.model.quota import QUOTA_KEYS


def refuse_invalid_profiles(profiles: Profiles) -> None:
    """Add a problem for each profile that extends an unknown one, or itself over others."""
    for profile in profiles.values():
        extended = profile.extends
        if extended is not None and extended.name not in profiles:
            _refuse_unknown(profile.source, extended, profiles)
        elif extended is not None and profile.name in [
            known.name for known in _chain(profiles, extended.name)
        ]:
            line, column, length = extended.span
            message = f"The profile {show(profile.name)} extends itself."
            remedy = "Remove profile here, or in one of the others."
            profile.source.refuse_at(line, column, message, remedy, length=length)


def find_profile(quota: Quota, reference: Reference, profiles: Profiles) -> dict[str, Limit]:
    """Return the limits of the profile of a quota by key; adds a problem if it cannot have it."""
    if reference.name not in profiles:
        _refuse_unknown(quota.source, reference, profiles)
        return {}
    limits: dict[str, Limit] = {}
    names: list[str] = []
    for profile in _chain(profiles, reference.name):
        names.append(profile.name)
        for limit in profile.limits:
            if not QUOTA_KEYS[limit.key].types.issuperset(quota.entity.types):
                place = f"{profile.source.file}:{limit.span.line + 1}"
                types = " and ".join(quota.entity.types)
                line, column, length = reference.span
                quota.source.refuse_at(
                    line,
                    column,
                    f"The profile {show(reference.name)} sets {limit.key} ({place}), which does "
                    f"not apply to {types}.",
                    "Use another profile, or write the limits here.",
                    length=length,
                )
                return {}
            place = f"{profile.source.name}:{limit.span.line + 1}"
            scale = "" if profile.factor is None else f", times {profile.factor}"
            text = f"profile {' > '.join(map(show, names))} ({place}{scale})"
            derived = Limit(limit.key, limit.value, "", reference.span, Derivation(text))
            limits.setdefault(limit.key, derived)
    return limits


def _refuse_unknown(source: Source, reference: Reference, profiles: Profiles) -> None:
    line, column, length = reference.span
    known = ", ".join(map(show, sorted(profiles)))
    remedy = f"Defined are {known}." if known else "Define it under profiles in cluster.yaml."
    message = f"There is no profile {show(reference.name)}."
    source.refuse_at(line, column, message, remedy, length=length)


def _chain(profiles: Profiles, name: str) -> Iterator[Profile]:
    """Yield a profile, the one that it extends, and so on; each once."""
    seen: set[str] = set()
    while name in profiles and name not in seen:
        seen.add(name)
        yield profiles[name]
        extended = profiles[name].extends
        name = extended.name if extended else ""
