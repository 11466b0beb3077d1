"""What a cut would have done, to those whom it would have throttled the longest."""

from msgspec.structs import replace

from quota_ops.model.usage.throttling import CutUse, Delays, Throttling

SOME = Delays("user=a", "1", 60.0, 120.0, 3.0, 0.0, 2e6, 1.0)


def test_days_are_whole_if_all_of_them_were_seen() -> None:
    """A second that was not seen is enough for a range that may be exceeded."""
    assert SOME.is_whole
    assert not SOME._replace(share=0.9999).is_whole


def test_the_longest_throttling_counts() -> None:
    """Of several groups, the one that would have been throttled the longest is the worst."""
    other = SOME._replace(shared_by="user=b", delayed=60.0)

    assert CutUse("user=<default>", "k", (other, SOME)).worst == SOME
    assert CutUse("user=<default>", "k", (other, SOME)).longest == 120.0
    found = Throttling(7, "2026-11-26T00:00:00Z", (CutUse("user=a", "k", (SOME,)),))
    assert not found.is_partial
    assert replace(found, cuts=(CutUse("user=a", "k", why="unknown"),)).is_partial
    assert replace(found, trouble="no response").is_partial
    assert (CutUse("user=a", "k", why="unknown").worst, CutUse("user=a", "k").longest) == (None, 0)
