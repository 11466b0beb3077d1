"""The screen of `usage --probe`: what a Prometheus has of a cluster, and what to mend."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from quota_ops.model.clusters.cluster_facts import BrokerFacts
from quota_ops.model.clusters.scraped_brokers import match_brokers
from quota_ops.model.usage.usage import UsagePolicy
from quota_ops.model.usage.use import KeyProbe, UseProbe
from quota_ops.report.outline.layout import Screen, Span, Table, Tone, line
from quota_ops.report.screens.usage import TOLERANCE, list_unmatched
from quota_ops.usage.presets import find_names


class ProbeFacts(NamedTuple):
    """What runs saw of a cluster, which explains what is missing in Prometheus."""

    brokers: tuple[BrokerFacts, ...] | None
    """The registered brokers; None if no run has recorded them."""
    quotas: Mapping[str, int] | None
    """How many quotas of each key are stored; None if no run has read them."""
    callback_class: str | None


def explain_key(found: KeyProbe, facts: ProbeFacts, probe: UseProbe) -> str:
    """Return the verdict on a key: whether it is measured, or why it is not."""
    is_unused = facts.quotas is not None and not facts.quotas.get(found.key)
    lost = "no names of clients" if found.unnamed == found.series else "measured"
    some = f"{lost}: {found.unnamed:,} of {found.series:,} series have none, see below"
    verdicts = (
        (found.unnamed, some),
        (found.series, "measured"),
        (facts.callback_class, f"{facts.callback_class} of the brokers decides what is measured"),
        (not found.is_exported, "the preset has no metric of this key: set it in usage.metrics"),
        (
            found.elsewhere and not probe.up,
            f"wrong matchers: {found.elsewhere:,} series have other labels",
        ),
        (is_unused, "no quota of this key is stored, so brokers measure nothing"),
        (probe.merged_users or probe.named_after_clients, "rules that lose names: see below"),
        (not probe.up, "no broker is scraped, or wrong matchers: up has no series either"),
        (not any(probe.up.values()), "the last scrape of each broker failed"),
        (
            any(other.series for other in probe.keys),
            "no client used it in the last hour, or no rule exports it",
        ),
    )
    otherwise = "no rule exports it, or it has another name: see the rules to copy"
    if facts.quotas is None:
        otherwise = f"no quota of this key is stored (quota-ops plan reads them), or {otherwise}"
    else:
        otherwise = f"no client used it since its first quota was stored, or {otherwise}"
    if found.elsewhere:  # those of other clusters, if the matchers are right
        otherwise = f"{otherwise}; {found.elsewhere:,} series have other labels than match"
    return next((verdict for is_so, verdict in verdicts if is_so), otherwise)


_OLD_RULES = (
    "Old rules of the JMX exporter put users into the label resource, and drop quotas of users "
    "alone: replace them by the rules to copy."
)
_KRAFT_RULES = (
    "The rules of the JMX exporter's example for KRaft put names into metrics, changed and in "
    "lower case: put the rules to copy before them."
)


def _explain_unnamed(labels: Mapping[str, str], usage: UsagePolicy) -> str:
    names = find_names(usage)
    found = ", ".join(sorted(label for label in labels if label != "__name__"))
    return (
        f"{labels.get('__name__')} has series without the labels {names.user} and "
        f"{names.client_id}; one has {found}. If the names are in other labels, set `labels` under "
        "`usage` in cluster.yaml. Otherwise the exporter's rule for this metric or a rule of the "
        "scrape (labeldrop) loses them: see the rules to copy."
    )


def probe_screen(cluster: str, probe: UseProbe, facts: ProbeFacts, usage: UsagePolicy) -> Screen:
    """Return the metrics that Prometheus has of a cluster, and why some are missing."""
    lines = [line(f"{cluster} in the Prometheus {usage.prometheus}", Tone.STRONG)]
    registered = None if facts.brokers is None else len(facts.brokers)
    matched = match_brokers(probe.up, facts.brokers or ())
    is_wrong = registered is not None and len(probe.up) != registered
    scraped = f"  brokers scraped: {len(probe.up)}"
    if registered is not None and (matched or is_wrong):
        scraped += f" of {registered:,} registered"
    elif registered is not None:
        scraped += ", as many as are registered; their labels do not show whether they are these"
    lines.append(line(scraped, Tone.CHANGE if is_wrong or not probe.up else Tone.PLAIN))
    doubts = list(list_unmatched(*matched)) if matched else []
    failed = (broker for broker, is_up in probe.up.items() if not is_up)
    doubts += [f"  the last scrape of {broker} failed" for broker in failed]
    if matched is None and registered is not None and len(probe.up) > registered:
        doubts.append("  match selects the targets of something else, too")
    lines += [line(f"  {words}", Tone.CHANGE) for words in doubts]
    if probe.interval is not None:
        words, tone = f"  scraped every {probe.interval:.0f} s", Tone.PLAIN
        if abs(probe.interval - usage.step) > TOLERANCE * usage.step:
            words += f", but step is {usage.step} s: set step: {round(probe.interval)}s"
            tone = Tone.CHANGE
        lines.append(line(words, tone))
    if probe.oldest is not None:
        lines.append(line(f"  oldest scrape: {probe.oldest:%Y-%m-%d}"))
    fitting = [f"{name} ({number})" for name, number in probe.presets.items() if number]
    lines.append(line(f"  presets that fit, by keys: {', '.join(fitting) or 'none'}"))
    if fitting and not probe.presets.get(usage.preset):
        best = max(probe.presets, key=lambda name: probe.presets[name])
        lines.append(line(f"    the preset is {usage.preset}: set preset: {best}", Tone.CHANGE))
    rows = (
        (
            *(Span(found.key, Tone.STRONG), f"{found.series:,}", f"{found.brokers:,}"),
            Span(
                explain_key(found, facts, probe),
                Tone.PLAIN if found.series and not found.unnamed else Tone.CHANGE,
            ),
        )
        for found in probe.keys
    )
    remedies = (
        (probe.merged_users, _OLD_RULES),
        (probe.named_after_clients, _KRAFT_RULES),
        (len(probe.unnamed), _explain_unnamed(probe.unnamed, usage)),
    )
    below = [line(text, Tone.CHANGE) for number, text in remedies if number]
    return [*lines, line(), Table.of(("key", "series", "brokers", ""), rows), *below]


def probe_json(cluster: str, probe: UseProbe, facts: ProbeFacts) -> dict[str, Any]:
    """Return the metrics that Prometheus has of a cluster as JSON values."""
    return {
        "cluster": cluster,
        **probe._asdict(),
        "oldest": probe.oldest and f"{probe.oldest:%Y-%m-%d}",
        "registered_brokers": None if facts.brokers is None else len(facts.brokers),
        "keys": [
            {**found._asdict(), "verdict": explain_key(found, facts, probe)} for found in probe.keys
        ],
    }
