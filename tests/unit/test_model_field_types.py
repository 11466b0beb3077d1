"""Values of another type than their class declares, found field by field."""

from typing import NamedTuple

import pytest

from quota_ops.model.field_types import check_types
from quota_ops.model.outcome import Outcome, Status


class Names(NamedTuple):
    """A name, and perhaps others."""

    name: str
    others: frozenset[str] | None = None


OUTCOME = Outcome(1, "user=a", ("k",), Status.ACCEPTED)


def test_what_conforms_comes_back() -> None:
    """Rows of any class with typed fields are accepted, even without rows."""
    assert check_types([OUTCOME]) == (OUTCOME,)
    assert check_types([Names("a"), Names("b", frozenset("c"))]) == (
        Names("a"),
        Names("b", frozenset("c")),
    )
    assert check_types([]) == ()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (Outcome(1, ["user=a"], (), Status.ACCEPTED), "entity is list"),  # type: ignore[arg-type]
        (Outcome(True, "user=a", (), Status.ACCEPTED), "batch is bool"),
        (Outcome(1, "user=a", ("k", 5), Status.ACCEPTED), "keys is int"),  # type: ignore[arg-type]
        (Outcome(1, "user=a", (), "accepted"), "status is str"),  # type: ignore[arg-type]
    ],
)
def test_what_does_not_is_named(wrong: Outcome, message: str) -> None:
    """The field, and the type that it cannot have."""
    with pytest.raises(TypeError, match=message):
        check_types([OUTCOME, wrong])
