"""The step between reading the files and their rows: each quota gets its limits at a time.

Files that declare plain limits alone pass unchanged.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction

from msgspec import Struct

from quota_ops.desired.expand.rates import add_cluster_limits
from quota_ops.desired.profiles import Profile, Profiles
from quota_ops.desired.quotas_file import (
    Derivation,
    Group,
    Limit,
    Member,
    Quota,
    QuotasFile,
    Reference,
    Terms,
)
from quota_ops.desired.yaml.source import Source
from quota_ops.desired.yaml.values import show
from quota_ops.model.quotas.entity import CLIENT_ID, USER
from quota_ops.model.quotas.quota import QUOTA_KEYS, format_limit, to_decimal
from quota_ops.model.text import counted
from quota_ops.model.usage.recorded import GroupUse
from quota_ops.model.usage.series import SeriesNames


def _refuse_invalid_profiles(profiles: Profiles) -> None:
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


class _ProfileLimits(Struct, frozen=True):
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


def expand(
    files: Sequence[QuotasFile],
    profiles: Profiles,
    at: str,
    find_use: Callable[[Collection[SeriesNames]], GroupUse] | None = None,
) -> Sequence[QuotasFile]:
    """Return the files with the limits that apply at a time (ISO 8601, UTC).

    Limits of the whole cluster are not divided yet. A quota that has ended has none. Adds a problem
    for each profile that does not exist, or that does not fit its quota. `find_use` is called for
    the members of groups whose shares follow use; without it, their weights alone count.
    """
    if not profiles and not any(map(_is_expanded, files)):
        return files
    _refuse_invalid_profiles(profiles)
    of_profiles = _ProfileLimits(profiles)
    names = _list_used_names(files) if find_use else set()
    use = find_use(names) if find_use and names else None
    return [_expand_file(file, of_profiles, at, use) for file in files]


def _is_expanded(file: QuotasFile) -> bool:
    """Whether the file declares anything but plain limits."""
    return bool(file.groups) or any(quota.terms is not None for quota in file.quotas)


def _expand_file(
    file: QuotasFile, of_profiles: _ProfileLimits, at: str, use: GroupUse | None
) -> QuotasFile:
    if not _is_expanded(file):
        return file
    quotas = _expand_quotas(file.quotas, of_profiles, at)
    return file._replace(quotas=(*quotas, *_expand_groups(file, at, use)))


def _expand_quotas(
    quotas: Iterable[Quota], of_profiles: _ProfileLimits, at: str
) -> Iterator[Quota]:
    last: Quota | None = None
    limits = coming = tuple[Limit, ...]()
    for quota in quotas:
        terms = quota.terms
        if terms is None:
            yield quota
            continue
        is_of_same_list = last is not None and last.terms is terms  # each name has the same limits
        if not is_of_same_list:
            standing = {limit.key: limit for limit in quota.limits}
            add_cluster_limits(standing, quota, terms.cluster_limits)
            if terms.profile is not None:
                standing = of_profiles.find(quota, terms.profile) | standing
            limits, coming = _apply_terms(terms, standing, at, quota.source.name)
            last = quota
        yield quota._replace(limits=limits, terms=None, topics=terms.topics, coming=coming)


def _apply_terms(
    terms: Terms, standing: Mapping[str, Limit], at: str, file: str
) -> tuple[tuple[Limit, ...], tuple[Limit, ...]]:
    """Return the limits of a quota at a time, and those that begin later, of keys without one.

    `standing` are those that apply without an override.
    """
    if terms.until is not None and terms.until <= at:
        return (), ()
    overridden = {limit.key for override in terms.overrides for limit in override.limits}
    if not overridden and terms.until is None:
        return tuple(standing.values()), ()
    keys = dict.fromkeys((*standing, *sorted(overridden)))
    found = [_find_limit(key, terms, standing.get(key), at, file) for key in keys]
    limits = tuple(limit for limit, is_coming in found if limit and not is_coming)
    return limits, tuple(limit for limit, is_coming in found if limit and is_coming)


def _find_limit(
    key: str, terms: Terms, standing: Limit | None, at: str, file: str
) -> tuple[Limit | None, bool]:
    """Return the limit of a key at a time, and when it ends or changes.

    Without one, return the first that begins later, and True.
    """
    overrides = [
        (override, limit)
        for override in terms.overrides
        for limit in override.limits
        if limit.key == key and override.until > at
    ]
    running = overrides.pop(0) if overrides and overrides[0][0].start <= at else None
    times = [terms.until, *(override.start for override, _ in overrides[:1])]
    times += [running[0].until] if running else []
    ends = min(filter(None, times), default=None)
    if ends is None:
        return standing, False
    following = next((limit for override, limit in overrides if override.start == ends), None)
    after = standing if running and ends != terms.until else None
    words, value = (after.words, after.value) if after else (format_limit(key, None), 0.0)
    is_whole = after is not None and after.is_whole
    if following is not None:  # it ends too, so the guards judge it then, with what comes after
        words = f"{following.words} ({file}:{following.span.line + 1})"
    text = f"until {ends}, then {words}"
    limit = running[1] if running else standing
    if limit is None:
        return following and following._replace(derivation=Derivation(text, ends)), True
    known, kind = limit.derivation.text if limit.derivation else "", "override " if running else ""
    derivation = Derivation(
        _join(known, f"{kind}{text}"),
        ends,
        None if following else value,
        running[0].reason if running else None,
        is_whole and following is None,
    )
    return limit._replace(derivation=derivation), False


def _join(*texts: str) -> str:
    return ", ".join(filter(None, texts))


_HUNDREDTHS = 100
"""Shares of keys that need not be whole have two decimals."""
_THOUSANDTHS = 1000
"""The sum of weights that follow use, about: less than one of them changes no share."""
_ENOUGH_DAYS = 7
"""How many recorded days the use of a group needs."""


def _list_used_names(files: Iterable[QuotasFile]) -> set[SeriesNames]:
    """Return the names of the members whose shares follow their use."""
    groups = (group for file in files for group in file.groups if group.follows_use)
    return {_series_names(member) for group in groups for member in group.members}


def _expand_groups(file: QuotasFile, at: str, use: GroupUse | None) -> Iterator[Quota]:
    """Yield a quota for each member of the groups of a file at a time.

    `use` is the recorded use of the members; None if it was not read.

    Adds a problem for a budget that gives some member no share, or less than the minimum.
    """
    for group in file.groups:
        budgets = {limit.key: limit for limit in group.budget}
        limits, later = _apply_terms(group.terms, budgets, at, file.source.name)
        shares = [_share(file.source, group, limit, use) for limit in limits]
        coming = [_share(file.source, group, limit, use) for limit in later]
        for member in group.members:
            name = member.entity.text
            yield Quota(
                file.source,
                owner=file.owner,
                span=member.span,
                entity=member.entity,
                limits=tuple(share[name] for share in shares if name in share),
                reason=group.reason,
                group=group.name,
                coming=tuple(share[name] for share in coming if name in share),
            )


def _share(source: Source, group: Group, budget: Limit, use: GroupUse | None) -> dict[str, Limit]:
    """Return the share of each member in a budget by entity; none, after adding a problem."""
    weights = weigh_by_use(
        {member.entity.text: member.weight for member in group.members},
        _find_used(group, budget.key, use),
    )
    amounts = _divide(source, group, budget, budget.value, weights)
    derivation = budget.derivation or Derivation("")
    returns = derivation.returns_to
    later = _divide(source, group, budget, returns, weights) if returns else {}
    least = _find_minimum(group, budget.key)
    shares = {}
    for member in group.members:
        name = member.entity.text
        if name not in amounts:
            return {}
        text = f"group {group.name}, {_explain_share(group, member, budget, use)}"
        text += f", at least {format_limit(budget.key, least)} each" if least else ""
        text += f", {derivation.text} for the group" if derivation.text else ""
        derived = derivation._replace(text=text, returns_to=later.get(name, returns))
        shares[name] = budget._replace(value=amounts[name], text="", derivation=derived)
    return shares


def _series_names(member: Member) -> SeriesNames:
    parts = member.entity.as_dict()
    return SeriesNames(parts.get(USER), parts.get(CLIENT_ID))


def _find_used(group: Group, key: str, use: GroupUse | None) -> dict[str, float]:
    """Return the use of the members whose use is known; none if it has no effect on shares."""
    if use is None or not group.follows_use or use.days < _ENOUGH_DAYS:
        return {}
    found = {
        member.entity.text: use.rates.get((key, _series_names(member))) for member in group.members
    }
    return {name: rate for name, rate in found.items() if rate is not None}


def weigh_by_use(weights: Mapping[str, int], used: Mapping[str, float]) -> Mapping[str, int]:
    """Return the weight of each member: half as declared, half by use, in thousandths of all.

    A member whose use is unknown has the weight that is declared, and so have all without any use.
    """
    if not (total_use := sum(used.values())):
        return weights
    known, total = sum(weights[name] for name in used), sum(weights.values())
    by_use = {name: known * rate / total_use for name, rate in used.items()}
    return {
        name: max(1, round(_THOUSANDTHS * (weight + by_use.get(name, weight)) / 2 / total))
        for name, weight in weights.items()
    }


def _explain_share(group: Group, member: Member, budget: Limit, use: GroupUse | None) -> str:
    """Return how a member's share is divided, and why use does not count if it should."""
    weight = f"{member.weight} of {sum(each.weight for each in group.members)}"
    text = f"{weight} of {budget.words}"
    if not group.follows_use:
        return text
    if use is None:
        return f"{text} by weight; a plan divides half of it by use"
    if sum(_find_used(group, budget.key, use).values()):
        days = f"{counted(use.days, 'day')} before {use.until}"
        return f"{budget.words}: half by weight ({weight}), half by use on {days}"
    if use.days < _ENOUGH_DAYS:
        days = f"{counted(use.days, 'day')} before {use.until}"
        return f"{text} by weight: use is recorded on {days}, {_ENOUGH_DAYS} are needed"
    return f"{text} by weight: no use of a member is recorded before {use.until}"


