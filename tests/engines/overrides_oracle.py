"""Which unmanaged quotas take clients from which of Git: by the resolver, client by client."""

from collections.abc import Mapping, Sequence
from itertools import product
from random import Random
from typing import NamedTuple

from quota_ops.model.plans.ledger_edits import VERIFIED
from quota_ops.model.quotas.entity import CLIENT_ID, IP, USER, Entity
from quota_ops.model.quotas.rows import DesiredRow, LedgerRow, Side, StoredQuota
from quota_ops.precedence.resolution import Limits, Resolution

RATE, CONNECTIONS = "producer_byte_rate", "connection_creation_rate"
USERS = ("a", "b", 'q "\\,user=a')
CLIENT_IDS = ("app", "etl", 'q,"\\', "")
ADDRESSES = ("10.0.0.1", "10.0.0.2")
FRESH = "zoe"
"""A name that no entity has; all such clients are in the same classes."""
UNMANAGED, PROTECTED, LEAVING = Side
STAYING = (UNMANAGED, PROTECTED)
AT = "2026-11-01T00:00:00+00:00"
Rows = Mapping[tuple[Entity, str], float]
Decided = tuple[Entity, float | None, tuple[str, ...]] | None
"""The entity whose limit applies, its value, and the types that say who shares it."""
_CLIENTS = [
    *({USER: user} for user in (*USERS, None)),
    *({CLIENT_ID: client_id} for client_id in (*CLIENT_IDS, None)),
    *({USER: user, CLIENT_ID: one} for user, one in product((*USERS, None), (*CLIENT_IDS, None))),
]
_ROWS = [(Entity.of(names), RATE) for names in _CLIENTS]
_ROWS += [(Entity.of({IP: address}), CONNECTIONS) for address in (*ADDRESSES, None)]


class Case(NamedTuple):
    """The quotas of Git, and those that only the cluster has, each unmanaged or for a reason."""

    declared: Rows
    others: Rows
    sides: Mapping[tuple[Entity, str], str]

    @property
    def desired(self) -> list[tuple[str, str, float]]:
        """The declared rows as entity, key and value."""
        return [(entity.text, key, value) for (entity, key), value in self.declared.items()]


def make_case(random: Random) -> Case:
    """Return random rows, of few values, at all levels."""
    declared, others, sides = {}, {}, {}
    share = random.choice((0.1, 0.25, 0.5))
    for row in _ROWS:
        chance, value = random.random(), float(random.randint(1, 3))
        is_empty = "" in row[0].as_dict().values()  # which YAML rejects
        if chance < share and not is_empty:
            declared[row] = value
        elif chance < 1.6 * share:
            others[row] = value
            side = random.choice((UNMANAGED, UNMANAGED, PROTECTED, LEAVING))
            sides[row] = UNMANAGED if is_empty else side
    return Case(declared, others, sides)


def find_pairs(case: Case, side: str = UNMANAGED) -> set[tuple[str, str]]:
    """Return each row of a side and declared row, by entity, between which a client moves.

    A row that a plan clears counts for such rows alone, which take clients until then; a declared
    row has Git's value on both sides. A client of a protected row would have the limit that applies
    without this row.
    """
    protected = [row for row in case.others if case.sides[row] == PROTECTED]
    if side != PROTECTED:
        return _find_moves(case, side, protected)
    return {
        pair
        for row in protected
        for pair in _find_moves(case, PROTECTED, [other for other in protected if other != row])
        if pair[0] == row[0].text
    }


def _find_moves(case: Case, side: str, left: Sequence[tuple[Entity, str]]) -> set[tuple[str, str]]:
    """Return the pairs of clients that the rows of `left` and of Git alone limit otherwise."""
    kept = {row: value for row, value in case.others.items() if case.sides[row] in {*STAYING, side}}
    without = {row: value for row, value in kept.items() if row in left}
    before, after = (_limits({**case.declared, **rows}) for rows in (without, kept))
    found = set()
    for user in (*USERS, FRESH):
        ids = (*CLIENT_IDS, FRESH)
        first, last = (
            {one: _decide(limits.resolve(RATE, user=user, client_id=one)) for one in ids}
            for limits in (before, after)
        )
        for one in ids:
            more = _list_sharers(last, one) - _list_sharers(first, one)
            found |= _find_move(case, side, RATE, first[one], last[one], more=bool(more))
    for ip in (*ADDRESSES, "10.0.0.9"):
        limits = [_decide(each.resolve_address(CONNECTIONS, ip=ip)) for each in (before, after)]
        found |= _find_move(case, side, CONNECTIONS, *limits)
    return found


def _find_move(
    case: Case, side: str, key: str, declared: Decided, in_force: Decided, *, more: bool = False
) -> set[tuple[str, str]]:
    """Return the pair of rows between which a client moves, if a row of a side takes it.

    An equal limit that no `more` clients share than before takes nothing away.
    """
    if declared is None or in_force is None:
        return set()
    if declared[0] == in_force[0] or (declared[1:] == in_force[1:] and not more):
        return set()
    is_declared = (declared[0], key) in case.declared
    is_taken = is_declared and case.sides.get((in_force[0], key)) == side
    return {(in_force[0].text, declared[0].text)} if is_taken else set()


def _list_sharers(decided: Mapping[str, Decided], one: str) -> set[str]:
    """Return the client ids that share the limit of one, if all clients of a user share it."""
    own = decided[one]
    if own is None or own[2] != (USER,):
        return set()
    return {other for other, limit in decided.items() if limit is not None and limit[0] == own[0]}


def _limits(rows: Rows) -> Limits:
    return Limits(StoredQuota(entity, key, value) for (entity, key), value in rows.items())


def _decide(resolution: Resolution) -> Decided:
    """Return the entity that decides, its value, and the types that say who shares it."""
    applied = resolution.applied
    return None if applied is None else (applied.entity, applied.value, applied.level.types)


def list_verified(case: Case, cluster: str) -> list[LedgerRow]:
    """Return the rows of LEDGER: a run wrote what a plan now clears."""
    return [
        LedgerRow(cluster, entity.text, key, value, VERIFIED, "team", None, None, "run", AT)
        for (entity, key), value in case.others.items()
        if case.sides[entity, key] == LEAVING
    ]


def list_desired(case: Case, cluster: str) -> list[DesiredRow]:
    """Return the rows of DESIRED."""
    return [DesiredRow(cluster, *row, "team", None, "team.yaml", 1) for row in case.desired]
