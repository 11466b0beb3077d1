"""Findings that depend on the quotas and brokers of the cluster."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from difflib import get_close_matches

from quota_ops.findings.codes import (
    BEYOND_THREADS,
    OWN_LIMIT,
    OWN_PERCENTAGE,
    UNCHECKED_USERS,
    UNKNOWN_USER,
    UNPROTECTED,
    make_finding,
)
from quota_ops.model.clusters.cluster_facts import ClusterFacts
from quota_ops.model.finding import Finding
from quota_ops.model.plans.policy import Policy
from quota_ops.model.quotas.entity import CLIENT_ID, DEFAULT_TEXT, USER, Entity
from quota_ops.model.quotas.quota import QUOTA_KEYS, THREAD_KEY, format_limit
from quota_ops.model.quotas.rows import Key, StoredQuota
from quota_ops.precedence.resolution import ANONYMOUS, LEVELS, Limits

Rows = Mapping[Key, float]
"""Values by an entity's text and a key."""

_PREFIX = "User:"
_MOST_SUGGESTED = 20
"""So many unknown users are compared with all known ones: the last of 10,000 is no typo."""


def check_cluster(
    desired: Rows, others: Rows, facts: ClusterFacts | None, policy: Policy | None
) -> Iterator[Finding]:
    """Yield the findings of Git's rows that need the cluster, and the rows that stay on it.

    Findings that need facts are left out without them; see `list_decidable_codes`.
    """
    if facts is not None:
        yield from _find_beyond_threads(desired, facts)
        yield from find_unknown_users((text for text, _ in desired), facts)
        yield from _find_unchecked_users(desired, facts)
        yield from _find_own_throttle(desired, others, facts)
        yield from _find_unprotected(desired, facts, policy)


def list_decidable_codes(facts: ClusterFacts | None) -> frozenset[str]:
    """Return the codes for which `check_cluster` has all the facts that it needs."""
    if facts is None:
        return frozenset()
    known = {
        BEYOND_THREADS: _capacity(facts) is not None,
        UNKNOWN_USER: bool(list_known_users(facts)),
        UNCHECKED_USERS: facts.lacks_describe or facts.scram_users is not None,
        OWN_LIMIT: _own_name(facts) is not None,
        UNPROTECTED: _own_name(facts) is not None,
    }
    return frozenset(code for code, is_known in known.items() if is_known)


def _capacity(facts: ClusterFacts) -> float | None:
    """Return the percentage that the largest broker provides; None unless all brokers report it."""
    threads = [broker.threads for broker in facts.brokers if broker.threads is not None]
    return 100.0 * max(threads) if threads and len(threads) == len(facts.brokers) else None


def _find_beyond_threads(desired: Rows, facts: ClusterFacts) -> Iterator[Finding]:
    capacity, unlimited = _capacity(facts), QUOTA_KEYS[THREAD_KEY].unlimited
    if capacity is None:
        return
    for (text, key), value in desired.items():
        if key == THREAD_KEY and value > capacity and value != unlimited:
            most = format_limit(key, capacity)
            message = f"{key} of {text} is {format_limit(key, value)}, but the threads of this"
            message += f" cluster's largest broker provide {most}."
            yield make_finding(BEYOND_THREADS, message, entity=text, key=key)


def list_known_users(facts: ClusterFacts) -> frozenset[str]:
    """Return the users that the cluster knows; none if it may have others.

    A cluster without SCRAM users or ACLs authenticates users in another way. An ACL for everyone
    names no user.
    """
    scram, principals = facts.scram_users, facts.acl_principals
    if not scram or not principals:
        return frozenset()
    named = {
        principal.removeprefix(_PREFIX) for principal in principals if principal.startswith(_PREFIX)
    }
    return scram | (named - {"*"}) | {ANONYMOUS}


def find_unknown_users(entities: Iterable[str], facts: ClusterFacts) -> Iterator[Finding]:
    """Yield a finding for each entity whose user the cluster does not know."""
    known = list_known_users(facts)
    texts = dict.fromkeys(entities) if known else {}
    unknown = [
        (text, name) for text in texts if (name := _user(text)) is not None and name not in known
    ]
    client_ids = {Entity.parse(text).as_dict().get(CLIENT_ID) for text in texts if unknown}
    for number, (text, name) in enumerate(unknown):
        message = f"{text} is for a user without a SCRAM credential and without an ACL of its own."
        meant = _suggest_user(name, known, client_ids) if number < _MOST_SUGGESTED else ""
        yield make_finding(UNKNOWN_USER, message, meant, entity=text)


def _suggest_user(name: str, known: Collection[str], client_ids: Collection[str | None]) -> str:
    """Return the user that was probably meant by an unknown name; empty if none is likely."""
    if near := get_close_matches(name, known, 1):
        return f"Did you mean {near[0]}?"
    return f"Did you mean client-id: {name}?" if name in client_ids else ""


def _find_unchecked_users(desired: Rows, facts: ClusterFacts) -> Iterator[Finding]:
    if facts.lacks_describe and any(_user(text) is not None for text, _ in desired):
        message = f"Whether the cluster knows the users of these quotas ({UNKNOWN_USER}) was not"
        message += f" checked: {facts.principal} lacks Describe on the resource Cluster."
        yield make_finding(UNCHECKED_USERS, message)


def _user(text: str) -> str | None:
    """Return the user of an entity, usually without parsing its whole text."""
    if '"' in text:
        return Entity.parse(text).as_dict().get(USER)
    _, of_user, name = text.rpartition(f"{USER}=")
    return name if of_user and name != DEFAULT_TEXT else None


def _own_name(facts: ClusterFacts) -> str | None:
    """Return the user of quota-ops; None if only the brokers can map its certificate to a name."""
    name = facts.principal.removeprefix(_PREFIX)
    return None if name.startswith("<") else name


def _find_own_throttle(desired: Rows, others: Rows, facts: ClusterFacts) -> Iterator[Finding]:
    name = _own_name(facts)
    if name is None:
        return
    names = {USER: name, CLIENT_ID: facts.client_id}
    rows = (
        (entity, Key(entity.text, THREAD_KEY))
        for entity in (level.entity(names) for level in LEVELS)
    )
    stored = [
        StoredQuota(entity, THREAD_KEY, desired.get(row, others.get(row, 0.0)))
        for entity, row in rows
        if row in desired or row in others
    ]
    resolved = Limits(stored).resolve(THREAD_KEY, user=name, client_id=facts.client_id)
    held = resolved.applied
    if held is not None and held.value is not None and held.value < OWN_PERCENTAGE:
        limit, text = format_limit(THREAD_KEY, held.value), held.entity.text
        message = f"{text} limits quota-ops itself to {THREAD_KEY} {limit}: its user is {name},"
        message += f" its client id is {facts.client_id}."
        yield make_finding(OWN_LIMIT, message, entity=text, key=THREAD_KEY)


def _find_unprotected(
    desired: Rows, facts: ClusterFacts, policy: Policy | None
) -> Iterator[Finding]:
    """Yield a finding if `protect` lists users only without the user of quota-ops.

    There is none if Git declares quotas of that user: nothing protected may be declared.
    """
    name = _own_name(facts)
    protect = policy.protect if policy else ()
    users = [entry for entry in protect if [part.type for part in entry.parts] == [USER]]
    if name is None or name == ANONYMOUS or not users:
        return
    own = Entity.of({USER: name})
    if any(entry.accepts(own) for entry in users) or any(text == own.text for text, _ in desired):
        return
    message = f"quota-ops authenticates as {name}, which is not under protect in cluster.yaml."
    yield make_finding(UNPROTECTED, message)