def _divide(
    source: Source, group: Group, budget: Limit, value: float, weights: Mapping[str, int]
) -> dict[str, float]:
    key = QUOTA_KEYS[budget.key]
    if value == key.unlimited:
        message = f"The budget {budget.key} is unlimited, so it cannot be divided."
        remedy = "Write a number, or quotas of their own for the members."
        source.refuse_at(budget.span, message, remedy)
        return {}
    unit = 1 if key.whole else _HUNDREDTHS
    least = _find_minimum(group, budget.key)
    try:
        shares = split_budget(int(to_decimal(value) * unit), weights, int(to_decimal(least) * unit))
    except NoShareError as error:
        minima = least * len(weights)
        together = f", {format_limit(budget.key, minima)} together" if minima > value else ""
        message = f"The budget {format_limit(budget.key, value)} {error}{together}."
        source.refuse_at(budget.span, message, "Raise the budget, or remove members.")
        return {}
    return {name: float(Decimal(share) / unit) for name, share in shares.items()}


def _find_minimum(group: Group, key: str) -> float:
    return next((limit.value for limit in group.minimum if limit.key == key), 0.0)


class NoShareError(ValueError):
    """A budget that cannot give every member a share; the text continues `The budget`."""


def split_budget(budget: int, weights: Mapping[str, int], minimum: int = 0) -> dict[str, int]:
    """Return the share of each member; together they are the budget.

    Each has at least `minimum`; the others share the rest by weight. Shares are whole: what is
    left goes to the largest remainders, and among equal ones to the first names. So the order of
    the members has no effect. Raises NoShareError if a share would be 0 or the budget is less than
    the minima.
    """
    if minimum * len(weights) > budget:
        raise NoShareError("is less than the minima of its members")
    raised = _find_raised(budget, weights, minimum)
    rest = budget - minimum * len(raised)
    total = sum(weight for name, weight in weights.items() if name not in raised)
    exact = {
        name: Fraction(rest * weight, total)
        for name, weight in weights.items()
        if name not in raised
    }
    shares = dict.fromkeys(raised, minimum) | {name: int(share) for name, share in exact.items()}
    left = budget - sum(shares.values())
    for name in sorted(exact, key=lambda name: (shares[name] - exact[name], name))[:left]:
        shares[name] += 1
    if not all(shares.values()):
        raise NoShareError("is too small to give every member a share")
    return shares


def _find_raised(budget: int, weights: Mapping[str, int], minimum: int) -> frozenset[str]:
    """Return the members that get the minimum, because their weight would give them less."""
    raised: frozenset[str] = frozenset()
    while True:
        others: Sequence[str] = [name for name in weights if name not in raised]
        rest, total = budget - minimum * len(raised), sum(weights[name] for name in others)
        below = [name for name in others if rest * weights[name] < minimum * total]
        if not below:
            return raised
        raised |= frozenset(below)
