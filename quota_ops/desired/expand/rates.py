"""Limits of the whole cluster: the share of each broker, once the brokers are known or given."""

from collections.abc import Iterable, Mapping
from decimal import ROUND_FLOOR, Decimal
from pathlib import Path

import yaml

from quota_ops.desired.quotas_file import Limit, Quota
from quota_ops.model.errors import InvalidDesiredState, InvalidInput
from quota_ops.model.finding import Problem
from quota_ops.model.plans.placement import Placement, UnknownBrokersError
from quota_ops.model.quotas.quota import QUOTA_KEYS, format_limit, multiply_limit, to_decimal
from quota_ops.model.quotas.rows import DesiredRow, Key
from quota_ops.model.text import counted, plural

_HUNDREDTH = Decimal("0.01")


def add_cluster_limits(
    standing: dict[str, Limit], quota: Quota, cluster_limits: Iterable[Limit]
) -> None:
    """Add the limits of the whole cluster; adds a problem for one that the quota sets twice."""
    for limit in cluster_limits:
        if limit.key in standing:
            message = f"{limit.key} is set under limits too."
            quota.source.refuse_at(limit.span, message, "Remove one of the two.")
        standing[limit.key] = limit


def divide_rates(
    rows: Iterable[DesiredRow],
    placement: Placement,
    before: Mapping[Key, int] | None = None,
    prefix: str = "",
    *,
    skip: bool = False,
) -> tuple[DesiredRow, ...]:
    """Return the rows with the share of each broker in limits of the whole cluster.

    Shares are rounded down, so that together they never exceed the whole. `before` is by how many
    brokers the value that the cluster stores was divided, `prefix` is put before the files in
    problems. With `skip`, limits with topics stay whole. Raises InvalidDesiredState with a problem
    for each row that cannot be divided.
    """
    known, divided = before or {}, []
    problems: dict[str, Problem] = {}  # once for all names of a list
    for row in rows:
        try:
            is_left = not row.needs_brokers or (skip and row.topics is not None)
            divided.append(row if is_left else _divide(row, placement, known.get(row.id)))
        except UnknownBrokersError as error:
            whole = format_limit(row.key, row.whole or row.whole_after)
            message = f"{row.key} of {whole} per cluster: {error}."
            problem = Problem(f"{prefix}{row.file}", row.line, 1, message, error.remedy)
            problems[str(problem)] = problem
    if problems:
        raise InvalidDesiredState(list(problems.values()), files=0, quotas=len(divided))
    return tuple(divided)


def _divide(row: DesiredRow, placement: Placement, before: int | None) -> DesiredRow:
    brokers = _count_sharing(row, placement, before)
    if row.whole_after is not None:
        after = _share_rate(row.key, row.whole_after, brokers)
        row = row._replace(returns_to=after, whole_after=None)
    if row.whole is None:
        return row
    share = _share_rate(row.key, row.whole, brokers)
    every = max(brokers, len(placement.brokers))
    text = f"{row.derivation}, over {counted(brokers, 'broker')}"
    if row.topics:
        verb = plural(brokers, "leads", "lead")
        text += f" (of {every:,}) that {verb} {row.topics.replace(',', ', ')}"
    text += f" ({before} -> {counted(brokers, 'broker')})" if before not in {None, brokers} else ""
    text += f": {_reach(row.key, share, brokers, every)}" if every > 1 else ""
    return row._replace(value=share, derivation=text, brokers=brokers)


def _count_sharing(row: DesiredRow, placement: Placement, before: int | None) -> int:
    """Return how many brokers share the limit: those of the last run, if nobody can tell now."""
    try:
        return len(placement.find_sharing(row.topics))
    except UnknownBrokersError:
        if before is None or placement.leads is not None:
            raise
        return before


def _share_rate(key: str, whole: float, brokers: int) -> float:
    unit = 1 if QUOTA_KEYS[key].whole else _HUNDREDTH
    share = (to_decimal(whole) / brokers / unit).to_integral_value(ROUND_FLOOR) * unit
    if not share:
        raise UnknownBrokersError(
            f"over {counted(brokers, 'broker')}, none of them gets a share",
            "Raise it: Kafka has no quota of 0.",
        )
    return float(share)


def _reach(key: str, share: float, sharing: int, brokers: int) -> str:
    """Return what a client gets: the least if one broker serves it, the most if all of them do."""
    least, most, every = (
        format_limit(key, multiply_limit(share, times)) for times in (1, sharing, brokers)
    )
    text = f"{least} if one serves it, {most} if all do"
    if sharing == brokers:
        return text
    return f"{text}, {every} if it uses other topics too"


_EXAMPLE = "Map each broker to the topics that it leads, for example {1: [orders], 2: []}."
_MOST_BROKERS = 100_000


def read_brokers(given: str) -> Placement:
    """Read a number of brokers, or a YAML or JSON file that maps each broker to its topics.

    brokers.json in the folder of a run is such a file. Raises InvalidInput.
    """
    if given.isdecimal():
        if not 0 < int(given) <= _MOST_BROKERS:
            raise InvalidInput(f"--brokers {given} is not a number of brokers", "Write 1 or more.")
        return Placement.of_count(int(given))
    try:
        placement = Placement.from_json(yaml.safe_load(Path(given).read_text("utf-8")))
    except OSError as error:
        remedy = "Pass a number of brokers, or a file with the topics of each broker."
        raise InvalidInput(f"--brokers {given} cannot be read: {error.strerror}", remedy) from None
    except (AttributeError, TypeError, ValueError, RecursionError, yaml.YAMLError):
        raise InvalidInput(f"{given} does not list brokers", _EXAMPLE) from None
    if not placement.brokers:
        raise InvalidInput(f"{given} lists no broker", _EXAMPLE)
    return placement
