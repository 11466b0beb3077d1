"""A second resolver, written the other way round: the broker's two steps, tags and then limit.

Source: DefaultQuotaCallback.quotaMetricTags and quotaLimit, in org.apache.kafka.server.quota.
"""

from collections.abc import Mapping

Stored = Mapping[tuple[str, str], float]
"""One key's limits by (user, client id), each a name or one of the two below."""
DEFAULT, ABSENT = "<default>", "<absent>"


def tags(stored: Stored, user: str, client: str) -> tuple[str, str]:
    """Return the user and client id by which a broker meters a client."""
    shapes = {(one is not ABSENT, other is not ABSENT) for one, other in stored}
    if shapes <= {(False, True)}:
        return "", client
    if shapes == {(True, False)}:
        return user, ""
    if shapes == {(True, True)}:
        return user, client
    walk = (
        ((user, client), (user, client)),
        ((user, DEFAULT), (user, client)),
        ((user, ABSENT), (user, "")),
        ((DEFAULT, client), (user, client)),
        ((DEFAULT, DEFAULT), (user, client)),
        ((DEFAULT, ABSENT), (user, "")),
    )
    return next((found for place, found in walk if place in stored), ("", client))


def limit(stored: Stored, tagged: tuple[str, str]) -> float | None:
    """Return the limit of the clients metered by these tags."""
    user, client = tagged
    places: tuple[tuple[str, str], ...] = ()
    if user and client:
        places = ((user, client), (user, DEFAULT), (DEFAULT, client), (DEFAULT, DEFAULT))
    elif user:
        places = ((user, ABSENT), (DEFAULT, ABSENT))
    elif client:
        places = ((ABSENT, client), (ABSENT, DEFAULT))
    return next((stored[place] for place in places if place in stored), None)
