"""The index of a policy's filters: a match without a search through all of them."""

from hypothesis import example, given
from hypothesis import strategies as st

from quota_ops.model.quotas.entity import CLIENT_ID, USER, Entity
from quota_ops.model.quotas.filter import EntityFilter, FilterIndex, FilterPart, Match

FILTERS = st.lists(
    st.builds(
        lambda parts: EntityFilter(tuple(parts.values())),
        st.fixed_dictionaries(
            {},
            optional={
                kind: st.sampled_from(
                    [
                        FilterPart(kind, Match.ANY),
                        FilterPart(kind, Match.DEFAULT),
                        FilterPart(kind, Match.EXACT, "a"),
                        FilterPart(kind, Match.EXACT, "b"),
                    ]
                )
                for kind in (USER, CLIENT_ID)
            },
        ).filter(bool),
    )
)
A_OF_ANY_CLIENT = EntityFilter(
    (FilterPart(CLIENT_ID, Match.ANY), FilterPart(USER, Match.EXACT, "a"))
)
FEW_NAMES = st.sampled_from(["a", "b", "c", None])


@example([A_OF_ANY_CLIENT], {USER: "b", CLIENT_ID: "c"})
@example([A_OF_ANY_CLIENT], {USER: "a", CLIENT_ID: "c"})
@given(FILTERS, st.dictionaries(st.sampled_from([USER, CLIENT_ID]), FEW_NAMES, min_size=1))
def test_the_index_finds_what_the_filters_accept(
    filters: list[EntityFilter], names: dict[str, str | None]
) -> None:
    """An entity meets a border exactly if one of the filters accepts it."""
    entity = Entity.of(names)

    met = FilterIndex(filters).find_match(entity)

    assert (met is not None) == any(known.accepts(entity) for known in filters)
    assert met is None or met.accepts(entity)
