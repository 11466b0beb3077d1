"""Filters compared: overlap and cover, checked against every possible entity."""

from hypothesis import given
from hypothesis import strategies as st

from quota_ops.model.quotas.entity import Entity
from quota_ops.model.quotas.filter import EntityFilter, FilterPart, Match

PARTS = st.builds(
    FilterPart, st.sampled_from(["user", "client-id"]), st.sampled_from(list(Match))
).flatmap(
    lambda part: st.sampled_from(["a", "b"]).map(
        lambda name: FilterPart(part.type, part.match, name if part.match is Match.EXACT else None)
    )
)
FILTERS = st.lists(PARTS, min_size=1, max_size=2, unique_by=lambda part: part.type).map(
    lambda parts: EntityFilter(tuple(parts))
)
NAMES = (None, "a", "b", "c")
ENTITIES = [
    Entity.of(names)
    for names in (
        *({"user": one} for one in NAMES),
        *({"client-id": one} for one in NAMES),
        *({"user": one, "client-id": two} for one in NAMES for two in NAMES),
    )
]


@given(FILTERS, FILTERS)
def test_filters_overlap_where_an_entity_fits_both(one: EntityFilter, other: EntityFilter) -> None:
    """Overlap and cover agree with a search over all possible entities."""
    ours = [entity for entity in ENTITIES if one.accepts(entity)]
    theirs = [entity for entity in ENTITIES if other.accepts(entity)]

    assert one.overlaps(other) == bool(set(ours) & set(theirs))
    assert one.covers(other) == (set(theirs) <= set(ours))
