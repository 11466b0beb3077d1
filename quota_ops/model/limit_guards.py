"""Guards that compare limits before and after: those of rows, and those of clients."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from quota_ops.model.client_effects import InventoryEffects
from quota_ops.model.difference import Difference
from quota_ops.model.guard import Guard, GuardFinding, make_finding
from quota_ops.model.plan import is_cut, is_raise, is_small
from quota_ops.model.policy import Policy
from quota_ops.model.quota import format_limit
from quota_ops.model.rows import Key
from quota_ops.model.strict_policy import Thresholds
from quota_ops.model.text import counted

SHARE_COUNTS_FROM = 5
"""Below this number of removals the share means little: one of four rows is 25 percent."""

Findings = Iterator[GuardFinding]


class EffectOnLimits(Protocol):
    """What a change does to the limits of clients: `Effect`, or what the history has of it."""

    def find_deepest_cut(self, key: str) -> float:
        """Return by how many percent a limit of clients is cut at most; 0 if none is cut."""
        ...

    def may_cut(self, key: str) -> bool:
        """Return whether it may cut or newly limit a client that has a user or a client id."""
        ...


def judge_values(
    writes: Sequence[Difference], thresholds: Thresholds, effects: Mapping[Key, EffectOnLimits]
) -> Findings:
    """Yield the findings of the guards that compare a value before and after.

    A row that is new or removed cuts the limits of clients to which another quota applies before or
    after it, as `effects` show.
    """
    share, factor = thresholds.of("cut_share"), thresholds.of("raise_factor")
    cuts = [row for row in writes if cuts_a_limit(row, effects.get(row.id), share.value)]
    if cuts:
        message = f"{name_rows(cuts)} would fall by more than {share.value:g} %{share.source}"
        yield make_finding(Guard.CUT, message, cuts)
    raises = [row for row in writes if is_raise(row, factor.value)]
    if raises:
        message = (
            f"{name_rows(raises)} would rise to more than {factor.value:,.12g} times{factor.source}"
        )
        yield make_finding(Guard.RAISE, message, raises)
    small = [row for row in writes if is_small(row, thresholds.strict.guards)]
    if small:
        yield make_finding(Guard.SMALL_LIMIT, ", and ".join(_small_words(small, thresholds)), small)


def judge_alteration(writes: Sequence[Difference], policy: Policy) -> Findings:
    """Yield the findings of the guards that check a one-off change; the others check plans."""
    for one in judge_values(writes, Thresholds(policy, None), {}):
        if one.guard in {Guard.RAISE, Guard.SMALL_LIMIT}:
            yield one


def cuts_a_limit(row: Difference, effect: EffectOnLimits | None, beyond: float) -> bool:
    """Return whether the value falls by more than `beyond` percent, or the limit of a client."""
    return is_cut(row, beyond) or (effect is not None and effect.find_deepest_cut(row.key) > beyond)


def _small_words(small: Sequence[Difference], thresholds: Thresholds) -> Iterator[str]:
    """Yield a sentence for the limits of each unit, starting with the unit of the first row."""
    by_threshold: dict[str, list[Difference]] = {}
    for row in small:
        name = "small_percentage" if row.key == "request_percentage" else "small_byte_rate"
        by_threshold.setdefault(name, []).append(row)
    for name, rows in by_threshold.items():
        least = thresholds.of(name)
        below = f"below {format_limit(rows[0].key, least.value)}{least.source}"
        yield f"{name_rows(rows)} would be set {below}"


def judge_clients(
    clients: InventoryEffects | None, effects: Mapping[Key, EffectOnLimits], thresholds: Thresholds
) -> Findings:
    """Yield the finding of the guard that counts the clients of the inventory that lose.

    If they cannot be counted, it blocks what may cut or limit a client.
    """
    if clients is not None and clients.trouble:
        if any(effect.may_cut(key) for (_, key), effect in effects.items()):
            words = f"the clients that lose cannot be counted: {clients.trouble}"
            yield make_finding(Guard.BLAST_RADIUS, words, what="clients")
        return
    if clients is None or not clients.total.losing:
        return
    total, most = clients.total, thresholds.of("blast_radius")
    least = thresholds.of("blast_radius_share")
    share = 100 * total.losing / total.clients
    if total.losing > most.value:
        lost = f"{counted(total.losing, 'client')} would be cut or newly limited, more than "
        words = f"{lost}{most.value:,}{most.source}"
        yield make_finding(Guard.BLAST_RADIUS, words, share=share, what="clients")
    elif total.losing >= SHARE_COUNTS_FROM and share > least.value:
        lost = f"{total.losing:,} of {counted(total.clients, 'client')} would be cut or newly "
        words = f"{lost}limited, more than {least.value:g} %{least.source}"
        yield make_finding(Guard.BLAST_RADIUS, words, share=share, what="clients")


def name_rows(rows: Sequence[Difference]) -> str:
    """Format the first row, and the number of the others."""
    first = f"{rows[0].entity} {rows[0].key}"
    return first if len(rows) == 1 else f"{first} and {len(rows) - 1:,} more"
