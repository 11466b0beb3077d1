"""Where the use of a cluster's clients is measured: `usage` of cluster.yaml."""

import re
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
"""The name of a label in Prometheus."""
_METRIC = re.compile(r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(?P<matchers>.*)\})?", re.DOTALL)
_MATCHER = re.compile(
    rf'\s*(?P<label>{LABEL.pattern})\s*=\s*"(?P<value>(?:[^"\\\n]|\\["\\n])*)"\s*(?:,|$)'
)
_ESCAPES = {'\\"': '"', "\\\\": "\\", "\\n": "\n"}


class Preset(StrEnum):
    """The rules by which an exporter names the metrics of a broker."""

    JMX_EXPORTER = "jmx-exporter"
    """The rules of quota-ops for Prometheus' JMX exporter, and those of its examples since 2023."""
    CONFLUENT = "confluent"
    """The rules of Confluent's jmx-monitoring-stacks."""
    DEFAULT = "default"
    """The JMX exporter without rules."""
    STRIMZI_REPORTER = "strimzi-reporter"
    """Strimzi's metrics reporter, if its list of metrics allows these."""


class Metric(NamedTuple):
    """A metric's name, and the labels that it must have: never another expression of PromQL."""

    name: str
    labels: tuple[tuple[str, str], ...] = ()

    @classmethod
    def parse(cls, text: str) -> "Metric":
        """Parse `NAME` or `NAME{label="value"}`. Raises ValueError for anything else."""
        read = _METRIC.fullmatch(text.strip())
        if read is None:
            raise ValueError("is not the name of a metric")
        labels, end, matchers = [], 0, read["matchers"] or ""
        while matchers[end:].strip():
            matcher = _MATCHER.match(matchers, end)
            if matcher is None:
                raise ValueError('has a matcher that is not label="value"')
            value = re.sub(r"\\.", lambda found: _ESCAPES[found[0]], matcher["value"])
            labels.append((matcher["label"], value))
            end = matcher.end()
        return cls(read["name"], tuple(labels))


class UsagePolicy(Struct, frozen=True):
    """The Prometheus that scrapes a cluster, and how it names what brokers measure.

    `prometheus` is the name of a connection. `match` are labels that only series of this cluster
    have, `broker` is the label that tells brokers apart. `metrics` and `throttle_times` replace
    the metrics of the preset, by quota key; `labels` its labels, by entity type. `step` is the
    interval of the scrapes, in seconds.
    """

    prometheus: str
    preset: Preset = Preset.JMX_EXPORTER
    match: tuple[tuple[str, str], ...] = ()
    broker: str = "instance"
    metrics: tuple[tuple[str, Metric], ...] = ()
    throttle_times: tuple[tuple[str, Metric], ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    step: int = 60
