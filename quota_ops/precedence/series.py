"""The quota that a broker's series belongs to, by the names of the series.

Source: DefaultQuotaCallback.quotaMetricTags and quotaLimit. A series has the names of the level
that decided: a user and a client id, or one of them. Within these, the first match applies.
"""

from collections.abc import Collection

from quota_ops.model.quotas.entity import CLIENT_ID, USER, Entity

_FORMS = ((True, True), (True, False), (False, True), (False, False))
"""Whether user and client id have a name, in the order of the levels."""


def find_quota(
    stored: Collection[Entity], user: str | None, client_id: str | None
) -> Entity | None:
    """Return the quota of a series among the quotas of its key then; None if it had no limit.

    A name that is None is no label of the series. A series of a client id alone may also have no
    limit: brokers count so if no quota matches and quotas of several levels exist.
    """
    names = {kind: name for kind, name in ((USER, user), (CLIENT_ID, client_id)) if name}
    for with_user, with_client_id in _FORMS:
        keeps = {USER: with_user, CLIENT_ID: with_client_id}
        entity = Entity.of({kind: name if keeps[kind] else None for kind, name in names.items()})
        if entity in stored:
            return entity
    return None
