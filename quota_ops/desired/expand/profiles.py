"""The limits of a profile, with those of the profiles that it extends."""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from quota_ops.desired.profiles import Profile, Profiles
from quota_ops.desired.quotas_file import Derivation, Limit, Quota, Reference
from quota_ops.desired.yaml.scalars import show
from quota_ops.desired.yaml.source import Source
from quota_ops.model.quotas.quota import QUOTA_KEYS


def refuse_invalid_profiles(profiles: Profiles) -> None:
    """Add a problem for each profile that extends an unknown one, or itself over others."""
    for profile in profiles.values():
        extended = profile.extends
        if extended is not None and extended.name not in profiles:
            _refuse_unknown(profile.source, extended, profiles)
        elif extended is not None and profile.name in [
            known.name for known in _chain(profiles, extended.name)
        ]:
            message = f"The profile {show(profile.name)} extends itself."
            remedy = "Remove profile here, or in one of the others."
            profile.source.refuse_at(extended.span, message, remedy)


class ProfileLimits(Struct, frozen=True):
    """The limits of profiles with those that they extend, each worked out once."""

    profiles: Profiles
    known: dict[tuple[str, tuple[str, ...]], Sequence[tuple[str, float, Derivation]]] = {}

    def find(self, quota: Quota, reference: Reference) -> dict[str, Limit]:
        """Return the limits of a quota's profile by key; add a problem if it cannot be used."""
        place = reference.name, quota.entity.types
        if place not in self.known:
            if self._refuse(quota, reference):
                return {}
            self.known[place] = tuple(self._resolve(reference.name))
        return {
            key: Limit(key, value, "", reference.span, derivation)
            for key, value, derivation in self.known[place]
        }

    def _resolve(self, name: str) -> Iterator[tuple[str, float, Derivation]]:
        keys: set[str] = set()
        names: list[str] = []
        for profile in _chain(self.profiles, name):
            names.append(profile.name)
            for limit in profile.limits:
                if limit.key not in keys:
                    keys.add(limit.key)
                    place = f"{profile.source.name}:{limit.span.line + 1}"
                    scale = "" if profile.factor is None else f", times {profile.factor}"
                    text = f"profile {' > '.join(map(show, names))} ({place}{scale})"
                    yield limit.key, limit.value, Derivation(text)

    def _refuse(self, quota: Quota, reference: Reference) -> bool:
        """Add a problem if the profile is unknown or does not fit; return whether it did."""
        if reference.name not in self.profiles:
            _refuse_unknown(quota.source, reference, self.profiles)
            return True
        for profile in _chain(self.profiles, reference.name):
            for limit in profile.limits:
                if not QUOTA_KEYS[limit.key].types.issuperset(quota.entity.types):
                    place = f"{profile.source.file}:{limit.span.line + 1}"
                    types = " and ".join(quota.entity.types)
                    quota.source.refuse_at(
                        reference.span,
                        f"The profile {show(reference.name)} sets {limit.key} ({place}), which "
                        f"does not apply to {types}.",
                        "Use another profile, or write the limits here.",
                    )
                    return True
        return False


def _refuse_unknown(source: Source, reference: Reference, profiles: Profiles) -> None:
    known = ", ".join(map(show, sorted(profiles)))
    remedy = f"Defined are {known}." if known else "Define it under profiles in cluster.yaml."
    remedy += " A profile of a shared file needs that file under use in cluster.yaml."
    message = f"There is no profile {show(reference.name)}."
    source.refuse_at(reference.span, message, remedy)


def _chain(profiles: Profiles, name: str) -> Iterator[Profile]:
    """Yield a profile, the one that it extends, and so on; each once."""
    seen: set[str] = set()
    while name in profiles and name not in seen:
        seen.add(name)
        yield profiles[name]
        extended = profiles[name].extends
        name = extended.name if extended else ""
