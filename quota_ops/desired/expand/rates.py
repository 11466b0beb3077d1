"""The share of each broker in a limit of the whole cluster."""

from collections.abc import Iterator
from decimal import ROUND_FLOOR, Decimal

from quota_ops.desired.limits import Derivation, Limit
from quota_ops.desired.quotas_file import Quota
from quota_ops.model.quota import QUOTA_KEYS, format_limit
from quota_ops.model.text import counted

_HUNDREDTH = Decimal("0.01")


def divide_by_brokers(
    quota: Quota, limits: tuple[Limit, ...], brokers: int | None
) -> Iterator[Limit]:
    """Yield the limit of each broker: rounded down, so that together they never exceed the whole.

    Adds a problem for a limit that the quota sets twice, a share of 0, and an unknown number of
    brokers.
    """
    own = {limit.key for limit in quota.limits}
    for limit in limits:
        if limit.key in own:
            message = f"{limit.key} is set under limits too."
            _refuse(quota, limit, message, "Remove one of the two.")
        elif brokers is None:
            message = "The number of brokers is unknown, so the limit cannot be divided."
            _refuse(quota, limit, message, "Add it to cluster.yaml, for example brokers: 3.")
        else:
            unit = 1 if QUOTA_KEYS[limit.key].whole else _HUNDREDTH
            share = (Decimal(limit.value) / brokers / unit).to_integral_value(ROUND_FLOOR) * unit
            whole = format_limit(limit.key, limit.value)
            if not share:
                message = f"{whole} over {counted(brokers, 'broker')} leaves none of them a share."
                _refuse(quota, limit, message, "Raise it: Kafka has no quota of 0.")
                continue
            text = f"{whole} per cluster over {counted(brokers, 'broker')}"
            yield limit._replace(value=float(share), text="", derivation=Derivation(text))


def _refuse(quota: Quota, limit: Limit, message: str, remedy: str) -> None:
    line, column, length = limit.span
    quota.source.refuse_at(line, column, message, remedy, length=length)
