"""Which of the registered brokers were scraped, as far as the labels of scrapes show it."""

import re
from collections.abc import Iterable
from ipaddress import ip_address
from typing import NamedTuple

from quota_ops.model.clusters.cluster_facts import BrokerFacts

_PORT = re.compile(r":\d+$")


class ScrapedBrokers(NamedTuple):
    """The addresses of registered brokers that no label is of, and the labels of no such broker."""

    absent: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


def match_brokers(labels: Iterable[str], brokers: Iterable[BrokerFacts]) -> ScrapedBrokers | None:
    """Return which brokers have no label, and which labels are of no broker.

    A label is of a broker if it has its id, its host, or the name of its host without the domain,
    as pods have it. None if labels do not tell brokers apart: all may be on one host, or labels may
    have addresses where brokers have names.
    """
    names = {broker: _list_names(broker.address) | {str(broker.id)} for broker in brokers}
    of_label = {
        label: [broker for broker, own in names.items() if own & _list_names(label)]
        for label in labels
    }
    owners = [broker for found in of_label.values() for broker in found]
    if not owners or len({*owners}) < len(owners) or any(len(f) > 1 for f in of_label.values()):
        return None
    absent = tuple(broker.address for broker in names if broker not in owners)
    others = tuple(label for label, found in of_label.items() if not found)
    if absent and others and len({_has_name(text) for text in (*absent, *others)}) > 1:
        return None
    return ScrapedBrokers(absent, others)


def _list_names(address: str) -> set[str]:
    """Return the host of an address, with and without its domain."""
    host = _PORT.sub("", address)
    return {host, host.partition(".")[0]} if _has_name(address) else {host}


def _has_name(address: str) -> bool:
    """Return whether an address has a name and no number of the Internet Protocol."""
    try:
        ip_address(_PORT.sub("", address).strip("[]"))
    except ValueError:
        return True
    return False
