"""Expansion for any lists, profiles and overrides: its result, declared plainly, is the same."""

import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from quota_ops.desired.read import read_cluster
from quota_ops.model.quotas.rows import DesiredRow
from tests.quotas_yaml import quota_entry, to_yaml
from tests.yaml_cases import load_yaml

KEYS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage")
TIMES = tuple(f"2026-12-{day:02}T00:00:00Z" for day in range(1, 9))
limits = st.dictionaries(st.sampled_from(KEYS), st.integers(1, 99), min_size=1)
PROFILES = {"silver": {"producer_byte_rate": 7}, "gold": {"profile": "silver", KEYS[1]: 8}}


@st.composite
def quota(draw: st.DrawFn) -> dict[str, Any]:
    """Draw the fields of an entry, without its names.

    Its overrides do not overlap, and begin before it ends.
    """
    found: dict[str, Any] = {"limits": draw(limits)}
    if profile := draw(st.none() | st.sampled_from(sorted(PROFILES))):
        found["profile"] = profile
    if until := draw(st.none() | st.sampled_from(TIMES)):
        found["until"] = until
    times = sorted(draw(st.sets(st.sampled_from(TIMES), max_size=4)))
    found["overrides"] = [
        {"from": start, "until": end, "limits": draw(limits)}
        for start, end in pairwise(times)
        if start < found.get("until", "9")
    ]
    return found


def read(files: dict[str, Any], at: str) -> tuple[DesiredRow, ...]:
    """Return the rows of a cluster with these files at a time."""
    with tempfile.TemporaryDirectory() as root:
        for name, value in files.items():
            (Path(root) / name).write_text(to_yaml(value), "utf-8")
        return read_cluster(Path(root), at=at).rows


def declare(quotas: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the files of a cluster with one list of users for each quota."""
    entries = [{"user": [f"u{n}a", f"u{n}b"], **fields} for n, fields in enumerate(quotas)]
    cluster = {"cluster_id": "a", "connection": "b", "profiles": PROFILES}
    return {"cluster.yaml": cluster, "team.yaml": {"owner": "team", "quotas": entries}}


def find_value(fields: dict[str, Any], key: str, at: str) -> int | None:
    """Return the limit of a key by the rules of the documentation, one after the other."""
    if fields.get("until", "9") <= at:
        return None
    for override in fields["overrides"]:
        if override["from"] <= at < override["until"] and key in override["limits"]:
            return int(override["limits"][key])
    if key in fields["limits"]:
        return int(fields["limits"][key])
    name = fields.get("profile")
    while name:
        profile: Any = PROFILES[name]
        if key in profile:
            return int(profile[key])
        name = profile.get("profile")
    return None


@given(st.lists(quota(), max_size=3), st.sampled_from(TIMES))
def test_the_limits_at_a_time_and_what_follows(quotas: list[dict[str, Any]], at: str) -> None:
    """A row has the value of its time; until the time in `until` no other value applies."""
    files = declare(quotas)
    rows = {row.id: row for row in read(files, at)}

    for number, fields in enumerate(quotas):
        for key in KEYS:
            for name in "ab":
                row = rows.pop((f"user=u{number}{name}", key), None)  # type: ignore[call-overload]
                assert (row and row.value) == find_value(fields, key, at)
                later = [time for time in TIMES if time > at]
                if row is not None:
                    still = [time for time in later if row.until is None or time < row.until]
                    values = {find_value(fields, key, time) for time in still}
                    assert values <= {row.value}
                    assert row.returns_to is None or row.until is not None
    assert not rows


@given(st.lists(quota(), max_size=3), st.sampled_from(TIMES))
def test_what_is_expanded_stays_as_it_is(quotas: list[dict[str, Any]], at: str) -> None:
    """The expanded limits, declared as plain quotas, are read as the same limits."""
    found = [(row.id, row.value) for row in read(declare(quotas), at)]
    plain: dict[str, dict[str, float | None]] = {}
    for (entity, key), value in found:
        plain.setdefault(entity, {})[key] = value
    entries = [quota_entry(entity, values) for entity, values in plain.items()]
    cluster = load_yaml("{cluster_id: a, connection: b}")
    files = {"cluster.yaml": cluster, "team.yaml": {"owner": "team", "quotas": entries}}

    assert sorted((row.id, row.value) for row in read(files, at)) == sorted(found)
