"""The results of verify for each broker and for all brokers together, as text."""

from collections.abc import Sequence

from quota_ops.model.runs.verification import BOOTSTRAP, BrokerResult
from quota_ops.model.text import counted, plural


def describe_brokers(brokers: Sequence[BrokerResult]) -> str:
    """Return how many brokers agree (`2 of 3 brokers agree`); for bootstrap, which responded."""
    if brokers[0].bootstrap:
        return _describe_bootstrap(brokers[0])
    agree = sum(broker.agrees for broker in brokers)
    absent = [f"; broker {broker.broker} {broker.error}" for broker in brokers if broker.absent]
    verb = "agrees" if 1 in (agree, len(brokers)) else "agree"
    total = f"{agree} of {counted(len(brokers), 'broker')} {verb}"
    skipped = _describe_uncompared(brokers[0]) if agree else ""
    return total + skipped + "".join(absent)


def _describe_uncompared(broker: BrokerResult) -> str:
    """Return the number of keys on which a broker agrees; empty if no key was skipped."""
    if not broker.skipped:
        return ""
    total, were = broker.compared + broker.skipped, plural(broker.skipped, "was", "were")
    on = f" on {broker.compared:,} of {counted(total, 'key')}"
    return f"{on} ({broker.skipped:,} {were} skipped)"


def _describe_bootstrap(result: BrokerResult) -> str:
    found = format_broker_result(result) if result.agrees else "does not agree"
    agrees = f"the bootstrap address {found}"
    if result.lagging is None:
        return agrees
    known = result.broker != BOOTSTRAP
    who = f"broker {result.broker} responded, no other" if known else "not each broker"
    return f"{agrees} ({who} was queried)"


def describe_broker(broker: BrokerResult) -> str:
    """Return a broker's result with its name: `broker 3 differs in 214 keys (queried 6 times)`."""
    if broker.bootstrap or broker.absent:
        return f"{broker.named} {format_broker_result(broker)}"
    where = "" if broker.lagging is not None else f" at {broker.address}"
    return f"broker {broker.broker}{where} {format_broker_result(broker)}"


def broker_id(broker: BrokerResult) -> str:
    """Return a broker's id, if known: `3`, `3, at the bootstrap address`."""
    if not broker.bootstrap:
        return str(broker.broker)
    where = "at the bootstrap address"
    return where if broker.broker == BOOTSTRAP else f"{broker.broker}, {where}"


def format_broker_result(broker: BrokerResult) -> str:
    """Return a broker's result: `agrees`, `differs in 214 keys (queried 6 times)`."""
    if broker.agrees:
        return f"agrees{_describe_uncompared(broker)}"
    if broker.absent:
        return f"{broker.error} (not queried)"
    asked = f"(queried {counted(broker.queries, 'time')})"
    if broker.lagging is None:
        return f"does not respond {asked}" + (f": {broker.error}" if broker.error else "")
    return f"differs in {counted(broker.lagging, 'key')} {asked}"
